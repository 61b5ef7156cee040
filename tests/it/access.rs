//! Tests authentication, request rates and spending limits.

use conclave::app::open_store;
use conclave::clock::Clock;
use conclave::config::Database;
use conclave::domain::{BearerToken, Scope};
use conclave::journal::{SqliteStore, TokenRow, TokenStore as _};
use jiff::{SignedDuration, Timestamp};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::run;
use crate::support::app::database_of;
use crate::support::process::Service;
use crate::support::process::conclave;
use crate::support::{
    Fault, MockProvider, QUESTION, Setup, TestApp, chat, run_of, sent, status_of,
};

const FIXED: &str = "correct horse battery";

/// Inserts a token into the database of a running service, bypassing the service.
pub async fn token(
    app: &TestApp,
    number: u8,
    scopes: &[Scope],
    expires_at: Option<Timestamp>,
) -> String {
    let database = database_of(&app.folder).await;
    let store = open_store(&Database::at(&database).unwrap(), "keys")
        .await
        .unwrap();
    let token = BearerToken::new([number; 6], Clock::System.new_secret());
    let row = TokenRow {
        id: token.id().to_owned(),
        name: format!("token {number}"),
        scopes: scopes.to_vec(),
        hash: token.hash(),
        created_at: Clock::System.now(),
        expires_at,
        revoked_at: None,
    };
    store.add_token(&row).await.unwrap();
    token.reveal()
}

async fn status(app: &TestApp, token: &str) -> u16 {
    app.request("GET", "/api/runs")
        .bearer_auth(token)
        .send()
        .await
        .unwrap()
        .status()
        .as_u16()
}

#[tokio::test]
async fn every_route_except_the_open_ones_needs_a_token() {
    let provider = MockProvider::start().await;
    let app = TestApp::with(&provider, Setup::default().env("CONCLAVE_TOKEN", FIXED)).await;
    let id = "01890000-0000-7000-8000-000000000000";
    let guarded = [
        (Method::POST, "/api/chat".to_owned()),
        (Method::POST, "/api/quote".to_owned()),
        (Method::POST, "/api/act".to_owned()),
        (Method::POST, format!("/api/act/proposals/{id}/confirm")),
        (Method::GET, "/api/runs".to_owned()),
        (Method::GET, format!("/api/runs/{id}")),
        (Method::DELETE, format!("/api/runs/{id}")),
        (Method::GET, format!("/api/runs/{id}/journal")),
        (Method::GET, format!("/api/runs/{id}/events")),
    ];
    for (method, path) in guarded {
        let ask = || {
            app.client
                .request(method.clone(), format!("{}{path}", app.url))
        };
        let refused = ask().send().await.unwrap();
        assert_eq!(
            (refused.status(), &refused.headers()["www-authenticate"]),
            (StatusCode::UNAUTHORIZED, &"Bearer".parse().unwrap())
        );
        assert_ne!(
            ask().bearer_auth(FIXED).send().await.unwrap().status(),
            401,
            "{path}"
        );
        assert_ne!(
            ask()
                .header("authorization", format!("bearer {FIXED}"))
                .send()
                .await
                .unwrap()
                .status(),
            401
        );
    }
    for open in ["/health", "/ready"] {
        assert_eq!(app.get(open).await.0, 200);
    }
}

#[tokio::test]
async fn tokens_expire_and_stay_required_after_the_last_is_revoked() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    assert_eq!(
        app.get("/api/runs").await.0,
        200,
        "without any token the service is open"
    );
    assert_eq!(status(&app, "a stale token").await, 200);
    let good = token(&app, 1, &[Scope::Chat], None).await;
    assert_eq!(app.get("/api/runs").await.0, 401);
    assert_eq!(status(&app, &good).await, 200);
    let (head, last) = good.split_at(good.len() - 1);
    let wrong = format!("{head}{}", if last == "0" { "1" } else { "0" });
    assert_eq!(
        status(&app, &wrong).await,
        401,
        "the id alone gives no access"
    );
    let now = Clock::System.now();
    let over = token(
        &app,
        2,
        &[Scope::Chat],
        Some(now - SignedDuration::from_secs(1)),
    )
    .await;
    let later = token(
        &app,
        3,
        &[Scope::Chat],
        Some(now + SignedDuration::from_secs(600)),
    )
    .await;
    assert_eq!(
        (status(&app, &over).await, status(&app, &later).await),
        (401, 200)
    );
    let store = SqliteStore::open(&app.folder.path().join("conclave.db"), "keys")
        .await
        .unwrap();
    for token in store.tokens().await.unwrap() {
        assert!(store.revoke_token(&token.id, now).await.unwrap());
    }
    assert_eq!(
        (status(&app, &good).await, app.get("/api/runs").await.0),
        (401, 401)
    );
}

#[tokio::test]
async fn a_token_of_actions_reads_actions_and_their_narrations_and_no_chat() {
    let provider = MockProvider::start().await;
    let narrating = Setup::default().set("/policy/actions", json!({ "narration": true }));
    let app = TestApp::with(&provider, narrating).await;
    let chat_id = app.reply(app.post(&chat("ask", QUESTION))).await.run;
    let act = token(&app, 1, &[Scope::Act], None).await;
    let text = json!({ "source": "http", "user": { "id": "ada", "name": "Ada" }, "context": {}, "message": "/do wave, stealth" });
    let told = app
        .request("POST", "/api/act")
        .bearer_auth(&act)
        .json(&text)
        .send();
    let told = told.await.unwrap();
    let action = run_of(&told).to_string();
    let body: Value = told.json().await.unwrap();
    let narration = body["actions"][0]["result"]["narration"]["run"]
        .as_str()
        .unwrap_or_else(|| panic!("{body:#}"))
        .to_owned();
    app.ended(narration.parse().unwrap()).await;
    let read = async |path: String| {
        let url = format!("{}/api/runs/{path}", app.url);
        app.client
            .get(url)
            .bearer_auth(&act)
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    for run in [&action, &narration] {
        for part in ["", "/journal", "/events"] {
            assert_eq!(read(format!("{run}{part}")).await, 200, "{run}{part}");
        }
    }
    for part in ["", "/journal", "/events"] {
        assert_eq!(read(format!("{chat_id}{part}")).await, 403, "{part}");
    }
}

#[tokio::test]
async fn a_token_allows_only_the_routes_of_its_scopes() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let act = token(&app, 1, &[Scope::Act, Scope::Tools], None).await;
    let admin = token(&app, 2, &[Scope::Admin], None).await;
    let refused = sent(app.post(&chat("ask", QUESTION)).bearer_auth(&act)).await;
    assert_eq!(refused.status(), 403);
    assert_eq!(
        refused.headers()["www-authenticate"],
        r#"Bearer error="insufficient_scope", scope="chat""#
    );
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["type"], "urn:conclave:problem:lacks-scope");
    assert_eq!(provider.calls().len(), 0);
    assert_eq!(
        app.reply(app.post(&chat("ask", QUESTION)).bearer_auth(&admin))
            .await
            .outcome,
        "answered"
    );
    let folder = TempDir::new().unwrap();
    let arguments = ["ask", "--server", &app.url, QUESTION];
    let ask = |token| {
        run(conclave(
            folder.path(),
            &arguments,
            &[("CONCLAVE_TOKEN", token)],
        ))
    };
    let (code, _, error) = ask(&act).await;
    assert_eq!(code, 4, "{error}");
    assert!(
        error.contains("without the scope chat") && error.contains("conclave token create"),
        "{error}"
    );
    assert_eq!(ask(&admin).await.0, 0);
}

#[tokio::test]
async fn a_refusal_names_every_scope_that_would_do() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let act = token(&app, 1, &[Scope::Act], None).await;
    let url = format!("{}/api/runs/019b2c4e-7f00-7aa1-b2c3-0d4e5f607182", app.url);
    let refused = app.client.delete(url).bearer_auth(&act).send();
    let refused = refused.await.unwrap();
    assert_eq!(refused.status(), 403);
    assert_eq!(
        refused.headers()["www-authenticate"],
        r#"Bearer error="insufficient_scope", scope="chat tools""#
    );
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(
        problem["detail"],
        "the token is valid, but it was made without any of the scopes chat, tools"
    );
}

#[tokio::test]
async fn a_valid_long_token_works_from_a_blocked_address() {
    let provider = MockProvider::start().await;
    for (fixed, right) in [("weak", 429), (FIXED, 200)] {
        let app = TestApp::with(&provider, Setup::default().env("CONCLAVE_TOKEN", fixed)).await;
        let good = token(&app, 1, &[Scope::Chat], None).await;
        let mut seen = vec![];
        for guess in 0..32 {
            seen.push(status(&app, &format!("guess {guess}")).await);
        }
        assert_eq!(seen, [vec![401; 30], vec![429; 2]].concat());
        let locked = sent(app.request("GET", "/api/runs").bearer_auth("guess")).await;
        let wait: u64 = locked.headers()["retry-after"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
        assert_eq!(
            status(&app, fixed).await,
            right,
            "whether it could be a guess is what counts"
        );
        assert_eq!(status(&app, &good).await, 200);
        assert_eq!(app.get("/api/runs").await.0, 401, "no token is no guess");
    }
}

#[tokio::test]
async fn without_tokens_requests_for_another_host_are_refused() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let from = |host: &str| app.request("GET", "/api/runs").header("host", host).send();
    assert_eq!(from("rebound.example").await.unwrap().status(), 403);
    assert_eq!(from("localhost:8080").await.unwrap().status(), 200);
    let _ = token(&app, 1, &[Scope::Chat], None).await;
    assert_eq!(from("rebound.example").await.unwrap().status(), 401);
}

#[tokio::test]
async fn tokens_are_created_listed_and_revoked_on_the_command_line() {
    let folder = TempDir::new().unwrap();
    let run = async |arguments: &[&str]| run(conclave(folder.path(), arguments, &[])).await;
    let create = [
        "token",
        "create",
        "--name",
        "the bot",
        "--scope",
        "chat,act",
        "--expires",
        "90d",
    ];
    let (code, token, note) = run(&create).await;
    assert_eq!(code, 0, "{note}");
    let token =
        BearerToken::parse(token.trim()).expect("standard output holds the token and nothing else");
    assert!(
        note.contains(token.id()) && !note.contains(&token.reveal()),
        "{note}"
    );
    let (_, list, _) = run(&["token", "list"]).await;
    assert!(
        list.contains(token.id()) && list.contains("chat,act") && list.contains("the bot"),
        "{list}"
    );
    let (_, lines, _) = run(&["token", "list", "--json"]).await;
    let line: Value = serde_json::from_str(lines.trim()).unwrap();
    assert_eq!(
        (&line["works"], &line["scopes"]),
        (&json!(true), &json!(["chat", "act"]))
    );
    let day = |key: &str| line[key].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert_eq!(
        day("expiresAt").duration_since(day("createdAt")).as_hours(),
        90 * 24
    );
    let secret = token.reveal().rsplit('_').next().unwrap().to_owned();
    for file in std::fs::read_dir(folder.path().join("data")).unwrap() {
        let path = file.unwrap().path();
        let bytes = if path.is_file() {
            std::fs::read(path).unwrap()
        } else {
            vec![]
        };
        assert!(
            !String::from_utf8_lossy(&bytes).contains(&secret),
            "the secret is on the disk"
        );
    }
    assert_eq!(run(&["token", "revoke", token.id()]).await.0, 0);
    assert_eq!(run(&["token", "revoke", token.id()]).await.0, 4);
    assert!(run(&["token", "list"]).await.1.contains("revoked"));
    for wrong in [
        &["--scope", "chat"][..],
        &["--name", "x"],
        &["--name", "x", "--scope", "all"],
        &["--name", "x", "--scope", "chat", "--expires", "-1d"],
    ] {
        assert_eq!(
            run(&[&["token", "create"], wrong].concat()).await.0,
            2,
            "{wrong:?}"
        );
    }
}

#[tokio::test]
async fn a_public_address_is_served_only_with_a_token() {
    let folder = TempDir::new().unwrap();
    let variables = [("ANTHROPIC_API_KEY", "k"), ("CONCLAVE_BIND", "0.0.0.0:0")];
    let serve = || run(conclave(folder.path(), &["serve"], &variables));
    let (code, _, error) = serve().await;
    assert_eq!(code, 3, "{error}");
    assert!(
        error.contains("CONCLAVE_BIND: 0.0.0.0:0 is reachable from outside"),
        "{error}"
    );
    let create = ["token", "create", "--name", "x", "--scope", "chat"];
    let token = run(conclave(folder.path(), &create, &[])).await.1;
    let service = Service::start(folder.path(), &variables).await;
    let port = service.url.rsplit(':').next().unwrap().to_owned();
    let url = format!("http://127.0.0.1:{port}/api/runs");
    assert_eq!(status_of(crate::support::client().get(&url)).await, 401);
    assert_eq!(
        status_of(crate::support::client().get(&url).bearer_auth(token.trim())).await,
        200
    );
    service.stop().await;
    let id = BearerToken::parse(token.trim()).unwrap();
    let revoke = conclave(folder.path(), &["token", "revoke", id.id()], &[]);
    assert_eq!(run(revoke).await.0, 0);
    let code = serve().await.0;
    assert_eq!(code, 3, "a revoked token is no reason to need one");
}

fn asked_by(user: &str, guild: &str, message: &str) -> Value {
    let mut body = chat("ask", QUESTION);
    body["user"]["id"] = json!(user);
    body["context"] = json!({ "channelId": "c", "guildId": guild, "messageId": message });
    body
}

async fn refusal(app: &TestApp, body: &Value) -> (String, u64) {
    let response = app.post(body).send().await.unwrap();
    assert_eq!(response.status(), 429);
    let wait = response.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["type"], "urn:conclave:problem:limit-spent");
    (problem["detail"].as_str().unwrap().to_owned(), wait)
}

#[tokio::test]
async fn a_daily_limit_reports_its_scope_its_rest_and_its_reset() {
    let provider = MockProvider::start().await;
    // A run costs about two cents, and the cap of each run is ten. So the user's limit refuses the
    // second run, and the guild's limit the third.
    let setup = Setup::default()
        .set("/policy/deepMaxUsd", json!(0.1))
        .set("/policy/limits/userDailyUsd", json!(0.1001))
        .set("/policy/limits/guildDailyUsd", json!(0.14));
    let app = TestApp::with(&provider, setup).await;
    let first = app.reply(app.post(&asked_by("u1", "g1", "m1"))).await;
    let (detail, wait) = refusal(&app, &asked_by("u1", "g2", "m2")).await;
    assert!(
        detail.starts_with("this user's limit of 0.1001 USD a day has 0.0"),
        "{detail}"
    );
    let midnight = Clock::System.now().as_second() / 86_400 * 86_400 + 86_400;
    assert!(
        detail.ends_with(&format!(
            "it resets at {}",
            Timestamp::from_second(midnight).unwrap()
        )),
        "{detail}"
    );
    assert!(
        (1..=86_401).contains(&wait)
            && (midnight - Clock::System.now().as_second()).unsigned_abs() + 2 >= wait,
        "{wait}"
    );
    let again = app.reply(app.post(&asked_by("u1", "g1", "m1"))).await;
    assert_eq!(
        again.run, first.run,
        "a repetition is answered all the same"
    );
    let other = app.reply(app.post(&asked_by("u2", "g1", "m3"))).await;
    assert_ne!(other.run, first.run);
    assert!(
        refusal(&app, &asked_by("u3", "g1", "m4"))
            .await
            .0
            .starts_with("this guild's limit")
    );
}

#[tokio::test]
async fn a_limit_filled_by_runs_in_flight_has_a_short_wait() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(std::time::Duration::from_secs(10)));
    let limits = [
        ("/policy/deepMaxUsd", json!(0.1)),
        ("/policy/limits/dailyUsd", json!(0.15)),
    ];
    let setup = limits
        .into_iter()
        .fold(Setup::default(), |setup, (pointer, value)| {
            setup.set(pointer, value)
        });
    let app = TestApp::with(&provider, setup).await;
    let body = asked_by("u1", "g1", "m1");
    assert_eq!(
        status_of(app.post(&body).header("prefer", "respond-async")).await,
        202
    );
    let (detail, wait) = refusal(&app, &asked_by("u2", "g2", "m2")).await;
    assert!(
        detail.starts_with("the service's limit") && wait == 10,
        "{wait}: {detail}"
    );
    let joined = sent(app.post(&body).header("prefer", "respond-async")).await;
    assert_eq!(joined.status(), 202);
}

#[tokio::test]
async fn concurrent_questions_do_not_pass_a_limit() {
    let provider = MockProvider::start().await;
    provider.on("*", Fault::Latency(std::time::Duration::from_secs(10)));
    let setup = Setup::default()
        .set("/policy/deepMaxUsd", json!(0.1))
        .set("/policy/limits/dailyUsd", json!(0.35));
    let app = TestApp::with(&provider, setup).await;
    let asked = (0..20).map(|i| {
        let body = asked_by(&format!("u{i}"), &format!("g{i}"), &format!("m{i}"));
        app.post(&body).header("prefer", "respond-async").send()
    });
    let answers = futures_util::future::join_all(asked).await;
    let mut statuses: Vec<u16> = answers
        .into_iter()
        .map(|answer| answer.unwrap().status().as_u16())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![202; 3], vec![429; 17]].concat());
}

#[tokio::test]
async fn the_user_rate_limit_does_not_count_repetitions() {
    let provider = MockProvider::start().await;
    let setup = Setup::default()
        .set("/policy/limits/userPerMinute", json!(6))
        .set("/policy/limits/userBurst", json!(2));
    let app = TestApp::with(&provider, setup).await;
    let ask = async |body: Value| {
        app.post(&body)
            .header("prefer", "respond-async")
            .send()
            .await
            .unwrap()
    };
    let body = asked_by("u1", "g1", "m1");
    let repetitions = futures_util::future::join_all((0..50).map(|_| ask(body.clone()))).await;
    let runs: std::collections::BTreeSet<_> = repetitions
        .iter()
        .map(|response| {
            (
                response.status(),
                response.headers()["x-request-id"].clone(),
            )
        })
        .map(|(status, run)| (status.as_u16(), run.to_str().unwrap().to_owned()))
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(ask(asked_by("u1", "g1", "m2")).await.status(), 202);
    let refused = ask(asked_by("u1", "g1", "m3")).await;
    assert_eq!(refused.status(), 429);
    assert!(
        (1..=10).contains(
            &refused.headers()["retry-after"]
                .to_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        )
    );
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["type"], "urn:conclave:problem:rate-limited");
    assert_eq!(ask(asked_by("u1", "g1", "m2")).await.status(), 202);
    assert_eq!(
        ask(asked_by("u2", "g1", "m4")).await.status(),
        202,
        "others are not held up"
    );
}
