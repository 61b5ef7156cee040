//! The execution time estimate, which every plan in a reply has. The model gives optimistic, most
//! likely and pessimistic figures; the service computes the rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::committee::Failure;
use crate::committee::call::call_json;
use crate::committee::call::prompts::set;
use crate::committee::reply::assumptions::one_line;
use crate::committee::reply::plan_steps::{label, plan_steps};
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::config::OutputForm;
use crate::domain::{Estimate, EstimateStep, Pert, Role, TimeUnit};

/// The most steps that are estimated one by one.
pub(super) const MAX_STEPS: usize = 100;

/// Minutes for one step of an unknown task, used when no model gives figures.
const BY_RULE: (f64, f64, f64) = (5.0, 15.0, 45.0);

/// The confidence in figures by rule.
const RULES_CONFIDENCE: f64 = 0.1;

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

/// Returns the estimate of a structured synthesis. Its own figures are used if they fit. Otherwise
/// the master is asked for figures, if the Markdown has a plan.
pub async fn of_synthesis(
    input: &SynthesisInput<'_>,
    given: EstimateOut,
    main: &str,
    corrections: &mut Vec<String>,
) -> Result<Option<Estimate>, Failure> {
    if given.plan_steps.is_empty() {
        return of_text(input, main, corrections).await;
    }
    let steps = plan_of(input, main).await?;
    let count = steps.len();
    if count == 0 || count == given.plan_steps.len() {
        return Ok(Some(estimate(&given, corrections)));
    }
    let why = format!(
        "the plan has {count} steps and the figures {}: they were asked for",
        given.plan_steps.len()
    );
    corrections.push(why);
    asked_for(input, steps, Some(given), corrections).await
}

/// Returns the estimate of a Markdown text. If the text has a plan, the master is asked for
/// figures; if it gives none, they are set by rule.
pub async fn of_text(
    input: &SynthesisInput<'_>,
    main: &str,
    corrections: &mut Vec<String>,
) -> Result<Option<Estimate>, Failure> {
    let steps = plan_of(input, main).await?;
    if steps.is_empty() {
        return Ok(None);
    }
    corrections.push("the answer has a plan and no figures: they were asked for".into());
    asked_for(input, steps, None, corrections).await
}

/// Returns the steps of the plan in a text, computed off the async workers.
async fn plan_of(input: &SynthesisInput<'_>, main: &str) -> Result<Vec<String>, Failure> {
    Ok(input
        .run
        .compute("finding the plan's steps", || plan_steps(main))
        .await?)
}

/// Asks for a figure for every step of a plan. Where none comes, the figures given earlier are
/// used, and a rule fills the rest.
async fn asked_for(
    input: &SynthesisInput<'_>,
    mut steps: Vec<String>,
    given: Option<EstimateOut>,
    corrections: &mut Vec<String>,
) -> Result<Option<Estimate>, Failure> {
    steps.truncate(MAX_STEPS);
    let mut values = input
        .request
        .values(Some(input.plan.task_type.as_str()), &[]);
    set(&mut values, "steps", json!(steps));
    let mut ask = input.ask("estimate", values, vec![])?;
    let form = input
        .deps
        .role(Role::Master)
        .map_or(OutputForm::Json, |master| master.output);
    let out = match form {
        OutputForm::Json => {
            ask.answer_tokens = Some(900);
            call_json::<EstimateOut>(input.run, input.deps, ask)
                .await?
                .ok()
                .map(|typed| typed.value)
        }
        OutputForm::Text => {
            ask.answer_tokens = Some(260);
            call_json::<Figures>(input.run, input.deps, ask)
                .await?
                .ok()
                .map(|typed| of_figures(typed.value))
        }
    };
    Ok(Some(fitted(steps, out, given, corrections)))
}

/// Returns the estimate of these steps, from the requested figures and those given before.
fn fitted(
    steps: Vec<String>,
    asked: Option<EstimateOut>,
    given: Option<EstimateOut>,
    corrections: &mut Vec<String>,
) -> Estimate {
    let complete = |out: &EstimateOut| out.plan_steps.len() >= steps.len();
    if let Some(given) = given
        .as_ref()
        .filter(|given| complete(given) && !asked.as_ref().is_some_and(complete))
    {
        // The draft divides the same work more finely, which says more than figures for a part of
        // the steps.
        corrections
            .push("no figures came for the plan's own steps: those of the draft stand".into());
        return estimate(given, corrections);
    }
    // Of equals the last one counts: the figures that were requested step by step.
    let fullest = [given, asked]
        .into_iter()
        .flatten()
        .filter(|out| !out.plan_steps.is_empty());
    let fullest = fullest.max_by_key(|out| out.plan_steps.len().min(steps.len()));
    let (of_all, unit) = (
        steps.len(),
        fullest
            .as_ref()
            .map_or(TimeUnit::Minutes, |out| out.plan_unit),
    );
    let mut times: Vec<Pert> = fullest
        .iter()
        .flat_map(|out| &out.plan_steps)
        .map(|s| Pert::new(s.o, s.m, s.p))
        .collect();
    times.truncate(of_all);
    let known = times.len();
    times.resize(of_all, by_rule(unit));
    let share = known as f64 / of_all.max(1) as f64;
    let by_model = fullest
        .as_ref()
        .map_or(0.0, |out| confidence(out.plan_confidence));
    let lines = |of: fn(&EstimateOut) -> &Vec<String>| -> Vec<String> {
        let lines = fullest.iter().flat_map(of).map(|line| one_line(line));
        lines.filter(|line| !line.is_empty()).collect()
    };
    let mut assumptions = lines(|out| &out.plan_assumptions);
    if known == 0 {
        corrections.push("no model gave a figure for any step: the estimate is by rule".into());
    } else if known < of_all {
        let missing = if known + 1 == of_all {
            format!("step {of_all}")
        } else {
            format!("steps {} to {of_all}", known + 1)
        };
        corrections.push(format!(
            "no model gave a figure for {missing}: a rule gave it"
        ));
        assumptions.push(format!(
            "No model gave figures for {missing}: a rule of thumb stands there."
        ));
    }
    Estimate {
        unit,
        steps: steps
            .into_iter()
            .zip(times)
            .map(|(step, time)| EstimateStep { step, time })
            .collect(),
        assumptions,
        risks: lines(|out| &out.plan_risks),
        confidence: if known == of_all {
            by_model
        } else {
            RULES_CONFIDENCE + (by_model - RULES_CONFIDENCE) * share
        },
        by_rule: known == 0,
    }
}

/// Returns the rule's figures for one step, in a unit.
fn by_rule(unit: TimeUnit) -> Pert {
    let (o, m, p) = BY_RULE;
    let in_unit = |minutes: f64| match unit {
        TimeUnit::Minutes => minutes,
        TimeUnit::Hours => minutes / 60.0,
    };
    Pert::new(in_unit(o), in_unit(m), in_unit(p))
}

fn estimate(out: &EstimateOut, corrections: &mut Vec<String>) -> Estimate {
    let steps = out
        .plan_steps
        .iter()
        .take(MAX_STEPS)
        .map(|s| {
            let time = Pert::new(s.o, s.m, s.p);
            if (time.optimistic, time.likely, time.pessimistic) != (s.o, s.m, s.p) {
                corrections
                    .push("the figures of a step were put in order: 0 <= O <= M <= P".into());
            }
            EstimateStep {
                step: label(&s.step),
                time,
            }
        })
        .collect();
    let lines = |lines: &[String]| {
        lines
            .iter()
            .map(|l| one_line(l))
            .filter(|l| !l.is_empty())
            .collect()
    };
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
    let step = |f: Figure| PlanStepOut {
        step: String::new(),
        o: f.o.into(),
        m: f.m.into(),
        p: f.p.into(),
    };
    EstimateOut {
        plan_unit: figures.plan_unit,
        plan_steps: figures.plan_steps.into_iter().map(step).collect(),
        plan_assumptions: vec![],
        plan_risks: vec![],
        plan_confidence: 0.2,
    }
}

fn confidence(stated: f64) -> f64 {
    if stated.is_finite() {
        stated.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(unit: TimeUnit, count: usize) -> Option<EstimateOut> {
        let step = PlanStepOut {
            step: "x".into(),
            o: 1.0,
            m: 2.0,
            p: 3.0,
        };
        Some(EstimateOut {
            plan_unit: unit,
            plan_steps: vec![step; count],
            plan_assumptions: vec!["One host.".into()],
            plan_risks: vec![],
            plan_confidence: 0.7,
        })
    }

    fn fit(asked: Option<EstimateOut>, given: Option<EstimateOut>) -> (Vec<f64>, Estimate) {
        let steps = ["Install it", "Run it", "Check it"]
            .map(str::to_owned)
            .to_vec();
        let estimate = fitted(steps, asked, given, &mut vec![]);
        (
            estimate.steps.iter().map(|step| step.time.likely).collect(),
            estimate,
        )
    }

    #[test]
    fn every_step_of_a_plan_has_its_figures_whatever_models_give() {
        let (minutes, hours) = (TimeUnit::Minutes, TimeUnit::Hours);
        assert_eq!(
            fit(figures(minutes, 3), figures(minutes, 2)).0,
            [2.0, 2.0, 2.0]
        );
        for asked in [
            None,
            figures(minutes, 0),
            figures(minutes, 1),
            figures(minutes, 2),
        ] {
            let (likely, padded) = fit(asked, figures(minutes, 2));
            assert_eq!(likely, [2.0, 2.0, 15.0]);
            assert_eq!((padded.by_rule, padded.assumptions.len()), (false, 2));
            assert!(
                (padded.confidence - 0.5).abs() < 1e-9,
                "{}",
                padded.confidence
            );
        }
        assert_eq!(fit(None, figures(hours, 2)).0, [2.0, 2.0, 0.25]);
        let (likely, ruled) = fit(None, None);
        assert_eq!(
            (likely, ruled.by_rule, ruled.confidence),
            (vec![15.0; 3], true, RULES_CONFIDENCE)
        );
        assert_eq!(fit(None, figures(minutes, 5)).0, [2.0; 5]);
        assert_eq!(fit(figures(minutes, 4), figures(minutes, 5)).0, [2.0; 3]);
    }

    #[test]
    fn fractions_are_in_order() {
        let mut corrections = vec![];
        let mut out = figures(TimeUnit::Hours, 1).unwrap();
        (
            out.plan_steps[0].o,
            out.plan_steps[0].m,
            out.plan_steps[0].p,
        ) = (0.125, 0.333, 1.005);
        let time = estimate(&out, &mut corrections).steps[0].time;
        assert_eq!(
            (time.optimistic, time.likely, time.pessimistic),
            (0.125, 0.333, 1.005)
        );
        assert_eq!(corrections, [""; 0]);
    }
}
