//! The execution time estimate, which every plan in a reply has. A model gives optimistic, most
//! likely and pessimistic figures; this file computes the rest, and fills what is missing by a rule.

use crate::committee::output_shapes::{EstimateOut, PlanStepOut};
use crate::committee::reply::plan_steps::label;
use crate::domain::{Estimate, EstimateStep, Pert, TimeUnit};

/// The most steps that are estimated one by one.
pub(in crate::committee) const MAX_STEPS: usize = 100;

/// Minutes for one step of an unknown task, used when no model gives figures.
const BY_RULE: [f64; 3] = [5.0, 15.0, 45.0];

/// The confidence in figures by rule.
const RULES_CONFIDENCE: f64 = 0.1;

/// The longest plausible time of one step, in hours: five years of work.
const MAX_HOURS: f64 = 10_000.0;

/// True if the figures can be times: not all of them are zero, and none is absurd.
pub(in crate::committee) fn is_plausible(out: &EstimateOut) -> bool {
    let most = in_unit(60.0 * MAX_HOURS, out.plan_unit);
    let steps = out.plan_steps.iter();
    let mut figures = steps.flat_map(|step| [step.o, step.m, step.p]);
    let is_possible = |x: f64| x.is_finite() && (0.0..=most).contains(&x);
    figures.clone().all(is_possible) && figures.any(|x| x > 0.0)
}

/// Returns the estimate of these steps, from the requested figures and those given before.
pub(in crate::committee) fn fitted(
    steps: Vec<String>,
    asked: Option<EstimateOut>,
    given: Option<EstimateOut>,
    corrections: &mut Vec<String>,
) -> Estimate {
    let count = |out: &Option<EstimateOut>| out.as_ref().map_or(0, |out| out.plan_steps.len());
    let (asked_count, given_count, wanted) = (count(&asked), count(&given), steps.len());
    if let Some(given) = given
        .as_ref()
        .filter(|_| asked_count < wanted && given_count >= wanted)
    {
        // The draft divides the same work more finely, which says more than figures for a part of
        // the steps.
        let why = "no figures came for the plan's own steps: those of the draft stand";
        corrections.push(why.into());
        return of_figures(given, corrections);
    }
    // Of equals those count that were requested step by step.
    let is_asked = asked_count.min(wanted) >= given_count.min(wanted);
    let fullest = if is_asked { asked } else { given };
    let fullest = fullest.filter(|out| !out.plan_steps.is_empty());
    filled(steps, fullest.as_ref(), corrections)
}

/// Returns the estimate of these steps. A rule gives the figures that are missing at the end.
fn filled(
    steps: Vec<String>,
    figures: Option<&EstimateOut>,
    corrections: &mut Vec<String>,
) -> Estimate {
    let of_all = steps.len();
    let unit = figures.map_or(TimeUnit::Minutes, |out| out.plan_unit);
    let given = figures.into_iter().flat_map(|out| &out.plan_steps);
    let given = given.take(of_all).map(|s| Pert::new(s.o, s.m, s.p));
    let mut times: Vec<Pert> = given.collect();
    let known = times.len();
    times.resize(of_all, by_rule(unit));
    let by_model = figures.map_or(0.0, |out| out.plan_confidence.clamp(0.0, 1.0));
    let share = known as f64 / of_all.max(1) as f64;
    let mut assumptions = figures.map_or(vec![], |out| out.plan_assumptions.clone());
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
        let assumed = format!("No model gave figures for {missing}: a rule of thumb stands there.");
        assumptions.push(assumed);
    }
    let timed = steps.into_iter().zip(times);
    Estimate {
        unit,
        steps: timed
            .map(|(step, time)| EstimateStep { step, time })
            .collect(),
        assumptions,
        risks: figures.map_or(vec![], |out| out.plan_risks.clone()),
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
    let [o, m, p] = BY_RULE.map(|minutes| in_unit(minutes, unit));
    Pert::new(o, m, p)
}

fn in_unit(minutes: f64, unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::Minutes => minutes,
        TimeUnit::Hours => minutes / 60.0,
    }
}

/// Returns the estimate of figures that are complete, put in order.
pub(in crate::committee) fn of_figures(
    out: &EstimateOut,
    corrections: &mut Vec<String>,
) -> Estimate {
    let step = |it: &PlanStepOut| {
        let time = Pert::new(it.o, it.m, it.p);
        if (time.optimistic, time.likely, time.pessimistic) != (it.o, it.m, it.p) {
            let why = "the figures of a step were put in order: 0 <= O <= M <= P";
            corrections.push(why.into());
        }
        let step = label(&it.step);
        EstimateStep { step, time }
    };
    Estimate {
        unit: out.plan_unit,
        steps: out.plan_steps.iter().take(MAX_STEPS).map(step).collect(),
        assumptions: out.plan_assumptions.clone(),
        risks: out.plan_risks.clone(),
        confidence: out.plan_confidence.clamp(0.0, 1.0),
        by_rule: false,
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
        let steps = ["Install it", "Run it", "Check it"].map(str::to_owned);
        let estimate = fitted(steps.into(), asked, given, &mut vec![]);
        let likely = estimate.steps.iter().map(|step| step.time.likely);
        (likely.collect(), estimate)
    }

    #[test]
    fn every_step_of_a_plan_has_its_figures_whatever_models_give() {
        let (minutes, hours) = (TimeUnit::Minutes, TimeUnit::Hours);
        for asked in [
            None,
            figures(minutes, 0),
            figures(minutes, 1),
            figures(minutes, 2),
        ] {
            let (likely, padded) = fit(asked, figures(minutes, 2));
            assert_eq!(likely, [2.0, 2.0, 15.0]);
            assert_eq!((padded.by_rule, padded.assumptions.len()), (false, 2));
            assert!((padded.confidence - 0.5).abs() < 1e-9, "{padded:?}");
        }
        for (asked, given, expected) in [
            (figures(minutes, 3), figures(minutes, 2), vec![2.0; 3]),
            (None, figures(hours, 2), vec![2.0, 2.0, 0.25]),
            (None, figures(minutes, 5), vec![2.0; 5]),
            (figures(minutes, 4), figures(minutes, 5), vec![2.0; 3]),
        ] {
            assert_eq!(fit(asked, given).0, expected);
        }
        let (likely, ruled) = fit(None, None);
        assert_eq!(likely, [15.0; 3]);
        assert_eq!((ruled.by_rule, ruled.confidence), (true, RULES_CONFIDENCE));
    }

    #[test]
    fn fractions_are_in_order() {
        let mut corrections = vec![];
        let mut out = figures(TimeUnit::Hours, 1).unwrap();
        let step = &mut out.plan_steps[0];
        (step.o, step.m, step.p) = (0.125, 0.333, 1.005);
        let time = of_figures(&out, &mut corrections).steps[0].time;
        assert_eq!(time, Pert::new(0.125, 0.333, 1.005));
        assert_eq!(corrections, [""; 0]);
    }
}
