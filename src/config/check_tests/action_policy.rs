//! The settings of actions: commands, guilds, switches, and the proposer.

use serde_json::json;

use super::*;
use crate::domain::CommandName;

#[test]
fn a_daily_limit_that_a_proposal_never_fits_is_refused_if_a_model_is_asked() {
    let (guild, actions) = ("/policy/limits/guildDailyUsd", "/policy/actions");
    let set = |cap: f64| [(guild, json!(0.5)), (actions, json!({ "maxUsd": cap }))];
    let asked = [
        ("PROPOSER_ENABLED", "true"),
        ("PROPOSER_PROVIDER", "anthropic"),
    ];
    assert_eq!(places_with(&set(0.5), &asked), [""; 0]);
    assert_eq!(places_with(&set(0.6), &asked), [guild]);
    assert_eq!(
        places_with(&set(0.6), &[("PROPOSER_ENABLED", "true")]),
        [""; 0],
        "the stub costs nothing"
    );
    assert_eq!(
        places_with(&set(0.6), &[("PROPOSER_PROVIDER", "anthropic")]),
        [""; 0]
    );
    assert_eq!(
        places_with(
            &set(0.6),
            &[asked[0], asked[1], ("FEATURE_PLANNER_ENABLED", "false")]
        ),
        [""; 0]
    );
}

#[test]
fn a_command_that_there_is_not_is_found_in_every_list_with_all_other_mistakes() {
    let actions = json!({
        "commands": ["roll", "dance"], "proposerCommands": ["memory.forget"],
        "guilds": { "g1": { "commands": ["roll", "sheet"] } },
    });
    let found = places_with(
        &[
            ("/policy/actions", actions),
            ("/policy/tauHard", json!(0.9)),
        ],
        &[],
    );
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
    let policy = from_text(&file.to_string(), &env(&[("ANTHROPIC_API_KEY", "k")]))
        .unwrap()
        .policy
        .actions;
    let names =
        |set: &BTreeSet<CommandName>| set.iter().map(CommandName::into_str).collect::<Vec<_>>();
    let (house, first, second) = (
        policy.rules(None),
        policy.rules(Some("g1")),
        policy.rules(Some("g2")),
    );
    assert_eq!(names(&house.commands), ["roll", "memory.add", "help"]);
    assert_eq!(names(&house.proposable()), ["memory.add"]);
    assert_eq!(
        (house.enabled, house.narration, house.shadow),
        (true, true, false)
    );
    assert_eq!(names(&first.commands), ["roll"]);
    assert_eq!(
        (first.proposable().len(), first.shadow, first.narration),
        (0, true, true)
    );
    assert_eq!((second.enabled, second.narration), (false, false));
    assert_eq!(policy.rules(Some("g3")), house);
}

#[test]
fn the_switches_of_actions_have_older_names_and_the_new_ones_win() {
    let switches = |variables: &[(&str, &str)]| {
        let all: Vec<(&str, &str)> = [("ANTHROPIC_API_KEY", "k")]
            .into_iter()
            .chain(variables.iter().copied())
            .collect();
        let actions = from_text(SHIPPED, &env(&all)).unwrap().policy.actions;
        let proposer = actions.proposer;
        (
            actions.enabled,
            proposer.enabled,
            proposer.allow_autoexec,
            proposer.min_confidence,
            proposer.provider,
        )
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
    assert!(
        !switches(&[
            ("VICTUS_ENABLE_LLM_FALLBACK", "true"),
            ("PROPOSER_ENABLED", "false")
        ])
        .1
    );
    assert_eq!(
        switches(&[
            ("PROPOSER_PROVIDER", "stub"),
            ("VICTUS_LLM_PROVIDER", "anthropic")
        ])
        .4,
        None
    );
    let wrong = [
        ("FEATURE_PLANNER_ENABLED", "maybe"),
        ("PROPOSER_AUTOEXEC_MIN_CONFIDENCE", "90"),
        ("PROPOSER_ENABLED", "true"),
        ("PROPOSER_PROVIDER", "openai"),
    ];
    assert_eq!(
        places_with(&[], &wrong),
        [
            "FEATURE_PLANNER_ENABLED",
            "PROPOSER_AUTOEXEC_MIN_CONFIDENCE",
            "PROPOSER_PROVIDER"
        ]
    );
}

#[test]
fn who_proposes_is_the_role_or_else_the_master() {
    let with = |role: Value| {
        let mut file: Value = serde_json::from_str(SHIPPED).unwrap();
        if !role.is_null() {
            file["models"]["roles"]["proposer"] = role;
        }
        let on = [
            ("ANTHROPIC_API_KEY", "k"),
            ("PROPOSER_ENABLED", "true"),
            ("PROPOSER_PROVIDER", "anthropic"),
        ];
        from_text(&file.to_string(), &env(&on)).unwrap().roles[&Role::Proposer].clone()
    };
    assert_eq!(with(Value::Null).model, "claude-sonnet-5-5");
    let small =
        with(json!({ "provider": "anthropic", "model": "SOLVER_MODEL", "maxTokens": 1000 }));
    assert_eq!(
        (small.model.as_str(), small.max_tokens),
        ("claude-haiku-5-5", 400)
    );
    let off = from_text(SHIPPED, &env(&[("ANTHROPIC_API_KEY", "k")])).unwrap();
    assert!(!off.roles.contains_key(&Role::Proposer));
}
