//! `conclave doctor`: probes every role's model as a run would use it.

use std::collections::BTreeMap;
use std::time::Instant;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::exit::{Exit, fail};
use super::terminal::say;
use crate::app::App;
use crate::clock::Clock;
use crate::config::{self, Env, OutputForm, RoleModel};
use crate::llm::{Author, ChatRequest, Message, Part, Schema, structured};

#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// Only look at the configuration and the database; call no model.
    #[arg(long)]
    offline: bool,
}

/// What a model is asked to write.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Probe {
    /// The sum of 2 and 3.
    sum: u32,
}

pub(super) async fn run(env: &Env, arguments: &DoctorArguments) -> Exit {
    let config = match config::load(env) {
        Ok(config) => config,
        Err(problems) => return fail(Exit::Configuration, problems),
    };
    say(format_args!("configuration  ok"));
    let app = match App::start(config, Clock::System).await {
        Ok(app) => app,
        Err(error) => return fail(Exit::from(&error), error),
    };
    if let Err(error) = app.ready().await {
        return fail(Exit::Unexpected, error);
    }
    say(format_args!("database       ok"));
    if arguments.offline {
        return Exit::Done;
    }
    // Roles that share a model share its probe.
    let mut probes: BTreeMap<(String, String, bool), (Vec<String>, RoleModel)> = BTreeMap::new();
    for (role, model) in &app.config.roles {
        for (i, model) in std::iter::successors(Some(model), |m| m.fallback.as_deref()).enumerate() {
            let key = (model.provider.clone(), model.model.clone(), model.output == OutputForm::Text);
            let name = if i == 0 { role.to_string() } else { format!("{role} (fallback)") };
            probes.entry(key).or_insert_with(|| (vec![], model.clone())).0.push(name);
        }
    }
    let mut sick = 0;
    for ((provider, id, _), (roles, model)) in probes {
        let started = Instant::now();
        let verdict = probe(&app, &model).await;
        let ms = started.elapsed().as_millis();
        let roles = roles.join(", ");
        match verdict {
            Ok(how) => say(format_args!("{provider:<14} ok      {id} for {roles}: {how}, {ms} ms")),
            Err(why) => {
                sick += 1;
                say(format_args!("{provider:<14} FAILED  {id} for {roles}: {why}, {ms} ms"));
            }
        }
    }
    if sick == 0 { Exit::Done } else { fail(Exit::Provider, format!("{sick} of the models cannot be used")) }
}

async fn probe(app: &App, model: &RoleModel) -> Result<String, String> {
    let chat = app.committee().models.model(&model.provider).ok_or("the provider is not running")?;
    let schema = schemars::schema_for!(Probe).to_value();
    let text = model.output == OutputForm::Text;
    let request = ChatRequest {
        key: format!("doctor/{}", app.clock.new_id()),
        model: model.model.clone(),
        system: "You add numbers. Answer with the JSON object that is asked for, or else with the number.".into(),
        messages: vec![Message { author: Author::User, parts: vec![Part::Text("What is 2 + 3?".into())] }],
        schema: (!text).then(|| Schema { name: "probe".into(), value: schema.clone() }),
        max_tokens: 64,
        temperature: model.temperature,
        seed: 1,
        timeout: app.config.policy.call_timeout,
    };
    let reply = chat.chat(&request).await.map_err(|error| error.to_string())?;
    if text {
        return if reply.text.trim().is_empty() { Err("it wrote nothing".into()) } else { Ok("plain text".into()) };
    }
    let parsed = structured::parse::<Probe>(&reply.text, &schema).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        format!("its JSON is not valid: {first}")
    })?;
    let how = if parsed.clean { "clean JSON" } else { "JSON that had to be extracted" };
    let usage =
        if reply.usage.is_some() { "" } else { ", but it reports no usage: calls are settled at their worst case" };
    Ok(format!("{how}{usage}"))
}
