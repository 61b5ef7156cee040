//! What a player has stored: several characters, parts of sheets, lists, deletions, and the limit.

use super::{Answer, act, confirm, post, proposes, proposing, said};
use crate::support::app::database_of;
use crate::support::{MockProvider, Setup, TestApp};
use serde_json::{Value, json};

fn result(answer: &Answer) -> &Value {
    &answer.body["actions"][0]["result"]
}

#[tokio::test]
async fn a_player_switches_between_characters_and_changes_parts_of_a_sheet() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    for sheet in [
        r#"/sheet create {"name": "Aria", "level": 3, "abilities": {"dex": 16, "str": 8}}"#,
        r#"/sheet create {"name": "Bo", "level": 5, "abilities": {"dex": 8}}"#,
    ] {
        act(&app, "ada", sheet).await;
    }
    assert!(
        act(&app, "ada", "/check dex")
            .await
            .text()
            .starts_with("Bo: ")
    );
    assert_eq!(
        act(&app, "ada", "/sheet use ARIA").await.text(),
        "Aria is your active character."
    );
    assert!(
        act(&app, "ada", "/check dex")
            .await
            .text()
            .starts_with("Aria: ")
    );
    assert_eq!(
        act(&app, "ada", "/sheet list").await.text(),
        "- Aria, level 3 (active)\n- Bo, level 5"
    );
    let updated = act(
        &app,
        "ada",
        "/sheet update --level 4 --dex 18 --class rogue",
    )
    .await;
    assert_eq!(
        updated.text(),
        "The sheet of Aria is changed: level, abilities, class."
    );
    let sheet = &result(&updated)["sheet"];
    assert_eq!(
        (
            &sheet["abilities"]["dex"],
            &sheet["abilities"]["str"],
            &sheet["class"]
        ),
        (&json!(18), &json!(8), &json!("rogue"))
    );
    act(
        &app,
        "ada",
        r#"/sheet update {"name": "bo", "class": null, "notes": "tired"}"#,
    )
    .await;
    assert_eq!(
        result(&act(&app, "ada", "/sheet show Bo").await)["sheet"]["notes"],
        "tired"
    );
    for (text, error) in [
        ("/sheet use Zoe", "not_found"),
        ("/sheet update --luck 3", "invalid_arguments"),
        ("/sheet update --level 99", "invalid_arguments"),
        ("/sheet update", "invalid_arguments"),
        ("/sheet list x", "invalid_arguments"),
    ] {
        assert_eq!(act(&app, "ada", text).await.body["error"], error, "{text}");
    }
    assert_eq!(
        act(&app, "ben", "/sheet use Aria").await.body["error"],
        "not_found"
    );
}

/// Words have only a part of a sheet, and so has a model.
#[tokio::test]
async fn only_a_json_object_of_the_user_replaces_a_sheet() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, proposing()).await;
    let whole = r#"/sheet create {"name": "Kor", "class": "bard\nHit points 99/99", "hitPoints": {"max": 7}, "notes": "owes\n50 gp"}"#;
    act(&app, "ada", whole).await;
    let refused = |answer: &Answer| {
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert!(
            message.starts_with("There is a sheet of Kor already."),
            "{:#}",
            answer.body
        );
    };
    for text in [
        "create a character named Kor the elf bard",
        "/sheet create Kor, a level 8 elf bard",
        "/sheet create name: kor dex: 12",
    ] {
        refused(&act(&app, "ada", text).await);
    }
    let args = json!({ "name": "Kor", "ancestry": "elf", "level": 8 });
    proposes(&provider, "sheet.create", args, 0.99);
    let offered = act(&app, "ada", "Kor is an elf now").await;
    refused(&confirm(&app, "ada", &offered).await);
    // A line of a part of the sheet is not a line of the answer, unless it is quoted.
    let shown = act(&app, "ada", r#"/sheet show "kor""#).await;
    let text =
        "**Kor**, level 1 bard Hit points 99/99\nHit points 7/7  Proficiency +2\n> owes\n> 50 gp";
    assert_eq!(shown.text(), text);
    let replaced = r#"/sheet create {"name": "Kor", "abilities": {"dex": 16.0}}"#;
    let replaced = act(&app, "ada", replaced).await;
    assert_eq!(replaced.text(), "The sheet of Kor is replaced.");
    assert_eq!(result(&replaced)["sheet"]["abilities"]["dex"], json!(16));
}

#[tokio::test]
async fn memories_are_listed_in_pages_and_deleted_once_the_user_confirms() {
    let provider = MockProvider::start().await;
    let quick = Setup::default().set("/policy/actions", json!({ "userBurst": 100 }));
    let app = TestApp::with(&provider, quick).await;
    for n in 1..=12 {
        act(&app, "ada", &format!("remember that door {n} is locked")).await;
    }
    let list = act(&app, "ada", "/memory list").await;
    let lines: Vec<&str> = list.text().lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[10]),
        (
            11,
            "1. door 12 is locked",
            "Page 1 of 2. Next: /memory list 2"
        )
    );
    assert_eq!(
        act(&app, "ada", "/memory list 2").await.text(),
        "11. door 2 is locked\n12. door 1 is locked\nPage 2 of 2."
    );
    let found = act(&app, "ada", "/memory search door").await;
    let lines: Vec<&str> = found.text().lines().collect();
    let more = "There are more. Search for a word that fewer memories have.";
    assert_eq!((lines.len(), lines[10]), (11, more));
    let offer = act(&app, "ada", "/memory delete 2").await;
    assert_eq!(
        (
            &offer.body["executed"],
            &offer.body["proposed_action"]["args"]["content"]
        ),
        (&json!(false), &json!("door 11 is locked"))
    );
    // The offer names the memory itself: a newer one does not shift it.
    act(&app, "ada", "remember that door 13 is open").await;
    assert_eq!(confirm(&app, "ben", &offer).await.status, 404);
    assert_eq!(
        confirm(&app, "ada", &offer).await.text(),
        "No longer remembered: door 11 is locked"
    );
    assert_eq!(confirm(&app, "ada", &offer).await.status, 409);
    assert_eq!(result(&act(&app, "ada", "/memory list").await)["count"], 12);

    let offer = act(&app, "ada", "/memory delete open").await;
    assert_eq!(
        offer.body["proposed_action"]["args"]["content"],
        "door 13 is open"
    );
    for (text, content) in [
        ("/memory delete \"door 1 is locked\"", "door 1 is locked"),
        ("forget that door 2 is locked", "door 2 is locked"),
        ("/memory delete locked 12", "door 12 is locked"),
    ] {
        let offer = act(&app, "ada", text).await;
        let named = &offer.body["proposed_action"]["args"]["content"];
        assert_eq!(named, content, "{text}");
    }
    let several = act(&app, "ada", "/memory delete locked").await;
    assert_eq!(several.body["error"], "invalid_arguments");
    for text in [
        "/memory delete 99",
        "/memory delete 0",
        "/memory delete unicorn",
    ] {
        assert_eq!(
            act(&app, "ada", text).await.body["error"],
            "not_found",
            "{text}"
        );
    }
    let stranger = act(&app, "ben", "/memory delete 1").await;
    assert_eq!(stranger.body["error"], "not_found");
    assert_eq!(provider.calls().len(), 0, "a model was asked");
}

#[tokio::test]
async fn a_sheet_is_deleted_once_the_user_confirms() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    act(&app, "ada", "create a character named Aria the rogue").await;
    let offer = act(&app, "ada", "/sheet delete aria").await;
    assert_eq!(
        offer.body["proposed_action"]["args"],
        json!({ "name": "Aria" })
    );
    assert_eq!(offer.gates(), ["policy", "auto_execution!"]);
    act(&app, "ada", "show my sheet").await.text();
    assert_eq!(
        confirm(&app, "ada", &offer).await.text(),
        "The sheet of Aria is deleted."
    );
    assert_eq!(
        act(&app, "ada", "show my sheet").await.body["error"],
        "not_found"
    );
}

#[tokio::test]
async fn a_model_proposes_no_deletion() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, proposing()).await;
    act(&app, "ada", "remember that the duke hates dogs").await;
    proposes(
        &provider,
        "memory.delete",
        json!({ "memory": "duke" }),
        0.99,
    );
    let answer = act(&app, "ada", "get rid of the thing with the duke").await;
    assert_eq!(answer.body["error"], "unknown_intent");
    assert_eq!(answer.gates(), ["allowlist!"]);
    let prompt = provider.calls()[0].text();
    assert!(prompt.contains("memory.list") && !prompt.contains("memory.delete"));
}

#[tokio::test]
async fn what_a_user_stores_in_all_guilds_together_is_limited() {
    let provider = MockProvider::start().await;
    let limit = Setup::default().set("/policy/actions", json!({ "userBytes": 100 }));
    let app = TestApp::with(&provider, limit).await;
    act(&app, "ada", &format!("/memory add {}", "x".repeat(60)))
        .await
        .text();
    let mut elsewhere = said("ada", &format!("/memory add {}", "ß".repeat(21)));
    elsewhere["context"]["guildId"] = json!("g2");
    let refused = post(&app, "/api/act", &elsewhere).await;
    assert_eq!(refused.body["error"], "too_many");
    assert!(
        refused.body["message"]
            .as_str()
            .unwrap()
            .contains("42 bytes, and 40 are left")
    );
    let sheet = act(
        &app,
        "ada",
        r#"/sheet create {"name": "Aria", "notes": "a long story begins"}"#,
    )
    .await;
    assert_eq!(sheet.body["error"], "too_many");
    act(&app, "ben", "/memory add something").await.text();
}

#[tokio::test]
async fn memories_are_found_in_any_script_and_without_accents() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    for text in [
        "die Straße ist gesperrt",
        "the café is closed",
        "那位公爵讨厌狗",
        "राजा कुत्तों से डरता है",
        "it's raining",
    ] {
        act(&app, "ada", &format!("/memory add {text}")).await;
    }
    for (query, found) in [
        ("STRASSE", "- die Straße ist gesperrt"),
        ("straße", "- die Straße ist gesperrt"),
        ("cafe", "- the café is closed"),
        ("公爵", "- 那位公爵讨厌狗"),
        ("狗", "- 那位公爵讨厌狗"),
        ("कुत्तों", "- राजा कुत्तों से डरता है"),
        ("cafe\u{301}", "- the café is closed"),
        (
            "the dragon's lair",
            "Nothing is remembered about the dragon's lair.",
        ),
    ] {
        let answer = act(&app, "ada", &format!("/memory search {query}")).await;
        assert_eq!(answer.text(), found, "{query}");
    }
}

#[tokio::test]
async fn wrong_arguments_are_explained_without_names_of_the_program() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    for (text, message) in [
        (
            r#"/check {"ability": "luck"}"#,
            "check: ability is one of str, dex, con, int, wis, cha",
        ),
        (
            r#"/check {"ability": "dex", "dc": "high"}"#,
            "check: dc is a whole number",
        ),
        (r#"/roll {"expression": 5}"#, "roll: expression is a text"),
        (
            r#"/roll {"dice": "2d6"}"#,
            "roll: there is no argument dice; expression is missing",
        ),
        (
            r#"/sheet create {"name": "Bo", "abilities": {"dex": "x"}}"#,
            "sheet.create: abilities.dex is a whole number",
        ),
    ] {
        let answer = act(&app, "ada", text).await;
        assert_eq!(answer.body["message"], message, "{text}");
    }
}

#[tokio::test]
async fn a_name_can_be_seen_and_is_no_link() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let create = |name: &str| {
        let sheet = json!({ "name": name, "abilities": { "dex": 10 } });
        format!("/sheet create {sheet}")
    };
    for name in [
        "\u{200b}",
        "\u{ad}\u{2060}",
        "\u{3164}",
        "\u{202e}gnp",
        "[free](https://evil.example)",
    ] {
        let answer = act(&app, "ada", &create(name)).await;
        let error = &answer.body["error"];
        assert_eq!(error, "invalid_arguments", "{name:?}");
    }
    for name in [
        "Åsa",
        "🐉",
        "R2-D2",
        "Zoë \u{1f469}\u{200d}\u{1f680}",
        "阿明",
    ] {
        let answer = act(&app, "ada", &create(name)).await;
        assert_eq!(answer.body["executed"], true, "{name:?}: {:#}", answer.body);
    }
}

#[tokio::test]
async fn actions_of_one_user_at_the_same_time_lose_nothing_and_pass_no_limit() {
    let provider = MockProvider::start().await;
    let fast = json!({ "userPerMinute": 10_000, "userBurst": 1_000 });
    let app = TestApp::with(&provider, Setup::default().set("/policy/actions", fast)).await;
    let created = r#"/sheet create {"name": "Z", "abilities": {"dex": 10}, "hitPoints": {"current": 5, "max": 30}}"#;
    act(&app, "ada", created).await;
    for round in 1..=10 {
        let (level, points) = (
            format!(r#"/sheet update {{"level": {round}}}"#),
            format!("/sheet set hp {round}"),
        );
        let (one, other) = tokio::join!(act(&app, "ada", &level), act(&app, "ada", &points));
        for answer in [one, other] {
            assert_eq!(answer.body["executed"], true, "{:#}", answer.body);
        }
        let shown = act(&app, "ada", "/sheet show Z").await;
        let sheet = &result(&shown)["sheet"];
        assert_eq!(sheet["level"], round, "{sheet}");
        assert_eq!(sheet["hitPoints"]["current"], round, "{sheet}");
    }
    let create =
        |n: usize| format!(r#"/sheet create {{"name": "N{n}", "abilities": {{"dex": 10}}}}"#);
    let texts: Vec<String> = (0..30).map(create).collect();
    let creates = texts.iter().map(|text| act(&app, "bo", text));
    let answers = futures_util::future::join_all(creates).await;
    let stored = answers.iter().filter(|it| it.body["executed"] == true);
    assert_eq!(stored.count(), 20);
}

#[tokio::test]
async fn proposals_executed_at_the_same_time_pass_no_limit() {
    let provider = MockProvider::start().await;
    let memory = json!({ "content": "x".repeat(60) });
    proposes(&provider, "memory.add", memory, 0.95);
    let limits = json!({ "userBytes": 100, "userPerMinute": 10_000, "userBurst": 1_000 });
    let setup = proposing()
        .env("PROPOSER_ALLOW_AUTOEXEC", "true")
        .set("/policy/actions", limits);
    let app = TestApp::with(&provider, setup).await;
    let texts: Vec<String> = (0..6)
        .map(|n| format!("well, rope {n} and so on"))
        .collect();
    let adds = texts.iter().map(|text| act(&app, "ada", text));
    let answers = futures_util::future::join_all(adds).await;
    let stored = answers.iter().filter(|it| it.body["executed"] == true);
    assert_eq!(stored.count(), 1);
}

#[tokio::test]
async fn one_of_the_hit_points_is_enough_and_no_value_is_nested_without_end() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    act(&app, "ada", "create a character named Aria the rogue").await;
    act(&app, "ada", "/sheet update --level 4 --dex 18 --hp 21").await;
    let shown = act(&app, "ada", "/sheet show Aria").await;
    let points = &result(&shown)["sheet"]["hitPoints"];
    assert_eq!(*points, json!({ "current": 21, "max": 21 }));
    let nested = format!("{}1{}", r#"{"a":"#.repeat(120), "}".repeat(120));
    let text = format!(r#"/sheet update {{"extra": {nested}}}"#);
    let answer = act(&app, "ada", &text).await;
    assert_eq!(
        answer.body["error"], "invalid_arguments",
        "{:#}",
        answer.body
    );
}

#[tokio::test]
async fn an_offer_to_delete_a_sheet_does_not_delete_what_came_later() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let create = |level: u32| format!(r#"/sheet create {{"name": "Zed", "level": {level}}}"#);
    act(&app, "ada", &create(3)).await;
    let offers = [
        act(&app, "ada", "/sheet delete Zed").await,
        act(&app, "ada", "/sheet delete Zed").await,
    ];
    let deleted = confirm(&app, "ada", &offers[0]).await;
    assert_eq!(deleted.body["executed"], true, "{:#}", deleted.body);
    act(&app, "ada", &create(9)).await;
    let late = confirm(&app, "ada", &offers[1]).await;
    assert_eq!(late.body["error"], "invalid_arguments", "{:#}", late.body);
    let shown = act(&app, "ada", "/sheet show Zed").await;
    assert_eq!(result(&shown)["sheet"]["level"], 9);
}

#[tokio::test]
async fn refused_dice_are_explained_without_a_slash_too() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    for dice in ["10001d6", "1d0", "3d6>10"] {
        let explicit = act(&app, "ada", &format!("/roll {dice}")).await;
        let why = explicit.body["message"].as_str().unwrap();
        let why = why
            .trim_start_matches("roll: ")
            .split(" (at")
            .next()
            .unwrap();
        for text in [dice.to_owned(), format!("roll {dice}")] {
            let bare = act(&app, "ada", &text).await;
            let said = bare.body["message"].as_str().unwrap();
            assert!(said.contains(why), "{text}: {said}, not {why}");
        }
    }
}

#[tokio::test]
async fn the_search_table_keeps_no_word_of_a_deleted_memory() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let address = database_of(&app.folder).await;
    // PostgreSQL keeps the words in the row itself.
    let Some(file) = address.strip_prefix("sqlite://") else {
        return;
    };
    let stored = || {
        let database = rusqlite::Connection::open(file).unwrap();
        let count =
            "SELECT count(*) FROM memory_words_data WHERE instr(block, CAST('zebra' AS BLOB)) > 0";
        database
            .query_row(count, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    act(&app, "ada", "/memory add the zebra hides").await;
    act(&app, "ada", "/memory add the horse waits").await;
    assert_eq!(stored(), 1);
    let offer = act(&app, "ada", "/memory delete zebra").await;
    assert_eq!(confirm(&app, "ada", &offer).await.status, 200);
    assert_eq!(stored(), 0);
}
