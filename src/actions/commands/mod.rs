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
use serde_json::{Map, Value, json};

use super::sanitize::sanitize;
use super::sheet::Sheet;
use crate::domain::{CommandName, RunId, Scope};
use crate::journal::{Effect, MemoryRow, SheetRow};
use crate::text::pattern;

pub use check::{Advantage, CheckArguments, SAVE_OF_SKILL};
pub use help::{of_group, topic};
pub use narrate::narration;
pub use roll::RollArguments;

/// Returns the spellings of commands that bots and virtual tables document, or that the phrasings
/// suggest.
pub fn spellings() -> impl Iterator<Item = (&'static str, CommandName)> {
    let rows = include_str!("spellings.tsv").lines();
    let rows = rows.filter_map(|row| row.split_once('\t'));
    rows.filter_map(|(spelling, name)| Some((spelling, name.parse().ok()?)))
}

/// Returns the command that a word or a full name means.
pub fn named(name: &str) -> Option<CommandName> {
    let spelling = spellings().find(|(spelling, _)| *spelling == name);
    spelling.map_or_else(|| name.parse().ok(), |(_, command)| Some(command))
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

/// Says that a command inside a text is not run, if there is one. `place` says what the text is.
fn not_run(text: &str, place: &str, facts: &Inputs) -> Option<String> {
    let (command, written) = command_inside(text)?;
    let how = if facts.allowed.contains(&command) {
        format!("; send it alone: {}", sanitize(written))
    } else {
        ".".to_owned()
    };
    Some(format!("A command in {place} is not run{how}"))
}

/// Says that a command or the dice inside a text are not executed, if there are any.
fn not_executed(text: &str, place: &str, facts: &Inputs) -> Option<String> {
    not_run(text, place, facts).or_else(|| {
        let how = facts.advice(CommandName::Roll, "Send them alone, as in /roll 2d6+3");
        let note = format!("Dice in {place} are not rolled.{how}");
        conclave_dice::is_inside(text).then_some(note)
    })
}

/// The side effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
    /// The scope that a token needs.
    pub permission: Scope,
    pub reach: SideEffect,
    /// One sentence.
    pub help: &'static str,
    /// Examples of its use.
    pub examples: Vec<&'static str>,
}

/// Every command, in the order of the listings. A test holds that the table has each of them.
pub static REGISTRY: LazyLock<Vec<Command>> = LazyLock::new(|| {
    let rows = include_str!("registry.tsv").lines();
    rows.filter_map(Command::of).collect()
});

impl Command {
    /// Reads a row of the table.
    fn of(row: &'static str) -> Option<Self> {
        let mut fields = row.split('\t');
        Some(Self {
            name: fields.next()?.parse().ok()?,
            permission: fields.next()?.parse().ok()?,
            reach: fields.next()?.parse().ok()?,
            help: fields.next()?,
            examples: fields.next()?.split(" | ").collect(),
        })
    }
}

/// Returns the JSON schema of a command's arguments.
pub fn schema_of(name: CommandName) -> Value {
    match name {
        CommandName::Roll => schema::<RollArguments>(),
        CommandName::Check => schema::<CheckArguments>(),
        CommandName::Do => schema::<narrate::DoArguments>(),
        CommandName::SheetCreate => schema::<Sheet>(),
        CommandName::SheetShow => schema::<sheet_show::SheetShowArguments>(),
        CommandName::SheetUpdate => sheet_update::partial_schema(),
        CommandName::SheetUse | CommandName::SheetDelete => {
            schema::<sheet_named::SheetNamedArguments>()
        }
        CommandName::SheetList | CommandName::MemoryList => schema::<lists::PageArguments>(),
        CommandName::MemoryAdd => schema::<memory_add::MemoryAddArguments>(),
        CommandName::MemorySearch => schema::<memory_search::MemorySearchArguments>(),
        CommandName::MemoryDelete => schema::<memory_delete::MemoryDeleteArguments>(),
        CommandName::Ooc => schema::<ooc::OocArguments>(),
        CommandName::Help => schema::<help::HelpArguments>(),
    }
}

/// A command with valid arguments.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Action {
    Roll(RollArguments),
    Check(CheckArguments),
    Do(narrate::DoArguments),
    /// In words, or proposed by a model. It never replaces a stored sheet.
    SheetCreate(Box<Sheet>),
    /// Given by the user as a JSON object. It replaces the sheet of its name.
    SheetReplace(Box<Sheet>),
    SheetShow(sheet_show::SheetShowArguments),
    SheetList(lists::PageArguments),
    /// The changed parts, in the form of the sheet. `name` says which sheet it is; default: the active
    /// one. `null` removes a part.
    SheetUpdate(Map<String, Value>),
    SheetUse(sheet_named::SheetNamedArguments),
    SheetDelete(sheet_named::SheetNamedArguments),
    MemoryAdd(memory_add::MemoryAddArguments),
    MemorySearch(memory_search::MemorySearchArguments),
    MemoryList(lists::PageArguments),
    MemoryDelete(memory_delete::MemoryDeleteArguments),
    Ooc(ooc::OocArguments),
    Help(help::HelpArguments),
}

impl Action {
    /// Validates arguments.
    ///
    /// # Errors
    /// What is wrong with them, for people.
    pub fn read(name: CommandName, arguments: Value) -> Result<Self, String> {
        match name {
            CommandName::Roll => roll::parse(arguments),
            CommandName::Check => check::parse(arguments),
            CommandName::Do => narrate::parse(arguments),
            CommandName::SheetCreate => sheet_create::parse(arguments),
            CommandName::SheetShow => sheet_show::parse(arguments),
            CommandName::SheetList => lists::parse(arguments).map(Action::SheetList),
            CommandName::SheetUpdate => sheet_update::parse(arguments),
            CommandName::SheetUse => {
                sheet_named::parse(arguments, "/sheet use Aria").map(Action::SheetUse)
            }
            CommandName::SheetDelete => {
                sheet_named::parse(arguments, "/sheet delete Aria").map(Action::SheetDelete)
            }
            CommandName::MemoryAdd => memory_add::parse(arguments),
            CommandName::MemorySearch => memory_search::parse(arguments),
            CommandName::MemoryList => lists::parse(arguments).map(Action::MemoryList),
            CommandName::MemoryDelete => memory_delete::parse(arguments),
            CommandName::Ooc => ooc::parse(arguments),
            CommandName::Help => read(arguments).map(Action::Help),
        }
    }

    pub fn name(&self) -> CommandName {
        match self {
            Action::Roll(_) => CommandName::Roll,
            Action::Check(_) => CommandName::Check,
            Action::Do(_) => CommandName::Do,
            Action::SheetCreate(_) | Action::SheetReplace(_) => CommandName::SheetCreate,
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
        let schema = &schema_of(name);
        let properties = schema["properties"].as_object();
        properties.map_or(vec![], |all| all.keys().cloned().collect())
    }

    /// True if the command adds to what its user has stored.
    pub fn stores(&self) -> bool {
        matches!(
            self,
            Action::MemoryAdd(_)
                | Action::SheetCreate(_)
                | Action::SheetReplace(_)
                | Action::SheetUpdate(_)
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
            | Action::SheetReplace(_)
            | Action::SheetShow(_)
            | Action::SheetList(_)
            | Action::SheetUpdate(_)
            | Action::SheetUse(_)
            | Action::SheetDelete(_) => Requirements::Sheets,
            Action::MemoryAdd(_) => Requirements::MemoryCount,
            Action::MemorySearch(a) => Requirements::Memories {
                words: vec![memory_search::words_of(&a.query).concat()],
                most: memory_search::MAX_FOUND as u32 + 1,
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
    /// The memories that have one term of each word.
    Memories {
        words: Vec<Vec<String>>,
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
    /// Returns a sentence that names a command, after a space, or nothing if the command is not
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
        let how = self.advice(CommandName::SheetCreate, how);
        format!("You have no sheet yet.{how}")
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
    fn reply(result: Value) -> Self {
        let effect = None;
        Self { result, effect }
    }

    fn with_effect(result: Value, effect: Effect) -> Self {
        let effect = Some(effect);
        Self { result, effect }
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
    fn new(error: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { error, message }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid_arguments", message)
    }

    fn not_found(message: impl Into<String>) -> Self {
        Self::new("not_found", message)
    }

    fn too_many(message: impl Into<String>) -> Self {
        Self::new("too_many", message)
    }
}

/// Executes a command. Pure: the dice come from `seed`, the stored data from `facts`, and the
/// journal writes the effect.
///
/// # Errors
/// [`Refusal`].
pub fn execute(action: &Action, facts: &Inputs, seed: u64) -> Result<CommandOutcome, Refusal> {
    match action {
        Action::Roll(a) => roll::execute(a, facts, seed),
        Action::Check(a) => check::execute(a, facts, seed),
        Action::Do(a) => Ok(narrate::execute(a, facts, seed)),
        Action::SheetCreate(a) => sheet_create::created(a, facts),
        Action::SheetReplace(a) => sheet_create::stored(a, facts),
        Action::SheetShow(a) => sheet_show::execute(a, facts),
        Action::SheetList(page) => Ok(lists::list_sheets(*page, facts)),
        Action::SheetUpdate(a) => sheet_update::execute(a, facts),
        Action::SheetUse(a) => sheet_named::switched(a, facts),
        Action::SheetDelete(a) => sheet_named::deleted(a, facts),
        Action::MemoryAdd(a) => memory_add::execute(a, facts),
        Action::MemorySearch(a) => Ok(memory_search::execute(a, facts)),
        Action::MemoryList(page) => Ok(lists::list_memories(*page, facts)),
        Action::MemoryDelete(a) => memory_delete::execute(a, facts),
        Action::Ooc(a) => Ok(ooc::execute(a, facts)),
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
fn read<T: DeserializeOwned + JsonSchema>(mut arguments: Value) -> Result<T, String> {
    integers(&mut arguments);
    let kept = arguments.clone();
    serde_json::from_value(arguments).map_err(|_| super::misfit::misfit(&kept, &schema::<T>()))
}

/// Writes 16.0 as 16. To JSON Schema both are whole numbers.
fn integers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = number
                .as_f64()
                .filter(|it| it.fract() == 0.0 && it.abs() < 1e15);
            if let Some(exact) = exact {
                *value = json!(exact as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(integers),
        Value::Object(parts) => parts.values_mut().for_each(integers),
        _ => {}
    }
}

/// Returns the schema of arguments.
fn schema<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// Trims a text.
///
/// # Errors
/// If it is empty: `example` says how to write it. If it is longer than `most` characters.
fn trim_text(text: &mut String, name: &str, most: usize, example: &str) -> Result<(), String> {
    *text = text.trim().to_owned();
    if text.is_empty() {
        return Err(format!("say it like this: {example}"));
    }
    if text.chars().count() > most || text.contains('\0') {
        return Err(format!(
            "{name} has at most {most} characters, and no null character"
        ));
    }
    Ok(())
}
