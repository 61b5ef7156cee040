//! The environment, read once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{Problem, dotenv, source};

/// The path below the data folder to which `make model` writes the in-process model's weights.
pub const LOCAL_MODEL_DEFAULT: &str = "models/SmolLM2-135M-Instruct.Q4_1.gguf";

/// A snapshot of the environment. The variables of the process override those of `.env` in the
/// working directory, and these override the user's `.env`.
#[derive(Clone, Default)]
pub struct Env {
    variables: BTreeMap<String, String>,
    /// The problems of the `.env` files.
    pub problems: Vec<Problem>,
    /// The variables whose lines in the `.env` files are among these problems.
    unread: BTreeSet<String>,
    /// True if an option of the command line names the config.
    is_config_option: bool,
}

/// The one variable of which an empty value means something.
const MAY_BE_EMPTY: &str = "ATTACHMENT_HOSTS";

impl Env {
    /// Reads the process environment, and the `.env` files for what it does not set.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is where the environment is read"
    )]
    pub fn load() -> Self {
        // A value that is not UTF-8 keeps a sign that no setting accepts.
        let process = std::env::vars_os().filter_map(|(name, value)| {
            let value = value.to_string_lossy().into_owned();
            Some((name.into_string().ok()?, value))
        });
        Self::over_files(process.collect())
    }

    fn over_files(process: BTreeMap<String, String>) -> Self {
        let mut env = Self {
            variables: process,
            ..Self::default()
        };
        let users = source::user_folder(&env).map(|folder| folder.join(".env"));
        for file in std::iter::once(PathBuf::from(".env")).chain(users) {
            let contents = dotenv::read(&file);
            // If a file sets a variable twice, the last value counts, as in a shell.
            for (name, value) in BTreeMap::from_iter(contents.variables) {
                // An empty variable counts as unset.
                let known = env.variables.get(&name);
                if known.is_none_or(|known| known.trim().is_empty() && name != MAY_BE_EMPTY) {
                    env.variables.insert(name, value);
                }
            }
            env.problems.extend(contents.problems);
            env.unread.extend(contents.unread);
        }
        env
    }

    /// Returns an environment with exactly these variables.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns the environment with one variable set.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the environment with the config that the option `--config` names.
    #[must_use]
    pub fn with_config(self, config: &str) -> Self {
        Self {
            is_config_option: true,
            ..self.with("CONCLAVE_CONFIG", config)
        }
    }

    /// Returns the config that the option `--config` names.
    pub fn config_option(&self) -> Option<&str> {
        self.get("CONCLAVE_CONFIG")
            .filter(|_| self.is_config_option)
    }

    /// Returns what names the config, if anything does.
    pub(super) fn config_place(&self) -> &'static str {
        if self.is_config_option {
            "--config"
        } else {
            "CONCLAVE_CONFIG"
        }
    }

    /// True if a line of a `.env` file that cannot be read names this variable.
    pub(super) fn is_unread(&self, name: &str) -> bool {
        self.unread.contains(name)
    }

    /// Returns the value of a variable. An empty or blank one counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// Returns the value of a variable even if it is empty, for variables where an empty value is a
    /// setting.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim())
    }

    pub fn get_or<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.get(name).unwrap_or(default)
    }
}

impl std::fmt::Debug for Env {
    /// Shows only names, because values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}
