//! `conclave doctor`: probes every role's model the way a run uses it, with the same limit, effort
//! and schema.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exit::{Done, Exit, fail};
use super::local::{load, start};
use super::terminal::say;
use super::{quote, remote, seats};
use crate::app::App;
use crate::clock::Clock;
use crate::committee;
use crate::config::{Env, OutputForm, RoleModel};
use crate::domain::{counted, is_same_model};
use crate::llm::{Author, CallStop, ChatRequest, Message, Part, Schema};

/// What a model is asked to write.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Probe {
    /// The sum of 2 and 3.
    sum: u32,
}

pub(super) async fn run(env: &Env, offline: bool) -> Done {
    let config = load(env)?;
    say(format_args!("configuration  ok ({})", config.source));
    say(format_args!("models         {}", seats::line(&config)));
    for warning in config.all_warnings(Clock::System.now()) {
        say(format_args!("warning        {warning}"));
    }
    let app = start(config).await?;
    for warning in quote::warnings(&app) {
        say(format_args!("warning        {warning}"));
    }
    if let Err(error) = app.ready().await {
        return Err(fail(Exit::Unexpected, error));
    }
    match app.damage().await {
        Ok(None) => say(format_args!("database       ok")),
        Ok(Some(found)) => {
            let why = format!("the database is damaged: {found}: restore a backup");
            return Err(fail(Exit::Altered, why));
        }
        Err(error) => return Err(fail(Exit::Unexpected, error)),
    }
    if offline {
        return Ok(());
    }
    let mut sick = 0;
    for (roles, model) in probes(&app) {
        let started = Instant::now();
        let verdict = probe(&app, &model).await;
        let ms = started.elapsed().as_millis();
        let (roles, provider, id) = (roles.join(", "), &model.provider, &model.model);
        let effort = model.effort.map(|effort| format!(", effort {effort}"));
        let effort = effort.unwrap_or_default();
        sick += u32::from(verdict.is_err());
        let state = if verdict.is_ok() { "ok    " } else { "FAILED" };
        let said = verdict.unwrap_or_else(|why| why);
        say(format_args!(
            "{provider:<14} {state}  {id} for {roles}: {said}{effort}, {ms} ms"
        ));
    }
    if let Err(why) = ollama_context(&app).await {
        sick += 1;
        say(format_args!("ollama         FAILED  {why}"));
    }
    if sick == 0 {
        return Ok(());
    }
    let checks = counted(sick, "check", "checks");
    Err(fail(Exit::Provider, format!("{checks} failed")))
}

/// Returns the models to probe, each with its roles. Roles with the same model and settings share a
/// probe.
fn probes(app: &App) -> impl Iterator<Item = (Vec<String>, RoleModel)> + use<> {
    let mut probes: BTreeMap<String, (Vec<String>, RoleModel)> = BTreeMap::new();
    for (role, model) in &app.config.roles {
        for (i, model) in model.with_fallbacks().enumerate() {
            let (provider, id, settings) = (&model.provider, &model.model, model.settings());
            let key = format!("{provider} {id} {:?} {settings:?}", model.output);
            let fallback = if i == 0 { "" } else { " (fallback)" };
            let (roles, widest) = probes.entry(key).or_insert_with(|| (vec![], model.clone()));
            roles.push(format!("{role}{fallback}"));
            widest.max_tokens = widest.max_tokens.max(model.max_tokens);
        }
    }
    probes.into_values()
}

async fn probe(app: &App, model: &RoleModel) -> Result<String, String> {
    let chat = app.committee().models.model(&model.provider);
    let chat = chat.ok_or("the provider is not running")?;
    let schema = schemars::schema_for!(Probe).to_value();
    let schema = Arc::new(conclave_lenient_json::Schema::new(schema));
    let text = model.output == OutputForm::Text;
    let request = ChatRequest {
        key: format!("doctor/{}", app.clock.new_id()),
        model: model.model.clone(),
        system: "You add numbers. Answer with the JSON object that is asked for, or else with the number.".into(),
        messages: vec![Message { author: Author::User, parts: vec![Part::Text("What is 2 + 3?".into())] }],
        schema: (!text).then(|| Schema { name: "probe".into(), value: Arc::clone(&schema) }),
        max_tokens: model.max_tokens,
        settings: model.settings(),
        seed: 1,
        timeout: app.config.policy.call_timeout,
        has_fallback: false,
    };
    let reply = chat.chat(&request).await;
    let reply = reply.map_err(|error| error.to_string())?;
    if reply.text.trim().is_empty() {
        let tokens = model.max_tokens;
        return Err(match reply.stop {
            CallStop::MaxTokens => {
                format!("it spent all {tokens} tokens thinking: raise maxTokens or lower effort")
            }
            CallStop::End | CallStop::Refusal | CallStop::Other => "it wrote nothing".into(),
        });
    }
    let served = match reply.model.as_deref() {
        Some(served) if !is_same_model(&model.model, served) => {
            format!(", but {served} answered in its place")
        }
        _ => String::new(),
    };
    let unknown = ", but it reports no usage: calls are settled at their worst case";
    let usage = if reply.usage.is_some() { "" } else { unknown };
    let how = match model.output {
        OutputForm::Text => "plain text",
        OutputForm::Json => json_form(&reply.text, &schema)?,
    };
    Ok(format!("{how}{served}{usage}"))
}

fn json_form(text: &str, schema: &conclave_lenient_json::Schema) -> Result<&'static str, String> {
    match conclave_lenient_json::parse::<Probe>(text, schema) {
        Ok(parsed) if parsed.clean => Ok("clean JSON"),
        Ok(_) => Ok("JSON that had to be extracted"),
        Err(problems) => {
            let first = problems.first().map(ToString::to_string);
            Err(format!(
                "its JSON is not valid: {}",
                first.unwrap_or_default()
            ))
        }
    }
}

/// Checks the context size of Ollama's loaded models. Ollama silently truncates input that exceeds
/// the context with which it loaded a model. Its list of loaded models has that size.
async fn ollama_context(app: &App) -> Result<(), String> {
    let provider = app.config.providers.get("ollama");
    let Some(mut url) = provider.and_then(|provider| provider.base_url.clone()) else {
        return Ok(());
    };
    let path = url.path().trim_end_matches('/');
    let path = format!("{}/api/ps", path.trim_end_matches("/v1"));
    url.set_path(&path);
    let client = remote::client().map_err(|error| error.to_string())?;
    let asked = client.get(url).timeout(Duration::from_secs(5)).send().await;
    // A server without such a list is not Ollama, so its context is unknown.
    let Ok(response) = asked else { return Ok(()) };
    let Ok(loaded) = response.json::<Value>().await else {
        return Ok(());
    };
    let needed = committee::context_needed(app.committee());
    let models = loaded.get("models").and_then(Value::as_array);
    for model in models.into_iter().flatten() {
        let name = model["name"].as_str().unwrap_or("a model");
        let mut roles = app.config.roles.values();
        let is_used = roles.any(|r| r.provider == "ollama" && is_same_model(&r.model, name));
        let Some(context) = model["context_length"].as_u64().filter(|_| is_used) else {
            continue;
        };
        if context < needed {
            let variable = format!("OLLAMA_CONTEXT_LENGTH={}", needed.next_power_of_two());
            return Err(format!(
                "{name} is loaded with a context of {context} tokens, and a run needs about {needed}: start Ollama with \
                 {variable}"
            ));
        }
        say(format_args!(
            "ollama         ok      {name} has a context of {context} tokens; a run needs about {needed}"
        ));
    }
    Ok(())
}
