//! The circuit breaker of one model at one provider: a pure state machine. The caller passes the
//! time.
//!
//! A closed circuit admits every call and counts failures that concern the provider. After a number
//! of them in a row, over some seconds, it opens: calls fail at once and free of charge, so that a
//! role's fallback is called without delay. After a while it is half-open and admits one call at a
//! time as a probe. The probe's outcome closes or reopens the circuit.

use std::time::Duration;

use tokio::time::Instant;

use super::{ChatReply, Error, ErrorKind};

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
pub(super) enum Signal {
    /// The provider works.
    Success,
    /// The provider fails.
    Failure,
    /// Nothing: the call was not made, or it ended for reasons of the service.
    None,
}

/// Classifies the end of a call. `timeout` is the call's time limit. A refusal for the rate counts only
/// if the call has a fallback, which is better than to wait.
pub(super) fn classify(
    result: &Result<ChatReply, Error>,
    (timeout, has_fallback): (Duration, bool),
    patience: Duration,
) -> Signal {
    let Err(error) = result else {
        return Signal::Success;
    };
    match error.kind {
        ErrorKind::Timeout(_) if timeout < patience => Signal::None,
        ErrorKind::Status { status: 429, .. } if !has_fallback => Signal::Success,
        ErrorKind::Connect
        | ErrorKind::Broken
        | ErrorKind::Timeout(_)
        | ErrorKind::Unreadable
        | ErrorKind::Aborted
        | ErrorKind::Status {
            status: 408 | 429 | 500..=599,
            ..
        } => Signal::Failure,
        // A provider that refuses the request itself works.
        ErrorKind::Status { .. } | ErrorKind::Unfit | ErrorKind::TooLong { .. } => Signal::Success,
        ErrorKind::Account { .. }
        | ErrorKind::Saturated
        | ErrorKind::Throttled { .. }
        | ErrorKind::CircuitOpen { .. } => Signal::None,
    }
}

/// Permission to make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Permit {
    probe: bool,
    begun: Instant,
}

#[derive(Debug)]
pub(super) struct Circuit {
    settings: BreakerSettings,
    /// The failures in a row, and when the first and the last of them ended.
    failures: u32,
    since: Instant,
    last: Instant,
    /// When the last call succeeded. A failure of a call that began before does not count.
    last_success: Option<Instant>,
    /// Until when the circuit is open, and half-open from then on. `None` if it is closed.
    open_until: Option<Instant>,
    probing: bool,
    pub opened_total: u64,
    /// Why the last call failed that counted as a failure, such as "rate limited (429)". For the
    /// calls that are refused later.
    pub last_failure: Option<String>,
}

impl Circuit {
    pub fn new(settings: BreakerSettings) -> Self {
        let now = Instant::now();
        Self {
            settings,
            failures: 0,
            since: now,
            last: now,
            last_success: None,
            open_until: None,
            probing: false,
            opened_total: 0,
            last_failure: None,
        }
    }

    pub fn position(&self, now: Instant) -> CircuitPosition {
        match self.open_until {
            None => CircuitPosition::Closed,
            Some(until) if now < until => CircuitPosition::Open,
            Some(_) => CircuitPosition::HalfOpen,
        }
    }

    /// Returns how long calls will be refused, or `None` if a call would be admitted. Does not
    /// admit one.
    pub fn refuses(&self, now: Instant) -> Option<Duration> {
        match self.open_until {
            Some(until) if now < until => Some(until - now),
            Some(_) if self.probing => Some(Duration::ZERO),
            Some(_) | None => None,
        }
    }

    /// Admits a call, or returns the minimum wait.
    pub fn admit(&mut self, now: Instant) -> Result<Permit, Duration> {
        if let Some(wait) = self.refuses(now) {
            return Err(wait);
        }
        let probe = self.open_until.is_some();
        self.probing = probe;
        Ok(Permit { probe, begun: now })
    }

    /// Records a call's outcome. While the circuit is not closed, only that of a probe counts.
    /// Returns the new position if it has changed.
    pub fn record(
        &mut self,
        permit: Permit,
        signal: Signal,
        now: Instant,
    ) -> Option<CircuitPosition> {
        if permit.probe {
            self.probing = false;
        } else if self.open_until.is_some() {
            return None;
        }
        match signal {
            Signal::None => None,
            Signal::Success => {
                self.failures = 0;
                self.last_success = Some(now);
                self.open_until.take().map(|_| CircuitPosition::Closed)
            }
            Signal::Failure if !permit.probe && self.last_success > Some(permit.begun) => None,
            Signal::Failure => {
                // Failures of long ago do not make a new one the last of many.
                if self.failures == 0 || now - self.last > self.settings.open_for {
                    (self.failures, self.since) = (0, now);
                }
                self.failures = self.failures.saturating_add(1);
                self.last = now;
                let lasted = permit.begun.saturating_duration_since(self.since);
                let has_lasted = lasted >= self.settings.span;
                let is_many = self.failures >= self.settings.failures && has_lasted;
                (permit.probe || is_many).then(|| self.open(now))
            }
        }
    }

    fn open(&mut self, now: Instant) -> CircuitPosition {
        self.failures = 0;
        self.opened_total += 1;
        self.open_until = Some(now + self.settings.open_for);
        CircuitPosition::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: BreakerSettings = BreakerSettings {
        failures: 3,
        span: Duration::ZERO,
        open_for: Duration::from_secs(10),
        patience: Duration::from_secs(5),
    };

    /// Makes a call that ends at once.
    fn called(circuit: &mut Circuit, signal: Signal, now: Instant) -> Option<CircuitPosition> {
        let permit = circuit.admit(now).unwrap();
        circuit.record(permit, signal, now)
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        let now = Instant::now();
        let mut circuit = Circuit::new(SETTINGS);
        for signal in [
            Signal::Failure,
            Signal::Failure,
            Signal::Success,
            Signal::Failure,
            Signal::None,
            Signal::Failure,
        ] {
            assert_eq!(called(&mut circuit, signal, now), None);
        }
        let opened = called(&mut circuit, Signal::Failure, now);
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
            assert_eq!(called(&mut circuit, Signal::Failure, now), None);
        }
        let well = called(&mut circuit, Signal::Success, start + span);
        assert_eq!(well, None);
        for seconds in [5, 6, 7, 8] {
            let now = start + Duration::from_secs(seconds);
            assert_eq!(called(&mut circuit, Signal::Failure, now), None);
        }
        let opened = called(&mut circuit, Signal::Failure, start + 2 * span + span / 4);
        assert_eq!(opened, Some(CircuitPosition::Open));
    }

    #[test]
    fn one_probe_at_a_time_decides_what_comes_next() {
        let start = Instant::now();
        let mut circuit = Circuit::new(SETTINGS);
        let early = circuit.admit(start).unwrap();
        for _ in 0..3 {
            called(&mut circuit, Signal::Failure, start);
        }
        // While it is open, a call that was begun before says nothing.
        assert_eq!(circuit.record(early, Signal::Success, start), None);
        assert_eq!(circuit.position(start), CircuitPosition::Open);
        let later = start + Duration::from_secs(10);
        assert_eq!(circuit.position(later), CircuitPosition::HalfOpen);
        let probe = circuit.admit(later).unwrap();
        assert_eq!(circuit.admit(later), Err(Duration::ZERO));
        let failed = circuit.record(probe, Signal::Failure, later);
        assert_eq!(failed, Some(CircuitPosition::Open));
        let latest = later + Duration::from_secs(10);
        // A dropped probe says nothing. The next call is a probe again.
        assert_eq!(called(&mut circuit, Signal::None, latest), None);
        let succeeded = called(&mut circuit, Signal::Success, latest);
        assert_eq!(succeeded, Some(CircuitPosition::Closed));
        assert_eq!(circuit.opened_total, 2);
    }

    #[test]
    fn only_what_tells_of_the_provider_counts() {
        let status = |status| ErrorKind::Status {
            status,
            retry_after: None,
        };
        let timeout = ErrorKind::Timeout(Duration::from_secs(1));
        let of = |kind| Err(Error::new("p", kind, ""));
        let cases = [
            (ErrorKind::Connect, Signal::Failure),
            (ErrorKind::Unreadable, Signal::Failure),
            (status(529), Signal::Failure),
            (status(429), Signal::Failure),
            (status(400), Signal::Success),
            (status(401), Signal::Success),
            (ErrorKind::Saturated, Signal::None),
            (timeout.clone(), Signal::Failure),
        ];
        let patience = SETTINGS.patience;
        for (kind, expected) in cases {
            assert_eq!(classify(&of(kind), (patience, true), patience), expected);
        }
        let waits = classify(&of(status(429)), (patience, false), patience);
        assert_eq!(waits, Signal::Success);
        let hasty = classify(&of(timeout), (Duration::from_secs(1), true), patience);
        assert_eq!(hasty, Signal::None);
    }
}
