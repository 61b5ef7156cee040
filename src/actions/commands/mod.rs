//! The commands, one file each, and the registry that lists them.

mod check;
mod help;
mod lists;
mod memory_add;
mod memory_delete;
mod memory_search;
mod named_check;
mod narrate;
mod ooc;
mod roll;
mod sheet_create;
mod sheet_named;
mod sheet_show;
mod sheet_update;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;
use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::domain::{CommandName, RunId, Scope};
use crate::journal::{Effect, MemoryRow, SheetRow};
use crate::text::pattern;

pub use check::CheckArguments;
pub use help::HelpArguments;
pub use lists::PageArguments;
pub use memory_add::MemoryAddArguments;
pub use memory_delete::MemoryDeleteArguments;
pub use memory_search::MemorySearchArguments;
pub use narrate::{DoArguments, narration};
pub use ooc::OocArguments;
pub use roll::RollArguments;
pub use sheet_create::SheetCreateArguments;
pub use sheet_named::SheetNamedArguments;
pub use sheet_show::SheetShowArguments;
pub use sheet_update::SheetUpdateArguments;

/// Spellings of commands that bots and virtual tables document, or that the phrasings suggest.
pub const SPELLINGS: [(&str, CommandName); 20] = [
    ("r", CommandName::Roll),
    ("rr", CommandName::Roll),
    ("multiroll", CommandName::Roll),
    ("c", CommandName::Check),
    ("s", CommandName::Check),
    ("save", CommandName::Check),
    ("me", CommandName::Do),
    ("em", CommandName::Do),
    ("emote", CommandName::Do),
    ("action", CommandName::Do),
    ("sheet", CommandName::SheetShow),
    ("char", CommandName::SheetUse),
    ("character", CommandName::SheetUse),
    ("remember", CommandName::MemoryAdd),
    ("note", CommandName::MemoryAdd),
    ("notes", CommandName::MemoryList),
    ("memory", CommandName::MemoryList),
    ("memories", CommandName::MemoryList),
    ("recall", CommandName::MemorySearch),
    ("forget", CommandName::MemoryDelete),
];

/// Returns the command that a word or a full name stands for.
pub fn named(name: &str) -> Option<CommandName> {
    let spelling = SPELLINGS.iter().find(|(spelling, _)| *spelling == name);
    spelling
        .map(|(_, command)| *command)
        .or_else(|| name.parse().ok())
}

static INSIDE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(?:^|\s)([/!]([a-z]+))\b"));

/// Returns a known command inside a text, with what is written up to the end of its line. Commands
/// are read only at the beginning.
pub fn command_inside(text: &str) -> Option<(CommandName, &str)> {
    let mut found = INSIDE.captures_iter(text);
    let (command, sign) = found.find_map(|captures| {
        let command = named(&captures.get(2)?.as_str().to_lowercase())?;
        Some((command, captures.get(1)?))
    })?;
    let line = text.get(sign.start()..)?.lines().next()?;
    Some((command, line.trim_end_matches(['*', '_', ' '])))
}

/// The side effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// Changes and reads nothing.
    Nothing,
    /// Reads what its user has stored.
    ReadsOwn,
    /// Changes what its user has stored.
    WritesOwn,
    /// The committee may narrate the outcome, which costs money.
    Narrates,
}

/// One command. Its permission and its side effect have no default.
pub struct Command {
    pub name: CommandName,
    /// One sentence.
    pub help: &'static str,
    /// The scope that a token needs.
    pub permission: Scope,
    pub reach: SideEffect,
    /// Examples of its use.
    pub examples: &'static [&'static str],
    /// The JSON schema of its arguments.
    pub schema: fn() -> Value,
    /// Reads its arguments.
    read: fn(Value) -> Result<Action, String>,
}

/// Returns every command, in the order of the listings.
pub fn registry() -> [Command; 15] {
    [
        roll::command(),
        check::command(),
        narrate::command(),
        sheet_create::command(),
        sheet_show::command(),
        lists::sheets(),
        sheet_update::command(),
        sheet_named::switch(),
        sheet_named::deletion(),
        memory_add::command(),
        memory_search::command(),
        lists::memories(),
        memory_delete::command(),
        ooc::command(),
        help::command(),
    ]
}

/// A command with valid arguments.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Action {
    Roll(RollArguments),
    Check(CheckArguments),
    Do(DoArguments),
    SheetCreate(Box<SheetCreateArguments>),
    SheetShow(SheetShowArguments),
    SheetList(PageArguments),
    SheetUpdate(SheetUpdateArguments),
    SheetUse(SheetNamedArguments),
    SheetDelete(SheetNamedArguments),
    MemoryAdd(MemoryAddArguments),
    MemorySearch(MemorySearchArguments),
    MemoryList(PageArguments),
    MemoryDelete(MemoryDeleteArguments),
    Ooc(OocArguments),
    Help(HelpArguments),
}

impl Action {
    /// Validates arguments.
    ///
    /// # Errors
    /// What is wrong with them, for people.
    pub fn read(name: CommandName, arguments: Value) -> Result<Self, String> {
        match registry().into_iter().find(|command| command.name == name) {
            Some(command) => (command.read)(arguments),
            None => Err(format!("there is no command {name}")),
        }
    }

    pub fn name(&self) -> CommandName {
        match self {
            Action::Roll(_) => CommandName::Roll,
            Action::Check(_) => CommandName::Check,
            Action::Do(_) => CommandName::Do,
            Action::SheetCreate(_) => CommandName::SheetCreate,
            Action::SheetShow(_) => CommandName::SheetShow,
            Action::SheetList(_) => CommandName::SheetList,
            Action::SheetUpdate(_) => CommandName::SheetUpdate,
            Action::SheetUse(_) => CommandName::SheetUse,
            Action::SheetDelete(_) => CommandName::SheetDelete,
            Action::MemoryAdd(_) => CommandName::MemoryAdd,
            Action::MemorySearch(_) => CommandName::MemorySearch,
            Action::MemoryList(_) => CommandName::MemoryList,
            Action::MemoryDelete(_) => CommandName::MemoryDelete,
            Action::Ooc(_) => CommandName::Ooc,
            Action::Help(_) => CommandName::Help,
        }
    }

    /// Returns the arguments as the command's schema has them.
    pub fn arguments(&self) -> Value {
        json!(self)
    }

    /// Returns the names of a command's arguments.
    pub fn argument_names(name: CommandName) -> Vec<String> {
        let command = registry().into_iter().find(|command| command.name == name);
        let schema = command.map_or(Value::Null, |command| (command.schema)());
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.map_or(vec![], |all| all.keys().cloned().collect())
    }

    /// True if the command adds to what its user has stored.
    pub fn stores(&self) -> bool {
        matches!(
            self,
            Action::MemoryAdd(_) | Action::SheetCreate(_) | Action::SheetUpdate(_)
        )
    }

    /// True if the command changes what its user has stored.
    pub fn changes(&self) -> bool {
        self.stores() || self.name().is_deletion() || matches!(self, Action::SheetUse(_))
    }

    /// Returns what has to be loaded before the execution.
    pub fn needs(&self) -> Requirements {
        match self {
            Action::Check(_)
            | Action::Do(_)
            | Action::SheetCreate(_)
            | Action::SheetShow(_)
            | Action::SheetList(_)
            | Action::SheetUpdate(_)
            | Action::SheetUse(_)
            | Action::SheetDelete(_) => Requirements::Sheets,
            Action::MemoryAdd(_) => Requirements::MemoryCount,
            Action::MemorySearch(a) => Requirements::Memories {
                terms: a.terms(),
                most: memory_search::MAX_FOUND,
            },
            Action::MemoryList(page) => Requirements::MemoryPage {
                skip: page.skipped(),
                most: lists::PAGE_SIZE as u32,
            },
            Action::MemoryDelete(a) => a.needs(),
            Action::Roll(_) | Action::Ooc(_) | Action::Help(_) => Requirements::Nothing,
        }
    }
}

/// The stored data that a command needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirements {
    Nothing,
    Sheets,
    MemoryCount,
    Memories {
        terms: Vec<String>,
        most: u32,
    },
    /// The newest memories but the first `skip`, and the number of all.
    MemoryPage {
        skip: usize,
        most: u32,
    },
    /// The memory that an action has added.
    Memory(RunId),
}

/// The loaded data, always the user's own.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The action's id. A stored memory gets it too.
    pub id: String,
    /// When the action was offered, if this is its confirmation.
    pub offered_at: Option<Timestamp>,
    pub sheets: Vec<SheetRow>,
    pub memories: Vec<MemoryRow>,
    pub memory_count: u64,
    /// The bytes that the user may still store.
    pub bytes_left: u64,
    /// The allowed commands.
    pub allowed: BTreeSet<CommandName>,
}

impl Inputs {
    /// Returns a sentence that names a command, behind a space, or nothing if the command is not
    /// allowed.
    fn advice(&self, command: CommandName, sentence: &str) -> String {
        if self.allowed.contains(&command) {
            format!(" {sentence}")
        } else {
            String::new()
        }
    }

    /// Returns what a user without a sheet is told.
    fn no_sheet(&self) -> String {
        let how = "Say: create a character named Aria the rogue";
        format!(
            "You have no sheet yet.{}",
            self.advice(CommandName::SheetCreate, how)
        )
    }
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandOutcome {
    /// An object; its `text` is for people.
    pub result: Value,
    pub effect: Option<Effect>,
}

impl CommandOutcome {
    fn saying(result: Value) -> Self {
        Self {
            result,
            effect: None,
        }
    }

    fn changing(result: Value, effect: Effect) -> Self {
        Self {
            result,
            effect: Some(effect),
        }
    }
}

/// Why a command was not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One word for programs.
    pub error: &'static str,
    /// One sentence for people.
    pub message: String,
}

impl Refusal {
    fn invalid(message: impl Into<String>) -> Self {
        Self {
            error: "invalid_arguments",
            message: message.into(),
        }
    }

    fn not_found(message: impl Into<String>) -> Self {
        Self {
            error: "not_found",
            message: message.into(),
        }
    }

    fn too_many(message: impl Into<String>) -> Self {
        Self {
            error: "too_many",
            message: message.into(),
        }
    }
}

/// Executes a command. Pure: the dice come from `seed`, the stored data from `facts`, and the
/// journal writes the effect.
///
/// # Errors
/// [`Refusal`].
pub fn execute(action: &Action, facts: &Inputs, seed: u64) -> Result<CommandOutcome, Refusal> {
    match action {
        Action::Roll(a) => roll::execute(a, seed),
        Action::Check(a) => check::execute(a, facts, seed),
        Action::Do(a) => Ok(narrate::execute(a, facts, seed)),
        Action::SheetCreate(a) => sheet_create::execute(a, facts),
        Action::SheetShow(a) => sheet_show::execute(a, facts),
        Action::SheetList(page) => Ok(lists::list_sheets(*page, facts)),
        Action::SheetUpdate(a) => sheet_update::execute(a, facts),
        Action::SheetUse(a) => sheet_named::switched(a, facts),
        Action::SheetDelete(a) => sheet_named::deleted(a, facts),
        Action::MemoryAdd(a) => memory_add::execute(a, facts),
        Action::MemorySearch(a) => Ok(memory_search::execute(a, facts)),
        Action::MemoryList(page) => Ok(lists::list_memories(*page, facts)),
        Action::MemoryDelete(a) => memory_delete::execute(a, facts),
        Action::Ooc(a) => Ok(ooc::execute(a)),
        Action::Help(a) => help::execute(a, facts),
    }
}

/// Returns a deletion with what exactly it deletes, for the user's confirmation. Other commands stay
/// as they are.
///
/// # Errors
/// [`Refusal`] if there is nothing to delete.
pub fn resolved(action: &Action, facts: &Inputs) -> Result<Action, Refusal> {
    Ok(match action {
        Action::SheetDelete(a) => Action::SheetDelete(sheet_named::resolved(a, facts)?),
        Action::MemoryDelete(a) => Action::MemoryDelete(memory_delete::resolved(a, facts)?),
        other => other.clone(),
    })
}

/// Deserializes arguments.
///
/// # Errors
/// What does not fit the schema, for people.
fn read<T: DeserializeOwned + JsonSchema>(arguments: Value) -> Result<T, String> {
    let kept = arguments.clone();
    serde_json::from_value(arguments).map_err(|_| super::misfit::misfit(&kept, &schema::<T>()))
}

/// Returns the schema of arguments.
fn schema<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// Returns the trimmed text.
///
/// # Errors
/// If it is empty: `example` says how to write it. If it is longer than `most` characters.
fn text_of(name: &str, text: &str, most: usize, example: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(format!("say it like this: {example}"));
    }
    if text.chars().count() > most || text.contains('\0') {
        return Err(format!(
            "{name} has at most {most} characters, and no null character"
        ));
    }
    Ok(text.to_owned())
}
