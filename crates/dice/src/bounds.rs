//! Computes the smallest and the largest total of an expression by interval arithmetic over its
//! parts, without rolling.

use crate::roll::RollError;
use crate::{
    Again, Dice, Explosion, Expression, Function, MAX_DICE, Node, Operation, Operator, Selector,
    Set,
};

/// The range of the totals, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Negative infinity if exploding dice can decrease the total.
    pub min: f64,
    /// Infinity if exploding dice can increase the total.
    pub max: f64,
}

impl Bounds {
    const fn new(min: f64, max: f64) -> Self {
        Self { min, max }
    }

    const fn at(value: f64) -> Self {
        Self::new(value, value)
    }

    fn hull(values: impl IntoIterator<Item = f64>) -> Self {
        let start = Self::new(f64::INFINITY, f64::NEG_INFINITY);
        values.into_iter().fold(start, |all, value| {
            Self::new(all.min.min(value), all.max.max(value))
        })
    }

    /// Returns the smallest range that contains both.
    fn with(self, other: Self) -> Self {
        Self::hull([self.min, self.max, other.min, other.max])
    }
}

impl Expression {
    /// Returns the smallest and the largest total, rounded towards zero like totals. The bounds may
    /// be wider than the totals that can be rolled, because interval arithmetic ignores
    /// dependencies between parts.
    ///
    /// The bounds may be too narrow for selectors on values that are not whole, and for a divisor
    /// between -1 and 1 whose smallest and largest value are whole.
    ///
    /// # Errors
    /// If an operation is endless or a divisor is always zero. [`Expression::parse`] already
    /// refuses such an expression.
    pub fn bounds(&self) -> Result<Bounds, RollError> {
        let Bounds { min, max } = of(&self.root)?;
        Ok(Bounds::new(min.trunc(), max.trunc()))
    }
}

fn of(node: &Node) -> Result<Bounds, RollError> {
    Ok(match node {
        Node::Number(number) => Bounds::at(*number),
        Node::Labelled(inner, _) => of(inner)?,
        Node::Negative(inner) => {
            let inner = of(inner)?;
            Bounds::new(-inner.max, -inner.min)
        }
        Node::Dice(dice) => of_dice(dice)?,
        Node::Set(set) => of_set(set)?,
        Node::Call(function, arguments) => called(*function, arguments)?,
        Node::Binary(left, operator, right) => binary(of(left)?, *operator, of(right)?)?,
    })
}

fn called(function: Function, arguments: &[Node]) -> Result<Bounds, RollError> {
    let all = arguments.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let each =
        |read: fn(f64) -> f64| Bounds::hull(all.iter().flat_map(|b| [read(b.min), read(b.max)]));
    Ok(match function {
        Function::Floor => each(f64::floor),
        Function::Ceil => each(f64::ceil),
        Function::Round => each(f64::round),
        Function::Abs => {
            let around_zero = all.iter().any(|b| b.min < 0.0 && b.max > 0.0);
            let ends = all.iter().flat_map(|b| [b.min.abs(), b.max.abs()]);
            Bounds::hull(ends.chain(around_zero.then_some(0.0)))
        }
        Function::Least => Bounds::new(
            all.iter().map(|b| b.min).fold(f64::INFINITY, f64::min),
            all.iter().map(|b| b.max).fold(f64::INFINITY, f64::min),
        ),
        Function::Most => Bounds::new(
            all.iter().map(|b| b.min).fold(f64::NEG_INFINITY, f64::max),
            all.iter().map(|b| b.max).fold(f64::NEG_INFINITY, f64::max),
        ),
    })
}

fn corners(left: Bounds, operator: Operator, right: Bounds) -> Bounds {
    let pairs = [
        (left.min, right.min),
        (left.min, right.max),
        (left.max, right.min),
        (left.max, right.max),
    ];
    let values = pairs.into_iter().filter_map(|(l, r)| operator.of(l, r));
    // Infinity times zero gives NaN and counts as 0, because every total is finite. Infinity
    // divided by infinity counts as 0 too, which the quotient may approach.
    Bounds::hull(values.map(|v| if v.is_nan() { 0.0 } else { v }))
}

/// Returns the bounds of a quotient. If the ends of the divisor are whole, the divisors closest to
/// zero are taken to be -1 and 1. Otherwise a quotient near zero has no bound.
fn quotient(left: Bounds, operator: Operator, right: Bounds) -> Bounds {
    let (below, above) = (right.min < 0.0, right.max > 0.0);
    let touches = right.min <= 0.0 && right.max >= 0.0;
    if !touches {
        return corners(left, operator, right);
    }
    let is_whole = |end: f64| end.is_infinite() || end.fract() == 0.0;
    if !is_whole(right.min) || !is_whole(right.max) {
        return Bounds::new(f64::NEG_INFINITY, f64::INFINITY);
    }
    if below && above {
        let most = left.min.abs().max(left.max.abs());
        return Bounds::new(-most, most);
    }
    let divisor = if above {
        Bounds {
            min: 1.0_f64.min(right.max),
            ..right
        }
    } else {
        Bounds {
            max: (-1.0_f64).max(right.min),
            ..right
        }
    };
    corners(left, operator, divisor)
}

fn binary(left: Bounds, operator: Operator, right: Bounds) -> Result<Bounds, RollError> {
    Ok(match operator {
        Operator::Add => Bounds::new(left.min + right.min, left.max + right.max),
        Operator::Subtract => Bounds::new(left.min - right.max, left.max - right.min),
        Operator::Times => corners(left, operator, right),
        Operator::Divide | Operator::DivideWhole | Operator::Modulo if right == Bounds::at(0.0) => {
            return Err(RollError::DivisionByZero);
        }
        Operator::Divide | Operator::DivideWhole => quotient(left, operator, right),
        Operator::Modulo => modulo(left, right),
        Operator::Equal
        | Operator::Unequal
        | Operator::Less
        | Operator::AtMost
        | Operator::Greater
        | Operator::AtLeast => {
            let apart = left.max < right.min || right.max < left.min;
            let fixed = left.min == left.max && right.min == right.max;
            if apart || fixed {
                corners(left, operator, right)
            } else {
                Bounds { min: 0.0, max: 1.0 }
            }
        }
    })
}

fn modulo(left: Bounds, right: Bounds) -> Bounds {
    if left.min == left.max && right.min == right.max {
        return Bounds::hull(Operator::Modulo.of(left.min, right.min));
    }
    if left.min >= 0.0 && right.min > left.max {
        return left;
    }
    Bounds {
        min: if right.min < 0.0 { right.min } else { 0.0 },
        max: if right.max > 0.0 {
            right.max.min(if left.min >= 0.0 {
                left.max
            } else {
                f64::INFINITY
            })
        } else {
            0.0
        },
    }
}

/// A number of values that lie within the same bounds.
#[derive(Clone, Copy)]
struct Crowd {
    least: usize,
    most: usize,
    each: Bounds,
    /// True if the sum has no upper bound.
    endless: bool,
}

impl Crowd {
    fn sum(self) -> Bounds {
        let (least, most) = (self.least as f64, self.most as f64);
        let times = |count: f64, value: f64| if count == 0.0 { 0.0 } else { count * value };
        let min = if self.each.min < 0.0 {
            times(most, self.each.min)
        } else {
            times(least, self.each.min)
        };
        let max = if self.each.max > 0.0 {
            times(most, self.each.max)
        } else {
            times(least, self.each.max)
        };
        Bounds {
            min,
            max: if self.endless { f64::INFINITY } else { max },
        }
    }

    fn empty(self) -> Self {
        Self {
            least: 0,
            most: 0,
            ..self
        }
    }

    /// Returns the values that remain if only those that `selectors` select are kept.
    fn kept(self, selectors: &[Selector]) -> Self {
        if self.most == 0 {
            return self;
        }
        let ranked = |s: &Selector| match s {
            Selector::Highest(n) | Selector::Lowest(n) => Some(*n),
            _ => None,
        };
        let ranks: Vec<usize> = selectors.iter().filter_map(ranked).collect();
        let ranked_least = ranks.iter().copied().max().unwrap_or(0);
        let ranked_most: usize = ranks.iter().copied().fold(0, usize::saturating_add);
        let valued: Vec<Selector> = selectors
            .iter()
            .copied()
            .filter(|s| ranked(s).is_none())
            .collect();
        let (range, all) = match valued.as_slice() {
            [] => (None, false),
            valued => taken(valued, self.each),
        };
        let least = ranked_least.min(self.least);
        match range {
            None => Self {
                least,
                most: ranked_most.min(self.most),
                ..self
            },
            Some(range) => Self {
                least: if all { self.least } else { least },
                each: if ranks.is_empty() { range } else { self.each },
                ..self
            },
        }
    }

    /// Returns the values that remain if those that `selectors` select are dropped.
    fn without(self, selectors: &[Selector]) -> Self {
        if self.most == 0 {
            return self;
        }
        let mut gone_most = 0usize;
        let mut gone_least = 0usize;
        let mut each = self.each;
        for selector in selectors {
            match selector {
                Selector::Highest(n) | Selector::Lowest(n) => {
                    gone_most = gone_most.saturating_add(*n);
                    gone_least = gone_least.max(*n);
                }
                valued => {
                    let (range, all) = taken(&[*valued], self.each);
                    if all {
                        return self.empty();
                    }
                    if range.is_some() {
                        gone_most = usize::MAX;
                        each = narrowed(each, *valued);
                    }
                }
            }
        }
        Self {
            least: self.least.saturating_sub(gone_most),
            most: self.most.saturating_sub(gone_least),
            each,
            ..self
        }
    }
}

/// Returns the range of the selected values, `None` if none is selected, and true if all are
/// selected. Assumes whole values.
fn taken(selectors: &[Selector], each: Bounds) -> (Option<Bounds>, bool) {
    let points = candidates(selectors, each);
    let takes = |value: f64| selectors.iter().any(|s| s.takes(value).unwrap_or(false));
    let all = points.iter().all(|value| takes(*value));
    let range = Bounds::hull(points.into_iter().filter(|value| takes(*value)));
    (
        if range.min > range.max {
            None
        } else {
            Some(range)
        },
        all,
    )
}

/// Returns the ends of a range, and the whole numbers in it at which the result of a selector may
/// change.
fn candidates(selectors: &[Selector], each: Bounds) -> Vec<f64> {
    let turning = selectors.iter().filter_map(|s| match s {
        Selector::Highest(_) | Selector::Lowest(_) => None,
        Selector::Is(n)
        | Selector::IsNot(n)
        | Selector::Above(n)
        | Selector::Below(n)
        | Selector::AtLeast(n)
        | Selector::AtMost(n) => Some(*n as f64),
    });
    let around = turning
        .flat_map(|n| [n - 1.0, n, n + 1.0])
        .filter(|n| *n >= each.min && *n <= each.max);
    around.chain([each.min, each.max]).collect()
}

/// Returns a range without the values at its ends that a selector selects. Assumes whole values.
fn narrowed(each: Bounds, selector: Selector) -> Bounds {
    match selector {
        Selector::Below(n) => Bounds {
            min: each.min.max(n as f64),
            ..each
        },
        Selector::AtMost(n) => Bounds {
            min: each.min.max(n as f64 + 1.0),
            ..each
        },
        Selector::Above(n) => Bounds {
            max: each.max.min(n as f64),
            ..each
        },
        Selector::AtLeast(n) => Bounds {
            max: each.max.min(n as f64 - 1.0),
            ..each
        },
        Selector::IsNot(n) => Bounds::at(n as f64),
        Selector::Is(n) => {
            let n = n as f64;
            Bounds {
                min: if each.min == n { n + 1.0 } else { each.min },
                max: if each.max == n { n - 1.0 } else { each.max },
            }
        }
        Selector::Highest(_) | Selector::Lowest(_) => each,
    }
}

fn of_dice(dice: &Dice) -> Result<Bounds, RollError> {
    let faces = Bounds::new(dice.sides.lowest() as f64, dice.sides.highest() as f64);
    let count = dice.count as usize;
    let crowd = Crowd {
        least: count,
        most: count,
        each: faces,
        endless: false,
    };
    Ok(operated(crowd, &dice.operations, faces)?.sum())
}

fn operated(mut crowd: Crowd, operations: &[Operation], faces: Bounds) -> Result<Crowd, RollError> {
    for operation in operations {
        crowd = match operation {
            Operation::Keep(selectors) => crowd.kept(selectors),
            Operation::Drop(selectors) => crowd.without(selectors),
            Operation::Reroll(again, selectors) => crowd.rerolled(*again, selectors, faces)?,
            Operation::Add(selectors) => crowd.joined(selectors, faces),
            Operation::Explode(explosion, selectors) => {
                crowd.exploded(*explosion, selectors, faces)?
            }
            Operation::AtLeast(n) => Crowd {
                each: Bounds::new(crowd.each.min.max(*n), crowd.each.max.max(*n)),
                ..crowd
            },
            Operation::AtMost(n) => Crowd {
                each: Bounds::new(crowd.each.min.min(*n), crowd.each.max.min(*n)),
                ..crowd
            },
            Operation::Unique(again) => {
                if *again == Again::UntilNot && crowd.most as f64 > faces.max - faces.min + 1.0 {
                    return Err(RollError::Endless);
                }
                crowd.or_any_face(faces)
            }
            Operation::Sort(_) | Operation::Mark(_) => crowd,
        };
    }
    Ok(crowd)
}

impl Crowd {
    /// Returns the dice of which some may have been rolled again and show any face.
    fn or_any_face(self, faces: Bounds) -> Self {
        Self {
            each: self.each.with(faces),
            ..self
        }
    }

    fn rerolled(
        self,
        again: Again,
        selectors: &[Selector],
        faces: Bounds,
    ) -> Result<Self, RollError> {
        if self.most == 0 {
            return Ok(self);
        }
        if again == Again::Once {
            return Ok(self.or_any_face(faces));
        }
        let by_rank = selectors
            .iter()
            .any(|s| matches!(s, Selector::Highest(n) | Selector::Lowest(n) if *n > 0));
        if self.least > 0 && (by_rank || taken(selectors, faces).1) {
            return Err(RollError::Endless);
        }
        let narrow = |each: Bounds| selectors.iter().fold(each, |each, s| narrowed(each, *s));
        // A limit before this may have moved a die to a value that no face has.
        let (kept, new) = (narrow(self.each), narrow(faces));
        let each = if kept.min <= kept.max {
            kept.with(new)
        } else {
            new
        };
        Ok(Self { each, ..self })
    }

    fn joined(self, selectors: &[Selector], faces: Bounds) -> Self {
        let may = self.most > 0
            && (selectors.iter().any(|s| s.takes(0.0).is_none())
                || taken(selectors, self.each).0.is_some());
        if !may {
            return self;
        }
        Self {
            most: self.most + 1,
            ..self.or_any_face(faces)
        }
    }

    fn exploded(
        self,
        explosion: Explosion,
        selectors: &[Selector],
        faces: Bounds,
    ) -> Result<Self, RollError> {
        if self.most == 0 {
            return Ok(self);
        }
        let valued: Vec<Selector> = selectors
            .iter()
            .copied()
            .filter(|s| s.takes(0.0).is_some())
            .collect();
        let (range, all) = taken(&valued, faces);
        if self.least > 0 && all && !valued.is_empty() {
            return Err(RollError::Endless);
        }
        let may = range.is_some() || valued.len() < selectors.len();
        // A penetrating die may count one less than its lowest face.
        let less = if matches!(explosion, Explosion::Penetrating) {
            1.0
        } else {
            0.0
        };
        Ok(Self {
            most: if may {
                MAX_DICE.max(self.most)
            } else {
                self.most
            },
            endless: self.endless || may,
            each: Bounds {
                min: self.each.min.min(faces.min - less),
                ..self.each
            },
            ..self
        })
    }
}

fn of_set(set: &Set) -> Result<Bounds, RollError> {
    let items = set.items.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    if set.operations.is_empty() {
        return Ok(items.iter().fold(Bounds::at(0.0), |sum, b| {
            Bounds::new(sum.min + b.min, sum.max + b.max)
        }));
    }
    let fixed: Option<Vec<f64>> = items
        .iter()
        .map(|b| (b.min == b.max).then_some(b.min))
        .collect();
    if let Some(values) = fixed {
        return Ok(Bounds::at(super::roll::fixed(&values, &set.operations)));
    }
    let each = Bounds::hull(items.iter().flat_map(|b| [b.min, b.max]));
    let endless = items.iter().any(|b| b.max.is_infinite());
    let crowd = Crowd {
        least: items.len(),
        most: items.len(),
        each,
        endless,
    };
    Ok(operated(crowd, &set.operations, each)?.sum())
}
