//! The one door through which a run has its effects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::event::{sent_key, settled_key};
use super::observe::Observer;
use super::{
    Accepted, Broken, CallResult, CallSent, CallSettled, Ending, Entry, Error, Event, Finished, Lease, Store, verify,
};
use crate::clock::Clock;
use crate::domain::{BilledTokens, Ledger, Refused, RunId, Usd};

/// Tells readers of a run's journal that it has new entries. A hint only: readers poll as well.
#[derive(Debug, Clone)]
pub struct Wake {
    listeners: Arc<Mutex<BTreeMap<RunId, watch::Sender<()>>>>,
    own: broadcast::Sender<RunId>,
}

impl Default for Wake {
    fn default() -> Self {
        Self { listeners: Arc::default(), own: broadcast::Sender::new(1024) }
    }
}

impl Wake {
    /// News that this process has made.
    pub fn up(&self, run: RunId) {
        let _ = self.own.send(run);
        self.pass_on(run);
    }

    /// News from another process.
    pub fn pass_on(&self, run: RunId) {
        if let Some(sender) = self.senders().get(&run) {
            let _ = sender.send(());
        }
    }

    /// One run's wake-ups, from now on.
    pub fn listen(&self, run: RunId) -> Listener {
        let news = self.senders().entry(run).or_insert_with(|| watch::Sender::new(())).subscribe();
        Listener { run, news, wake: self.clone() }
    }

    /// Only what this process has made: what others have to be told.
    pub fn own(&self) -> broadcast::Receiver<RunId> {
        self.own.subscribe()
    }

    fn senders(&self) -> MutexGuard<'_, BTreeMap<RunId, watch::Sender<()>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears of one run.
#[derive(Debug)]
pub struct Listener {
    run: RunId,
    news: watch::Receiver<()>,
    wake: Wake,
}

impl Listener {
    /// Returns when there was a wake-up since the last one that was heard.
    pub async fn heard(&mut self) {
        // The sender lives as long as its last listener.
        let _ = self.news.changed().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut senders = self.wake.senders();
        self.news = watch::Sender::new(()).subscribe();
        if senders.get(&self.run).is_some_and(|sender| sender.receiver_count() == 0) {
            senders.remove(&self.run);
        }
    }
}

/// Why a run must stop where it is, without an ending of its own making.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// Another process has the run now.
    #[error("the run was taken over by another process")]
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
    state: Mutex<State>,
    /// Held while money changes and its entry is written: the journal has reservations and settlements in the order of
    /// the ledger, so each of its beginnings is within the cap, until a provider overbills.
    ordered: tokio::sync::Mutex<()>,
}

struct State {
    seen: BTreeMap<String, Event>,
    /// The keys in the order of the journal.
    order: Vec<String>,
    ledger: Ledger,
}

impl State {
    fn of(cap: Usd, entries: Vec<Entry>) -> Self {
        let ledger = ledger_of(cap, &entries);
        let order = entries.iter().map(|entry| entry.key.clone()).collect();
        let seen = entries.into_iter().map(|entry| (entry.key, entry.event)).collect();
        Self { seen, order, ledger }
    }
}

impl RunContext {
    /// Reads the run's journal and settles what was in flight when an earlier process died: at its reserved maximum,
    /// since it may have been billed.
    ///
    /// # Errors
    /// [`Stop`], when the database refuses or the lease is gone.
    pub async fn open(store: Arc<dyn Store>, lease: Lease, clock: Clock, wake: Wake) -> Result<Self, Stop> {
        let entries = store.entries(lease.run, 0).await?;
        let accepted = entries.iter().find_map(|entry| match &entry.event {
            Event::Accepted(accepted) => Some(Accepted::clone(accepted)),
            _ => None,
        });
        let Some(accepted) = accepted else {
            return Err(Stop::Store(Error::Corrupt { table: "entries", column: "body", id: lease.run.to_string() }));
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
            state: Mutex::new(state),
            ordered: tokio::sync::Mutex::default(),
        };
        context.settle_open().await?;
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
        state.order.iter().filter_map(|key| state.seen.get(key)).cloned().collect()
    }

    /// Reads the run's journal back and proves its chain.
    ///
    /// # Errors
    /// [`Stop`], when the database refuses; the inner error is where the chain does not hold.
    pub async fn verify(&self) -> Result<Result<(), Broken>, Stop> {
        let Some(row) = self.store.run(self.lease.run).await? else {
            return Ok(Err(Broken::Missing { seq: 1 }));
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
        self.append(std::slice::from_ref(&event)).await?;
        Ok(event)
    }

    /// Makes a call once. A call that the journal has as settled is returned as it was. Otherwise its worst case is
    /// reserved, the intent written, the effect performed, and its end written.
    ///
    /// # Errors
    /// The outer error is a [`Stop`]; the inner one says that the cap has no room, and then nothing was written.
    pub async fn call<F>(&self, mut sent: CallSent, effect: F) -> Result<Result<CallSettled, Refused>, Stop>
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
            if let Err(stop) = self.append(&[Event::CallSent(sent)]).await {
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
        self.append(&[Event::CallSettled(settled.clone())]).await?;
        Ok(Ok(settled))
    }

    /// Writes the run's terminal state; what is still in flight is settled at its reserved maximum first.
    ///
    /// # Errors
    /// [`Stop`], when the database refuses or the lease is gone.
    pub async fn finish(&self, ending: Ending) -> Result<(), Stop> {
        // A stage may have been dropped between the writing of an entry and the noting of it here, or while the entry was
        // being written with those of other runs: once this empty append is through, what was under way is there or not.
        self.store.append(&self.lease, self.clock.now(), &[]).await?;
        let entries = self.store.entries(self.lease.run, 0).await?;
        *self.state() = State::of(self.accepted.cap, entries);
        self.settle_open().await?;
        let spent = self.state().ledger.spent();
        self.append(&[Event::Finished(Box::new(Finished { ending, spent }))]).await
    }

    async fn settle_open(&self) -> Result<(), Stop> {
        let open: Vec<Event> = {
            let state = self.state();
            let is_open = |sent: &&CallSent| !state.seen.contains_key(&settled_key(&sent.call));
            let sent = state.seen.values().filter_map(|event| match event {
                Event::CallSent(sent) => Some(sent),
                _ => None,
            });
            sent.filter(is_open)
                .map(|sent| {
                    Event::CallSettled(CallSettled {
                        call: sent.call.clone(),
                        result: CallResult::InDoubt,
                        cost: sent.reserved.as_ref().map_or(Usd::ZERO, |r| r.amount),
                        latency_ms: 0,
                        usage: None,
                        served: None,
                    })
                })
                .collect()
        };
        if open.is_empty() {
            return Ok(());
        }
        for event in &open {
            if let Event::CallSettled(settled) = event {
                self.state().ledger.settle(&settled.call, settled.cost);
            }
        }
        self.append(&open).await
    }

    async fn append(&self, events: &[Event]) -> Result<(), Stop> {
        self.store.append(&self.lease, self.clock.now(), events).await?;
        {
            let mut state = self.state();
            for event in events {
                let key = event.key();
                if state.seen.insert(key.clone(), event.clone()).is_none() {
                    state.order.push(key);
                }
                self.observer.written(event, &state.seen);
            }
        }
        self.wake.up(self.lease.run);
        Ok(())
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
                ledger.restore(&sent.call, sent.reserved.as_ref().map_or(Usd::ZERO, |r| r.amount));
            }
            Event::CallSettled(settled) => ledger.settle(&settled.call, settled.cost),
            _ => {}
        }
    }
    ledger
}
