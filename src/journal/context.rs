//! The one door through which a run has its effects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::event::{sent_key, settled_key};
use super::observe::Observer;
use super::resumed::{self, Deaths};
use super::wake::Wake;
use super::{
    Accepted, CallResult, CallSent, CallSettled, ChainFault, ComputeStarted, Ending, Entry, Error,
    Event, Finished, Lease, Store, verify,
};
use crate::clock::Clock;
use crate::compute::{ComputePool, Isolation, Place};
use crate::domain::{BilledTokens, Ledger, Refused, RunId, Usd};

/// How long a run waits before a piece for each process that ended in one. A kill from outside is then unlikely to hit a
/// piece, so it is not taken for the run's fault.
const PAUSE_PER_DEATH: Duration = Duration::from_secs(2);

/// Why a run must stop where it is, without an ending of its own making.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// Another process has the run now, or this one has ended it.
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

/// What a call gave, for [`RunContext::call`] to write down.
pub struct Call {
    pub result: CallResult,
    pub usage: Option<BilledTokens>,
    /// The model id that the provider says it used.
    pub served: Option<String>,
    /// `None` when nobody knows: then the call is settled at its reserved maximum.
    pub cost: Option<Usd>,
}

/// A run under way: its journal so far, its money, and the lease that lets this process write.
pub struct RunContext {
    store: Arc<dyn Store>,
    lease: Lease,
    clock: Clock,
    wake: Wake,
    accepted: Accepted,
    started: Instant,
    observer: Observer,
    compute: ComputePool,
    state: Mutex<State>,
    /// The writes under way. Each is a task of its own: it completes although the stage that wants it is dropped, or waits
    /// for a CPU-heavy piece of a stage beside it.
    writes: TaskTracker,
    /// Held while money changes and its entry is written: the journal has reservations and settlements in the order of
    /// the ledger, so each of its beginnings is within the cap, until a provider overbills.
    ordered: tokio::sync::Mutex<()>,
    /// Held by a resumed run that is not further yet while it writes, and from the start of a piece to its end: the start is
    /// the last entry as long as the piece runs.
    alone: tokio::sync::Mutex<()>,
}

struct State {
    seen: BTreeMap<String, Event>,
    /// The keys in the order of the journal.
    order: Vec<String>,
    ledger: Ledger,
    /// What happened at the point where a resumed run stands; `None` in a first process, and after any progress.
    resumed: Option<Resumed>,
    /// Nothing is written or bought any more.
    closed: bool,
}

/// A resumed run that is not further yet.
struct Resumed {
    deaths: Deaths,
    /// Pieces that this process has started.
    pieces: u32,
}

impl State {
    fn of(cap: Usd, entries: Vec<Entry>) -> Self {
        let ledger = ledger_of(cap, &entries);
        let resumed = resumed::deaths(&entries).map(|deaths| Resumed { deaths, pieces: 0 });
        let order = entries.iter().map(|entry| entry.key.clone()).collect();
        let seen = entries
            .into_iter()
            .map(|entry| (entry.key, entry.event))
            .collect();
        Self {
            seen,
            order,
            ledger,
            resumed,
            closed: false,
        }
    }

    fn add(&mut self, event: &Event) {
        let key = event.key();
        if self.seen.insert(key.clone(), event.clone()).is_none() {
            self.order.push(key);
        }
        if event.is_progress() {
            self.resumed = None;
        }
    }

    /// The settlements of the calls that are sent and not settled: each at its reserved maximum, since it may have been
    /// billed.
    fn settle_open(&mut self) -> Vec<Event> {
        let is_open = |sent: &&CallSent| !self.seen.contains_key(&settled_key(&sent.call));
        let sent = self.seen.values().filter_map(|event| match event {
            Event::CallSent(sent) => Some(sent),
            _ => None,
        });
        let open: Vec<CallSettled> = sent
            .filter(is_open)
            .map(|sent| CallSettled {
                call: sent.call.clone(),
                result: CallResult::InDoubt,
                cost: sent.reserved.as_ref().map_or(Usd::ZERO, |r| r.amount),
                latency_ms: 0,
                usage: None,
                served: None,
            })
            .collect();
        for settled in &open {
            self.ledger.settle(&settled.call, settled.cost);
        }
        open.into_iter().map(Event::CallSettled).collect()
    }
}

impl RunContext {
    /// Reads the run's journal and settles what was in flight when an earlier process died: at its reserved maximum,
    /// since it may have been billed.
    ///
    /// # Errors
    /// [`Stop`], when the database refuses or the lease is gone.
    pub async fn open(
        store: Arc<dyn Store>,
        lease: Lease,
        clock: Clock,
        wake: Wake,
        compute: ComputePool,
    ) -> Result<Self, Stop> {
        let entries = store.entries(lease.run, 0).await?;
        let accepted = entries.iter().find_map(|entry| match &entry.event {
            Event::Accepted(accepted) => Some(Accepted::clone(accepted)),
            _ => None,
        });
        let Some(accepted) = accepted else {
            return Err(Stop::Store(Error::Corrupt {
                table: "entries",
                column: "body",
                id: lease.run.to_string(),
            }));
        };
        let state = State::of(accepted.cap, entries);
        let started = Instant::now();
        let observer = Observer::new(accepted.question.mode, started);
        let context = Self {
            store,
            lease,
            clock,
            wake,
            accepted,
            started,
            observer,
            compute,
            state: Mutex::new(state),
            writes: TaskTracker::new(),
            ordered: tokio::sync::Mutex::default(),
            alone: tokio::sync::Mutex::default(),
        };
        let open = context.state().settle_open();
        if !open.is_empty() {
            context.append(open).await?;
        }
        Ok(context)
    }

    pub fn id(&self) -> RunId {
        self.lease.run
    }

    /// The number of the claim under which this process works on the run.
    pub fn epoch(&self) -> i64 {
        self.lease.epoch
    }

    pub fn accepted(&self) -> &Accepted {
        &self.accepted
    }

    /// When this process began to work on the run: deadlines count from here.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The journals of the runs that this one goes on from, the nearest first.
    ///
    /// # Errors
    /// [`Stop`], when the database refuses.
    pub async fn ancestors(&self) -> Result<Vec<(RunId, Vec<Entry>)>, Stop> {
        Ok(super::ancestors(&*self.store, &self.accepted).await?)
    }

    /// What the journal has under a key.
    pub fn recall(&self, key: &str) -> Option<Event> {
        self.state().seen.get(key).cloned()
    }

    /// The intent of a call, if it was made.
    pub fn sent(&self, call: &str) -> Option<CallSent> {
        match self.recall(&sent_key(call)) {
            Some(Event::CallSent(sent)) => Some(sent),
            _ => None,
        }
    }

    /// The run's own journal so far, in order.
    pub fn events(&self) -> Vec<Event> {
        let state = self.state();
        state
            .order
            .iter()
            .filter_map(|key| state.seen.get(key))
            .cloned()
            .collect()
    }

    /// Reads the run's journal back and proves its chain.
    ///
    /// # Errors
    /// [`Stop`], when the database refuses; the inner error is where the chain does not hold.
    pub async fn verify(&self) -> Result<Result<(), ChainFault>, Stop> {
        let Some(row) = self.store.run(self.lease.run).await? else {
            return Ok(Err(ChainFault::Missing { seq: 1 }));
        };
        let mut entries = self.store.entries(self.lease.run, 0).await?;
        entries.truncate(usize::try_from(row.head_seq).unwrap_or(0));
        Ok(verify(self.lease.run, &entries, &row.head_hash))
    }

    /// A copy of the money as it stands.
    pub fn ledger(&self) -> Ledger {
        self.state().ledger.clone()
    }

    /// The cap has no room for a call: nothing is written, but operators see it.
    pub fn refused(&self, call: &str) {
        self.observer.refused(call);
    }

    /// Sets money aside for the synthesis.
    pub fn hold(&self, amount: Usd) {
        self.state().ledger.hold(amount);
    }

    /// Writes a decision down once. If the journal already has it, what the journal has is returned, and counts.
    ///
    /// # Errors
    /// [`Stop`], when the database refuses or the lease is gone.
    pub async fn record(&self, event: Event) -> Result<Event, Stop> {
        let key = event.key();
        if let Some(known) = self.recall(&key) {
            return Ok(known);
        }
        self.append(vec![event.clone()]).await?;
        Ok(event)
    }

    /// Makes a call once. A call that the journal has as settled is returned as it was. Otherwise its worst case is
    /// reserved, the intent written, the effect performed, and its end written.
    ///
    /// # Errors
    /// The outer error is a [`Stop`]; the inner one says that the cap has no room, and then nothing was written.
    pub async fn call<F>(
        &self,
        mut sent: CallSent,
        effect: F,
    ) -> Result<Result<CallSettled, Refused>, Stop>
    where
        F: Future<Output = Call>,
    {
        if let Some(Event::CallSettled(settled)) = self.recall(&settled_key(&sent.call)) {
            return Ok(Ok(settled));
        }
        let key = sent.call.clone();
        let worst = sent.reserved.as_ref().map_or(Usd::ZERO, |r| r.amount);
        let reserved;
        {
            let _turn = self.ordered.lock().await;
            let fits = self.state().ledger.reserve(&key, worst);
            reserved = match fits {
                Ok(amount) => amount,
                Err(refused) => {
                    self.refused(&key);
                    return Ok(Err(refused));
                }
            };
            if let Some(reservation) = &mut sent.reserved {
                reservation.amount = reserved;
            }
            if let Err(stop) = self.append(vec![Event::CallSent(sent)]).await {
                self.state().ledger.settle(&key, Usd::ZERO);
                return Err(stop);
            }
        }
        let started = Instant::now();
        let call = effect.await;
        let settled = CallSettled {
            call: key,
            result: call.result,
            cost: call.cost.unwrap_or(reserved),
            latency_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: call.usage,
            served: call.served,
        };
        let _turn = self.ordered.lock().await;
        self.state().ledger.settle(&settled.call, settled.cost);
        self.append(vec![Event::CallSettled(settled.clone())])
            .await?;
        Ok(Ok(settled))
    }

    /// Runs a CPU-heavy piece of work off the async workers. A resumed run that is not further yet writes down first that
    /// it starts one: see [`RunContext::deaths`].
    ///
    /// # Errors
    /// [`Stop`], when the database refuses, the lease is gone or the run has ended.
    pub async fn compute<T>(
        &self,
        piece: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, Stop> {
        if self.state().closed {
            return Err(Stop::Lost);
        }
        let (place, _announced) = self.announce(piece).await?;
        Ok(place.run(work))
    }

    async fn announce(
        &self,
        piece: &str,
    ) -> Result<
        (
            Place,
            Option<(Option<Isolation>, tokio::sync::MutexGuard<'_, ()>)>,
        ),
        Stop,
    > {
        let deaths = self
            .state()
            .resumed
            .as_ref()
            .map(|resumed| resumed.deaths.count);
        let isolation = match deaths {
            None => return Ok((self.compute.place().await, None)),
            Some(0) => None,
            Some(deaths) => {
                tokio::time::sleep(PAUSE_PER_DEATH * deaths).await;
                // Of two suspected runs, only the one at fault is in a piece when the process ends.
                Some(self.compute.isolated().await)
            }
        };
        // The wait for a place comes before the start is written: a process that is killed while the piece only waits has
        // not ended in it.
        let place = self.compute.place().await;
        let alone = self.alone.lock().await;
        let Some(number) = self.state().resumed.as_mut().map(|resumed| {
            resumed.pieces += 1;
            resumed.pieces
        }) else {
            return Ok((place, None));
        };
        let piece = piece.to_owned();
        self.write(vec![Event::ComputeStarted(ComputeStarted {
            epoch: self.lease.epoch,
            number,
            piece,
        })])
        .await?;
        Ok((place, Some((isolation, alone))))
    }

    /// The processes in a row, up to this one, that ended at the point where the run stands, the later ones in a CPU-heavy
    /// piece of it. Ends between pieces, such as kills while a call is under way, are not counted.
    pub fn deaths(&self) -> Deaths {
        self.state()
            .resumed
            .as_ref()
            .map(|resumed| resumed.deaths.clone())
            .unwrap_or_default()
    }

    /// Refuses every further entry and call of this context, and waits for those writes that have begun. A stage that is
    /// still in a CPU-heavy piece is not waited for: whatever it wants to write or buy later is refused.
    pub async fn close(&self) {
        self.state().closed = true;
        self.writes.close();
        self.writes.wait().await;
    }

    /// Closes the context and writes the run's terminal state; what is still in flight is settled at its reserved maximum.
    ///
    /// # Errors
    /// [`Stop`], when the database refuses or the lease is gone.
    pub async fn finish(&self, ending: Ending) -> Result<(), Stop> {
        self.close().await;
        // An entry may have been written whose stage was dropped before it was noted here.
        let entries = self.store.entries(self.lease.run, 0).await?;
        let mut last = State {
            closed: true,
            ..State::of(self.accepted.cap, entries)
        };
        let mut events = last.settle_open();
        let spent = last.ledger.spent();
        events.push(Event::Finished(Box::new(Finished { ending, spent })));
        self.store
            .append(&self.lease, self.clock.now(), &events)
            .await?;
        for event in &events {
            last.add(event);
            self.observer.written(event, &last.seen);
        }
        *self.state() = last;
        self.wake.up(self.lease.run);
        Ok(())
    }

    async fn append(&self, events: Vec<Event>) -> Result<(), Stop> {
        let resumed = self.state().resumed.is_some();
        let _alone = if resumed {
            Some(self.alone.lock().await)
        } else {
            None
        };
        self.write(events).await
    }

    async fn write(&self, events: Vec<Event>) -> Result<(), Stop> {
        let written = self.begin_write(events.clone())?.await;
        written.map_err(|_| Error::Unavailable("the write was broken off".into()))??;
        {
            let mut state = self.state();
            for event in &events {
                state.add(event);
                self.observer.written(event, &state.seen);
            }
        }
        self.wake.up(self.lease.run);
        Ok(())
    }

    /// Begins to write, unless the context is closed. One lock covers both, so [`RunContext::close`] knows of every write.
    fn begin_write(&self, events: Vec<Event>) -> Result<JoinHandle<Result<i64, Error>>, Stop> {
        let state = self.state();
        if state.closed {
            return Err(Stop::Lost);
        }
        let (store, lease, at) = (
            Arc::clone(&self.store),
            self.lease.clone(),
            self.clock.now(),
        );
        let write = async move { store.append(&lease, at, &events).await };
        Ok(self.writes.spawn(write.in_current_span()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ledger_of(cap: Usd, entries: &[Entry]) -> Ledger {
    let mut ledger = Ledger::new(cap);
    for entry in entries {
        match &entry.event {
            Event::CallSent(sent) => {
                ledger.restore(
                    &sent.call,
                    sent.reserved.as_ref().map_or(Usd::ZERO, |r| r.amount),
                );
            }
            Event::CallSettled(settled) => ledger.settle(&settled.call, settled.cost),
            _ => {}
        }
    }
    ledger
}
