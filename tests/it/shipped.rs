//! Tests the shipped configs with the real binary, as on first use: one key and an empty folder.
//! The models think and refuse parameters as current models do.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::cli::run;
use crate::support::process::conclave;
use crate::support::{Fault, MockProvider, Setup, TestApp};

const QUESTION: &str = "Which HTTP status fits a request that breaks a business rule?";

/// The built-in configs that one variable selects, with the address variable and their models.
const PROVIDERS: [(&str, &str, &str, &[&str]); 5] = [
    (
        "anthropic",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        &["claude-haiku-5-5", "claude-sonnet-5-5"],
    ),
    (
        "openai",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        &["gpt-6-luna", "gpt-6.1-sol"],
    ),
    (
        "xai",
        "XAI_API_KEY",
        "XAI_BASE_URL",
        &["grok-4.3", "grok-4.6"],
    ),
    (
        "openrouter",
        "OPENROUTER_API_KEY",
        "OPENROUTER_BASE_URL",
        &[
            "anthropic/claude-haiku-5.5",
            "anthropic/claude-sonnet-5.5",
            "openai/gpt-6-luna",
            "x-ai/grok-4.3",
        ],
    ),
    (
        "ollama",
        "OLLAMA_BASE_URL",
        "OLLAMA_BASE_URL",
        &["gemma4:e4b"],
    ),
];

/// Returns the binary's command in an empty folder, with only the built-in configs.
fn newcomer(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = conclave(folder, arguments, &[]);
    command
        .env_remove("CONCLAVE_CONFIG")
        .env("HOME", folder)
        .envs(variables.iter().copied());
    command
}

fn models_asked(provider: &MockProvider) -> Vec<String> {
    let mut models: Vec<String> = provider
        .calls()
        .into_iter()
        .map(|call| call.model)
        .collect();
    models.sort();
    models.dedup();
    models
}

#[tokio::test]
async fn one_key_in_an_empty_folder_gives_an_answer() {
    for (name, key, address, models) in PROVIDERS {
        let provider = MockProvider::start().await;
        let folder = TempDir::new().unwrap();
        let url = provider.url();
        // For ollama both names are the same variable, and the address wins.
        let variables = [(key, "sk-newcomer-0123456789"), (address, url.as_str())];
        let command = newcomer(folder.path(), &["audit", "--json", QUESTION], &variables);
        let (code, out, error) = run(command).await;
        assert_eq!(code, 0, "{name}: {error}");
        let reply: Value = serde_json::from_str(&out).unwrap();
        let budget = &reply["meta"]["budget"];
        assert!(
            budget["estimatedUsd"].as_f64() <= budget["capUsd"].as_f64(),
            "{name}: {budget}"
        );
        assert_eq!(budget["modeCapExceeded"], false, "{name}");
        assert_eq!(models_asked(&provider), models, "{name}");
        assert_eq!(provider.complaints(), [""; 0], "{name}");
        let agents = reply["audit"]["agents"].as_array().unwrap();
        assert!(
            agents
                .iter()
                .all(|agent| agent["outcome"] == "answered" && agent["attempts"] == 1),
            "{name}: {agents:?}"
        );
        assert!(
            folder
                .path()
                .join(".local/share/conclave/conclave.db")
                .is_file(),
            "{name}"
        );
        let id = reply["audit"]["runId"].as_str().unwrap();
        let (code, out, error) = run(newcomer(folder.path(), &["show", id], &[])).await;
        assert!(code == 0 && out.contains("## TL;DR"), "{name}: {error}");
        // It is scored again under the same built-in config.
        let replay = newcomer(folder.path(), &["replay", "--json", id], &variables);
        let (code, out, error) = run(replay).await;
        assert_eq!(code, 0, "{name}: {error}");
        let replayed: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(replayed["recorded"], replayed["replayed"], "{name}");
    }
}

#[tokio::test]
async fn the_selected_config_is_printed_with_its_reason() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    let variables = [
        ("XAI_API_KEY", "sk-1"),
        ("OPENAI_API_KEY", "sk-2"),
        ("OPENAI_BASE_URL", url.as_str()),
    ];
    let (code, _, error) = run(newcomer(folder.path(), &["ask", QUESTION], &variables)).await;
    assert_eq!(code, 0, "{error}");
    assert!(
        error.contains("using the built-in openai config, because OPENAI_API_KEY is set"),
        "{error}"
    );
    assert!(
        error.contains("keys for xai are set too: CONCLAVE_CONFIG=mixed"),
        "{error}"
    );
}

#[tokio::test]
async fn without_a_key_the_message_names_it_and_the_alternatives() {
    let folder = TempDir::new().unwrap();
    let (code, out, error) = run(newcomer(folder.path(), &["ask", QUESTION], &[])).await;
    assert_eq!((code, out.as_str()), (3, ""), "{error}");
    assert!(
        error.contains("ANTHROPIC_API_KEY")
            && error.contains("CONCLAVE_CONFIG=llm.config.local.json"),
        "{error}"
    );
    // Uses the shipped config with the key of another provider.
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/llm.config.json");
    for command in ["ask", "serve"] {
        let arguments: &[&str] = if command == "ask" {
            &["ask", QUESTION]
        } else {
            &["serve"]
        };
        let variables = [("CONCLAVE_CONFIG", shipped), ("OPENAI_API_KEY", "sk-1")];
        let (code, _, error) = run(newcomer(folder.path(), arguments, &variables)).await;
        assert_eq!(code, 3, "{error}");
        assert!(
            error.contains("OPENAI_API_KEY is set: use it with CONCLAVE_CONFIG=openai"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn the_mixed_config_puts_the_verifier_in_another_model_family() {
    let keys = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "XAI_API_KEY",
        "OPENROUTER_API_KEY",
    ];
    let family = |model: &str| {
        model
            .rsplit('/')
            .next()
            .unwrap()
            .split('-')
            .next()
            .unwrap()
            .to_owned()
    };
    for (at, first) in keys.iter().enumerate() {
        for second in &keys[at + 1..] {
            let provider = MockProvider::start().await;
            let folder = TempDir::new().unwrap();
            let url = provider.url();
            let mut variables = vec![(*first, "sk-1"), (*second, "sk-2")];
            variables.extend(PROVIDERS.map(|(_, _, address, _)| (address, url.as_str())));
            let command = newcomer(
                folder.path(),
                &["ask", "--config", "mixed", QUESTION],
                &variables,
            );
            let (code, _, error) = run(command).await;
            assert_eq!(code, 0, "{first} {second}: {error}");
            let model = |step: &str| provider.calls_of(step)[0].model.clone();
            assert_ne!(
                family(&model("r1/solver")),
                family(&model("r1/verifier")),
                "{first} {second}"
            );
            assert!(
                error.contains("another model family than the solver"),
                "{error}"
            );
        }
    }
    let folder = TempDir::new().unwrap();
    let variables = [("ANTHROPIC_API_KEY", "sk-1")];
    let (code, _, error) = run(newcomer(
        folder.path(),
        &["ask", "--config", "mixed", QUESTION],
        &variables,
    ))
    .await;
    assert_eq!(code, 3);
    assert!(
        error.contains("no provider of some roles has a key: set ")
            && error.contains("XAI_API_KEY")
            && error.contains("ANTHROPIC_API_KEY is set: use it with CONCLAVE_CONFIG=anthropic"),
        "{error}"
    );
    assert_eq!(error.matches("no provider of some roles").count(), 1);
}

#[tokio::test]
async fn doctor_calls_thinking_models_as_a_run_does() {
    for (name, key, address, models) in PROVIDERS {
        let provider = MockProvider::start().await;
        let folder = TempDir::new().unwrap();
        let url = provider.url();
        let variables = [(key, "sk-newcomer-0123456789"), (address, url.as_str())];
        let (code, out, error) = run(newcomer(folder.path(), &["doctor"], &variables)).await;
        assert_eq!(code, 0, "{name}: {out}{error}");
        assert!(
            models.iter().all(|model| out.contains(model)),
            "{name}: {out}"
        );
    }
}

#[tokio::test]
async fn init_writes_config_and_key_and_probes() {
    let provider = MockProvider::start().await;
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    let address = ("OPENAI_BASE_URL", url.as_str());
    let variables = [("OPENAI_API_KEY", "sk-newcomer-$123"), address];
    let (code, out, error) = run(newcomer(folder.path(), &["init"], &variables)).await;
    assert_eq!(code, 0, "{out}{error}");
    assert!(
        !out.contains("sk-newcomer") && !error.contains("sk-newcomer"),
        "{out}{error}"
    );
    let mode = std::fs::metadata(folder.path().join(".env"))
        .unwrap()
        .permissions()
        .mode()
        & 0o777;
    assert_eq!(mode, 0o600);
    assert!(!out.contains("not used"), "{out}");
    // From now on the environment needs no key.
    let (code, _, error) = run(newcomer(folder.path(), &["ask", QUESTION], &[address])).await;
    assert_eq!(code, 0, "{error}");
    let sent = provider.calls().pop().unwrap();
    assert_eq!(sent.headers["authorization"], "Bearer sk-newcomer-$123");
    let (code, _, error) = run(newcomer(folder.path(), &["init"], &variables)).await;
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("--force"), "{error}");
}

#[tokio::test]
async fn a_broken_env_file_is_reported_with_its_line() {
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join(".env"),
        "ANTHROPIC_API_KEY=k\nbroken line\nCONCLAVE_BIND=\"x\n",
    )
    .unwrap();
    let server = "http://127.0.0.1:9";
    for command in [
        &["config", "check"][..],
        &["ask", QUESTION, "--server", server],
        &["health"],
    ] {
        let (code, out, error) = run(newcomer(folder.path(), command, &[])).await;
        assert_eq!((code, out.as_str()), (3, ""), "{command:?}");
        assert!(
            error.contains(".env:2: cannot be read") && error.contains(".env:3: cannot be read"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_limit_used_up_by_thinking_is_retried_once_with_less_effort_and_more_tokens() {
    let provider = MockProvider::start().await;
    let role = json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 400, "effort": "high" });
    let setup = Setup::default().set("/models/roles/solver", role);
    provider
        .on("r1/solver", Fault::OutputSpentOnThinking)
        .times(1);
    let app = TestApp::with(&provider, setup).await;
    let got = app.ask("audit", QUESTION).await;
    let calls = provider.calls_of("r1/solver");
    let asked: Vec<(u64, String)> = calls
        .iter()
        .map(|call| {
            let thinking = call.body["thinking"]["type"]
                .as_str()
                .map(|_| "none".to_owned());
            let effort = call.body["output_config"]["effort"]
                .as_str()
                .map(str::to_owned);
            (
                call.body["max_tokens"].as_u64().unwrap(),
                thinking.or(effort).unwrap(),
            )
        })
        .collect();
    assert_eq!(asked, [(400, "high".to_owned()), (800, "none".to_owned())]);
    assert_eq!(got.body["audit"]["agents"][0]["outcome"], "answered");
    assert_eq!(
        provider.calls_of("r1/solver/repair").len(),
        0,
        "an answer that was all thinking is not repaired"
    );
}

#[tokio::test]
async fn a_model_that_only_thinks_fails_with_advice_after_few_calls() {
    let provider = MockProvider::start().await;
    provider.on("r1/critic*", Fault::OutputSpentOnThinking);
    let app = TestApp::start(&provider).await;
    let got = app.ask("audit", QUESTION).await;
    let critic = &got.body["audit"]["agents"][1];
    let cause = critic["cause"].as_str().unwrap();
    assert!(
        cause.starts_with("thought its limit away: the model spent all "),
        "{cause}"
    );
    assert!(
        cause.contains("raise maxTokens of critic, or lower its effort"),
        "{cause}"
    );
    let limits = provider.calls_of("r1/critic*");
    let limits: Vec<u64> = limits
        .iter()
        .filter_map(|call| call.body["max_tokens"].as_u64())
        .collect();
    assert!(
        matches!(limits.as_slice(), [first, second] if second > first),
        "{limits:?}"
    );
    assert!(
        got.text()
            .contains("critic: no usable output (thought its limit away: the model spent all "),
        "{}",
        got.text()
    );
}

#[tokio::test]
async fn a_model_that_was_replaced_is_flagged_in_the_reply_and_the_audit() {
    let provider = MockProvider::start().await;
    provider.on("r1/verifier", Fault::ServedBy("claude-haiku-3-20240307"));
    provider.on("r1/critic", Fault::ServedBy("[other](http://x)` @everyone"));
    let app = TestApp::start(&provider).await;
    let got = app.ask("audit", QUESTION).await;
    let verifier = &got.body["audit"]["agents"][2];
    assert_eq!(
        (&verifier["servedModel"], &verifier["modelReplaced"]),
        (&json!("claude-haiku-3-20240307"), &json!(true))
    );
    assert!(got.text().contains(
        "verifier: `claude-haiku-3-20240307` answered in the place of `claude-haiku-5-5`"
    ));
    // What a provider says is no Markdown of the reply.
    assert_eq!(
        got.text().matches("`[other](http://x)' @everyone`").count(),
        3
    );
    assert_eq!(got.body["audit"]["agents"][0]["modelReplaced"], false);
}

#[tokio::test]
async fn configured_headers_go_with_every_call_and_stay_secret() {
    let provider = MockProvider::start().await;
    let headers = json!({ "user-agent": "gateway/1", "anthropic-beta": "${GATEWAY_KEY}" });
    let setup = Setup::default()
        .set("/providers/anthropic/headers", headers)
        .env("GATEWAY_KEY", "gateway-secret-0123456789");
    let app = TestApp::with(&provider, setup).await;
    app.ask("ask", QUESTION).await;
    for call in provider.calls() {
        assert_eq!(call.headers["user-agent"], "gateway/1");
        assert_eq!(call.headers["anthropic-beta"], "gateway-secret-0123456789");
    }
}

#[tokio::test]
async fn calls_go_through_the_proxy_of_the_config() {
    let provider = MockProvider::start().await;
    // A plain HTTP proxy gets the absolute URL. The mock answers any path of the API.
    let setup = Setup::default()
        .set("/providers/anthropic/proxy", json!(provider.url()))
        .env("ANTHROPIC_BASE_URL", "http://model.invalid");
    let app = TestApp::with(&provider, setup).await;
    app.ask("ask", QUESTION).await;
    assert!(!provider.calls().is_empty());
}

#[tokio::test]
async fn a_reply_above_its_limit_is_refused_by_name_and_not_stored() {
    let provider = MockProvider::start().await;
    // No `max_tokens` of the shipped roles allows a reply of 120,000 bytes.
    provider.on("r1/critic", Fault::Overlong(120_000));
    let app = TestApp::start(&provider).await;
    let got = app.ask("audit", QUESTION).await;
    let critic = &got.body["audit"]["agents"][1];
    let cause = critic["cause"].as_str().unwrap();
    assert!(
        cause.starts_with("reply too long: anthropic sent "),
        "{cause}"
    );
    let journal: usize = got
        .entries
        .iter()
        .map(|entry| serde_json::to_string(&entry.event).unwrap().len())
        .sum();
    assert!(journal < 100_000, "{journal} bytes");
}
