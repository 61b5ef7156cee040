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
    /// In place of the scenario's reply: what the function returns for the call.
    Reply(Reply),
    /// This text in place of the scenario's reply.
    Text(String),
    /// A status with this whole body.
    Body(u16, String),
    /// The wire's error body with this status.
    Status(u16),
    /// 429 with a `retry-after` header of this many seconds.
    RateLimited(u64),
    /// Sends nothing for this time, then closes.
    Hang(Duration),
    /// Promises the whole body, sends half of it and closes.
    CutBody,
    /// JSON that is cut off in the middle, stopped at `max_tokens`.
    CutJson,
    /// Prose without any JSON.
    Malformed,
    /// A JSON object that lacks all keys and has an extra one.
    WrongSchema,
    /// The model declines.
    Refusal,
    /// Thinking takes all of the output limit, and there is no answer.
    OutputSpentOnThinking,
    /// A text of this many bytes, regardless of the limit.
    Overlong(usize),
    /// The provider names this model as the one that answered.
    ServedBy(&'static str),
    /// Bills this many output tokens, regardless of what was sent. `None`: no usage in the reply.
    Usage(Option<i64>),
}

#[derive(Clone)]
pub struct Reply(pub Arc<dyn Fn(&Call) -> Fault + Send + Sync>);

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

impl Fault {
    /// At most one fault of each kind applies to a call.
    fn kind(&self) -> usize {
        match self {
            Fault::Latency(_) => 0,
            Fault::Reply(_) | Fault::Text(_) | Fault::Body(..) => 1,
            Fault::Usage(_) => 3,
            _ => 2,
        }
    }
}

/// A fault, and the calls to which it applies.
pub struct Rule {
    pub pattern: String,
    pub fault: Fault,
    /// The remaining uses. `None` means unlimited.
    pub left: Option<u32>,
}

/// Returns the faults that apply to a call. Rules with limited uses come first, oldest first, so that
/// they apply one after the other. Then come the unlimited rules, newest first, so that a later one
/// replaces an earlier one.
pub(super) fn hit(rules: &mut [Rule], call: &Call) -> Vec<Fault> {
    let take = |kind: usize| {
        let fits = |rule: &Rule| rule.fault.kind() == kind && call.is_at(&rule.pattern);
        let is_limited = |rule: &Rule| rule.left.is_some_and(|left| left > 0) && fits(rule);
        let is_unlimited = |rule: &Rule| rule.left.is_none() && fits(rule);
        let limited = rules.iter().position(is_limited);
        let found = limited.or_else(|| rules.iter().rposition(is_unlimited))?;
        let rule = &mut rules[found];
        rule.left = rule.left.map(|left| left - 1);
        Some(rule.fault.clone())
    };
    (0..4).filter_map(take).collect()
}
