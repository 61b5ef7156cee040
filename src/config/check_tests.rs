//! Every mistake is one problem, and no mistake hides another.

use serde_json::{Value, json};

use super::file::json_schema;
use super::*;
use crate::domain::CommandName;

const SHIPPED: &str = include_str!("../../llm.config.json");
const LOCAL: &str = include_str!("../../llm.config.local.json");

fn env(variables: &[(&str, &str)]) -> Env {
    Env::of(variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())))
}

fn places(result: Result<Config, Problems>) -> Vec<String> {
    result.err().map(|p| p.0.into_iter().map(|p| p.place).collect()).unwrap_or_default()
}

#[test]
fn the_shipped_config_needs_only_a_key() {
    assert_eq!(places(from_text(SHIPPED, &env(&[]))), ["ANTHROPIC_API_KEY"]);
    let config = from_text(SHIPPED, &env(&[("ANTHROPIC_API_KEY", "k")])).unwrap();
    assert_eq!(config.policy.normal_max, Usd::from_dollars(0.10));
    assert_eq!(config.roles.len(), 7);
}

#[test]
#[cfg(feature = "local")]
fn the_local_config_needs_nothing() {
    let config = from_text(LOCAL, &env(&[])).unwrap();
    assert!(config.roles.values().all(|r| r.price.is_none() && r.output == OutputForm::Text));
}

#[test]
#[cfg(not(feature = "local"))]
fn a_build_without_the_in_process_model_says_how_to_get_it() {
    let problems = from_text(LOCAL, &env(&[])).unwrap_err().to_string();
    assert!(problems.contains("--features local") && problems.contains("make demo"), "{problems}");
}

#[test]
fn a_missing_key_is_named_with_the_way_out() {
    let problems = from_text(SHIPPED, &env(&[])).unwrap_err().to_string();
    assert!(problems.contains("ANTHROPIC_API_KEY") && problems.contains("CONCLAVE_CONFIG=llm.config.local.json"));
}

#[test]
fn five_mistakes_are_five_problems() {
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    value["polcy"] = 1.into();
    value["policy"]["tauHard"] = "high".into();
    value["policy"]["deadlines"]["call"] = 200.into();
    value["models"]["roles"]["solver"]["provider"] = "openai".into();
    value["models"]["roles"]["critic"] = json!({ "provider": "anthropic", "model": "NO_SUCH_VARIABLE" });
    let problems = places(from_text(&value.to_string(), &env(&[("ANTHROPIC_API_KEY", "k")])));
    let expected = [
        "/models/roles/critic/model",
        "/models/roles/solver/provider",
        "/policy/deadlines/call",
        "/policy/tauHard",
        "/polcy",
    ];
    let mut sorted = expected.map(str::to_owned).to_vec();
    sorted.sort();
    assert_eq!(problems, sorted);
}

#[test]
fn a_model_without_a_price_is_refused() {
    let variables = env(&[("ANTHROPIC_API_KEY", "k"), ("SOLVER_MODEL", "claude-unknown")]);
    assert_eq!(places(from_text(SHIPPED, &variables)), ["/models/roles/solver/model"]);
}

#[test]
fn a_daily_limit_that_a_cap_never_fits_is_refused() {
    let (user, guild) = ("/policy/limits/userDailyUsd", "/policy/limits/guildDailyUsd");
    let limits = |value: f64| [(user, json!(value)), (guild, json!(5.0)), ("/policy/limits/dailyUsd", Value::Null)];
    assert_eq!(places_with(&limits(0.5), &[]), [""; 0]);
    assert_eq!(places_with(&limits(0.3), &[]), [user]);
    assert_eq!(places_with(&limits(0.3), &[("DEEP_MAX_USD", "0.30")]), [""; 0]);
    assert_eq!(places_with(&limits(-1.0), &[]), [user]);
    let problems = from_text(
        &SHIPPED.replace(r#""attachments": 10"#, r#""attachments": 10, "dailyUsd": 0.05"#),
        &env(&[("ANTHROPIC_API_KEY", "k")]),
    );
    let problems = problems.unwrap_err().to_string();
    assert!(problems.contains("never holds the cap of ask and audit") && problems.contains("of deep"), "{problems}");
}

#[test]
fn a_daily_limit_that_a_proposal_never_fits_is_refused_if_a_model_is_asked() {
    let (guild, actions) = ("/policy/limits/guildDailyUsd", "/policy/actions");
    let set = |cap: f64| [(guild, json!(0.5)), (actions, json!({ "maxUsd": cap }))];
    let asked = [("PROPOSER_ENABLED", "true"), ("PROPOSER_PROVIDER", "anthropic")];
    assert_eq!(places_with(&set(0.5), &asked), [""; 0]);
    assert_eq!(places_with(&set(0.6), &asked), [guild]);
    assert_eq!(places_with(&set(0.6), &[("PROPOSER_ENABLED", "true")]), [""; 0], "the stub costs nothing");
    assert_eq!(places_with(&set(0.6), &[("PROPOSER_PROVIDER", "anthropic")]), [""; 0]);
    assert_eq!(places_with(&set(0.6), &[asked[0], asked[1], ("FEATURE_PLANNER_ENABLED", "false")]), [""; 0]);
}

#[test]
fn a_burst_without_a_rate_says_nothing() {
    let (rate, burst) = ("/policy/limits/userPerMinute", "/policy/limits/userBurst");
    assert_eq!(places_with(&[(burst, json!(5))], &[]), [burst]);
    assert_eq!(places_with(&[(burst, json!(5)), (rate, json!(10))], &[]), [""; 0]);
    assert_eq!(places_with(&[(rate, json!(0))], &[]), [rate]);
}

#[test]
fn origins_are_written_as_browsers_send_them() {
    let origins = |text: &str| {
        let variables = env(&[("ANTHROPIC_API_KEY", "k"), ("CORS_ORIGINS", text)]);
        from_text(SHIPPED, &variables).map(|config| config.cors_origins.into_iter().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(origins(""), Ok(String::new()));
    let two = "https://app.example.org http://localhost:3000";
    assert_eq!(origins(two), Ok("http://localhost:3000 https://app.example.org".into()));
    for bad in ["*", "null", "https://app.example.org/", "app.example.org", "ftp://app.example.org"] {
        assert_eq!(places(origins(bad).map(|_| unreachable!())), ["CORS_ORIGINS"], "{bad}");
    }
}

#[test]
fn no_secret_shows_in_debug_output() {
    let variables = env(&[("ANTHROPIC_API_KEY", "planted-secret"), ("CONCLAVE_TOKEN", "planted-secret-token")]);
    let config = from_text(SHIPPED, &variables).unwrap();
    assert!(!format!("{config:?} {variables:?}").contains("planted-secret"));
}

#[test]
fn the_published_schema_is_the_one_in_force() {
    let published: Value = serde_json::from_str(include_str!("../../docs/llm.config.schema.json")).unwrap();
    assert_eq!(published, json_schema(), "regenerate it: conclave config schema > docs/llm.config.schema.json");
}

/// The places of the problems of the shipped config with some values set, and with a key.
fn places_with(changes: &[(&str, Value)], variables: &[(&str, &str)]) -> Vec<String> {
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    for (pointer, new) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap()[key] = new.clone();
    }
    let variables = [&[("ANTHROPIC_API_KEY", "k")], variables].concat();
    places(from_text(&value.to_string(), &env(&variables)))
}

fn details(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    from_text(text, &env(variables)).unwrap_err().0.into_iter().map(|p| p.detail).collect()
}

#[test]
fn a_mistake_of_any_kind_hides_no_other_and_makes_none() {
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    value["policy"]["normalMaxUsd"] = json!("abc");
    value["pricing"] = json!({ "claude-haiku-5-5": { "input": 1, "output": -1 } });
    value["models"]["roles"].as_object_mut().unwrap().remove("verifier");
    value["providers"]["anthropic"]["maxConcurrent"] = json!(0);
    value["policy"]["deadlines"] = json!({ "connect": 70, "call": 65, "ask": 60 });
    let found = places(from_text(&value.to_string(), &env(&[("ANTHROPIC_API_KEY", "k")])));
    let expected = [
        "/models/roles/verifier",
        "/policy/deadlines/call",
        "/policy/deadlines/connect",
        "/policy/normalMaxUsd",
        "/pricing/claude-haiku-5-5/output",
        "/providers/anthropic/maxConcurrent",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_was_taken_out_is_not_missed_as_well() {
    let whole = ["/models", "/models/roles", "/models/roles/verifier", "/models/roles/solver/provider"];
    let parts = ["/models/roles/solver/model", "/pricing", "/modelData", "/providers"];
    let more = ["/providers/anthropic", "/policy", "/policy/deadlines", "/policy/deadlines/call"];
    for place in whole.into_iter().chain(parts).chain(more) {
        assert_eq!(places_with(&[(place, json!(true))], &[]), [place]);
    }
    let sound = [("/policy/tauHard", json!("x")), ("/policy/tauSoft", json!(0.2))];
    assert_eq!(places_with(&sound, &[]), ["/policy/tauHard"]);
    assert_eq!(places(from_text("[]", &env(&[]))), ["/"]);
    assert_eq!(places(from_text("{", &env(&[("CONCLAVE_BIND", "x")]))), ["/", "CONCLAVE_BIND"]);
    let text = SHIPPED.replace("\"ANTHROPIC_API_KEY\"", "5");
    assert_eq!(places(from_text(&text, &env(&[]))), ["/providers/anthropic/apiKeyEnv"]);
}

#[test]
fn an_entry_of_a_list_keeps_its_place_and_a_whole_number_may_be_too_wide_for_its_type() {
    let agents = json!([1, "solver", 2, "nobody"]);
    let expected = ["0", "1", "2", "3"].map(|i| format!("/policy/disabledAgents/{i}"));
    assert_eq!(places_with(&[("/policy/disabledAgents", agents)], &[]), expected);
    let numbers = [("/policy/leaseSeconds", json!(30.0)), ("/policy/retry/attempts", json!(11))];
    assert_eq!(places_with(&numbers, &[]), ["/policy/leaseSeconds", "/policy/retry/attempts"]);
}

#[test]
fn a_fallback_is_checked_as_deep_as_its_role() {
    let fallback = json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 1, "modle": "x",
                           "fallback": { "provider": "openai", "model": "SOLVER_MODEL" } });
    let at = "/models/roles/solver/fallback";
    let expected = [format!("{at}/fallback/provider"), format!("{at}/maxTokens"), format!("{at}/modle")];
    assert_eq!(places_with(&[(at, fallback)], &[]), expected);
    let other = json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "prompts": "compact" });
    assert_eq!(places_with(&[(at, other)], &[]), [at]);
}

#[test]
fn a_fallback_writes_as_much_as_its_role_unless_it_says_less() {
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    value["models"]["roles"]["solver"] = json!({
        "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 3000, "prompts": "full",
        "fallback": { "provider": "anthropic", "model": "MASTER_MODEL",
                      "fallback": { "provider": "anthropic", "model": "MASTER_MODEL", "maxTokens": 500 } } });
    let config = from_text(&value.to_string(), &env(&[("ANTHROPIC_API_KEY", "k")])).unwrap();
    let solver = config.roles.get(&"solver".parse().unwrap());
    let tokens: Vec<u32> =
        std::iter::successors(solver, |role| role.fallback.as_deref()).map(|role| role.max_tokens).collect();
    assert_eq!(tokens, [3000, 3000, 500]);
}

#[test]
fn a_call_that_fits_into_no_mode_is_one_problem_that_names_them_all() {
    let text = SHIPPED.replace("\"call\": 60", "\"call\": 250");
    let expected = "250 s do not fit into a run: not into the 120 s of ask, nor into the 180 s of audit";
    assert_eq!(details(&text, &[("ANTHROPIC_API_KEY", "k")]), [expected]);
}

#[test]
fn a_price_is_whole_and_reading_the_cache_is_not_dearer_than_input() {
    let prices = [
        ("/pricing", json!({})),
        ("/pricing/a~b", json!({ "output": 1 })),
        ("/pricing/none", json!({})),
        ("/pricing/read", json!({ "input": 1, "output": 1, "cacheRead": 1.1 })),
        ("/pricing/minus", json!({ "input": 1, "output": 1, "cacheRead": -1, "cacheWrite": -1 })),
    ];
    let expected = [
        "/pricing/a~0b/input",
        "/pricing/minus/cacheRead",
        "/pricing/minus/cacheWrite",
        "/pricing/none/input",
        "/pricing/none/output",
        "/pricing/read/cacheRead",
    ];
    assert_eq!(places_with(&prices, &[]), expected);
}

#[test]
fn deadlines_end_at_a_day_and_caps_at_a_million_in_file_and_environment() {
    let day = |seconds: u64| [("/policy/deadlines/deep", json!(seconds))];
    assert_eq!(places_with(&day(86_400), &[]), [""; 0]);
    assert_eq!(places_with(&day(86_401), &[]), ["/policy/deadlines/deep"]);
    let caps = |usd: f64| [("/policy/normalMaxUsd", json!(usd)), ("/policy/deepMaxUsd", json!(usd))];
    assert_eq!(places_with(&caps(1e6), &[]), [""; 0]);
    assert_eq!(places_with(&caps(1e6 + 1.0), &[]), ["/policy/deepMaxUsd", "/policy/normalMaxUsd"]);
    for good in ["0", "0.25", "1000000"] {
        assert_eq!(places_with(&[], &[("NORMAL_MAX_USD", good)]), [""; 0], "{good}");
    }
    for bad in ["ten cents", "$0.10", "-1", "NaN", "inf", "1000001"] {
        let both = [("NORMAL_MAX_USD", bad), ("DEEP_MAX_USD", bad)];
        assert_eq!(places_with(&[], &both), ["DEEP_MAX_USD", "NORMAL_MAX_USD"], "{bad}");
    }
}

#[test]
fn a_database_is_of_sqlite_or_postgresql_and_its_address_is_not_shown() {
    let good = [
        "sqlite://data/conclave.db",
        "sqlite:///srv/a.db",
        "sqlite:a.db?mode=rwc",
        "postgres://db/conclave",
        "postgresql://ada:s%40crt@db.example:6432/conclave?sslmode=verify-full",
        "postgres:///conclave?host=/run/postgresql",
    ];
    for good in good {
        assert_eq!(places_with(&[], &[("DATABASE_URL", good)]), [""; 0], "{good}");
    }
    let secret = "planted-secret";
    let bad = [
        "sqlite:",
        "sqlite://",
        "sqlite://?mode=rwc",
        "data/conclave.db",
        "mysql://ada:planted-secret@db/x",
        "postgres://ada:planted-secret@db",
        "postgres://ada:planted-secret@/conclave",
        "postgres://ada:planted-secret#@db/conclave",
    ];
    for bad in bad {
        let variables = [("ANTHROPIC_API_KEY", "k"), ("DATABASE_URL", bad)];
        assert_eq!(places_with(&[], &variables[1..]), ["DATABASE_URL"], "{bad}");
        let shown = details(SHIPPED, &variables).join("");
        assert!(!shown.contains(secret), "{shown}");
    }
    let address = "postgres://ada:planted-secret@db/conclave";
    let config = from_text(SHIPPED, &env(&[("ANTHROPIC_API_KEY", "k"), ("DATABASE_URL", address)])).unwrap();
    assert!(!format!("{config:?}").contains(secret));
}

#[test]
fn a_short_token_is_warned_of_and_not_shown() {
    let warned = |token: &str| {
        let config = from_text(SHIPPED, &env(&[("ANTHROPIC_API_KEY", "k"), ("CONCLAVE_TOKEN", token)])).unwrap();
        assert!(!format!("{:?}", config.warnings).contains(token));
        config.warnings.into_iter().map(|warning| warning.place).collect::<Vec<_>>()
    };
    assert_eq!(warned("fifteen charact"), ["CONCLAVE_TOKEN"]);
    assert_eq!(warned("sixteen characte"), [""; 0]);
}

#[test]
fn variables_that_nobody_could_obey_are_problems() {
    for (name, value) in [
        ("LOG_FORMAT", "xml"),
        ("RUST_LOG", "conclave=loud"),
        ("ATTACHMENT_HOSTS", "https://cdn.example/x"),
        ("ATTACHMENT_HOSTS", "cdn.example:443"),
        ("DECISION_STRATEGY", "heuristic_first"),
        ("CONCLAVE_BIND", "localhost"),
    ] {
        assert_eq!(places_with(&[], &[(name, value)]), [name], "{value}");
    }
    let good = [
        ("LOG_FORMAT", "json"),
        ("RUST_LOG", "info,conclave=debug"),
        ("ATTACHMENT_HOSTS", "192.0.2.7, [2001:db8::1] cdn.example"),
        ("DECISION_STRATEGY", "committee_first"),
        ("CONCLAVE_BIND", "localhost:8080"),
    ];
    assert_eq!(places_with(&[], &good), [""; 0]);
    let variables = env(&[("ANTHROPIC_API_KEY", "k"), ("GOALS", "be kind"), ("TOOLS_WORKSPACE", "/srv")]);
    let warnings = from_text(SHIPPED, &variables).unwrap().warnings;
    assert_eq!(warnings.iter().map(|warning| &warning.place).collect::<Vec<_>>(), ["GOALS", "TOOLS_WORKSPACE"]);
}

#[test]
fn attachment_hosts_set_to_nothing_are_none_and_unset_are_the_default() {
    let hosts = |variables: &[(&str, &str)]| {
        let variables = [&[("ANTHROPIC_API_KEY", "k")], variables].concat();
        from_text(SHIPPED, &env(&variables)).unwrap().attachment_hosts.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(hosts(&[]), ["cdn.discordapp.com", "media.discordapp.net"]);
    assert_eq!(hosts(&[("ATTACHMENT_HOSTS", "")]), [""; 0]);
    assert_eq!(hosts(&[("ATTACHMENT_HOSTS", " ")]), [""; 0]);
    assert_eq!(hosts(&[("ATTACHMENT_HOSTS", "b.example, A.example")]), ["a.example", "b.example"]);
}

#[test]
fn a_wildcard_among_the_attachment_hosts_is_refused() {
    for hosts in ["*.example", "cdn.example,*", "a*.example"] {
        let variables = [("ANTHROPIC_API_KEY", "k"), ("ATTACHMENT_HOSTS", hosts)];
        let problems = from_text(SHIPPED, &env(&variables)).unwrap_err().to_string();
        assert!(problems.contains("ATTACHMENT_HOSTS") && problems.contains("must be named in full"), "{problems}");
    }
}

#[test]
fn every_problem_of_the_environment_is_listed_even_without_a_file() {
    let variables = env(&[
        ("CONCLAVE_CONFIG", "no/such.json"),
        ("CONCLAVE_BIND", "x"),
        ("NORMAL_MAX_USD", "y"),
        ("CONCLAVE_PROMPTS_DIR", "no/such/folder"),
        ("DATABASE_URL", "z"),
    ]);
    let expected = ["CONCLAVE_BIND", "CONCLAVE_CONFIG", "CONCLAVE_PROMPTS_DIR", "DATABASE_URL", "NORMAL_MAX_USD"];
    assert_eq!(places(load(&variables)), expected);
}

#[test]
fn pauses_fit_into_a_run_and_a_second_call_into_the_time_of_the_first() {
    let retry = |attempts: u32, base: u64, most: u64| {
        [("/policy/retry", json!({ "attempts": attempts, "baseMs": base, "maxMs": most }))]
    };
    assert_eq!(places_with(&retry(3, 500, 8000), &[]), Vec::<String>::new());
    assert_eq!(places_with(&retry(3, 9000, 8000), &[]), ["/policy/retry/baseMs"]);
    // 40 s + 80 s: exactly the 120 s of ask.
    assert_eq!(places_with(&retry(3, 40_000, 200_000), &[]), ["/policy/retry/maxMs"]);
    assert_eq!(places_with(&retry(3, 39_000, 80_000), &[]), Vec::<String>::new());
    assert_eq!(places_with(&retry(2, 1, u64::MAX), &[]), Vec::<String>::new());
    let hedge = |least: u64| [("/policy/hedge", json!({ "enabled": true, "leastMs": least }))];
    assert_eq!(places_with(&hedge(59_999), &[]), Vec::<String>::new());
    assert_eq!(places_with(&hedge(60_000), &[]), ["/policy/hedge/leastMs"]);
    let breaker =
        |failures: u64, seconds: u64| [("/policy/breaker", json!({ "failures": failures, "openSeconds": seconds }))];
    assert_eq!(places_with(&breaker(1, 1), &[]), Vec::<String>::new());
    assert_eq!(places_with(&breaker(0, 4000), &[]), ["/policy/breaker/failures", "/policy/breaker/openSeconds"]);
}

#[test]
fn a_command_that_there_is_not_is_found_in_every_list_with_all_other_mistakes() {
    let actions = json!({
        "commands": ["roll", "dance"], "proposerCommands": ["memory.forget"],
        "guilds": { "g1": { "commands": ["roll", "sheet"] } },
    });
    let found = places_with(&[("/policy/actions", actions), ("/policy/tauHard", json!(0.9))], &[]);
    assert_eq!(
        found,
        [
            "/policy/actions/commands/1",
            "/policy/actions/guilds/g1/commands/1",
            "/policy/actions/proposerCommands/0",
            "/policy/tauHard"
        ]
    );
}

#[test]
fn a_guild_gets_what_the_house_and_the_guild_allow() {
    let mut file: Value = serde_json::from_str(SHIPPED).unwrap();
    file["policy"]["actions"] = json!({
        "commands": ["roll", "help", "memory.add"], "proposerCommands": ["memory.add", "check"], "narration": true,
        "guilds": { "g1": { "commands": ["roll", "check"], "shadow": true }, "g2": { "enabled": false, "narration": false } },
    });
    let policy = from_text(&file.to_string(), &env(&[("ANTHROPIC_API_KEY", "k")])).unwrap().policy.actions;
    let names = |set: &BTreeSet<CommandName>| set.iter().map(|name| name.as_str()).collect::<Vec<_>>();
    let (house, first, second) = (policy.rules(None), policy.rules(Some("g1")), policy.rules(Some("g2")));
    assert_eq!(names(&house.commands), ["roll", "memory.add", "help"]);
    assert_eq!(names(&house.proposable()), ["memory.add"]);
    assert_eq!((house.enabled, house.narration, house.shadow), (true, true, false));
    assert_eq!(names(&first.commands), ["roll"]);
    assert_eq!((first.proposable().len(), first.shadow, first.narration), (0, true, true));
    assert_eq!((second.enabled, second.narration), (false, false));
    assert_eq!(policy.rules(Some("g3")), house);
}

#[test]
fn the_switches_of_actions_have_older_names_and_the_new_ones_win() {
    let switches = |variables: &[(&str, &str)]| {
        let all: Vec<(&str, &str)> =
            [("ANTHROPIC_API_KEY", "k")].into_iter().chain(variables.iter().copied()).collect();
        let actions = from_text(SHIPPED, &env(&all)).unwrap().policy.actions;
        let proposer = actions.proposer;
        (actions.enabled, proposer.enabled, proposer.allow_autoexec, proposer.min_confidence, proposer.provider)
    };
    assert_eq!(switches(&[]), (true, false, false, 0.90, None));
    assert_eq!(
        switches(&[
            ("FEATURE_PLANNER_ENABLED", "off"),
            ("VICTUS_LLM_ENABLED", "true"),
            ("VICTUS_LLM_PROVIDER", "anthropic"),
            ("VICTUS_LLM_ALLOW_AUTOEXEC", "1"),
            ("VICTUS_LLM_AUTOEXEC_MIN_CONFIDENCE", "0.95"),
        ]),
        (false, true, true, 0.95, Some("anthropic".into()))
    );
    assert!(switches(&[("VICTUS_ENABLE_LLM_FALLBACK", "true")]).1);
    assert!(!switches(&[("VICTUS_ENABLE_LLM_FALLBACK", "true"), ("PROPOSER_ENABLED", "false")]).1);
    assert_eq!(switches(&[("PROPOSER_PROVIDER", "stub"), ("VICTUS_LLM_PROVIDER", "anthropic")]).4, None);
    let wrong = [
        ("FEATURE_PLANNER_ENABLED", "maybe"),
        ("PROPOSER_AUTOEXEC_MIN_CONFIDENCE", "90"),
        ("PROPOSER_ENABLED", "true"),
        ("PROPOSER_PROVIDER", "openai"),
    ];
    assert_eq!(
        places_with(&[], &wrong),
        ["FEATURE_PLANNER_ENABLED", "PROPOSER_AUTOEXEC_MIN_CONFIDENCE", "PROPOSER_PROVIDER"]
    );
}

#[test]
fn who_proposes_is_the_role_or_else_the_master() {
    let with = |role: Value| {
        let mut file: Value = serde_json::from_str(SHIPPED).unwrap();
        if !role.is_null() {
            file["models"]["roles"]["proposer"] = role;
        }
        let on = [("ANTHROPIC_API_KEY", "k"), ("PROPOSER_ENABLED", "true"), ("PROPOSER_PROVIDER", "anthropic")];
        from_text(&file.to_string(), &env(&on)).unwrap().roles[&Role::Proposer].clone()
    };
    assert_eq!(with(Value::Null).model, "claude-sonnet-5-5");
    let small = with(json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 1000 }));
    assert_eq!((small.model.as_str(), small.max_tokens), ("claude-haiku-5-5", 400));
    let off = from_text(SHIPPED, &env(&[("ANTHROPIC_API_KEY", "k")])).unwrap();
    assert!(!off.roles.contains_key(&Role::Proposer));
}

#[test]
fn what_asks_no_model_needs_no_key_and_is_checked_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    std::fs::write(&path, SHIPPED).unwrap();
    let name = path.display().to_string();
    let config = without_models(&env(&[("CONCLAVE_CONFIG", name.as_str())])).unwrap();
    assert!(config.roles.is_empty() && config.providers.is_empty());
    assert_eq!(config.policy.normal_max, Usd::from_dollars(0.10));
    assert_eq!(
        places(without_models(&env(&[("CONCLAVE_CONFIG", name.as_str()), ("CONCLAVE_BIND", "x")]))),
        ["CONCLAVE_BIND"]
    );
    assert_eq!(places(without_models(&env(&[("CONCLAVE_CONFIG", "/nowhere/at.all")]))), ["CONCLAVE_CONFIG"]);
}

#[test]
fn a_word_that_is_not_allowed_is_answered_with_those_that_are() {
    let at = "/models/roles/solver/effort";
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    value["models"]["roles"]["solver"]["effort"] = json!("minimal");
    value["modelData"] = json!({ "claude-haiku-5-5": { "effort": ["lo"], "temperature": "maybe" } });
    let found = from_text(&value.to_string(), &env(&[("ANTHROPIC_API_KEY", "k")])).unwrap_err().0;
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "/modelData/claude-haiku-5-5/effort/0: not one of low, medium, high, none",
            "/modelData/claude-haiku-5-5/temperature: not one of always, never, without_thinking",
            &format!("{at}: not one of low, medium, high, none"),
        ]
    );
}
