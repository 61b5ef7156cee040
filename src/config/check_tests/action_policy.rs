//! The settings of actions: commands, guilds, switches, and the proposer.

use super::*;
use crate::domain::CommandName;

#[test]
fn a_daily_limit_that_a_proposal_never_fits_is_refused_if_a_model_is_asked() {
    let guild = "/policy/limits/guildDailyUsd";
    let [on, by, off] = [
        ("PROPOSER_ENABLED", "true"),
        ("PROPOSER_PROVIDER", "anthropic"),
        ("FEATURE_PLANNER_ENABLED", "false"),
    ];
    let places = |cap: f64, variables: &[(&str, &str)]| {
        let actions = ("/policy/actions", json!({ "maxUsd": cap }));
        places_with(&[(guild, json!(0.5)), actions], variables)
    };
    assert_eq!(places(0.5, &[on, by]), [""; 0]);
    assert_eq!(places(0.6, &[on, by]), [guild]);
    // The stub costs nothing.
    for variables in [&[on][..], &[by], &[on, by, off]] {
        assert_eq!(places(0.6, variables), [""; 0], "{variables:?}");
    }
}

#[test]
fn a_command_that_there_is_not_is_found_in_every_list_with_all_other_mistakes() {
    let actions = json!({
        "commands": ["roll", "dance"], "proposerCommands": ["memory.forget"],
        "guilds": { "g1": { "commands": ["roll", "sheet"] } },
    });
    let changes = [
        ("/policy/actions", actions),
        ("/policy/tauHard", json!(0.9)),
    ];
    let expected = [
        "/policy/actions/commands/1",
        "/policy/actions/guilds/g1/commands/1",
        "/policy/actions/proposerCommands/0",
        "/policy/tauHard",
    ];
    assert_eq!(places_with(&changes, &[]), expected);
}

#[test]
fn a_guild_gets_what_the_service_and_the_guild_allow() {
    let actions = json!({
        "commands": ["roll", "help", "memory.add"], "proposerCommands": ["memory.add", "check"], "narration": true,
        "guilds": { "g1": { "commands": ["roll", "check"], "shadow": true }, "g2": { "enabled": false, "narration": false } },
    });
    let policy = loaded(&[("/policy/actions", actions)], &[]).unwrap();
    let rules = |guild| policy.policy.actions.rules(guild);
    let names =
        |set: &BTreeSet<CommandName>| set.iter().map(CommandName::into_str).collect::<Vec<_>>();
    let [all, first, second] = [None, Some("g1"), Some("g2")].map(rules);
    assert_eq!(names(&all.commands), ["roll", "memory.add", "help"]);
    assert_eq!(names(&all.proposable()), ["memory.add"]);
    assert_eq!(
        (all.enabled, all.narration, all.shadow),
        (true, true, false)
    );
    assert_eq!(names(&first.commands), ["roll"]);
    assert_eq!(names(&first.proposable()), [""; 0]);
    assert_eq!((first.shadow, first.narration), (true, true));
    assert_eq!((second.enabled, second.narration), (false, false));
    assert_eq!(rules(Some("g3")), all);
}

#[test]
fn the_switches_of_actions_have_older_names_and_the_new_ones_win() {
    let switches = |variables: &[(&str, &str)]| {
        let actions = loaded(&[], variables).unwrap().policy.actions;
        let proposer = actions.proposer;
        let (may, least) = (proposer.allow_autoexec, proposer.min_confidence);
        (
            actions.rules.enabled,
            proposer.enabled,
            may,
            least,
            proposer.provider,
        )
    };
    assert_eq!(switches(&[]), (true, false, false, 0.90, None));
    let older = [
        ("FEATURE_PLANNER_ENABLED", "off"),
        ("VICTUS_LLM_ENABLED", "true"),
        ("VICTUS_LLM_PROVIDER", "anthropic"),
        ("VICTUS_LLM_ALLOW_AUTOEXEC", "1"),
        ("VICTUS_LLM_AUTOEXEC_MIN_CONFIDENCE", "0.95"),
    ];
    let expected = (false, true, true, 0.95, Some("anthropic".into()));
    assert_eq!(switches(&older), expected);
    let oldest = ("VICTUS_ENABLE_LLM_FALLBACK", "true");
    assert!(switches(&[oldest]).1);
    assert!(!switches(&[oldest, ("PROPOSER_ENABLED", "false")]).1);
    let stub = ("PROPOSER_PROVIDER", "stub");
    assert_eq!(switches(&[stub, older[2]]).4, None);
    let wrong = [
        ("FEATURE_PLANNER_ENABLED", "maybe"),
        ("PROPOSER_AUTOEXEC_MIN_CONFIDENCE", "90"),
        ("PROPOSER_ENABLED", "true"),
        ("PROPOSER_PROVIDER", "openai"),
    ];
    let expected = [wrong[0].0, wrong[1].0, wrong[3].0];
    assert_eq!(places_with(&[], &wrong), expected);
}

#[test]
fn the_proposer_is_its_role_or_else_the_master() {
    let on = [
        ("PROPOSER_ENABLED", "true"),
        ("PROPOSER_PROVIDER", "anthropic"),
    ];
    let proposer = |changes: &[(&str, Value)]| {
        let config = loaded(changes, &on).unwrap();
        config.roles[&Role::Proposer].clone()
    };
    assert_eq!(proposer(&[]).model, "claude-sonnet-5-5");
    let role = json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 1000 });
    let small = proposer(&[("/models/roles/proposer", role)]);
    assert_eq!(
        (small.model.as_str(), small.max_tokens),
        ("claude-haiku-5-5", 400)
    );
    let off = loaded(&[], &[]).unwrap();
    assert!(!off.roles.contains_key(&Role::Proposer));
}
