//! Builds the service from its config: stores, models, secrets.

use super::StartError;
use crate::attachments::{Bounds, Fetcher};
use crate::committee::{Deps, Prompts, checkers};
use crate::compute::Crashes;
use crate::config::{Config, Database};
use crate::journal::{PostgresStore, SqliteStore, Store, leave_to_folder_owner};
use crate::llm::{BreakerSettings, Registry};
use crate::tools::Toolbox;
#[cfg(feature = "local")]
use crate::{domain::ProviderKind, llm};
use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The file in the data folder that names the runs which crashed a process.
const CRASHES_FILE: &str = "crashes.log";

/// Opens the journal.
///
/// # Errors
/// If the database cannot be opened.
pub async fn open_store(
    database: &Database,
    owner: &str,
) -> Result<Arc<dyn Store>, crate::journal::Error> {
    Ok(match database {
        Database::Sqlite(path) => Arc::new(SqliteStore::open(path, owner).await?),
        Database::Postgres(address) => {
            Arc::new(PostgresStore::open(address.expose_secret(), owner).await?)
        }
    })
}

/// Returns the runs that crashed earlier processes, and notes those that crash this one.
pub(super) fn crashes(config: &Config) -> Crashes {
    let folder = match &config.database {
        Database::Sqlite(path) => path.parent().map(PathBuf::from).unwrap_or_default(),
        Database::Postgres(_) => config.data_folder.clone(),
    };
    let path = folder.join(CRASHES_FILE);
    let is_new = !path.exists();
    let opened = std::fs::create_dir_all(&folder).and_then(|()| Crashes::open(&path));
    if is_new && opened.is_ok() {
        leave_to_folder_owner(&path);
    }
    opened.unwrap_or_else(|error| {
        let path = path.display();
        tracing::warn!(%path, %error, "a run that crashes the process will not be recognised");
        Crashes::default()
    })
}

/// Opens the workspace of tool plans; `None` if they are off.
///
/// # Errors
/// [`StartError::Workspace`].
pub(super) fn toolbox(config: &Config) -> Result<Option<Arc<Toolbox>>, StartError> {
    let Some(root) = &config.tools_workspace else {
        return Ok(None);
    };
    let variable = |name: &str| config.program_variables.get(name).map(Into::into);
    let opened = Toolbox::open(root, variable).map_err(|error| StartError::Workspace {
        path: root.display().to_string(),
        error,
    })?;
    Ok(Some(Arc::new(opened)))
}

/// Minimum length of a password of the database that is removed from texts. Shorter ones are often
/// words that an answer may need ("postgres"), and no model is told them.
const MIN_PASSWORD_CHARS: usize = 16;

/// Returns every secret of the configuration, for redaction.
fn secrets(config: &Config) -> Vec<SecretString> {
    let keys = config
        .providers
        .values()
        .flat_map(|p| p.api_key.iter().chain(&p.secrets).cloned());
    let passwords = config.database_passwords.iter().cloned();
    let is_long = |it: &SecretString| it.expose_secret().chars().count() >= MIN_PASSWORD_CHARS;
    keys.chain(config.provider_keys.iter().cloned())
        .chain(config.token.clone())
        .chain(passwords.filter(is_long))
        .collect()
}

/// Returns the dependencies of a committee with these models.
///
/// # Errors
/// [`StartError::Prompts`].
pub(super) fn committee_of(config: &Config, models: Registry) -> Result<Deps, StartError> {
    let prompts = Prompts::load(
        config.prompts_dir.as_deref(),
        &config.policy.decisions.goals,
    )?;
    let secrets = secrets(config);
    Ok(Deps {
        policy: config.policy.clone(),
        checkers: checkers(&config.roles),
        roles: config.roles.clone(),
        models: models.redacting(&secrets),
        prompts,
        attachments: Fetcher::new(Bounds {
            hosts: config.attachment_hosts.clone(),
            most_bytes: config.policy.limits.attachment_bytes,
            timeout: Duration::from_secs(config.policy.limits.attachment_seconds),
        }),
        secrets,
    })
}

/// Opens every provider that the roles use.
///
/// # Errors
/// [`StartError`] if a provider's client or the in-process model cannot be opened.
pub async fn models(config: &Config) -> Result<Registry, StartError> {
    let policy = &config.policy;
    let breaker = BreakerSettings {
        failures: policy.breaker_failures,
        open_for: policy.breaker_open,
        // So that one run can make all its attempts while the provider fails for seconds.
        span: policy.all_pauses(),
        patience: policy.call_timeout / 2,
    };
    let registry = Registry::new(config.providers.values(), policy.connect_timeout, breaker)?;
    #[cfg(feature = "local")]
    let registry = with_local(config, registry).await?;
    Ok(registry)
}

#[cfg(feature = "local")]
async fn with_local(config: &Config, mut registry: Registry) -> Result<Registry, StartError> {
    for (name, provider) in config
        .providers
        .iter()
        .filter(|(_, p)| p.kind == ProviderKind::Local)
    {
        // All its roles have the same model.
        let role = config.roles.values().find(|role| role.provider == *name);
        let Some(path) = role.map(|role| PathBuf::from(&role.model)) else {
            continue;
        };
        let (owned, threads, parallel) = (name.clone(), provider.threads, provider.max_concurrent);
        tracing::info!(path = %path.display(), "loading the in-process model");
        let loaded = tokio::task::spawn_blocking(move || {
            llm::local::Local::load(&owned, &path, threads, parallel)
        });
        let failed = |detail: String| StartError::LocalModel {
            provider: name.clone(),
            detail,
        };
        let model = loaded
            .await
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| match error {
                llm::local::LoadError::ModelMissing { path } => {
                    let problem = crate::config::Problem::weights_missing(&path.to_string_lossy());
                    crate::config::Problems(vec![problem]).into()
                }
                other => failed(other.to_string()),
            })?;
        registry.insert(
            name.clone(),
            Arc::new(model),
            provider.max_concurrent.max(64),
        );
    }
    Ok(registry)
}
