//! Exact numbers: fractions whose numerator and denominator have at most 36 digits. Binary
//! fractions cannot represent 0.1, so they would give 7 for `8.2-0.2`.

use num_rational::Ratio;
use num_traits::{CheckedAdd as _, CheckedMul as _, CheckedSub as _, Signed as _, Zero as _};

use crate::{MAX_DECIMALS, RollError};

/// A number of an expression or of a die.
pub type Number = Ratio<i128>;

type Result = std::result::Result<Number, RollError>;

/// The largest numerator and denominator. A sum of two of them does not overflow.
const MAX_PART: i128 = 10_i128.pow(36);

/// Returns the number with these digits, of which so many are decimals.
pub(super) fn decimal(digits: &str, decimals: usize) -> Option<Number> {
    let denominator = 10_i128.checked_pow(u32::try_from(decimals).ok()?)?;
    // There are no digits in `.0`.
    let numerator = format!("0{digits}").parse().ok()?;
    Some(Number::new(numerator, denominator))
}

pub(super) fn whole(number: i64) -> Number {
    Number::from_integer(number.into())
}

/// # Errors
/// If the operation overflowed, or if the result exceeds [`MAX_PART`].
fn bounded(result: Option<Number>) -> Result {
    let fits =
        |it: &Number| it.numer().unsigned_abs().max(it.denom().unsigned_abs()) <= MAX_PART as u128;
    result.filter(fits).ok_or(RollError::TooLarge)
}

pub(super) fn add(left: Number, right: Number) -> Result {
    bounded(left.checked_add(&right))
}

pub(super) fn subtract(left: Number, right: Number) -> Result {
    bounded(left.checked_sub(&right))
}

pub(super) fn multiply(left: Number, right: Number) -> Result {
    bounded(left.checked_mul(&right))
}

pub(super) fn divide(left: Number, right: Number) -> Result {
    if right.is_zero() {
        return Err(RollError::DivisionByZero);
    }
    multiply(left, right.recip())
}

/// Rounds the quotient down.
pub(super) fn divide_down(left: Number, right: Number) -> Result {
    Ok(divide(left, right)?.floor())
}

/// The result has the sign of the divisor.
pub(super) fn remainder(left: Number, right: Number) -> Result {
    subtract(left, multiply(right, divide_down(left, right)?)?)
}

pub(super) fn sum(numbers: impl IntoIterator<Item = Number>) -> Result {
    numbers.into_iter().try_fold(Number::zero(), add)
}

/// Formats a number of an expression or of a die with all its decimals. Its denominator divides a
/// power of ten.
pub(super) fn shown(number: Number) -> String {
    let sign = if number.is_negative() { "-" } else { "" };
    let whole = number.to_integer().abs();
    let scale = 10_i128.pow(MAX_DECIMALS as u32);
    let decimals = (number.fract().abs() * scale).to_integer();
    let text = format!("{sign}{whole}.{decimals:0MAX_DECIMALS$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}
