//! `conclave config`.

use clap::Subcommand;

use super::exit::{Exit, fail};
use crate::config::{self, Env, OutputForm};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the config file and the environment; every problem is reported at once.
    Check,
    /// Print the JSON schema of the config file.
    Schema,
}

pub(super) fn run(env: &Env, command: &ConfigCommand) -> Exit {
    match command {
        ConfigCommand::Schema => {
            println!("{}", serde_json::to_string_pretty(&config::json_schema()).unwrap_or_default());
            Exit::Done
        }
        ConfigCommand::Check => match config::load(env) {
            Err(problems) => fail(Exit::Configuration, problems),
            Ok(config) => {
                println!("the configuration is good ({})", env.get_or("CONCLAVE_CONFIG", "llm.config.json"));
                for (role, model) in &config.roles {
                    let price =
                        model.price.map_or("free".to_owned(), |p| format!("${} in, ${} out", p.input, p.output));
                    let form = if model.output == OutputForm::Text { ", plain text" } else { "" };
                    let tokens = model.max_tokens;
                    println!(
                        "  {role:<11} {} at {} ({price} per million tokens, {tokens} out{form})",
                        model.model, model.provider
                    );
                }
                println!(
                    "  caps        {} in ask and audit, {} in deep",
                    config.policy.normal_max, config.policy.deep_max
                );
                println!("  listens on  {}", config.bind);
                Exit::Done
            }
        },
    }
}
