//! `conclave replay`: scores a run again from its journal under the current config. Calls no model.

use clap::Args;
use serde_json::json;

use super::exit::{Done, Exit, fail, failing};
use super::recorded::RunArgument;
use super::terminal::say;
use crate::committee::{Replayed, Verdict, replay};
use crate::config::{self, Env};
use crate::domain::{Confidence, RunKind};

#[derive(Debug, Args)]
pub(super) struct ReplayArguments {
    #[command(flatten)]
    run: RunArgument,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(env: &Env, arguments: ReplayArguments) -> Done {
    let policy = config::policy(env).map_err(failing(Exit::Configuration))?;
    let (run, journals) = arguments.run.read(env, Some(RunKind::Chat)).await?;
    let (id, entries) = (run.id, &run.entries);
    let earlier = journals.ancestors(&run).await?;
    let Some(replayed) = replay(entries, &earlier, &policy) else {
        return Err(fail(
            Exit::Refused,
            format!("run {id} was never scored: there is nothing to replay"),
        ));
    };
    if arguments.json {
        let mut body = json!(replayed);
        if let serde_json::Value::Object(map) = &mut body {
            map.insert("run".into(), json!(id.to_string()));
            map.insert("sameReply".into(), json!(replayed.same_reply()));
        }
        say(format_args!("{body}"));
    } else {
        print(&replayed);
    }
    Ok(())
}

fn print(replayed: &Replayed) {
    say(format_args!(
        "{:<12} {:<22} under this config",
        "", "as it was"
    ));
    for now in &replayed.replayed.scores {
        let was = replayed
            .recorded
            .scores
            .iter()
            .find(|was| was.agent == now.agent);
        let was = was.map_or_else(
            || "-".to_owned(),
            |was| format!("{:.2} {}", was.cred, was.status.into_str()),
        );
        say(format_args!(
            "{:<12} {was:<22} {:.2} {}",
            now.agent,
            now.cred,
            now.status.into_str()
        ));
    }
    for ((name, was), (_, is)) in rows(&replayed.recorded)
        .into_iter()
        .zip(rows(&replayed.replayed))
    {
        say(format_args!("{name:<12} {was:<22} {is}"));
    }
    if replayed.same_reply() {
        say(format_args!("\nthe reply would be the same"));
    }
    for need in &replayed.needs {
        say(format_args!(
            "\nwould need the call {}: {}",
            need.call, need.why
        ));
    }
    if replayed.needs.is_empty() && !replayed.same_reply() {
        say(format_args!(
            "\nthe gate would decide otherwise; all that it needs is in the journal"
        ));
    }
}

fn rows(verdict: &Verdict) -> [(&'static str, String); 5] {
    let figure = |of: fn(&Confidence) -> f64| {
        verdict.confidence.as_ref().map_or_else(
            || "-".to_owned(),
            |confidence| format!("{:.3}", of(confidence)),
        )
    };
    [
        ("base score", figure(|c| c.base_score)),
        ("penalty", figure(|c| c.conflict_penalty.applied)),
        ("bonus", figure(|c| c.coverage_bonus.applied)),
        ("c_final", figure(|c| c.c_final)),
        (
            "gate",
            verdict.gate.map_or("-", |gate| gate.into_str()).to_owned(),
        ),
    ]
}
