//! `check`: a d20 roll with the modifiers of the sheet, optionally against a difficulty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization as _;

use super::{Action, CommandOutcome, Inputs, Refusal, read};
use crate::actions::sanitize::sanitize;
use crate::actions::sheet::{Ability, Sheet, Skill};
use crate::domain::CommandName;
use crate::journal::SheetRow;

/// Why a check of a skill is no saving throw.
pub const SAVE_OF_SKILL: &str = "a saving throw has an ability and no skill";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Advantage {
    Advantage,
    Disadvantage,
}

impl Advantage {
    /// Returns the advantage that a word means, in lower case.
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "advantage" | "adv" => Some(Self::Advantage),
            "disadvantage" | "disadv" | "dis" => Some(Self::Disadvantage),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Check")]
pub struct CheckArguments {
    /// The ability. Required without a skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ability: Option<Ability>,
    /// The skill. It implies its ability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<Skill>,
    /// true: a saving throw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save: Option<bool>,
    /// The difficulty, 1 to 100. Without it, only the total is returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub dc: Option<i64>,
    /// Added to the modifiers of the sheet, -100 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100))]
    pub modifier: Option<i64>,
    /// True if the proficiency bonus counts, regardless of the sheet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proficient: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advantage: Option<Advantage>,
    /// The name of one of the user's sheets. Default: the active one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub character: Option<String>,
}

pub(super) fn parse(given: Value) -> Result<Action, String> {
    let read: CheckArguments = read(in_small_letters(given))?;
    if read.ability.is_none() && read.skill.is_none() {
        let problem = "name an ability (str, dex, con, int, wis, cha) or a skill, such as stealth";
        return Err(problem.into());
    }
    if read.skill.is_some() && read.save == Some(true) {
        return Err(SAVE_OF_SKILL.into());
    }
    read.check_bounds()?;
    Ok(Action::Check(read))
}

impl CheckArguments {
    /// Checks the numbers.
    ///
    /// # Errors
    /// Which one is out of bounds.
    pub(super) fn check_bounds(&self) -> Result<(), String> {
        if self.dc.is_some_and(|dc| !(1..=100).contains(&dc)) {
            return Err("the DC is from 1 to 100".into());
        }
        if self.modifier.is_some_and(|it| !(-100..=100).contains(&it)) {
            return Err("the modifier is from -100 to 100".into());
        }
        Ok(())
    }
}

/// Normalizes names such as "DEX", "Dexterity" and "Sleight of Hand" to those of the schema.
fn in_small_letters(mut arguments: Value) -> Value {
    for name in ["ability", "skill", "advantage"] {
        let Some(given) = arguments.get_mut(name) else {
            continue;
        };
        if let Some(word) = given.as_str() {
            let word = word.trim().to_lowercase().replace(' ', "_");
            let ability = Ability::named(&word).map(|it| json!(it));
            let meant = ability.or_else(|| Some(json!(Advantage::named(&word)?)));
            *given = meant.unwrap_or_else(|| json!(word));
        }
    }
    arguments
}

/// Returns the sheet with this name, or the active sheet, which was written last. Returns `None` if
/// there is no sheet or it cannot be read.
///
/// # Errors
/// If no sheet has this name.
pub(super) fn sheet_of(facts: &Inputs, name: Option<&str>) -> Result<Option<Sheet>, Refusal> {
    let row = match name {
        None => facts.sheets.first(),
        Some(name) => Some(row_of(facts, name)?),
    };
    Ok(row.and_then(|row| serde_json::from_value(row.sheet.clone()).ok()))
}

/// Returns the stored sheet with this name, in any case.
///
/// # Errors
/// If no sheet has this name.
pub(super) fn row_of<'a>(facts: &'a Inputs, name: &str) -> Result<&'a SheetRow, Refusal> {
    let wanted = name.trim().nfc().collect::<String>().to_lowercase();
    let mut rows = facts.sheets.iter();
    let found = rows.find(|row| row.name.to_lowercase() == wanted);
    found.ok_or_else(|| {
        let name = sanitize(name);
        let see = facts.advice(CommandName::SheetList, "See: /sheet list");
        Refusal::not_found(format!("You have no sheet of \"{name}\".{see}"))
    })
}

/// A d20 roll with its modifiers.
pub(super) struct D20Roll {
    /// The title: "Dexterity (stealth)".
    pub what: String,
    pub ability: Ability,
    /// How often the proficiency bonus counts: 0, 1 or 2 times.
    pub times: i64,
}

pub(super) fn execute(
    arguments: &CheckArguments,
    facts: &Inputs,
    seed: u64,
) -> Result<CommandOutcome, Refusal> {
    let sheet = sheet_of(facts, arguments.character.as_deref())?;
    let roll = roll_of(arguments, sheet.as_ref());
    let rolled = rolled(sheet.as_ref(), roll, arguments, seed);
    Ok(CommandOutcome::reply(rolled))
}

/// Returns the roll that the arguments ask for.
pub(super) fn roll_of(arguments: &CheckArguments, sheet: Option<&Sheet>) -> D20Roll {
    // An explicit ability replaces the skill's own ability: Strength (Intimidation).
    let of_skill = arguments.skill.map(Skill::ability);
    let ability = arguments.ability.or(of_skill).unwrap_or(Ability::Dex);
    let is_save = arguments.save.unwrap_or(false);
    let (what, times) = described(sheet, ability, arguments.skill, is_save);
    D20Roll {
        what,
        ability,
        times: arguments.proficient.map_or(times, i64::from),
    }
}

/// Returns the title of a check, and how often the proficiency bonus counts for it.
fn described(
    sheet: Option<&Sheet>,
    ability: Ability,
    skill: Option<Skill>,
    is_save: bool,
) -> (String, i64) {
    let title = ability.title();
    let times = |name: &str| sheet.map_or(0, |sheet| sheet.times(name));
    match skill.map(|skill| skill.into_str()) {
        Some(skill) => (format!("{title} ({skill})"), times(skill)),
        None if is_save => {
            let times = times(ability.into_str()).max(times(title));
            (format!("{title} saving throw"), times)
        }
        None => (title.to_owned(), 0),
    }
}

/// Rolls the d20 and returns the result. Without a sheet, the ability modifier is 0 and the
/// proficiency bonus is 2.
pub(super) fn rolled(
    sheet: Option<&Sheet>,
    roll: D20Roll,
    arguments: &CheckArguments,
    seed: u64,
) -> Value {
    let D20Roll {
        what,
        ability,
        times,
    } = roll;
    let CheckArguments { dc, advantage, .. } = *arguments;
    let modifier = arguments.modifier.unwrap_or(0);
    let from_ability = sheet.map_or(0, |sheet| sheet.modifier(ability));
    let proficiency = times * sheet.map_or(2, Sheet::proficiency);

    let mut die = super::roll::chance(seed);
    let mut rolls = vec![die(20)];
    if advantage.is_some() {
        rolls.push(die(20));
    }
    let kept = match advantage {
        Some(Advantage::Disadvantage) => rolls.iter().min(),
        Some(Advantage::Advantage) | None => rolls.iter().max(),
    };
    let kept = kept.copied().unwrap_or(1);
    let total = kept + from_ability + proficiency + modifier;
    let who = sheet.map(|sheet| sanitize(&sheet.name));
    let modifiers = [
        ("ability", from_ability),
        ("proficiency", proficiency),
        ("modifier", modifier),
    ];
    let name = who.as_ref().map(|who| format!("{who}: "));
    let mut text = format!(
        "{}{what}{} = {total}",
        name.unwrap_or_default(),
        shown(&rolls, advantage, modifiers)
    );
    if let Some(dc) = dc {
        let word = if total >= dc { "success" } else { "failure" };
        text.push_str(&format!(" against DC {dc}: {word}"));
    }
    json!({
        "text": text,
        "check": what,
        "character": who,
        "rolls": rolls,
        "kept": kept,
        "modifiers": { "ability": from_ability, "proficiency": proficiency, "other": modifier },
        "total": total,
        "dc": dc,
        "success": dc.map(|dc| total >= dc),
    })
}

/// Returns the dice and the modifiers that are not 0, such as ` with advantage: d20 (3, 17) + 2
/// [ability]`.
fn shown(rolls: &[i64], advantage: Option<Advantage>, modifiers: [(&str, i64); 3]) -> String {
    let shown: Vec<String> = rolls.iter().map(ToString::to_string).collect();
    let shown = shown.join(", ");
    let how = match advantage {
        Some(Advantage::Advantage) => " with advantage",
        Some(Advantage::Disadvantage) => " with disadvantage",
        None => "",
    };
    let mut text = format!("{how}: d20 ({shown})");
    for (name, value) in modifiers {
        if value != 0 {
            let sign = if value < 0 { '-' } else { '+' };
            text.push_str(&format!(" {sign} {} [{name}]", value.abs()));
        }
    }
    text
}
