//! The ledger of one run. It ensures that settled plus reserved money never exceeds the cap.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Usd;

/// The amount reserved for one call before it is made, with the token counts behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub amount: Usd,
}

/// The refusal of a call that would exceed the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call needs {wanted} and {left} is left")]
pub struct Refused {
    pub wanted: Usd,
    pub left: Usd,
}

/// The later stage for which money is kept free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Earmark {
    /// The plan, while the core answers beside it.
    Plan,
    CrossCheck,
    /// The synthesis or the question in its place.
    Synthesis,
}

/// The money of one run. An earmark keeps money free for a later stage. The stage releases it just
/// before it reserves its call.
#[derive(Debug, Clone)]
pub struct Ledger {
    cap: Usd,
    earmarks: BTreeMap<Earmark, Usd>,
    reserved: BTreeMap<String, Reserved>,
    settled: Usd,
    exceeded: bool,
    /// The expected cost of a call in thousandths of its worst case, learned from past bills. At
    /// least 1000.
    overbilling_factor: u64,
}

const NO_OVERBILLING: u64 = 1000;

/// The reservation of a call in flight.
#[derive(Debug, Clone, Copy)]
struct Reserved {
    amount: Usd,
    /// The `overbilling_factor` that `amount` includes.
    overbilling_factor: u64,
}

impl Ledger {
    pub fn new(cap: Usd) -> Self {
        Self {
            cap,
            earmarks: BTreeMap::new(),
            reserved: BTreeMap::new(),
            settled: Usd::ZERO,
            exceeded: false,
            overbilling_factor: NO_OVERBILLING,
        }
    }

    pub fn cap(&self) -> Usd {
        self.cap
    }

    /// Returns the sum of all settlements.
    pub fn spent(&self) -> Usd {
        self.settled
    }

    /// Returns what is settled and reserved, without the earmarks.
    pub fn committed(&self) -> Usd {
        self.settled + self.reserved.values().map(|reserved| reserved.amount).sum()
    }

    /// Returns the greatest worst case that a further call may have.
    pub fn left(&self) -> Usd {
        let earmarked: Usd = self.earmarks.values().copied().sum();
        let earmarked = earmarked.share_up(self.overbilling_factor, NO_OVERBILLING);
        let room = self.cap - self.committed() - earmarked;
        room.share_down(NO_OVERBILLING, self.overbilling_factor)
    }

    /// True if a provider has billed more than was reserved for a call. Every later call is then
    /// reserved at the same multiple of its worst case.
    pub fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// Earmarks `amount` for a stage. Replaces the stage's earlier earmark.
    pub fn earmark(&mut self, stage: Earmark, amount: Usd) {
        self.earmarks.insert(stage, amount);
    }

    pub fn earmarked(&self, stage: Earmark) -> Usd {
        self.earmarks.get(&stage).copied().unwrap_or(Usd::ZERO)
    }

    /// Releases the money that is earmarked for a stage.
    pub fn release(&mut self, stage: Earmark) {
        self.earmarks.remove(&stage);
    }

    /// Reserves a call whose worst case is `worst`. Returns the reserved amount: `worst` times the
    /// greatest factor by which a call has exceeded its own worst case so far.
    ///
    /// # Errors
    /// [`Refused`] if it does not fit next to what is settled, reserved and earmarked.
    pub fn reserve(&mut self, key: &str, worst: Usd) -> Result<Usd, Refused> {
        let left = self.left();
        if worst > left {
            return Err(Refused {
                wanted: worst,
                left,
            });
        }
        let amount = worst.share_up(self.overbilling_factor, NO_OVERBILLING);
        self.restore(key, amount);
        Ok(amount)
    }

    /// Adds a reservation that the journal already has, without checking the cap.
    pub fn restore(&mut self, key: &str, amount: Usd) {
        let reserved = Reserved {
            amount,
            overbilling_factor: self.overbilling_factor,
        };
        self.reserved
            .entry(key.to_owned())
            .and_modify(|known| known.amount += amount)
            .or_insert(reserved);
    }

    /// Replaces the reservation of `key` by the call's cost. If the cost is above the reservation,
    /// the run counts as overbilled.
    pub fn settle(&mut self, key: &str, cost: Usd) {
        let none = Reserved {
            amount: Usd::ZERO,
            overbilling_factor: self.overbilling_factor,
        };
        let reserved = self.reserved.remove(key).unwrap_or(none);
        self.settled += cost;
        if cost > reserved.amount {
            self.exceeded = true;
            // If a call with a reservation of 0 is billed, no cost can be ruled out. The factor
            // becomes infinite, and only free calls still fit.
            let factor = cost.share_up(reserved.overbilling_factor, reserved.amount.nanos());
            self.overbilling_factor = self.overbilling_factor.max(factor.nanos());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn nanos(nanos: u64) -> Usd {
        Usd::from_nanos(nanos)
    }

    #[test]
    fn other_calls_cannot_take_earmarked_money() {
        let mut ledger = Ledger::new(nanos(10));
        ledger.earmark(Earmark::Synthesis, nanos(4));
        ledger.earmark(Earmark::CrossCheck, nanos(2));
        let refused = Refused {
            wanted: nanos(5),
            left: nanos(4),
        };
        assert_eq!(ledger.reserve("plan", nanos(5)), Err(refused));
        ledger.release(Earmark::CrossCheck);
        assert_eq!(ledger.left(), nanos(6));
        ledger.release(Earmark::Synthesis);
        assert_eq!(ledger.reserve("synthesis", nanos(10)), Ok(nanos(10)));
    }

    #[test]
    fn what_an_overbilled_run_still_buys_is_reserved_at_as_much_more() {
        let mut ledger = Ledger::new(nanos(100));
        assert_eq!(ledger.reserve("a", nanos(5)), Ok(nanos(5)));
        ledger.settle("a", nanos(10));
        assert!(ledger.exceeded());
        assert_eq!(ledger.left(), nanos(45));
        ledger.earmark(Earmark::Synthesis, nanos(20));
        assert_eq!(ledger.left(), nanos(25));
        assert!(ledger.reserve("b", nanos(26)).is_err());
        assert_eq!(ledger.reserve("b", nanos(25)), Ok(nanos(50)));
        ledger.settle("b", nanos(50));
        assert_eq!(ledger.left(), Usd::ZERO);
        ledger.release(Earmark::Synthesis);
        assert_eq!(ledger.left(), nanos(20));
        // The bill is 3 times the reservation, which was 2 times the worst case: 6 times in all.
        ledger.reserve("c", nanos(1)).unwrap();
        ledger.settle("c", nanos(6));
        assert_eq!(ledger.left(), nanos(34 / 6));
    }

    #[test]
    fn after_a_bill_for_what_was_free_only_what_is_free_is_bought() {
        let mut ledger = Ledger::new(nanos(100));
        ledger.reserve("free", Usd::ZERO).unwrap();
        ledger.settle("free", nanos(1));
        assert!(ledger.exceeded());
        assert!(ledger.reserve("b", nanos(1)).is_err());
        assert_eq!(ledger.reserve("local", Usd::ZERO), Ok(Usd::ZERO));
    }

    proptest! {
        /// Any schedule of reservations and settlements stays within the cap, if the provider bills
        /// at most what was reserved.
        #[test]
        fn reservations_and_settlements_never_pass_the_cap(
            cap in 0u64..1000, ops in prop::collection::vec((0u8..8, 0u64..400, 0u64..400), 0..60)
        ) {
            let mut ledger = Ledger::new(nanos(cap));
            let mut open: BTreeMap<u8, u64> = BTreeMap::new();
            for (slot, amount, used) in ops {
                match open.remove(&slot) {
                    Some(reserved) => ledger.settle(&slot.to_string(), nanos(used.min(reserved))),
                    None => {
                        if ledger.reserve(&slot.to_string(), nanos(amount)).is_ok() {
                            open.insert(slot, amount);
                        }
                    }
                }
                prop_assert!(ledger.committed() <= ledger.cap());
                prop_assert!(!ledger.exceeded());
            }
        }

        /// A provider that bills a constant multiple of the worst case exceeds the cap with its
        /// first bill or never.
        #[test]
        fn a_steady_overbiller_is_paid_above_the_cap_once_at_most(
            cap in 1u64..100_000, times in 1u64..40, calls in prop::collection::vec((1u64..5000, 0u64..500), 1..40)
        ) {
            let mut ledger = Ledger::new(nanos(cap));
            let mut billed = 0;
            for (worst, hold) in calls {
                ledger.earmark(Earmark::Synthesis, nanos(hold));
                if ledger.reserve("x", nanos(worst)).is_ok() {
                    ledger.settle("x", nanos(worst * times));
                    billed += 1;
                }
                prop_assert!(billed <= 1 || ledger.spent() <= ledger.cap(), "{:?}", ledger);
            }
        }
    }
}
