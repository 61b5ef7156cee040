//! `conclave replay`: scores a run again from its journal under the current config. Calls no model.

use clap::Args;
use serde_json::{Value, json};

use super::exit::{Done, Exit, fail, failing};
use super::recorded::RunArgument;
use super::terminal::say;
use crate::committee::{ReplayResult, Replayed, replay};
use crate::config::{self, Env};
use crate::domain::{Confidence, RunKind, Status};

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
    if let Some(broken) = &run.broken {
        let why = format!("run {id} was altered, so scores from it prove nothing: {broken}");
        return Err(fail(Exit::Altered, why));
    }
    let earlier = journals.ancestors(&run).await?;
    if let Some((missing, _)) = earlier.iter().find(|(_, entries)| entries.is_empty()) {
        let what = "the question is not known in full, and other scores may follow from that";
        tell!("conclave: warning: run {id} continues run {missing}, which is missing: {what}");
    }
    let Some(replayed) = replay(entries, &earlier, &policy) else {
        let why = format!("run {id} was never scored: there is nothing to replay");
        return Err(fail(Exit::Refused, why));
    };
    if arguments.json {
        let mut body = json!(replayed);
        if let Value::Object(body) = &mut body {
            body.insert("run".into(), json!(id.to_string()));
        }
        say(format_args!("{body}"));
    } else {
        print(&replayed);
    }
    Ok(())
}

fn print(replayed: &Replayed) {
    let row = |name: &str, was: &str, is: &str| say(format_args!("{name:<12} {was:<22} {is}"));
    row("", "as it was", "under this config");
    let shown = |cred: f64, status: Status| format!("{cred:.2} {}", status.into_str());
    for now in &replayed.replayed.scores {
        let mut recorded = replayed.recorded.scores.iter();
        let was = recorded.find(|was| was.agent == now.agent);
        let was = was.map_or_else(|| "-".to_owned(), |was| shown(was.cred, was.status));
        row(now.agent.as_str(), &was, &shown(now.cred, now.status));
    }
    let (recorded, replayed_rows) = (rows(&replayed.recorded), rows(&replayed.replayed));
    for ((name, was), (_, is)) in recorded.into_iter().zip(replayed_rows) {
        row(name, &was, &is);
    }
}

fn rows(verdict: &ReplayResult) -> [(&'static str, String); 5] {
    let figure = |of: fn(&Confidence) -> f64| {
        let figure = verdict.confidence.as_ref().map(of);
        figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.3}"))
    };
    let gate = verdict.gate.map_or("-", |gate| gate.into_str());
    [
        ("base score", figure(|c| c.base_score)),
        ("penalty", figure(|c| c.conflict_penalty.applied)),
        ("bonus", figure(|c| c.coverage_bonus.applied)),
        ("c_final", figure(|c| c.c_final)),
        ("gate", gate.to_owned()),
    ]
}
