//! `conclave show`: prints a run from its journal.

use clap::Args;
use serde_json::{Value, json};

use super::colour::appendix;
use super::exit::{Done, Exit, fail};
use super::plan_text;
use super::printable::without_controls;
use super::recorded::{Journals, Recorded, RunArgument};
use super::terminal::{say, say_json, say_styled};
use crate::actions::reply;
use crate::committee::{audit_markdown, audit_view, rounded_audit};
use crate::config::Env;
use crate::domain::{DecisionPath, RunKind};
use crate::http::reply_body;
use crate::journal::{Decided, Ending, Entry, Event, Transcript};
use crate::tools::answers::PlanView;
use crate::tools::view;

/// The start of the audit appendix in a reply.
const APPENDIX: &str = "\n## Audit appendix\n";

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    #[command(flatten)]
    run: RunArgument,
    /// Print reply, meta and audit as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(env: &Env, arguments: ShowArguments) -> Done {
    let (run, journals) = arguments.run.read(env, None).await?;
    let tools = of_tools(&run, &journals).await?;
    let id = run.id;
    let warning = run.broken.as_ref();
    let warning =
        warning.map(|broken| format!("WARNING: the journal of run {id} was altered: {broken}"));
    if arguments.json {
        match &tools {
            Some((_, value)) => say_json(&format!("{value:#}")),
            None => print_json(&run),
        }
    } else {
        if let Some(warning) = &warning {
            print(&format!("{warning}\n"));
        }
        match &tools {
            Some((text, _)) => print(text),
            None => print_run(&run),
        }
    }
    match warning {
        Some(warning) => Err(fail(Exit::Altered, warning)),
        None => Ok(()),
    }
}

/// Returns a plan or an execution with all that led to it, as text and as JSON. `None` for other
/// runs, and for a run that gave no plan.
async fn of_tools(
    run: &Recorded,
    journals: &Journals<'_>,
) -> Result<Option<(String, Value)>, Exit> {
    let events = |entries: &[Entry]| -> Vec<Event> {
        entries.iter().map(|entry| entry.event.clone()).collect()
    };
    let own = events(&run.entries);
    Ok(match run.kind {
        RunKind::Plan => {
            let plan = journals.plan(run.id, &own).await?;
            let text = |plan: &PlanView| {
                let rejection = plan.rejection.iter().map(plan_text::rejection);
                let parts = std::iter::once(plan_text::plan(plan)).chain(rejection);
                Vec::from_iter(parts).join("\n")
            };
            plan.map(|plan| (text(&plan), json!(plan)))
        }
        RunKind::Execution => {
            let of = view::authorized(&own).map(|authorized| authorized.plan);
            let plan = match of {
                Some(plan) => journals.read(plan).await?,
                None => None,
            };
            if let (Some(of), None) = (of, &plan) {
                let why = format!("the plan {of} of this execution is not here: import it too");
                return Err(fail(Exit::Refused, why));
            }
            let of_plan = plan.map(|plan| events(&plan.entries)).unwrap_or_default();
            view::execution_view(run.id, &own, &of_plan)
                .map(|execution| (plan_text::reconstructed(&execution), json!(execution)))
        }
        RunKind::Chat | RunKind::Action => None,
    })
}

fn print_json(run: &Recorded) {
    let transcript = Transcript::of_entries(&run.entries);
    let audit = audit_view(run.id, &transcript).filter(|_| run.kind == RunKind::Chat);
    let audit = audit.map(rounded_audit);
    let body = match transcript.finished.map(|finished| &finished.ending) {
        Some(Ending::Replied { reply }) => reply_body(reply),
        Some(Ending::Acted { response, .. }) => json!({ "action": response }),
        _ => json!({}),
    };
    let shown = json!({ "id": run.id.to_string(), "state": run.state.shown(), "cause": run.cause, "reply": body.get("reply"),
                        "meta": body.get("meta"), "audit": audit, "action": body.get("action"), "broken": run.broken });
    say_json(&format!("{shown:#}"));
}

fn print_run(run: &Recorded) {
    let transcript = Transcript::of_entries(&run.entries);
    print(&format!("> {}\n", run.message.replace('\n', "\n> ")));
    let gate = transcript.gated.map(|gated| gated.gate);
    let mut shown = false;
    match transcript.finished.map(|finished| &finished.ending) {
        Some(Ending::Replied { reply }) => {
            // The text of an answer in audit and deep already ends with the appendix.
            let start = reply.text.find(APPENDIX).unwrap_or(reply.text.len());
            let (answer, audited) = reply.text.split_at(start);
            shown = !audited.is_empty();
            let answer = without_controls(answer);
            let audited = appendix(&without_controls(audited), gate);
            say_styled(format_args!("{answer}{audited}"));
        }
        Some(Ending::Failed { detail, .. }) => print(&format!("The run failed: {detail}")),
        Some(Ending::Acted { response, .. }) => print(&reply::shown(response)),
        Some(Ending::Cancelled) => say(format_args!("The run was cancelled.")),
        None => say(format_args!("The run is {}.", run.state.into_str())),
    }
    if let Some(decided) = transcript.decided {
        print(&format!("\nDecision: {}", decision(decided)));
    }
    // Nothing of a learned answer was audited in its own run.
    let decided = transcript.decided;
    let is_recalled = decided.is_some_and(|it| it.path == DecisionPath::Heuristic);
    let is_audited = run.kind == RunKind::Chat && !is_recalled;
    let audit = audit_view(run.id, &transcript).filter(|_| !shown && is_audited);
    if let Some(audit) = audit {
        let audit = appendix(&without_controls(&audit_markdown(&audit)), gate);
        say_styled(format_args!("\n{audit}"));
    }
    if let Some(took) = took(&run.entries) {
        say(format_args!("\nThe run took {took:.1} s."));
    }
}

/// Describes a decision in one line.
fn decision(decided: &Decided) -> String {
    let matched = decided.matched.as_ref().map(|matched| {
        let (id, confidence) = (matched.id, matched.confidence);
        let similarity = format!("similarity {:.2}", matched.similarity);
        let needed = decided
            .threshold
            .map(|least| format!(" of at least {least:.2}"));
        let needed = needed.unwrap_or_default();
        format!("; the most similar: run {id}, {similarity}, confidence {confidence:.2}{needed}")
    });
    let arm = decided.arm.as_ref().map(|arm| format!(" (arm {arm})"));
    let (arm, matched) = (arm.unwrap_or_default(), matched.unwrap_or_default());
    format!("{}{arm}: {}{matched}", decided.path.into_str(), decided.why)
}

/// Returns the seconds from the run's acceptance to its end.
fn took(entries: &[Entry]) -> Option<f64> {
    let mut later = entries.iter();
    let end = later.find(|entry| entry.is_end())?;
    Some(end.at.duration_since(entries.first()?.at).as_secs_f64())
}

fn print(text: &str) {
    say(format_args!("{text}"));
}
