//! Accepts requests for tool plans and authorizations, and shows plans and executions.

use std::sync::Arc;

use metrics::counter;
use serde_json::{Value, json};

use super::{ActionInput, ActionRequest, App, Rejected, RequestIds, Submitted, count};
use crate::committee::Quote;
use crate::domain::{
    Context, EvidenceFocus, Question, Role, RunId, Source, ToolPlan, Usd, User, fingerprint,
};
use crate::journal::{
    self, Accepted, AuthorizationMode, Authorized, Event, Rejection, RejectionKind, RunRow,
    RunState, ToolIntake,
};
use crate::tools::answers::{ExecutionState, ExecutionView, PlanState, PlanView};
use crate::tools::validate::validate;
use crate::tools::view;
use crate::tools::{self, Tool, Toolbox};

/// How often a request is planned again after its plan failed.
const MAX_PLANS: u32 = 100;

/// A request for a plan, as a client sent it.
#[derive(Debug, Clone)]
pub struct PlanInput {
    pub source: Source,
    pub user: User,
    pub context: Context,
    pub message: String,
    pub focus: EvidenceFocus,
}

/// What a user authorizes.
#[derive(Debug, Clone)]
pub enum AuthorizedSteps {
    /// The next step; if an id is given, it must be that step's.
    Step(Option<String>),
    /// All steps that are left.
    Plan,
    /// All steps of a plan that the user changed. `None` if it is missing, which is rejected.
    Modified(Option<Box<ToolPlan>>),
}

/// An authorization, as a client sent it.
#[derive(Debug, Clone)]
pub struct Authorization {
    pub plan: RunId,
    pub source: Source,
    pub user: User,
    /// Default: that of the plan.
    pub context: Option<Context>,
    pub steps: AuthorizedSteps,
}

/// The outcome of an authorization.
#[derive(Debug, Clone, PartialEq)]
pub enum Authorizing {
    Started(Submitted),
    /// The plan that the user changed is rejected.
    Rejected(Box<Rejection>),
}

impl App {
    fn tools(&self) -> Result<&Arc<Toolbox>, Rejected> {
        self.toolbox.as_ref().ok_or(Rejected::ToolsOff)
    }

    /// Accepts a request for a plan. The same request with the same evidence, tools, prompts and
    /// model joins the run that answered it before.
    ///
    /// # Errors
    /// [`Rejected`].
    pub async fn plan_tools(
        &self,
        input: PlanInput,
        ids: RequestIds,
    ) -> Result<Submitted, Rejected> {
        let (question, focus, evidence) = self.plan_request(input).await?;
        let fixed = self.plan_key(&question, &focus, &evidence);
        let intake = ToolIntake::Plan { focus, evidence };
        let mut key = format!("plan:{fixed}");
        for number in 2..MAX_PLANS {
            let Some((known, _)) = self.store.by_key(&key).await? else {
                break;
            };
            if self.can_join(known).await? {
                return Ok(Submitted {
                    run: known,
                    joined: true,
                });
            }
            key = format!("plan:{fixed}#{number}");
        }
        let cap = self.config.policy.tools_max;
        self.begin_tools(question, intake, (key, fixed), (cap, ids))
            .await
    }

    /// Estimates the cost of a plan, and of the explanation of its execution, without a model call.
    ///
    /// # Errors
    /// [`Rejected`].
    pub async fn quote_plan(&self, input: PlanInput) -> Result<Quote, Rejected> {
        let (question, focus, evidence) = self.plan_request(input).await?;
        let (deps, cap) = (&self.committee, self.config.policy.tools_max);
        let priced = || tools::quote(deps, &question.message, (&focus, &evidence), cap);
        let quote = self.compute(priced).await;
        quote.map_err(|failure| Rejected::Defect(failure.to_string()))
    }

    /// Checks the rules of a request for a plan, and reads its evidence.
    async fn plan_request(
        &self,
        input: PlanInput,
    ) -> Result<(Question, EvidenceFocus, Value), Rejected> {
        self.tools()?;
        let PlanInput {
            source,
            user,
            context,
            message,
            focus,
        } = input;
        let action = ActionInput {
            source,
            user,
            context,
            message,
        };
        let limits = &self.config.policy.limits;
        let parsed = ActionRequest::parse(action, limits, &self.committee.secrets);
        let question = parsed
            .map_err(|problems| count(Rejected::Invalid(problems)))?
            .into_question();
        let focus = EvidenceFocus {
            file: focus
                .file
                .map(|file| tools::normalised(&self.redacted(&file))),
            diagnostic: focus
                .diagnostic
                .map(|code| self.redacted(&code).into_owned()),
        };
        let evidence = self.store.tool_evidence(&focus).await?;
        Ok((question, focus, evidence))
    }

    /// True if a stored plan can still be executed. One that failed, that was halted, or that was
    /// rejected for the state of files then is made anew.
    async fn can_join(&self, plan: RunId) -> Result<bool, Rejected> {
        let row = self.store.run(plan).await?;
        if row.is_some_and(|row| matches!(row.state, RunState::Failed | RunState::Cancelled)) {
            return Ok(false);
        }
        let Some(view) = self.tool_plan(plan).await? else {
            return Ok(true);
        };
        let rests_on_files = |rejection: &Rejection| {
            matches!(
                rejection.kind,
                RejectionKind::PreconditionFailed | RejectionKind::ForbiddenOperation
            )
        };
        Ok(view.state != PlanState::Halted && !view.rejection.as_ref().is_some_and(rests_on_files))
    }

    /// Returns the fingerprint of all that decides a plan.
    fn plan_key(&self, question: &Question, focus: &EvidenceFocus, evidence: &Value) -> String {
        let model = self.committee.roles.get(&Role::Master);
        let model = model.map(|model| model.model.clone()).unwrap_or_default();
        let catalog: Vec<Value> = Tool::ALL
            .iter()
            .map(|tool| json!([tool.name(), tool.schema()]))
            .collect();
        let parts = json!([
            question.source,
            question.user.id,
            question.context.guild_id,
            question.message,
            self.config.tools_workspace,
            focus,
            evidence,
            catalog,
            self.committee.prompts.hash(),
            model,
        ]);
        fingerprint(&[parts.to_string().as_bytes()])
    }

    async fn begin_tools(
        &self,
        question: Question,
        intake: ToolIntake,
        (key, body_hash): (String, String),
        (cap, ids): (Usd, RequestIds),
    ) -> Result<Submitted, Rejected> {
        if self.runner.is_draining() {
            return Err(Rejected::Draining);
        }
        let slot = self.runner.slot().ok_or(Rejected::Busy)?;
        let accepted = Accepted {
            tools: Some(intake),
            correlation_id: ids.redacted(&self.committee.secrets).correlation_id,
            ..self.accepted(question, cap, self.clock.new_seed())
        };
        let id = RunId::from_uuid(self.clock.new_id());
        let kind = accepted.kind().into_str();
        let source = accepted.question.source.into_str();
        let admitted = self.admit(accepted, (Some(key), body_hash), id, slot).await;
        if let Ok(Submitted { joined: false, .. }) = &admitted {
            counter!("conclave_runs_accepted_total", "mode" => kind, "source" => source)
                .increment(1);
        }
        admitted.map_err(|rejected| match rejected {
            Rejected::KeyReused { .. } => {
                Rejected::PlanClosed("an execution of the plan is under way")
            }
            other => other,
        })
    }

    /// Starts the execution of steps that the plan's own user authorized, each step once.
    ///
    /// # Errors
    /// [`Rejected::NoSuchPlan`] also for another user's plan, [`Rejected::PlanClosed`] if the plan
    /// waits for no such authorization.
    pub async fn authorize(&self, given: Authorization) -> Result<Authorizing, Rejected> {
        let toolbox = Arc::clone(self.tools()?);
        let (events, executions) = self.plan_events(given.plan).await?;
        let question = own_question(&events, &given)?;
        if executions.iter().any(|(row, _)| !row.state.is_terminal()) {
            return Err(Rejected::PlanClosed(
                "an execution of the plan is under way",
            ));
        }
        let Some(known) = view::plan_view(given.plan, &events, &executions) else {
            return Err(Rejected::PlanClosed("the plan is not finished yet"));
        };
        match known.state {
            PlanState::Proposed | PlanState::Underway => {}
            PlanState::Rejected => return Err(Rejected::PlanClosed("the plan was rejected")),
            PlanState::Completed => return Err(Rejected::PlanClosed("all steps are executed")),
            PlanState::Halted => {
                return Err(Rejected::PlanClosed("a step failed, which halts the plan"));
            }
        }
        let next = known.next_step.clone().unwrap_or_default();
        let content = executions
            .iter()
            .rev()
            .find_map(|(_, events)| view::authorized(events))
            .map_or_else(
                || known.plan.clone(),
                |authorized| authorized.content.clone(),
            );
        let mut changes = vec![];
        let (mode, content, steps) = match given.steps {
            AuthorizedSteps::Step(Some(step)) if step != next => {
                return Err(Rejected::PlanClosed("it is not the next step"));
            }
            AuthorizedSteps::Step(_) => (AuthorizationMode::Step, content, vec![next.clone()]),
            AuthorizedSteps::Plan => {
                let steps = from(&content, &next);
                (AuthorizationMode::Plan, content, steps)
            }
            AuthorizedSteps::Modified(None) => {
                return Ok(Authorizing::Rejected(Box::new(Rejection {
                    kind: RejectionKind::InvalidPlan,
                    step_id: None,
                    message: "The changed plan is missing".to_owned(),
                    help: Value::Null,
                })));
            }
            AuthorizedSteps::Modified(Some(mut modified)) => {
                if !executions.is_empty() {
                    return Err(Rejected::PlanClosed(
                        "a plan can be changed before its first step only",
                    ));
                }
                modified.plan_id = given.plan.to_string();
                let modified = Box::new(self.without_secrets(&tools::completed(*modified))?);
                let (plan, evidence) = (modified.clone(), known.evidence.clone());
                let own = Arc::clone(&toolbox);
                match self.compute(move || validate(&plan, &evidence, &own)).await {
                    Ok(checked) => changes = tools::changes(&checked, &toolbox).await,
                    Err(rejection) => return Ok(Authorizing::Rejected(rejection)),
                }
                let steps = modified
                    .steps
                    .iter()
                    .map(|step| step.step_id.clone())
                    .collect();
                (AuthorizationMode::Modified, *modified, steps)
            }
        };
        // All authorizations at one time contend for one key, so a step is executed once.
        let key = format!("execution:{}#{}", given.plan, executions.len());
        let authorized = Authorized {
            plan: given.plan,
            mode,
            content,
            steps,
            evidence: known.evidence,
            changes,
            undoes: None,
            restores: vec![],
        };
        let body_hash = fingerprint(&[json!(authorized).to_string().as_bytes()]);
        let intake = ToolIntake::Execution(Box::new(authorized));
        let cap = (self.config.policy.tools_max, RequestIds::default());
        let started = self.begin_tools(question, intake, (key, body_hash), cap);
        Ok(Authorizing::Started(started.await?))
    }

    /// Starts taking back the changes of an execution, by the user of its plan, once.
    ///
    /// # Errors
    /// As [`App::authorize`].
    pub async fn undo(
        &self,
        execution: RunId,
        source: Source,
        user: User,
    ) -> Result<Submitted, Rejected> {
        self.tools()?;
        let events = events_of(&*self.store, execution).await?;
        let undone = view::authorized(&events)
            .cloned()
            .ok_or(Rejected::NoSuchPlan)?;
        let of_plan = events_of(&*self.store, undone.plan).await?;
        let given = Authorization {
            plan: undone.plan,
            source,
            user,
            context: None,
            steps: AuthorizedSteps::Plan,
        };
        let question = own_question(&of_plan, &given)?;
        let undone_plan = undone.plan;
        let row = self.store.run(execution).await?;
        if row.is_none_or(|row| !row.state.is_terminal()) {
            return Err(Rejected::PlanClosed("the execution has not ended"));
        }
        let restores = tools::restores(&events);
        if restores.is_empty() {
            return Err(Rejected::PlanClosed("the execution changed no file"));
        }
        let authorized = Authorized {
            mode: AuthorizationMode::Undo,
            steps: vec![],
            changes: vec![],
            undoes: Some(execution),
            restores,
            ..undone
        };
        let body_hash = fingerprint(&[json!(authorized).to_string().as_bytes()]);
        // An undo that did not complete can be tried again.
        let (_, executions) = self.plan_events(undone_plan).await?;
        let tried = executions.iter().filter(|(row, events)| {
            row.state.is_terminal()
                && view::authorized(events).is_some_and(|a| a.undoes == Some(execution))
                && view::execution_state(events) != ExecutionState::Completed
        });
        let key = format!("undo:{execution}#{}", tried.count());
        let intake = ToolIntake::Execution(Box::new(authorized));
        // It buys nothing.
        let cap = (Usd::ZERO, RequestIds::default());
        self.begin_tools(question, intake, (key, body_hash), cap)
            .await
    }

    /// Returns a plan that a user wrote, without secrets of the service.
    fn without_secrets(&self, plan: &ToolPlan) -> Result<ToolPlan, Rejected> {
        let text = json!(plan).to_string();
        serde_json::from_str(&self.redacted(&text))
            .map_err(|_| Rejected::PlanClosed("the changed plan contains a secret of this service"))
    }

    /// Returns a plan with its executions; `None` if the run has none.
    ///
    /// # Errors
    /// [`Rejected::NoSuchPlan`], or if the database does not answer.
    pub async fn tool_plan(&self, id: RunId) -> Result<Option<PlanView>, Rejected> {
        let (events, executions) = self.plan_events(id).await?;
        Ok(view::plan_view(id, &events, &executions))
    }

    /// Returns an execution with the plan that led to it.
    ///
    /// # Errors
    /// [`Rejected::NoSuchPlan`], or if the database does not answer.
    pub async fn execution(&self, id: RunId) -> Result<ExecutionView, Rejected> {
        let events = events_of(&*self.store, id).await?;
        let plan = view::authorized(&events).map(|authorized| authorized.plan);
        let of_plan = match plan {
            Some(plan) => events_of(&*self.store, plan).await?,
            None => return Err(Rejected::NoSuchPlan),
        };
        view::execution_view(id, &events, &of_plan).ok_or(Rejected::NoSuchPlan)
    }

    /// Returns the events of a plan, and its executions with theirs, oldest first.
    async fn plan_events(
        &self,
        id: RunId,
    ) -> Result<(Vec<Event>, Vec<(RunRow, Vec<Event>)>), Rejected> {
        let events = events_of(&*self.store, id).await?;
        let is_plan = |event: &Event| {
            matches!(event, Event::Accepted(accepted)
                if matches!(accepted.tools, Some(ToolIntake::Plan { .. })))
        };
        if !events.iter().any(is_plan) {
            return Err(Rejected::NoSuchPlan);
        }
        let mut executions = vec![];
        for row in self.store.executions(id).await? {
            let events = events_of(&*self.store, row.id).await?;
            executions.push((row, events));
        }
        Ok((events, executions))
    }
}

async fn events_of(store: &dyn journal::Store, run: RunId) -> Result<Vec<Event>, journal::Error> {
    let entries = store.entries(run, 0).await?;
    Ok(entries.into_iter().map(|entry| entry.event).collect())
}

/// Returns the ids of the steps from one on.
fn from(plan: &ToolPlan, first: &str) -> Vec<String> {
    let steps = plan.steps.iter().map(|step| step.step_id.clone());
    steps.skip_while(|id| id != first).collect()
}

/// Returns the question of the execution: the plan's request by its own user.
fn own_question(events: &[Event], given: &Authorization) -> Result<Question, Rejected> {
    let asked = events.iter().find_map(|event| match event {
        Event::Accepted(accepted) => Some(&accepted.question),
        _ => None,
    });
    let asked = asked.ok_or(Rejected::NoSuchPlan)?;
    let same_guild = given
        .context
        .as_ref()
        .is_none_or(|context| context.guild_id == asked.context.guild_id);
    if asked.source != given.source || asked.user.id != given.user.id || !same_guild {
        return Err(Rejected::NoSuchPlan);
    }
    Ok(Question {
        user: given.user.clone(),
        ..asked.clone()
    })
}
