//! The rules of the mock provider: faults and set replies, with the calls to which they apply.

use std::sync::Arc;
use std::time::Duration;

use super::call::Call;

/// A fault. One delay, one outcome and one usage fault can apply to the same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The wire's error body with this status.
    Status(u16),
    /// 429 with a `retry-after` header of this many seconds.
    RateLimited(u64),
    /// Answers as usual, but later.
    Latency(Duration),
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
    HugeUsage(u64),
}

/// What a test sets in place of the scenario's reply.
#[derive(Clone)]
pub enum Canned {
    Text(String),
    /// A status with this whole body.
    Body(u16, String),
}

type Reply = Arc<dyn Fn(&Call) -> Canned + Send + Sync>;

/// Returns the fault that applies to a call, if any.
pub type Mix = Arc<dyn Fn(&Call) -> Option<Fault> + Send + Sync>;

#[derive(Clone)]
pub(super) enum Effect {
    Fault(Fault),
    Reply(Reply),
}

/// At most one effect of each kind applies to a call.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Delay,
    Outcome,
    Usage,
    Reply,
}

impl Effect {
    fn kind(&self) -> Kind {
        use Fault::{HugeUsage, Latency, NegativeUsage, NoUsage};
        match self {
            Effect::Reply(_) => Kind::Reply,
            Effect::Fault(Latency(_)) => Kind::Delay,
            Effect::Fault(NoUsage | NegativeUsage | HugeUsage(_)) => Kind::Usage,
            Effect::Fault(_) => Kind::Outcome,
        }
    }
}

struct Rule {
    pattern: String,
    effect: Effect,
    /// The remaining uses. `None` means unlimited.
    left: Option<u32>,
    hits: u32,
}

/// What applies to one call.
#[derive(Default)]
pub(super) struct Hit {
    pub delay: Duration,
    pub outcome: Option<Fault>,
    pub usage: Option<Fault>,
    pub reply: Option<Canned>,
}

/// All rules. Rules with limited uses come first, oldest first, so that they apply one after the
/// other. Then come the unlimited rules, newest first, so that a later one replaces an earlier one.
#[derive(Default)]
pub(super) struct Script {
    rules: Vec<Rule>,
    pub latency: Duration,
    /// Applies to the calls to which no fault applies.
    pub mix: Option<Mix>,
}

impl Script {
    /// Adds a rule and returns its number.
    pub fn add(&mut self, pattern: &str, effect: Effect) -> usize {
        self.rules.push(Rule {
            pattern: pattern.to_owned(),
            effect,
            left: None,
            hits: 0,
        });
        self.rules.len() - 1
    }

    pub fn limit(&mut self, rule: usize, times: u32) {
        self.rules[rule].left = Some(times);
    }

    pub fn hit(&mut self, call: &Call) -> Hit {
        let mut hit = Hit {
            delay: self.latency,
            ..Hit::default()
        };
        for kind in [Kind::Delay, Kind::Outcome, Kind::Usage, Kind::Reply] {
            if let Some(effect) = self.take(call, kind) {
                hit.add(effect, call);
            }
        }
        if hit.outcome.is_none() && hit.usage.is_none() {
            let mixed = self.mix.as_ref().and_then(|mix| mix(call));
            if let Some(fault) = mixed {
                hit.add(Effect::Fault(fault), call);
            }
        }
        hit
    }

    fn take(&mut self, call: &Call, kind: Kind) -> Option<Effect> {
        let fits = |rule: &Rule| rule.effect.kind() == kind && call.is_at(&rule.pattern);
        let is_limited = |rule: &Rule| rule.left.is_some_and(|left| left > 0) && fits(rule);
        let is_unlimited = |rule: &Rule| rule.left.is_none() && fits(rule);
        let limited = self.rules.iter().position(is_limited);
        let found = limited.or_else(|| self.rules.iter().rposition(is_unlimited))?;
        let rule = &mut self.rules[found];
        rule.left = rule.left.map(|left| left - 1);
        rule.hits += 1;
        Some(rule.effect.clone())
    }

    /// Returns the patterns of rules that no call has matched: an unused fault tests nothing.
    pub fn unmet(&self) -> Vec<String> {
        let unmet = self.rules.iter().filter(|rule| rule.hits == 0);
        unmet.map(|rule| rule.pattern.clone()).collect()
    }
}

impl Hit {
    fn add(&mut self, effect: Effect, call: &Call) {
        match (effect.kind(), effect) {
            (_, Effect::Fault(Fault::Latency(delay))) => self.delay += delay,
            (_, Effect::Reply(reply)) => self.reply = Some(reply(call)),
            (Kind::Usage, Effect::Fault(fault)) => self.usage = Some(fault),
            (_, Effect::Fault(fault)) => self.outcome = Some(fault),
        }
    }
}
