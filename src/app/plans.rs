//! Accepts requests for tool plans and authorizations, and shows plans and executions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ActionInput, App, Rejected, RequestIds, Submitted, spending};
use crate::domain::{
    Context, EvidenceFocus, Mode, Question, Role, RunId, Source, ToolPlan, User, fingerprint,
};
use crate::journal::{
    self, Acceptance, Accepted, AuthorizationMode, Authorized, Event, NewRun, Rejection,
    RejectionKind, RunRow, RunState, ToolIntake,
};
use crate::tools::validate::validate;
use crate::tools::view::{self, ExecutionView, PlanState, PlanView};
use crate::tools::{Tool, Toolbox};

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
        self.tools()?;
        let PlanInput {
            source,
            user,
            context,
            message,
            focus,
        } = input;
        let question = self
            .action_request(ActionInput {
                source,
                user,
                context,
                message,
            })?
            .into_question();
        let focus = EvidenceFocus {
            file: focus.file.map(|file| self.redacted(&file).into_owned()),
            diagnostic: focus
                .diagnostic
                .map(|code| self.redacted(&code).into_owned()),
        };
        let evidence = self.store.tool_evidence(&focus).await?;
        let fixed = self.plan_key(&question, &focus, &evidence);
        let intake = ToolIntake::Plan { focus, evidence };
        let mut key = format!("plan:{fixed}");
        for number in 2..MAX_PLANS {
            let Some((known, _)) = self.store.by_key(&key).await? else {
                break;
            };
            let row = self.store.run(known).await?;
            let has_failed =
                |row: RunRow| matches!(row.state, RunState::Failed | RunState::Cancelled);
            if !row.is_some_and(has_failed) {
                return Ok(Submitted {
                    run: known,
                    joined: true,
                });
            }
            key = format!("plan:{fixed}#{number}");
        }
        self.begin_tools(question, intake, (key, fixed), ids).await
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
        ids: RequestIds,
    ) -> Result<Submitted, Rejected> {
        if self.runner.is_draining() {
            return Err(Rejected::Draining);
        }
        let slot = self.runner.slot().ok_or(Rejected::Busy)?;
        self.pace
            .take(&question.user.id)
            .map_err(|retry_after| Rejected::TooOften { retry_after })?;
        let now = self.clock.now();
        let (policy, id) = (&self.config.policy, RunId::from_uuid(self.clock.new_id()));
        let cap = policy.cap(Mode::Ask);
        let limits = spending::limits(policy, &question, now);
        let accepted = Accepted {
            tools: Some(intake),
            correlation_id: ids.redacted(&self.committee.secrets).correlation_id,
            ..self.accepted(question, cap, self.clock.new_seed())
        };
        let new = NewRun {
            id,
            at: now,
            accepted,
            idempotency_key: Some(key),
            body_hash,
            limits: limits.clone(),
        };
        match self.store.accept(new).await? {
            Acceptance::New => {
                self.runner.run_to_completion(id, slot);
                Ok(Submitted {
                    run: id,
                    joined: false,
                })
            }
            Acceptance::Joined(run) => Ok(Submitted { run, joined: true }),
            Acceptance::KeyReused(_) => {
                Err(Rejected::PlanClosed("this step was already authorized"))
            }
            Acceptance::OverLimit { scope, left } => {
                let spent = spending::spent(&*self.store, policy, limits, (scope, left, cap), now);
                Err(Rejected::Spent(Box::new(spent.await?)))
            }
        }
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
        let (mode, content, steps) = match given.steps {
            AuthorizedSteps::Step(Some(step)) if step != next => {
                return Err(Rejected::PlanClosed("it is not the next step"));
            }
            AuthorizedSteps::Step(_) => (AuthorizationMode::Step, content, vec![next]),
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
                let (checked, evidence) = (modified.clone(), known.evidence.clone());
                let rejection = self
                    .compute(move || validate(&checked, &evidence, &toolbox).err())
                    .await;
                if let Some(rejection) = rejection {
                    return Ok(Authorizing::Rejected(rejection));
                }
                let steps = modified
                    .steps
                    .iter()
                    .map(|step| step.step_id.clone())
                    .collect();
                (AuthorizationMode::Modified, *modified, steps)
            }
        };
        // One key for each first step: a second authorization finds it taken, even at the same time.
        let first = steps.first().cloned().unwrap_or_default();
        let key = format!("execution:{}:{first}", given.plan);
        let authorized = Authorized {
            plan: given.plan,
            mode,
            content,
            steps,
            evidence: known.evidence,
            undoes: None,
            restores: vec![],
        };
        let body_hash = fingerprint(&[json!(authorized).to_string().as_bytes()]);
        let intake = ToolIntake::Execution(Box::new(authorized));
        let started = self.begin_tools(question, intake, (key, body_hash), RequestIds::default());
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
        let row = self.store.run(execution).await?;
        if row.is_none_or(|row| !row.state.is_terminal()) {
            return Err(Rejected::PlanClosed("the execution has not ended"));
        }
        let restores = view::restores(&events);
        if restores.is_empty() {
            return Err(Rejected::PlanClosed("the execution changed no file"));
        }
        let authorized = Authorized {
            mode: AuthorizationMode::Undo,
            steps: vec![],
            undoes: Some(execution),
            restores,
            ..undone
        };
        let body_hash = fingerprint(&[json!(authorized).to_string().as_bytes()]);
        let key = format!("undo:{execution}");
        let intake = ToolIntake::Execution(Box::new(authorized));
        self.begin_tools(question, intake, (key, body_hash), RequestIds::default())
            .await
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
