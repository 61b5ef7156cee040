//! What the shipped configs need, and the published schema.

use super::*;

#[test]
fn the_shipped_config_needs_only_a_key() {
    assert_eq!(places(from_text(SHIPPED, &env(&[]))), ["ANTHROPIC_API_KEY"]);
    let config = loaded(&[], &[]).unwrap();
    assert_eq!(config.policy.normal_max, Usd::from_dollars(0.10));
    assert_eq!(config.roles.len(), 7);
}

#[test]
#[cfg(feature = "local")]
fn the_local_config_needs_nothing() {
    let config = from_text(LOCAL, &env(&[])).unwrap();
    let is_free_text = |r: &RoleModel| r.price.is_none() && r.output == OutputForm::Text;
    assert!(config.roles.values().all(is_free_text));
}

#[test]
#[cfg(not(feature = "local"))]
fn a_build_without_the_in_process_model_says_how_to_get_it() {
    let problems = from_text(LOCAL, &env(&[])).unwrap_err().to_string();
    let ways = ["--features local", "make demo"];
    assert!(ways.iter().all(|way| problems.contains(way)), "{problems}");
}

#[test]
fn what_asks_no_model_needs_no_key_and_is_checked_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    std::fs::write(&path, SHIPPED).unwrap();
    let file = ("CONCLAVE_CONFIG", path.to_str().unwrap());
    let config = without_models(&env(&[file])).unwrap();
    assert!(config.roles.is_empty() && config.providers.is_empty());
    assert_eq!(config.policy.normal_max, Usd::from_dollars(0.10));
    let wrong = [file, ("CONCLAVE_BIND", "x")];
    assert_eq!(places(without_models(&env(&wrong))), ["CONCLAVE_BIND"]);
    let missing = [("CONCLAVE_CONFIG", "/nowhere/at.all")];
    assert_eq!(places(without_models(&env(&missing))), ["CONCLAVE_CONFIG"]);
}

#[test]
fn an_own_price_keeps_the_step_of_a_long_request() {
    let own = json!({ "claude-haiku-5-5": { "input": 0.6, "output": 0.5 } });
    let model = [("CRITIC_MODEL", "claude-haiku-5-5")];
    let config = loaded(&[("/pricing", own)], &model).unwrap();
    let price = config.roles[&Role::Agent(Agent::Critic)].price.unwrap();
    let long = price.long.unwrap().rate;
    assert_eq!((price.rate.input, price.rate.output), (0.6, 0.5));
    assert_eq!((long.input, long.output), (0.6, 2.5));
    assert_eq!((long.cache_read, long.cache_write), (0.6, 0.75));
}
