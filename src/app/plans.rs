//! Accepts requests for tool plans and authorizations, and shows plans and executions.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::request::{check_focus, is_own};
use super::{ActionInput, ActionRequest, App, FieldProblem, Rejected, RequestIds, count};
use crate::committee::Quote;
use crate::domain::{
    Context, EvidenceFocus, Question, Role, RunId, Source, ToolPlan, Usd, User, fingerprint,
};
use crate::journal::{
    Accepted, AckTiming, AuthorizationMode, Authorized, Event, Rejection, RejectionKind, RunRow,
    RunState, StepChanges, ToolSubmission, Transcript,
};
use crate::tools::answers::{AuthorizeMode, ExecutionState, ExecutionView, PlanState, PlanView};
use crate::tools::validate::{changes_others, validate};
use crate::tools::view;
use crate::tools::{self, Tool, Toolbox};

/// How often a request is planned again after its plan failed.
const MAX_PLANS: u32 = 100;

/// An execution of a plan with its events.
type Execution = (RunRow, Vec<Event>);

/// What the user of a plan authorizes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "AuthorizeBody")]
pub struct Authorization {
    source: Source,
    user: User,
    /// Default: that of the plan.
    context: Option<Context>,
    mode: AuthorizeMode,
    /// With the mode `step` only: the step, which must be the next one. Default: the next one.
    #[schemars(length(min = 1, max = 40))]
    step_id: Option<String>,
    /// With the modes `modified` and `check`: the plan as the user changed it. It is checked again.
    #[serde(default)]
    #[schemars(with = "ToolPlan")]
    plan: Option<ToolPlan>,
    /// With the mode `modified`: the changes that the user was shown, as `check` answered them. The plan
    /// is rejected if it would change other files now.
    #[serde(default)]
    #[schemars(with = "Vec<StepChanges>")]
    changes: Option<Vec<StepChanges>>,
}

/// What became of an authorization.
pub enum AuthorizeOutcome {
    /// The run of the execution.
    Begun(RunId),
    /// The plan as the user changed it is refused.
    Refused(Box<Rejection>),
    /// The plan as the user changed it can be authorized.
    Checked(Vec<StepChanges>),
}

/// Why a plan or an execution takes no authorization or undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanClosed {
    #[error("the plan is not finished yet")]
    NotPlanned,
    #[error("there is no plan: its run failed or was cancelled; send the request again")]
    NoPlan,
    #[error("the plan was rejected")]
    Rejected,
    #[error("all steps are executed")]
    Completed,
    #[error("a step failed, which halts the plan")]
    Halted,
    #[error("the plan was cancelled")]
    Cancelled,
    #[error(
        "an execution of the plan is under way; after a crash a running service (conclave serve) ends it"
    )]
    Executing,
    #[error("it is not the next step")]
    NotNextStep,
    #[error("a plan can be changed before its first step only")]
    Begun,
    /// The workspace of the plan is not the one that is open.
    #[error("{}", tools::ELSEWHERE)]
    OtherWorkspace,
    #[error(
        "the execution has not ended: wait for its explanation; after a crash a running service \
         (conclave serve) ends it"
    )]
    NotEnded,
    #[error("the execution changed no file")]
    NothingToUndo,
}

impl App {
    fn tools(&self) -> Result<Toolbox, Rejected> {
        let toolbox = self.toolbox.as_deref().ok_or(Rejected::ToolsOff)?;
        Ok(toolbox.current())
    }

    /// Accepts a request for a plan. The same request with the same evidence, tools, prompts and
    /// model joins the run that answered it before.
    ///
    /// # Errors
    /// [`Rejected`].
    pub async fn plan_tools(
        &self,
        input: ActionInput,
        focus: EvidenceFocus,
        ids: RequestIds,
    ) -> Result<RunId, Rejected> {
        let planned = self.take_plan_on(input, focus, ids).await;
        planned.map_err(count)
    }

    async fn take_plan_on(
        &self,
        input: ActionInput,
        focus: EvidenceFocus,
        ids: RequestIds,
    ) -> Result<RunId, Rejected> {
        let (question, focus, evidence) = self.plan_request(input, focus).await?;
        let workspace = self.tools()?.workspace_path();
        let fixed = self.plan_key(&question, &workspace, &focus, &evidence);
        let submission = ToolSubmission::Plan {
            focus,
            evidence,
            workspace,
        };
        let mut key = format!("plan:{fixed}");
        for number in 2..=MAX_PLANS {
            let Some((run, _)) = self.store.by_key(&key).await? else {
                break;
            };
            if self.can_join(run).await? {
                return Ok(run);
            }
            key = format!("plan:{fixed}#{number}");
        }
        let cap = self.config.policy.tools_max;
        let accepted = Accepted {
            tools: Some(submission),
            correlation_id: ids.redacted(&self.committee.secrets).correlation_id,
            ..self.accepted(question, cap, self.clock.new_seed())
        };
        self.begin_tools(accepted, key, fixed).await
    }

    /// Estimates the cost of a plan, and of the explanation of its execution, without a model call.
    ///
    /// # Errors
    /// [`Rejected`].
    pub async fn quote_plan(
        &self,
        input: ActionInput,
        focus: EvidenceFocus,
    ) -> Result<Quote, Rejected> {
        let request = self.plan_request(input, focus).await;
        let (question, focus, evidence) = request.map_err(count)?;
        let (deps, cap) = (&self.committee, self.config.policy.tools_max);
        let priced = || tools::quote(deps, &question.message, &focus, &evidence, cap);
        let quote = self.compute(priced).await;
        quote.map_err(|failure| Rejected::Defect(failure.to_string()))
    }

    /// Checks the rules of a request for a plan, and reads its evidence.
    async fn plan_request(
        &self,
        input: ActionInput,
        focus: EvidenceFocus,
    ) -> Result<(Question, EvidenceFocus, Value), Rejected> {
        let toolbox = self.tools()?;
        let limits = &self.config.policy.limits;
        let parsed = ActionRequest::parse(input, limits, &self.committee.secrets)
            .map_err(Rejected::Invalid)?;
        check_focus(&focus).map_err(Rejected::Invalid)?;
        let file = focus.file.map(|file| {
            let file = toolbox.relative(&self.redacted(&file));
            file.map_err(|why| invalid("/file", &why))
        });
        let file = file.transpose()?;
        let diagnostic = focus
            .diagnostic
            .map(|code| self.redacted(&code).into_owned());
        let no_index = tools::no_index(&toolbox).await;
        let focus = EvidenceFocus {
            file,
            diagnostic,
            no_index,
        };
        let evidence = self.store.tool_evidence(&focus).await?;
        Ok((parsed.0, focus, evidence))
    }

    /// True if a stored plan still holds. A plan is made anew if it failed, was halted, or was rejected
    /// because of files that have changed since.
    async fn can_join(&self, plan: RunId) -> Result<bool, Rejected> {
        use RejectionKind::{ForbiddenOperation, PreconditionFailed};
        let row = self.store.run(plan).await?;
        if row.is_some_and(|row| matches!(row.state, RunState::Failed | RunState::Cancelled)) {
            return Ok(false);
        }
        let Some(view) = self.tool_plan(plan).await? else {
            return Ok(true);
        };
        let rests_on_files = |rejection: &Rejection| {
            matches!(rejection.kind, PreconditionFailed | ForbiddenOperation)
        };
        let holds = match view.rejection.filter(rests_on_files) {
            None => true,
            Some(then) => {
                let toolbox = self.tools()?;
                let check = || validate(&view.plan, &view.evidence, &toolbox);
                let now = self.compute(check).await.err();
                now.is_some_and(|now| now.message == then.message)
            }
        };
        Ok(!matches!(view.state, PlanState::Halted | PlanState::Cancelled) && holds)
    }

    /// Returns the fingerprint of all that decides a plan.
    fn plan_key(
        &self,
        question: &Question,
        workspace: &str,
        focus: &EvidenceFocus,
        evidence: &Value,
    ) -> String {
        let model = self.committee.roles.get(&Role::Master);
        let model = model.map(|model| model.model.clone()).unwrap_or_default();
        let described = |tool: &Tool| json!([tool.name(), tool.schema()]);
        let catalog: Vec<Value> = Tool::ALL.iter().map(described).collect();
        let parts = json!([
            question.source,
            question.user.id,
            question.context.guild_id,
            question.message,
            workspace,
            focus,
            evidence,
            catalog,
            self.committee.prompts.hash(),
            model,
        ]);
        fingerprint(&[parts.to_string().as_bytes()])
    }

    /// Returns why a run has no plan.
    ///
    /// # Errors
    /// [`Rejected::Journal`].
    pub async fn why_unplanned(&self, plan: RunId) -> Result<PlanClosed, Rejected> {
        let row = self.store.run(plan).await?;
        Ok(match row {
            Some(row) if row.state.is_terminal() => PlanClosed::NoPlan,
            _ => PlanClosed::NotPlanned,
        })
    }

    async fn begin_tools(
        &self,
        accepted: Accepted,
        key: String,
        body_hash: String,
    ) -> Result<RunId, Rejected> {
        if self.runner.is_draining() {
            return Err(Rejected::Draining);
        }
        let slot = self.runner.slot().ok_or(Rejected::Busy)?;
        let new = self.new_run(accepted, Some(key), body_hash);
        let admitted = self.admit(new, AckTiming::Immediate, slot).await;
        admitted.map_err(|rejected| match rejected {
            Rejected::KeyReused { .. } => Rejected::PlanClosed(PlanClosed::Executing),
            other => other,
        })
    }

    async fn begin_execution(
        &self,
        question: Question,
        authorized: Authorized,
        key: String,
        cap: Usd,
    ) -> Result<RunId, Rejected> {
        let body_hash = fingerprint(&[json!(authorized).to_string().as_bytes()]);
        let accepted = Accepted {
            tools: Some(ToolSubmission::Execution(Box::new(authorized))),
            ..self.accepted(question, cap, self.clock.new_seed())
        };
        self.begin_tools(accepted, key, body_hash).await
    }

    /// Starts the execution of steps that the plan's own user authorized, each step once.
    ///
    /// # Errors
    /// [`Rejected::NoSuchPlan`] also for another user's plan, [`Rejected::PlanClosed`] if the plan
    /// waits for no such authorization.
    pub async fn authorize(
        &self,
        plan: RunId,
        given: Authorization,
    ) -> Result<AuthorizeOutcome, Rejected> {
        let authorized = self.take_authorization_on(plan, given).await;
        authorized.map_err(count)
    }

    async fn take_authorization_on(
        &self,
        plan: RunId,
        given: Authorization,
    ) -> Result<AuthorizeOutcome, Rejected> {
        let toolbox = self.tools()?;
        let closed = |why| Err(Rejected::PlanClosed(why));
        require_fitting(&given)?;
        let (events, executions) = self.plan_events(plan).await?;
        let question = own_question(&events, given.source, given.user, given.context.as_ref())?;
        require_workspace(view::workspace(&events), &toolbox)?;
        if executions.iter().any(|(row, _)| !row.state.is_terminal()) {
            return closed(PlanClosed::Executing);
        }
        let Some(known) = view::plan_view(plan, &events, &executions) else {
            return closed(self.why_unplanned(plan).await?);
        };
        require_open(known.state)?;
        let next = known.next_step.clone().unwrap_or_default();
        let mut authorized = authorization_of(plan, known, toolbox.workspace_path());
        let mut cap = self.config.policy.tools_max;
        match given.mode {
            AuthorizeMode::Step if given.step_id.is_some_and(|step| step != next) => {
                return closed(PlanClosed::NotNextStep);
            }
            AuthorizeMode::Step => {
                authorized.mode = AuthorizationMode::Step;
                authorized.steps = vec![next];
            }
            AuthorizeMode::Plan => {
                let all = ids(&authorized.content).into_iter();
                authorized.steps = all.skip_while(|id| *id != next).collect();
            }
            AuthorizeMode::Cancel => {
                authorized.mode = AuthorizationMode::Cancel;
                authorized.changes.clear();
                cap = Usd::ZERO; // It calls no model.
            }
            AuthorizeMode::Modified | AuthorizeMode::Check if !executions.is_empty() => {
                return closed(PlanClosed::Begun);
            }
            AuthorizeMode::Modified | AuthorizeMode::Check => {
                let changed = given.plan.ok_or_else(|| invalid("/plan", "is missing"))?;
                let shown = given.changes;
                if let Some(rejection) = self.change(&mut authorized, changed, shown).await? {
                    return Ok(AuthorizeOutcome::Refused(rejection));
                }
                if given.mode == AuthorizeMode::Check {
                    return Ok(AuthorizeOutcome::Checked(authorized.changes));
                }
            }
        }
        // All authorizations at one time contend for one key, so a step is executed once.
        let key = format!("execution:{plan}#{}", executions.len());
        let begun = self.begin_execution(question, authorized, key, cap).await?;
        Ok(AuthorizeOutcome::Begun(begun))
    }

    /// Replaces the plan of an authorization by that of the user. Returns why it is refused, if it is.
    async fn change(
        &self,
        authorized: &mut Authorized,
        changed: ToolPlan,
        shown: Option<Vec<StepChanges>>,
    ) -> Result<Option<Box<Rejection>>, Rejected> {
        let plan_id = authorized.plan.to_string();
        let changed = tools::completed(ToolPlan { plan_id, ..changed });
        self.require_no_secret(&changed)?;
        authorized.content = changed;
        let toolbox = self.tools()?;
        let check = || validate(&authorized.content, &authorized.evidence, &toolbox);
        match self.compute(check).await {
            Ok(changes) => match shown.filter(|shown| *shown != changes) {
                Some(_) => return Ok(Some(changes_others(&changes))),
                None => authorized.changes = changes,
            },
            Err(rejection) => return Ok(Some(rejection)),
        }
        authorized.mode = AuthorizationMode::Modified;
        authorized.steps = ids(&authorized.content);
        Ok(None)
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
    ) -> Result<RunId, Rejected> {
        let undone = self.take_undo_on(execution, source, user).await;
        undone.map_err(count)
    }

    async fn take_undo_on(
        &self,
        execution: RunId,
        source: Source,
        user: User,
    ) -> Result<RunId, Rejected> {
        let toolbox = self.tools()?;
        let events = self.events_of(execution).await?;
        let undone = view::authorized(&events).ok_or(Rejected::NoSuchPlan)?;
        let (of_plan, executions) = self.plan_events(undone.plan).await?;
        let question = own_question(&of_plan, source, user, None)?;
        require_workspace(&undone.workspace, &toolbox)?;
        let row = self.store.run(execution).await?;
        if row.is_none_or(|row| !row.state.is_terminal()) {
            return Err(Rejected::PlanClosed(PlanClosed::NotEnded));
        }
        let restores = tools::restores(&events);
        if restores.is_empty() {
            return Err(Rejected::PlanClosed(PlanClosed::NothingToUndo));
        }
        let authorized = Authorized {
            mode: AuthorizationMode::Undo,
            steps: vec![],
            changes: vec![],
            undoes: Some(execution),
            restores,
            ..undone.clone()
        };
        let undoes = executions.iter().filter(|(row, events)| {
            let undone = view::authorized(events).and_then(|it| it.undoes);
            row.state.is_terminal() && undone == Some(execution)
        });
        let is_complete =
            |events: &[Event]| view::execution_state(events) == ExecutionState::Completed;
        // An undo can be tried again if it did not complete, if a later execution follows it, or if
        // its files changed since. The later execution may have undone this undo.
        let last = executions.last().map(|(row, _)| row.id);
        let is_back = tools::is_put_back(&toolbox, authorized.restores.clone()).await;
        let is_over = |row: &RunRow, events: &[Event]| {
            !is_complete(events) || Some(row.id) != last || !is_back
        };
        let tried = undoes.filter(|(row, events)| is_over(row, events));
        let key = format!("undo:{execution}#{}", tried.count());
        // It calls no model.
        self.begin_execution(question, authorized, key, Usd::ZERO)
            .await
    }

    /// Refuses a plan that a user wrote with a secret of the service, which the journal must not keep.
    fn require_no_secret(&self, plan: &ToolPlan) -> Result<(), Rejected> {
        let text = json!(plan).to_string();
        if self.redacted(&text) == text {
            return Ok(());
        }
        Err(invalid(
            "/plan",
            "contains a secret of this service, which the journal must not keep",
        ))
    }

    /// Returns a plan with its executions; `None` if the run has none.
    ///
    /// # Errors
    /// [`Rejected::NoSuchPlan`] and [`Rejected::Journal`].
    pub async fn tool_plan(&self, id: RunId) -> Result<Option<PlanView>, Rejected> {
        let (events, executions) = self.plan_events(id).await?;
        Ok(view::plan_view(id, &events, &executions))
    }

    /// Returns an execution with the plan that led to it.
    ///
    /// # Errors
    /// [`Rejected::NoSuchPlan`] and [`Rejected::Journal`].
    pub async fn execution(&self, id: RunId) -> Result<ExecutionView, Rejected> {
        let events = self.events_of(id).await?;
        let authorized = view::authorized(&events).ok_or(Rejected::NoSuchPlan)?;
        let of_plan = self.events_of(authorized.plan).await?;
        view::execution_view(id, &events, &of_plan).ok_or(Rejected::NoSuchPlan)
    }

    /// Returns the events of a plan, and its executions with theirs, oldest first.
    async fn plan_events(&self, id: RunId) -> Result<(Vec<Event>, Vec<Execution>), Rejected> {
        let events = self.events_of(id).await?;
        let accepted = Transcript::of(&events).accepted;
        let tools = accepted.and_then(|accepted| accepted.tools.as_ref());
        if !matches!(tools, Some(ToolSubmission::Plan { .. })) {
            return Err(Rejected::NoSuchPlan);
        }
        let mut executions = vec![];
        for row in self.store.executions(id).await? {
            let events = self.events_of(row.id).await?;
            executions.push((row, events));
        }
        Ok((events, executions))
    }

    async fn events_of(&self, run: RunId) -> Result<Vec<Event>, Rejected> {
        let entries = self.store.entries(run, 0).await?;
        Ok(entries.into_iter().map(|entry| entry.event).collect())
    }
}

/// # Errors
/// [`Rejected::PlanClosed`] if a plan or an execution is of another workspace than the one that is
/// open.
fn require_workspace(of: &str, open: &Toolbox) -> Result<(), Rejected> {
    if open.is_of(of) {
        Ok(())
    } else {
        Err(Rejected::PlanClosed(PlanClosed::OtherWorkspace))
    }
}

/// # Errors
/// [`Rejected::PlanClosed`] if no step of a plan in this state can be authorized.
fn require_open(state: PlanState) -> Result<(), Rejected> {
    let why = match state {
        PlanState::Proposed | PlanState::Underway => return Ok(()),
        PlanState::Rejected => PlanClosed::Rejected,
        PlanState::Completed => PlanClosed::Completed,
        PlanState::Halted => PlanClosed::Halted,
        PlanState::Cancelled => PlanClosed::Cancelled,
    };
    Err(Rejected::PlanClosed(why))
}

/// Returns the authorization of a plan with the files that the user was shown, without the steps that
/// it is for.
fn authorization_of(plan: RunId, known: PlanView, workspace: String) -> Authorized {
    let (content, changes) = match known.modified {
        Some(modified) => (modified.plan, modified.changes),
        None => (known.plan, known.changes),
    };
    Authorized {
        plan,
        mode: AuthorizationMode::Plan,
        content,
        steps: vec![],
        evidence: known.evidence,
        workspace,
        changes,
        undoes: None,
        restores: vec![],
    }
}

/// # Errors
/// [`Rejected::Invalid`] if a field does not fit the mode of an authorization.
fn require_fitting(given: &Authorization) -> Result<(), Rejected> {
    use AuthorizeMode::{Check, Modified, Step};
    if given.step_id.is_some() && given.mode != Step {
        return Err(invalid("/stepId", "is for the mode step only"));
    }
    if given.plan.is_some() && !matches!(given.mode, Modified | Check) {
        return Err(invalid("/plan", "is for the modes modified and check only"));
    }
    if given.changes.is_some() && given.mode != Modified {
        return Err(invalid("/changes", "is for the mode modified only"));
    }
    Ok(())
}

fn ids(plan: &ToolPlan) -> Vec<String> {
    plan.steps.iter().map(|step| step.step_id.clone()).collect()
}

/// Rejects a request for one field.
fn invalid(pointer: &str, detail: &str) -> Rejected {
    Rejected::Invalid(vec![FieldProblem::new(pointer, detail)])
}

/// Returns the question of the execution: the plan's request by its own user.
fn own_question(
    events: &[Event],
    source: Source,
    user: User,
    context: Option<&Context>,
) -> Result<Question, Rejected> {
    let accepted = Transcript::of(events).accepted;
    let asked = &accepted.ok_or(Rejected::NoSuchPlan)?.question;
    let context = context.unwrap_or(&asked.context);
    if !is_own(asked, source, &user, context) {
        return Err(Rejected::NoSuchPlan);
    }
    Ok(Question {
        user,
        ..asked.clone()
    })
}
