//! The proposal of a model, and the call that asks for it.

use std::collections::BTreeSet;

use conclave_lenient_json::strict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::catalog;
use super::proposal_cache::Interpretation;
use super::sanitize::cut;
use crate::committee::{Consultation, Deps, Failure, consult};
use crate::domain::{CommandName, FailureCause, Role, Usd};
use crate::journal::{CallResult, Event, Proposed, ProposedCommand, RunContext, settled_key};

/// No model is asked about a longer text.
pub const MAX_PROPOSED_CHARS: usize = 2000;

/// The most characters of a reason.
const REASON_CHARS: usize = 120;

/// The most characters of the model's reply that are recorded.
const RAW_CHARS: usize = 2000;

/// The most characters of the cause when a reply is malformed.
const WHY_CHARS: usize = 300;

/// The step of the call.
const STEP: &str = "proposal";

const MAX_TOKENS: u32 = 400;

/// What the model writes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// false: no command of the catalog is what the user wants.
    pub ok: bool,
    /// How sure you are that the user wants exactly this, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// The command's name as the catalog has it; "none" if ok is false.
    pub action: String,
    /// The command's arguments; null for all that it does not have or need.
    pub args: Map<String, Value>,
    /// Why, in at most 15 words.
    pub reason: String,
    /// If confidence is below 0.5, up to two other readings; else none. Each is read for itself: one that cannot be read
    /// does not take the first reading with it.
    #[serde(default)]
    pub alternatives: Value,
    /// Nothing. What you wrote is kept beside its reading by the service itself.
    #[serde(default, skip_serializing)]
    pub raw: Value,
}

/// Another reading.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    pub action: String,
    pub args: Map<String, Value>,
}

/// Returns the schema of a proposal. It allows only arguments that some command has. A reply that
/// breaks it is read all the same, so that the gates can say what is wrong.
pub fn schema() -> Value {
    let mut schema = strict::inlined(&schemars::schema_for!(Proposal).to_value());
    let mut alternative = strict::inlined(&schemars::schema_for!(Alternative).to_value());
    if let Value::Object(alternative) = &mut alternative {
        alternative.retain(|key, _| !matches!(key.as_str(), "$schema" | "title"));
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        // Some models write it. It is accepted, and the schema does not ask for it.
        properties.shift_remove("raw");
    }
    if let Some(alternatives) = schema.pointer_mut("/properties/alternatives") {
        let about = "If confidence is below 0.5, up to two other readings; else none.";
        *alternatives = json!({ "description": about, "type": "array", "items": alternative });
    }
    for place in [
        "/properties/args",
        "/properties/alternatives/items/properties/args",
    ] {
        if let Some(args) = schema.pointer_mut(place) {
            *args = catalog::merged_arguments();
        }
    }
    schema
}

/// Returns the arguments that are not null.
fn given(args: Map<String, Value>) -> Value {
    Value::Object(
        args.into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect(),
    )
}

impl Proposal {
    fn into_event(self, raw: &str, mended: bool) -> Proposed {
        let alternatives = match self.alternatives {
            Value::Null => vec![],
            Value::Array(items) => items.into_iter().take(2).map(other_reading).collect(),
            other => vec![other_reading(other)],
        };
        let mended = mended || alternatives.iter().any(unread);
        Proposed {
            ok: self.ok,
            confidence: self.confidence,
            action: cut(&self.action, 100),
            args: given(self.args),
            reason: cut(&self.reason, REASON_CHARS),
            alternatives,
            raw: cut(raw, RAW_CHARS),
            mended,
            reused_from: None,
        }
    }
}

/// Reads an alternative. A malformed one gets an empty name, which no gate passes.
fn other_reading(written: Value) -> ProposedCommand {
    match serde_json::from_value::<Alternative>(written.clone()) {
        Ok(Alternative { action, args }) => ProposedCommand {
            action: cut(&action, 100),
            args: given(args),
        },
        Err(_) => ProposedCommand {
            action: String::new(),
            args: written,
        },
    }
}

/// True if the alternative was malformed.
pub fn unread(alternative: &ProposedCommand) -> bool {
    alternative.action.is_empty()
}

/// Why there is no proposal.
#[derive(Debug, Clone, PartialEq)]
pub struct Unproposed {
    pub why: Interpretation,
    /// No call was made, or the call cost nothing for certain.
    pub free: bool,
}

/// Returns the stub's proposal, which is always none.
pub fn declined_by_stub() -> Proposed {
    Proposed {
        ok: false,
        confidence: 0.0,
        action: "none".into(),
        args: json!({}),
        reason: "the stub proposes nothing".into(),
        alternatives: vec![],
        raw: String::new(),
        mended: false,
        reused_from: None,
    }
}

/// Asks the model once for a command that fits the text.
///
/// # Errors
/// The outer error is a [`Failure`] of the run.
pub async fn propose(
    run: &RunContext,
    house: &Deps,
    allowed: &BTreeSet<CommandName>,
    message: &str,
    until: Instant,
) -> Result<Result<Proposed, Unproposed>, Failure> {
    let asked = Consultation {
        step: STEP,
        role: Role::Proposer,
        prompt: "propose",
        appendix: catalog::for_model(allowed),
        question: message,
        schema: schema(),
        max_tokens: MAX_TOKENS,
        until,
    };
    let bought = consult::<Proposal>(run, house, asked).await?;
    let (raw, free) = match run.recall(&settled_key(STEP)) {
        Some(Event::CallSettled(settled)) => match settled.result {
            CallResult::Answered { text, .. } => (text, false),
            CallResult::Failed { .. } | CallResult::InDoubt => {
                (String::new(), settled.cost == Usd::ZERO)
            }
        },
        _ => (String::new(), true),
    };
    Ok(match bought {
        Ok(told) => Ok(told.value.into_event(&raw, told.mended)),
        Err(untold) => Err(match untold.cause {
            FailureCause::MalformedOutput | FailureCause::EmptyOutput => Unproposed {
                why: Interpretation::Unreadable(cut(&untold.detail, WHY_CHARS)),
                free,
            },
            // A call to the in-process model has no price but takes the time.
            FailureCause::TimedOut => Unproposed {
                why: Interpretation::TooSlow,
                free: false,
            },
            cause => Unproposed {
                why: Interpretation::Nothing(cause.to_string()),
                free,
            },
        }),
    })
}
