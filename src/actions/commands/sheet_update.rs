//! `sheet.update`: changes parts of a sheet; the other parts stay.

use serde_json::{Map, Value, json};

use super::sheet_create::check_room;
use super::{Action, CommandOutcome, Inputs, Refusal, check, read};
use crate::actions::sanitize::sanitize;
use crate::actions::sheet::Sheet;
use crate::journal::Effect;

pub(super) fn parse(arguments: Value) -> Result<Action, String> {
    let update: Map<String, Value> = read(arguments)?;
    if update.keys().all(|part| part == "name") {
        return Err("say what changes, the name cannot: /sheet update --level 4 --hp 21".into());
    }
    // The parts are checked on a sheet that has nothing else.
    let mut blank = json!({ "name": "-", "hitPoints": { "current": 0, "max": 0 } });
    merge(&mut blank, &Value::Object(update.clone()));
    read::<Sheet>(blank)?.check()?;
    Ok(Action::SheetUpdate(update))
}

/// Returns the schema of the changed parts: that of a sheet in which no part is required and each
/// may be null.
pub(super) fn partial_schema() -> Value {
    let mut schema = super::schema::<Sheet>();
    optional(&mut schema);
    let about = "The changed parts of a sheet. `name` says which sheet it is; default: the active one. `null` removes a part.";
    merge(
        &mut schema,
        &json!({ "title": "SheetUpdate", "description": about }),
    );
    schema
}

/// Makes no property of a schema required, on all levels.
fn optional(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            parts.remove("required");
            parts.values_mut().for_each(optional);
        }
        Value::Array(parts) => parts.iter_mut().for_each(optional),
        _ => {}
    }
}

/// Merges changes into a document as RFC 7396 (JSON Merge Patch) describes.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }
}

pub(super) fn execute(
    changes: &Map<String, Value>,
    facts: &Inputs,
) -> Result<CommandOutcome, Refusal> {
    let named = changes.get("name").and_then(Value::as_str);
    let row = match named {
        Some(name) => check::row_of(facts, name)?,
        None => facts
            .sheets
            .first()
            .ok_or_else(|| Refusal::not_found(facts.no_sheet()))?,
    };
    let mut merged = row.sheet.clone();
    merge(&mut merged, &Value::Object(changes.clone()));
    merge(&mut merged, &json!({ "name": row.name }));
    let sheet: Sheet = read(merged).map_err(Refusal::invalid)?;
    sheet.check().map_err(Refusal::invalid)?;
    let stored = json!(sheet);
    check_room(&stored, Some(&row.sheet), facts)?;
    let name = sanitize(&row.name);
    let parts = changes.keys().filter(|key| *key != "name");
    let parts: Vec<String> = parts.map(|key| sanitize(key)).collect();
    let (changed, idle) = (parts.join(", "), sheet.idle_proficiencies());
    let text = format!("The sheet of {name} is changed: {changed}.{idle}");
    Ok(CommandOutcome::with_effect(
        json!({ "text": text, "name": name, "changed": parts, "sheet": stored }),
        Effect::Sheet {
            name: row.name.clone(),
            sheet: stored,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::CommandName;
    use crate::journal::SheetRow;
    use jiff::Timestamp;

    fn done(patch: Value) -> Result<Value, Refusal> {
        let Ok(Action::SheetUpdate(arguments)) = Action::read(CommandName::SheetUpdate, patch)
        else {
            panic!("no update");
        };
        let facts = Inputs {
            bytes_left: 20_000,
            sheets: vec![SheetRow {
                name: "Aria".into(),
                sheet: json!({ "name": "Aria", "level": 3, "abilities": { "str": 8, "dex": 16, "con": 10, "int": 10, "wis": 10, "cha": 10 }, "hitPoints": { "current": 9, "max": 20 }, "notes": "owes money" }),
                updated_at: Timestamp::UNIX_EPOCH,
            }],
            ..Inputs::default()
        };
        execute(&arguments, &facts).map(|done| done.result)
    }

    #[test]
    fn proficiencies_that_count_for_nothing_are_named() {
        let given = json!([
            "Stealth",
            "sleight_of_hand",
            "dex",
            "attack",
            "cooking",
            "stelth"
        ]);
        let text = done(json!({ "proficiencies": given })).unwrap()["text"].to_string();
        assert!(
            text.contains("count for nothing: cooking, stelth."),
            "{text}"
        );
        let text = done(json!({ "expertise": ["stealth"] })).unwrap()["text"].to_string();
        assert!(text.ends_with("expertise.\""), "{text}");
    }

    #[test]
    fn only_the_named_parts_change() {
        let done =
            done(json!({ "level": 4, "abilities": { "dex": 18 }, "hitPoints": { "current": 20 }, "notes": null }))
                .unwrap();
        assert_eq!(
            done["sheet"],
            json!({ "name": "Aria", "level": 4, "abilities": { "str": 8, "dex": 18, "con": 10, "int": 10, "wis": 10, "cha": 10 }, "hitPoints": { "current": 20, "max": 20 } })
        );
    }
}
