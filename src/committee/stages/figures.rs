//! Gets the figures of a plan's estimate: those of the synthesis if they fit, else the master is
//! asked for them alone. `estimate` computes the rest.

use serde_json::json;

use crate::committee::call::call_json;
use crate::committee::deps::StageEnd;
use crate::committee::failure::Failure;
use crate::committee::output_shapes::EstimateOut;
use crate::committee::reply::estimate;
use crate::committee::reply::plan_steps::{label, plan_steps};
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::config::OutputForm;
use crate::domain::{CallStep, Estimate, counted};

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
    let mut steps = plan_of(input, main).await?;
    let (count, figures) = (steps.len(), given.plan_steps.len());
    if !estimate::is_plausible(&given) {
        corrections.push(
            "the figures were all zero or implausibly large: they were asked for again".into(),
        );
        if steps.is_empty() {
            steps = given.plan_steps.iter().map(|s| label(&s.step)).collect();
        }
        return asked_for(input, steps, None, corrections).await;
    }
    if count == 0 || count == figures {
        return Ok(Some(estimate::of_figures(&given, corrections)));
    }
    let steps_of_plan = counted(count, "step", "steps");
    let why = format!("the plan has {steps_of_plan} and the figures {figures}");
    corrections.push(format!("{why}: they were asked for"));
    asked_for(input, steps, Some(given), corrections).await
}

/// Returns the estimate of a Markdown text. If the text has a plan, the master is asked for figures,
/// unless it writes plain text; if it gives none, they are set by rule.
pub async fn of_text(
    input: &SynthesisInput<'_>,
    main: &str,
    corrections: &mut Vec<String>,
) -> Result<Option<Estimate>, Failure> {
    let steps = plan_of(input, main).await?;
    if steps.is_empty() {
        return Ok(None);
    }
    corrections.push("the answer has a plan and no figures".into());
    asked_for(input, steps, None, corrections).await
}

/// Returns the steps of the plan in a text.
async fn plan_of(input: &SynthesisInput<'_>, main: &str) -> Result<Vec<String>, Failure> {
    let find = || plan_steps(main);
    Ok(input.run.compute_text(find).await?)
}

/// Asks for a figure for every step of a plan. Where none comes, the figures given earlier are
/// used, and a rule fills the rest.
async fn asked_for(
    input: &SynthesisInput<'_>,
    mut steps: Vec<String>,
    given: Option<EstimateOut>,
    corrections: &mut Vec<String>,
) -> Result<Option<Estimate>, Failure> {
    steps.truncate(estimate::MAX_STEPS);
    // Plain text has no figures.
    let out = match input.stage().master()?.output {
        OutputForm::Json => call_master(input, &steps).await?,
        OutputForm::Text => None,
    };
    Ok(Some(estimate::fitted(steps, out, given, corrections)))
}

/// Asks the master for figures. Returns them if they can be times.
async fn call_master(
    input: &SynthesisInput<'_>,
    steps: &[String],
) -> Result<Option<EstimateOut>, Failure> {
    let own = json!({ "task_type": input.plan.task_type, "steps": steps });
    let mut ask = input.ask(CallStep::Estimate, input.request.values(own), vec![])?;
    ask.until = input.deps.stage_end(input.run, StageEnd::Figures);
    ask.answer_tokens = Some(900);
    match call_json::<EstimateOut>(ask).await {
        Ok(typed) => Ok(Some(typed.value).filter(estimate::is_plausible)),
        Err(error) => error.no_output().map(|_| None),
    }
}
