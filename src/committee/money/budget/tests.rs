use Agent::{Critic, Editor, Implementer, Solver, Verifier};

use super::*;
use crate::config::{OutputForm, PromptSet};
use crate::domain::{Price, Rate, Traits};

const INPUT: InputBound = InputBound {
    stable: 100,
    volatile: 0,
};

fn model(max_tokens: u32, rate: Option<Rate>) -> RoleModel {
    RoleModel {
        provider: "p".into(),
        kind: ProviderKind::Openai,
        model: "m".into(),
        max_tokens,
        effort: None,
        temperature: None,
        traits: Traits::unknown(),
        output: OutputForm::Json,
        prompts: PromptSet::Full,
        price: rate.map(|rate| Price { rate, long: None }),
        retires: None,
        fallback: None,
    }
}

/// Returns a model of which a token of output costs 0.00001 USD, and input nothing.
fn priced(max_tokens: u32) -> RoleModel {
    model(max_tokens, Some(Rate::new(0.0, 10.0, None, None)))
}

fn wanted(role: Role, model: &RoleModel) -> Wanted<'_> {
    Wanted {
        role,
        model,
        limit: model.max_tokens,
        input: INPUT,
    }
}

/// Fits agents of 1000 tokens each and a synthesis under a cap in USD, with a cross-check of each
/// size at its price.
fn fitted(cap: f64, agents: &[Agent], checks: &[(CheckScope, f64)]) -> Option<Fitted> {
    let model = priced(1000);
    let agents = agents
        .iter()
        .map(|agent| wanted(Role::Agent(*agent), &model));
    let agents: Vec<Wanted<'_>> = agents.collect();
    fit_of(cap, &agents, &wanted(Role::Master, &model), checks)
}

fn fit_of(
    cap: f64,
    agents: &[Wanted<'_>],
    synthesis: &Wanted<'_>,
    checks: &[(CheckScope, f64)],
) -> Option<Fitted> {
    let cost = |_: &[(Role, u32)], size: CheckSize| {
        let own = checks.iter().find(|(scope, _)| *scope == size.scope);
        Usd::from_dollars(own.unwrap().1)
    };
    let size = |(scope, _): &(CheckScope, f64)| CheckSize {
        passes: 1,
        scope: *scope,
    };
    let sizes: Vec<CheckSize> = checks.iter().map(size).collect();
    fit(agents, synthesis, (&sizes, &cost), Usd::from_dollars(cap))
}

#[test]
fn the_answer_shrinks_first_then_optional_agents_go_then_the_critic() {
    let all = [Solver, Critic, Verifier, Editor, Implementer];
    for (cap, kept, held) in [
        (0.06, 5, 0.01),
        (0.046, 4, 0.006),
        (0.036, 3, 0.006),
        (0.01, 1, 0.005),
    ] {
        let fitted = fitted(cap, &all, &[]).unwrap();
        assert_eq!(fitted.trimmed.agents, all[..kept], "{cap}");
        assert_eq!(fitted.held, Usd::from_dollars(held), "{cap}");
        assert_eq!(fitted.trimmed.left_out.len(), all.len() - kept, "{cap}");
    }
    assert_eq!(
        fitted(0.026, &all, &[]).unwrap().trimmed.agents,
        [Solver, Verifier]
    );
    assert_eq!(fitted(0.009, &all, &[]), None);
}

#[test]
fn the_cross_check_goes_after_the_optional_agents_and_before_the_critic() {
    let (key, first) = (CheckScope::Key, CheckScope::First);
    for (cap, expected) in [
        (0.056, (4, Some(key), 0)),
        // The answer shrinks first.
        (0.052, (4, Some(key), 0)),
        // The optional agent goes before the cross-check.
        (0.045, (3, Some(key), 1)),
        (0.039, (3, Some(first), 2)),
        (0.036, (3, None, 1)),
        (0.026, (2, None, 2)),
    ] {
        let all = [Solver, Critic, Verifier, Editor];
        let fitted = fitted(cap, &all, &[(key, 0.006), (first, 0.003)]).unwrap();
        let Trimmed {
            agents,
            cross_check,
            left_out,
            ..
        } = fitted.trimmed;
        let scope = cross_check.map(|size| size.scope);
        assert_eq!((agents.len(), scope, left_out.len()), expected, "{cap}");
    }
}

#[test]
fn what_the_critic_leaves_carries_the_cross_check_of_the_others() {
    let (cheap, dear) = (priced(600), priced(1000));
    let agents = [(Solver, &cheap), (Critic, &dear), (Verifier, &cheap)];
    let agents = agents.map(|(agent, model)| wanted(Role::Agent(agent), model));
    let synthesis = wanted(Role::Master, &dear);
    for (cap, kept, is_checked, held) in [
        (0.0304, 3, true, 0.008),
        (0.0275, 3, false, 0.005),
        (0.0204, 2, true, 0.008),
        (0.0175, 2, false, 0.005),
    ] {
        let fitted = fit_of(cap, &agents, &synthesis, &[(CheckScope::First, 0.003)]).unwrap();
        let Trimmed {
            agents,
            cross_check,
            ..
        } = fitted.trimmed;
        assert_eq!(
            (agents.len(), cross_check.is_some()),
            (kept, is_checked),
            "{cap}"
        );
        assert_eq!(fitted.held + fitted.check, Usd::from_dollars(held), "{cap}");
    }
}

#[test]
fn the_answer_shrinks_so_that_the_hold_carries_a_repetition_after_a_crash() {
    let (cheap, dear) = (priced(100), priced(1000));
    let agents = [Solver, Critic, Verifier].map(|agent| wanted(Role::Agent(agent), &dear));
    let synthesis = wanted(Role::Master, &cheap);
    let fitted = fit_of(0.036, &agents, &synthesis, &[]).unwrap();
    assert_eq!(fitted.trimmed.agents, [Solver, Critic, Verifier]);
    let spent = panel_cost(&agents, &fitted.trimmed.max_tokens) + fitted.held;
    assert!(spent <= Usd::from_dollars(0.036));
    assert!(fitted.held >= least(&agents[0], &synthesis), "{fitted:?}");
}

#[test]
fn a_text_counts_its_bytes_or_those_of_its_normal_form_and_model_text_its_own_tokens() {
    for (text, bound) in [
        ("the cat", 7),
        ("qxzvkjwq", 8),
        ("\u{e9}", 2),
        ("日", 3),
        ("🦀", 4),
    ] {
        assert_eq!(text_bound(text), bound, "{text}");
    }
    assert_eq!(text_bound("\u{fdfa}"), 33);
    let text = "word ".repeat(800);
    let bound = InputBound::new(0, text_bound(&text) + 100, &[ModelText::of(&text, 1000)], 0);
    assert_eq!(
        (bound.stable, bound.volatile),
        (OVERHEAD_TOKENS, 100 + 1300)
    );
    // A byte beyond ASCII may be a token of its own, so it counts 1.9 times.
    assert_eq!((trusted_bytes("abc"), trusted_bytes("\u{531}bc")), (3, 6));
    let image = InputBound::new(1900, 0, &[], 1);
    assert_eq!(image.total(), 1000 + IMAGE_TOKENS + OVERHEAD_TOKENS);
}

#[test]
fn cache_writes_are_in_the_worst_case_and_the_in_process_model_costs_nothing() {
    let gpt = model(0, Some(Rate::new(1.0, 0.0, Some(0.1), None)));
    let claude = RoleModel {
        kind: ProviderKind::Anthropic,
        ..gpt.clone()
    };
    let input = InputBound {
        stable: 1000,
        volatile: 1000,
    };
    assert_eq!(worst_cost(&claude, input, 0), Usd::for_tokens(1000, 2.25));
    assert_eq!(worst_cost(&gpt, input, 0), Usd::for_tokens(1000, 2.5));
    let usage = BilledTokens {
        input: 10,
        cache_read: 100,
        cache_write: 20,
        ..BilledTokens::default()
    };
    let computed = Usd::from_nanos(10_000 + 10_000 + 25_000);
    for (stated, expected) in [
        (0, computed),
        (44_999, computed),
        (45_001, Usd::from_nanos(45_001)),
        (u64::MAX, MAX_SETTLED_COST),
    ] {
        assert_eq!(cost(&claude, &usage, Usd::from_nanos(stated)), expected);
    }
    assert_eq!(worst_case(&model(100, None), input, 100), None);
}
