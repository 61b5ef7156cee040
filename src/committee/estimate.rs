//! The execution time estimate: a plan never ships without one. The model gives O, M and P; the service computes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Failure;
use super::assumptions::one_line;
use super::call::buy_json;
use super::desk::Desk;
use super::prompts::set;
use super::steps::{label, plan_steps};
use crate::config::OutputForm;
use crate::domain::{Estimate, EstimateStep, Pert, Role, TimeUnit};

/// The most steps that are estimated one by one.
pub(super) const MOST_STEPS: usize = 100;

/// Figures when no model gives any: minutes for one step of an unknown task.
const BY_RULE: (f64, f64, f64) = (5.0, 15.0, 45.0);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStepOut {
    pub step: String,
    /// Optimistic.
    pub o: f64,
    /// Most likely.
    pub m: f64,
    /// Pessimistic.
    pub p: f64,
}

/// Three-point figures as the master writes them when it is asked for these alone.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EstimateOut {
    pub plan_unit: TimeUnit,
    /// One entry per step, in order.
    pub plan_steps: Vec<PlanStepOut>,
    pub plan_assumptions: Vec<String>,
    pub plan_risks: Vec<String>,
    pub plan_confidence: f64,
}

/// The same for a model that can give numbers only.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Figures {
    plan_unit: TimeUnit,
    #[schemars(length(min = 1, max = 12))]
    plan_steps: Vec<Figure>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Figure {
    #[schemars(range(min = 1, max = 600))]
    o: u32,
    #[schemars(range(min = 1, max = 600))]
    m: u32,
    #[schemars(range(min = 1, max = 600))]
    p: u32,
}

/// The estimate of a structured synthesis: its own figures if it gave any, else asked for when the Markdown has a plan.
pub async fn of_synthesis(
    desk: &Desk<'_>,
    given: EstimateOut,
    main: &str,
    corrections: &mut Vec<String>,
) -> Result<Option<Estimate>, Failure> {
    let steps = plan_steps(main).len();
    if !given.plan_steps.is_empty() && (steps == 0 || steps == given.plan_steps.len()) {
        return Ok(Some(estimate(&given, corrections)));
    }
    if !given.plan_steps.is_empty() {
        corrections.push(format!("the plan has {steps} steps and the figures {}", given.plan_steps.len()));
        let asked = of_text(desk, main, corrections).await?;
        return Ok(match asked {
            Some(asked) if !asked.by_rule => Some(asked),
            // Figures for other steps are nearer to the truth than a rule of thumb.
            Some(_) | None => Some(estimate(&given, corrections)),
        });
    }
    of_text(desk, main, corrections).await
}

/// The estimate of a Markdown text: asked for when it has a plan, by rule when no model gives figures.
pub async fn of_text(desk: &Desk<'_>, main: &str, corrections: &mut Vec<String>) -> Result<Option<Estimate>, Failure> {
    let steps = plan_steps(main);
    if steps.is_empty() {
        return Ok(None);
    }
    corrections.push("the answer has a plan and no figures: they were asked for".into());
    let steps: Vec<String> = steps.into_iter().take(MOST_STEPS).collect();
    let mut values = desk.case.values(Some(desk.plan.task_type.as_str()), &[]);
    set(&mut values, "steps", json!(steps));
    let mut ask = desk.ask("estimate", values, vec![])?;
    let form = desk.house.role(Role::Master).map_or(OutputForm::Json, |master| master.output);
    let out = match form {
        OutputForm::Json => {
            ask.max_tokens = ask.max_tokens.min(900);
            buy_json::<EstimateOut>(desk.run, desk.house, ask).await?.ok().map(|typed| typed.value)
        }
        OutputForm::Text => {
            ask.max_tokens = ask.max_tokens.min(260);
            buy_json::<Figures>(desk.run, desk.house, ask).await?.ok().map(|typed| of_figures(typed.value))
        }
    };
    let by_rule = || {
        let (o, m, p) = BY_RULE;
        (TimeUnit::Minutes, vec![Pert::new(o, m, p); steps.len()])
    };
    let given = out.as_ref().filter(|out| out.plan_steps.len() >= steps.len());
    let (unit, times) = match given {
        Some(out) => (out.plan_unit, out.plan_steps.iter().map(|s| Pert::new(s.o, s.m, s.p)).collect()),
        None => {
            corrections.push("no model gave a figure for every step: the estimate is by rule".into());
            by_rule()
        }
    };
    let steps = steps.into_iter().zip(times).map(|(step, time)| EstimateStep { step, time }).collect();
    let lines = |of: fn(&EstimateOut) -> &Vec<String>| -> Vec<String> {
        given.map(|out| of(out).iter().map(|l| one_line(l)).filter(|l| !l.is_empty()).collect()).unwrap_or_default()
    };
    Ok(Some(Estimate {
        unit,
        steps,
        assumptions: lines(|out| &out.plan_assumptions),
        risks: lines(|out| &out.plan_risks),
        confidence: given.map_or(0.1, |out| confidence(out.plan_confidence)),
        by_rule: given.is_none(),
    }))
}

fn estimate(out: &EstimateOut, corrections: &mut Vec<String>) -> Estimate {
    let steps = out
        .plan_steps
        .iter()
        .take(MOST_STEPS)
        .map(|s| {
            let time = Pert::new(s.o, s.m, s.p);
            if (time.optimistic, time.likely, time.pessimistic) != (s.o, s.m, s.p) {
                corrections.push("the figures of a step were put in order: 0 <= O <= M <= P".into());
            }
            EstimateStep { step: label(&s.step), time }
        })
        .collect();
    let lines = |lines: &[String]| lines.iter().map(|l| one_line(l)).filter(|l| !l.is_empty()).collect();
    Estimate {
        unit: out.plan_unit,
        steps,
        assumptions: lines(&out.plan_assumptions),
        risks: lines(&out.plan_risks),
        confidence: confidence(out.plan_confidence),
        by_rule: false,
    }
}

fn of_figures(figures: Figures) -> EstimateOut {
    let step = |f: Figure| PlanStepOut { step: String::new(), o: f.o.into(), m: f.m.into(), p: f.p.into() };
    EstimateOut {
        plan_unit: figures.plan_unit,
        plan_steps: figures.plan_steps.into_iter().map(step).collect(),
        plan_assumptions: vec![],
        plan_risks: vec![],
        plan_confidence: 0.2,
    }
}

fn confidence(stated: f64) -> f64 {
    if stated.is_finite() { stated.clamp(0.0, 1.0) } else { 0.0 }
}
