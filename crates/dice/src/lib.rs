//! Dice notation: `4d6kh3`, `2d20kl1+5`, `d%`, `4dF`, `8d6!`, `(2d6, 1d12)kh1`.
//!
//! [`Expression::parse`] parses, [`Expression::bounds`] computes the smallest and the largest total, and
//! [`Expression::roll`] rolls with the caller's random source. `docs/dice.md` has the grammar. Where dice programs differ,
//! the notation of Avrae's `d20` counts.
//!
//! The work of one expression is bounded: see the `MAX_` constants. Other crates for Rust support only parts of the
//! notation, and none bounds the work.

mod bounds;
mod parse;
mod repeat;
mod roll;

pub use bounds::Bounds;
pub use repeat::{MAX_TIMES, repeated};
pub use roll::{Die, Group, RollError, Rolled};

/// The most dice that one expression may throw, rerolled and exploded ones included.
pub const MAX_DICE: usize = 10_000;
/// The longest expression, in characters.
pub const MAX_CHARS: usize = 1000;
/// How deep brackets and signs may be nested.
pub const MAX_DEPTH: usize = 30;
/// The largest number that may be written.
pub const MAX_NUMBER: f64 = 1e9;

/// An expression that can be rolled.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    root: Node,
    /// As it was written, without its comment.
    text: String,
    /// What stands behind `#`.
    comment: Option<String>,
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} (at character {at})")]
pub struct ParseError {
    /// From 1.
    pub at: usize,
    pub detail: String,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`ParseError`], also for what could be written but never rolled: no sides, a reroll without an end, a division by
    /// zero whatever the dice show.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::expression(text)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// How many dice are thrown at least.
    pub fn dice(&self) -> usize {
        self.root.dice()
    }

    /// Whether any die is thrown.
    pub fn has_dice(&self) -> bool {
        self.root.dice() > 0
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Number(f64),
    Dice(Dice),
    Set(Set),
    Call(Function, Vec<Node>),
    Negative(Box<Node>),
    Binary(Box<Node>, Operator, Box<Node>),
    Labelled(Box<Node>, String),
}

impl Node {
    /// Dice that are thrown at least.
    fn dice(&self) -> usize {
        match self {
            Node::Number(_) => 0,
            Node::Dice(dice) => dice.count as usize,
            Node::Set(Set { items, .. }) | Node::Call(_, items) => {
                items.iter().map(Node::dice).sum()
            }
            Node::Negative(inner) | Node::Labelled(inner, _) => inner.dice(),
            Node::Binary(left, _, right) => left.dice() + right.dice(),
        }
    }
}

/// Values in brackets. More than one, or operations on them, make it more than brackets.
#[derive(Debug, Clone, PartialEq)]
struct Set {
    items: Vec<Node>,
    operations: Vec<Operation>,
}

#[derive(Debug, Clone, PartialEq)]
struct Dice {
    count: u32,
    sides: Sides,
    operations: Vec<Operation>,
    /// As written.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    /// Faces 1 to N.
    Number(i64),
    /// Fate: -1, 0, 1, equally likely.
    Fate,
    /// Fate with four blanks of six.
    BlankFate,
}

impl Sides {
    fn lowest(self) -> i64 {
        match self {
            Sides::Number(_) => 1,
            Sides::Fate | Sides::BlankFate => -1,
        }
    }

    fn highest(self) -> i64 {
        match self {
            Sides::Number(sides) => sides,
            Sides::Fate | Sides::BlankFate => 1,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Operation {
    Keep(Vec<Selector>),
    Drop(Vec<Selector>),
    Reroll(Again, Vec<Selector>),
    /// Roll one more die, once, for the first that is selected.
    Add(Vec<Selector>),
    Explode(Explosion, Vec<Selector>),
    AtLeast(f64),
    AtMost(f64),
    /// No two dice alike.
    Unique(Again),
    /// For the eye only.
    Sort(Order),
    /// For the eye only: these dice are marked.
    Mark(Vec<Selector>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Once,
    UntilNot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Explosion {
    /// Each die that explodes brings another.
    Another,
    /// What the others show is added to the first.
    Compound,
    /// Another, less one.
    Penetrating,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Up,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selector {
    Highest(usize),
    Lowest(usize),
    Is(i64),
    IsNot(i64),
    Above(i64),
    Below(i64),
    AtLeast(i64),
    AtMost(i64),
}

impl Selector {
    /// Whether a value is selected for what it is; `None` for selectors that look at the others too.
    fn takes(self, value: f64) -> Option<bool> {
        let than = |n: i64| n as f64;
        Some(match self {
            Selector::Highest(_) | Selector::Lowest(_) => return None,
            Selector::Is(n) => (value - than(n)).abs() < f64::EPSILON,
            Selector::IsNot(n) => (value - than(n)).abs() >= f64::EPSILON,
            Selector::Above(n) => value > than(n),
            Selector::Below(n) => value < than(n),
            Selector::AtLeast(n) => value >= than(n),
            Selector::AtMost(n) => value <= than(n),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Floor,
    Ceil,
    Round,
    Abs,
    Least,
    Most,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Times,
    Divide,
    /// Rounded down.
    DivideWhole,
    /// The sign is the divisor's.
    Modulo,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Operator {
    fn sign(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Times => "*",
            Operator::Divide => "/",
            Operator::DivideWhole => "//",
            Operator::Modulo => "%",
            Operator::Equal => "==",
            Operator::Unequal => "!=",
            Operator::Less => "<",
            Operator::AtMost => "<=",
            Operator::Greater => ">",
            Operator::AtLeast => ">=",
        }
    }

    /// `None` for a division by zero.
    fn of(self, left: f64, right: f64) -> Option<f64> {
        let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
        let zero = right == 0.0;
        Some(match self {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Times => left * right,
            Operator::Divide | Operator::DivideWhole | Operator::Modulo if zero => return None,
            Operator::Divide => left / right,
            Operator::DivideWhole => (left / right).floor(),
            Operator::Modulo => left - right * (left / right).floor(),
            Operator::Equal => truth((left - right).abs() < f64::EPSILON),
            Operator::Unequal => truth((left - right).abs() >= f64::EPSILON),
            Operator::Less => truth(left < right),
            Operator::AtMost => truth(left <= right),
            Operator::Greater => truth(left > right),
            Operator::AtLeast => truth(left >= right),
        })
    }
}

/// A number as people write it: without decimals that say nothing, with two at the most, and without a negative zero.
fn shown(number: f64) -> String {
    let text = if number.fract() == 0.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.2}")
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    };
    if text == "-0" { "0".to_owned() } else { text }
}

#[cfg(test)]
mod tests;
