//! The ledger of one run: what is reserved, what is settled, and that their sum never passes the cap.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Usd;

/// What is set aside for one call before it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub amount: Usd,
}

/// A call that the cap has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call needs {wanted} and {left} is left")]
pub struct Refused {
    pub wanted: Usd,
    pub left: Usd,
}

/// The money of one run. A hold is set aside for a call that will come later (the synthesis) and is given back when
/// that call is about to be reserved.
#[derive(Debug, Clone)]
pub struct Ledger {
    cap: Usd,
    held: Usd,
    reserved: BTreeMap<String, Usd>,
    settled: Usd,
    exceeded: bool,
}

impl Ledger {
    pub fn new(cap: Usd) -> Self {
        Self { cap, held: Usd::ZERO, reserved: BTreeMap::new(), settled: Usd::ZERO, exceeded: false }
    }

    pub fn cap(&self) -> Usd {
        self.cap
    }

    /// Everything settled so far.
    pub fn spent(&self) -> Usd {
        self.settled
    }

    /// Settled and reserved, without holds.
    pub fn committed(&self) -> Usd {
        self.settled + self.reserved.values().copied().sum()
    }

    /// What a further call may reserve.
    pub fn left(&self) -> Usd {
        if self.exceeded { Usd::ZERO } else { self.cap - self.committed() - self.held }
    }

    /// Whether a provider has billed more than was reserved for a call. Such a run buys nothing more.
    pub fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// Sets `amount` aside for later, in place of what was held before.
    pub fn hold(&mut self, amount: Usd) {
        self.held = amount;
    }

    /// What is set aside.
    pub fn held(&self) -> Usd {
        self.held
    }

    /// Reserves `amount` for the call `key`.
    ///
    /// # Errors
    /// [`Refused`] when it does not fit beside what is settled, reserved and held, or when the run was overbilled.
    pub fn reserve(&mut self, key: &str, amount: Usd) -> Result<(), Refused> {
        let left = self.left();
        if amount > left || (self.exceeded && amount > Usd::ZERO) {
            return Err(Refused { wanted: amount, left });
        }
        *self.reserved.entry(key.to_owned()).or_default() += amount;
        Ok(())
    }

    /// Puts down a reservation that the journal already holds, whatever is left: it has been made.
    pub fn restore(&mut self, key: &str, amount: Usd) {
        *self.reserved.entry(key.to_owned()).or_default() += amount;
    }

    /// Replaces the reservation of `key` by what the call cost. More than was reserved marks the run as overbilled.
    pub fn settle(&mut self, key: &str, cost: Usd) {
        let reserved = self.reserved.remove(key).unwrap_or_default();
        self.settled += cost;
        self.exceeded |= cost > reserved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hold_is_room_that_others_cannot_take() {
        let mut ledger = Ledger::new(Usd::from_nanos(10));
        ledger.hold(Usd::from_nanos(6));
        assert_eq!(
            ledger.reserve("plan", Usd::from_nanos(5)),
            Err(Refused { wanted: Usd::from_nanos(5), left: Usd::from_nanos(4) })
        );
        ledger.hold(Usd::ZERO);
        assert_eq!(ledger.reserve("synthesis", Usd::from_nanos(10)), Ok(()));
    }

    #[test]
    fn an_overbilled_run_buys_nothing_more() {
        let mut ledger = Ledger::new(Usd::from_nanos(100));
        ledger.reserve("a", Usd::from_nanos(5)).unwrap();
        ledger.settle("a", Usd::from_nanos(6));
        assert!(ledger.exceeded());
        assert!(ledger.reserve("b", Usd::from_nanos(1)).is_err());
        assert!(ledger.reserve("local", Usd::ZERO).is_ok());
    }

    proptest! {
        /// Any schedule of reservations and settlements by an honest provider stays within the cap.
        #[test]
        fn reservations_and_settlements_never_pass_the_cap(
            cap in 0u64..1000, ops in prop::collection::vec((0u8..8, 0u64..400, 0u64..400), 0..60)
        ) {
            let mut ledger = Ledger::new(Usd::from_nanos(cap));
            let mut open: BTreeMap<u8, u64> = BTreeMap::new();
            for (slot, amount, used) in ops {
                match open.remove(&slot) {
                    Some(reserved) => ledger.settle(&slot.to_string(), Usd::from_nanos(used.min(reserved))),
                    None => {
                        if ledger.reserve(&slot.to_string(), Usd::from_nanos(amount)).is_ok() {
                            open.insert(slot, amount);
                        }
                    }
                }
                prop_assert!(ledger.committed() <= ledger.cap());
                prop_assert!(!ledger.exceeded());
            }
        }

        /// However much a provider bills, what the service reserves after that is nothing.
        #[test]
        fn a_dishonest_provider_is_paid_at_most_once(reserved in 1u64..100, billed in 101u64..10_000, next in 1u64..50) {
            let mut ledger = Ledger::new(Usd::from_nanos(100_000));
            ledger.reserve("x", Usd::from_nanos(reserved)).unwrap();
            ledger.settle("x", Usd::from_nanos(billed));
            prop_assert!(ledger.reserve("y", Usd::from_nanos(next)).is_err());
        }
    }
}
