//! Executes runs. Every task of the service has an owner here, a deadline, and a way to cancel it.

mod begun;
mod leases;
mod notifications;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tracing::Instrument as _;

use super::database_watch;
use super::endings::{ending, internal, log_ending};
use crate::actions;
use crate::committee::{Deps, Failure};
use crate::domain::{RunId, RunKind, Usd};
use crate::journal::views;
use crate::journal::{
    self, Accepted, Cause, Claim, Ending, Event, Finished, Lease, LeaseState, Process, RunContext,
    Stop,
};
use crate::llm::{RunSlot, RunSlots};
use crate::strategies;
use crate::tools::{self, Toolbox};
use begun::Own;
use leases::TakeOverGuard;

pub(super) use begun::Begun;

/// How often a process looks for runs that no process executes.
pub(super) const POLL: Duration = Duration::from_secs(1);

/// How often the end of a run that this process executes is looked for, besides the notification.
pub(super) const HELD_POLL: Duration = Duration::from_secs(15);

/// A run fails after more than this number of claims in a row without progress, whatever the cause.
const MAX_IDLE_BEGINS: usize = 50;
/// A run with a higher epoch fails without its journal being read.
const MAX_EPOCHS: i64 = 1000;

/// The number of other processes' runs that a process takes over first, the oldest ones. The number
/// doubles each second. A process that soon dies again thus finishes these runs, instead of
/// starting all and finishing none.
const FIRST_TAKEN_OVER: usize = 2;

/// A run fails after it has crashed this number of processes.
const MAX_CRASHES: u32 = 3;

/// A permit for one more run in flight.
pub(super) type Slot = OwnedSemaphorePermit;

#[derive(Clone)]
pub(super) struct Runner(Arc<Inner>);

struct Inner {
    process: Process,
    committee: Arc<Deps>,
    /// `None` if tool plans are off.
    tools: Option<Arc<Toolbox>>,
    owner: String,
    slots: Arc<Semaphore>,
    /// Lets runs begin in the order of their acceptance.
    run_slots: Arc<RunSlots>,
    /// Runs of other processes that may execute at a time.
    taken_over: Arc<Semaphore>,
    tasks: TaskTracker,
    readers: TaskTracker,
    draining: CancellationToken,
    /// Set when a drain no longer waits for runs.
    drained: CancellationToken,
    /// The log has the loss already.
    database_lost: AtomicBool,
    own: Mutex<HashMap<RunId, Own>>,
}

impl Runner {
    pub fn new(
        process: Process,
        committee: Arc<Deps>,
        owner: String,
        tools: Option<Arc<Toolbox>>,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(committee.policy.limits.max_in_flight));
        let run_slots = committee.run_slots();
        Self(Arc::new(Inner {
            process,
            committee,
            tools,
            owner,
            slots,
            run_slots: Arc::new(run_slots),
            taken_over: Arc::new(Semaphore::new(FIRST_TAKEN_OVER)),
            tasks: TaskTracker::new(),
            readers: TaskTracker::new(),
            draining: CancellationToken::new(),
            drained: CancellationToken::new(),
            database_lost: AtomicBool::new(false),
            own: Mutex::default(),
        }))
    }

    pub fn slot(&self) -> Option<Slot> {
        Arc::clone(&self.0.slots).try_acquire_owned().ok()
    }

    /// Returns the number of runs in flight, and the maximum.
    pub fn load(&self) -> (usize, usize) {
        let most = self.0.committee.policy.limits.max_in_flight;
        (most.saturating_sub(self.0.slots.available_permits()), most)
    }

    pub fn is_draining(&self) -> bool {
        self.0.draining.is_cancelled()
    }

    /// Returns the permission for a run to begin, unless runs wait for it.
    pub fn run_slot(&self) -> Option<RunSlot> {
        self.0.run_slots.try_acquire()
    }

    /// Executes a run in the background until it has ended, here or in another process.
    pub fn run_to_completion(&self, run: RunId, slot: Slot, mut begun: Option<Begun>) {
        if begun.is_some() {
            self.own().entry(run).or_default().is_held = true;
        }
        let runner = self.clone();
        // At the level of errors, so that a line of any level has the id.
        let span = tracing::error_span!("run", requestId = %run);
        self.0.tasks.spawn(
            async move {
                let mut said = String::new();
                loop {
                    let ended = match begun.take() {
                        Some(begun) => runner.execute(begun).await,
                        None => tokio::select! {
                            () = runner.0.drained.cancelled() => break,
                            start = runner.acquire_slot(run) => {
                                runner.try_claim(run, start, &mut said).await
                            }
                        },
                    };
                    if ended || runner.has_ended(run).await || runner.is_draining() {
                        break;
                    }
                    tokio::time::sleep(POLL).await;
                }
                runner.own().remove(&run);
                drop(slot);
            }
            .instrument(span),
        );
    }

    /// Waits until the run may begin. Returns `None` for a cancelled run, which ends without a call.
    async fn acquire_slot(&self, run: RunId) -> Option<RunSlot> {
        let cancelled = self.cancellation(run);
        tokio::select! {
            () = cancelled.cancelled() => None,
            start = self.0.run_slots.acquire() => Some(start),
        }
    }

    /// Executes the run if no other process does. Returns true if the run has ended. `said` is the
    /// last error that was logged: the same one is not logged again.
    async fn try_claim(&self, run: RunId, start: Option<RunSlot>, said: &mut String) -> bool {
        match self.claim(Claim::Run(run)).await {
            Ok(Some(lease)) => {
                let begun = Begun {
                    lease,
                    start,
                    accepted: None,
                };
                self.execute(begun).await
            }
            Ok(None) => false,
            Err(error) => {
                let error = error.to_string();
                if error != *said && !self.0.database_lost.load(Ordering::Relaxed) {
                    tracing::error!(error, "the run cannot be claimed yet");
                    *said = error;
                }
                false
            }
        }
    }

    /// True if the run has ended, in any process.
    async fn has_ended(&self, run: RunId) -> bool {
        let row = self.0.process.store.run(run).await;
        row.is_ok_and(|row| row.is_none_or(|row| row.state.is_terminal()))
    }

    async fn claim(&self, which: Claim) -> Result<Option<Lease>, journal::Error> {
        let (owner, now) = (&self.0.owner, self.0.process.clock.now());
        self.0
            .process
            .store
            .claim(which, owner, self.lease(), now)
            .await
    }

    /// Returns the unique name of this process.
    pub fn owner(&self) -> &str {
        &self.0.owner
    }

    /// Runs a task to its end even if no caller waits for it. A drain waits for it too.
    pub fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }

    pub fn spawn_reader(&self, reader: impl Future<Output = ()> + Send + 'static) {
        self.0.readers.spawn(reader);
    }

    /// Stops the run if this process executes it, else notifies the process that does.
    pub fn cancel(&self, run: RunId) {
        self.0.process.wake.up(run);
        if let Some(own) = self.own().get(&run) {
            own.cancel.cancel();
        }
    }

    /// True if this process has the run's lease. Once it has not, the run's listeners are notified.
    pub fn holds(&self, run: RunId) -> bool {
        self.own().get(&run).is_some_and(|own| own.is_held)
    }

    /// Returns once this process shuts down and will not end the run: another one has it, or will.
    pub async fn left_to_others(&self, run: RunId) {
        self.0.draining.cancelled().await;
        let mut wake = self.0.process.wake.listen(run);
        let is_here = || self.own().contains_key(&run);
        let has_left = async {
            while is_here() {
                wake.notified().await;
            }
        };
        tokio::select! {
            () = self.0.drained.cancelled() => {}
            () = has_left => {}
        }
        // Lets listeners of a run that just ended here see its end first.
        tokio::time::sleep(POLL).await;
    }

    pub fn keep_recovering(&self) {
        let runner = self.clone();
        self.0.readers.spawn(async move {
            let mut look_for_dead = Instant::now();
            let mut allowed = FIRST_TAKEN_OVER;
            let mut guard = TakeOverGuard::default();
            while !runner.is_draining() {
                if Instant::now() >= look_for_dead {
                    if let Err(error) = runner.0.process.store.release_dead().await {
                        tracing::warn!(%error, "cannot look for dead processes");
                    }
                    look_for_dead = Instant::now() + runner.lease();
                }
                if guard.allows(runner.0.process.clock.now(), runner.lease()) {
                    runner.take_over().await;
                }
                if let Err(error) = runner.0.process.store.vacuum().await {
                    tracing::debug!(%error, "the database could not be tidied");
                }
                if let Some(metrics) = super::metrics_recorder::metrics() {
                    metrics.run_upkeep();
                }
                tokio::select! {
                    () = runner.0.draining.cancelled() => return,
                    () = tokio::time::sleep(POLL) => {}
                }
                // More permits than there are slots are never needed.
                if allowed < runner.0.committee.policy.limits.max_in_flight {
                    runner.0.taken_over.add_permits(allowed);
                    allowed *= 2;
                }
            }
        });
    }

    /// Watches the database until the service drains.
    pub fn watch_database(&self) {
        let runner = self.clone();
        self.0.readers.spawn(async move {
            let inner = &runner.0;
            tokio::select! {
                () = inner.draining.cancelled() => {}
                () = database_watch::watch(&*inner.process.store, &inner.database_lost, POLL) => {}
            }
        });
    }

    /// Claims the runs that no process executes, while there are free slots.
    async fn take_over(&self) {
        let allowed = || Arc::clone(&self.0.taken_over).try_acquire_owned().ok();
        while let Some(((slot, turn), start)) = self
            .slot()
            .zip(allowed())
            .zip(self.0.run_slots.try_acquire())
        {
            match self.claim(Claim::Oldest).await {
                Ok(Some(lease)) => {
                    tracing::info!(requestId = %lease.run, epoch = lease.epoch, "a run is taken over");
                    let runner = self.clone();
                    let span = tracing::error_span!("run", requestId = %lease.run);
                    self.0.tasks.spawn(
                        async move {
                            let begun = Begun {
                                lease,
                                start: Some(start),
                                accepted: None,
                            };
                            runner.execute(begun).await;
                            drop((slot, turn));
                        }
                        .instrument(span),
                    );
                }
                Ok(None) => return,
                Err(error) => {
                    if !self.0.database_lost.load(Ordering::Relaxed) {
                        tracing::warn!(%error, "cannot look for runs to take over");
                    }
                    return;
                }
            }
        }
    }

    pub async fn drain(&self, patience: Duration) {
        self.0.draining.cancel();
        self.0.tasks.close();
        let waited = tokio::time::timeout(patience, self.0.tasks.wait()).await;
        if waited.is_err() {
            tracing::warn!(
                runs = self.0.tasks.len(),
                "shutting down with runs in flight: they are taken over later"
            );
        }
        self.0.drained.cancel();
    }

    /// Executes a claimed run until it ends or its lease is lost. Returns true if it has ended.
    async fn execute(&self, begun: Begun) -> bool {
        let run = begun.lease.run;
        let token = self.cancellation(run);
        self.own().entry(run).or_default().is_held = true;
        let executed = self.execute_lease(begun, &token).await;
        if let Err(stop) = &executed {
            match stop {
                Stop::Lost => tracing::warn!("its lease has ended: another process may have it"),
                Stop::Cancelled => tracing::warn!("the run was cancelled while it ended"),
                Stop::Store(error) => {
                    tracing::error!(%error, "the run stays unfinished until its lease expires");
                }
            }
        }
        self.own().remove(&run);
        self.0.process.wake.up(run);
        executed.is_ok()
    }

    async fn execute_lease(&self, begun: Begun, token: &CancellationToken) -> Result<(), Stop> {
        let Begun {
            lease,
            start,
            accepted,
        } = begun;
        if lease.epoch > MAX_EPOCHS {
            return self
                .abandon(&lease, "it was begun too often without an end")
                .await;
        }
        let context = match self.open(&lease, accepted).await {
            Ok(context) => Arc::new(context),
            Err(Stop::Store(error @ journal::Error::Corrupt { .. })) => {
                tracing::error!(%error, "the run's journal cannot be read");
                return self.abandon(&lease, "its journal cannot be read").await;
            }
            Err(stop) => return Err(stop),
        };
        if let Some(ending) = self.not_continued(&context, &lease) {
            return self.finish(&context, ending).await;
        }
        let started = Instant::now();
        tracing::info!(
            mode = context.accepted().question.mode.into_str(),
            epoch = lease.epoch,
            kind = context.accepted().kind().into_str(),
            "the run begins"
        );
        match self.supervise(&context, &lease, token, start).await {
            Ok(ending) => {
                log_ending(&ending, context.ledger().spent(), started);
                self.finish(&context, ending).await
            }
            Err(stop) => {
                context.close().await;
                Err(stop)
            }
        }
    }

    /// Reads the run's journal, unless it has only what this process has just written.
    async fn open(&self, lease: &Lease, accepted: Option<Accepted>) -> Result<RunContext, Stop> {
        let (process, lease) = (self.0.process.clone(), lease.clone());
        match accepted {
            Some(accepted) => Ok(RunContext::begin(process, lease, accepted)),
            None => RunContext::open(process, lease).await,
        }
    }

    /// Returns the ending of a run that is ended without being continued: an action, or a run that
    /// earlier processes could not bring forward.
    fn not_continued(&self, context: &RunContext, lease: &Lease) -> Option<Ending> {
        let events = context.events();
        if context.accepted().action.is_some() {
            // The process that planned the action is gone, and with it the waiting client.
            tracing::info!("finished an action whose process died");
            let (policy, now) = (&self.0.committee.policy.actions, self.0.process.clock.now());
            let events = events.to_vec();
            return Some(actions::left_behind(lease.run, &events, policy, now));
        }
        let idle = events.idle_claims();
        if idle > MAX_IDLE_BEGINS {
            return Some(internal(format!(
                "the run was given up: it was begun {idle} times in a row without getting any further"
            )));
        }
        let crashes = self.0.process.compute.crashes(lease.run);
        if crashes >= MAX_CRASHES {
            let detail = format!("the run was given up: it crashed {crashes} processes");
            tracing::error!("{detail}");
            return Some(internal(detail));
        }
        None
    }

    async fn finish(&self, context: &RunContext, ending: Ending) -> Result<(), Stop> {
        if context.accepted().kind() == RunKind::Execution {
            let toolbox = self.0.tools.as_deref();
            tools::settle(context, &self.0.committee, toolbox).await?;
        }
        context.finish(ending).await
    }

    /// Runs the committee until it ends, the deadline passes, the user cancels the run or the lease
    /// is lost.
    async fn supervise(
        &self,
        context: &Arc<RunContext>,
        lease: &Lease,
        token: &CancellationToken,
        start: Option<RunSlot>,
    ) -> Result<Ending, Stop> {
        let accepted = context.accepted();
        let deadline = match accepted.kind() {
            RunKind::Execution => tools::EXECUTION_DEADLINE,
            RunKind::Chat | RunKind::Action | RunKind::Plan => {
                self.0.committee.policy.deadline(accepted.question.mode)
            }
        };
        let mut work = self.work(context, start, deadline);
        tokio::select! {
            biased;
            () = token.cancelled() => Ok(Ending::Cancelled),
            held = self.keep_lease(lease) => match held {
                LeaseState::CancelRequested => Ok(Ending::Cancelled),
                LeaseState::Lost | LeaseState::Yes => Err(Stop::Lost),
            },
            result = tokio::time::timeout(deadline, &mut work) => match result {
                Err(_) => Ok(Ending::Failed {
                    cause: Cause::Deadline,
                    detail: format!("{} passed during {}", named(deadline), stage(context)),
                }),
                Ok(Err(_panic)) => Ok(internal("a stage panicked".into())),
                Ok(Ok(Err(Failure::Failed { cause: Cause::Deadline, detail }))) => Ok(Ending::Failed {
                    cause: Cause::Deadline,
                    detail: format!("{} left no more time for {}: {detail}", named(deadline), stage(context)),
                }),
                Ok(Ok(convened)) => ending(convened, context.ledger().exceeded()),
            },
        }
    }

    /// Starts the work of a run. It is a task of its own, so that a CPU-heavy step does not block the
    /// other branches of [`Runner::supervise`]. When the handle is dropped, the task is stopped at its
    /// next await point. Until then the context, which the caller finishes or closes, refuses its
    /// entries and calls.
    fn work(
        &self,
        context: &Arc<RunContext>,
        start: Option<RunSlot>,
        deadline: Duration,
    ) -> AbortOnDropHandle<Result<Ending, Failure>> {
        let (context, committee) = (Arc::clone(context), Arc::clone(&self.0.committee));
        let (toolbox, store) = (self.0.tools.clone(), Arc::clone(&self.0.process.store));
        let work = async move {
            let work = async {
                let toolbox = toolbox.as_deref();
                // Boxed to keep the future of a run small.
                match context.accepted().kind() {
                    RunKind::Plan => {
                        Box::pin(tools::propose(&context, &committee, toolbox, deadline)).await
                    }
                    RunKind::Execution => {
                        Box::pin(tools::execute(&context, &committee, toolbox, deadline)).await
                    }
                    RunKind::Chat | RunKind::Action => {
                        let reply = Box::pin(strategies::answer(&context, &committee, &*store));
                        let reply = Box::new(reply.await?);
                        Ok(Ending::Replied { reply })
                    }
                }
            };
            tokio::select! {
                biased;
                ended = work => ended,
                never = context.keep_stored() => match never {},
                never = hold(start, &context) => match never {},
            }
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "it ends with its handle, which the caller owns"
        )]
        AbortOnDropHandle::new(tokio::spawn(work.in_current_span()))
    }

    /// Fails a run that cannot be executed, without reading its journal.
    async fn abandon(&self, lease: &Lease, why: &str) -> Result<(), Stop> {
        let finished = Event::Finished(Box::new(Finished {
            ending: internal(format!("the run was given up: {why}")),
            spent: Usd::ZERO,
        }));
        self.0
            .process
            .store
            .append(lease, self.0.process.clock.now(), &[&finished])
            .await?;
        // The mode is in the journal, which was not read.
        counter!("conclave_runs_total", "mode" => "unknown", "outcome" => Cause::Internal.into_str())
            .increment(1);
        Ok(())
    }

    fn lease(&self) -> Duration {
        self.0.committee.policy.lease
    }

    fn own(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Own>> {
        self.0.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancellation(&self, run: RunId) -> CancellationToken {
        self.own().entry(run).or_default().cancel.clone()
    }
}

/// Holds the run slot until the run's first call has ended. Never returns.
async fn hold(start: Option<RunSlot>, context: &RunContext) -> Infallible {
    context.first_call_ended().await;
    drop(start);
    std::future::pending().await
}

fn named(deadline: Duration) -> String {
    format!("the run's deadline of {} s", deadline.as_secs())
}

/// Returns the stage that is under way, in words.
fn stage(context: &RunContext) -> String {
    views::stage_under_way(&context.events().to_vec())
}
