//! Tests the gates between a proposal and its execution, the switches, and the rules of guilds.

use conclave::journal::{Event, RunFilter};
use serde_json::{Value, json};

use crate::act::{act, post, proposal, proposes, proposing, said};
use crate::support::{MockProvider, TestApp};

#[tokio::test]
async fn only_safe_commands_run_without_confirmation_under_three_conditions() {
    let sure = |action: &str, args: Value| proposal(action, args, 0.95);
    let rope = || json!({ "content": "buy rope" });
    let cases = [
        ("true", "0.90", sure("memory.add", rope()), true),
        (
            "true",
            "0.90",
            sure("memory.search", json!({ "query": "rope" })),
            true,
        ),
        ("true", "0.90", proposal("memory.add", rope(), 0.90), true),
        ("false", "0.90", sure("memory.add", rope()), false),
        ("true", "0.96", sure("memory.add", rope()), false),
        (
            "true",
            "0.90",
            proposal("memory.add", rope(), 0.8999),
            false,
        ),
        (
            "true",
            "0.0",
            sure("sheet.create", json!({ "name": "Aria" })),
            false,
        ),
        (
            "true",
            "0.0",
            sure("roll", json!({ "expression": "1d6" })),
            false,
        ),
        (
            "true",
            "0.0",
            sure("do", json!({ "deed": "burn the village" })),
            false,
        ),
    ];
    for (allow, least, reply, executed) in cases {
        let provider = MockProvider::start().await;
        provider.reply_with("proposal", reply.clone());
        let setup = proposing()
            .env("PROPOSER_ALLOW_AUTOEXEC", allow)
            .env("VICTUS_LLM_AUTOEXEC_MIN_CONFIDENCE", least);
        let app = TestApp::with(&provider, setup).await;
        let answer = act(&app, "ada", "well, rope and so on").await;
        assert_eq!(answer.body["executed"], json!(executed), "{reply}");
        assert_eq!(answer.body.get("proposal").is_none(), executed, "{reply}");
        assert_eq!(
            answer.keys.contains(&"executed".to_owned()),
            executed,
            "{reply}"
        );
        assert_eq!(
            answer.gates().last().unwrap() == "auto_execution",
            executed,
            "{reply}"
        );
        if executed {
            assert_eq!(answer.body["result"], answer.body["actions"][0]["result"]);
        }
    }
}

#[tokio::test]
async fn a_repaired_proposal_is_offered_and_never_executed() {
    let whole = r#"{"ok":true,"confidence":0.95,"action":"memory.add","reason":"r","args":{"content":"pay Bob 10"},"alternatives":[]}"#;
    let texts = [
        (whole.to_owned(), true),
        (
            whole.replace(",\"alternatives\":[]}", ",\"raw\":\"pay Bob 10\"}"),
            true,
        ),
        (format!("```json\n{whole}\n```"), true),
        (format!("Here it is:\n```json\n{whole}\n```"), false),
        (whole.replace(":[]}", ":[],\"note\":1}"), false),
        (whole.replace("0.95", "\"0.95\""), false),
        (whole.replace(" 10\"},\"alternatives\":[]}", " 10"), false),
    ];
    for (text, executed) in texts {
        let provider = MockProvider::start().await;
        provider.reply_text("proposal", text.clone());
        let setup = proposing().env("PROPOSER_ALLOW_AUTOEXEC", "true");
        let app = TestApp::with(&provider, setup).await;
        let answer = act(&app, "ada", "well, Bob and so on").await;
        assert_eq!(
            answer.keys.contains(&"executed".to_owned()),
            executed,
            "{text}: {}",
            answer.body
        );
        if executed {
            let id = answer.run.unwrap().to_string();
            assert_eq!(
                answer.body["actions"][0]["result"]["id"], id,
                "what is stored is known by its action's id"
            );
            let found = act(&app, "ada", "/memory search Bob").await;
            assert_eq!(
                found.body["actions"][0]["result"]["memories"][0]["id"], id,
                "{}",
                found.body
            );
        }
    }
}

#[tokio::test]
async fn a_model_may_name_commands_and_arguments_as_people_write_them() {
    let cases = [
        (
            "roll",
            json!({ "expr": "2d6+3" }),
            json!({ "expression": "2d6+3" }),
        ),
        (
            "check",
            json!({ "ability": "DEX", "dc": 15 }),
            json!({ "ability": "dex", "dc": 15 }),
        ),
        (
            "check",
            json!({ "skill": "Sleight of Hand" }),
            json!({ "skill": "sleight_of_hand" }),
        ),
        (
            "do",
            json!({ "message": "climb the wall" }),
            json!({ "deed": "climb the wall" }),
        ),
        (
            "ooc",
            json!({ "message": "brb" }),
            json!({ "remark": "brb" }),
        ),
        (
            "memory:add",
            json!({ "content": "rope" }),
            json!({ "content": "rope" }),
        ),
    ];
    for (action, args, read) in cases {
        let provider = MockProvider::start().await;
        proposes(&provider, action, args, 0.94);
        let app = TestApp::with(&provider, proposing()).await;
        let answer = act(&app, "ada", "well, you know what").await;
        assert_eq!(
            answer.body["proposed_action"]["args"], read,
            "{}",
            answer.body
        );
        assert_eq!(
            answer.body["proposed_action"]["action"],
            action.replace(':', ".")
        );
    }
}

#[tokio::test]
async fn every_gate_stops_its_cases_and_the_journal_names_it() {
    let rules = json!({
        "proposerCommands": ["roll", "memory.add", "sheet.create"],
        "guilds": { "g1": { "commands": ["roll", "memory.search", "memory.add"] } },
    });
    let table = r#"bananas | {} | allowlist!
        help | {} | allowlist!
        sheet.create | { "name": "Aria" } | allowlist schema policy!
        roll | { "expression": "rm -rf /" } | allowlist schema!
        roll | { "expression": "99999d6" } | allowlist schema!
        roll | {} | allowlist schema!
        roll | { "expression": "1d6", "user": "ben" } | allowlist schema!
        roll | { "expression": ["1d6"] } | allowlist schema!
        roll | { "expression": "1d6", "content": "x" } | allowlist schema!
        memory.add | { "content": " \n " } | allowlist schema!
        roll | { "expression": "1d6" } | allowlist schema policy auto_execution!"#;
    for row in table.lines() {
        let cells: Vec<&str> = row.split(" | ").map(str::trim).collect();
        let [action, args, gates] = cells[..] else {
            panic!("{row}")
        };
        let args = serde_json::from_str(args).unwrap();
        let provider = MockProvider::start().await;
        proposes(&provider, action, args, 0.9);
        let app = TestApp::with(&provider, proposing().set("/policy/actions", rules.clone())).await;
        let answer = act(&app, "ada", "something unclear").await;
        assert_eq!(answer.gates().join(" "), gates, "{row}");
        let is_stopped = !gates.ends_with("auto_execution!");
        let is_unknown = answer.body["error"] == "unknown_intent";
        assert_eq!(is_unknown, is_stopped, "{}", answer.body);
        assert!(!answer.keys.contains(&"executed".to_owned()));
    }
}

#[tokio::test]
async fn a_reply_that_is_no_proposal_stops_at_the_schema() {
    // A wrong type, and an unknown key.
    for reply in [
        json!({ "ok": true, "confidence": 7, "action": "roll", "args": { "expression": "1d6" }, "reason": "", "alternatives": [] }),
        json!({ "ok": true, "confidence": 0.9, "action": { "name": "roll" }, "args": {}, "reason": "", "alternatives": [] }),
    ] {
        let provider = MockProvider::start().await;
        provider.reply_with("proposal", reply.clone());
        let app = TestApp::with(&provider, proposing()).await;
        let answer = act(&app, "ada", "something unclear").await;
        assert_eq!(answer.body["error"], "unknown_intent", "{reply}");
        assert_eq!(answer.gates(), ["schema!"], "{reply}");
    }
    for text in [
        "I would roll a die here.",
        "{\"ok\": true, \"confidence\"",
        "[]",
    ] {
        let provider = MockProvider::start().await;
        provider.reply_text("proposal", text);
        let app = TestApp::with(&provider, proposing()).await;
        let answer = act(&app, "ada", "something unclear").await;
        let why = answer.events.iter().find_map(|event| match event {
            Event::GateChecked(verdict) => Some((
                verdict.gate.into_str(),
                verdict.passed,
                verdict.why.is_empty(),
            )),
            _ => None,
        });
        assert_eq!(why, Some(("schema", false, false)), "{text}");
    }
}

#[tokio::test]
async fn an_unreadable_alternative_does_not_discard_the_first_reading() {
    let alternatives = [
        json!([{ "action": "check" }, { "action": "check", "args": { "ability": "dex" } }]),
        json!(["check dex", { "action": "check", "args": { "ability": "dex" } }]),
        json!([{ "action": "bananas", "args": {} }, { "action": "check", "args": { "ability": "dex" } }]),
    ];
    for alternatives in alternatives {
        let provider = MockProvider::start().await;
        let mut reply = proposal("roll", json!({ "expression": "1d20" }), 0.4);
        reply["alternatives"] = alternatives.clone();
        provider.reply_with("proposal", reply);
        let app = TestApp::with(&provider, proposing()).await;
        let offered = act(&app, "ada", "jump or something").await;
        let choices: Vec<&str> = offered.body["choices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["action"].as_str().unwrap())
            .collect();
        assert_eq!(choices, ["roll", "check"], "{alternatives}");
        let schema = offered.events.iter().find_map(|event| match event {
            Event::GateChecked(verdict) if verdict.gate.into_str() == "schema" => Some(verdict),
            _ => None,
        });
        let schema = schema.unwrap();
        assert!(
            schema.passed && schema.why.starts_with("alternative 1 was dropped: "),
            "{}",
            schema.why
        );
    }
    // An unreadable list of alternatives bars automatic execution of the proposal.
    let provider = MockProvider::start().await;
    let mut reply = proposal("memory.add", json!({ "content": "buy rope" }), 0.95);
    reply["alternatives"] = json!("none");
    provider.reply_with("proposal", reply);
    let setup = proposing().env("PROPOSER_ALLOW_AUTOEXEC", "true");
    let app = TestApp::with(&provider, setup).await;
    let answer = act(&app, "ada", "well, rope and so on").await;
    assert_eq!(answer.body["executed"], json!(false));
    assert_eq!(
        answer.gates(),
        ["allowlist", "schema", "policy", "auto_execution!"]
    );
}

#[tokio::test]
async fn a_proposer_with_a_small_context_is_asked_with_the_compact_prompt() {
    let provider = MockProvider::start().await;
    proposes(&provider, "roll", json!({ "expression": "1d6" }), 0.7);
    for (set, words) in [("full", "## Rules"), ("compact", "You only propose.")] {
        let role = json!({ "provider": "anthropic", "model": "MASTER_MODEL", "prompts": set });
        let app = TestApp::with(&provider, proposing().set("/models/roles/proposer", role)).await;
        act(&app, "ada", "dice, go").await;
        let asked = provider.calls().pop().unwrap().text();
        assert!(
            asked.contains(words) && asked.contains("memory.search"),
            "{set}: {asked}"
        );
    }
}

#[tokio::test]
async fn an_unsure_model_leaves_the_choice_to_the_user() {
    let provider = MockProvider::start().await;
    let mut reply = proposal("roll", json!({ "expression": "1d20" }), 0.4);
    reply["alternatives"] = json!([
        { "action": "check", "args": { "ability": "dex", "dc": 15 } },
        { "action": "bananas", "args": {} },
    ]);
    provider.reply_with("proposal", reply);
    let app = TestApp::with(&provider, proposing()).await;
    let offered = act(&app, "ada", "jump or something").await;
    assert_eq!(
        offered.body["choices"],
        json!([
            { "choice": 1, "action": "roll", "args": { "expression": "1d20" } },
            { "choice": 2, "action": "check", "args": { "ability": "dex", "dc": 15 } },
        ])
    );
    let id = offered.body["proposal"]["id"].as_str().unwrap();
    let path = format!("/api/act/proposals/{id}/confirm");
    let mut body = said("ada", "");
    body.as_object_mut().unwrap().remove("message");
    body["choice"] = json!(3);
    assert_eq!(post(&app, &path, &body).await.status, 422);
    body["choice"] = json!(2);
    let done = post(&app, &path, &body).await;
    assert_eq!(
        (done.status, &done.body["intent"]["action"]),
        (200, &json!("check"))
    );
}

#[tokio::test]
async fn switches_and_guild_rules_are_enforced() {
    let provider = MockProvider::start().await;
    let setup = proposing().env("FEATURE_PLANNER_ENABLED", "false");
    let off = TestApp::with(&provider, setup).await;
    let disabled = act(&off, "ada", "roll 1d6").await;
    assert_eq!(
        (&disabled.body["error"], disabled.keys.len()),
        (&json!("disabled"), 0)
    );
    let rows = off
        .app
        .runs(&RunFilter {
            limit: 5,
            ..RunFilter::default()
        })
        .await
        .unwrap();
    assert_eq!(rows, [], "nothing is stored");

    let rules = json!({ "guilds": {
        "g1": { "commands": ["roll"] }, "out": { "enabled": false }, "trial": { "shadow": true },
    } });
    proposes(&provider, "memory.add", json!({ "content": "rope" }), 0.99);
    let setup = proposing()
        .env("PROPOSER_ALLOW_AUTOEXEC", "true")
        .set("/policy/actions", rules);
    let app = TestApp::with(&provider, setup).await;
    let within = |guild: &str, message: &str| {
        let mut body = said("ada", message);
        body["context"]["guildId"] = json!(guild);
        body
    };
    assert_eq!(
        act(&app, "ada", "roll 1d6").await.body["executed"],
        json!(true)
    );
    let refused = act(&app, "ada", "remember that it rains").await;
    assert_eq!(refused.body["error"], "not_allowed");
    assert_eq!(refused.gates(), ["policy!"]);
    assert_eq!(
        act(&app, "ada", "/memory.add").await.body["error"],
        "not_allowed"
    );
    assert_eq!(
        post(&app, "/api/act", &within("out", "roll 1d6"))
            .await
            .body["error"],
        "disabled"
    );
    let trial = post(&app, "/api/act", &within("trial", "remember that it rains")).await;
    assert_eq!(
        (&trial.body["error"], &trial.body["ephemeral"]),
        (&json!("shadow_mode"), &json!(true))
    );
    assert_eq!(trial.gates(), ["policy!"]);
    let trial = post(&app, "/api/act", &within("trial", "rope, keep it in mind")).await;
    assert_eq!(trial.body["error"], "shadow_mode");
    let shown = conclave::actions::reply::shown(&trial.body);
    assert!(shown.ends_with("\nFor the user: ada"), "{shown}");
    assert_eq!(trial.gates(), ["allowlist", "schema", "policy!"]);
    assert!(!trial.keys.contains(&"executed".to_owned()));
}
