//! The rules of the mock provider: faults and set replies, with the calls to which they apply.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::call::Call;

/// What differs from a usual answer. A delay, a reply, an outcome and a usage can apply to the same
/// call.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Answers as usual, but later.
    Latency(Duration),
    /// In place of the scenario's reply.
    Reply(Reply),
    /// The wire's error body with this status.
    Status(u16),
    /// 429 with a `retry-after` header of this many seconds.
    RateLimited(u64),
    /// Sends nothing for this time, then closes.
    Hang(Duration),
    /// Promises the whole body, sends half of it and closes.
    CutBody,
    /// 200 with a proxy's HTML page.
    Html,
    /// JSON that is cut off in the middle, stopped at `max_tokens`.
    CutJson,
    /// Prose without any JSON.
    Malformed,
    /// The right JSON in a Markdown fence with prose around it.
    FencedJson,
    /// A JSON object that lacks keys and has an extra one.
    WrongSchema,
    /// The model declines.
    Refusal,
    /// An empty text, stopped normally.
    EmptyText,
    /// Thinking takes all of the output limit, and there is no answer.
    ThoughtAway,
    /// A text of this many bytes, regardless of the limit.
    Overlong(usize),
    /// The provider names this model as the one that answered.
    ServedBy(&'static str),
    /// No usage in the reply.
    NoUsage,
    /// Token counts below zero.
    NegativeUsage,
    /// Bills this many output tokens, regardless of what was sent.
    HugeUsage(i64),
}

/// What a test sets in place of the scenario's reply.
#[derive(Clone)]
pub enum Canned {
    Text(String),
    /// A status with this whole body.
    Body(u16, String),
}

#[derive(Clone)]
pub struct Reply(pub Arc<dyn Fn(&Call) -> Canned + Send + Sync>);

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// Returns the fault that applies to a call, if any.
pub type Mix = Arc<dyn Fn(&Call) -> Option<Fault> + Send + Sync>;

impl Fault {
    /// At most one fault of each kind applies to a call.
    fn kind(&self) -> usize {
        match self {
            Fault::Latency(_) => 0,
            Fault::Reply(_) => 1,
            Fault::NoUsage | Fault::NegativeUsage | Fault::HugeUsage(_) => 3,
            _ => 2,
        }
    }
}

struct Rule {
    pattern: String,
    fault: Fault,
    /// The remaining uses. `None` means unlimited.
    left: Option<u32>,
}

/// All rules. Rules with limited uses come first, oldest first, so that they apply one after the
/// other. Then come the unlimited rules, newest first, so that a later one replaces an earlier one.
#[derive(Default)]
pub struct Script {
    rules: Vec<Rule>,
    /// Delays every reply.
    pub latency: Duration,
    /// Applies to the calls to which no other fault applies.
    pub mix: Option<Mix>,
}

impl Script {
    /// Adds a rule and returns its number.
    pub(super) fn add(&mut self, pattern: &str, fault: Fault) -> usize {
        let (pattern, left) = (pattern.to_owned(), None);
        self.rules.push(Rule {
            pattern,
            fault,
            left,
        });
        self.rules.len() - 1
    }

    pub(super) fn limit(&mut self, rule: usize, times: u32) {
        self.rules[rule].left = Some(times);
    }

    /// Returns delay, reply, outcome and usage of a call.
    pub(super) fn hit(&mut self, call: &Call) -> [Option<Fault>; 4] {
        let mut hit = [0, 1, 2, 3].map(|kind| self.take(call, kind));
        let mix = self
            .mix
            .as_ref()
            .filter(|_| hit[2].is_none() && hit[3].is_none());
        if let Some(fault) = mix.and_then(|mix| mix(call)) {
            let kind = fault.kind();
            hit[kind] = Some(fault);
        }
        hit
    }

    fn take(&mut self, call: &Call, kind: usize) -> Option<Fault> {
        let fits = |rule: &Rule| rule.fault.kind() == kind && call.is_at(&rule.pattern);
        let is_limited = |rule: &Rule| rule.left.is_some_and(|left| left > 0) && fits(rule);
        let is_unlimited = |rule: &Rule| rule.left.is_none() && fits(rule);
        let limited = self.rules.iter().position(is_limited);
        let found = limited.or_else(|| self.rules.iter().rposition(is_unlimited))?;
        let rule = &mut self.rules[found];
        rule.left = rule.left.map(|left| left - 1);
        Some(rule.fault.clone())
    }
}
