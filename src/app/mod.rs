//! The running service: [`App`] accepts submissions and answers queries. HTTP and the CLI call it.
//! Only `compose.rs` names implementations.

mod act;
mod action;
mod continuation;
mod answer;
mod auth;
mod client_rate;
mod compose;
mod confirm;
mod database_watch;
mod endings;
mod feedback;
mod followed;
mod metrics_recorder;
mod narrated;
mod offer;
mod plans;
mod problems;
mod propose;
mod rate;
mod request;
mod runner;
mod spending;
mod telemetry;
mod user_rate_limit;

use compose::{committee_of, crashes};
pub use compose::{models, open_store};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, gauge};

use crate::clock::Clock;
use crate::committee::{Deps, Quote, quote};
use crate::compute::ComputePool;
use crate::config::{self, Config};
use crate::domain::{Question, RunId, Usd, counted, fingerprint};
use crate::journal::{
    self, AcceptThen, Acceptance, Accepted, AckTiming, CancelOutcome, Entry, NewRun, Process,
    Proven, RunFilter, RunRow, SpendingLimit, StartOutcome, Store, Wake, read_proven,
};
use crate::llm::{self, CircuitPosition, Registry};
use crate::tools::Toolbox;
use runner::{Begun, Runner, Slot};
use spending::Shortfall;
use user_rate_limit::UserRateLimit;

pub use action::{Acted, Confirmation, ProposalGone};
pub use answer::read_answer;
pub use auth::{Admitted, Authenticator, Refused, Requirement, Token, includes, is_active};
pub use client_rate::ClientRate;
pub use continuation::read_correction;
pub use feedback::{FeedbackRefused, Noted, give_feedback};
pub use plans::{Authorization, AuthorizeOutcome, PlanClosed};
pub use problems::{FieldProblem, bounded};
pub use request::{ActionInput, ActionRequest, ChatInput, ChatRequest, MESSAGE, RequestIds};
pub use spending::Spent;
pub use telemetry::{escaped, init as init_telemetry};

/// The running service.
pub struct App {
    pub config: Config,
    pub clock: Clock,
    pub authenticator: Authenticator,
    pub client_rate: ClientRate,
    user_rate: UserRateLimit,
    acting: act::ActGuards,
    store: Arc<dyn Store>,
    process: Process,
    committee: Arc<Deps>,
    /// `None` if tool plans are off.
    toolbox: Option<Arc<Toolbox>>,
    runner: Runner,
}

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Prompts(#[from] config::Problems),
    #[error(transparent)]
    Llm(#[from] llm::Error),
    /// The weights are missing, or the engine does not support the model.
    #[error("the in-process model of the provider {provider:?} cannot be loaded: {detail}")]
    LocalModel { provider: String, detail: String },
    #[error("TOOLS_WORKSPACE: {path} cannot be opened: {error}")]
    Workspace { path: String, error: std::io::Error },
}

/// Why a question has no quote.
#[derive(Debug, thiserror::Error)]
pub enum QuoteError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Rejected(#[from] Rejected),
}

/// Why a submission was rejected. Its name as a string is its label in counters.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Rejected {
    #[error("the request breaks {}", counted(.0.len(), "rule", "rules"))]
    Invalid(Vec<FieldProblem>),
    #[error("the idempotency key was used with another body")]
    KeyReused { run: RunId },
    #[error("too many runs are in flight")]
    Busy,
    #[error("{0}")]
    #[strum(serialize = "spending_limit")]
    Spent(Box<Spent>),
    #[error("this user asks too often")]
    #[strum(serialize = "rate_limit")]
    TooOften { retry_after: Duration },
    #[error("the service is shutting down")]
    Draining,
    /// Only for actions. Also if the proposal belongs to another user.
    #[error("there is no such proposal")]
    NoSuchProposal,
    #[error(transparent)]
    ProposalGone(ProposalGone),
    #[error("tool plans are off: TOOLS_WORKSPACE is not set")]
    ToolsOff,
    /// Also if the plan belongs to another user.
    #[error("there is no such plan")]
    NoSuchPlan,
    #[error(transparent)]
    PlanClosed(PlanClosed),
    #[error("{0}")]
    Defect(String),
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

impl App {
    /// Opens the journal, the prompts and the models.
    ///
    /// # Errors
    /// [`StartError`]: what cannot be opened, and why.
    pub async fn start(config: Config, clock: Clock) -> Result<Arc<App>, StartError> {
        let owner = clock.new_id().to_string();
        // Installs the recorder, whose clock takes some milliseconds to calibrate.
        let metrics = tokio::task::spawn_blocking(metrics_recorder::metrics);
        let store = open_store(&config.database, &owner).await?;
        let models = models(&config).await?;
        let compute = ComputePool::after(crashes(&config));
        // It panics only if the recorder does.
        let _ = metrics.await;
        Self::assemble(config, clock, store, owner, models, compute)
    }

    /// As [`App::start`], with a given store, which was opened for `owner`, and given models.
    ///
    /// # Errors
    /// [`StartError::Prompts`].
    pub fn assemble(
        config: Config,
        clock: Clock,
        store: Arc<dyn Store>,
        owner: String,
        models: Registry,
        compute: ComputePool,
    ) -> Result<Arc<App>, StartError> {
        let committee = Arc::new(committee_of(&config, models)?);
        // Installs the recorder, if it is not. Metrics recorded before this are lost.
        let _ = metrics_recorder::metrics();
        let toolbox = compose::toolbox(&config)?;
        let process = Process {
            store: Arc::clone(&store),
            clock: clock.clone(),
            wake: Wake::default(),
            compute,
        };
        let tools = toolbox.clone();
        let runner = Runner::new(process.clone(), Arc::clone(&committee), owner, tools);
        let authenticator = Authenticator::new(&config, store.clone(), clock.clone());
        let client_rate = ClientRate::new(&config.policy.limits);
        let user_rate = UserRateLimit::new(&config.policy.limits);
        let acting = act::ActGuards::new(&config.policy.actions);
        Ok(Arc::new(Self {
            config,
            clock,
            authenticator,
            client_rate,
            user_rate,
            acting,
            store,
            process,
            committee,
            toolbox,
            runner,
        }))
    }

    /// Checks the rules of a chat.
    ///
    /// # Errors
    /// [`Rejected::Invalid`].
    pub fn chat_request(&self, input: ChatInput) -> Result<ChatRequest, Rejected> {
        let limits = &self.config.policy.limits;
        let parsed = ChatRequest::parse(input, limits, &self.committee.secrets);
        parsed.map_err(|problems| count(Rejected::Invalid(problems)))
    }

    /// Accepts a question and starts its run, or returns that of an earlier request with the same key
    /// and body. The run is in the journal when this returns.
    ///
    /// # Errors
    /// [`Rejected`].
    pub async fn submit(
        &self,
        chat: ChatRequest,
        ids: RequestIds,
        ack: AckTiming,
    ) -> Result<RunId, Rejected> {
        let submitted = self.take_on(chat.0, ids, ack).await;
        submitted.map_err(count)
    }

    async fn take_on(
        &self,
        question: Question,
        ids: RequestIds,
        ack: AckTiming,
    ) -> Result<RunId, Rejected> {
        let RequestIds {
            idempotency_key,
            correlation_id,
        } = ids.redacted(&self.committee.secrets);
        let body = serde_json::to_string(&question).unwrap_or_default();
        let body_hash = fingerprint(&[body.as_bytes()]);
        let key = continuation::idempotency_key(&question, idempotency_key.as_deref());
        // A repeated request gets its run, whatever the user's last reply is by now.
        if let Some(known) = self.known(key.as_deref(), &body_hash).await? {
            return Ok(known);
        }
        let anew = continuation::without_new_prefix(&question.message).map(str::to_owned);
        let ignores_learned = anew.is_some();
        let (question, continues) = match anew {
            // The question loses the prefix `new:` and continues nothing.
            Some(message) => (
                Question {
                    message,
                    ..question
                },
                None,
            ),
            None => {
                let (store, policy, now) = (&*self.store, &self.config.policy, self.clock.now());
                let continues = continuation::find(store, policy, &question, now).await?;
                (question, continues)
            }
        };
        let slot = self.runner.slot().filter(|_| !self.runner.is_draining());
        let cap = self.config.policy.cap(question.mode);
        let accepted = Accepted {
            ignores_learned,
            continues,
            correlation_id,
            ..self.accepted(question, cap, self.clock.new_seed())
        };
        let Some(slot) = slot else {
            // A repeated request costs nothing, so it is answered all the same.
            return match self.known(key.as_deref(), &body_hash).await? {
                Some(known) => Ok(known),
                None if self.runner.is_draining() => Err(Rejected::Draining),
                None => Err(Rejected::Busy),
            };
        };
        // A repeated question waits here for the first one and then joins its run. So the user rate
        // limit does not refuse it.
        let turn = self.user_rate.acquire(&accepted.question.user.id).await;
        if turn.is_some()
            && let Some(known) = self.known(key.as_deref(), &body_hash).await?
        {
            return Ok(known);
        }
        let new = self.new_run(accepted, key, body_hash);
        self.admit(new, ack, slot).await
    }

    /// Returns a run to be accepted now, with the spending limits of its question.
    fn new_run(
        &self,
        accepted: Accepted,
        idempotency_key: Option<String>,
        body_hash: String,
    ) -> NewRun {
        let at = self.clock.now();
        NewRun {
            id: RunId::from_uuid(self.clock.new_id()),
            at,
            limits: spending::limits(&self.config.policy, &accepted.question, at),
            accepted,
            idempotency_key,
            body_hash,
        }
    }

    /// Accepts a run within the spending limits and starts it, unless its user asks too often.
    async fn admit(&self, new: NewRun, ack: AckTiming, slot: Slot) -> Result<RunId, Rejected> {
        let accepted = &new.accepted;
        self.user_rate
            .take(&accepted.question.user.id)
            .map_err(|retry_after| Rejected::TooOften { retry_after })?;
        let labels = labels(accepted);
        let (id, cap, limits) = (new.id, accepted.cap, new.limits.clone());
        // A run that may begin at once is claimed in the transaction that accepts it.
        let (acceptance, begun) = match self.runner.run_slot() {
            None => (self.store.accept(new).await?, None),
            Some(start) => {
                let accepted = new.accepted.clone();
                let claim = self.claim(self.config.policy.lease, ack);
                match self.store.begin(new, claim).await? {
                    StartOutcome::Leased(lease) => {
                        let begun = Begun {
                            lease,
                            start: Some(start),
                            accepted: Some(accepted),
                        };
                        (Acceptance::New, Some(begun))
                    }
                    StartOutcome::Refused(not) => (not, None),
                    StartOutcome::Finished | StartOutcome::Conflict => (Acceptance::New, None),
                }
            }
        };
        if acceptance != Acceptance::New {
            return self.joined(acceptance, cap, limits).await;
        }
        count_run(labels);
        self.runner.run_to_completion(id, slot, begun);
        Ok(id)
    }

    fn claim(&self, lease: Duration, ack: AckTiming) -> AcceptThen {
        AcceptThen::Claim {
            owner: self.runner.owner().to_owned(),
            lease,
            ack,
        }
    }

    /// Returns the run that a submission joins, if the store did not accept it as a new one.
    async fn joined(
        &self,
        not: Acceptance,
        needed: Usd,
        limits: Vec<SpendingLimit>,
    ) -> Result<RunId, Rejected> {
        match not {
            Acceptance::Joined(run) => Ok(run),
            Acceptance::KeyReused(run) => Err(Rejected::KeyReused { run }),
            Acceptance::OverLimit { scope, left } => {
                let (store, policy, now) = (&*self.store, &self.config.policy, self.clock.now());
                let shortfall = Shortfall {
                    scope,
                    left,
                    needed,
                };
                let spent = spending::spent(store, policy, limits, shortfall, now);
                Err(Rejected::Spent(Box::new(spent.await?)))
            }
            Acceptance::New => Err(Rejected::Draining),
        }
    }

    /// Returns the first event of a run that continues nothing.
    fn accepted(&self, question: Question, cap: Usd, seed: u64) -> Accepted {
        Accepted {
            question,
            action: None,
            tools: None,
            narrates: None,
            ignores_learned: false,
            continues: None,
            correlation_id: None,
            cap,
            seed,
            config_hash: self.config.hash.clone(),
            prompts_hash: self.committee.prompts.hash().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Runs a CPU-heavy part of a request off the async workers.
    pub async fn compute<T>(&self, piece: impl FnOnce() -> T + Send) -> T {
        self.process.compute.run(piece).await
    }

    /// Returns the run of an earlier request with this key and body.
    async fn known(&self, key: Option<&str>, body_hash: &str) -> Result<Option<RunId>, Rejected> {
        let Some(key) = key else { return Ok(None) };
        match self.store.by_key(key).await? {
            Some((run, known)) if known == body_hash => Ok(Some(run)),
            Some((run, _)) => Err(Rejected::KeyReused { run }),
            None => Ok(None),
        }
    }

    /// Returns the text without configured secrets.
    pub fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        llm::without_secrets(text, &self.committee.secrets)
    }

    pub async fn run(&self, id: RunId) -> Result<Option<RunRow>, journal::Error> {
        self.store.run(id).await
    }

    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, journal::Error> {
        self.store.runs(filter).await
    }

    pub async fn entries(&self, run: RunId) -> Result<Vec<Entry>, journal::Error> {
        self.store.entries(run, 0).await
    }

    /// Reads a run and proves that it was not altered.
    ///
    /// # Errors
    /// As [`read_proven`].
    pub async fn proven(&self, run: RunId) -> Result<Option<Proven>, journal::Error> {
        read_proven(&*self.store, run).await
    }

    /// Requests the cancellation of a run. A run of this process stops at once. A run of another
    /// process stops when that process is notified.
    pub async fn cancel(&self, run: RunId) -> Result<CancelOutcome, journal::Error> {
        let outcome = self.store.cancel(run).await?;
        if outcome == CancelOutcome::Requested {
            self.runner.cancel(run);
        }
        Ok(outcome)
    }

    /// Returns the runs that this process works on.
    pub fn own_runs(&self) -> Vec<RunId> {
        self.runner.own_runs()
    }

    /// Reads the whole database, and returns what is damaged in it.
    ///
    /// # Errors
    /// [`journal::Error`] if the database cannot be read.
    pub async fn damage(&self) -> Result<Option<String>, journal::Error> {
        self.store.damage().await
    }

    /// Checks that a run could be accepted and finished. The database must answer, every enabled
    /// role must have a model, and the service must not be shutting down.
    pub async fn ready(&self) -> Result<(), String> {
        self.store
            .ready()
            .await
            .map_err(|error| error.to_string())?;
        let missing: Vec<String> = self
            .committee
            .roles
            .iter()
            .filter(|(_, model)| self.committee.models.model(&model.provider).is_none())
            .map(|(role, model)| format!("{role} has no provider {}", model.provider))
            .collect();
        if self.runner.is_draining() {
            return Err("shutting down".into());
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(missing.join("; "))
        }
    }

    /// Takes over the runs of dead or silent processes until the service drains. Also exchanges
    /// notifications of runs with the other processes on the database, and logs when it is lost.
    pub fn keep_recovering(&self) {
        self.runner.watch_database();
        self.runner.keep_in_touch();
        self.runner.keep_recovering();
    }

    /// Stops accepting runs and waits for those in flight, at most for `patience`. Unfinished runs
    /// are taken over later.
    pub async fn drain(&self, patience: Duration) {
        self.runner.drain(patience).await;
    }

    /// Estimates the cost of a question without a model call.
    pub fn quote(&self, chat: &ChatRequest) -> Quote {
        quote(&self.committee, chat.question())
    }

    /// As [`App::quote`], without a journal.
    ///
    /// # Errors
    /// [`QuoteError::Start`] if a model or the prompts cannot be opened.
    pub async fn quote_only(config: &Config, input: ChatInput) -> Result<Quote, QuoteError> {
        let committee = committee_of(config, models(config).await?)?;
        let chat = ChatRequest::parse(input, &config.policy.limits, &committee.secrets)
            .map_err(Rejected::Invalid)?;
        Ok(quote(&committee, chat.question()))
    }

    /// Returns the metrics of the process in Prometheus text format.
    pub fn metrics(&self) -> String {
        let (in_flight, most) = self.runner.load();
        gauge!("conclave_runs_in_flight").set(in_flight as f64);
        gauge!("conclave_runs_in_flight_limit").set(most as f64);
        gauge!("conclave_draining").set(if self.runner.is_draining() { 1.0 } else { 0.0 });
        for circuit in self.committee.models.circuits() {
            let labels = [("provider", circuit.provider), ("model", circuit.model)];
            gauge!("conclave_circuit_open", &labels).set(match circuit.state {
                CircuitPosition::Closed => 0.0,
                CircuitPosition::HalfOpen => 0.5,
                CircuitPosition::Open => 1.0,
            });
            gauge!("conclave_circuit_openings", &labels).set(circuit.opened_total as f64);
        }
        for (provider, model, load) in self.committee.models.loads() {
            let labels = [("provider", provider), ("model", model)];
            gauge!("conclave_provider_limit", &labels).set(load.limit as f64);
            gauge!("conclave_provider_calls", &labels).set(load.in_flight as f64);
            gauge!("conclave_provider_waiting", &labels).set(load.waiting as f64);
        }
        gauge!("conclave_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        metrics_recorder::metrics().map_or_else(
            String::new,
            metrics_exporter_prometheus::PrometheusHandle::render,
        )
    }

    pub fn committee(&self) -> &Deps {
        &self.committee
    }
}

/// Returns what metrics call a run: its mode or kind, and its source.
fn labels(accepted: &Accepted) -> [&'static str; 2] {
    [accepted.label(), accepted.question.source.into_str()]
}

/// Counts an accepted run.
fn count_run([mode, source]: [&'static str; 2]) {
    counter!("conclave_runs_accepted_total", "mode" => mode, "source" => source).increment(1);
}

/// Counts a refusal.
fn count(rejected: Rejected) -> Rejected {
    counter!("conclave_refused_total", "reason" => rejected.into_str()).increment(1);
    rejected
}
