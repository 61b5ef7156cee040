//! Asks a model to propose a command for a text, and reads its proposal.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use conclave_lenient_json::{Schema, strict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::catalog;
use super::proposal_cache::Interpretation;
use super::sanitize::{cut, sanitize};
use crate::committee::{CallError, Deps, Failure, SingleAnswer, SingleCall, call_once};
use crate::domain::{CallStep, CommandName, FailureCause, Role, Usd};
use crate::journal::{CallResult, Proposed, ProposedCommand, RunContext, Stop, step};

/// Maximum length in characters of a text that a model is asked about.
pub const MAX_PROPOSED_CHARS: usize = 2000;

/// Maximum length of a reason, in characters.
const REASON_CHARS: usize = 120;

/// Maximum length of the recorded reply of the model, in characters.
const RAW_CHARS: usize = 2000;

/// Maximum length of the cause if a reply is malformed, in characters.
const WHY_CHARS: usize = 300;

const MAX_TOKENS: u32 = 400;

/// A command for the user's text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// false: no command of the catalog is what the user wants.
    pub ok: bool,
    /// How sure you are that the user wants exactly this, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// The command's name in the catalog; "none" if ok is false.
    pub action: String,
    /// The command's arguments that the text gives.
    pub args: Arguments,
    /// Why, in at most 15 words.
    pub reason: String,
    /// If confidence is below 0.5, up to two other readings; else none. They are deserialized
    /// separately, so a malformed one does not make the proposal unreadable.
    #[serde(default)]
    pub alternatives: Value,
    /// Ignored. Some models write this field. The service itself records the model's reply.
    #[serde(default, skip_serializing)]
    pub raw: Value,
}

/// Another reading.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    pub action: String,
    pub args: Arguments,
}

/// Arguments as a model writes them. It is asked for a list: in an object, every argument of every
/// command would have to be there or null, which is more than Anthropic's schemas may have.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Arguments {
    Listed(Vec<Argument>),
    Named(Map<String, Value>),
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    pub name: String,
    /// A number, true or false may be written as a text.
    pub value: Value,
}

impl Arguments {
    /// Returns the arguments that have a value. One that is listed twice has both values, which the
    /// gate of the schema refuses.
    fn given(self) -> Value {
        let named: Vec<(String, Value)> = match self {
            Self::Named(args) => args.into_iter().collect(),
            Self::Listed(args) => args.into_iter().map(Argument::read).collect(),
        };
        let mut given = Map::new();
        for (name, value) in named.into_iter().filter(|(_, value)| !value.is_null()) {
            let both = given.remove(&name).map(|first| json!([first, value]));
            given.insert(name, both.unwrap_or(value));
        }
        Value::Object(given)
    }
}

impl Argument {
    fn read(self) -> (String, Value) {
        let value = match self.value {
            Value::String(text) => catalog::typed_value(&self.name, text),
            other => other,
        };
        (self.name, value)
    }
}

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::new(schema())));

/// Returns the schema of a proposal. It allows only arguments that some command has. A reply that
/// violates the schema is still read, so that the gates can state the error.
pub fn schema() -> Value {
    let mut schema = strict::inlined(&schemars::schema_for!(Proposal).to_value());
    let mut alternative = strict::inlined(&schemars::schema_for!(Alternative).to_value());
    if let Some(parts) = alternative.as_object_mut() {
        parts.retain(|key, _| !matches!(key.as_str(), "$schema" | "title"));
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        // Some models write `raw`. It is accepted, but the schema does not ask for it.
        properties.shift_remove("raw");
    }
    let set = |schema: &mut Value, place: &str, value: Value| {
        if let Some(old) = schema.pointer_mut(place) {
            *old = value;
        }
    };
    set(
        &mut alternative,
        "/properties/args",
        catalog::list_of_arguments(),
    );
    let about = "If confidence is below 0.5, up to two other readings; else none.";
    let alternatives = json!({ "description": about, "type": "array", "items": alternative });
    set(
        &mut schema,
        "/properties/args",
        catalog::list_of_arguments(),
    );
    set(&mut schema, "/properties/alternatives", alternatives);
    schema
}

impl Proposal {
    fn into_event(self, raw: &str, was_repaired: bool) -> Proposed {
        let alternatives = match self.alternatives {
            Value::Null => vec![],
            Value::Array(items) => items.into_iter().take(2).map(other_reading).collect(),
            other => vec![other_reading(other)],
        };
        let was_repaired = was_repaired || alternatives.iter().any(unread);
        Proposed {
            ok: self.ok,
            confidence: self.confidence,
            action: cut(&self.action, 100),
            args: self.args.given(),
            reason: cut(&sanitize(&self.reason), REASON_CHARS),
            alternatives,
            raw: cut(raw, RAW_CHARS),
            was_repaired,
            reused_from: None,
        }
    }
}

/// Reads an alternative. A malformed one gets an empty name, which the gates refuse.
fn other_reading(written: Value) -> ProposedCommand {
    let (action, args) = match serde_json::from_value::<Alternative>(written.clone()) {
        Ok(Alternative { action, args }) => (cut(&action, 100), args.given()),
        Err(_) => (String::new(), written),
    };
    ProposedCommand { action, args }
}

/// Returns true if the alternative was malformed.
pub fn unread(alternative: &ProposedCommand) -> bool {
    alternative.action.is_empty()
}

/// Returns the stub's proposal, which never contains a command.
pub fn declined_by_stub() -> Proposed {
    Proposed {
        ok: false,
        confidence: 0.0,
        action: "none".into(),
        args: json!({}),
        reason: "the stub proposes nothing".into(),
        alternatives: vec![],
        raw: String::new(),
        was_repaired: false,
        reused_from: None,
    }
}

/// Asks the model once for a command that fits the text. Returns what the text means, and false if
/// that cost nothing: no call was made, or the failed call was free. True after a timeout.
///
/// # Errors
/// If the run must stop.
pub async fn propose(
    run: &RunContext,
    deps: &Deps,
    allowed: &BTreeSet<CommandName>,
    message: &str,
    until: Instant,
) -> Result<(Interpretation, bool), Stop> {
    let asked = SingleCall {
        step: CallStep::Proposal,
        role: Role::Proposer,
        prompt: "propose",
        appendix: catalog::for_model(allowed),
        question: message,
        schema: Arc::clone(&SCHEMA),
        max_tokens: MAX_TOKENS,
        until,
    };
    let answer = call_once::<Proposal>(run, deps, asked).await;
    let (raw, free) = match run.recorded(&step::settled(&CallStep::Proposal.to_string())) {
        Some(settled) => match settled.result {
            CallResult::Answered { text, .. } => (text, false),
            CallResult::Failed { .. } | CallResult::InDoubt => {
                (String::new(), settled.cost == Usd::ZERO)
            }
        },
        None => (String::new(), true),
    };
    let failure = match answer {
        Ok(SingleAnswer { value, is_damaged }) => {
            let proposed = value.into_event(&raw, is_damaged);
            return Ok((Interpretation::Proposed(Box::new(proposed)), true));
        }
        Err(CallError::NoOutput(failure)) => failure,
        Err(CallError::Stopped(Failure::Stopped(stop))) => return Err(stop),
        Err(CallError::Stopped(Failure::Failed { detail, .. })) => {
            return Ok((Interpretation::Nothing(detail), false));
        }
    };
    Ok(match failure.cause {
        FailureCause::MalformedOutput | FailureCause::EmptyOutput => {
            let why = cut(&failure.detail, WHY_CHARS);
            (Interpretation::Unreadable(why), !free)
        }
        // A call to the in-process model has no price but uses up the time.
        FailureCause::TimedOut => (Interpretation::TooSlow, true),
        // The text does not matter: the model is gone, or takes no such request.
        cause @ (FailureCause::RequestRejected | FailureCause::RequestUnfit) => {
            (Interpretation::Unavailable(cause.to_string()), !free)
        }
        cause if cause.is_outage() => (Interpretation::Unavailable(cause.to_string()), !free),
        cause => (Interpretation::Nothing(cause.to_string()), !free),
    })
}
