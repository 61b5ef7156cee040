//! Dice notation: `4d6kh3`, `2d20kl1+5`, `d%`, `4dF`, `8d6!`, `(2d6, 1d12)kh1`.
//!
//! [`Expression::parse`] parses, and [`Expression::roll`] rolls with the caller's random source.
//! `docs/dice.md` contains the grammar. Where dice programs differ, this crate follows Avrae's `d20`.
//!
//! The `MAX_` constants bound the work of one expression. Other Rust crates support only parts of
//! the notation, and none bounds the work.

mod parse;
mod reader;
mod roll;
mod written;

pub use reader::Place;
pub use roll::{Die, Group, RollError, Rolled};
pub use written::{Written, inside, written};

/// Maximum number of dice that one call may roll, including rerolls, explosions and repetitions.
pub const MAX_DICE: usize = 10_000;
/// Maximum number of repetitions of a roll. [`written`] does not enforce it.
pub const MAX_TIMES: u32 = 100;
/// Maximum length of an expression, in characters.
pub const MAX_CHARS: usize = 1000;
/// Maximum nesting depth of brackets, function calls and signs.
pub const MAX_DEPTH: usize = 30;
/// The largest number that an expression may contain.
pub const MAX_NUMBER: f64 = 1e9;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    root: Node,
    /// The expression as written, trimmed and without its comment.
    text: String,
    /// The text after `#`, trimmed and not empty.
    comment: Option<String>,
}

/// The reason why a text is not a valid expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} (at character {at})")]
pub struct ParseError {
    /// Position in characters, starting at 1.
    pub at: usize,
    pub detail: String,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// If the text is not in the grammar, exceeds a limit, or contains a die without sides.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::expression(text)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// Returns the number of dice before rerolls and explosions.
    pub fn dice(&self) -> usize {
        self.root.dice()
    }

    /// Returns true if the expression contains at least one die. `0d6` contains none.
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
    /// Returns the number of dice before rerolls and explosions.
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

/// The values in a pair of brackets, with the operations on them.
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
    /// The term as written, such as `4d6kh3`.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    /// Faces 1 to N.
    Number(i64),
    /// A Fate die: -1, 0 and 1, equally likely.
    Fate,
    /// A Fate die with six faces: -1, 1 and four times 0.
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
    /// Rolls one more die, once, if any die is selected. Marks the first selected die as exploded.
    Add(Vec<Selector>),
    Explode(Explosion, Vec<Selector>),
    AtLeast(f64),
    AtMost(f64),
    /// Rerolls a die whose value an earlier die already shows.
    Unique(Again),
    /// Sorts the dice in the output. The total stays the same.
    Sort(Order),
    /// Marks dice in the output. The total stays the same.
    Mark(Vec<Selector>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Once,
    UntilNot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Explosion {
    /// Rolls another die for each selected die, repeatedly.
    Another,
    /// Adds the values of the further rolls to the die.
    Compound,
    /// Rolls further dice and subtracts one from each.
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
    /// Returns true if the selector selects the value. Returns `None` for selectors by rank, which
    /// also depend on the other values.
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
    /// The result has the sign of the divisor.
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

    fn compares(self) -> bool {
        use Operator::{AtLeast, AtMost, Equal, Greater, Less, Unequal};
        matches!(self, Equal | Unequal | Less | AtMost | Greater | AtLeast)
    }

    /// Applies the operator. A comparison gives 1 or 0. Returns `None` for a division by zero.
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

/// Formats a number with at most two decimals, without trailing zeros and without a negative zero.
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
