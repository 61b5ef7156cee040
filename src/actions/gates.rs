//! The four gates that a model's proposal passes before it is executed, in order. Pure.

use serde_json::Value;

use super::commands::Action;
use super::sheet::MAX_SHEET_BYTES;
use crate::config::{ActionRules, ProposerPolicy};
use crate::domain::{ActionGate, CommandName};
use crate::journal::GateChecked;

/// The commands that may be executed without confirmation. Neither does damage.
pub const SAFE: [CommandName; 2] = [CommandName::MemoryAdd, CommandName::MemorySearch];

/// The result of the gates.
#[derive(Debug, Clone, PartialEq)]
pub struct GateOutcome {
    /// Every gate that was reached, in order.
    pub checked: Vec<GateChecked>,
    /// The command, if it passed the first three.
    pub action: Option<Action>,
    /// True if it passed the fourth gate too.
    pub execute: bool,
}

/// Checks a command that a model names against the rules.
pub fn pass(
    action: &str,
    args: &Value,
    confidence: f64,
    rules: &ActionRules,
    proposer: &ProposerPolicy,
) -> GateOutcome {
    let mut outcome = GateOutcome {
        checked: vec![],
        action: None,
        execute: false,
    };
    match read(action, args, rules, &mut outcome.checked) {
        Ok(action) => {
            let verdict = auto(&action, confidence, proposer);
            outcome.execute = verdict.is_ok();
            outcome
                .checked
                .push(checked(ActionGate::AutoExecution, verdict.err()));
            outcome.action = Some(action);
        }
        Err((gate, why)) => outcome.checked.push(checked(gate, Some(why))),
    }
    outcome
}

/// Returns the verdict on a reply that is no proposal: it fails the schema gate.
pub fn unreadable(why: String) -> GateChecked {
    checked(ActionGate::Schema, Some(why))
}

fn checked(gate: ActionGate, wrong: Option<String>) -> GateChecked {
    GateChecked {
        gate,
        passed: wrong.is_none(),
        why: wrong.unwrap_or_default(),
    }
}

fn read(
    action: &str,
    args: &Value,
    rules: &ActionRules,
    passed: &mut Vec<GateChecked>,
) -> Result<Action, (ActionGate, String)> {
    let allowed =
        |name: &CommandName| rules.proposer_commands.contains(name) && !name.is_deletion();
    let Some(name) = action.parse::<CommandName>().ok().filter(allowed) else {
        let why = "a model may not propose this command here";
        return Err((ActionGate::Allowlist, why.to_owned()));
    };
    passed.push(checked(ActionGate::Allowlist, None));
    let action = Action::read(name, args.clone()).map_err(|why| (ActionGate::Schema, why))?;
    passed.push(checked(ActionGate::Schema, None));
    policy(&action, rules).map_err(|why| (ActionGate::Policy, why))?;
    passed.push(checked(ActionGate::Policy, None));
    Ok(action)
}

/// Checks the rules for every command, whether a rule or a model found it.
///
/// # Errors
/// The rule that it breaks.
pub fn policy(action: &Action, rules: &ActionRules) -> Result<(), String> {
    if !rules.enabled {
        return Err("actions are switched off here".into());
    }
    if !rules.commands.contains(&action.name()) {
        return Err(format!("{} is not allowed here", action.name()));
    }
    let bytes = action.arguments().to_string().len();
    if bytes > MAX_SHEET_BYTES {
        return Err(format!(
            "the arguments have {bytes} bytes; at most {MAX_SHEET_BYTES} are allowed"
        ));
    }
    Ok(())
}

fn auto(action: &Action, confidence: f64, proposer: &ProposerPolicy) -> Result<(), String> {
    if !proposer.allow_autoexec {
        return Err("auto-execution is off".into());
    }
    if !SAFE.contains(&action.name()) {
        return Err(format!("{} needs a confirmation", action.name()));
    }
    // Written so that NaN does not pass.
    if confidence >= proposer.min_confidence {
        Ok(())
    } else {
        Err(format!(
            "the confidence is below {}",
            proposer.min_confidence
        ))
    }
}
