//! `conclave config`: checks the configuration or prints a schema.

use std::path::Path;

use clap::Subcommand;

use super::exit::Done;
use super::local;
use super::terminal::say;
use crate::clock::Clock;
use crate::committee::{CrossCheckReply, Decisions, FinalSynthesis, OrchestrationPlan};
use crate::config::{self, Config, Env, Limits, OutputForm, Problem, Problems, RoleModel};
use crate::domain::{AgentReport, Price, ProviderKind, Usd};
use crate::http;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the config file, the environment and the prompts; every problem is reported at once.
    Check,
    /// Print a JSON schema: of the config file, of what the models write, or of the HTTP API.
    Schema {
        #[arg(value_enum, default_value_t = Published::Config)]
        of: Published,
    },
}

/// The schemas that are published under `docs/`.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum Published {
    Config,
    /// Phase A: the master's orchestration plan.
    Plan,
    /// An agent's report.
    Report,
    /// What the cross-check finds of the reports' claims.
    CrossCheck,
    /// What an agent decides on its contested claims in a later round.
    Decisions,
    /// Phase B: the master's final synthesis.
    Synthesis,
    /// The HTTP API, as an OpenAPI 3.1 document.
    Api,
}

impl Published {
    fn schema(self) -> serde_json::Value {
        match self {
            Published::Config => config::json_schema(),
            Published::Plan => schemars::schema_for!(OrchestrationPlan).to_value(),
            Published::Report => schemars::schema_for!(AgentReport).to_value(),
            Published::CrossCheck => schemars::schema_for!(CrossCheckReply).to_value(),
            Published::Decisions => schemars::schema_for!(Decisions).to_value(),
            Published::Synthesis => schemars::schema_for!(FinalSynthesis).to_value(),
            Published::Api => http::document(&Limits::default()),
        }
    }
}

pub(super) fn run(env: &Env, command: &ConfigCommand) -> Done {
    match command {
        ConfigCommand::Schema { of } => say(format_args!("{:#}", of.schema())),
        ConfigCommand::Check => {
            let loaded = config::load(env).and_then(with_weights);
            let config = local::checked(env, loaded)?;
            print(&config);
        }
    }
    Ok(())
}

/// Refuses a configuration whose in-process model has no weights. A command that loads the model
/// first checks what it needs of the processor.
fn with_weights(config: Config) -> Result<Config, Problems> {
    let is_missing =
        |model: &&RoleModel| model.kind == ProviderKind::Local && !Path::new(&model.model).exists();
    let models = config.roles.values().flat_map(RoleModel::with_fallbacks);
    let missing: Vec<&RoleModel> = models.filter(is_missing).collect();
    match missing.first() {
        Some(missing) => Err(Problems(vec![Problem::weights_missing(&missing.model)])),
        None => Ok(config),
    }
}

fn print(config: &Config) {
    let policy = &config.policy;
    say(format_args!(
        "the configuration is good ({})",
        config.source
    ));
    for warning in config.all_warnings(Clock::System.now()) {
        tell!("conclave: warning: {warning}");
    }
    for (role, model) in &config.roles {
        say(format_args!("  {role:<11} {}", described(model)));
    }
    let (normal, deep) = (policy.normal_max, policy.deep_max);
    say(format_args!(
        "  caps        {normal} in ask and audit, {deep} in deep"
    ));
    for (whose, most) in [
        ("all runs", policy.limits.daily_usd),
        ("each user", policy.limits.user_daily_usd),
        ("each guild", policy.limits.guild_daily_usd),
    ] {
        if let Some(most) = most.map(Usd::from_dollars) {
            say(format_args!("  limit       {most} a day for {whose}"));
        }
    }
    let is_guarded = config.bind.ip().is_loopback() || config.token.is_some();
    let warning = ", reachable from outside: serve refuses that without a token in the database";
    let warning = if is_guarded { "" } else { warning };
    say(format_args!("  listens on  {}{warning}", config.bind));
}

/// Describes the model of a role: its provider, its price and its settings.
fn described(model: &RoleModel) -> String {
    let price = match model.price {
        Some(price) if price != Price::FREE => {
            let (input, output) = (price.rate.input, price.rate.output);
            format!("${input} in, ${output} out per million tokens")
        }
        _ => "free".to_owned(),
    };
    let effort = model.effort.map(|effort| format!(", effort {effort}"));
    let effort = effort.unwrap_or_default();
    let form = match model.output {
        OutputForm::Text => ", plain text",
        OutputForm::Json => "",
    };
    let later = model.with_fallbacks().skip(1);
    let later = later.map(|other| format!("; else {} at {}", other.model, other.provider));
    let fallback: String = later.collect();
    let (id, provider, tokens) = (&model.model, &model.provider, model.max_tokens);
    format!("{id} at {provider} ({price}, {tokens} tokens out{effort}{form}){fallback}")
}
