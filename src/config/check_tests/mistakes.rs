//! Mistakes in the config file: each is reported at its place, and only there.

use super::*;

#[test]
fn a_mistake_of_any_kind_hides_no_other_and_makes_none() {
    let five = [
        ("/polcy", json!(1)),
        ("/policy/tauHard", json!("high")),
        ("/policy/deadlines/call", json!(200)),
        ("/models/roles/solver/provider", json!("openai")),
        (
            "/models/roles/critic",
            json!({ "provider": "anthropic", "model": "NO_SUCH_VARIABLE" }),
        ),
    ];
    let expected = [
        "/models/roles/critic/model",
        "/models/roles/solver/provider",
        "/polcy",
        "/policy/deadlines/call",
        "/policy/tauHard",
    ];
    assert_eq!(places_with(&five, &[]), expected);
    let several = [
        ("/policy/normalMaxUsd", json!("abc")),
        (
            "/pricing",
            json!({ "claude-haiku-5-5": { "input": 1, "output": -1 } }),
        ),
        ("/models/roles/verifier", json!(1)),
        ("/providers/anthropic/maxConcurrent", json!(0)),
        ("/providers/anthropic/threads", json!(2)),
        ("/models/roles/critic/defaultModel", json!("")),
        (
            "/policy/deadlines",
            json!({ "connect": 70, "call": 65, "ask": 60 }),
        ),
    ];
    let expected = [
        "/models/roles/critic/defaultModel",
        "/models/roles/verifier",
        "/policy/deadlines/call",
        "/policy/deadlines/connect",
        "/policy/normalMaxUsd",
        "/pricing/claude-haiku-5-5/output",
        "/providers/anthropic/maxConcurrent",
        "/providers/anthropic/threads",
    ];
    assert_eq!(places_with(&several, &[]), expected);
}

#[test]
fn a_header_that_the_key_would_replace_is_a_mistake() {
    let place = "/providers/anthropic/headers/X-Api-Key";
    let own = [(
        "/providers/anthropic/headers",
        json!({ "X-Api-Key": "mine" }),
    )];
    assert_eq!(places_with(&own, &[]), [place]);
    let other = [(
        "/providers/anthropic/headers",
        json!({ "Authorization": "Basic mine" }),
    )];
    assert!(loaded(&other, &[]).is_ok());
}

#[test]
fn a_setting_of_several_forms_is_one_problem_in_words() {
    for (wrong, why) in [
        (json!(["x"]), r#""x" is not one of"#),
        (json!("ask"), r#"is not of type "boolean", and"#),
    ] {
        let problems = loaded(&[("/policy/speculate", wrong)], &[]).unwrap_err().0;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].detail.contains(why), "{problems:?}");
    }
    let marked = from_text(&format!("\u{feff}{SHIPPED}"), &env(&[])).unwrap_err();
    assert!(marked.to_string().contains("byte order mark"), "{marked}");
}

#[test]
fn a_model_without_a_price_and_a_missing_role_are_refused() {
    let unknown = [("SOLVER_MODEL", "claude-unknown")];
    let expected = ["/models/roles/solver/model"];
    assert_eq!(places_with(&[], &unknown), expected);
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    let roles = value.pointer_mut("/models/roles").unwrap();
    roles.as_object_mut().unwrap().remove("verifier");
    let key = env(&[("ANTHROPIC_API_KEY", "k")]);
    let found = places(from_text(&value.to_string(), &key));
    assert_eq!(found, ["/models/roles/verifier"]);
}

#[test]
fn a_model_id_in_place_of_a_variable_is_refused() {
    let solver = [
        "/models/roles/solver/model",
        "/models/roles/solver/defaultModel",
    ];
    let changes = solver.map(|place| (place, json!("claude-haiku-5-5")));
    let problems = loaded(&changes, &[]).unwrap_err().to_string();
    for said in [solver[0], "as defaultModel"] {
        assert!(problems.contains(said), "{problems}");
    }
}

#[test]
fn a_setting_that_stands_twice_is_refused() {
    let twice = SHIPPED.replace(
        "\"normalMaxUsd\"",
        "\"normalMaxUsd\": 0.02, \"normalMaxUsd\"",
    );
    let problems = from_text(&twice, &env(&[("ANTHROPIC_API_KEY", "k")])).unwrap_err();
    let said = problems.to_string();
    assert!(
        said.contains("the key \"normalMaxUsd\" stands twice"),
        "{said}"
    );
}

#[test]
fn a_daily_limit_that_a_cap_never_fits_is_refused() {
    let user = "/policy/limits/userDailyUsd";
    let places = |value: f64, variables: &[(&str, &str)]| {
        let others = [
            ("/policy/limits/guildDailyUsd", json!(5.0)),
            ("/policy/limits/dailyUsd", Value::Null),
        ];
        places_with(&[&[(user, json!(value))], &others[..]].concat(), variables)
    };
    assert_eq!(places(0.5, &[]), [""; 0]);
    assert_eq!(places(0.3, &[]), [user]);
    assert_eq!(places(0.3, &[("DEEP_MAX_USD", "0.30")]), [""; 0]);
    assert_eq!(places(-1.0, &[]), [user]);
    let problems = loaded(&[("/policy/limits/dailyUsd", json!(0.05))], &[]);
    let problems = problems.unwrap_err().to_string();
    for said in ["never holds the cap of ask and audit", "of deep"] {
        assert!(problems.contains(said), "{problems}");
    }
}

#[test]
fn what_was_taken_out_is_not_missed_as_well() {
    for place in [
        "/models",
        "/models/roles",
        "/models/roles/verifier",
        "/models/roles/solver/provider",
        "/models/roles/solver/model",
        "/pricing",
        "/modelData",
        "/providers",
        "/providers/anthropic",
        "/policy",
        "/policy/deadlines",
        "/policy/deadlines/call",
    ] {
        assert_eq!(places_with(&[(place, json!(true))], &[]), [place]);
    }
    let sound = [
        ("/policy/tauHard", json!("x")),
        ("/policy/tauSoft", json!(0.2)),
    ];
    assert_eq!(places_with(&sound, &[]), ["/policy/tauHard"]);
    assert_eq!(places(from_text("[]", &env(&[]))), ["/"]);
    let broken = from_text("{", &env(&[("CONCLAVE_BIND", "x")]));
    assert_eq!(places(broken), ["/", "CONCLAVE_BIND"]);
    let text = SHIPPED.replace("\"ANTHROPIC_API_KEY\"", "5");
    let expected = ["/providers/anthropic/apiKeyEnv"];
    assert_eq!(places(from_text(&text, &env(&[]))), expected);
}

/// In each line a place, the value there, and the places of the problems.
const BOUNDS: &str = r#"
/policy/limits {"userBurst":5,"userPerMinute":null} /policy/limits/userBurst
/policy/limits {"userBurst":5,"userPerMinute":10}
/policy/limits/userPerMinute 0 /policy/limits/userPerMinute
/policy/deadlines/deep 86400
/policy/deadlines/deep 86401 /policy/deadlines/deep
/policy/deepMaxUsd 1e6
/policy/normalMaxUsd 1000001.0 /policy/normalMaxUsd
/policy/leaseSeconds 30.0 /policy/leaseSeconds
/policy/retry {"attempts":3,"baseMs":500,"maxMs":8000}
/policy/retry {"attempts":11,"baseMs":500,"maxMs":8000} /policy/retry/attempts
/policy/retry {"attempts":2,"baseMs":1,"maxMs":18446744073709551615}
/policy/hedge {"enabled":false} /policy/hedge
/policy/breaker {"failures":1,"openSeconds":1}
/policy/breaker {"failures":0,"openSeconds":4000} /policy/breaker/failures /policy/breaker/openSeconds
"#;

#[test]
fn each_setting_has_its_bounds() {
    for line in BOUNDS.trim().lines() {
        let mut words = line.split(' ');
        let (place, value) = (words.next().unwrap(), words.next().unwrap());
        let change = (place, serde_json::from_str(value).unwrap());
        let expected: Vec<&str> = words.collect();
        assert_eq!(places_with(&[change], &[]), expected, "{line}");
    }
}

#[test]
fn an_entry_of_a_list_keeps_its_place() {
    let agents = json!([1, "solver", 2, "nobody"]);
    let expected = ["0", "1", "2", "3"].map(|i| format!("/policy/disabledAgents/{i}"));
    let found = places_with(&[("/policy/disabledAgents", agents)], &[]);
    assert_eq!(found, expected);
}

#[test]
fn a_fallback_is_checked_as_deep_as_its_role() {
    let fallback = json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 1, "modle": "x",
                           "fallback": { "provider": "openai", "model": "SOLVER_MODEL" } });
    let at = "/models/roles/solver/fallback";
    let expected = ["fallback/provider", "maxTokens", "modle"].map(|part| format!("{at}/{part}"));
    assert_eq!(places_with(&[(at, fallback)], &[]), expected);
    let other = json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "prompts": "compact" });
    assert_eq!(places_with(&[(at, other)], &[]), [at]);
}

#[test]
fn a_fallback_writes_as_much_as_its_role_unless_it_says_less() {
    let solver = json!({
        "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 3000, "prompts": "full",
        "fallback": { "provider": "anthropic", "model": "MASTER_MODEL",
                      "fallback": { "provider": "anthropic", "model": "MASTER_MODEL", "maxTokens": 500 } } });
    let config = loaded(&[("/models/roles/solver", solver)], &[]).unwrap();
    let solver = config.roles.get(&"solver".parse().unwrap());
    let chain = std::iter::successors(solver, |role| role.fallback.as_deref());
    let tokens: Vec<u32> = chain.map(|role| role.max_tokens).collect();
    assert_eq!(tokens, [3000, 3000, 500]);
}

#[test]
fn a_price_is_whole_and_reading_the_cache_is_not_dearer_than_input() {
    let prices = json!({
        "a~b": { "output": 1 },
        "none": {},
        "read": { "input": 1, "output": 1, "cacheRead": 1.1 },
        "minus": { "input": 1, "output": 1, "cacheRead": -1, "cacheWrite": -1 },
    });
    let expected = [
        "/pricing/a~0b/input",
        "/pricing/minus/cacheRead",
        "/pricing/minus/cacheWrite",
        "/pricing/none/input",
        "/pricing/none/output",
        "/pricing/read/cacheRead",
    ];
    assert_eq!(places_with(&[("/pricing", prices)], &[]), expected);
    let known = json!({
        "claude-sonnet-5-5": { "cacheRead": 40 },
        "my~own": {
            "input": 1, "output": 2,
            "longContext": { "above": 9, "input": 1, "output": 2, "cacheRead": 1.5 },
        },
    });
    let places = places_with(&[("/modelData", known)], &[]);
    let expected = [
        "/modelData/claude-sonnet-5-5/cacheRead",
        "/modelData/my~0own/longContext/cacheRead",
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_problem_says_what_is_allowed() {
    let changes = [
        ("/models/roles/solver/effort", json!("minimal")),
        (
            "/modelData",
            json!({ "claude-haiku-5-5": { "effort": ["lo"], "temperature": "maybe" } }),
        ),
        ("/policy/deadlines/call", json!(250)),
    ];
    let found = loaded(&changes, &[]).unwrap_err().0;
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    let expected = [
        "/modelData/claude-haiku-5-5/effort/0: not one of low, medium, high, none",
        "/modelData/claude-haiku-5-5/temperature: not one of always, never, without_thinking",
        "/models/roles/solver/effort: not one of low, medium, high, none",
        "/policy/deadlines/call: 250 s do not fit into a run: not into the 120 s of ask, nor into the 180 s of audit",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_wrong_proxy_of_the_environment_has_the_name_of_its_variable() {
    let env = [("/providers/anthropic/proxy", json!("env"))];
    let wrong = "proxy.corp:3128";
    assert_eq!(
        places_with(&env, &[("HTTPS_PROXY", wrong)]),
        ["HTTPS_PROXY"]
    );
    assert_eq!(
        places_with(&env, &[("https_proxy", wrong)]),
        ["https_proxy"]
    );
    let own = [("/providers/anthropic/proxy", json!(wrong))];
    assert_eq!(places_with(&own, &[]), ["/providers/anthropic/proxy"]);
}
