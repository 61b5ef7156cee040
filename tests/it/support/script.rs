//! The faults and set replies of the mock provider, with the steps to which they apply.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::record::Call;
use super::wire::Stop;

/// A fault. One delay, one outcome and one usage fault can apply to the same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The wire's error body with this status.
    Status(u16),
    /// The same, with this message of the provider.
    Said(u16, &'static str),
    /// 429 with a `retry-after` header.
    RateLimited { retry_after_secs: u64 },
    /// Answers as usual, but later.
    Latency(Duration),
    /// Sends nothing for this time, then closes.
    Hang(Duration),
    /// Sends the head and half of the body, waits for this time, then closes.
    Stall(Duration),
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Delay,
    Outcome,
    Usage,
}

impl Fault {
    fn kind(&self) -> Kind {
        match self {
            Fault::Latency(_) => Kind::Delay,
            Fault::NoUsage | Fault::NegativeUsage | Fault::HugeUsage(_) => Kind::Usage,
            _ => Kind::Outcome,
        }
    }
}

/// A reply that a test sets in place of the scenario's.
#[derive(Clone)]
pub(super) enum Canned {
    Json(Value),
    Text(String),
    By(Arc<dyn Fn(&Call) -> Value + Send + Sync>),
}

/// The parts of a request's `Idempotency-Key`: `<run id>/<step>`, where a segment of the step may
/// end in `#<attempt>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepKey {
    pub run: String,
    /// The step as sent, without the run: `r1/solver#2`.
    pub key: String,
    /// The step without attempt numbers: `r1/solver`, `r1/solver/repair`.
    pub step: String,
    /// 1 if the key has none.
    pub attempt: u32,
}

impl StepKey {
    pub fn parse(full_key: &str) -> Self {
        let (run, key) = full_key.split_once('/').unwrap_or(("", full_key));
        let segments = key
            .split('/')
            .map(|segment| segment.split_once('#').unwrap_or((segment, "")));
        let attempt = segments
            .clone()
            .filter_map(|(_, number)| number.parse().ok())
            .next_back()
            .unwrap_or(1);
        let step = segments.map(|(name, _)| name).collect::<Vec<_>>().join("/");
        Self {
            run: run.to_owned(),
            key: key.to_owned(),
            step,
            attempt,
        }
    }
}

/// True if the pattern matches. A pattern is an exact step (`r1/critic`: every attempt, but not its
/// repair), a step with one `*` (`r1/critic*`, `*/critic`), or with `#` the key of one attempt
/// (`r1/critic#2`).
pub(super) fn matches(pattern: &str, key: &StepKey) -> bool {
    let wanted = if pattern.contains('#') {
        &key.key
    } else {
        &key.step
    };
    match pattern.split_once('*') {
        Some((head, tail)) => {
            wanted.len() >= head.len() + tail.len()
                && wanted.starts_with(head)
                && wanted.ends_with(tail)
        }
        None => wanted == pattern,
    }
}

#[derive(Clone)]
struct Rule<T> {
    id: u64,
    pattern: String,
    what: T,
    /// The remaining uses. `None` means unlimited.
    left: Option<u32>,
    hits: u32,
}

/// The faults that apply to one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hit {
    pub delay: Duration,
    pub outcome: Option<Fault>,
    pub usage: Option<Fault>,
}

/// All rules. Rules with limited uses come first, oldest first, so that they apply one after the
/// other. Then come the unlimited rules, newest first, so that a later one replaces an earlier one.
#[derive(Default)]
pub(super) struct Script {
    faults: Vec<Rule<Fault>>,
    replies: Vec<Rule<Canned>>,
    pub latency: Duration,
    /// Applies to the calls to which no rule applies.
    pub mix: Option<Mix>,
    next_id: u64,
}

/// Returns the fault that applies to a call, if any.
pub type Mix = Arc<dyn Fn(&Call) -> Option<Fault> + Send + Sync>;

impl Script {
    pub fn add_fault(&mut self, pattern: &str, fault: Fault) -> u64 {
        let rule = self.rule(pattern, fault);
        let id = rule.id;
        self.faults.push(rule);
        id
    }

    pub fn add_reply(&mut self, pattern: &str, reply: Canned) -> u64 {
        let rule = self.rule(pattern, reply);
        let id = rule.id;
        self.replies.push(rule);
        id
    }

    fn rule<T>(&mut self, pattern: &str, what: T) -> Rule<T> {
        self.next_id += 1;
        Rule {
            id: self.next_id,
            pattern: pattern.to_owned(),
            what,
            left: None,
            hits: 0,
        }
    }

    pub fn limit(&mut self, id: u64, times: u32) {
        self.faults
            .iter_mut()
            .filter(|rule| rule.id == id)
            .for_each(|rule| rule.left = Some(times));
        self.replies
            .iter_mut()
            .filter(|rule| rule.id == id)
            .for_each(|rule| rule.left = Some(times));
    }

    pub fn faults_for(&mut self, call: &Call) -> Hit {
        let key = &call.step_key();
        let mut hit = self.by_rules(key);
        if hit.outcome.is_none() && hit.usage.is_none() {
            match self.mix.as_ref().and_then(|mix| mix(call)) {
                Some(Fault::Latency(delay)) => hit.delay += delay,
                Some(fault) if fault.kind() == Kind::Usage => hit.usage = Some(fault),
                fault => hit.outcome = fault,
            }
        }
        hit
    }

    fn by_rules(&mut self, key: &StepKey) -> Hit {
        let delay = match take(&mut self.faults, key, |fault| fault.kind() == Kind::Delay) {
            Some(Fault::Latency(delay)) => delay,
            _ => Duration::ZERO,
        };
        Hit {
            delay: self.latency + delay,
            outcome: take(&mut self.faults, key, |fault| fault.kind() == Kind::Outcome),
            usage: take(&mut self.faults, key, |fault| fault.kind() == Kind::Usage),
        }
    }

    pub fn reply_for(&mut self, key: &StepKey) -> Option<Canned> {
        take(&mut self.replies, key, |_| true)
    }

    /// Returns the patterns of rules that no call has matched: an unused fault tests nothing.
    pub fn unmet(&self) -> Vec<String> {
        let faults = self.faults.iter().map(|rule| (rule.hits, &rule.pattern));
        let replies = self.replies.iter().map(|rule| (rule.hits, &rule.pattern));
        faults
            .chain(replies)
            .filter(|(hits, _)| *hits == 0)
            .map(|(_, pattern)| pattern.clone())
            .collect()
    }
}

fn take<T: Clone>(rules: &mut [Rule<T>], key: &StepKey, wanted: impl Fn(&T) -> bool) -> Option<T> {
    let fits = |rule: &Rule<T>| wanted(&rule.what) && matches(&rule.pattern, key);
    let limited = rules
        .iter()
        .position(|rule| rule.left.is_some_and(|left| left > 0) && fits(rule));
    let index = limited.or_else(|| {
        rules
            .iter()
            .rposition(|rule| rule.left.is_none() && fits(rule))
    })?;
    let rule = &mut rules[index];
    rule.left = rule.left.map(|left| left - 1);
    rule.hits += 1;
    Some(rule.what.clone())
}

/// Returns the model's text after the fault, and why the model stopped.
pub(super) fn spoil(text: String, fault: Option<&Fault>) -> (String, Stop) {
    match fault {
        Some(Fault::CutJson) => (cut(&text, text.len() * 3 / 5), Stop::Cut),
        Some(Fault::Malformed) => (
            "I would rather talk this over than fill in a form. It depends.".to_owned(),
            Stop::End,
        ),
        Some(Fault::FencedJson) => (
            format!("Here is what you asked for:\n\n```json\n{text}\n```\n\nGood luck!"),
            Stop::End,
        ),
        Some(Fault::WrongSchema) => (with_keys_lost(&text), Stop::End),
        Some(Fault::Refusal) => (String::new(), Stop::Refused),
        Some(Fault::EmptyText) => (String::new(), Stop::End),
        Some(Fault::ThoughtAway) => (String::new(), Stop::Cut),
        Some(Fault::Overlong(bytes)) => ("1=".repeat(bytes / 2), Stop::End),
        _ => (text, Stop::End),
    }
}

/// Returns at most `bytes` bytes of the text, in whole characters.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

fn with_keys_lost(text: &str) -> String {
    let Ok(Value::Object(object)) = serde_json::from_str(text) else {
        return "{\"unexpected\":true}".to_owned();
    };
    let kept = object.len() / 2;
    let mut object: serde_json::Map<String, Value> = object.into_iter().take(kept).collect();
    object.insert("unexpected".to_owned(), Value::Bool(true));
    Value::Object(object).to_string()
}
