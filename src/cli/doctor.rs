//! `conclave doctor`: probes every role's model the way a run uses it, with the same limit, effort
//! and schema: that of the plan for the master, and that of a report for an agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::exit::{Done, Exit, fail};
use super::local::{load, start};
use super::terminal::say;
use super::{models_line, quote, remote};
use crate::app::App;
use crate::clock::Clock;
use crate::committee::{self, OrchestrationPlan, schema_of};
use crate::config::{Env, OutputForm, RoleModel};
use crate::domain::{AgentReport, Role, counted, is_same_model};
use crate::llm::{Author, CallStop, ChatRequest, Message, Part, Schema};

/// What every model is asked.
const QUESTION: &str = "The question: What is 2 + 3?";

/// A model to probe, as a master or as an agent.
struct Probe {
    model: RoleModel,
    is_master: bool,
    /// The names of the roles that it has.
    roles: Vec<String>,
}

pub(super) async fn run(env: &Env, offline: bool) -> Done {
    let config = load(env)?;
    say(format_args!("configuration  ok ({})", config.source));
    say(format_args!(
        "models         {}",
        models_line::line(&config)
    ));
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
    for asked in probes(&app) {
        let started = Instant::now();
        let verdict = probe(&app, &asked).await;
        let ms = started.elapsed().as_millis();
        let Probe { model, roles, .. } = asked;
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

/// Returns the models to probe, each with its roles. Agents with the same model and settings share a
/// probe.
fn probes(app: &App) -> impl Iterator<Item = Probe> + use<> {
    let mut probes: BTreeMap<String, Probe> = BTreeMap::new();
    for (role, model) in &app.config.roles {
        for (i, model) in model.with_fallbacks().enumerate() {
            let (provider, id, settings) = (&model.provider, &model.model, model.settings());
            let is_master = *role == Role::Master && model.output == OutputForm::Json;
            let key = format!(
                "{provider} {id} {:?} {settings:?} {is_master}",
                model.output
            );
            let fallback = if i == 0 { "" } else { " (fallback)" };
            let new = || Probe {
                model: model.clone(),
                is_master,
                roles: vec![],
            };
            let probe = probes.entry(key).or_insert_with(new);
            probe.roles.push(format!("{role}{fallback}"));
            probe.model.max_tokens = probe.model.max_tokens.max(model.max_tokens);
        }
    }
    probes.into_values()
}

/// Returns what a model is asked, and the schema of its answer.
fn request_of(app: &App, probe: &Probe) -> (ChatRequest, Arc<conclave_lenient_json::Schema>) {
    let Probe {
        model, is_master, ..
    } = probe;
    let (name, task, schema) = if *is_master {
        let task = "You plan how a committee answers a question.";
        ("orchestration_plan", task, schema_of::<OrchestrationPlan>())
    } else {
        let task = "You are an agent of a committee, and answer a question.";
        ("agent_report", task, schema_of::<AgentReport>())
    };
    let form = "Write the JSON object that is asked for, as short as its form allows, or else one sentence.";
    let request = ChatRequest {
        key: format!("doctor/{}", app.clock.new_id()),
        model: model.model.clone(),
        system: format!("{task} {form}").into(),
        messages: vec![Message {
            author: Author::User,
            parts: vec![Part::Text(QUESTION.into())],
        }],
        schema: (model.output == OutputForm::Json).then(|| Schema {
            name: name.into(),
            value: Arc::clone(&schema),
        }),
        max_tokens: model.max_tokens,
        settings: model.settings(),
        seed: 1,
        timeout: app.config.policy.call_timeout,
        has_fallback: false,
    };
    (request, schema)
}

async fn probe(app: &App, probe: &Probe) -> Result<String, String> {
    let Probe {
        model, is_master, ..
    } = probe;
    let chat = app.committee().models.model(&model.provider);
    let chat = chat.ok_or("the provider is not running")?;
    let (request, schema) = request_of(app, probe);
    let reply = chat.chat(&request).await;
    let reply = reply.map_err(|error| error.to_string())?;
    if reply.stop == CallStop::Refusal {
        return Err("it refused to answer".into());
    }
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
        OutputForm::Json if *is_master => json_form::<OrchestrationPlan>(&reply.text, &schema)?,
        OutputForm::Json => json_form::<AgentReport>(&reply.text, &schema)?,
    };
    Ok(format!("{how}{served}{usage}"))
}

fn json_form<T: DeserializeOwned>(
    text: &str,
    schema: &conclave_lenient_json::Schema,
) -> Result<&'static str, String> {
    match conclave_lenient_json::parse::<T>(text, schema) {
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
