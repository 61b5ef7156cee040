//! Finds the current config: the one that `CONCLAVE_CONFIG` names, a file on the search path, or a
//! built-in one.

use std::io::ErrorKind;
use std::path::PathBuf;

use super::file::File;
use super::presets::{PRESETS, Preset};
use super::{Env, Problem, Problems};

const FILE: &str = "llm.config.json";

/// The built-in configs, by name. The same files are in the repository.
pub const BUILT_IN: [(&str, &str); 7] = [
    ("anthropic", include_str!("../../llm.config.json")),
    ("openai", include_str!("../../configs/openai.json")),
    ("xai", include_str!("../../configs/xai.json")),
    ("openrouter", include_str!("../../configs/openrouter.json")),
    ("ollama", include_str!("../../configs/ollama.json")),
    ("mixed", include_str!("../../configs/mixed.json")),
    ("local", include_str!("../../llm.config.local.json")),
];

const OLLAMA_CONTEXT: &str = "Ollama cuts prompts to 4096 tokens unless it runs with OLLAMA_CONTEXT_LENGTH=16384 or more \
                              (conclave doctor checks it)";

/// The text of a config and where it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub text: String,
    /// For people: a path, or "built-in NAME".
    pub shown: String,
    /// Why this config was chosen and what the alternatives are, if none was named.
    pub notice: Option<String>,
}

impl Source {
    /// Names the file in front of the places in it. Problems of `.env` files have their own place.
    pub fn placed(&self, Problems(mut problems): Problems, env: &Env) -> Problems {
        let inside = problems.iter_mut();
        let inside = inside.filter(|it| it.place.starts_with('/') && !env.problems.contains(it));
        for problem in inside {
            problem.place = format!("{} {}", self.shown, problem.place);
        }
        Problems(problems)
    }
}

/// Returns a built-in config.
pub fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// Returns the default model of a variable: the one in the provider's built-in config.
pub(super) fn default_model(provider: &str, variable: &str) -> Option<String> {
    let file: File = serde_json::from_str(built_in(provider)?).ok()?;
    let mut roles = file.models.roles.into_values();
    let role = roles.find(|role| role.model.as_deref() == Some(variable));
    role?.default_model
}

/// Returns the file or the built-in config that a command in this folder uses, as shown to people.
/// `None` if it cannot be read.
pub fn current(env: &Env) -> Option<String> {
    find(env).ok().map(|source| source.shown)
}

/// Finds the current config.
///
/// # Errors
/// If the file that was named cannot be read.
pub(super) fn find(env: &Env) -> Result<Source, Problem> {
    if let Some(source) = named(env)? {
        return Ok(source);
    }
    let with_keys = providers_with_keys(env);
    // Without any key, it is the shipped config, whose check reports what is missing.
    // A line of `.env` that cannot be read may have its key.
    let unread = || {
        PRESETS
            .iter()
            .find(|preset| env.is_unread(&preset.variable()))
    };
    let first = with_keys.first().copied();
    let name = first
        .or_else(|| Some(unread()?.name))
        .unwrap_or("anthropic");
    let notice = with_keys.first().map(|name| {
        let variable = Preset::of(name).map(Preset::variable).unwrap_or_default();
        // The config "mixed" has no role of a server on this machine.
        let mixed = with_keys.iter().filter(|it| **it != "ollama");
        let others = match Vec::from_iter(mixed.copied()).as_slice() {
            [first, others @ ..] if *first == *name && !others.is_empty() => {
                let others = others.join(", ");
                format!("; keys for {others} are set too: CONCLAVE_CONFIG=mixed assigns several model families")
            }
            _ => String::new(),
        };
        let context = if *name == "ollama" { format!("; {OLLAMA_CONTEXT}") } else { String::new() };
        format!("no config file: using the built-in {name} config, because {variable} is set{others}{context}")
    });
    Ok(of_built_in(name, notice))
}

fn of_built_in(name: &str, notice: Option<String>) -> Source {
    Source {
        text: built_in(name).unwrap_or_default().to_owned(),
        shown: format!("built-in {name}"),
        notice,
    }
}

/// Returns the text of the config file, or that of an empty file if there is none and none was
/// named.
///
/// # Errors
/// As [`find`].
pub(super) fn find_file(env: &Env) -> Result<String, Problems> {
    let source = named(env).map_err(|problem| Problems(vec![problem]))?;
    Ok(source.map_or_else(|| "{}".to_owned(), |source| source.text))
}

fn named(env: &Env) -> Result<Option<Source>, Problem> {
    if let Some(name) = env.get("CONCLAVE_CONFIG") {
        if built_in(name).is_some() {
            let notice = (name == "ollama").then(|| OLLAMA_CONTEXT.to_owned());
            return Ok(Some(of_built_in(name, notice)));
        }
        let read = of_file(name).map_err(|error| unreadable(env.config_place(), name, &error));
        return read.map(Some);
    }
    let users = user_folder(env).map(|folder| folder.join(FILE));
    for path in std::iter::once(PathBuf::from(FILE)).chain(users) {
        let shown = path.display().to_string();
        match of_file(&shown) {
            Ok(source) => return Ok(Some(source)),
            // A link to no file is a mistake.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
                    && !path.is_symlink() => {}
            Err(error) => return Err(unreadable(&shown, &shown, &error)),
        }
    }
    Ok(None)
}

fn of_file(path: &str) -> std::io::Result<Source> {
    Ok(Source {
        text: std::fs::read_to_string(path)?,
        shown: path.to_owned(),
        notice: None,
    })
}

fn unreadable(place: &str, path: &str, error: &std::io::Error) -> Problem {
    let names = BUILT_IN.map(|(name, _)| name).join(", ");
    let (why, hint) = match error.kind() {
        ErrorKind::NotFound => (
            error.kind().to_string(),
            format!(" (built-in configs: {names})"),
        ),
        ErrorKind::InvalidData => ("it is not UTF-8".to_owned(), String::new()),
        kind => (kind.to_string(), String::new()),
    };
    let detail = format!("cannot read the config file {path:?}: {why}{hint}");
    Problem::new(place, detail)
}

/// Returns the names of the built-in configs whose provider can be used with this environment, in
/// their order.
pub fn providers_with_keys(env: &Env) -> Vec<&'static str> {
    let has_key = |preset: &&Preset| env.get(&preset.variable()).is_some();
    let presets = PRESETS.iter().filter(has_key);
    presets.map(|preset| preset.name).collect()
}

/// Returns `$XDG_CONFIG_HOME/conclave`, the folder of the user's own config.
pub fn user_folder(env: &Env) -> Option<PathBuf> {
    Some(base(env, "XDG_CONFIG_HOME", ".config")?.join("conclave"))
}

/// Returns the folder of the data: `data` in the working directory if it exists, else
/// `$XDG_DATA_HOME/conclave`.
pub(super) fn data_folder(env: &Env) -> PathBuf {
    let here = PathBuf::from("data");
    if here.is_dir() {
        return here;
    }
    base(env, "XDG_DATA_HOME", ".local/share").map_or(here, |base| base.join("conclave"))
}

/// Returns the folder that a variable names, else the usual one below the home directory. As the
/// XDG Base Directory specification demands, a relative path counts as unset.
fn base(env: &Env, variable: &str, usual: &str) -> Option<PathBuf> {
    let given = env
        .get(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    given.or_else(|| Some(PathBuf::from(env.get("HOME")?).join(usual)))
}
