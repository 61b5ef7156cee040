//! `sheet.show`: one of the user's own sheets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::check::{no_sheet_of, sheet_of};
use super::{Action, Command, CommandOutcome, Inputs, Refusal, SideEffect, read, schema, text_of};
use crate::actions::sanitize::sanitize;
use crate::actions::sheet::{Ability, MAX_NAME_CHARS, Sheet};
use crate::domain::{CommandName, Scope};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SheetShow")]
pub struct SheetShowArguments {
    /// The character's name; default: the active one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub name: Option<String>,
}

pub(super) fn command() -> Command {
    Command {
        name: CommandName::SheetShow,
        help: "Show your character's sheet.",
        permission: Scope::Act,
        reach: SideEffect::ReadsOwn,
        examples: &["show my sheet", "/sheet show Aria"],
        schema: schema::<SheetShowArguments>,
        read: |arguments| {
            let mut read: SheetShowArguments = read(arguments)?;
            if let Some(name) = &mut read.name {
                *name = text_of("a name", name, MAX_NAME_CHARS, "/sheet show Aria")?;
            }
            Ok(Action::SheetShow(read))
        },
    }
}

pub(super) fn execute(
    arguments: &SheetShowArguments,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let name = arguments.name.as_deref();
    let sheet = sheet_of(facts, name).map_err(|_| unknown(facts, name.unwrap_or_default()))?;
    let sheet = sheet.ok_or_else(|| Refusal::not_found(facts.no_sheet()))?;
    Ok(CommandOutcome::saying(
        json!({ "text": written(&sheet), "name": sanitize(&sheet.name), "sheet": sheet }),
    ))
}

/// Returns the refusal of a name that no sheet has. Its first word may be meant as a command:
/// `/sheet rename Bo Bob`.
fn unknown(facts: &Inputs, name: &str) -> Refusal {
    let first = name.split_whitespace().next().unwrap_or_default();
    // One word is the name of a sheet.
    let also = if name != first && first.chars().all(char::is_lowercase) {
        format!(", and there is no command \"/sheet {first}\"")
    } else {
        String::new()
    };
    no_sheet_of(facts, name, &also)
}

fn written(sheet: &Sheet) -> String {
    let mut first = format!("**{}**", sanitize(&sheet.name));
    first.push_str(&format!(", level {}", sheet.level.unwrap_or(1)));
    for part in [&sheet.ancestry, &sheet.class].into_iter().flatten() {
        first.push_str(&format!(" {}", sanitize(part)));
    }
    let mut lines = vec![first];
    if let Some(abilities) = &sheet.abilities {
        let scores = Ability::ALL.map(|ability| {
            format!(
                "{} {} ({:+})",
                ability.into_str().to_uppercase(),
                abilities.score(ability),
                sheet.modifier(ability)
            )
        });
        lines.push(scores.join("  "));
    }
    let body = [
        sheet
            .hit_points
            .as_ref()
            .map(|hp| format!("Hit points {}/{}", hp.current, hp.max)),
        sheet.armor_class.map(|ac| format!("Armor class {ac}")),
        Some(format!("Proficiency {:+}", sheet.proficiency())),
    ];
    lines.push(body.into_iter().flatten().collect::<Vec<_>>().join("  "));
    for (title, list) in [
        ("Proficient", &sheet.proficiencies),
        ("Expert", &sheet.expertise),
        ("Carries", &sheet.inventory),
    ] {
        if !list.is_empty() {
            lines.push(format!("{title}: {}", sanitize(&list.join(", "))));
        }
    }
    lines.extend(sheet.notes.as_deref().map(sanitize));
    lines.join("\n")
}
