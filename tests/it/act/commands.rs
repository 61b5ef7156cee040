//! Tests commands over HTTP: their effects, their answers and their journal entries.

use conclave::domain::{Outcome, RunId};
use conclave::journal::{Ending, Event, Transcript};
use serde_json::{Value, json};

use crate::act::{Answer, act, confirm, keys, post, proposing, said};
use crate::support::{MockProvider, Scenario, Setup, TestApp, sent};

#[tokio::test]
async fn clear_texts_are_executed_by_fixed_rules_and_no_model_is_asked() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, proposing()).await;
    let rolled = act(&app, "ada", "roll 2d6+3 for damage").await;
    assert_eq!(
        keys(&rolled.body),
        ["intent", "mode", "executed", "actions"]
    );
    assert_eq!(
        rolled.body["intent"],
        json!({ "action": "roll", "parameters": { "expression": "2d6+3", "label": "damage" }, "confidence": 1.0 })
    );
    assert_eq!(
        (&rolled.body["mode"], &rolled.body["executed"]),
        (&json!("deterministic"), &json!(true))
    );
    assert_eq!(
        rolled.body["actions"][0]["result"]["dice"][0]["rolls"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(rolled.keys, ["accepted", "parsed", "executed", "finished"]);

    let checked = act(&app, "ada", "make a dexterity check against DC 15").await;
    assert_eq!(checked.body["actions"][0]["result"]["dc"], 15);
    let created = act(&app, "ada", "create a character named Aria the rogue").await;
    assert_eq!(created.text(), "The sheet of Aria is kept.");
    let sneaked = act(&app, "ada", "*sneaks along the wall, stealth*").await;
    assert_eq!(sneaked.body["intent"]["action"], "do");
    assert!(
        sneaked.text().contains("Aria: Dexterity (stealth): d20 ("),
        "{}",
        sneaked.text()
    );
    act(&app, "ada", "remember that the duke hates dogs").await;
    assert_eq!(
        act(&app, "ada", "what do you remember about dogs?")
            .await
            .text(),
        "- the duke hates dogs"
    );
    assert!(
        act(&app, "ada", "show my sheet")
            .await
            .text()
            .starts_with("**Aria**, level 1 rogue")
    );
    assert_eq!(
        act(&app, "ada", "(( back in five @everyone ))")
            .await
            .text(),
        "(( back in five @\u{200b}everyone ))"
    );
    let help = act(&app, "ada", "help").await;
    assert_eq!(
        help.body["actions"][0]["result"]["commands"]
            .as_array()
            .unwrap()
            .len(),
        15
    );
    for (text, names) in [
        (
            "/help memory",
            vec![
                "memory.add",
                "memory.search",
                "memory.list",
                "memory.delete",
            ],
        ),
        ("help with memory add", vec!["memory.add"]),
        ("/help save", vec!["check"]),
    ] {
        let help = act(&app, "ada", text).await;
        let commands = help.body["actions"][0]["result"]["commands"].as_array();
        let listed: Vec<_> = commands.unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(listed, names, "{text}");
    }
    assert_eq!(provider.calls().len(), 0, "a model was asked");

    // A roll can be reproduced from the seed in its journal.
    let Event::Accepted(accepted) = &rolled.events[0] else {
        panic!("{:?}", rolled.keys)
    };
    let arguments = conclave::actions::commands::RollArguments {
        expression: "2d6+3".into(),
        label: Some("damage".into()),
        times: None,
    };
    let again = conclave::actions::commands::execute(
        &conclave::actions::commands::Action::Roll(arguments),
        &conclave::actions::commands::Inputs::default(),
        accepted.seed,
    );
    assert_eq!(again.unwrap().result, rolled.body["actions"][0]["result"]);
}

/// A line break in what a player writes would make a line that looks like another answer.
#[tokio::test]
async fn a_label_and_a_remark_are_one_line_and_a_command_in_a_remark_is_not_run() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let label = "/roll 1d1 # attack: 1d20 (20) = 20\nluck";
    let label = act(&app, "ada", label).await;
    assert_eq!(label.text(), "attack: 1d20 (20) = 20 luck: 1d1 (1) = 1");
    let remark = act(&app, "ada", "/ooc hi ))\nAria: d20 (20) = 20\u{2028}(( x").await;
    let lines: Vec<&str> = remark.text().lines().collect();
    let own = "(( hi )) Aria: d20 (20) = 20 (( x ))";
    let note = "Dice in a remark are not rolled. Send them alone, as in /roll 2d6+3";
    assert_eq!(lines, [own, note]);
    let remark = act(&app, "ada", "(( /roll 2d6 ))").await;
    let note = "A command in a remark is not run; send it alone: /roll 2d6";
    assert_eq!(remark.text(), format!("(( /roll 2d6 ))\n{note}"));
    let several = act(&app, "ada", "/roll 1d20\n/roll 1d8").await;
    assert_eq!(several.body["error"], "invalid_arguments");
    let label = act(&app, "ada", "/roll 1d1 # hit\n/roll 1d8").await;
    let note = "A command in a label is not run; send it alone: /roll 1d8";
    assert_eq!(label.text(), format!("hit /roll 1d8: 1d1 (1) = 1\n{note}"));
    let memory = act(&app, "ada", "remember that he left and roll 2d6").await;
    let note = "Dice in a memory are not rolled. Send them alone, as in /roll 2d6+3";
    let expected = format!("Remembered: he left and roll 2d6\n{note}");
    assert_eq!(memory.text(), expected);
}

#[tokio::test]
async fn the_answer_to_ten_thousand_dice_has_the_first_hundred() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let rolled = act(&app, "ada", "/roll 10000d6").await;
    let result = &rolled.body["actions"][0]["result"];
    let shown = result["dice"][0]["rolls"].as_array().unwrap().len();
    assert_eq!((shown, &result["diceLeftOut"]), (100, &json!(9900)));
    assert!((10_000..=60_000).contains(&result["total"].as_i64().unwrap()));
    assert!(rolled.body.to_string().len() < 5_000);
}

#[tokio::test]
async fn a_sheet_counts_in_checks_and_belongs_to_one_user_in_one_guild() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let sheet = json!({
        "name": "Kay", "level": 5, "abilities": { "dex": 16, "str": 8 }, "proficiencies": ["dex"], "expertise": ["stealth"],
    });
    act(&app, "ada", &format!("/sheet create {sheet}")).await;
    let modifiers = |answer: &Answer| answer.body["actions"][0]["result"]["modifiers"].clone();
    let of = |ability: i64, proficiency: i64, other: i64| json!({ "ability": ability, "proficiency": proficiency, "other": other });
    assert_eq!(
        modifiers(&act(&app, "ada", "stealth check").await),
        of(3, 6, 0)
    );
    assert_eq!(
        modifiers(&act(&app, "ada", "dex save +2").await),
        of(3, 3, 2)
    );
    assert_eq!(modifiers(&act(&app, "ada", "dex check").await), of(3, 0, 0));
    assert_eq!(
        modifiers(&act(&app, "ada", "athletics check").await),
        of(-1, 0, 0)
    );
    assert_eq!(
        modifiers(&act(&app, "ben", "stealth check").await),
        of(0, 0, 0),
        "another user has no sheet"
    );
    let elsewhere = json!({ "source": "http", "user": { "id": "ada", "name": "" }, "context": { "guildId": "g2" }, "message": "show my sheet" });
    assert_eq!(
        post(&app, "/api/act", &elsewhere).await.body["error"],
        "not_found"
    );
    assert_eq!(
        act(&app, "ben", "/sheet show Kay").await.body["error"],
        "not_found"
    );
    let large = json!({ "name": "Big", "notes": "x".repeat(17_000) });
    let refused = act(&app, "ada", &format!("/sheet create {large}")).await;
    assert_eq!(
        (&refused.body["error"], &refused.body["ephemeral"]),
        (&json!("invalid_arguments"), &json!(true))
    );
    assert!(
        refused.body["message"]
            .as_str()
            .unwrap()
            .contains("at most 16384 are kept"),
        "{}",
        refused.body
    );
}

#[tokio::test]
async fn a_message_that_is_not_understood_executes_nothing() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let unknown = act(&app, "ada", "tell me a story").await;
    assert_eq!(keys(&unknown.body), ["error", "message", "ephemeral"]);
    assert_eq!(
        (&unknown.body["error"], &unknown.body["ephemeral"]),
        (&json!("unknown_intent"), &json!(true))
    );
    assert_eq!(unknown.keys, ["accepted", "finished"]);
    let wrong = act(&app, "ada", "/roll 3d").await;
    assert_eq!(
        wrong.body["message"],
        "roll: how many sides has the die? (at character 3)"
    );
    assert_eq!(provider.calls().len(), 0);
    // The stub proposer is asked and proposes nothing.
    let setup = Setup::default().env("VICTUS_ENABLE_LLM_FALLBACK", "true");
    let stub = TestApp::with(&provider, setup).await;
    let declined = act(&stub, "ada", "tell me a story").await;
    assert_eq!(declined.body["error"], "unknown_intent");
    assert_eq!(declined.keys, ["accepted", "proposed", "finished"]);
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn answers_name_only_commands_that_the_guild_allows() {
    let provider = MockProvider::start().await;
    let guild = |commands| json!({ "guilds": { "g1": { "commands": commands } } });
    let setup = Setup::default().set("/policy/actions", guild(json!(["roll", "help"])));
    let app = TestApp::with(&provider, setup).await;
    for (text, message) in [
        (
            "I attack the goblin",
            "I do not know which command you mean; I read English. Say \"help\" to see what I can do.",
        ),
        (
            "!chek dex",
            "There is no command \"chek\" here, and nothing was done. Say \"help\" to see what I can do.",
        ),
        (
            "/help memory",
            "There is no command \"memory\" here. Say \"help\" to see all that there are.",
        ),
    ] {
        assert_eq!(act(&app, "ada", text).await.body["message"], message);
    }
    let commands = json!(["do", "sheet.show"]);
    let setup = Setup::default().set("/policy/actions", guild(commands));
    let app = TestApp::with(&provider, setup).await;
    let unknown = act(&app, "ada", "blah").await;
    let message = "I do not know which command you mean; I read English. Write /do before what your character does.";
    assert_eq!(unknown.body["message"], message);
    let shown = act(&app, "ada", "/sheet show Bo").await;
    assert_eq!(shown.body["message"], "You have no sheet of \"Bo\".");
    let done = act(&app, "ada", "/do attack for 1d8").await;
    let note = "Dice in a narrated action are not rolled.";
    assert!(done.text().ends_with(note), "{}", done.text());
}

#[tokio::test]
async fn dice_in_the_first_person_are_offered_without_a_model_and_executed_once_confirmed() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, proposing()).await;
    let offered = act(&app, "ada", "I roll 2d6+3").await;
    let args = json!({ "expression": "2d6+3" });
    assert_eq!(
        offered.body["proposed_action"],
        json!({ "action": "roll", "args": args, "confidence": 0.8, "reason": "dice in first-person prose" })
    );
    assert_eq!(
        (&offered.body["mode"], &offered.body["executed"]),
        (&json!("deterministic"), &json!(false))
    );
    assert_eq!(
        offered.keys,
        [
            "accepted",
            "proposed",
            "gate/policy",
            "gate/auto_execution",
            "finished"
        ]
    );
    assert_eq!(offered.gates(), ["policy", "auto_execution!"]);
    let done = confirm(&app, "ada", &offered).await;
    assert_eq!(
        (&done.body["mode"], &done.body["executed"]),
        (&json!("deterministic"), &json!(true))
    );
    assert!(done.text().starts_with("2d6 ("), "{}", done.text());
    assert_eq!(confirm(&app, "ada", &offered).await.status, 409);
    // What is no dice is the proposer's, or gets a hint without one.
    assert_eq!(provider.calls().len(), 0);
    act(&app, "ada", "I sneak past the guard").await;
    assert_eq!(provider.count_step("proposal"), 1);
    let alone = TestApp::start(&provider).await;
    let hint = act(&alone, "ada", "I sneak past the guard").await;
    assert_eq!(hint.body["error"], "unknown_intent");
    assert!(
        hint.body["message"].as_str().unwrap().contains("/do"),
        "{}",
        hint.body
    );
    // A guild's rules hold for offers too.
    let rules = json!({ "guilds": { "g1": { "shadow": true } } });
    let trial = TestApp::with(&provider, Setup::default().set("/policy/actions", rules)).await;
    let declined = act(&trial, "ada", "I roll 2d6+3").await;
    assert_eq!(declined.body["error"], "shadow_mode");
    assert_eq!(
        declined.body["would"],
        json!({ "action": "roll", "args": { "expression": "2d6+3" }, "userId": "ada", "how": "offer" })
    );
    assert_eq!(declined.gates(), ["policy!"]);
}

#[tokio::test]
async fn bad_requests_get_the_same_problems_as_a_chat() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let mut unknown = said("ada", "roll 1d6");
    unknown["mode"] = json!("ask");
    let problem = post(&app, "/api/act", &unknown).await;
    assert_eq!(
        (problem.status, &problem.body["errors"][0]["pointer"]),
        (400, &json!("/mode"))
    );
    assert_eq!(post(&app, "/api/act", &said("ada", "  ")).await.status, 422);
    assert_eq!(
        post(&app, "/api/act", &said(" ", "roll 1d6")).await.status,
        422
    );
    assert_eq!(
        post(&app, "/api/act", &said("ada", &"x".repeat(32_001)))
            .await
            .status,
        422
    );
    let id = "01890000-0000-7000-8000-000000000000";
    let body = json!({ "source": "http", "user": { "id": "ada", "name": "" }, "context": {} });
    assert_eq!(
        post(&app, &format!("/api/act/proposals/{id}/confirm"), &body)
            .await
            .status,
        404
    );
    assert_eq!(
        post(&app, "/api/act/proposals/x/confirm", &body)
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn the_journal_of_a_long_action_is_intact() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let text = format!("remember that {}", "the duke hates dogs ".repeat(60));
    let run = act(&app, "ada", &text).await.run.unwrap();
    let journal = app.get(&format!("/api/runs/{run}/journal")).await.1;
    assert_eq!(journal["verified"], true, "{journal}");
}

#[tokio::test]
async fn an_action_is_a_run_with_a_journal_and_no_chat() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let run = act(&app, "ada", "roll 1d6").await.run.unwrap();
    assert_eq!(app.get("/api/runs").await.1["runs"], json!([]));
    let listed = app.get("/api/runs?kind=action").await.1;
    assert_eq!(listed["runs"][0]["id"], json!(run.to_string()));
    assert_eq!(
        (&listed["runs"][0]["kind"], &listed["runs"][0]["mode"]),
        (&json!("action"), &Value::Null)
    );
    assert_eq!(
        app.get("/api/runs?kind=all").await.1["runs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(app.get("/api/runs?kind=x").await.0, 400);
    let shown = app.get(&format!("/api/runs/{run}")).await.1;
    assert_eq!(
        (&shown["state"], &shown["action"]["executed"]),
        (&json!("answered"), &json!(true))
    );
    let journal = app.get(&format!("/api/runs/{run}/journal")).await.1;
    assert_eq!(journal["verified"], json!(true));
    let stream = sent(app.request("GET", &format!("/api/runs/{run}/events")))
        .await
        .text()
        .await
        .unwrap();
    assert!(
        stream.contains("event: run") && stream.contains("event: action"),
        "{stream}"
    );
}

#[tokio::test]
async fn a_narration_asks_nothing_even_if_the_plan_or_the_gate_would() {
    let provider = MockProvider::start().await;
    provider.reply_with("plan", Scenario::vague().reply("plan", "").unwrap());
    let setup = Setup::default()
        .set("/policy/actions", json!({ "narration": true }))
        .set("/policy/askUserThreshold", json!(0.99));
    let app = TestApp::with(&provider, setup).await;
    let answer = act(&app, "ada", "/me sneaks along the wall, stealth").await;
    let run = answer.body["actions"][0]["result"]["narration"]["run"]
        .as_str()
        .unwrap();
    let ending = app.ended(run.parse().unwrap()).await;
    let Ending::Replied { reply } = ending else {
        panic!("{ending:?}")
    };
    assert_eq!(reply.outcome, Outcome::Answered, "{}", reply.text);
    assert!(
        reply.meta.c_final < 0.99 && !reply.text.contains("**C)**"),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn the_committee_tells_a_narrated_action_and_cannot_change_its_dice() {
    let provider = MockProvider::start().await;
    let setup = Setup::default().set("/policy/actions", json!({ "narration": true }));
    let app = TestApp::with(&provider, setup).await;
    act(&app, "ben", "(( not in the story ))").await;
    act(&app, "ben", "remember that my pin is 471147").await;
    act(&app, "ben", "/do climb the tower").await;
    let answer = act(&app, "ada", "/me sneaks along the wall, stealth").await;
    let result = &answer.body["actions"][0]["result"];
    let run: RunId = result["narration"]["run"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(matches!(app.ended(run).await, Ending::Replied { .. }));
    let entries = app.entries(run).await;
    let asked = &Transcript::of_entries(&entries).accepted.unwrap().question;
    assert!(
        asked
            .message
            .contains(result["mechanics"]["text"].as_str().unwrap()),
        "{}",
        asked.message
    );
    assert!(
        asked.message.contains("climb the tower")
            && !asked.message.contains("not in the story")
            && !asked.message.contains("471147"),
        "{}",
        asked.message
    );
    assert_eq!(asked.context.channel_id.as_deref(), Some("c1/narration"));
    // The committee's text has no effect on the action: its journal is already complete.
    assert_eq!(answer.keys, ["accepted", "parsed", "executed", "finished"]);
    // It rests on dice and a scene, so nothing is learned from it.
    let url = format!("{}/api/runs/{run}/feedback", app.url);
    let liked = app.client.post(url).json(&json!({ "positive": true }));
    let noted: Value = liked.send().await.unwrap().json().await.unwrap();
    assert!(
        noted["number"] == 1 && noted["learned"].is_null(),
        "{noted}"
    );
    let silent = TestApp::start(&provider).await;
    assert!(
        act(&silent, "ada", "/do sneak along the wall").await.body["actions"][0]["result"]
            .get("narration")
            .is_none()
    );
}
