//! Views of the registry for a model, for people, for programs and for Discord.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use conclave_lenient_json::strict;
use serde_json::{Map, Value, json};

use super::argument_schema::{choices, is_composed, types};
use super::commands::{Command, REGISTRY, schema_of};
use super::sheet::Ability;
use crate::domain::CommandName;

/// Returns the allowed commands with their arguments, for a model.
pub fn for_model(allowed: &BTreeSet<CommandName>) -> String {
    let commands = REGISTRY.iter();
    let commands = commands.filter(|command| allowed.contains(&command.name));
    let line = |command: &Command| {
        let arguments = simple_arguments(command).into_iter();
        let arguments: Map<_, _> = arguments.map(|(k, v)| (k, short(&v))).collect();
        let line = json!({ "action": command.name, "does": command.help, "args": arguments, "examples": command.examples });
        line.to_string()
    };
    commands.map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the arguments that are plain values. A model proposes no composed ones.
pub fn simple_arguments(command: &Command) -> Vec<(String, Value)> {
    let schema = &strict::inlined(&schema_of(command.name));
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let properties = properties.into_iter();
    properties
        .filter(|(_, schema)| !is_composed(schema))
        .collect()
}

fn short(schema: &Value) -> Value {
    let words = choices(schema);
    let what = if words.is_empty() {
        types(schema).join("|")
    } else {
        words.join("|")
    };
    match schema["description"].as_str().unwrap_or_default() {
        "" => json!(what),
        about => json!(format!("{what}: {about}")),
    }
}

/// The arguments of all commands that are plain values.
static ARGUMENTS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let arguments = REGISTRY.iter().flat_map(simple_arguments);
    arguments.collect()
});

/// Returns the schema of arguments as a model gives them: each with its name and its value as a text.
pub fn list_of_arguments() -> Value {
    let names: Vec<&String> = ARGUMENTS.keys().collect();
    let item = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "enum": names },
            "value": { "type": "string", "description": "As a text: \"2d6+3\", \"15\", \"true\"." },
        },
        "required": ["name", "value"],
        "additionalProperties": false,
    });
    let about = "The arguments that the text gives; none if ok is false.";
    json!({ "description": about, "type": "array", "items": item })
}

/// Returns the value of an argument that is written as a text. What is not of its type stays a text.
pub fn typed_value(name: &str, text: String) -> Value {
    let kinds = ARGUMENTS.get(name).map(types).unwrap_or_default();
    if kinds.is_empty() || kinds.contains(&"string") {
        return Value::String(text);
    }
    let value = text.trim().trim_start_matches('+').to_lowercase();
    let value = value.parse::<Value>().ok();
    let value = value.filter(|value| value.is_number() || value.is_boolean() || value.is_null());
    value.unwrap_or(Value::String(text))
}

/// Returns the registry as text for a terminal.
pub fn as_text() -> String {
    let mut text = String::new();
    for command in REGISTRY.iter() {
        let (name, help) = (command.name.into_str(), command.help);
        text.push_str(&format!("{name:<14} {help}\n"));
        for example in &command.examples {
            text.push_str(&format!("{:<14}   {example}\n", ""));
        }
    }
    text
}

/// Returns the whole registry as JSON.
pub fn as_json() -> Value {
    let command = |command: &Command| {
        json!({
            "name": command.name, "help": command.help, "permission": command.permission.into_str(), "effect": command.reach,
            "examples": command.examples, "arguments": schema_of(command.name),
        })
    };
    json!(REGISTRY.iter().map(command).collect::<Vec<_>>())
}

/// Returns the registration for Discord (`PUT /applications/ID/commands`): `/act` with free text,
/// and each command. Names with a dot become a command with subcommands.
pub fn for_discord() -> Value {
    let text = json!([{ "type": 3, "name": "message", "description": "What you want to do, in your own words.", "required": true }]);
    let mut all = vec![
        json!({ "type": 1, "name": "act", "description": "Say what you want to do.", "options": text }),
    ];
    for command in REGISTRY.iter() {
        let name = command.name.into_str();
        let named = |name: &str| json!({ "type": 1, "name": name, "description": command.help, "options": discord_options(command) });
        let Some((top, sub)) = name.split_once('.') else {
            all.push(named(name));
            continue;
        };
        let known = all.iter_mut().find(|known| known["name"] == top);
        match known.and_then(|known| known["options"].as_array_mut()) {
            Some(options) => options.push(named(sub)),
            None => {
                all.push(json!({ "type": 1, "name": top, "description": format!("Your {top}."), "options": [named(sub)] }));
            }
        }
    }
    json!(all)
}

/// Returns the options of a command. Discord requires that the required ones come first.
fn discord_options(command: &Command) -> Vec<Value> {
    let schema = &schema_of(command.name);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let arguments = simple_arguments(command).into_iter();
    let mut options: Vec<Value> = arguments
        .map(|(name, schema)| discord_option(&name, &schema, required))
        .collect();
    if schema.pointer("/properties/abilities").is_some() {
        let abilities = Ability::ALL.iter().map(|it| (it.into_str(), it.title()));
        let points = [("hp", "Hit points."), ("maxhp", "The most hit points.")];
        options.extend(abilities.chain(points).map(|(name, about)| {
            let schema = json!({ "type": "integer", "description": about });
            discord_option(name, &schema, required)
        }));
    }
    options.sort_by_key(|option| option["required"] != true);
    options
}

fn discord_option(name: &str, schema: &Value, required: &[Value]) -> Value {
    let kind = match types(schema).into_iter().find(|name| *name != "null") {
        Some("integer") => 4,
        Some("boolean") => 5,
        _ => 3,
    };
    let about = schema["description"].as_str();
    let mut option = json!({
        "type": kind, "name": name.to_lowercase(),
        "description": super::sanitize::cut(about.unwrap_or(name), 100),
        "required": required.contains(&json!(name)),
    });
    // Discord takes at most 25 choices.
    let choices = choices(schema).into_iter().take(25);
    let choices: Vec<Value> = choices
        .map(|word| json!({ "name": word, "value": word }))
        .collect();
    if let (Some(option), false) = (option.as_object_mut(), choices.is_empty()) {
        option.insert("choices".into(), json!(choices));
    }
    option
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::parser::{ParsedMessage, read};

    #[test]
    fn the_registry_has_every_name_once_and_every_example_is_understood() {
        let names: Vec<CommandName> = REGISTRY.iter().map(|command| command.name).collect();
        assert_eq!(names.len(), CommandName::ALL.len());
        for name in CommandName::ALL {
            assert!(names.contains(name), "{name}");
        }
        for command in REGISTRY.iter() {
            for example in &command.examples {
                assert!(
                    matches!(read(example), ParsedMessage::Clear(action) if action.name() == command.name),
                    "{example} is not {}",
                    command.name
                );
            }
            assert!(jsonschema::validator_for(&schema_of(command.name)).is_ok());
        }
    }

    #[test]
    fn arguments_of_one_name_mean_the_same_in_every_command() {
        let mut seen: std::collections::BTreeMap<String, Vec<String>> =
            std::collections::BTreeMap::new();
        for command in REGISTRY.iter() {
            for (name, schema) in simple_arguments(command) {
                let kinds: Vec<String> = types(&schema)
                    .into_iter()
                    .filter(|kind| *kind != "null")
                    .map(str::to_owned)
                    .collect();
                assert_eq!(
                    seen.entry(name.clone()).or_insert_with(|| kinds.clone()),
                    &kinds,
                    "{name}"
                );
            }
        }
        assert!(seen.contains_key("expression") && !seen.contains_key("abilities"));
    }

    #[test]
    fn arguments_in_texts_get_their_types() {
        for (name, text, value) in [
            ("dc", "15", json!(15)),
            ("modifier", "+2", json!(2)),
            ("save", "True", json!(true)),
            ("dc", "fifteen", json!("fifteen")),
            ("expression", "20", json!("20")),
            ("ability", "dex", json!("dex")),
            ("nothing", "1", json!("1")),
        ] {
            assert_eq!(typed_value(name, text.to_owned()), value, "{name}");
        }
        assert!(ARGUMENTS.contains_key("expression") && !ARGUMENTS.contains_key("user"));
    }

    #[test]
    fn discord_is_told_what_it_takes() {
        let commands = for_discord();
        let names: Vec<&str> = commands
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "act", "roll", "check", "do", "sheet", "memory", "ooc", "help"
            ]
        );
        for command in commands.as_array().unwrap() {
            assert!(command["description"].as_str().unwrap().chars().count() <= 100);
            let options = command["options"].as_array().unwrap();
            assert!(options.len() <= 25);
            for command in options.iter().filter(|option| option["type"] == 1) {
                assert!(command["options"].as_array().unwrap().len() <= 25);
            }
        }
        let create = &commands[4]["options"][0];
        assert_eq!(create["name"], "create");
        // What Discord offers is read.
        for option in create["options"].as_array().unwrap() {
            let name = option["name"].as_str().unwrap();
            let text = format!("/sheet create name: Aria {name}: 3");
            let is_read = matches!(read(&text), ParsedMessage::Clear(_));
            assert!(is_read || name == "name", "{text}");
        }
    }
}
