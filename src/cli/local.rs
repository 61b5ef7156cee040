//! This machine's side of the commands: the configuration's files, the journal, and a service in
//! this process.

use std::path::Path;
use std::sync::Arc;

use super::exit::{Done, Exit, fail, failing};
use crate::app::{App, Rejected, open_store};
use crate::clock::Clock;
use crate::committee::Prompts;
use crate::config::{self, Config, Database, Env, Problems};
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
    checked(env, config::load(env))
}

/// As [`load`], of a configuration that was read.
pub(super) fn checked(env: &Env, loaded: Result<Config, Problems>) -> Result<Config, Exit> {
    let config = with_prompts(env, loaded).map_err(failing(Exit::Configuration))?;
    if let Some(notice) = &config.notice {
        tell!("{notice}");
    }
    Ok(config)
}

/// Checks the operator's prompts beside a configuration.
///
/// # Errors
/// Every problem of both, in one list.
pub(super) fn with_prompts(
    env: &Env,
    loaded: Result<Config, Problems>,
) -> Result<Config, Problems> {
    // That the folder is missing is a problem of the configuration.
    let folder = env.get("CONCLAVE_PROMPTS_DIR").map(Path::new);
    let folder = folder.filter(|folder| folder.is_dir());
    let read = folder.map(|folder| Prompts::load(Some(folder), &[]));
    match (loaded, read.and_then(Result::err)) {
        (loaded, None) => loaded,
        (Ok(_), Some(problems)) => Err(problems),
        (Err(Problems(of_config)), Some(Problems(of_prompts))) => {
            Err(Problems([of_config, of_prompts].concat()))
        }
    }
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
    let database = database(env)?;
    let new = match &database {
        Database::Sqlite(path) if !path.exists() => Some(path.display()),
        Database::Sqlite(_) | Database::Postgres(_) => None,
    };
    let store = open_store(&database, &owner).await;
    let store = store.map_err(failing(Exit::Unexpected))?;
    if let Some(path) = new {
        let hint = "set DATABASE_URL, or run this in the folder of the service";
        tell!(
            "conclave: there was no database {path}: a new one was made. If that is wrong, {hint}"
        );
    }
    Ok(store)
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
