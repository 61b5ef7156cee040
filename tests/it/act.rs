//! Actions over HTTP and on the command line: what they do and what they say.

use std::sync::Arc;

use conclave::domain::RunId;
use conclave::journal::{Ending, Event, views};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::acting::{Answer, act, confirm, keys, post, proposal, proposing, said};
use crate::support::program::conclave;
use crate::support::{MockProvider, Setup, TestApp};

#[tokio::test]
async fn clear_texts_are_executed_by_fixed_rules_and_no_model_is_asked() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, proposing()).await;
    let rolled = act(&app, "ada", "roll 2d6+3 for damage").await;
    assert_eq!(keys(&rolled.body), ["intent", "mode", "executed", "actions"]);
    assert_eq!(
        rolled.body["intent"],
        json!({ "action": "roll", "parameters": { "expression": "2d6+3", "label": "damage" }, "confidence": 1.0 })
    );
    assert_eq!((&rolled.body["mode"], &rolled.body["executed"]), (&json!("deterministic"), &json!(true)));
    assert_eq!(rolled.body["actions"][0]["result"]["dice"][0]["rolls"].as_array().unwrap().len(), 2);
    assert_eq!(rolled.keys, ["accepted", "parsed", "executed", "finished"]);

    let checked = act(&app, "ada", "make a dexterity check against DC 15").await;
    assert_eq!(checked.body["actions"][0]["result"]["dc"], 15);
    let created = act(&app, "ada", "create a character named Aria the rogue").await;
    assert_eq!(created.text(), "The sheet of Aria is kept.");
    let sneaked = act(&app, "ada", "I sneak along the wall, quiet as a cat").await;
    assert_eq!(sneaked.body["intent"]["action"], "do");
    assert!(sneaked.text().contains("Aria: Dexterity (stealth): d20 ("), "{}", sneaked.text());
    act(&app, "ada", "remember that the duke hates dogs").await;
    assert_eq!(act(&app, "ada", "what do you remember about dogs?").await.text(), "- the duke hates dogs");
    assert!(act(&app, "ada", "show my sheet").await.text().starts_with("**Aria**, level 1 rogue"));
    assert_eq!(act(&app, "ada", "(( back in five @everyone ))").await.text(), "(( back in five @\u{200b}everyone ))");
    let help = act(&app, "ada", "help").await;
    assert_eq!(help.body["actions"][0]["result"]["commands"].as_array().unwrap().len(), 9);
    assert_eq!(provider.calls().len(), 0, "a model was asked");

    // A roll can be made again from its journal.
    let Event::Accepted(accepted) = &rolled.events[0] else { panic!("{:?}", rolled.keys) };
    let arguments = conclave::act::commands::RollArguments {
        expression: "2d6+3".into(),
        label: Some("damage".into()),
        times: None,
    };
    let again = conclave::act::commands::execute(
        &conclave::act::commands::Action::Roll(arguments),
        &conclave::act::commands::Facts::default(),
        accepted.seed,
    );
    assert_eq!(again.unwrap().result, rolled.body["actions"][0]["result"]);
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
    assert_eq!(modifiers(&act(&app, "ada", "stealth check").await), of(3, 6, 0));
    assert_eq!(modifiers(&act(&app, "ada", "dex save +2").await), of(3, 3, 2));
    assert_eq!(modifiers(&act(&app, "ada", "dex check").await), of(3, 0, 0));
    assert_eq!(modifiers(&act(&app, "ada", "athletics check").await), of(-1, 0, 0));
    assert_eq!(modifiers(&act(&app, "ben", "stealth check").await), of(0, 0, 0), "another user has no sheet");
    let elsewhere = json!({ "source": "http", "user": { "id": "ada", "name": "" }, "context": { "guildId": "g2" }, "message": "show my sheet" });
    assert_eq!(post(&app, "/api/act", &elsewhere).await.body["error"], "not_found");
    assert_eq!(act(&app, "ben", "/sheet show Kay").await.body["error"], "not_found");
    let large = json!({ "name": "Big", "notes": "x".repeat(17_000) });
    let refused = act(&app, "ada", &format!("/sheet create {large}")).await;
    assert_eq!((&refused.body["error"], &refused.body["ephemeral"]), (&json!("invalid_arguments"), &json!(true)));
    assert!(refused.body["message"].as_str().unwrap().contains("at most 16384 are kept"), "{}", refused.body);
}

#[tokio::test]
async fn what_nobody_understands_is_an_answer_with_nothing_done() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let unknown = act(&app, "ada", "tell me a story").await;
    assert_eq!(keys(&unknown.body), ["error", "message", "ephemeral"]);
    assert_eq!((&unknown.body["error"], &unknown.body["ephemeral"]), (&json!("unknown_intent"), &json!(true)));
    assert_eq!(unknown.keys, ["accepted", "finished"]);
    let wrong = act(&app, "ada", "/roll 3d").await;
    assert_eq!(wrong.body["message"], "roll: how many sides has the die? (at character 3)");
    assert_eq!(provider.calls().len(), 0);
    // The stub is asked, and proposes nothing.
    let stub = TestApp::with(&provider, Setup::default().env("VICTUS_ENABLE_LLM_FALLBACK", "true")).await;
    let declined = act(&stub, "ada", "tell me a story").await;
    assert_eq!(declined.body["error"], "unknown_intent");
    assert_eq!(declined.keys, ["accepted", "proposed", "finished"]);
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn a_proposal_waits_for_its_users_word_and_is_executed_once() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("memory.add", json!({ "content": "buy rope", "query": null }), 0.94));
    let app = TestApp::with(&provider, proposing()).await;
    let offered = act(&app, "ada", "rope would be good to have, keep it in mind").await;
    assert_eq!(keys(&offered.body), ["intent", "mode", "proposed_action", "executed", "result", "actions", "proposal"]);
    assert_eq!(
        offered.body["proposed_action"],
        json!({ "action": "memory.add", "args": { "content": "buy rope" }, "confidence": 0.94, "reason": "it sounds like it" })
    );
    assert_eq!(offered.body["intent"]["parameters"], json!({ "content": "buy rope" }));
    assert_eq!((&offered.body["executed"], &offered.body["result"]), (&json!(false), &Value::Null));
    assert_eq!(offered.body["actions"], json!([]));
    assert_eq!(offered.gates(), ["allowlist", "schema", "policy", "auto_execution!"]);
    assert_eq!(offered.keys[..4], ["accepted", "claimed/1", "sent:proposal", "settled:proposal"]);
    assert_eq!(act(&app, "ada", "/memory search rope").await.body["actions"][0]["result"]["memories"], json!([]));

    assert_eq!(confirm(&app, "ben", &offered).await.status, 404, "somebody else's is not found");
    let done = confirm(&app, "ada", &offered).await;
    assert_eq!((done.status, &done.body["executed"], &done.body["mode"]), (200, &json!(true), &json!("llm_proposal")));
    assert_eq!(done.body["result"]["text"], "Remembered: buy rope");
    assert_eq!(done.body["actions"][0]["action"], "memory.add");
    let Event::Accepted(accepted) = &done.events[0] else { panic!("{:?}", done.keys) };
    assert_eq!(accepted.parent(), offered.run);
    let again = confirm(&app, "ada", &offered).await;
    assert_eq!((again.status, &again.body["type"]), (409, &json!("urn:conclave:problem:proposal-gone")));
    let found = act(&app, "ada", "/memory search rope").await;
    assert_eq!(found.body["actions"][0]["result"]["memories"].as_array().unwrap().len(), 1);
    assert_eq!(provider.count_step("proposal"), 1);
    assert_eq!(provider.complaints(), [""; 0], "a vendor would have taken the schema");
    let mut body = said("ada", "");
    body.as_object_mut().unwrap().remove("message");
    let unknown = post(&app, &format!("/api/act/proposals/{}/confirm", done.run.unwrap()), &body).await;
    assert_eq!(unknown.status, 404, "an action without a proposal has none");
}

#[tokio::test]
async fn a_confirmation_without_a_place_is_for_where_it_was_proposed() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("memory.add", json!({ "content": "buy rope" }), 0.94));
    let app = TestApp::with(&provider, proposing()).await;
    let offered = act(&app, "ada", "rope, keep it in mind").await;
    let path = format!("/api/act/proposals/{}/confirm", offered.run.unwrap());
    let without_a_place = |user: &str| {
        let mut body = said(user, "the text of the action, sent again");
        body.as_object_mut().unwrap().remove("context");
        body
    };
    assert_eq!(post(&app, &path, &without_a_place("ben")).await.status, 404);
    assert_eq!(post(&app, &path, &without_a_place("ada")).await.body["executed"], true);
    assert_eq!(post(&app, &path, &without_a_place("ada")).await.status, 409);
}

#[tokio::test]
async fn a_hundred_that_confirm_at_once_execute_it_once() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("memory.add", json!({ "content": "buy rope" }), 0.94));
    let setup = proposing().set("/policy/actions", json!({ "userPerMinute": 1000, "userBurst": 1000 }));
    let app = TestApp::with(&provider, setup).await;
    let offered = act(&app, "ada", "rope, keep it in mind").await;
    let all = (0..100).map(|_| confirm(&app, "ada", &offered));
    let statuses: Vec<u16> = futures_util::future::join_all(all).await.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 99);
    let found = act(&app, "ada", "/memory search rope").await;
    assert_eq!(found.body["actions"][0]["result"]["memories"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_confirmation_that_did_nothing_does_not_use_the_proposal_up() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("sheet.show", json!({ "name": "Aria" }), 0.94));
    let setup = proposing().set("/policy/actions", json!({ "userPerMinute": 1000, "userBurst": 1000 }));
    let app = TestApp::with(&provider, setup).await;
    let offered = act(&app, "ada", "Aria, what was she like").await;
    for _ in 0..2 {
        let declined = confirm(&app, "ada", &offered).await;
        assert_eq!((declined.status, &declined.body["error"]), (200, &json!("not_found")));
        assert_eq!(declined.keys, ["accepted", "parsed", "finished"], "it is in the journal all the same");
    }
    act(&app, "ada", "create a character named Aria").await;
    assert_eq!(confirm(&app, "ada", &offered).await.body["executed"], true);
    assert_eq!(confirm(&app, "ada", &offered).await.status, 409);

    // What the first of a hundred has done stands in the way of the others, who are told so.
    provider.reply_with("proposal", proposal("sheet.create", json!({ "name": "Bo" }), 0.94));
    let offered = act(&app, "ada", "Bo would be a good one").await;
    let all = futures_util::future::join_all((0..100).map(|_| confirm(&app, "ada", &offered))).await;
    let told: Vec<(u16, &Value)> = all.iter().map(|answer| (answer.status, &answer.body["executed"])).collect();
    assert_eq!(told.iter().filter(|told| **told == (200, &json!(true))).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|told| told.0 == 409).count(), 99, "{told:?}");
}

#[tokio::test]
async fn a_proposal_expires() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("roll", json!({ "expression": "1d6" }), 0.7));
    let folder = Arc::new(TempDir::new().unwrap());
    let app = TestApp::on(&provider, proposing(), Arc::clone(&folder)).await;
    let offered = act(&app, "ada", "dice, go").await;
    let config =
        crate::support::app::config(&provider.url(), &crate::support::app::database_of(&folder).await, &proposing());
    // The same journal an hour later.
    let later = conclave::clock::Clock::System.now().saturating_add(jiff::SignedDuration::from_hours(1)).unwrap();
    let late = conclave::app::App::start(config, conclave::clock::Clock::fixed(later)).await.unwrap();
    let question = conclave::http::action(said("ada", "x").to_string().as_bytes()).unwrap();
    let confirmation =
        conclave::app::Confirmation { proposal: offered.run.unwrap(), question, in_place: false, choice: 1 };
    let refused = late.confirm(confirmation).await.unwrap_err();
    assert_eq!(refused.to_string(), "the proposal has expired");
    assert_eq!(confirm(&app, "ada", &offered).await.status, 200);
}

#[tokio::test]
async fn bad_requests_are_problems_as_with_a_chat() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let mut unknown = said("ada", "roll 1d6");
    unknown["mode"] = json!("ask");
    let problem = post(&app, "/api/act", &unknown).await;
    assert_eq!((problem.status, &problem.body["errors"][0]["pointer"]), (400, &json!("/mode")));
    assert_eq!(post(&app, "/api/act", &said("ada", "  ")).await.status, 422);
    assert_eq!(post(&app, "/api/act", &said(" ", "roll 1d6")).await.status, 422);
    assert_eq!(post(&app, "/api/act", &said("ada", &"x".repeat(32_001))).await.status, 422);
    let id = "01890000-0000-7000-8000-000000000000";
    let body = json!({ "source": "http", "user": { "id": "ada", "name": "" }, "context": {} });
    assert_eq!(post(&app, &format!("/api/act/proposals/{id}/confirm"), &body).await.status, 404);
    assert_eq!(post(&app, "/api/act/proposals/x/confirm", &body).await.status, 404);
}

#[tokio::test]
async fn an_action_is_a_run_with_a_journal_and_not_among_the_chats() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let run = act(&app, "ada", "roll 1d6").await.run.unwrap();
    assert_eq!(app.get("/api/runs").await.1["runs"], json!([]));
    let listed = app.get("/api/runs?kind=action").await.1;
    assert_eq!(listed["runs"][0]["id"], json!(run.to_string()));
    assert_eq!((&listed["runs"][0]["kind"], &listed["runs"][0]["mode"]), (&json!("action"), &Value::Null));
    assert_eq!(app.get("/api/runs?kind=all").await.1["runs"].as_array().unwrap().len(), 1);
    assert_eq!(app.get("/api/runs?kind=x").await.0, 400);
    let shown = app.get(&format!("/api/runs/{run}")).await.1;
    assert_eq!((&shown["state"], &shown["action"]["executed"]), (&json!("answered"), &json!(true)));
    let journal = app.get(&format!("/api/runs/{run}/journal")).await.1;
    assert_eq!(journal["verified"], json!(true));
    let stream =
        app.client.get(format!("{}/api/runs/{run}/events", app.url)).send().await.unwrap().text().await.unwrap();
    assert!(stream.contains("event: run") && stream.contains("event: action"), "{stream}");
}

#[tokio::test]
async fn the_committee_tells_a_deed_and_cannot_change_its_dice() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, Setup::default().set("/policy/actions", json!({ "narration": true }))).await;
    act(&app, "ben", "(( not in the story ))").await;
    act(&app, "ben", "remember that my pin is 471147").await;
    act(&app, "ben", "I climb the tower").await;
    let answer = act(&app, "ada", "I sneak along the wall").await;
    let result = &answer.body["actions"][0]["result"];
    let run: RunId = result["narration"]["run"].as_str().unwrap().parse().unwrap();
    assert!(matches!(app.ended(run).await, Ending::Replied { .. }));
    let entries = app.entries(run).await;
    let asked = &views::accepted(&entries).unwrap().question;
    assert!(asked.message.contains(result["mechanics"]["text"].as_str().unwrap()), "{}", asked.message);
    assert!(
        asked.message.contains("I climb the tower")
            && !asked.message.contains("not in the story")
            && !asked.message.contains("471147"),
        "{}",
        asked.message
    );
    assert_eq!(asked.context.channel_id.as_deref(), Some("c1/narration"));
    // The action itself is over, whatever the committee says.
    assert_eq!(answer.keys, ["accepted", "parsed", "executed", "finished"]);
    let silent = TestApp::start(&provider).await;
    assert!(
        act(&silent, "ada", "I sneak along the wall").await.body["actions"][0]["result"].get("narration").is_none()
    );
}

#[tokio::test]
async fn the_command_line_acts_without_a_key_and_says_what_http_says() {
    let folder = TempDir::new().unwrap();
    let run = async |arguments: &[&str]| {
        let output = conclave(folder.path(), arguments, &[]).output().await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (code, said_out, _) = run(&["act", "roll 2d6+3"]).await;
    assert!(code == 0 && said_out.starts_with("2d6 ("), "{said_out}");
    let (_, created, _) = run(&["act", "create a character named Aria"]).await;
    assert_eq!(created, "The sheet of Aria is kept.\n");
    let (_, checked, _) = run(&["act", "dex check dc 15"]).await;
    assert!(checked.starts_with("Aria: Dexterity: d20 ("), "{checked}");
    let (_, sneaked, _) = run(&["act", "I sneak quietly"]).await;
    assert!(sneaked.contains("Dexterity (stealth)"), "{sneaked}");
    let (_, body, _) = run(&["act", "--json", "show my sheet"]).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(keys(&body), ["intent", "mode", "executed", "actions"]);
    let (code, out, error) = run(&["act", "tell me a story"]).await;
    assert_eq!((code, out.as_str()), (4, ""));
    assert!(error.contains("help"), "{error}");
    // A model that is to be asked and is not there is a matter of the configuration.
    let local = concat!(env!("CARGO_MANIFEST_DIR"), "/llm.config.local.json");
    let variables = [
        ("CONCLAVE_CONFIG", local),
        ("LOCAL_MODEL_PATH", "missing.gguf"),
        ("PROPOSER_ENABLED", "1"),
        ("PROPOSER_PROVIDER", "local"),
    ];
    let output = conclave(folder.path(), &["act", "tell me a story"], &variables).output().await.unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{error}");
    let why = if cfg!(feature = "local") { "model file missing.gguf does not exist" } else { "no in-process model" };
    assert!(error.contains(why), "{error}");
    let (code, ..) = run(&["act", "--confirm", "01890000-0000-7000-8000-000000000000"]).await;
    assert_eq!(code, 4);
    let (_, catalog, _) = run(&["act", "--catalog"]).await;
    assert_eq!(serde_json::from_str::<Value>(&catalog).unwrap().as_array().unwrap().len(), 9);
    let (_, discord, _) = run(&["act", "--discord-commands"]).await;
    assert_eq!(serde_json::from_str::<Value>(&discord).unwrap()[0]["name"], "act");
    let (_, help, _) = run(&["act", "--help"]).await;
    assert!(help.contains("memory.search"), "{help}");
}

#[tokio::test]
async fn the_command_line_proposes_confirms_and_talks_to_a_service() {
    let provider = MockProvider::start().await;
    provider.reply_with("proposal", proposal("memory.add", json!({ "content": "buy rope" }), 0.94));
    let app = TestApp::with(&provider, proposing()).await;
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("PROPOSER_ENABLED", "1"),
        ("PROPOSER_PROVIDER", "anthropic"),
    ];
    for server in [vec![], vec!["--server", app.url.as_str()]] {
        let run = async |arguments: &[&str]| {
            let arguments: Vec<&str> =
                std::iter::once("act").chain(server.iter().copied()).chain(arguments.iter().copied()).collect();
            let output = conclave(folder.path(), &arguments, &variables).output().await.unwrap();
            (
                output.status.code().unwrap(),
                String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
            )
        };
        let (code, offered) = run(&["rope, keep it in mind"]).await;
        assert!(code == 0 && offered.contains("Did you mean: memory.add"), "{offered}");
        let id = offered.rsplit("--confirm ").next().unwrap().trim().to_owned();
        assert_eq!(run(&["--confirm", &id]).await, (0, "Remembered: buy rope\n".to_owned()));
        let (code, again) = run(&["--confirm", &id]).await;
        assert!(code == 4 && again.contains("confirmed already"), "{again}");
        let (_, found) = run(&["/memory search rope"]).await;
        assert_eq!(found, "- buy rope\n");
    }
}
