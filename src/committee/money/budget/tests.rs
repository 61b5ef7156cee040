use super::*;
use crate::config::{OutputForm, PromptSet};
use crate::domain::{Effort, Price, Rate, Traits};

fn flat(input: f64, output: f64, cache_read: Option<f64>) -> Option<Price> {
    Some(Price {
        rate: Rate::new(input, output, cache_read, None),
        long: None,
    })
}

fn model(max_tokens: u32, price: Option<Price>) -> RoleModel {
    RoleModel {
        provider: "p".into(),
        kind: if price.is_some() {
            ProviderKind::Openai
        } else {
            ProviderKind::Local
        },
        model: "m".into(),
        max_tokens,
        effort: None,
        temperature: None,
        traits: Traits::unknown(),
        output: OutputForm::Json,
        prompts: PromptSet::Full,
        price,
        retires: None,
        fallback: None,
    }
}

fn fitted(cap: f64, roles: &[Agent]) -> Option<Fitted> {
    let model = model(1000, flat(0.0, 10.0, None));
    let input = InputBound {
        stable: 100,
        volatile: 0,
    };
    let agents: Vec<Wanted<'_>> = roles
        .iter()
        .map(|a| Wanted {
            role: Role::Agent(*a),
            model: &model,
            limit: model.max_tokens,
            input,
        })
        .collect();
    let synthesis = Wanted {
        role: Role::Master,
        model: &model,
        limit: model.max_tokens,
        input,
    };
    fit(
        &agents,
        &synthesis,
        &WantedCheck::none(),
        Usd::from_dollars(cap),
    )
}

fn wanted_of(role: Role, model: &RoleModel, input: InputBound) -> Wanted<'_> {
    Wanted {
        role,
        model,
        limit: model.max_tokens,
        input,
    }
}

#[test]
fn what_fits_is_left_alone() {
    use Agent::{Critic, Solver, Verifier};
    let fitted = fitted(0.04, &[Solver, Critic, Verifier]).unwrap();
    assert!(fitted.trimmed.left_out.is_empty());
    assert_eq!(fitted.held, Usd::from_dollars(0.01));
}

#[test]
fn the_answer_shrinks_first_then_optional_agents_go_then_the_critic() {
    use Agent::{Critic, Editor, Implementer, Solver, Verifier};
    let all = [Solver, Critic, Verifier, Editor, Implementer];
    assert_eq!(fitted(0.06, &all).unwrap().trimmed.agents, all);
    assert_eq!(
        fitted(0.046, &all).unwrap().trimmed.agents,
        [Solver, Critic, Verifier, Editor]
    );
    assert_eq!(
        fitted(0.036, &all).unwrap().trimmed.agents,
        [Solver, Critic, Verifier]
    );
    assert_eq!(
        fitted(0.026, &all).unwrap().trimmed.agents,
        [Solver, Verifier]
    );
    assert_eq!(fitted(0.01, &all).unwrap().trimmed.agents, [Solver]);
    assert_eq!(fitted(0.009, &all), None);
}

#[test]
fn the_cross_check_goes_after_the_optional_agents_and_before_the_critic() {
    use Agent::{Critic, Editor, Solver, Verifier};
    let model = model(1000, flat(0.0, 10.0, None));
    let input = InputBound {
        stable: 100,
        volatile: 0,
    };
    let wanted = |role| wanted_of(role, &model, input);
    let agents = [Solver, Critic, Verifier, Editor].map(|agent| wanted(Role::Agent(agent)));
    let [whole, first] =
        [CheckScope::Key, CheckScope::First].map(|scope| CheckSize { passes: 1, scope });
    let cost = |_: &[(Role, u32)], size: CheckSize| {
        Usd::from_dollars(if size == whole { 0.006 } else { 0.003 })
    };
    let check = WantedCheck {
        sizes: vec![whole, first],
        cost: &cost,
    };
    let fitted = |cap: f64| {
        let Trimmed {
            agents,
            cross_check,
            left_out,
            ..
        } = fit(
            &agents,
            &wanted(Role::Master),
            &check,
            Usd::from_dollars(cap),
        )
        .unwrap()
        .trimmed;
        (agents.len(), cross_check, left_out.len())
    };
    assert_eq!(fitted(0.056), (4, Some(whole), 0));
    assert_eq!(
        fitted(0.052),
        (4, Some(whole), 0),
        "the answer shrinks first"
    );
    assert_eq!(
        fitted(0.045),
        (3, Some(whole), 1),
        "the optional agent goes before it"
    );
    assert_eq!(fitted(0.039), (3, Some(first), 2));
    assert_eq!(fitted(0.036), (3, None, 1));
    assert_eq!(fitted(0.026), (2, None, 2));
}

#[test]
fn what_the_critic_leaves_carries_the_cross_check_of_the_others() {
    use Agent::{Critic, Solver, Verifier};
    let (cheap, dear) = (
        model(600, flat(0.0, 10.0, None)),
        model(1000, flat(0.0, 10.0, None)),
    );
    let input = InputBound {
        stable: 100,
        volatile: 0,
    };
    let wanted = |role, model| wanted_of(role, model, input);
    let agents = [(Solver, &cheap), (Critic, &dear), (Verifier, &cheap)]
        .map(|(agent, model)| wanted(Role::Agent(agent), model));
    let first = CheckSize {
        passes: 1,
        scope: CheckScope::First,
    };
    let cost = |_: &[(Role, u32)], _| Usd::from_dollars(0.003);
    let check = WantedCheck {
        sizes: vec![first],
        cost: &cost,
    };
    let fitted = |cap: f64| {
        let fitted = fit(
            &agents,
            &wanted(Role::Master, &dear),
            &check,
            Usd::from_dollars(cap),
        )
        .unwrap();
        (
            fitted.trimmed.agents,
            fitted.trimmed.cross_check,
            fitted.held + fitted.check,
        )
    };
    let (three, two) = (vec![Solver, Critic, Verifier], vec![Solver, Verifier]);
    assert_eq!(
        fitted(0.0304),
        (three.clone(), Some(first), Usd::from_dollars(0.008))
    );
    assert_eq!(fitted(0.0275), (three, None, Usd::from_dollars(0.005)));
    assert_eq!(
        fitted(0.0204),
        (two.clone(), Some(first), Usd::from_dollars(0.008))
    );
    assert_eq!(fitted(0.0175), (two, None, Usd::from_dollars(0.005)));
}

#[test]
fn the_answer_shrinks_so_that_the_hold_carries_a_repetition_after_a_crash() {
    use Agent::{Critic, Solver, Verifier};
    let cheap = model(100, flat(0.0, 10.0, None));
    let dear = model(1000, flat(0.0, 10.0, None));
    let input = InputBound {
        stable: 100,
        volatile: 0,
    };
    let wanted = |role, model| wanted_of(role, model, input);
    let agents = [Solver, Critic, Verifier].map(|agent| wanted(Role::Agent(agent), &dear));
    let fitted = fit(
        &agents,
        &wanted(Role::Master, &cheap),
        &WantedCheck::none(),
        Usd::from_dollars(0.036),
    )
    .unwrap();
    assert_eq!(fitted.trimmed.agents, [Solver, Critic, Verifier]);
    assert!(
        panel_cost(&agents, &fitted.trimmed.max_tokens) + fitted.held <= Usd::from_dollars(0.036)
    );
    assert!(
        fitted.held >= least(&agents[0], &wanted(Role::Master, &cheap)),
        "{fitted:?}"
    );
}

#[test]
fn the_in_process_model_costs_nothing() {
    let input = InputBound {
        stable: 1_000_000,
        volatile: 0,
    };
    assert_eq!(worst_case(&model(100, None), input, 100), None);
}

#[test]
fn a_text_counts_its_bytes_or_those_of_its_normal_form() {
    assert_eq!((text_bound("the cat"), text_bound("qxzvkjwq")), (7, 8));
    assert_eq!(
        (text_bound("\u{e9}"), text_bound("日"), text_bound("🦀")),
        (2, 3, 4)
    );
    assert_eq!(text_bound("\u{fdfa}"), 33);
}

#[test]
fn model_text_counts_by_its_own_tokens() {
    let text = "word ".repeat(800);
    let bound = text_bound(&text);
    let known = InputBound::new(0, bound + 100, &[ModelText::of(&text, 1000)], 0);
    assert_eq!(
        known,
        InputBound {
            stable: OVERHEAD_TOKENS,
            volatile: 100 + 1300
        }
    );
    assert_eq!(
        InputBound::new(1900, 0, &[], 1).total(),
        1000 + IMAGE_TOKENS + OVERHEAD_TOKENS
    );
}

#[test]
fn cache_writes_are_in_the_worst_case() {
    let claude = RoleModel {
        kind: ProviderKind::Anthropic,
        ..model(0, flat(1.0, 0.0, Some(0.1)))
    };
    let input = InputBound {
        stable: 1000,
        volatile: 1000,
    };
    assert_eq!(
        worst_case(&claude, input, 0).unwrap().amount,
        Usd::for_tokens(1000, 2.25)
    );
    let gpt = model(0, flat(1.0, 0.0, Some(0.1)));
    assert_eq!(
        worst_case(&gpt, input, 0).unwrap().amount,
        Usd::for_tokens(1000, 2.5)
    );
    let usage = BilledTokens {
        input: 10,
        cache_read: 100,
        cache_write: 20,
        ..BilledTokens::default()
    };
    assert_eq!(
        cost(&claude, &usage),
        Usd::from_nanos(10_000 + 10_000 + 25_000)
    );
}

#[test]
fn a_thinking_model_is_not_shrunk_to_less_than_its_thinking_needs() {
    let thinking = RoleModel {
        effort: Some(Effort::Low),
        ..model(2000, None)
    };
    assert_eq!(thinking.least_tokens(), 382);
    assert_eq!(thinking.limit_for(700), 1044);
    assert_eq!(model(2000, None).limit_for(700), 700);
}
