//! This machine's side of the commands: the configuration's files, the journal, and a service in
//! this process.

use std::path::Path;
use std::sync::Arc;

use super::exit::{Done, Exit, fail, failing};
use crate::app::{App, Rejected, open_store};
use crate::clock::Clock;
use crate::committee::Prompts;
use crate::config::{self, Config, Database, Env, Problem, Problems, RoleModel};
use crate::domain::ProviderKind;
use crate::journal::Store;

/// Fails if a line of a `.env` file cannot be read.
pub(super) fn check_files(env: &Env) -> Done {
    if env.problems.is_empty() {
        return Ok(());
    }
    let problems = config::Problems(env.problems.clone());
    Err(fail(Exit::Configuration, problems))
}

/// Loads the configuration. Says on standard error why it was chosen, if none was named.
pub(super) fn load(env: &Env) -> Result<Config, Exit> {
    let config = with_files(env, config::load(env)).map_err(failing(Exit::Configuration))?;
    if let Some(notice) = &config.notice {
        tell!("{notice}");
    }
    Ok(config)
}

/// Checks the files that a configuration names: the operator's prompts and the weights of the
/// in-process model.
///
/// # Errors
/// Every problem of the configuration and of the files, in one list.
pub(super) fn with_files(
    env: &Env,
    loaded: Result<Config, Problems>,
) -> Result<Config, Problems> {
    let of_files = prompt_problems(env);
    let (config, mut problems) = match loaded {
        Ok(config) => {
            let weights = missing_weights(&config);
            (Some(config), weights)
        }
        Err(Problems(problems)) => (None, problems),
    };
    problems.extend(of_files);
    config
        .filter(|_| problems.is_empty())
        .ok_or(Problems(problems))
}

fn prompt_problems(env: &Env) -> Vec<Problem> {
    // That the folder is missing is a problem of the configuration.
    let folder = env.get("CONCLAVE_PROMPTS_DIR").map(Path::new);
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        return vec![];
    };
    let read = Prompts::load(Some(folder), &[]);
    read.err().map(|problems| problems.0).unwrap_or_default()
}

fn missing_weights(config: &Config) -> Vec<Problem> {
    let is_missing =
        |model: &&RoleModel| model.kind == ProviderKind::Local && !Path::new(&model.model).exists();
    let mut models = config.roles.values().flat_map(RoleModel::with_fallbacks);
    let missing = models.find(is_missing);
    let problem = missing.map(|missing| Problem::weights_missing(&missing.model));
    problem.into_iter().collect()
}

/// Starts the service in this process.
pub(super) async fn start(config: Config) -> Result<Arc<App>, Exit> {
    let app = App::start(config, Clock::System).await;
    app.map_err(|error| fail(Exit::from(&error), error))
}

/// Opens the journal that the environment names.
pub(super) async fn open(env: &Env) -> Result<Arc<dyn Store>, Exit> {
    // A line that cannot be read could name another database.
    check_files(env)?;
    let owner = Clock::System.new_id().to_string();
    let store = open_store(&database(env)?, &owner).await;
    store.map_err(failing(Exit::Unexpected))
}

/// Returns the database that the environment names.
///
/// # Errors
/// The exit code, after the reason was printed.
pub(super) fn database(env: &Env) -> Result<Database, Exit> {
    let read = Database::of(env).map_err(|why| format!("DATABASE_URL: {why}"));
    read.map_err(failing(Exit::Configuration))
}

/// Prints why a request was rejected, and returns the exit code.
pub(super) fn refused(rejected: &Rejected) -> Exit {
    match rejected {
        Rejected::Invalid(problems) => {
            for problem in problems {
                let field = problem.pointer.trim_start_matches('/');
                tell!("conclave: {field} {}", problem.detail);
            }
            Exit::Refused
        }
        Rejected::KeyReused { .. }
        | Rejected::Busy
        | Rejected::Draining
        | Rejected::NoSuchProposal
        | Rejected::ProposalGone(_)
        | Rejected::ToolsOff
        | Rejected::NoSuchPlan
        | Rejected::PlanClosed(_) => fail(Exit::Refused, rejected),
        Rejected::Spent(_) | Rejected::TooOften { .. } => fail(Exit::Server, rejected),
        Rejected::Defect(_) | Rejected::Journal(_) => fail(Exit::Unexpected, rejected),
    }
}
