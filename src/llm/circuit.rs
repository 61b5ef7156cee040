//! The circuit breaker of one model at one provider: a pure state machine. The caller passes the
//! time.
//!
//! A closed circuit admits every call and counts failures that concern the provider. After a number
//! of them in a row, over some seconds, it opens: calls fail at once and free of charge, so that a
//! role's fallback is called without delay. After a while it is half-open and admits one call at a
//! time as a probe. The probe's outcome closes or reopens the circuit.

use std::time::Duration;

use tokio::time::Instant;

use super::{ChatReply, Error};

/// When a circuit opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open a circuit, at least 1.
    pub failures: u32,
    /// The least time from the first of these failures to the call that fails last. The attempts of
    /// one run fail together, and a provider may be overloaded for only a second or two.
    pub span: Duration,
    /// How long a circuit stays open before a probe.
    pub open_for: Duration,
    /// A timeout counts only if the call's time limit was at least this long. A shorter limit says
    /// nothing about the provider.
    pub patience: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: 8,
            span: Duration::ZERO,
            open_for: Duration::from_secs(15),
            patience: Duration::from_secs(5),
        }
    }
}

/// The state of a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitPosition {
    Closed,
    Open,
    HalfOpen,
}

/// What the end of a call says about the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The provider works.
    Success,
    /// The provider fails.
    Failure,
    /// Nothing: the call was not made, or it ended for reasons of the service.
    None,
}

/// Classifies the end of a call. `timeout` is the call's time limit.
pub(super) fn sign(
    result: &Result<ChatReply, Error>,
    timeout: Duration,
    patience: Duration,
) -> Outcome {
    match result {
        Ok(_) => Outcome::Success,
        Err(Error::Timeout { .. }) if timeout < patience => Outcome::None,
        Err(
            Error::Connect { .. }
            | Error::Broken { .. }
            | Error::Timeout { .. }
            | Error::Unreadable { .. },
        )
        | Err(Error::Status {
            status: 408 | 429 | 500..=599,
            ..
        }) => Outcome::Failure,
        // A provider that refuses the request itself works.
        Err(Error::Status { .. } | Error::Unfit { .. } | Error::TooLong { .. }) => Outcome::Success,
        Err(Error::Unpaid { .. } | Error::Saturated { .. } | Error::CircuitOpen { .. }) => {
            Outcome::None
        }
    }
}

/// Permission to make a call. Its outcome counts only if the circuit's state has not changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Permit {
    generation: u64,
    probe: bool,
    begun: Instant,
}

#[derive(Debug)]
pub(super) struct Circuit {
    settings: BreakerSettings,
    state: State,
    /// Incremented by each change of state.
    generation: u64,
    pub opened_total: u64,
    /// When a call last succeeded.
    well: Option<Instant>,
    /// Why the last call failed that counted as a failure, such as "rate limited (429)". For the
    /// calls that are refused later.
    pub last_failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The failures in a row, and when the first and the last of them ended.
    Closed {
        failures: u32,
        since: Instant,
        last: Instant,
    },
    Open {
        until: Instant,
    },
    HalfOpen {
        probing: bool,
    },
}

impl State {
    /// Closed, without a failure.
    fn closed(now: Instant) -> Self {
        State::Closed {
            failures: 0,
            since: now,
            last: now,
        }
    }
}

impl Circuit {
    pub fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            state: State::closed(Instant::now()),
            generation: 0,
            opened_total: 0,
            well: None,
            last_failure: None,
        }
    }

    pub fn position(&self, now: Instant) -> CircuitPosition {
        match self.state {
            State::Closed { .. } => CircuitPosition::Closed,
            State::Open { until } if now < until => CircuitPosition::Open,
            State::Open { .. } | State::HalfOpen { .. } => CircuitPosition::HalfOpen,
        }
    }

    /// Returns how long calls will be refused, or `None` if a call would be admitted. Does not
    /// admit one.
    pub fn refuses(&self, now: Instant) -> Option<Duration> {
        match self.state {
            State::Open { until } if now < until => Some(until - now),
            State::HalfOpen { probing: true } => Some(Duration::ZERO),
            State::Closed { .. } | State::Open { .. } | State::HalfOpen { probing: false } => None,
        }
    }

    /// Admits a call, or returns the minimum wait.
    pub fn admit(&mut self, now: Instant) -> Result<Permit, Duration> {
        if let Some(wait) = self.refuses(now) {
            return Err(wait);
        }
        let probe = !matches!(self.state, State::Closed { .. });
        if probe {
            if matches!(self.state, State::Open { .. }) {
                self.generation += 1;
            }
            self.state = State::HalfOpen { probing: true };
        }
        Ok(Permit {
            generation: self.generation,
            probe,
            begun: now,
        })
    }

    /// Records a call's outcome. Returns the new position if it has changed.
    pub fn note(&mut self, ticket: Permit, sign: Outcome, now: Instant) -> Option<CircuitPosition> {
        if ticket.generation != self.generation {
            return None;
        }
        if sign == Outcome::Success {
            self.well = Some(now);
        }
        match (self.state, sign) {
            (State::Closed { .. }, Outcome::Success) => {
                self.state = State::closed(now);
                None
            }
            // Another call succeeded during this one. Calls that hang end together and late, so
            // they say less.
            (State::Closed { .. }, Outcome::Failure)
                if self.well.is_some_and(|well| well > ticket.begun) =>
            {
                None
            }
            (
                State::Closed {
                    failures,
                    since,
                    last,
                },
                Outcome::Failure,
            ) => {
                // Failures of long ago do not make a new one the last of many.
                let is_first = failures == 0 || now - last > self.settings.open_for;
                let (before, since) = if is_first {
                    (0, now)
                } else {
                    (failures, since)
                };
                let failures = before.saturating_add(1);
                let lasted = ticket.begun.saturating_duration_since(since);
                if failures >= self.settings.failures && lasted >= self.settings.span {
                    return Some(self.open(now));
                }
                self.state = State::Closed {
                    failures,
                    since,
                    last: now,
                };
                None
            }
            (State::HalfOpen { .. }, Outcome::Success) if ticket.probe => {
                self.generation += 1;
                self.state = State::closed(now);
                Some(CircuitPosition::Closed)
            }
            (State::HalfOpen { .. }, Outcome::Failure) if ticket.probe => Some(self.open(now)),
            (State::HalfOpen { .. }, Outcome::None) if ticket.probe => {
                self.state = State::HalfOpen { probing: false };
                None
            }
            (State::Closed { .. } | State::Open { .. } | State::HalfOpen { .. }, _) => None,
        }
    }

    fn open(&mut self, now: Instant) -> CircuitPosition {
        self.generation += 1;
        self.opened_total += 1;
        self.state = State::Open {
            until: now + self.settings.open_for,
        };
        CircuitPosition::Open
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SETTINGS: BreakerSettings = BreakerSettings {
        failures: 3,
        span: Duration::ZERO,
        open_for: Duration::from_secs(10),
        patience: Duration::from_secs(5),
    };

    /// Makes a call that ends at once.
    fn called(circuit: &mut Circuit, outcome: Outcome, now: Instant) -> Option<CircuitPosition> {
        let permit = circuit.admit(now).unwrap();
        circuit.note(permit, outcome, now)
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        let now = Instant::now();
        let mut circuit = Circuit::new(SETTINGS);
        for sign in [
            Outcome::Failure,
            Outcome::Failure,
            Outcome::Success,
            Outcome::Failure,
            Outcome::None,
            Outcome::Failure,
        ] {
            assert_eq!(called(&mut circuit, sign, now), None);
        }
        let opened = called(&mut circuit, Outcome::Failure, now);
        assert_eq!(opened, Some(CircuitPosition::Open));
        let later = now + Duration::from_secs(4);
        assert_eq!(circuit.admit(later), Err(Duration::from_secs(6)));
        assert_eq!(circuit.opened_total, 1);
    }

    #[test]
    fn failures_within_its_span_do_not_open_it() {
        let start = Instant::now();
        let span = Duration::from_secs(4);
        let mut circuit = Circuit::new(BreakerSettings { span, ..SETTINGS });
        // A run with three agents fails four times each, in less than its pauses together.
        for tenths in 0..12 {
            let now = start + Duration::from_millis(300 * tenths);
            assert_eq!(called(&mut circuit, Outcome::Failure, now), None);
        }
        let well = called(&mut circuit, Outcome::Success, start + span);
        assert_eq!(well, None);
        for seconds in [5, 6, 7, 8] {
            let now = start + Duration::from_secs(seconds);
            assert_eq!(called(&mut circuit, Outcome::Failure, now), None);
        }
        let opened = called(&mut circuit, Outcome::Failure, start + 2 * span + span / 4);
        assert_eq!(opened, Some(CircuitPosition::Open));
    }

    #[test]
    fn one_probe_at_a_time_decides_what_comes_next() {
        let start = Instant::now();
        let mut circuit = Circuit::new(SETTINGS);
        let early = circuit.admit(start).unwrap();
        for _ in 0..3 {
            called(&mut circuit, Outcome::Failure, start);
        }
        // A call that was begun before a change says nothing after it.
        assert_eq!(circuit.note(early, Outcome::Success, start), None);
        assert_eq!(circuit.position(start), CircuitPosition::Open);
        let later = start + Duration::from_secs(10);
        assert_eq!(circuit.position(later), CircuitPosition::HalfOpen);
        let probe = circuit.admit(later).unwrap();
        assert_eq!(circuit.admit(later), Err(Duration::ZERO));
        let failed = circuit.note(probe, Outcome::Failure, later);
        assert_eq!(failed, Some(CircuitPosition::Open));
        let latest = later + Duration::from_secs(10);
        // A dropped probe says nothing. The next call is a probe again.
        assert_eq!(called(&mut circuit, Outcome::None, latest), None);
        let succeeded = called(&mut circuit, Outcome::Success, latest);
        assert_eq!(succeeded, Some(CircuitPosition::Closed));
        assert_eq!(circuit.opened_total, 2);
    }

    #[test]
    fn only_what_tells_of_the_provider_counts() {
        let (provider, detail) = (|| "p".to_owned(), String::new);
        let status = |status| Error::Status {
            provider: provider(),
            status,
            detail: detail(),
            retry_after: None,
        };
        let connect = Error::Connect {
            provider: provider(),
            detail: detail(),
        };
        let unreadable = Error::Unreadable {
            provider: provider(),
            detail: detail(),
        };
        let saturated = Error::Saturated {
            provider: provider(),
        };
        let timeout = Error::Timeout {
            provider: provider(),
            after: Duration::from_secs(1),
        };
        let cases = [
            (connect, Outcome::Failure),
            (unreadable, Outcome::Failure),
            (status(529), Outcome::Failure),
            (status(429), Outcome::Failure),
            (status(400), Outcome::Success),
            (status(401), Outcome::Success),
            (saturated, Outcome::None),
            (timeout.clone(), Outcome::Failure),
        ];
        let patience = SETTINGS.patience;
        for (error, expected) in cases {
            assert_eq!(sign(&Err(error), patience, patience), expected);
        }
        let hasty = sign(&Err(timeout), Duration::from_secs(1), patience);
        assert_eq!(hasty, Outcome::None);
    }

    proptest! {
        /// For any order of calls, outcomes and waits: an open circuit refuses calls until its
        /// time, and a half-open one admits one probe. It opens only after the configured number of
        /// failures or a failed probe.
        #[test]
        fn whatever_happens_the_rules_hold(steps in prop::collection::vec((0u8..6, 0u64..12), 1..120)) {
            let start = Instant::now();
            let mut now = start;
            let mut circuit = Circuit::new(SETTINGS);
            let mut under_way: Vec<Permit> = vec![];
            let mut ill_in_a_row = 0;
            for (what, amount) in steps {
                let before = circuit.position(now);
                match what {
                    0 | 1 => match circuit.admit(now) {
                        Ok(ticket) => {
                            prop_assert!(before != CircuitPosition::Open);
                            prop_assert_eq!(ticket.probe, before == CircuitPosition::HalfOpen);
                            let current = |t: &&Permit| t.probe && t.generation == ticket.generation;
                            prop_assert!(!ticket.probe || under_way.iter().find(current).is_none());
                            under_way.push(ticket);
                        }
                        Err(_) => prop_assert!(before != CircuitPosition::Closed),
                    },
                    2 => now += Duration::from_secs(amount),
                    _ if under_way.is_empty() => {}
                    _ => {
                        let ticket = under_way.remove(usize::try_from(amount).unwrap() % under_way.len());
                        let sign = [Outcome::Success, Outcome::Failure, Outcome::None][usize::from(what - 3)];
                        let counts = ticket.generation == circuit.generation;
                        let changed = circuit.note(ticket, sign, now);
                        match (sign, counts) {
                            (Outcome::Failure, true) => ill_in_a_row += 1,
                            (Outcome::Success, true) => ill_in_a_row = 0,
                            _ => prop_assert_eq!(changed, None),
                        }
                        if changed == Some(CircuitPosition::Open) {
                            prop_assert!(ill_in_a_row >= SETTINGS.failures || ticket.probe);
                            ill_in_a_row = 0;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn calls_that_hang_together_open_nothing_while_others_end_well() {
        let start = Instant::now();
        let mut circuit = Circuit::new(SETTINGS);
        let hung: Vec<Permit> = (0..10).map(|_| circuit.admit(start).unwrap()).collect();
        let fine = circuit.admit(start).unwrap();
        let soon = start + Duration::from_secs(1);
        assert_eq!(circuit.note(fine, Outcome::Success, soon), None);
        let end = start + Duration::from_secs(5);
        for ticket in hung {
            assert_eq!(circuit.note(ticket, Outcome::Failure, end), None);
        }
        // Nothing ended well since.
        let noted = [(); 3].map(|()| called(&mut circuit, Outcome::Failure, end));
        assert_eq!(noted, [None, None, Some(CircuitPosition::Open)]);
    }
}
