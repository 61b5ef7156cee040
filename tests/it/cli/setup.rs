//! Tests the commands around setup: the key, the config, `doctor`, the published schemas, and help.

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{CommandLine, run};
use crate::docs::held;
use crate::support::Fault;
use crate::support::process::conclave;

#[tokio::test]
async fn without_a_key_the_command_names_the_variable_and_stops() {
    let folder = TempDir::new().unwrap();
    for arguments in [&["serve"][..], &["ask", "x"][..]] {
        let (code, _, error) = run(conclave(folder.path(), arguments, &[])).await;
        assert_eq!(code, 3, "{error}");
        assert!(
            error.contains("ANTHROPIC_API_KEY")
                && error.contains("CONCLAVE_CONFIG=llm.config.local.json")
        );
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_reported_once_and_the_choice_of_a_config_is_said() {
    let folder = TempDir::new().unwrap();
    let env = folder.path().join(".env");
    let check = |arguments: &[&str], variables: &[(&str, &str)]| {
        run(conclave(folder.path(), arguments, variables))
    };
    for line in ["ANTHROPIC_API_KEY=sk-ant abc", "ANTHROPIC_API_KEY: abc"] {
        std::fs::write(&env, line).unwrap();
        let (code, _, error) = check(&["config", "check"], &[]).await;
        assert!(
            code == 3 && error.contains(".env:1") && !error.contains("not set"),
            "{error}"
        );
    }
    // An empty variable of the process does not hide the one of the file.
    std::fs::write(&env, "ANTHROPIC_API_KEY=k").unwrap();
    let (code, _, error) = check(&["config", "check"], &[("ANTHROPIC_API_KEY", "")]).await;
    assert_eq!(code, 0, "{error}");
    std::fs::remove_file(env).unwrap();
    let keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"].map(|key| (key, "k"));
    let keys = [&keys[..], &[("CONCLAVE_CONFIG", "")]].concat();
    for arguments in [
        &["config", "check"][..],
        &["quote", "Why?"],
        &["doctor", "--offline"],
    ] {
        let (code, _, error) = check(arguments, &keys).await;
        assert_eq!(code, 0, "{error}");
        assert!(error.contains("no config file") && error.contains("mixed"));
    }
    let named = &["--config", "nosuch.json", "config", "check"];
    let (code, _, error) = check(named, &keys).await;
    assert!(
        code == 3 && error.contains("--config: cannot read"),
        "{error}"
    );
    // A link to no file, as of a mount that is missing, is no absent file.
    std::os::unix::fs::symlink("/nowhere", folder.path().join("llm.config.json")).unwrap();
    let (code, _, error) = check(&["config", "check"], &keys).await;
    assert!(code == 3 && error.contains("llm.config.json"), "{error}");
}

#[tokio::test]
async fn a_config_with_five_mistakes_reports_five() {
    let folder = TempDir::new().unwrap();
    let mut config: Value = serde_json::from_str(include_str!("../../../llm.config.json")).unwrap();
    config["polcy"] = json!({});
    config["policy"]["tauHard"] = json!("high");
    config["policy"]["deadlines"]["call"] = json!(500);
    config["models"]["roles"]["solver"]["provider"] = json!("xai");
    config["models"]["roles"]["critic"] =
        json!({ "provider": "anthropic", "model": "NOT_SET_ANYWHERE" });
    std::fs::write(folder.path().join("bad.json"), config.to_string()).unwrap();
    let variables = [("CONCLAVE_CONFIG", "bad.json"), ("ANTHROPIC_API_KEY", "k")];
    let check = conclave(folder.path(), &["config", "check"], &variables);
    let (code, _, error) = run(check).await;
    assert_eq!(code, 3);
    assert!(error.contains("5 problems"), "{error}");
    assert_eq!(
        error
            .lines()
            .filter(|line| line.starts_with("  - "))
            .count(),
        5,
        "{error}"
    );
}

#[tokio::test]
async fn every_command_reports_prompts_with_all_else_and_makes_no_database() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/plan.md"), "{{ broken").unwrap();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("CONCLAVE_PROMPTS_DIR", "mine"),
        ("CONCLAVE_BIND", "nowhere"),
    ];
    let commands = [&["config", "check"][..], &["serve"], &["ask", "Why?"]];
    for command in commands {
        let (code, _, error) = run(conclave(folder.path(), command, &variables)).await;
        assert_eq!(code, 3, "{command:?}");
        assert!(error.contains("2 problems"), "{error}");
        assert!(error.contains("  - CONCLAVE_BIND: "), "{error}");
        assert!(error.contains("  - mine/plan.md: "), "{error}");
    }
    // Without a problem in the configuration, its prompts alone stop the start.
    let (code, _, error) = run(conclave(folder.path(), &["serve"], &variables[..2])).await;
    assert_eq!(code, 3);
    assert!(error.contains("1 problem in"), "{error}");
    let made = folder.path().read_dir().unwrap().count();
    assert_eq!(made, 1, "only the prompts are there");
}

#[cfg(feature = "local")]
#[tokio::test]
async fn weights_that_are_not_there_are_a_problem_of_the_config() {
    let folder = TempDir::new().unwrap();
    let variables = [
        ("CONCLAVE_CONFIG", "local"),
        ("LOCAL_MODEL_PATH", "none.gguf"),
    ];
    for command in [&["config", "check"][..], &["ask", "Why?"]] {
        let (code, _, error) = run(conclave(folder.path(), command, &variables)).await;
        assert_eq!(code, 3, "{error}");
        assert!(
            error.contains("LOCAL_MODEL_PATH: there are no weights at none.gguf"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_address_at_which_no_service_answers_is_said_plainly() {
    let folder = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/health", get(async || "hello"));
    let mut server = JoinSet::new();
    server.spawn(async { axum::serve(listener, router).await });
    for (server, expected_code, expected) in [
        ("foo", 2, "an address such as http://127.0.0.1:8080"),
        (
            "ftp://127.0.0.1:1",
            2,
            "an address such as http://127.0.0.1:8080",
        ),
        ("http://127.0.0.1:1", 8, "/health: no service listens there"),
        (&other, 8, "another program than conclave answers there"),
    ] {
        let health = conclave(folder.path(), &["health", "--server", server], &[]);
        let (code, _, error) = run(health).await;
        assert_eq!(code, expected_code, "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn init_refuses_a_config_to_read() {
    let folder = TempDir::new().unwrap();
    let init = ["init", "--config", "openai", "--no-probe"];
    let (code, _, error) = run(conclave(folder.path(), &init, &[("OPENAI_API_KEY", "k")])).await;
    assert_eq!(code, 2);
    assert!(error.contains("--provider NAME"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn init_says_when_another_config_comes_first() {
    let folder = TempDir::new().unwrap();
    let init = ["init", "--provider", "openai", "--no-probe"];
    let variables = [("OPENAI_API_KEY", "k"), ("CONCLAVE_CONFIG", "xai")];
    let (code, out, error) = run(conclave(folder.path(), &init, &variables)).await;
    assert_eq!(code, 0, "{error}");
    assert!(
        out.contains("not used") && out.contains("built-in xai"),
        "{out}"
    );
}

#[tokio::test]
async fn doctor_probes_what_a_run_would_use() {
    let cli = CommandLine::new().await;
    let (code, report, _) = cli.run(&["doctor"]).await;
    assert_eq!(code, 0, "{report}");
    let calls = cli.provider.calls();
    for part in ["agentsToRun", "units"] {
        let mut properties = calls.iter().map(|call| &call.schema()["properties"]);
        assert!(properties.any(|it| it[part].is_object()), "{part}");
    }
    assert!(
        report.contains("clean JSON") && report.contains("solver"),
        "{report}"
    );
    let mut small = cli.command(&["doctor", "--offline"], &[("NORMAL_MAX_USD", "0.02")]);
    let report = small.output().await.unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    let warning = "no question can be asked in ask: the cap of 0.0200 USD is too low";
    assert!(report.contains(warning), "{report}");
    cli.provider.reply_with("*", json!({ "sum": 5 }));
    let (code, report, _) = cli.run(&["doctor"]).await;
    assert_eq!(code, 5);
    assert!(report.contains("its JSON is not valid"), "{report}");
    cli.provider.on("*", Fault::Status(401));
    let output = cli.run(&["doctor"]).await;
    assert_eq!(output.0, 5);
    assert!(output.1.contains("FAILED"));
}

#[tokio::test]
async fn the_published_schemas_are_those_in_force() {
    let folder = TempDir::new().unwrap();
    let published = [
        ("plan", "docs/schemas/orchestration-plan.json"),
        ("report", "docs/schemas/agent-report.json"),
        ("cross-check", "docs/schemas/cross-check.json"),
        ("decisions", "docs/schemas/decisions.json"),
        ("synthesis", "docs/schemas/final-synthesis.json"),
        ("config", "docs/llm.config.schema.json"),
        ("api", "docs/openapi.json"),
    ];
    for (name, file) in published {
        let schema = conclave(folder.path(), &["config", "schema", name], &[]);
        held(file, &run(schema).await.1);
    }
}

#[tokio::test]
async fn the_help_names_the_exit_codes() {
    let folder = TempDir::new().unwrap();
    let (code, help, _) = run(conclave(folder.path(), &["--help"], &[])).await;
    assert!(code == 0 && help.contains("Exit codes:"), "{help}");
}
