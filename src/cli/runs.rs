//! `conclave runs`: lists runs.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::colour::{Tone, heading};
use super::exit::{Done, Exit, failing};
use super::export::moment;
use super::local::open;
use super::printable::without_controls;
use super::terminal::{say_json, say_styled};
use crate::config::Env;
use crate::domain::RunKind;
use crate::journal::{RunFilter, RunRow, RunState};
use crate::text::excerpt;

/// As wide as the rows below; the heading `c_final` ends where its figures end.
const HEADINGS: &str = "run                                   accepted (UTC)       mode   state       c_final  USD      message";

#[derive(Debug, Args)]
pub(super) struct RunsArguments {
    /// How many, at most.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Only runs of this user.
    #[arg(long)]
    user: Option<String>,
    /// Only runs accepted on or after this day (UTC) or time: 2026-11-01, 2026-11-01T12:00:00Z.
    #[arg(long, value_name = "DAY|TIME", value_parser = moment)]
    since: Option<Timestamp>,
    /// List actions instead of questions.
    #[arg(long)]
    actions: bool,
    /// List tool plans and their executions instead of questions.
    #[arg(long, conflicts_with = "actions")]
    plans: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(env: &Env, arguments: RunsArguments) -> Done {
    let store = open(env).await?;
    let kinds: &[RunKind] = match (arguments.actions, arguments.plans) {
        (true, _) => &[RunKind::Action],
        (_, true) => &[RunKind::Plan, RunKind::Execution],
        _ => &[RunKind::Chat],
    };
    let mut rows = vec![];
    for kind in kinds {
        let filter = RunFilter {
            kind: Some(*kind),
            user_id: arguments.user.clone(),
            since: arguments.since,
            limit: arguments.limit,
            ..RunFilter::default()
        };
        let listed = store.runs(&filter).await;
        rows.extend(listed.map_err(failing(Exit::Unexpected))?);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.id.to_string()));
    rows.truncate(usize::try_from(arguments.limit).unwrap_or(usize::MAX));
    if rows.is_empty() && !arguments.json {
        tell!("no such runs");
    }
    if !rows.is_empty() && !arguments.json {
        say_styled(format_args!("{}", heading(HEADINGS)));
    }
    for row in rows {
        if arguments.json {
            say_json(&as_json(&row).to_string());
        } else {
            print(&row);
        }
    }
    Ok(())
}

fn mode(row: &RunRow) -> &'static str {
    match row.kind {
        RunKind::Chat => row.mode.into_str(),
        RunKind::Action => "act",
        RunKind::Plan => "plan",
        RunKind::Execution => "execute",
    }
}

fn as_json(row: &RunRow) -> Value {
    json!({
        "id": row.id.to_string(), "kind": row.kind, "state": row.state.shown(), "mode": mode(row), "source": row.source,
        "userId": row.user_id, "message": row.message, "cause": row.cause, "c_final": row.c_final,
        "spentUsd": row.spent.dollars(), "acceptedAt": row.accepted_at.to_string(),
    })
}

fn print(row: &RunRow) {
    let message = excerpt(&without_controls(&row.message), 60);
    let tone = Tone::from(row.state);
    // A figure that led to a question is not rounded up to the threshold.
    let shown = |c: f64| match row.state {
        RunState::Clarification => format!("{:.2}", (c * 100.0).floor() / 100.0),
        _ => format!("{c:.2}"),
    };
    let c_final = tone.on_stdout(row.c_final.map_or("    ".to_owned(), shown));
    say_styled(format_args!(
        "{}  {}  {:<5}  {:<13}  {c_final}  ${:.4}  {message}",
        row.id,
        row.accepted_at.strftime("%Y-%m-%d %H:%M:%S"),
        mode(row),
        tone.on_stdout(row.state.into_str()),
        row.spent.dollars()
    ));
}
