//! Generates the tables of `docs/api.md` from the OpenAPI document.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Generates the text for each mark in `docs/api.md`.
pub struct ApiTables {
    document: Value,
}

impl ApiTables {
    pub fn of(document: Value) -> Self {
        Self { document }
    }

    /// Returns the text for a mark `<!-- generated: ORDER -->`. An order is one of
    ///
    /// - `routes`, `problems`,
    /// - `fields SCHEMA [beyond OTHER] [closed NAME...]`: the fields of the schema that the other
    ///   lacks, with those of nested objects, except the objects named after `closed`,
    /// - `parameters OPERATION`, `events OPERATION`, `example OPERATION STATUS`.
    pub fn make(&self, order: &str) -> String {
        let words: Vec<&str> = order.split(' ').collect();
        match words.as_slice() {
            ["routes"] => self.routes(),
            ["problems"] => self.problems(),
            ["fields", schema] => self.fields(schema, None, &[]),
            ["fields", schema, "closed", closed @ ..] => self.fields(schema, None, closed),
            ["fields", schema, "beyond", other, "closed", closed @ ..] => {
                self.fields(schema, Some(other), closed)
            }
            ["parameters", operation] => self.parameters(operation),
            ["events", operation] => self.events(operation),
            ["example", operation, status] => self.example(operation, status),
            _ => panic!("docs/api.md asks for {order:?}"),
        }
    }

    fn routes(&self) -> String {
        let rows = self
            .operations()
            .into_iter()
            .map(|(path, method, operation)| {
                let all = operation["security"].as_array().into_iter().flatten();
                let scopes = all.filter_map(|it| it["bearer"][0].as_str());
                let scopes: Vec<String> = scopes.map(|it| format!("`{it}`")).collect();
                let scope = match operation.pointer("/security/0/bearer") {
                    None => "none".to_owned(),
                    Some(_) if scopes.is_empty() => "any".to_owned(),
                    Some(_) => scopes.join(", "),
                };
                [
                    format!("`{} {path}`", method.to_uppercase()),
                    text(&operation["summary"]),
                    scope,
                ]
            });
        table(["method and path", "does", "scope of the token"], rows)
    }

    fn problems(&self) -> String {
        let mut kinds: BTreeMap<(String, String), [String; 4]> = BTreeMap::new();
        for (_, _, operation) in self.operations() {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                if answer["content"]["application/problem+json"].is_null() {
                    continue;
                }
                let header = if answer["headers"]["Retry-After"].is_null() {
                    ""
                } else {
                    "`Retry-After`"
                };
                for line in answer["description"].as_str().unwrap().lines() {
                    let (kind, when) = line.trim_start_matches("- ").split_once(": ").unwrap();
                    let kind = format!("`{}", kind.trim_start_matches("`urn:conclave:problem:"));
                    let row = [
                        status.clone(),
                        kind.clone(),
                        when.to_owned(),
                        header.to_owned(),
                    ];
                    kinds.insert((status.clone(), kind), row);
                }
            }
        }
        table(
            ["status", "type `urn:conclave:problem:`", "when", "header"],
            kinds.into_values(),
        )
    }

    fn fields(&self, schema: &str, beyond: Option<&str>, closed: &[&str]) -> String {
        let schemas = &self.document["components"]["schemas"];
        let (name, part) = schema.split_once('/').unwrap_or((schema, ""));
        let mut schema = schemas[name].clone();
        if !part.is_empty() {
            schema = schema["properties"][part].clone();
        }
        if let (Some(other), Value::Object(own)) = (beyond, &mut schema["properties"]) {
            own.retain(|name, _| schemas[other]["properties"][name].is_null());
        }
        let mut rows = vec![];
        self.add_fields(&schema, "", closed, &mut rows);
        assert!(!rows.is_empty(), "{name} has no fields");
        table(["field", "value", "meaning"], rows)
    }

    fn add_fields(
        &self,
        schema: &Value,
        prefix: &str,
        closed: &[&str],
        rows: &mut Vec<[String; 3]>,
    ) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let optional = !schema["required"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == name));
            let shown = format!("{prefix}{name}");
            let mark = if optional { " (optional)" } else { "" };
            rows.push([
                format!("`{shown}`{mark}"),
                self.value(field),
                self.meaning(field),
            ]);
            if closed.contains(&shown.as_str()) {
                continue;
            }
            let inner = self.followed(field);
            let (item, suffix) = if inner["items"].is_object() {
                (&inner["items"], "[].")
            } else {
                (inner, ".")
            };
            self.add_fields(
                self.followed(item),
                &format!("{shown}{suffix}"),
                closed,
                rows,
            );
        }
    }

    fn parameters(&self, operation: &str) -> String {
        let parameters = self.operation(operation)["parameters"].as_array().unwrap();
        let own = parameters
            .iter()
            .filter(|parameter| parameter["name"].is_string());
        let rows = own.map(|parameter| {
            let default = &parameter["schema"]["default"];
            let default = if default.is_null() {
                String::new()
            } else {
                format!(", default {}", code(default))
            };
            let value = format!("{}{default}", self.value(&parameter["schema"]));
            [
                format!("`{}`", text(&parameter["name"])),
                value,
                text(&parameter["description"]),
            ]
        });
        table(["parameter", "value", "meaning"], rows)
    }

    fn events(&self, operation: &str) -> String {
        let events = &self.operation(operation)["responses"]["200"]["content"]["text/event-stream"]
            ["x-events"];
        let rows = events.as_object().unwrap().iter().map(|(name, data)| {
            let fields: Vec<String> = match data["$ref"].as_str() {
                Some(path) => vec![format!("as in `{}`", path.rsplit('/').next().unwrap())],
                None => data["properties"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .map(|name| format!("`{name}`"))
                    .collect(),
            };
            [format!("`{name}`"), fields.join(", "), self.meaning(data)]
        });
        table(["event", "data", "when"], rows)
    }

    fn example(&self, operation: &str, status: &str) -> String {
        let content = &self.operation(operation)["responses"][status]["content"];
        let content = content.as_object().unwrap().values().next().unwrap();
        format!("```json\n{:#}\n```", content["example"])
    }

    /// Describes the values of a field in a few words. Patterns are left to the description.
    fn value(&self, schema: &Value) -> String {
        let schema = self.followed(schema);
        if let Some(any) = schema["anyOf"].as_array() {
            let mut values: Vec<String> = any.iter().map(|one| self.value(one)).collect();
            values.dedup();
            return values.join(" or ");
        }
        if let Some(values) = schema["enum"].as_array() {
            return values.iter().map(code).collect::<Vec<_>>().join(", ");
        }
        if let Some(one) = schema["oneOf"]
            .as_array()
            .filter(|all| all.iter().all(|one| !one["const"].is_null()))
        {
            return one
                .iter()
                .map(|one| code(&one["const"]))
                .collect::<Vec<_>>()
                .join(", ");
        }
        if !schema["const"].is_null() {
            return code(&schema["const"]);
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        let named = kinds
            .iter()
            .map(|kind| match (*kind, schema["format"].as_str()) {
                ("string", Some("uuid")) => "UUID".to_owned(),
                ("string", Some("date-time")) => "RFC 3339 time".to_owned(),
                ("string", Some("uri")) => "address".to_owned(),
                ("string", _) => format!(
                    "text{}",
                    bounds(schema, ["minLength", "maxLength"], " characters")
                ),
                ("integer", _) => format!("integer{}", bounds(schema, ["minimum", "maximum"], "")),
                ("number", _) => format!("number{}", bounds(schema, ["minimum", "maximum"], "")),
                ("array", _) => {
                    let of = self.value(&schema["items"]);
                    format!(
                        "list of {of}{}",
                        bounds(schema, ["minItems", "maxItems"], "")
                    )
                }
                (other, _) => other.to_owned(),
            });
        let named: Vec<String> = named.collect();
        if named.is_empty() {
            "any JSON".to_owned()
        } else {
            named.join(" or ")
        }
    }

    /// Returns the description of a field, or else that of the type that it refers to.
    fn meaning(&self, schema: &Value) -> String {
        let own = schema["description"].as_str();
        let items = self.followed(&schema["items"]);
        let of_items = || {
            items["description"]
                .as_str()
                .filter(|_| items["properties"].is_object())
        };
        own.or_else(|| self.followed(schema)["description"].as_str())
            .or_else(of_items)
            .unwrap_or("")
            .replace('\n', " ")
    }

    fn followed<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let path = schema["$ref"]
            .as_str()
            .map(|path| path.trim_start_matches('#'));
        path.and_then(|path| self.document.pointer(path))
            .unwrap_or(schema)
    }

    fn operation(&self, id: &str) -> &Value {
        let found = self
            .operations()
            .into_iter()
            .find(|(_, _, operation)| operation["operationId"] == id);
        found
            .unwrap_or_else(|| panic!("there is no operation {id}"))
            .2
    }

    /// Returns path, method and operation, in the order of the document.
    fn operations(&self) -> Vec<(&str, &str, &Value)> {
        let paths: &Map<String, Value> = self.document["paths"].as_object().unwrap();
        let mut all = vec![];
        for (path, item) in paths {
            for (method, operation) in item.as_object().unwrap() {
                all.push((path.as_str(), method.as_str(), operation));
            }
        }
        all
    }
}

/// Returns a phrase such as `, 1 to 200 characters`, or an empty text if no bound is worth
/// mentioning.
fn bounds(schema: &Value, [least, most]: [&str; 2], unit: &str) -> String {
    match (
        schema[least].as_u64().filter(|least| *least > 0),
        schema[most].as_u64(),
    ) {
        (None, None) => String::new(),
        (Some(least), None) => format!(", {least} or more{unit}"),
        (None, Some(most)) if least == "minimum" => format!(", 0 to {most}"),
        (None, Some(most)) => format!(", at most {most}{unit}"),
        (Some(least), Some(most)) if least == most => format!(", {most}{unit}"),
        (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
    }
}

fn code(value: &Value) -> String {
    format!("`{}`", text(value))
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: [String; N]| {
        format!(
            "| {} |",
            cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
        )
    };
    let mut lines = vec![
        line(head.map(str::to_owned)),
        line([(); N].map(|()| "---".to_owned())),
    ];
    lines.extend(rows.into_iter().map(line));
    lines.join("\n").replace("  |", " |")
}
