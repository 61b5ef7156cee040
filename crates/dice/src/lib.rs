//! Dice notation: `4d6kh3`, `2d20kl1+5`, `d%`, `4dF`, `8d6!`, `(2d6, 1d12)kh1`.
//!
//! [`Expression::parse`] parses, and [`Expression::roll_times`] rolls with the caller's random source.
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
pub use written::{Written, is_inside, written};

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
    /// The expression as written, trimmed.
    text: String,
}

/// The reason why a text is not a valid expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} (at character {at})")]
pub struct ParseError {
    /// Position in characters, starting at 1.
    pub at: usize,
    pub detail: String,
}

impl ParseError {
    fn new(at: usize, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { at, detail }
    }
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
    /// The faces, from the lowest to the highest.
    fn faces(self) -> std::ops::RangeInclusive<i64> {
        match self {
            Sides::Number(sides) => 1..=sides,
            Sides::Fate | Sides::BlankFate => -1..=1,
        }
    }
}

/// An operation, with the selectors that say to which dice it applies.
#[derive(Debug, Clone, PartialEq)]
struct Operation {
    kind: Kind,
    selectors: Vec<Selector>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Keep,
    Drop,
    Reroll(Again),
    /// Rolls one more die, once, if any die is selected. Marks the first selected die as exploded.
    Add,
    /// Rolls another die for each selected die, repeatedly.
    Explode,
    /// Adds the values of the further rolls to the die.
    Compound,
    /// Rolls further dice and subtracts one from each.
    Penetrate,
    AtLeast(f64),
    AtMost(f64),
    /// Rerolls a die whose value an earlier die already shows.
    Unique(Again),
    /// Sorts the dice in the output. The total stays the same.
    SortUp,
    SortDown,
    /// Marks dice in the output. The total stays the same.
    Mark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Once,
    UntilNot,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Selector {
    Highest(usize),
    Lowest(usize),
    /// The values for which a comparison with this number holds.
    Compared(Operator, f64),
}

impl Selector {
    /// Returns true if the selector selects the value. A selector by rank, which also depends on the
    /// other values, selects none.
    fn takes(self, value: f64) -> bool {
        match self {
            Selector::Highest(_) | Selector::Lowest(_) => false,
            Selector::Compared(Named(_, holds), number) => holds(value, number) == Some(1.0),
        }
    }
}

/// An operator or a function, by its notation. Those with the same notation are equal.
#[derive(Debug, Clone, Copy)]
struct Named<F>(&'static str, F);

impl<F> PartialEq for Named<F> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// Returns `None` for a division by zero.
type Operator = Named<fn(f64, f64) -> Option<f64>>;

const EQUAL: Operator = Named("==", |l, r| truth((l - r).abs() < f64::EPSILON));

const COMPARISONS: [Operator; 6] = [
    EQUAL,
    Named(">=", |l, r| truth(l >= r)),
    Named("<=", |l, r| truth(l <= r)),
    Named("!=", |l, r| truth((l - r).abs() >= f64::EPSILON)),
    Named("<", |l, r| truth(l < r)),
    Named(">", |l, r| truth(l > r)),
];

const SUMS: [Operator; 2] = [
    Named("+", |l, r| Some(l + r)),
    Named("-", |l, r| Some(l - r)),
];

/// `//` rounds down. The result of `%` has the sign of the divisor.
const PRODUCTS: [Operator; 4] = [
    Named("*", |l, r| Some(l * r)),
    Named("//", |l, r| (r != 0.0).then(|| (l / r).floor())),
    Named("/", |l, r| (r != 0.0).then(|| l / r)),
    Named("%", |l, r| (r != 0.0).then(|| l - r * (l / r).floor())),
];

/// The result of a comparison.
fn truth(holds: bool) -> Option<f64> {
    Some(f64::from(u8::from(holds)))
}

/// A function with the name that opens its arguments.
type Function = Named<fn(&[f64]) -> f64>;

/// `min` and `max` take one value or more, the others exactly one.
const FUNCTIONS: [Function; 6] = [
    Named("min(", |all| {
        all.iter().copied().fold(f64::INFINITY, f64::min)
    }),
    Named("max(", |all| {
        all.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }),
    Named("floor(", |all| first(all).floor()),
    Named("ceil(", |all| first(all).ceil()),
    Named("round(", |all| first(all).round()),
    Named("abs(", |all| first(all).abs()),
];

fn first(values: &[f64]) -> f64 {
    values.first().copied().unwrap_or(0.0)
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
