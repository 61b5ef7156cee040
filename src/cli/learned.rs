//! `conclave learned`: lists and revokes learned answers.

use clap::{Args, Subcommand};
use serde_json::json;

use super::colour::heading;
use super::exit::{Done, Exit, fail, failing};
use super::local::open;
use super::printable::without_controls;
use super::recorded::find;
use super::terminal::{say, say_json, say_styled};
use crate::clock::Clock;
use crate::config::Env;
use crate::domain::RunKind;
use crate::journal::{self, LearnedRow};
use crate::strategies::learning;
use crate::text::excerpt;

const HEADINGS: &str = "run                                   changed (UTC)        trust  guild, or user       question";

#[derive(Debug, Args)]
pub(super) struct LearnedArguments {
    #[command(subcommand)]
    command: Option<LearnedCommand>,
    /// How many, at most.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum LearnedCommand {
    /// Revoke a learned answer for good.
    Revoke {
        /// The run that gave the answer: its id, the first characters of its id, or `last`.
        run: String,
    },
}

pub(super) async fn run(env: &Env, arguments: LearnedArguments) -> Done {
    let store = open(env).await?;
    if let Some(LearnedCommand::Revoke { run }) = arguments.command {
        let (run, _) = find(env, None, &run, Some(RunKind::Chat)).await?;
        let revoked = learning::revoke(&*store, Clock::System.now(), run).await;
        if !revoked.map_err(failing(Exit::Unexpected))? {
            let why = format!("no answer of run {run} is in use");
            return Err(fail(Exit::Refused, why));
        }
        say(format_args!("the answer of run {run} is revoked"));
        return Ok(());
    }
    let rows = store.learned(arguments.limit).await;
    let rows = rows.map_err(failing(Exit::Unexpected))?;
    if rows.is_empty() && !arguments.json {
        tell!("no learned answers yet: conclave feedback RUN --positive makes one");
    }
    if !rows.is_empty() && !arguments.json {
        say_styled(format_args!("{}", heading(HEADINGS)));
    }
    let mut done = Ok(());
    for row in rows {
        let row = match row {
            Ok(row) => row,
            Err(error) => {
                done = Err(fail(Exit::Altered, error));
                continue;
            }
        };
        let is_unaltered = journal::is_unaltered(&*store, row.run).await;
        if !is_unaltered.map_err(failing(Exit::Unexpected))? {
            let why = format!("the answer of run {} or its run was altered", row.run);
            done = Err(fail(Exit::Altered, why));
            continue;
        }
        say_row(&row, arguments.json);
    }
    done
}

fn say_row(row: &LearnedRow, is_json: bool) {
    let trust = learning::confidence_of(row);
    if is_json {
        let shown = json!({
            "runId": row.run.to_string(), "confidence": trust, "revoked": row.is_revoked, "source": row.scope.source,
            "guildId": row.scope.guild_id, "userId": row.scope.user_id, "question": row.condition,
            "answer": row.answer.main, "learnedAt": row.learned_at.to_string(), "changedAt": row.changed_at.to_string(),
        });
        say_json(&shown.to_string());
        return;
    }
    let trust = match trust {
        Some(trust) => format!("{trust:.2}"),
        None => "revoked".to_owned(),
    };
    let place = row.scope.guild_id.as_deref().unwrap_or(&row.scope.user_id);
    let (place, question) = (without_controls(place), without_controls(&row.condition));
    say(format_args!(
        "{}  {}  {trust:<7}  {:<19}  {}",
        row.run,
        row.changed_at.strftime("%Y-%m-%d %H:%M:%S"),
        excerpt(&place, 19),
        excerpt(&question, 60)
    ));
}
