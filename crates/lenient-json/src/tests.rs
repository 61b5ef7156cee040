use proptest::prelude::*;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Report {
    agent: Agent,
    answer_summary: Vec<String>,
    #[schemars(length(max = 40))]
    reasoning: String,
    #[schemars(range(min = 0.0, max = 1.0))]
    self_confidence: f64,
    rounds: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    question: Option<Question>,
    #[serde(default)]
    needs_question: bool,
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    text: String,
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Agent {
    Solver,
    /// Runs the code.
    TechnicalExecution,
}

fn schema() -> Value {
    schema_for!(Report).to_value()
}

fn report() -> Report {
    Report {
        agent: Agent::Solver,
        answer_summary: vec!["a \"quoted\" {word}".into(), "```json\n{}\n```".into()],
        reasoning: "it's [12], o'clock // really".into(),
        self_confidence: 0.5,
        rounds: 12,
        question: None,
        needs_question: false,
    }
}

fn text() -> String {
    serde_json::to_string_pretty(&report()).unwrap()
}

fn read(text: &str) -> Result<Parsed<Report>, Vec<Problem>> {
    parse(text, &Schema::new(schema()))
}

/// The report with one of its top-level values replaced.
fn with(key: &str, value: Value) -> String {
    let mut report = serde_json::to_value(report()).unwrap();
    report[key] = value;
    report.to_string()
}

#[test]
fn json_and_nothing_else_is_clean() {
    for text in [text(), format!("\u{feff} {}\n", text())] {
        assert_eq!(
            read(&text),
            Ok(Parsed {
                value: report(),
                clean: true,
                notes: vec![]
            })
        );
    }
}

#[test]
fn a_key_that_stands_twice_has_its_last_value_and_is_noted() {
    let twice = text().replacen('{', r#"{"rounds": 3,"#, 1);
    let parsed = read(&twice).unwrap();
    assert_eq!(parsed.value, report());
    assert!(!parsed.clean);
    assert_eq!(parsed.notes, [DUPLICATE_KEY]);
}

#[test]
fn null_for_what_may_be_absent_is_clean() {
    let parsed = read(&with("needsQuestion", json!(null))).unwrap();
    assert!(parsed.clean && parsed.value == report(), "{parsed:?}");
}

#[test]
fn the_reply_is_found_whatever_stands_around_it() {
    let json = text();
    let stringified = Value::String(json.clone()).to_string();
    for text in [
        format!("```json\n{json}\n```"),
        format!("```\n{json}\n```"),
        format!("Sure! See [1]:\n{json}\nNote: {{not exact}} it's mine."),
        format!("<think>Maybe {{\"agent\": ...}} or {{}}</think>\n{json}"),
        format!("They want {json}? Yes.</think>{json}"),
        format!("{{\"agent\": \"SOLVER\"}}\n{json}\n{{\"draft\": true}}"),
        format!("[note: the reply is {json}"),
        format!("[{json}]"),
        format!("{{\"report\": {json}}}"),
        format!("{{\"name\": \"report\", \"arguments\": {json}}}"),
        format!("{{{json}}}"),
        format!("{},}}", json.trim_end_matches(['}', '\n'])),
        json.replacen("\"agent\"", "// who\nagent", 1),
        json.replacen("SOLVER\",", "SOLVER\"", 1),
        json.replacen("false", "False", 1),
        json.replacen("\\n", "\n", 1),
        json.trim_end_matches(['}', '\n']).to_owned(),
        stringified.clone(),
        stringified.trim_matches('"').to_owned(),
    ] {
        let parsed = read(&text).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"));
        assert_eq!(parsed.value, report(), "{text}");
        assert!(!parsed.clean && !parsed.notes.is_empty(), "{text}");
    }
}

#[test]
fn the_last_complete_reply_wins() {
    let (draft, last) = (with("rounds", json!(1)), with("rounds", json!(2)));
    assert_eq!(
        read(&format!("{draft} then {last}")).unwrap().value.rounds,
        2
    );
    let (cut, _) = last.split_at(last.len() - 3);
    assert_eq!(
        read(&format!("{draft} then {cut}")).unwrap().value.rounds,
        1
    );
}

#[test]
fn almost_right_values_are_coerced_and_noted() {
    let spelled = "\"Technical execution\" is spelled \"TECHNICAL_EXECUTION\"";
    let from_text = "a string for a number or truth value";
    for (pointer, written, meant, note) in [
        (
            "/agent",
            json!("Technical execution"),
            json!("TECHNICAL_EXECUTION"),
            spelled,
        ),
        (
            "/answerSummary",
            json!("one"),
            json!(["one"]),
            "a single string for a list",
        ),
        ("/answerSummary", json!(null), json!([]), "null for a list"),
        (
            "/answerSummary",
            json!("[\"a\"]"),
            json!(["a"]),
            "JSON inside a string",
        ),
        (
            "/answerSummary/0",
            json!([7]),
            json!(["7"]),
            "a number for a string",
        ),
        (
            "/reasoning",
            json!(["a", "b"]),
            json!("a\nb"),
            "a list for a text",
        ),
        ("/rounds", json!("9"), json!(9), from_text),
        (
            "/rounds",
            json!(9.0),
            json!(9),
            "a fraction for a whole number",
        ),
        ("/selfConfidence", json!(" 0.25 "), json!(0.25), from_text),
        ("/needsQuestion", json!("True"), json!(true), from_text),
        (
            "/question/text",
            json!({"text": 5}),
            json!({"text": "5"}),
            "a number for a string",
        ),
    ] {
        let key = pointer.split('/').nth(1).unwrap();
        let parsed = read(&with(key, written)).unwrap();
        assert_eq!(serde_json::to_value(&parsed.value).unwrap()[key], meant);
        let notes = vec![format!("{pointer}: {note}")];
        assert_eq!((parsed.clean, parsed.notes), (false, notes));
    }
}

#[test]
fn an_unknown_word_in_a_list_of_closed_words_is_dropped() {
    #[derive(Debug, PartialEq, JsonSchema, Deserialize)]
    struct Tagged {
        tags: Vec<Agent>,
        free: Vec<String>,
    }
    let schema = Schema::new(schema_for!(Tagged).to_value());
    let text = r#"{"tags": ["SOLVER", "edge-case", "solver"], "free": ["edge-case"]}"#;
    let parsed = parse::<Tagged>(text, &schema).unwrap();
    let expected = Tagged {
        tags: vec![Agent::Solver; 2],
        free: vec!["edge-case".into()],
    };
    assert_eq!((parsed.value, parsed.clean), (expected, false));
    let dropped = "/tags/1: the unknown word \"edge-case\" was dropped";
    let spelled = "/tags/2: \"solver\" is spelled \"SOLVER\"";
    assert_eq!(parsed.notes, [spelled, dropped]);
}

#[test]
fn keys_are_respelled_and_unknown_ones_dropped() {
    for (text, note) in [
        (
            text().replace("answerSummary", "answer_summary"),
            "/: the key \"answer_summary\" is spelled \"answerSummary\"",
        ),
        (
            with("mood", json!("good")),
            "/: the unknown key \"mood\" was dropped",
        ),
    ] {
        let parsed = read(&text).unwrap();
        assert_eq!(
            (parsed.value, parsed.notes),
            (report(), vec![note.to_owned()])
        );
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let deep = format!("{}{}", "[".repeat(80), "]".repeat(80));
    let wrong = |key: &str, value: Value| (with(key, value), format!("/{key}"));
    let whole = |text: &str| (text.to_owned(), String::new());
    for ((text, pointer), detail) in [
        (
            wrong("selfConfidence", json!(85)),
            "greater than the maximum of 1",
        ),
        (
            wrong("selfConfidence", json!("85%")),
            "not of type \"number\"",
        ),
        (wrong("rounds", json!("9/10")), "not of type \"integer\""),
        (wrong("rounds", json!(9.5)), "not of type \"integer\""),
        (
            wrong("needsQuestion", json!("yes")),
            "not of type \"boolean\"",
        ),
        (
            wrong("reasoning", json!("x".repeat(41))),
            "longer than 40 characters",
        ),
        (whole("{}"), "\"agent\" is a required property"),
        (whole("I would rather not."), "there is no JSON object"),
        (whole("<think>{} and so on"), "there is no JSON object"),
        (whole(" "), "the reply is empty"),
        (whole(&"[".repeat(80)), "nested more than 64"),
        (whole(&deep), "nested more than 64"),
        (
            whole(&"x".repeat(MAX_BYTES + 1)),
            "longer than 1048576 bytes",
        ),
    ] {
        let problems = read(&text).unwrap_err();
        let mut found = problems.iter().filter(|problem| problem.pointer == pointer);
        assert!(
            found.any(|it| it.detail.contains(detail)),
            "{detail}: {problems:?}"
        );
    }
}

#[test]
fn a_cut_text_is_closed_unless_the_whole_is_wanted() {
    let schema = Schema::new(json!({ "type": "object", "required": ["a"],
        "properties": { "a": { "type": "string" } } }));
    let whole = |text: &str| parse_whole::<Value>(text, &schema);
    let cut = r#"{"a": "some wo"#;
    assert_eq!(
        parse::<Value>(cut, &schema).unwrap().value,
        json!({ "a": "some wo" })
    );
    assert_eq!(whole(cut).unwrap_err()[0].detail, "the reply is cut short");
    // What surrounds the JSON may be cut.
    assert!(whole("```json\n{\"a\": \"some words\"}\n``").is_ok());
}

#[test]
fn a_number_that_the_end_may_have_cut_is_not_believed() {
    let text = text();
    let (before, _) = text.split_once("2,\n").unwrap();
    assert!(before.ends_with("\"rounds\": 1"), "{before}");
    let problems = read(before).unwrap_err();
    assert_eq!(problems[0].to_string(), "\"rounds\" is a required property");
}

#[test]
fn any_json_is_found_without_a_schema() {
    for (text, expected) in [
        ("true", json!(true)),
        ("\"{\\\"a\\\": 1}\"", json!({"a": 1})),
        ("(1, 2)", json!([1, 2])),
        ("see [1]: {a: 'it''s'}", json!({"a": "it''s"})),
        ("{\"a\": [\"value]}", json!({"a": ["value"]})),
        ("{\"a\":\"b,\"c\":\"d\"}", json!({"a": "b", "c": "d"})),
        ("[{\"i\":1,{\"i\":2}]", json!([{"i": 1}, {"i": 2}])),
        (
            "{“a”: “b”, \"c\": +1, 'd': .5, e: \\u0041}",
            json!({"a": "b", "c": 1, "d": 0.5, "e": "\\u0041"}),
        ),
        (
            "{\"path\": \"C:\\dir\", \"s\": \"\\ud83d\\ude00 \\ud83d\"}",
            json!({"path": "C:\\dir", "s": "😀 \u{fffd}"}),
        ),
        (
            "{\"say\": \"he said \"yes\", then left\", \"n\": 1}",
            json!({"say": "he said \"yes\", then left", "n": 1}),
        ),
    ] {
        assert_eq!(extract_any(text), Some(expected), "{text}");
    }
    assert_eq!(extract_any("no JSON here"), None);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ \\[\\]{}\"'`,:\\\\/a-c\n]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            any_object(inner).prop_map(Value::Object),
        ]
    })
}

fn any_object(
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = serde_json::Map<String, Value>> {
    prop::collection::vec(("\\PC{0,8}", value), 0..5)
        .prop_map(|members| members.into_iter().collect())
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = (read(&text), extract_any(&text));
    }

    #[test]
    fn no_almost_json_makes_it_panic(text in "[ {}\\[\\]():,\"'`“”/*#\\\\u0-9a-eE.+\n-]{0,60}") {
        let _ = (read(&text), extract_any(&text));
    }

    #[test]
    fn any_object_survives_fences_and_prose(members in any_object(any_value()), pretty in any::<bool>()) {
        let value = Value::Object(members);
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        for text in [format!("```json\n{text}\n```"), format!("Here it is:\n{text}\nThat's all.")] {
            let parsed = parse::<Value>(&text, &Schema::new(json!({"type": "object"}))).unwrap();
            prop_assert_eq!(&parsed.value, &value);
            prop_assert!(!parsed.clean);
        }
    }

    #[test]
    fn a_cut_reply_is_valid_or_refused(length in 0_usize..400) {
        let text: String = text().chars().take(length).collect();
        match read(&text) {
            Ok(parsed) => {
                let value = serde_json::to_value(&parsed.value).unwrap();
                prop_assert!(jsonschema::is_valid(&schema(), &value));
                prop_assert_eq!(parsed.value.rounds, report().rounds);
            }
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
    }
}
