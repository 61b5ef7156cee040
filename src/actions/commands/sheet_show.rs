//! `sheet.show`: one of the user's own sheets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::check::sheet_of;
use super::{Action, CommandOutcome, Inputs, Refusal, read, trim_text};
use crate::actions::sanitize::{quoted, sanitize, sanitize_lines};
use crate::actions::sheet::{Ability, MAX_NAME_CHARS, Sheet};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SheetShow")]
pub struct SheetShowArguments {
    /// The character's name; default: the active one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub name: Option<String>,
}

pub(super) fn parse(arguments: Value) -> Result<Action, String> {
    let mut read: SheetShowArguments = read(arguments)?;
    if let Some(name) = &mut read.name {
        trim_text(name, "a name", MAX_NAME_CHARS, "/sheet show Aria")?;
    }
    Ok(Action::SheetShow(read))
}

pub(super) fn execute(
    arguments: &SheetShowArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let sheet = sheet_of(facts, arguments.name.as_deref())?;
    let sheet = sheet.ok_or_else(|| Refusal::not_found(facts.no_sheet()))?;
    Ok(CommandOutcome::reply(
        json!({ "text": written(&sheet), "name": sanitize(&sheet.name), "sheet": sheet }),
    ))
}

fn written(sheet: &Sheet) -> String {
    let mut first = format!("**{}**", sanitize(&sheet.name));
    first.push_str(&format!(", level {}", sheet.level.unwrap_or(1)));
    for part in [&sheet.ancestry, &sheet.class].into_iter().flatten() {
        first.push_str(&format!(" {}", sanitize(part)));
    }
    let mut lines = vec![first];
    if let Some(abilities) = &sheet.abilities {
        let scores = Ability::ALL.iter().map(|ability| {
            let name = ability.into_str().to_uppercase();
            let (score, modifier) = (abilities.score(*ability), sheet.modifier(*ability));
            format!("{name} {score} ({modifier:+})")
        });
        lines.push(scores.collect::<Vec<_>>().join("  "));
    }
    let hit_points = sheet.hit_points.as_ref();
    let mut body: Vec<String> = vec![];
    body.extend(hit_points.map(|hp| format!("Hit points {}/{}", hp.current, hp.max)));
    body.extend(sheet.armor_class.map(|ac| format!("Armor class {ac}")));
    body.push(format!("Proficiency {:+}", sheet.proficiency()));
    lines.push(body.join("  "));
    for (title, list) in [
        ("Proficient", &sheet.proficiencies),
        ("Expert", &sheet.expertise),
        ("Carries", &sheet.inventory),
    ] {
        if !list.is_empty() {
            lines.push(format!("{title}: {}", sanitize(&list.join(", "))));
        }
    }
    let notes = sheet.notes.as_deref();
    lines.extend(notes.map(|notes| quoted(&sanitize_lines(notes))));
    lines.join("\n")
}
