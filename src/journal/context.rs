//! Records a run's events and performs its calls, each exactly once.

mod pieces;
mod state;
mod storing;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, SetOnce};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::event::sent_key;
use super::observe::Observer;
use super::step::{self, Step};
use super::wake::Wake;
use super::{
    Accepted, CallResult, CallSent, CallSettled, ChainFault, DataStamp, Ending, Entry, Error,
    Event, Finished, Lease, Store, Transcript, encoded_event, rows, verify,
};
use crate::clock::Clock;
use crate::compute::ComputePool;
use crate::domain::{BilledTokens, Earmark, Ledger, Refused, RunId, Usd};
use state::State;

/// Why a run must stop without writing an ending of its own.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// Another process has the lease now, or the run has ended.
    #[error("the run was taken over by another process, or has ended")]
    Lost,
    #[error("the run is being cancelled")]
    Cancelled,
    #[error(transparent)]
    Store(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error {
            Error::LeaseLost => Stop::Lost,
            Error::CancelRequested => Stop::Cancelled,
            other => Stop::Store(other),
        }
    }
}

/// The reason why a call was not made or not recorded.
#[derive(Debug, thiserror::Error)]
pub enum Uncalled {
    /// The cap has no room for the call. Nothing was written.
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Stopped(#[from] Stop),
}

/// The result of a call, to be recorded by [`RunContext::call`].
pub struct Call {
    pub result: CallResult,
    pub usage: Option<BilledTokens>,
    /// The model id that the provider reports.
    pub served: Option<String>,
    /// `None` if the cost is unknown. The call is then settled at its reserved maximum.
    pub cost: Option<Usd>,
}

/// The events of a run so far, in order.
pub struct Events(Vec<Arc<Event>>);

impl Events {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.0.iter().map(|event| &**event)
    }

    /// Returns how often the run was claimed since it last progressed.
    pub fn idle_claims(&self) -> usize {
        self.iter()
            .rev()
            .take_while(|event| !event.is_progress())
            .filter(|event| matches!(event, Event::Claimed(_)))
            .count()
    }

    pub fn to_vec(&self) -> Vec<Event> {
        self.iter().cloned().collect()
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = &'a Event;
    type IntoIter =
        std::iter::Map<std::slice::Iter<'a, Arc<Event>>, fn(&'a Arc<Event>) -> &'a Event>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|event| &**event)
    }
}

/// What the runs of one process share.
#[derive(Clone)]
pub struct Process {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub wake: Wake,
    pub compute: ComputePool,
}

/// A run in progress: its journal so far, its ledger, and the lease that permits this process to
/// write.
///
/// A decision is recorded in memory and stored later, in one transaction with the entries around
/// it: before the next call is made, when the run waits, and when it ends. A process that dies
/// before makes the decision again. An intent is stored before its effect.
pub struct RunContext {
    process: Process,
    lease: Lease,
    accepted: Accepted,
    chain_fault: Option<ChainFault>,
    started: Instant,
    /// Set when a call has ended.
    called: SetOnce<()>,
    /// Notified when a call is being sent.
    sending: Notify,
    observer: Arc<Observer>,
    state: Arc<Mutex<State>>,
    /// The writes in progress. Each is a task of its own, so it completes even if its stage is
    /// dropped, or while another stage of the run is in a CPU-heavy piece.
    writes: TaskTracker,
    /// Locked during each write. The entries are so stored in the order of their recording.
    writing: Arc<tokio::sync::Mutex<()>>,
    /// Notified of recorded events that nothing waits for.
    recorded: Notify,
}

impl RunContext {
    /// Returns the context of a run that this process has just accepted and claimed, without reading
    /// its journal.
    pub fn begin(process: Process, lease: Lease, accepted: Accepted) -> Self {
        let mut state = State::new(accepted.cap);
        state.push(Event::Accepted(Box::new(accepted.clone())));
        state.push(Event::Claimed(lease.claimed()));
        state.unwritten.clear();
        Self::new(process, lease, accepted, state, None)
    }

    /// Reads the run's journal. Settles the calls that were in flight when an earlier process died
    /// at their reserved maximum, since they may have been billed.
    ///
    /// # Errors
    /// [`Stop`] if the database fails or the lease is lost.
    pub async fn open(process: Process, lease: Lease) -> Result<Self, Stop> {
        let store = &process.store;
        let entries = store.entries(lease.run, 0).await?;
        let accepted = Transcript::of_entries(&entries).accepted.cloned();
        let Some(accepted) = accepted else {
            return Err(corrupt(&lease).into());
        };
        let chain_fault = if lease.epoch > 1 {
            let row = store.run(lease.run).await?;
            let missing = Err(ChainFault::Missing { seq: 1 });
            row.map_or(missing, |row| verify(lease.run, &entries, &row.head_hash))
                .err()
        } else {
            None
        };
        let state = State::of(accepted.cap, entries);
        let context = Self::new(process, lease, accepted, state, chain_fault);
        let open = context.state().settle_open();
        if !open.is_empty() {
            context.add(open)?;
            context.flush().await?;
        }
        Ok(context)
    }

    fn new(
        process: Process,
        lease: Lease,
        accepted: Accepted,
        state: State,
        chain_fault: Option<ChainFault>,
    ) -> Self {
        let started = Instant::now();
        let observer = Observer::new(&accepted, started);
        Self {
            process,
            lease,
            accepted,
            chain_fault,
            started,
            called: SetOnce::new(),
            sending: Notify::new(),
            observer: Arc::new(observer),
            state: Arc::new(Mutex::new(state)),
            writes: TaskTracker::new(),
            writing: Arc::default(),
            recorded: Notify::new(),
        }
    }

    pub fn id(&self) -> RunId {
        self.lease.run
    }

    /// The number of the claim under which this process has the run.
    pub fn epoch(&self) -> i64 {
        self.lease.epoch
    }

    pub fn accepted(&self) -> &Accepted {
        &self.accepted
    }

    /// When this process began to work on the run. Deadlines count from here.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Waits until a call is being sent.
    pub async fn call_sent(&self) {
        self.sending.notified().await;
        // The request itself comes first.
        tokio::task::yield_now().await;
    }

    /// Waits until the run's first call has ended, or is recalled.
    pub async fn first_call_ended(&self) {
        self.called.wait().await;
    }

    /// Returns the journals of the runs that this one continues, the nearest first.
    ///
    /// # Errors
    /// [`Stop`] if the database fails.
    pub async fn ancestors(&self) -> Result<Vec<(RunId, Vec<Entry>)>, Stop> {
        let read = |id| self.process.store.entries(id, 0);
        Ok(super::ancestors(Some(&self.accepted), read).await?)
    }

    /// Returns the recorded event with this key.
    fn recall(&self, key: &str) -> Option<Event> {
        self.state().seen.get(key).map(|event| Event::clone(event))
    }

    /// Returns the recorded intent of a call.
    pub fn sent(&self, call: &str) -> Option<CallSent> {
        match self.recall(&sent_key(call)) {
            Some(Event::CallSent(sent)) => Some(sent),
            _ => None,
        }
    }

    /// Returns the run's events so far, in order.
    pub fn events(&self) -> Events {
        Events(self.state().order.clone())
    }

    /// Returns where the chain was broken that earlier processes wrote, if it was. The entries of
    /// this process are not read again: each was linked to the head that the run's row has.
    pub fn chain_fault(&self) -> Option<ChainFault> {
        self.chain_fault.clone()
    }

    /// Returns a copy of the ledger.
    pub fn ledger(&self) -> Ledger {
        self.state().ledger.clone()
    }

    /// Reports to operators that the cap has no room for a call. Writes nothing to the journal.
    pub fn refused(&self, call: &str) {
        self.observer.refused(call);
    }

    /// Earmarks money for a later stage. Replaces the stage's earlier earmark.
    pub fn earmark(&self, stage: Earmark, amount: Usd) {
        self.state().ledger.earmark(stage, amount);
    }

    /// Releases the money that is earmarked for a stage.
    pub fn release(&self, stage: Earmark) {
        self.state().ledger.release(stage);
    }

    /// Records a decision once. If the journal already has an event with this key, returns that
    /// event, and it takes precedence. The event is stored before the next call and before the end
    /// of the run.
    ///
    /// # Errors
    /// [`Stop::Lost`] if the run has ended.
    pub fn record(&self, event: Event) -> Result<Event, Stop> {
        if let Some(known) = self.recall(&event.key()) {
            return Ok(known);
        }
        self.add(vec![event.clone()])?;
        self.recorded.notify_one();
        Ok(event)
    }

    /// As [`RunContext::record`], for an event with an effect, or before one: it is stored when this
    /// returns.
    ///
    /// # Errors
    /// [`Stop`] if the database fails or the lease is lost.
    pub async fn store(&self, event: Event) -> Result<Event, Stop> {
        let event = self.record(event)?;
        self.flush().await?;
        Ok(event)
    }

    /// As [`RunContext::store`], for an event with an effect on the user's sheets and memories. Returns
    /// false if they no longer have this stamp; then the event was neither recorded nor stored.
    ///
    /// # Errors
    /// [`Stop`] if the database fails or the lease is lost.
    pub async fn store_if(&self, stamp: &DataStamp, event: Event) -> Result<bool, Stop> {
        self.flush().await?;
        let _turn = self.writing.lock().await;
        // Until the write has succeeded, the database may have the event.
        self.open_state()?.unconfirmed += 1;
        let events = [&event];
        let Process { store, clock, .. } = &self.process;
        let written = store.append_if(Some(stamp), &self.lease, clock.now(), &events);
        let is_written = written.await?;
        {
            let mut state = self.state();
            state.unconfirmed = state.unconfirmed.saturating_sub(1);
            if is_written {
                state.push_stored(event.clone());
                self.observer.written(&event, &state.seen);
            }
        }
        if is_written {
            self.process.wake.written(self.lease.run);
        }
        Ok(is_written)
    }

    /// Returns the recorded output of a step, or performs it and records what it gives. `perform` is
    /// not polled if the journal has the output.
    ///
    /// # Errors
    /// Those of `perform`, and [`Stop`] when the database refuses or holds another kind of event
    /// under the key.
    pub async fn step<T, E: From<Stop>>(
        &self,
        step: Step<T>,
        perform: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let recorded = match self.recall(&step.key) {
            Some(known) => known,
            None => self.record((step.record)(perform.await?))?,
        };
        Ok(self.output_of(&step, recorded)?)
    }

    /// Records the output of a step, or returns the one that is recorded already.
    ///
    /// # Errors
    /// As [`RunContext::step`].
    pub fn record_output<T>(&self, step: &Step<T>, output: T) -> Result<T, Stop> {
        let recorded = self.record((step.record)(output))?;
        self.output_of(step, recorded)
    }

    fn output_of<T>(&self, step: &Step<T>, recorded: Event) -> Result<T, Stop> {
        (step.output)(recorded).ok_or_else(|| Stop::Store(corrupt(&self.lease)))
    }

    /// Returns the recorded output of a step.
    pub fn recorded<T>(&self, step: &Step<T>) -> Option<T> {
        self.recall(&step.key).and_then(step.output)
    }

    /// Performs a call once. Returns the recorded settlement if the journal has one. Otherwise
    /// reserves the worst-case cost, writes the intent, awaits `effect`, and writes the settlement.
    ///
    /// # Errors
    /// [`Uncalled`] if the cap has no room, the database fails or the lease is lost.
    pub async fn call<F>(&self, mut sent: CallSent, effect: F) -> Result<CallSettled, Uncalled>
    where
        F: Future<Output = Call>,
    {
        if let Some(settled) = self.recorded(&step::settled(&sent.call)) {
            let _ = self.called.set(());
            return Ok(settled);
        }
        let key = sent.call.clone();
        let worst = sent.reserved_amount();
        let reserved;
        {
            let mut state = self.open_state()?;
            let fits = state.ledger.reserve(&key, worst);
            reserved = fits.inspect_err(|_| self.refused(&key))?;
            if let Some(reservation) = &mut sent.reserved {
                reservation.amount = reserved;
            }
            state.push(Event::CallSent(sent));
        }
        // Calls that are made at the same time share a write.
        tokio::task::yield_now().await;
        self.flush().await?;
        let started = Instant::now();
        self.sending.notify_waiters();
        let call = effect.await;
        let _ = self.called.set(());
        let settled = CallSettled {
            call: key,
            result: call.result,
            cost: call.cost.unwrap_or(reserved),
            latency_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: call.usage,
            served: call.served,
        };
        {
            let mut state = self.open_state()?;
            state.ledger.settle(&settled.call, settled.cost);
            state.push(Event::CallSettled(settled.clone()));
        }
        self.recorded.notify_one();
        Ok(settled)
    }

    /// Refuses every further entry and call of this context, and waits for the writes that have
    /// begun. Does not wait for a stage in a CPU-heavy piece: its later writes and calls are
    /// refused.
    pub async fn close(&self) {
        self.state().closed = true;
        self.writes.close();
        self.writes.wait().await;
    }

    /// Settles the calls in flight at their reserved maximum. Nothing may wait for them any more.
    ///
    /// # Errors
    /// [`Stop`] if the run has ended, the database fails or the lease is lost.
    pub async fn give_up_calls(&self) -> Result<(), Stop> {
        {
            let mut state = self.open_state()?;
            let settled = state.settle_open();
            settled.into_iter().for_each(|event| state.push(event));
        }
        self.flush().await
    }

    /// Closes the context and writes the run's terminal event. Settles calls in flight at their
    /// reserved maximum.
    ///
    /// # Errors
    /// [`Stop`] if the database fails or the lease is lost.
    pub async fn finish(&self, ending: Ending) -> Result<(), Stop> {
        self.close().await;
        self.state().retract_intents();
        if self.state().unconfirmed > 0 {
            self.reload().await?;
        }
        // Readers get what a reader of the database gets.
        let (events, finished) = {
            let mut state = self.state();
            for settled in state.settle_open() {
                state.push(settled);
            }
            let spent = state.ledger.spent();
            let finished = Event::Finished(Box::new(Finished { ending, spent }));
            let finished = encoded_event::as_stored(&finished)?;
            state.push(finished.clone());
            (std::mem::take(&mut state.unwritten), finished)
        };
        let shown: Vec<&Event> = events.iter().map(|event| &**event).collect();
        self.process
            .store
            .append(&self.lease, self.process.clock.now(), &shown)
            .await?;
        {
            let state = self.state();
            for event in &events {
                self.observer.written(event, &state.seen);
            }
        }
        match finished {
            Event::Finished(finished) => self.process.wake.finished(self.lease.run, *finished),
            _ => self.process.wake.up(self.lease.run),
        }
        Ok(())
    }

    /// Rebuilds the state of a closed context from the stored entries: the database may have an entry
    /// whose write failed.
    async fn reload(&self) -> Result<(), Stop> {
        let entries = self.process.store.entries(self.lease.run, 0).await?;
        let mut state = self.state();
        let recorded = std::mem::take(&mut state.unwritten);
        *state = State::of(self.accepted.cap, entries);
        state.closed = true;
        for event in recorded {
            match &*event {
                Event::CallSettled(settled) if !state.seen.contains_key(&event.key()) => {
                    state.ledger.settle(&settled.call, settled.cost);
                }
                _ => {}
            }
            state.push(Event::clone(&event));
        }
        Ok(())
    }

    /// Records events.
    fn add(&self, events: Vec<Event>) -> Result<(), Stop> {
        let mut state = self.open_state()?;
        events.into_iter().for_each(|event| state.push(event));
        Ok(())
    }

    /// Returns the state, unless the context is closed.
    fn open_state(&self) -> Result<MutexGuard<'_, State>, Stop> {
        let state = self.state();
        if state.closed {
            return Err(Stop::Lost);
        }
        Ok(state)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a journal that lacks an event, or has another in its place.
fn corrupt(lease: &Lease) -> Error {
    rows::corrupt("entries", "body", &lease.run.to_string())
}
