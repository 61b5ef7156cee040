//! What guards actions: gates, switches, limits, time, and what is left when a process dies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use conclave::journal::{ActionOutcome, Ending, Event, RunFilter, SqliteStore};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::acting::{act, confirm, post, proposal, proposing, said};
use crate::support::app::PLANTED_KEY;
use crate::support::replica::Home;
use crate::support::{Fault, MockProvider, Setup, TestApp, client};

#[tokio::test]
async fn only_safe_commands_run_without_a_word_and_only_if_all_three_conditions_hold() {
    let sure = |action: &str, args: Value| proposal(action, args, 0.95);
    let rope = || json!({ "content": "buy rope" });
    let cases = [
        ("true", "0.90", sure("memory.add", rope()), true),
        ("true", "0.90", sure("memory.search", json!({ "query": "rope" })), true),
        ("true", "0.90", proposal("memory.add", rope(), 0.90), true),
        ("false", "0.90", sure("memory.add", rope()), false),
        ("true", "0.96", sure("memory.add", rope()), false),
        ("true", "0.90", proposal("memory.add", rope(), 0.8999), false),
        ("true", "0.0", sure("sheet.create", json!({ "name": "Aria" })), false),
        ("true", "0.0", sure("roll", json!({ "expression": "1d6" })), false),
        ("true", "0.0", sure("do", json!({ "deed": "burn the village" })), false),
    ];
    for (allow, least, reply, executed) in cases {
        let provider = MockProvider::start().await;
        provider.reply_with("proposal", reply.clone());
        let setup = proposing().env("PROPOSER_ALLOW_AUTOEXEC", allow).env("VICTUS_LLM_AUTOEXEC_MIN_CONFIDENCE", least);
        let app = TestApp::with(&provider, setup).await;
        let answer = act(&app, "ada", "well, rope and so on").await;
        assert_eq!(answer.body["executed"], json!(executed), "{reply}");
        assert_eq!(answer.body.get("proposal").is_none(), executed, "{reply}");
        assert_eq!(answer.keys.contains(&"executed".to_owned()), executed, "{reply}");
        assert_eq!(answer.gates().last().unwrap() == "auto_execution", executed, "{reply}");
        if executed {
            assert_eq!(answer.body["result"], answer.body["actions"][0]["result"]);
        }
    }
}

#[tokio::test]
async fn what_had_to_be_mended_is_offered_and_never_executed() {
    let whole = r#"{"ok":true,"confidence":0.95,"action":"memory.add","reason":"r","args":{"content":"pay Bob 10"},"alternatives":[]}"#;
    let texts = [
        (whole.to_owned(), true),
        (whole.replace(",\"alternatives\":[]}", ",\"raw\":\"pay Bob 10\"}"), true),
        (format!("```json\n{whole}\n```"), true),
        (format!("Here it is:\n```json\n{whole}\n```"), false),
        (whole.replace(":[]}", ":[],\"note\":1}"), false),
        (whole.replace("0.95", "\"0.95\""), false),
        (whole.replace(" 10\"},\"alternatives\":[]}", " 10"), false),
    ];
    for (text, executed) in texts {
        let provider = MockProvider::start().await;
        provider.reply_text("proposal", text.clone());
        let app = TestApp::with(&provider, proposing().env("PROPOSER_ALLOW_AUTOEXEC", "true")).await;
        let answer = act(&app, "ada", "well, Bob and so on").await;
        assert_eq!(answer.keys.contains(&"executed".to_owned()), executed, "{text}: {}", answer.body);
        if executed {
            let id = answer.run.unwrap().to_string();
            assert_eq!(answer.body["actions"][0]["result"]["id"], id, "what is stored is known by its action's id");
            let found = act(&app, "ada", "/memory search Bob").await;
            assert_eq!(found.body["actions"][0]["result"]["memories"][0]["id"], id, "{}", found.body);
        }
    }
}

#[tokio::test]
async fn a_model_may_name_commands_and_arguments_as_people_write_them() {
    let cases = [
        ("roll", json!({ "expr": "2d6+3" }), json!({ "expression": "2d6+3" })),
        ("check", json!({ "ability": "DEX", "dc": 15 }), json!({ "ability": "dex", "dc": 15 })),
        ("check", json!({ "skill": "Sleight of Hand" }), json!({ "skill": "sleight_of_hand" })),
        ("do", json!({ "message": "climb the wall" }), json!({ "deed": "climb the wall" })),
        ("ooc", json!({ "message": "brb" }), json!({ "remark": "brb" })),
        ("memory:add", json!({ "content": "rope" }), json!({ "content": "rope" })),
    ];
    for (action, args, read) in cases {
        let provider = MockProvider::start().await;
        provider.reply_with("proposal", proposal(action, args, 0.94));
        let app = TestApp::with(&provider, proposing()).await;
        let answer = act(&app, "ada", "well, you know what").await;
        assert_eq!(answer.body["proposed_action"]["args"], read, "{}", answer.body);
        assert_eq!(answer.body["proposed_action"]["action"], action.replace(':', "."));
    }
}

#[tokio::test]
async fn every_gate_stops_what_it_is_there_for_and_the_journal_names_it() {
    let rules = json!({
        "proposerCommands": ["roll", "memory.add", "sheet.create"],
        "guilds": { "g1": { "commands": ["roll", "memory.search", "memory.add"] } },
    });
    let cases = [
        (proposal("bananas", json!({}), 0.9), vec!["allowlist!"]),
        (proposal("help", json!({}), 0.9), vec!["allowlist!"]),
        (proposal("sheet.create", json!({ "name": "Aria" }), 0.9), vec!["allowlist", "schema", "policy!"]),
        (proposal("roll", json!({ "expression": "rm -rf /" }), 0.9), vec!["allowlist", "schema!"]),
        (proposal("roll", json!({ "expression": "99999d6" }), 0.9), vec!["allowlist", "schema!"]),
        (proposal("roll", json!({}), 0.9), vec!["allowlist", "schema!"]),
        (proposal("roll", json!({ "expression": "1d6", "user": "ben" }), 0.9), vec!["allowlist", "schema!"]),
        (proposal("roll", json!({ "expression": ["1d6"] }), 0.9), vec!["allowlist", "schema!"]),
        (proposal("roll", json!({ "expression": "1d6", "content": "x" }), 0.9), vec!["allowlist", "schema!"]),
        (proposal("memory.add", json!({ "content": " \n " }), 0.9), vec!["allowlist", "schema!"]),
        (
            proposal("roll", json!({ "expression": "1d6" }), 0.9),
            vec!["allowlist", "schema", "policy", "auto_execution!"],
        ),
    ];
    for (reply, gates) in cases {
        let provider = MockProvider::start().await;
        provider.reply_with("proposal", reply.clone());
        let app = TestApp::with(&provider, proposing().set("/policy/actions", rules.clone())).await;
        let answer = act(&app, "ada", "something unclear").await;
        assert_eq!(answer.gates(), gates, "{reply}");
        let stopped = gates.len() < 4;
        assert_eq!(answer.body["error"] == "unknown_intent", stopped, "{}", answer.body);
        assert!(!answer.keys.contains(&"executed".to_owned()));
    }
    // What a model may not say at all fits no schema: another type, a key too many, no JSON, nothing.
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
    for text in ["I would roll a die here.", "{\"ok\": true, \"confidence\"", "[]"] {
        let provider = MockProvider::start().await;
        provider.reply_text("proposal", text);
        let app = TestApp::with(&provider, proposing()).await;
        let answer = act(&app, "ada", "something unclear").await;
        let why = answer.events.iter().find_map(|event| match event {
            Event::GateChecked(verdict) => Some((verdict.gate.as_str(), verdict.passed, verdict.why.is_empty())),
            _ => None,
        });
        assert_eq!(why, Some(("schema", false, false)), "{text}");
    }
}

#[tokio::test]
async fn an_alternative_that_cannot_be_read_does_not_take_the_first_reading_with_it() {
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
        let choices: Vec<&str> =
            offered.body["choices"].as_array().unwrap().iter().map(|c| c["action"].as_str().unwrap()).collect();
        assert_eq!(choices, ["roll", "check"], "{alternatives}");
        let schema = offered.events.iter().find_map(|event| match event {
            Event::GateChecked(verdict) if verdict.gate.as_str() == "schema" => Some(verdict),
            _ => None,
        });
        let schema = schema.unwrap();
        assert!(schema.passed && schema.why.starts_with("alternative 1 was dropped: "), "{}", schema.why);
    }
    // Nor is it a reason to trust the rest.
    let provider = MockProvider::start().await;
    let mut reply = proposal("memory.add", json!({ "content": "buy rope" }), 0.95);
    reply["alternatives"] = json!("none");
    provider.reply_with("proposal", reply);
    let app = TestApp::with(&provider, proposing().env("PROPOSER_ALLOW_AUTOEXEC", "true")).await;
    let answer = act(&app, "ada", "well, rope and so on").await;
    assert_eq!(answer.body["executed"], json!(false));
    assert_eq!(answer.gates(), ["allowlist", "schema", "policy", "auto_execution!"]);
}

#[tokio::test]
async fn a_proposer_with_a_small_context_is_asked_with_the_compact_prompt() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("roll", json!({ "expression": "1d6" }), 0.7));
    for (set, words) in [("full", "## Rules"), ("compact", "You only propose.")] {
        let role = json!({ "provider": "anthropic", "model": "MASTER_MODEL", "prompts": set });
        let app = TestApp::with(&provider, proposing().set("/models/roles/proposer", role)).await;
        act(&app, "ada", "dice, go").await;
        let asked = provider.calls().pop().unwrap().text();
        assert!(asked.contains(words) && asked.contains("memory.search"), "{set}: {asked}");
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
    assert_eq!((done.status, &done.body["intent"]["action"]), (200, &json!("check")));
}

#[tokio::test]
async fn the_same_text_in_a_scene_costs_one_call_and_everybody_gets_a_proposal_of_his_own() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("memory.add", json!({ "content": "buy rope" }), 0.94));
    provider.latency(Duration::from_millis(200));
    let app = TestApp::with(&provider, proposing()).await;
    let text = "rope, keep it in mind";
    let users = ["ada", "ada", "ben", "cyd"];
    let answers = futures_util::future::join_all(users.map(|user| act(&app, user, text))).await;
    assert_eq!(provider.count_step("proposal"), 1, "one call for all of them");
    let bought = answers.iter().filter(|answer| answer.keys.contains(&"sent:proposal".to_owned())).count();
    assert_eq!(bought, 1);
    assert_eq!(confirm(&app, "ben", &answers[0]).await.status, 404);
    assert_eq!(confirm(&app, "ben", &answers[2]).await.status, 200);
    assert_eq!(act(&app, "ada", "/memory search rope").await.body["actions"][0]["result"]["memories"], json!([]));
    // In another scene it is another text.
    let mut elsewhere = said("ada", text);
    elsewhere["context"]["channelId"] = json!("c2");
    post(&app, "/api/act", &elsewhere).await;
    assert_eq!(provider.count_step("proposal"), 2);
    // And what is kept is forgotten.
    let hasty = TestApp::with(&provider, proposing().set("/policy/actions", json!({ "cacheSeconds": 0 }))).await;
    act(&hasty, "ada", text).await;
    act(&hasty, "ada", text).await;
    assert_eq!(provider.count_step("proposal"), 4);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_or_is_none_is_not_bought_twice() {
    let billed = [(Fault::Malformed, vec!["schema!"]), (Fault::EmptyText, vec!["schema!"]), (Fault::Refusal, vec![])];
    for (fault, gates) in billed {
        let provider = MockProvider::start().await;
        provider.on("proposal", fault.clone());
        provider.latency(Duration::from_millis(700));
        let app = TestApp::with(&provider, proposing()).await;
        let at_once = futures_util::future::join_all(["ada", "ben", "cyd"].map(|user| act(&app, user, "hm, what now")));
        let mut answers = at_once.await;
        answers.push(act(&app, "dan", "hm, what now").await);
        for answer in &answers {
            assert_eq!(answer.body["message"], conclave::act::reply::UNKNOWN, "{fault:?}: the same for everybody");
            assert_eq!(answer.gates(), gates, "{fault:?}");
        }
        assert_eq!(provider.count_step("proposal"), 1, "{fault:?}");
    }
    // What surely cost nothing is told to those who waited, and may be tried again.
    let provider = MockProvider::start().await;
    provider.on("proposal", Fault::Status(500));
    provider.latency(Duration::from_millis(700));
    let app = TestApp::with(&provider, proposing()).await;
    let both = futures_util::future::join_all(["ada", "ben"].map(|user| act(&app, user, "hm, what now"))).await;
    assert!(both.iter().all(|answer| answer.body["message"] == conclave::act::reply::UNKNOWN));
    assert_eq!(provider.count_step("proposal"), 1);
    act(&app, "ada", "hm, what now").await;
    assert_eq!(provider.count_step("proposal"), 2);
}

#[tokio::test]
async fn a_model_that_hangs_is_not_waited_for_longer_than_five_seconds() {
    let provider = MockProvider::start().await;
    provider.on("proposal", Fault::Hang(Duration::from_secs(30)));
    let app = TestApp::with(
        &provider,
        proposing().set("/policy/deadlines", json!({ "call": 20, "ask": 60, "audit": 60, "deep": 60 })),
    )
    .await;
    let started = Instant::now();
    let both = futures_util::future::join_all(["ada", "ben"].map(|user| act(&app, user, "hm, what now"))).await;
    let took = started.elapsed();
    assert!((Duration::from_secs(5)..Duration::from_secs(8)).contains(&took), "{took:?}");
    for answer in &both {
        assert_eq!(answer.body["error"], "unknown_intent");
        assert!(answer.body["message"].as_str().unwrap().contains("too long"), "{}", answer.body);
        assert_eq!(answer.keys.last().unwrap(), "finished");
    }
    let late = act(&app, "cyd", "hm, what now").await;
    assert_eq!(late.body, both[0].body);
    assert_eq!(provider.count_step("proposal"), 1);
    // The call may be billed: it is settled at what was reserved for it.
    let asked = both.iter().find(|answer| answer.keys.contains(&"settled:proposal".to_owned())).unwrap();
    let sent =
        asked.events.iter().find_map(|e| if let Event::CallSent(s) = e { s.reserved.clone() } else { None }).unwrap();
    assert_eq!(app.app.run(asked.run.unwrap()).await.unwrap().unwrap().spent, sent.amount);
}

#[tokio::test]
async fn a_provider_in_trouble_is_a_friendly_answer_without_its_words() {
    for fault in [Fault::Status(500), Fault::Malformed, Fault::Refusal, Fault::EmptyText, Fault::Html, Fault::CutJson] {
        let provider = MockProvider::start().await;
        provider.on("proposal", fault.clone());
        let app = TestApp::with(&provider, proposing()).await;
        let answer = act(&app, "ada", "hm, what now").await;
        assert_eq!(answer.body["error"], "unknown_intent", "{fault:?}");
        assert_eq!(answer.body["message"], conclave::act::reply::UNKNOWN);
        assert_eq!(provider.count_step("proposal"), 1, "{fault:?}: one call, without retry and repair");
    }
}

#[tokio::test]
async fn switches_and_guild_rules_hold() {
    let provider = MockProvider::start().await;
    let off = TestApp::with(&provider, proposing().env("FEATURE_PLANNER_ENABLED", "false")).await;
    let disabled = act(&off, "ada", "roll 1d6").await;
    assert_eq!((&disabled.body["error"], disabled.keys.len()), (&json!("disabled"), 0));
    let rows = off.app.runs(&RunFilter { limit: 5, ..RunFilter::default() }).await.unwrap();
    assert_eq!(rows, [], "nothing is stored");

    let rules = json!({ "guilds": {
        "g1": { "commands": ["roll"] }, "out": { "enabled": false }, "trial": { "shadow": true },
    } });
    provider.reply_with("proposal", proposal("memory.add", json!({ "content": "rope" }), 0.99));
    let setup = proposing().env("PROPOSER_ALLOW_AUTOEXEC", "true").set("/policy/actions", rules);
    let app = TestApp::with(&provider, setup).await;
    let within = |guild: &str, message: &str| {
        let mut body = said("ada", message);
        body["context"]["guildId"] = json!(guild);
        body
    };
    assert_eq!(act(&app, "ada", "roll 1d6").await.body["executed"], json!(true));
    let refused = act(&app, "ada", "remember that it rains").await;
    assert_eq!(refused.body["error"], "not_allowed");
    assert_eq!(refused.gates(), ["policy!"]);
    assert_eq!(act(&app, "ada", "/memory.add").await.body["error"], "not_allowed");
    assert_eq!(post(&app, "/api/act", &within("out", "roll 1d6")).await.body["error"], "disabled");
    let trial = post(&app, "/api/act", &within("trial", "remember that it rains")).await;
    assert_eq!((&trial.body["error"], &trial.body["ephemeral"]), (&json!("shadow_mode"), &json!(true)));
    assert_eq!(trial.gates(), ["policy!"]);
    let trial = post(&app, "/api/act", &within("trial", "rope, keep it in mind")).await;
    assert_eq!(trial.body["error"], "shadow_mode");
    assert_eq!(trial.gates(), ["allowlist", "schema", "policy!"]);
    assert!(!trial.keys.contains(&"executed".to_owned()));
}

#[tokio::test]
async fn the_models_reason_is_cut_and_never_shown_to_discord() {
    let provider = MockProvider::start().await;
    let mut reply = proposal("roll", json!({ "expression": "1d6" }), 0.7);
    reply["reason"] = json!("because ".repeat(40));
    provider.reply_with("proposal", reply);
    let app = TestApp::with(&provider, proposing()).await;
    let shown = act(&app, "ada", "dice, go").await;
    assert_eq!(shown.body["proposed_action"]["reason"].as_str().unwrap().chars().count(), 120);
    let mut discord = said("ada", "dice, go");
    discord["source"] = json!("discord");
    let hidden = post(&app, "/api/act", &discord).await;
    assert_eq!(hidden.body["proposed_action"]["reason"], "");
    assert!(!hidden.body.to_string().contains("because"));
    assert!(hidden.events.iter().any(|e| matches!(e, Event::Proposed(p) if p.reason.starts_with("because"))));
}

#[tokio::test]
async fn a_repetition_by_key_does_nothing_again() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let send = |key: &'static str, message: &'static str| {
        let request = app.client.post(format!("{}/api/act", app.url)).header("idempotency-key", key);
        request.json(&said("ada", message)).send()
    };
    let first: Value = send("k", "roll 20d20").await.unwrap().json().await.unwrap();
    let second: Value = send("k", "roll 20d20").await.unwrap().json().await.unwrap();
    assert_eq!(first, second);
    assert_eq!(send("k", "roll 21d20").await.unwrap().status(), 422);
    let mut body = said("ada", "remember that it rains");
    body["context"]["messageId"] = json!("m1");
    let (one, two) = (post(&app, "/api/act", &body).await, post(&app, "/api/act", &body).await);
    assert_eq!(one.run, two.run);
    let found = act(&app, "ada", "/memory search rains").await;
    assert_eq!(found.body["actions"][0]["result"]["memories"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_user_who_acts_too_often_waits_and_others_do_not() {
    let provider = MockProvider::start().await;
    let setup = Setup::default().set("/policy/actions", json!({ "userPerMinute": 2, "userBurst": 2 }));
    let app = TestApp::with(&provider, setup).await;
    let mut statuses = vec![];
    for user in ["ada", "ada", "ada", "ben"] {
        let response =
            app.client.post(format!("{}/api/act", app.url)).json(&said(user, "roll 1d6")).send().await.unwrap();
        statuses.push((response.status().as_u16(), response.headers().contains_key("retry-after")));
    }
    assert_eq!(statuses, [(200, false), (200, false), (429, true), (200, false)]);
}

#[tokio::test]
async fn an_action_whose_process_died_is_ended_and_nothing_is_done_late() {
    let provider = MockProvider::start().await;
    provider.on("proposal", Fault::Hang(Duration::from_secs(60)));
    let folder = Arc::new(TempDir::new().unwrap());
    let path = folder.path().join("conclave.db");
    let owner = "00000000-0000-7000-8000-00000000dead";
    let store = SqliteStore::open(&path, owner).await.unwrap();
    let mut setup = proposing();
    setup.config.push(("/policy/actions", json!({ "timeoutMs": 60000 })));
    let run = {
        let app = TestApp::with_store(&provider, setup, Arc::clone(&folder), store, owner).await;
        let body = said("ada", "hm, what now");
        let request = app.client.post(format!("{}/api/act", app.url)).json(&body);
        let _ = tokio::time::timeout(Duration::from_millis(1500), request.send()).await;
        let rows = app.app.runs(&RunFilter { limit: 1, ..RunFilter::default() }).await.unwrap();
        assert!(!rows[0].state.is_terminal());
        rows[0].id
    };
    assert_eq!(provider.in_flight(), 1);
    // The process is gone: its lease is let go of.
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::query("UPDATE runs SET lease_until_ms = 0").execute(&pool).await.unwrap();
    let app = TestApp::on(&provider, proposing(), folder).await;
    app.app.keep_recovering();
    let ending = app.ended(run).await;
    assert!(matches!(&ending, Ending::Failed { detail, .. } if detail.contains("nothing was done")), "{ending:?}");
    let entries = app.entries(run).await;
    let reserved =
        entries.iter().find_map(|e| if let Event::CallSent(s) = &e.event { s.reserved.clone() } else { None });
    let row = app.app.run(run).await.unwrap().unwrap();
    assert_eq!(row.spent, reserved.unwrap().amount, "the call may be billed");
    assert_eq!(provider.count_step("proposal"), 1, "and is not made again");
}

#[test]
fn what_was_executed_before_a_crash_is_told_as_executed() {
    use conclave::act::left_behind;
    use conclave::domain::{ActionMode, CommandName};
    use conclave::journal::{Executed, Parsed};
    let mut accepted = crate::store::new_run(1, None, "rope").accepted;
    accepted.action = Some(conclave::journal::ActionIntake::default());
    let parsed = Parsed {
        command: CommandName::MemoryAdd,
        arguments: json!({ "content": "rope" }),
        mode: ActionMode::LlmProposal,
        confidence: 0.95,
        reason: Some("r".into()),
    };
    let executed =
        Executed { command: CommandName::MemoryAdd, result: json!({ "text": "Remembered: rope" }), effect: None };
    let events = vec![Event::Accepted(Box::new(accepted)), Event::Parsed(parsed), Event::Executed(Box::new(executed))];
    let Ending::Acted { outcome, response } = left_behind(&events) else { panic!("it was executed") };
    assert_eq!((outcome, &response["executed"]), (ActionOutcome::Executed, &json!(true)));
    assert!(matches!(left_behind(&events[..2]), Ending::Failed { .. }));
}

#[tokio::test]
async fn a_spending_limit_and_a_small_cap_hold_for_proposals() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("roll", json!({ "expression": "1d6" }), 0.7));
    let poor = TestApp::with(&provider, proposing().set("/policy/actions", json!({ "maxUsd": 0.0001 }))).await;
    assert_eq!(act(&poor, "ada", "dice, go").await.body["error"], "unknown_intent");
    assert_eq!(provider.calls().len(), 0, "the cap has no room for the call");
    let setup =
        proposing().set("/policy/limits/userDailyUsd", json!(0.5)).set("/policy/actions", json!({ "maxUsd": 0.4 }));
    let app = TestApp::with(&provider, setup).await;
    let spent: u64 = app.app.run(act(&app, "ada", "dice, go").await.run.unwrap()).await.unwrap().unwrap().spent.nanos();
    assert!(spent > 0);
    provider.on("proposal", Fault::HugeUsage(20_000));
    act(&app, "ada", "dice, go on").await;
    let refused = post(&app, "/api/act", &said("ada", "dice, go once more")).await;
    assert_eq!((refused.status, &refused.body["type"]), (429, &json!("urn:conclave:problem:limit-spent")));
    assert_eq!(act(&app, "ada", "roll 1d6").await.body["executed"], json!(true), "what costs nothing is not limited");
}

#[tokio::test]
async fn metrics_count_actions() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, proposing()).await;
    act(&app, "ada", "roll 1d6").await;
    provider.reply_with("proposal", proposal("bananas", json!({}), 0.9));
    act(&app, "ada", "hm, one").await;
    provider.on("proposal", Fault::Malformed);
    act(&app, "ada", "hm, two").await;
    let text = app.client.get(format!("{}/metrics", app.url)).send().await.unwrap().text().await.unwrap();
    for line in [
        "conclave_act_requests_total{outcome=\"executed\",mode=\"deterministic\"} 1",
        "conclave_act_requests_total{outcome=\"declined\",mode=\"none\"} 2",
        "conclave_act_accepted_total{command=\"roll\",mode=\"deterministic\"} 1",
        "conclave_act_rejected_total{gate=\"allowlist\"} 1",
        "conclave_act_rejected_total{gate=\"schema\"} 1",
        "conclave_act_parse_failures_total 1",
        "conclave_act_seconds_count{mode=\"deterministic\"} 1",
    ] {
        assert!(
            text.contains(line),
            "{line} is not in\n{}",
            text.lines().filter(|l| l.contains("_act_")).collect::<Vec<_>>().join("\n")
        );
    }
}

#[tokio::test]
async fn actions_survive_kills_of_the_process_with_all_that_they_changed() {
    let provider = MockProvider::start().await;
    let home = Home::sqlite();
    let client = client();
    let mut answered = 0;
    for round in 0..3 {
        let service = home.serve(&provider).await;
        let mut said_so = said(&format!("u{round}"), "");
        for n in 0..15 {
            said_so["message"] = json!(format!("remember that wagon {n} is full"));
            let response = client.post(format!("{}/api/act", service.url)).json(&said_so).send().await.unwrap();
            assert_eq!(response.json::<Value>().await.unwrap()["executed"], json!(true));
            answered += 1;
        }
        // The moment after the last answer.
        service.kill().await;
    }
    let store = home.store().await;
    let rows = store.runs(&RunFilter { limit: 200, ..RunFilter::default() }).await.unwrap();
    assert_eq!(rows.len(), answered);
    for row in &rows {
        let entries = store.entries(row.id, 0).await.unwrap();
        assert_eq!(conclave::journal::verify(row.id, &entries, &row.head_hash), Ok(()));
    }
    let owner = conclave::journal::Owner {
        source: conclave::domain::Source::Http,
        user_id: "u2".into(),
        guild_id: Some("g1".into()),
    };
    assert_eq!(store.memory_count(&owner).await.unwrap(), 15);
}

#[tokio::test]
async fn a_secret_that_a_user_or_a_model_writes_goes_no_further() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("memory.add", json!({ "content": format!("key {PLANTED_KEY}") }), 0.94));
    let app = TestApp::with(&provider, proposing()).await;
    let told = act(&app, "ada", &format!("remember that the key is {PLANTED_KEY}")).await;
    assert!(!told.body.to_string().contains(PLANTED_KEY), "{}", told.body);
    let offered = act(&app, "ada", &format!("hm, {PLANTED_KEY}, keep it in mind")).await;
    assert!(!offered.body.to_string().contains(PLANTED_KEY), "{}", offered.body);
    assert!(!provider.calls().iter().any(|call| call.text().contains(PLANTED_KEY)));
    assert!(!confirm(&app, "ada", &offered).await.body.to_string().contains(PLANTED_KEY));
}
