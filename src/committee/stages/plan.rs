//! Phase A: gets the master's orchestration plan and bounds it.

use std::collections::BTreeSet;

use conclave_lenient_json::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::committee::call::prompts::Rendered;
use crate::committee::call::{CallSpec, call_checked, call_json};
use crate::committee::deps::StageEnd;
use crate::committee::failure::{CallError, Failure};
use crate::committee::money::budget::PLAN_TOKENS;
use crate::committee::money::trim;
use crate::committee::output_shapes::{OrchestrationPlan, QuestionOut};
use crate::committee::request_context::{RequestContext, Stage, for_planning};
use crate::committee::stages::hints::task_type_of;
use crate::committee::stages::option_parts::say_what_changes;
use crate::committee::stages::question::WANTED_OPTIONS;
use crate::committee::stages::question_rules::have_content_of;
use crate::config::{OutputForm, RoleModel};
use crate::domain::{
    Agent, CORE_AGENTS, CallStep, Choice, Clarification, FailureCause, MAX_DEMANDS, Mode, Plan,
    Role, TaskType, counted,
};
use crate::journal::step;
use crate::journal::{Cause, Continuation, Hinted, PlanSource, Planned, Reading, Transcript};
use crate::text::{excerpt, one_line};

/// The most characters of an earlier report's summary, and of its assumptions, that the master
/// reads for planning.
const REPORT_CHARS: usize = 400;

/// The most rounds of any run.
const MAX_ROUNDS: u8 = 3;

/// The choice requested from a model that cannot follow a schema by itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanChoice {
    pub task_type: TaskType,
    #[schemars(range(min = 1, max = 2))]
    pub rounds: u8,
}

/// Returns the plan of this run. A run that continues another has its parent's plan. If the user
/// seems to correct an assumption, the master reads the message.
///
/// # Errors
/// If the master's provider fails.
pub async fn make(stage: Stage<'_>, hints: &Hinted) -> Result<Planned, Failure> {
    let plan = async {
        let parent = stage.request.parent.as_ref();
        match parent.and_then(|parent| parent.planned.as_ref()) {
            Some(planned) => reuse(stage, hints, planned).await,
            None => ask_master(stage, hints).await,
        }
    };
    stage.run.step(step::plan(), plan).await
}

/// Returns the parent's plan without the question that the user has answered.
async fn reuse(stage: Stage<'_>, hints: &Hinted, planned: &Planned) -> Result<Planned, Failure> {
    let request = stage.request;
    let parent = request.parent.as_ref();
    let has_reports = parent.is_some_and(|parent| !parent.outcomes.is_empty());
    let writes_json = stage.master().is_ok_and(|it| it.output == OutputForm::Json);
    let is_correction = matches!(request.latest, Some(Continuation::Correction { .. }));
    let mut reading = None;
    if has_reports && writes_json && is_correction {
        match ask_master(stage, hints).await {
            Ok(mut read) if read.is_new_request() => {
                let note = "the message asks something new: no run is continued";
                read.corrections.push(note.to_owned());
                return Ok(read);
            }
            Ok(read) => reading = read.reading,
            // Without the reading, fixed rules decide what is reused.
            Err(Failure::Failed { .. }) => {}
            Err(stopped) => return Err(stopped),
        }
    }
    let mut agents = planned.plan.agents_to_run.clone();
    // An image that comes with the answer is seen like one of a new request.
    if request.has_new_image() && !agents.contains(&Agent::Visual) {
        agents.push(Agent::Visual);
    }
    let agents = agents.iter();
    let raw = OrchestrationPlan {
        task_type: planned.plan.task_type,
        agents_to_run: agents.map(ToString::to_string).collect(),
        rounds: i64::from(planned.wanted_rounds.unwrap_or(planned.plan.rounds)),
        demands: planned.plan.demands.clone(),
        language: planned.plan.language.clone(),
        ..by_hints(request, hints)
    };
    let (mut plan, mut corrections) = bound(&raw, stage);
    if is_correction && reading.is_none() {
        let note = "no model read the message: by its form it is a correction";
        corrections.push(note.to_owned());
    }
    match request.choice() {
        Some(Choice::Deeper) => plan.rounds = (plan.rounds + 1).min(MAX_ROUNDS),
        Some(Choice::BestAnswer) => plan.rounds = 1,
        Some(Choice::Position | Choice::Anew | Choice::Stop) | None => {}
    }
    Ok(Planned {
        plan,
        obtained: PlanSource::Reused,
        corrections,
        wanted_rounds: wanted_rounds(&raw, request.question.mode),
        reading,
    })
}

/// Returns the master's reading of a message that continues another run. Agents without a report
/// are dropped from it.
fn reading_of(raw: &OrchestrationPlan, request: &RequestContext) -> Option<Reading> {
    let parent = request.parent.as_ref()?;
    let written = raw.continuation.as_ref()?;
    let affected = written.affected.iter();
    let affected = affected.filter_map(|name| name.trim().to_lowercase().parse::<Agent>().ok());
    Some(Reading {
        continues: written.continues,
        correction: one_line(&written.correction),
        affected: affected
            .filter(|agent| parent.outcomes.contains_key(agent))
            .collect(),
    })
}

/// Returns the earlier reply as the plan's prompt shows it: the assumption that the message seems to
/// correct, and the reports. `null` if the message is no correction.
fn earlier(request: &RequestContext) -> Value {
    let (Some(parent), Some(Continuation::Correction { handle, wrong, .. })) =
        (&request.parent, &request.latest)
    else {
        return Value::Null;
    };
    let reports = parent.outcomes.iter().filter_map(|(agent, outcome)| {
        let report = outcome.report().filter(|_| !parent.is_discarded(*agent))?;
        let summary = excerpt(&report.answer_summary.join(" "), REPORT_CHARS);
        let assumed = excerpt(&report.assumptions.join(" "), REPORT_CHARS);
        Some(json!({ "agent": agent.into_str(), "summary": summary, "assumptions": assumed }))
    });
    json!({
        "about": format!("{handle}: {wrong}"),
        "message": request.message,
        "reports": reports.collect::<Vec<_>>(),
    })
}

async fn ask_master(stage: Stage<'_>, hints: &Hinted) -> Result<Planned, Failure> {
    let Stage { run, deps, request } = stage;
    let master = stage.master()?;
    core_is_reachable(stage)?;
    // The agents that answer meanwhile have their room already.
    if Transcript::of(&run.events()).trimmed.is_none() {
        trim::check_room(stage)?;
    }
    let ask = CallSpec {
        run,
        deps,
        step: CallStep::Plan,
        role: Role::Master,
        prompt: prompt(stage, master, hints)?,
        images: &[],
        model_texts: vec![],
        max_tokens: master.max_tokens,
        answer_tokens: Some(PLAN_TOKENS),
        until: deps.stage_end(run, StageEnd::Plan),
    };
    let written = match master.output {
        OutputForm::Json => call_checked(ask, |raw| problems(raw, request)).await,
        OutputForm::Text => call_json::<PlanChoice>(ask)
            .await
            .map(|typed| typed.map(|choice| from_choice(&choice, request, hints))),
    };
    let (raw, obtained, notes) = match written {
        Ok(typed) => {
            let noted = |note: String| format!("the plan's JSON: {note}");
            let notes = typed.notes.into_iter().map(noted).collect();
            (typed.value, PlanSource::Model(typed.obtained), notes)
        }
        // A master that was too slow here may still be in time for the synthesis.
        Err(CallError::NoOutput(failure))
            if failure.is_recoverable() || failure.cause == FailureCause::TimedOut =>
        {
            let cause = failure.cause;
            let note = format!("there is no plan of the master ({cause}): hints decided");
            (by_hints(request, hints), PlanSource::Hints, vec![note])
        }
        Err(error) => return Err(Failure::master("plan", &error.no_output()?)),
    };
    let (plan, mut corrections) = bound(&raw, stage);
    corrections.extend(notes);
    Ok(Planned {
        plan,
        obtained,
        corrections,
        wanted_rounds: wanted_rounds(&raw, request.question.mode),
        reading: reading_of(&raw, request),
    })
}

/// True if a question may fit any request: its options do not say what each would change, and it has
/// no word of this request.
fn fits_any(asked: &QuestionOut, request: &RequestContext) -> bool {
    let texts = asked.options.iter().chain([&asked.question]);
    !say_what_changes(&asked.options) && !have_content_of(&request.question.message, texts)
}

/// Returns what the master is to repair in a plan that asks the user.
fn problems(raw: &OrchestrationPlan, request: &RequestContext) -> Vec<Problem> {
    let question = raw.clarification_question.as_ref();
    let is_bad = |it: &QuestionOut| {
        fits_any(it, request) || Clarification::new(&it.question, &it.options).is_none()
    };
    let asks_badly = raw.needs_clarification && question.is_none_or(is_bad);
    let asks_badly = asks_badly && !request.is_narration;
    let why = "its options do not say what each would change";
    Vec::from_iter(asks_badly.then(|| Problem {
        pointer: "/clarificationQuestion".into(),
        detail: format!("{why}: {WANTED_OPTIONS}, or set needsClarification to false"),
    }))
}

/// Checks that a core agent can be called, so that no plan is paid for and then unused. A run that continues or
/// is resumed may have reports already.
///
/// # Errors
/// [`Failure`] if the circuits of all models of all core agents are open.
fn core_is_reachable(stage: Stage<'_>) -> Result<(), Failure> {
    let Stage { run, deps, request } = stage;
    if run.epoch() > 1 || request.parent.is_some() {
        return Ok(());
    }
    let roles = CORE_AGENTS.map(|agent| deps.role(Role::Agent(agent)));
    let models = roles
        .into_iter()
        .flatten()
        .flat_map(RoleModel::with_fallbacks);
    let open = models.map(|model| deps.models.open_circuit(&model.provider, &model.model));
    match open.collect::<Option<Vec<_>>>().as_deref() {
        Some([first, ..]) => Err(Failure::Failed {
            cause: Cause::Provider,
            detail: format!("no core agent can be called: {}", first.outline()),
        }),
        Some([]) | None => Ok(()),
    }
}

fn prompt(stage: Stage<'_>, master: &RoleModel, hints: &Hinted) -> Result<Rendered, Failure> {
    let request = stage.request;
    let task_types = hints.task_types.iter().map(|t| t.into_str().to_owned());
    let signals: Vec<String> = task_types.chain(hints.signals.iter().cloned()).collect();
    let question = for_planning(&request.question.message);
    // Whether the message is a correction is what the plan decides.
    let known = match (&request.latest, request.corrections.split_last()) {
        (Some(Continuation::Correction { .. }), Some((_, known))) => known,
        _ => &request.corrections,
    };
    let values = request.values(json!({
        "hints": signals,
        "question": question,
        "earlier": earlier(request),
        "corrections": known,
    }));
    Ok(stage.deps.prompts.render(master.prompts, "plan", values)?)
}

fn from_choice(choice: &PlanChoice, request: &RequestContext, hints: &Hinted) -> OrchestrationPlan {
    let mut plan = by_hints(request, hints);
    // The hints see more than a tiny model. Its task type counts only where there are no hints.
    if hints.task_types.is_empty() {
        plan.task_type = choice.task_type;
    }
    plan.rounds = i64::from(choice.rounds);
    plan
}

/// Returns the plan that the hints alone give.
pub fn provisional(stage: Stage<'_>, hints: &Hinted) -> Plan {
    bound(&by_hints(stage.request, hints), stage).0
}

fn by_hints(request: &RequestContext, hints: &Hinted) -> OrchestrationPlan {
    let task_type = task_type_of(hints);
    let mut agents = CORE_AGENTS.to_vec();
    if task_type == TaskType::TechnicalExecution && request.question.mode != Mode::Ask {
        agents.push(Agent::Implementer);
    }
    if !request.images.is_empty() {
        agents.push(Agent::Visual);
    }
    OrchestrationPlan {
        task_type,
        agents_to_run: agents.iter().map(ToString::to_string).collect(),
        rounds: 1,
        needs_clarification: false,
        clarification_question: None,
        output_shape: request.question.mode,
        demands: vec![],
        continuation: None,
        language: None,
    }
}

/// Bounds a plan. Returns it with a note on every correction.
fn bound(raw: &OrchestrationPlan, stage: Stage<'_>) -> (Plan, Vec<String>) {
    let request = stage.request;
    let mut corrections = vec![];
    let agents = agents_to_run(raw, stage, &mut corrections);
    let mode = request.question.mode;
    let name = mode.into_str();
    let rounds = u8::try_from(raw.rounds.clamp(1, i64::from(mode.max_rounds()))).unwrap_or(1);
    if i64::from(rounds) != raw.rounds {
        let wanted = raw.rounds;
        let note = format!("rounds were set from {wanted} to {rounds}: {name} allows it");
        corrections.push(note);
    }
    if raw.output_shape != mode {
        let note = format!("outputShape was set to {name}, the mode of the request");
        corrections.push(note);
    }
    let question = raw
        .clarification_question
        .as_ref()
        .filter(|q| !fits_any(q, request))
        .and_then(|q| Clarification::new(&q.question, &q.options))
        .filter(|_| raw.needs_clarification && !request.is_narration);
    if raw.needs_clarification && request.is_narration {
        corrections.push("needsClarification was dropped: a narration asks nothing".into());
    } else if raw.needs_clarification && question.is_none() {
        let why =
            "its question fits any request, or its three options do not each say something else";
        corrections.push(format!("needsClarification was dropped: {why}"));
    }
    corrections.extend(question_note(raw, question.as_ref()).map(str::to_owned));
    let mut demands = raw.demands.clone();
    demands.retain(|demand| demand.is_possible());
    demands.truncate(MAX_DEMANDS);
    if demands.len() < raw.demands.len() {
        let dropped = raw.demands.len() - demands.len();
        let dropped = counted(dropped, "demand was", "demands were");
        let why = format!("no count keeps them, or more than {MAX_DEMANDS}");
        corrections.push(format!("{dropped} dropped: {why}"));
    }
    let language = raw.language.as_deref().and_then(language_of);
    if language != raw.language {
        let set = language.as_deref().unwrap_or("null: it is no code");
        corrections.push(format!("language was set to {set}"));
    }
    let plan = Plan {
        task_type: raw.task_type,
        agents_to_run: agents.into_iter().collect(),
        rounds,
        needs_clarification: question.is_some(),
        clarification_question: question,
        output_shape: mode,
        demands,
        language,
    };
    (plan, corrections)
}

/// Returns the rounds of a plan, if the mode allows fewer.
fn wanted_rounds(raw: &OrchestrationPlan, mode: Mode) -> Option<u8> {
    let wanted = u8::try_from(raw.rounds.clamp(1, i64::from(MAX_ROUNDS))).ok();
    wanted.filter(|wanted| *wanted > mode.max_rounds())
}

/// Says how the plan's question was changed, if it was.
fn question_note(raw: &OrchestrationPlan, asked: Option<&Clarification>) -> Option<&'static str> {
    let given = raw.clarification_question.as_ref()?;
    let Some(asked) = asked else {
        let note = "clarificationQuestion was dropped: needsClarification is false";
        return (!raw.needs_clarification).then_some(note);
    };
    let is_same = one_line(&given.question) == asked.question
        && (given.options == asked.lettered() || given.options == asked.options);
    let note = "clarificationQuestion was changed: it asks one thing, with one question mark, and its options have \
                no other marks in front than their letters";
    (!is_same).then_some(note)
}

/// Returns the code of a language without a region: "pt" of "pt-BR"; `None` if it is no code.
fn language_of(named: &str) -> Option<String> {
    let code = named.trim().split(['-', '_']).next()?;
    let is_code = (2..=3).contains(&code.len()) && code.bytes().all(|it| it.is_ascii_alphabetic());
    is_code.then(|| code.to_ascii_lowercase())
}

/// Returns the agents of a plan that can run, and the core.
fn agents_to_run(
    raw: &OrchestrationPlan,
    stage: Stage<'_>,
    corrections: &mut Vec<String>,
) -> BTreeSet<Agent> {
    let deps = stage.deps;
    let mut agents: BTreeSet<Agent> = BTreeSet::new();
    for name in &raw.agents_to_run {
        let refused = match name.trim().to_lowercase().parse::<Agent>() {
            Err(_) => "there is no such agent",
            Ok(agent) if agents.contains(&agent) => {
                corrections.push(format!("{agent} was named more than once: it runs once"));
                continue;
            }
            Ok(agent) if deps.role(Role::Agent(agent)).is_none() => "it has no model in the config",
            Ok(agent) if deps.policy.disabled_agents.contains(&agent) => "it is disabled",
            Ok(Agent::Visual) if stage.request.images.is_empty() => {
                "there is no image that could be seen"
            }
            Ok(agent) => {
                agents.insert(agent);
                continue;
            }
        };
        let name: String = name.chars().take(40).collect();
        corrections.push(format!("agent {name:?} was taken out: {refused}"));
    }
    for core in CORE_AGENTS {
        if agents.insert(core) {
            corrections.push(format!("{core} was added: the core always runs"));
        }
    }
    agents
}
