//! `conclave init`: finds or asks for a key, writes the config and `.env`, and probes the models.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tempfile::NamedTempFile;

use super::doctor;
use super::exit::{Done, Exit, fail, failing};
use super::local::check_files;
use super::stop::stop_signal;
use super::terminal::say;
use crate::config::{self, Env, PRESETS, Preset};
use crate::journal::folder_of;

const CONFIG: &str = "llm.config.json";

/// The file mode of secrets: only the owner can read and write.
const PRIVATE: u32 = 0o600;

/// The file mode of a config, which the umask lowers.
const READABLE: u32 = 0o644;

#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// Whose models to use: anthropic, openai, xai, openrouter, ollama or mixed. Default: the one
    /// whose key is set.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Write to the user's config folder ($XDG_CONFIG_HOME/conclave), for use in any folder,
    /// instead of to this one.
    #[arg(long)]
    global: bool,
    /// Replace a config that is there. The former one is kept beside it.
    #[arg(long)]
    force: bool,
    /// Do not call the models to see whether they answer.
    #[arg(long)]
    no_probe: bool,
}

/// What happens to a config and to values that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Former {
    Kept,
    Replaced,
}

/// Writes the files. `has_config` says whether `--config` is given.
pub(super) async fn run(env: &Env, arguments: &InitArguments, has_config: bool) -> Done {
    if has_config {
        let why = "init reads no config: --provider NAME chooses the models, and --global where it writes";
        return Err(fail(Exit::Usage, why));
    }
    // Every later command would refuse the file.
    check_files(env)?;
    let folder = folder(env, arguments.global).map_err(failing(Exit::Usage))?;
    let config = folder.join(CONFIG);
    if config.exists() && !arguments.force {
        let why = format!("{} is there already: --force replaces it", config.display());
        return Err(fail(Exit::Usage, why));
    }
    let (provider, keys) = chosen(env, arguments).await?;
    let settings: Vec<(String, String)> =
        keys.into_iter().chain(addresses(env, &provider)).collect();
    let former = if arguments.force {
        Former::Replaced
    } else {
        Former::Kept
    };
    let kept = write_all(&folder, &provider, &settings, former);
    let kept = kept.map_err(failing(Exit::Unexpected))?;
    let shown = config.display();
    say(format_args!("wrote          {shown} ({provider})"));
    say_settings(&folder.join(".env"), &settings, &kept);
    if let Some(used) = config::current(&Env::load())
        && std::fs::canonicalize(&used).ok() != std::fs::canonicalize(&config).ok()
    {
        let why = "commands in this folder use another config, which comes first";
        say(format_args!("not used       {shown}: {why}: {used}"));
    }
    if provider == "ollama" {
        let hint =
            "start Ollama with OLLAMA_CONTEXT_LENGTH=16384: its default of 4096 cuts prompts";
        say(format_args!("context        {hint}"));
    }
    if arguments.no_probe {
        return Ok(());
    }
    let env = Env::load().with("CONCLAVE_CONFIG", config.display().to_string());
    doctor::run(&env, false).await?;
    let next = "conclave ask \"What does HTTP status 422 mean?\"";
    say(format_args!("next           {next}"));
    Ok(())
}

fn say_settings(file: &Path, settings: &[(String, String)], kept: &BTreeSet<String>) {
    let names = settings.iter().map(|(name, _)| name.as_str());
    let names: Vec<&str> = names.filter(|name| !kept.contains(*name)).collect();
    let file = file.display();
    if !names.is_empty() {
        let names = names.join(", ");
        say(format_args!("wrote          {file} (mode 0600: {names})"));
    }
    for name in kept {
        let why = "it has another value there; --force replaces it";
        say(format_args!("kept           {name} in {file}: {why}"));
    }
}

/// Returns the addresses of the environment that the config uses. They are stored, because later
/// commands must find what is probed now.
fn addresses(env: &Env, provider: &str) -> Vec<(String, String)> {
    let is_used = |preset: &&Preset| preset.name == provider || provider == "mixed";
    let variables = PRESETS.iter().filter(is_used);
    let variables = variables.map(|preset| format!("{}_BASE_URL", preset.name.to_uppercase()));
    set(env, variables)
}

/// Returns the variables that are set, with their values.
fn set(env: &Env, names: impl Iterator<Item = String>) -> Vec<(String, String)> {
    let set = names.filter_map(|name| Some((name.clone(), env.get(&name)?.to_owned())));
    set.collect()
}

/// Returns the variables of the keys of all providers.
fn key_variables() -> Vec<String> {
    let with_key = PRESETS.iter().filter(|preset| preset.needs_key());
    with_key.map(Preset::variable).collect()
}

/// Returns the name of the built-in config to write, and the keys that go into `.env`.
///
/// # Errors
/// The exit code, after the reason was printed.
async fn chosen(
    env: &Env,
    arguments: &InitArguments,
) -> Result<(String, Vec<(String, String)>), Exit> {
    let found = config::providers_with_keys(env);
    let provider = match (&arguments.provider, found.as_slice()) {
        (Some(name), _) if name == "local" || config::built_in(name).is_none() => {
            let known = "anthropic, openai, xai, openrouter, ollama or mixed";
            let why = format!("there is no provider {name:?}: {known}");
            return Err(fail(Exit::Usage, why));
        }
        (Some(name), _) => name.clone(),
        (None, [only]) => (*only).to_owned(),
        (None, [_, ..]) => "mixed".to_owned(),
        (None, []) => ask_for_provider().map_err(failing(Exit::Usage))?,
    };
    let Some(preset) = Preset::of(&provider) else {
        let keys = set(env, key_variables().into_iter());
        if keys.len() < 2 {
            let variables = key_variables().join(", ");
            let why = format!("mixed needs two keys or more of {variables}");
            return Err(fail(Exit::Usage, why));
        }
        return Ok((provider, keys));
    };
    let keys = if preset.needs_key() {
        vec![key_of(env, preset.variable()).await?]
    } else {
        vec![]
    };
    Ok((provider, keys))
}

/// Returns the key of a provider from its variable or from the terminal.
///
/// # Errors
/// The exit code, after the reason was printed.
async fn key_of(env: &Env, variable: String) -> Result<(String, String), Exit> {
    let key = match env.get(&variable) {
        Some(key) => key.to_owned(),
        None if std::io::stdin().is_terminal() => hidden(&variable).await?,
        None => {
            let why = "is not set, and there is no terminal to ask for it";
            return Err(fail(Exit::Usage, format!("{variable} {why}")));
        }
    };
    if key.is_empty() {
        return Err(fail(Exit::Usage, format!("{variable} is empty")));
    }
    Ok((variable, key))
}

/// Reads a key from the terminal, which does not show it. A signal that ends the program makes the
/// terminal show again what is typed.
async fn hidden(variable: &str) -> Result<String, Exit> {
    let stop = stop_signal();
    let before = tcgetattr(std::io::stdin());
    let prompt = format!("{variable} (not shown)");
    let (sender, key) = tokio::sync::oneshot::channel();
    // The end of the program does not wait for this thread.
    std::thread::spawn(move || {
        let prompt = dialoguer::Password::new().with_prompt(prompt);
        let _ = sender.send(prompt.interact());
    });
    tokio::select! {
        Ok(key) = key => {
            let key = key.map_err(|error| format!("no key was given: {error}"));
            Ok(key.map_err(failing(Exit::Usage))?.trim().to_owned())
        }
        _ = stop => {
            if let Ok(before) = before {
                let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
            }
            tell!("");
            Err(fail(Exit::Interrupted, "no key was given"))
        }
    }
}

fn ask_for_provider() -> Result<String, String> {
    if !std::io::stdin().is_terminal() {
        let variables = key_variables().join(", ");
        return Err(format!(
            "no key is set and there is no terminal to ask for one: set one of {variables}, or give --provider ollama"
        ));
    }
    let names = PRESETS.map(|preset| preset.name);
    let known = format!("one of {}", names.join(", "));
    // A list to move in would take a typed name for keys, and hides the cursor of an interrupted
    // terminal.
    let name: String = dialoguer::Input::new()
        .with_prompt(format!("Whose models? ({})", names.join(", ")))
        .default(names.first().copied().unwrap_or_default().to_owned())
        .validate_with(|name: &String| {
            let is_known = names.contains(&name.trim());
            is_known.then_some(()).ok_or_else(|| known.clone())
        })
        .interact_text()
        .map_err(|error| format!("no provider was chosen: {error}"))?;
    Ok(name.trim().to_owned())
}

fn folder(env: &Env, global: bool) -> Result<PathBuf, String> {
    if !global {
        return Ok(PathBuf::from("."));
    }
    config::user_folder(env)
        .ok_or_else(|| "neither XDG_CONFIG_HOME nor HOME is set: there is no user's folder".into())
}

/// Adds the settings to `.env`, replaced if forced, and writes the config. Keeps the former config
/// beside it. Writes nothing if a setting cannot be written. Returns the settings for which `.env`
/// keeps another value.
fn write_all(
    folder: &Path,
    provider: &str,
    settings: &[(String, String)],
    former: Former,
) -> Result<BTreeSet<String>, String> {
    let said = |path: &Path, error: &std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(|error| said(folder, &error))?;
    let config = folder.join(CONFIG);
    let kept = match settings {
        [] => BTreeSet::new(),
        _ => add_settings(&folder.join(".env"), settings, former)?,
    };
    let text = config::built_in(provider).unwrap_or_default();
    // The schema is beside the file only in the repository.
    let lines = text.lines().filter(|line| !line.contains("\"$schema\""));
    let text = lines.fold(String::new(), |all, line| all + line + "\n");
    let draft = drafted(&config, &text, READABLE).map_err(|error| said(&config, &error))?;
    if config.exists() {
        let aside = unused(folder);
        std::fs::rename(&config, &aside).map_err(|error| said(&aside, &error))?;
    }
    let named = draft.persist(&config);
    named.map_err(|error| said(&config, &error.error))?;
    Ok(kept)
}

/// Writes a text to a file without a name yet, in the folder of its final one. A full disk thus leaves
/// what is there.
fn drafted(path: &Path, text: &str, mode: u32) -> std::io::Result<NamedTempFile> {
    let mut draft = tempfile::Builder::new();
    let draft = draft.permissions(Permissions::from_mode(mode));
    let mut draft = draft.tempfile_in(folder_of(path))?;
    draft.write_all(text.as_bytes())?;
    draft.as_file().sync_all()?;
    Ok(draft)
}

/// Returns an unused file name for the former config.
fn unused(folder: &Path) -> PathBuf {
    let first = folder.join(format!("{CONFIG}.old"));
    let others = (2u32..).map(|n| folder.join(format!("{CONFIG}.old{n}")));
    let mut paths = std::iter::once(first.clone()).chain(others);
    paths.find(|path| !path.exists()).unwrap_or(first)
}

/// Adds the settings that the file does not have yet, and makes it readable by its owner only.
/// Other values are replaced only if forced; else their names are returned.
fn add_settings(
    path: &Path,
    settings: &[(String, String)],
    former: Former,
) -> Result<BTreeSet<String>, String> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(said(error)),
    };
    let (mut lines, mut kept): (Vec<String>, _) =
        (text.lines().map(str::to_owned).collect(), BTreeSet::new());
    for (name, value) in settings {
        if value.contains(['\'', '\n', '\r']) {
            let why = "holds a quote or a line break: it cannot be written to .env";
            return Err(format!("{name} {why}"));
        }
        let new = format!("{name}='{value}'");
        let is_set = |line: &&mut String| {
            line.trim_start()
                .trim_start_matches("export ")
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('='))
        };
        match lines.iter_mut().find(is_set) {
            None => lines.push(new),
            Some(line) => {
                let old = line.split_once('=').map_or("", |(_, old)| old.trim());
                let old = old.trim_matches(['\'', '"']);
                // A setting without a value is a placeholder.
                if old.is_empty() || former == Former::Replaced {
                    *line = new;
                } else if old != value {
                    kept.insert(name.clone());
                }
            }
        }
    }
    // A link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let draft = drafted(&path, &(lines.join("\n") + "\n"), PRIVATE).map_err(said)?;
    draft.persist(&path).map_err(|error| said(error.error))?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_added_to_what_is_there_and_read_by_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".env");
        let former = "CONCLAVE_BIND=127.0.0.1:1\nXAI_API_KEY=\nOPENAI_API_KEY=mine";
        std::fs::write(&file, former).unwrap();
        let keys = ["OPENAI_API_KEY", "XAI_API_KEY", "ANTHROPIC_API_KEY"]
            .map(|name| (name.to_owned(), "k$1".to_owned()));
        let kept = add_settings(&file, &keys, Former::Kept).unwrap();
        assert_eq!(kept, BTreeSet::from(["OPENAI_API_KEY".to_owned()]));
        let text = || std::fs::read_to_string(&file).unwrap();
        let expected = "CONCLAVE_BIND=127.0.0.1:1\nXAI_API_KEY='k$1'\nOPENAI_API_KEY=mine\nANTHROPIC_API_KEY='k$1'\n";
        assert_eq!(text(), expected);
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE);
        assert!(
            add_settings(&file, &keys, Former::Replaced)
                .unwrap()
                .is_empty()
        );
        assert!(text().contains("OPENAI_API_KEY='k$1'"));
    }

    #[test]
    fn a_key_that_cannot_be_written_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let key = [("OPENAI_API_KEY".to_owned(), "it's".to_owned())];
        assert!(write_all(folder.path(), "openai", &key, Former::Kept).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_config_that_is_replaced_is_kept_beside_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(CONFIG), "mine").unwrap();
        write_all(folder.path(), "openai", &[], Former::Replaced).unwrap();
        let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("llm.config.json.old"), "mine");
        let written = read(CONFIG);
        assert!(written.contains("gpt-6") && !written.contains("$schema"));
    }
}
