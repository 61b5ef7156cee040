//! Dice notation: `4d6kh3`, `2d20kl1+5`, `d%`, `4dF`, `8d6!`, `(2d6, 1d12)kh1`.
//!
//! [`Expression::parse`] parses, and [`Expression::roll_times`] rolls with the caller's random source.
//! `docs/dice.md` contains the grammar. Where dice programs differ, this crate follows Avrae's `d20`.
//!
//! The `MAX_` constants bound the work of one expression. Other Rust crates support only parts of
//! the notation, and none bounds the work.

mod number;
mod parse;
mod reader;
mod roll;
mod written;

use num_traits::Signed as _;
pub use number::Number;
use number::whole;
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
pub const MAX_NUMBER: i64 = 1_000_000_000;
/// Maximum number of decimals of a number, without zeros at the end.
pub const MAX_DECIMALS: usize = 18;

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
    Number(Number),
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
    AtLeast(Number),
    AtMost(Number),
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
    Compared(Operator, Number),
}

impl Selector {
    /// Returns true if the selector selects the value. A selector by rank, which also depends on the
    /// other values, selects none.
    fn takes(self, value: Number) -> bool {
        match self {
            Selector::Highest(_) | Selector::Lowest(_) => false,
            Selector::Compared(Named(_, holds), number) => holds(value, number) == Ok(whole(1)),
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

type Operator = Named<fn(Number, Number) -> Result<Number, RollError>>;

const EQUAL: Operator = Named("==", |l, r| truth(l == r));

const COMPARISONS: [Operator; 6] = [
    EQUAL,
    Named(">=", |l, r| truth(l >= r)),
    Named("<=", |l, r| truth(l <= r)),
    Named("!=", |l, r| truth(l != r)),
    Named("<", |l, r| truth(l < r)),
    Named(">", |l, r| truth(l > r)),
];

const SUMS: [Operator; 2] = [Named("+", number::add), Named("-", number::subtract)];

const PRODUCTS: [Operator; 4] = [
    Named("*", number::multiply),
    Named("//", number::divide_down),
    Named("/", number::divide),
    Named("%", number::remainder),
];

/// The result of a comparison.
fn truth(holds: bool) -> Result<Number, RollError> {
    Ok(whole(holds.into()))
}

/// A function with the name that opens its arguments.
type Function = Named<fn(&[Number]) -> Number>;

/// `min` and `max` take one value or more, the others exactly one.
const FUNCTIONS: [Function; 6] = [
    Named("min(", |all| all.iter().copied().min().unwrap_or_default()),
    Named("max(", |all| all.iter().copied().max().unwrap_or_default()),
    Named("floor(", |all| first(all).floor()),
    Named("ceil(", |all| first(all).ceil()),
    Named("round(", |all| first(all).round()),
    Named("abs(", |all| first(all).abs()),
];

fn first(values: &[Number]) -> Number {
    values.first().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
