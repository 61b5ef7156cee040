//! The response to an action, in one of three shapes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::commands::Action;
use super::parser;
use super::sanitize::{cut, harmless, sanitize};
use crate::domain::{ActionMode, CommandName, RunId, Source};
use crate::journal::{ActionOutcome, Event, Proposed, Transcript};

/// The response to a text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ActionReply")]
pub enum Reply {
    Proposal(Box<ProposalReply>),
    Done(Box<DoneReply>),
    Declined(Box<DeclinedReply>),
}

/// A command that fixed rules found and that was executed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ActionDone", deny_unknown_fields)]
pub struct DoneReply {
    pub intent: Intent,
    #[schemars(extend("const" = "deterministic"))]
    pub mode: ActionMode,
    pub executed: bool,
    /// The executed command. Exactly one.
    pub actions: Vec<Performed>,
}

/// A command that a model proposed, dice in first-person prose, or a deletion. It was executed only if
/// `executed` is true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ActionProposal", deny_unknown_fields)]
pub struct ProposalReply {
    pub intent: Intent,
    /// `deterministic`: no model was asked.
    pub mode: ActionMode,
    pub proposed_action: ProposedAction,
    pub executed: bool,
    /// The result. `null` until the command is executed.
    pub result: Option<Value>,
    pub actions: Vec<Performed>,
    /// How to confirm the command. Absent once it is executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Offer>,
    /// The readings to choose from if the confidence is below 0.5. The first is `proposed_action`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub choices: Vec<Choice>,
}

/// Nothing was done.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ActionDeclined", deny_unknown_fields)]
pub struct DeclinedReply {
    /// Error code.
    #[schemars(extend("enum" = [
        "unknown_intent", "invalid_arguments", "not_allowed", "not_found", "too_many", "disabled", "shadow_mode", "unavailable"
    ]))]
    pub error: String,
    /// One sentence for the user.
    pub message: String,
    /// Always true: the message must be shown only to the user.
    pub ephemeral: bool,
    /// In shadow mode: what would have been done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<Would>,
}

/// A command that shadow mode kept from its execution.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Would {
    pub action: CommandName,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub args: Value,
    /// Whose data the command would have used or changed.
    pub user_id: String,
    /// `execute`: at once. `offer`: after the user's confirmation.
    #[schemars(extend("enum" = ["execute", "offer"]))]
    pub how: &'static str,
}

/// The interpretation of the text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Intent {
    pub action: CommandName,
    /// The command's arguments.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub parameters: Value,
    /// 1.0 for a command that fixed rules found, 0.8 for dice in prose that they offer, else the model's confidence.
    #[schemars(range(min = 0, max = 1))]
    pub confidence: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProposedAction {
    pub action: CommandName,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub args: Value,
    #[schemars(range(min = 0, max = 1))]
    pub confidence: f64,
    /// The model's reason, cut at 120 characters. Empty for Discord, where it must not be shown.
    #[schemars(length(max = 120))]
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Performed {
    pub action: CommandName,
    /// The command's result. `text` is for people.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub result: Value,
}

/// A proposal that its user has not confirmed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Offer {
    /// For `POST /api/act/proposals/{id}/confirm`.
    #[schemars(extend("format" = "uuid"))]
    pub id: String,
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: String,
}

/// One of several interpretations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Choice {
    /// The number that confirms this reading.
    #[schemars(range(min = 1, max = 3))]
    pub choice: usize,
    pub action: CommandName,
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub args: Value,
}

/// Minimum confidence of a proposal that is offered without further readings.
pub const SURE_ENOUGH: f64 = 0.5;

/// The message if the process of the action ended before it was understood.
pub const INTERRUPTED: &str = "The service was interrupted while it worked this out, and nothing was done. Send it again as a \
     new message.";

/// The message if the action was cancelled.
pub const CANCELLED: &str =
    "This was cancelled, and nothing was done. To do it, send it again as a new message.";

/// The message to a text that is too long for the proposer.
pub const TOO_LONG: &str = "This is too long to work out, and nothing was done: at most 2,000 characters are read that are no \
     plain command.";

/// The message if the proposal timed out.
pub const TOO_SLOW: &str = "That took me too long to work out, and nothing was done. Plain commands need no model and are \
     quick.";

/// The message if the model's provider failed.
pub const UNAVAILABLE: &str = "I cannot reach the model that would work this out, and nothing was done. Plain commands work \
     without it. Try again later.";

/// Returns the message to a text in which no command was found. It names only allowed commands.
pub fn not_understood(text: &str, allowed: &BTreeSet<CommandName>) -> String {
    parser::hint(text, allowed).unwrap_or_else(|| {
        let has = |command| allowed.contains(&command);
        let how = match (has(CommandName::Help), has(CommandName::Do)) {
            (true, true) => {
                " Say \"help\" to see what I can do, and write /do before what your character does."
            }
            (true, false) => " Say \"help\" to see what I can do.",
            (false, true) => " Write /do before what your character does.",
            (false, false) => "",
        };
        format!("I do not know which command you mean; I read English.{how}")
    })
}

impl Offer {
    pub fn new(run: RunId, expires_at: Timestamp) -> Self {
        Self {
            id: run.to_string(),
            expires_at: expires_at.to_string(),
        }
    }
}

impl Reply {
    /// Returns the reply to a command that a rule found and that was executed.
    pub fn done(action: &Action, result: Value) -> Self {
        Self::Done(Box::new(DoneReply {
            intent: Intent {
                action: action.name(),
                parameters: action.arguments(),
                confidence: 1.0,
            },
            mode: ActionMode::Deterministic,
            executed: true,
            actions: vec![Performed {
                action: action.name(),
                result,
            }],
        }))
    }

    /// Returns the reply to a proposal that is not executed yet. `others` are further readings.
    pub fn offered(
        action: &Action,
        others: &[Action],
        why: ProposalReason<'_>,
        source: Source,
        offer: Offer,
    ) -> Self {
        let mut reply = proposal(action, why, source);
        reply.proposal = Some(offer);
        if why.confidence < SURE_ENOUGH {
            let all = std::iter::once(action).chain(others).enumerate();
            reply.choices = all
                .map(|(i, a)| Choice {
                    choice: i + 1,
                    action: a.name(),
                    args: a.arguments(),
                })
                .collect();
        }
        Self::Proposal(Box::new(reply))
    }

    /// Returns the reply to a proposal that was executed, at once or after its confirmation.
    pub fn proposed_and_done(
        action: &Action,
        why: ProposalReason<'_>,
        source: Source,
        result: Value,
    ) -> Self {
        let mut reply = proposal(action, why, source);
        reply.executed = true;
        reply.result = Some(result.clone());
        reply.actions = vec![Performed {
            action: action.name(),
            result,
        }];
        Self::Proposal(Box::new(reply))
    }

    /// Returns the reply to a text if nothing was done.
    pub fn declined(error: &str, message: impl Into<String>) -> Self {
        Self::Declined(Box::new(DeclinedReply {
            error: error.into(),
            message: harmless(&message.into()),
            ephemeral: true,
            would: None,
        }))
    }

    /// Returns the reply to a command that shadow mode kept from its execution.
    pub fn shadow(action: &Action, user_id: &str, how: &'static str) -> Self {
        let arguments = action.arguments();
        let message = format!(
            "Actions are on trial here: nothing was done. This would have been: {} {}",
            action.name(),
            sanitize(&arguments.to_string())
        );
        Self::Declined(Box::new(DeclinedReply {
            error: "shadow_mode".into(),
            message,
            ephemeral: true,
            would: Some(Would {
                action: action.name(),
                args: arguments,
                user_id: user_id.to_owned(),
                how,
            }),
        }))
    }

    /// Returns the outcome that the journal records.
    pub fn outcome(&self) -> ActionOutcome {
        match self {
            Reply::Done(_) => ActionOutcome::Executed,
            Reply::Proposal(reply) if reply.executed => ActionOutcome::Executed,
            Reply::Proposal(_) => ActionOutcome::Offered,
            Reply::Declined(reply) if reply.would.is_some() => ActionOutcome::Shadow,
            Reply::Declined(_) => ActionOutcome::Declined,
        }
    }

    /// Returns the response's body.
    pub fn value(&self) -> Value {
        json!(self)
    }
}

/// The reason for a proposed command, with its mode and confidence.
#[derive(Debug, Clone, Copy)]
pub struct ProposalReason<'a> {
    pub mode: ActionMode,
    pub confidence: f64,
    pub reason: &'a str,
}

impl<'a> ProposalReason<'a> {
    pub fn of(proposed: &'a Proposed, mode: ActionMode) -> Self {
        Self {
            mode,
            confidence: proposed.confidence,
            reason: &proposed.reason,
        }
    }
}

/// Builds a proposal that is not executed. The reason is empty for Discord.
fn proposal(action: &Action, why: ProposalReason<'_>, source: Source) -> ProposalReply {
    let (command, args, confidence) = (action.name(), action.arguments(), why.confidence);
    let reason = match source {
        Source::Discord => String::new(),
        _ => cut(why.reason, 120),
    };
    ProposalReply {
        intent: Intent {
            action: command,
            parameters: args.clone(),
            confidence,
        },
        mode: why.mode,
        proposed_action: ProposedAction {
            action: command,
            args,
            confidence,
            reason,
        },
        executed: false,
        result: None,
        actions: vec![],
        proposal: None,
        choices: vec![],
    }
}

/// Returns the reply of an action that has executed its command, from its journal. Returns `None`
/// if the journal shows no execution.
pub fn of_execution(events: &[Event]) -> Option<Reply> {
    let run = Transcript::of(events);
    let (accepted, executed, parsed) = (run.accepted?, run.executed?, run.parsed?);
    let action = Action::read(parsed.command, parsed.arguments.clone()).ok()?;
    let (result, source) = (executed.result.clone(), accepted.question.source);
    Some(match parsed.reason.as_deref() {
        None if parsed.mode == ActionMode::Deterministic => Reply::done(&action, result),
        reason => {
            let why = ProposalReason {
                mode: parsed.mode,
                confidence: parsed.confidence,
                reason: reason.unwrap_or_default(),
            };
            Reply::proposed_and_done(&action, why, source, result)
        }
    })
}

/// Returns the body of a response as text for a terminal.
pub fn shown(response: &Value) -> String {
    let text = |pointer: &str| response.pointer(pointer).and_then(Value::as_str);
    if let Some(message) = text("/message").filter(|_| response.get("error").is_some()) {
        let user = text("/would/userId").map(|user| format!("\nFor the user: {user}"));
        return format!("{message}{}", user.unwrap_or_default());
    }
    if let Some(text) = text("/actions/0/result/text") {
        return text.to_owned();
    }
    let line = |it: &Value| {
        format!(
            "{} {}",
            it["action"].as_str().unwrap_or_default(),
            it["args"]
        )
    };
    let mut lines = vec![format!(
        "Did you mean: {}",
        line(&response["proposed_action"])
    )];
    for choice in response["choices"].as_array().into_iter().flatten() {
        lines.push(format!("  {}  {}", choice["choice"], line(choice)));
    }
    if let Some(id) = text("/proposal/id") {
        lines.push(format!(
            "Nothing was done. To do it: conclave act --confirm {id}"
        ));
    }
    lines.join("\n")
}
