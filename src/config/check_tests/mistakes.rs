//! Mistakes in the config file: each is reported at its place, and only there.

use serde_json::json;

use super::*;

#[test]
fn five_mistakes_are_five_problems() {
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    value["polcy"] = 1.into();
    value["policy"]["tauHard"] = "high".into();
    value["policy"]["deadlines"]["call"] = 200.into();
    value["models"]["roles"]["solver"]["provider"] = "openai".into();
    value["models"]["roles"]["critic"] =
        json!({ "provider": "anthropic", "model": "NO_SUCH_VARIABLE" });
    let problems = places(from_text(
        &value.to_string(),
        &env(&[("ANTHROPIC_API_KEY", "k")]),
    ));
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
    let variables = env(&[
        ("ANTHROPIC_API_KEY", "k"),
        ("SOLVER_MODEL", "claude-unknown"),
    ]);
    assert_eq!(
        places(from_text(SHIPPED, &variables)),
        ["/models/roles/solver/model"]
    );
}

#[test]
fn a_daily_limit_that_a_cap_never_fits_is_refused() {
    let (user, guild) = (
        "/policy/limits/userDailyUsd",
        "/policy/limits/guildDailyUsd",
    );
    let limits = |value: f64| {
        [
            (user, json!(value)),
            (guild, json!(5.0)),
            ("/policy/limits/dailyUsd", Value::Null),
        ]
    };
    assert_eq!(places_with(&limits(0.5), &[]), [""; 0]);
    assert_eq!(places_with(&limits(0.3), &[]), [user]);
    assert_eq!(
        places_with(&limits(0.3), &[("DEEP_MAX_USD", "0.30")]),
        [""; 0]
    );
    assert_eq!(places_with(&limits(-1.0), &[]), [user]);
    let problems = from_text(
        &SHIPPED.replace(
            r#""attachments": 10"#,
            r#""attachments": 10, "dailyUsd": 0.05"#,
        ),
        &env(&[("ANTHROPIC_API_KEY", "k")]),
    );
    let problems = problems.unwrap_err().to_string();
    assert!(
        problems.contains("never holds the cap of ask and audit") && problems.contains("of deep"),
        "{problems}"
    );
}

#[test]
fn a_burst_without_a_rate_says_nothing() {
    let (rate, burst) = ("/policy/limits/userPerMinute", "/policy/limits/userBurst");
    assert_eq!(places_with(&[(burst, json!(5))], &[]), [burst]);
    assert_eq!(
        places_with(&[(burst, json!(5)), (rate, json!(10))], &[]),
        [""; 0]
    );
    assert_eq!(places_with(&[(rate, json!(0))], &[]), [rate]);
}

#[test]
fn a_mistake_of_any_kind_hides_no_other_and_makes_none() {
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    value["policy"]["normalMaxUsd"] = json!("abc");
    value["pricing"] = json!({ "claude-haiku-5-5": { "input": 1, "output": -1 } });
    value["models"]["roles"]
        .as_object_mut()
        .unwrap()
        .remove("verifier");
    value["providers"]["anthropic"]["maxConcurrent"] = json!(0);
    value["policy"]["deadlines"] = json!({ "connect": 70, "call": 65, "ask": 60 });
    let found = places(from_text(
        &value.to_string(),
        &env(&[("ANTHROPIC_API_KEY", "k")]),
    ));
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
    let whole = [
        "/models",
        "/models/roles",
        "/models/roles/verifier",
        "/models/roles/solver/provider",
    ];
    let parts = [
        "/models/roles/solver/model",
        "/pricing",
        "/modelData",
        "/providers",
    ];
    let more = [
        "/providers/anthropic",
        "/policy",
        "/policy/deadlines",
        "/policy/deadlines/call",
    ];
    for place in whole.into_iter().chain(parts).chain(more) {
        assert_eq!(places_with(&[(place, json!(true))], &[]), [place]);
    }
    let sound = [
        ("/policy/tauHard", json!("x")),
        ("/policy/tauSoft", json!(0.2)),
    ];
    assert_eq!(places_with(&sound, &[]), ["/policy/tauHard"]);
    assert_eq!(places(from_text("[]", &env(&[]))), ["/"]);
    assert_eq!(
        places(from_text("{", &env(&[("CONCLAVE_BIND", "x")]))),
        ["/", "CONCLAVE_BIND"]
    );
    let text = SHIPPED.replace("\"ANTHROPIC_API_KEY\"", "5");
    assert_eq!(
        places(from_text(&text, &env(&[]))),
        ["/providers/anthropic/apiKeyEnv"]
    );
}

#[test]
fn an_entry_of_a_list_keeps_its_place_and_a_whole_number_may_be_too_wide_for_its_type() {
    let agents = json!([1, "solver", 2, "nobody"]);
    let expected = ["0", "1", "2", "3"].map(|i| format!("/policy/disabledAgents/{i}"));
    assert_eq!(
        places_with(&[("/policy/disabledAgents", agents)], &[]),
        expected
    );
    let numbers = [
        ("/policy/leaseSeconds", json!(30.0)),
        ("/policy/retry/attempts", json!(11)),
    ];
    assert_eq!(
        places_with(&numbers, &[]),
        ["/policy/leaseSeconds", "/policy/retry/attempts"]
    );
}

#[test]
fn a_fallback_is_checked_as_deep_as_its_role() {
    let fallback = json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 1, "modle": "x",
                           "fallback": { "provider": "openai", "model": "SOLVER_MODEL" } });
    let at = "/models/roles/solver/fallback";
    let expected = [
        format!("{at}/fallback/provider"),
        format!("{at}/maxTokens"),
        format!("{at}/modle"),
    ];
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
    let tokens: Vec<u32> = std::iter::successors(solver, |role| role.fallback.as_deref())
        .map(|role| role.max_tokens)
        .collect();
    assert_eq!(tokens, [3000, 3000, 500]);
}

#[test]
fn a_call_that_fits_into_no_mode_is_one_problem_that_names_them_all() {
    let text = SHIPPED.replace("\"call\": 60", "\"call\": 250");
    let expected =
        "250 s do not fit into a run: not into the 120 s of ask, nor into the 180 s of audit";
    assert_eq!(details(&text, &[("ANTHROPIC_API_KEY", "k")]), [expected]);
}

#[test]
fn a_price_is_whole_and_reading_the_cache_is_not_dearer_than_input() {
    let prices = [
        ("/pricing", json!({})),
        ("/pricing/a~b", json!({ "output": 1 })),
        ("/pricing/none", json!({})),
        (
            "/pricing/read",
            json!({ "input": 1, "output": 1, "cacheRead": 1.1 }),
        ),
        (
            "/pricing/minus",
            json!({ "input": 1, "output": 1, "cacheRead": -1, "cacheWrite": -1 }),
        ),
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
    let caps = |usd: f64| {
        [
            ("/policy/normalMaxUsd", json!(usd)),
            ("/policy/deepMaxUsd", json!(usd)),
        ]
    };
    assert_eq!(places_with(&caps(1e6), &[]), [""; 0]);
    assert_eq!(
        places_with(&caps(1e6 + 1.0), &[]),
        ["/policy/deepMaxUsd", "/policy/normalMaxUsd"]
    );
    for good in ["0", "0.25", "1000000"] {
        assert_eq!(
            places_with(&[], &[("NORMAL_MAX_USD", good)]),
            [""; 0],
            "{good}"
        );
    }
    for bad in ["ten cents", "$0.10", "-1", "NaN", "inf", "1000001"] {
        let both = [("NORMAL_MAX_USD", bad), ("DEEP_MAX_USD", bad)];
        assert_eq!(
            places_with(&[], &both),
            ["DEEP_MAX_USD", "NORMAL_MAX_USD"],
            "{bad}"
        );
    }
}

#[test]
fn pauses_fit_into_a_run() {
    let retry = |attempts: u32, base: u64, most: u64| {
        [(
            "/policy/retry",
            json!({ "attempts": attempts, "baseMs": base, "maxMs": most }),
        )]
    };
    assert_eq!(places_with(&retry(3, 500, 8000), &[]), Vec::<String>::new());
    assert_eq!(
        places_with(&retry(3, 9000, 8000), &[]),
        ["/policy/retry/baseMs"]
    );
    // 40 s + 80 s: exactly the 120 s of ask.
    assert_eq!(
        places_with(&retry(3, 40_000, 200_000), &[]),
        ["/policy/retry/maxMs"]
    );
    assert_eq!(
        places_with(&retry(3, 39_000, 80_000), &[]),
        Vec::<String>::new()
    );
    assert_eq!(
        places_with(&retry(2, 1, u64::MAX), &[]),
        Vec::<String>::new()
    );
    let removed = [("/policy/hedge", json!({ "enabled": false }))];
    assert_eq!(places_with(&removed, &[]), ["/policy/hedge"]);
    let breaker = |failures: u64, seconds: u64| {
        [(
            "/policy/breaker",
            json!({ "failures": failures, "openSeconds": seconds }),
        )]
    };
    assert_eq!(places_with(&breaker(1, 1), &[]), Vec::<String>::new());
    assert_eq!(
        places_with(&breaker(0, 4000), &[]),
        ["/policy/breaker/failures", "/policy/breaker/openSeconds"]
    );
}

#[test]
fn a_word_that_is_not_allowed_is_answered_with_those_that_are() {
    let at = "/models/roles/solver/effort";
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    value["models"]["roles"]["solver"]["effort"] = json!("minimal");
    value["modelData"] =
        json!({ "claude-haiku-5-5": { "effort": ["lo"], "temperature": "maybe" } });
    let found = from_text(&value.to_string(), &env(&[("ANTHROPIC_API_KEY", "k")]))
        .unwrap_err()
        .0;
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
