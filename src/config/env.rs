//! The environment, read once.

use std::collections::BTreeMap;
use std::path::Path;

/// Every variable that the program reads, with its default; shipped to users as it is.
const EXAMPLE: &str = include_str!("../../.env.example");

/// Where `make model` puts the weights of the in-process model.
pub const LOCAL_MODEL_DEFAULT: &str = "data/models/SmolLM2-135M-Instruct.Q4_1.gguf";

/// A snapshot of the process environment over the `.env` file over the model ids of `.env.example`.
#[derive(Clone, Default)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// The process environment, with `.env` in the working directory for what it does not set.
    #[allow(clippy::disallowed_methods, reason = "this is where the environment is read")]
    pub fn load() -> Self {
        let mut all = BTreeMap::new();
        if Path::new(".env").is_file()
            && let Ok(file) = dotenvy::from_path_iter(".env")
        {
            all.extend(file.flatten());
        }
        all.extend(std::env::vars());
        Self::of(all)
    }

    /// Exactly these variables, over the default model ids.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut all: BTreeMap<String, String> = dotenvy::from_read_iter(EXAMPLE.as_bytes())
            .flatten()
            .filter(|(name, _)| name.ends_with("_MODEL"))
            .collect();
        all.extend(variables);
        Self(all)
    }

    /// The value of a variable; one that is empty or only spaces counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// The value of a variable as it is set, be it empty: for those where "set to nothing" is a setting.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim())
    }

    pub fn get_or<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.get(name).unwrap_or(default)
    }
}

impl std::fmt::Debug for Env {
    /// Names only: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
