//! Money in whole nano-dollars, so that sums have no rounding errors.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// An amount of US dollars in whole nano-dollars (1e-9 USD), never negative. Addition and
/// subtraction saturate. Serialized as the number of nano-dollars.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Usd(u64);

impl Usd {
    pub const ZERO: Usd = Usd(0);

    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Converts dollars, rounded up to the next nano-dollar. A negative or non-finite number
    /// becomes zero.
    pub fn from_dollars(dollars: f64) -> Self {
        if dollars.is_finite() && dollars > 0.0 {
            Self((dollars * 1e9 - 1e-6).ceil().max(0.0) as u64)
        } else {
            Self(0)
        }
    }

    /// Returns the cost of `tokens` at a price in dollars per million tokens, rounded up.
    pub fn for_tokens(tokens: u64, dollars_per_million: f64) -> Self {
        let nanos_per_million = Self::from_dollars(dollars_per_million).0;
        let nanos = (u128::from(tokens) * u128::from(nanos_per_million)).div_ceil(1_000_000);
        Self(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns `self * of / whole`, rounded up. If `whole` is zero and the product is
    /// not, returns the maximum.
    pub fn share_up(self, of: u64, whole: u64) -> Self {
        let product = u128::from(self.0) * u128::from(of);
        if whole == 0 && product > 0 {
            return Self(u64::MAX);
        }
        Self(u64::try_from(product.div_ceil(u128::from(whole.max(1)))).unwrap_or(u64::MAX))
    }

    /// Returns `self * of / whole`, rounded down.
    pub fn share_down(self, of: u64, whole: u64) -> Self {
        let product = u128::from(self.0) * u128::from(of);
        Self(u64::try_from(product / u128::from(whole.max(1))).unwrap_or(u64::MAX))
    }

    pub fn nanos(self) -> u64 {
        self.0
    }

    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Usd {
    type Output = Usd;
    fn add(self, other: Usd) -> Usd {
        Usd(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Usd) {
        *self = *self + other;
    }
}

impl Sub for Usd {
    type Output = Usd;
    fn sub(self, other: Usd) -> Usd {
        Usd(self.0.saturating_sub(other.0))
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Usd>>(iter: I) -> Usd {
        iter.fold(Usd::ZERO, Add::add)
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} USD", self.dollars())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_priced_exactly_and_rounded_up() {
        assert_eq!(Usd::for_tokens(1_000_000, 3.0), Usd::from_dollars(3.0));
        assert_eq!(Usd::for_tokens(1, 0.25).nanos(), 250);
        assert_eq!(Usd::for_tokens(1, 0.0000001).nanos(), 1);
        assert_eq!(Usd::for_tokens(0, 15.0), Usd::ZERO);
        assert_eq!(Usd::from_dollars(0.10).nanos(), 100_000_000);
    }

    #[test]
    fn nonsense_is_no_money() {
        assert_eq!(Usd::from_dollars(-1.0), Usd::ZERO);
        assert_eq!(Usd::from_dollars(f64::NAN), Usd::ZERO);
        assert_eq!(Usd::from_nanos(1) - Usd::from_nanos(5), Usd::ZERO);
    }
}
