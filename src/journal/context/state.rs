//! The recorded events of a run, with its ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::{Ledger, Usd};
use crate::journal::event::settled_key;
use crate::journal::{CallResult, CallSent, CallSettled, Entry, Event};

/// What is known of a run in this process.
pub(super) struct State {
    pub seen: BTreeMap<String, Arc<Event>>,
    /// The events in journal order.
    pub order: Vec<Arc<Event>>,
    /// The last events of the order, which no write has taken yet. They are recorded together with
    /// their change of the ledger. So every prefix of the journal stays within the cap, until a
    /// provider bills more than was reserved.
    pub unwritten: Vec<Arc<Event>>,
    pub ledger: Ledger,
    /// The bytes of the question and of all answers of models.
    pub text_bytes: usize,
    /// Writes that were begun and have not succeeded. The database may have their events.
    pub unconfirmed: u32,
    /// True if every further write and call is refused.
    pub closed: bool,
}

impl State {
    pub fn of(cap: Usd, entries: Vec<Entry>) -> Self {
        let ledger = ledger_of(cap, &entries);
        let mut state = Self {
            ledger,
            ..Self::new(cap)
        };
        for entry in entries {
            state.push(entry.event);
        }
        state.unwritten.clear();
        state
    }

    pub fn new(cap: Usd) -> Self {
        Self {
            seen: BTreeMap::new(),
            order: vec![],
            unwritten: vec![],
            ledger: Ledger::new(cap),
            text_bytes: 0,
            unconfirmed: 0,
            closed: false,
        }
    }

    /// Records an event, to be stored later. An event whose key is known already is dropped.
    pub fn push(&mut self, event: Event) {
        if let Some(event) = self.push_stored(event) {
            self.unwritten.push(event);
        }
    }

    /// Records an event that is stored already. Returns it unless its key is known already.
    pub fn push_stored(&mut self, event: Event) -> Option<Arc<Event>> {
        let (key, event) = (event.key(), Arc::new(event));
        if self.seen.contains_key(&key) {
            return None;
        }
        self.text_bytes += text_bytes(&event);
        self.order.push(Arc::clone(&event));
        self.seen.insert(key, Arc::clone(&event));
        Some(event)
    }

    /// Forgets the recorded intents that were not stored: their effects did not begin.
    pub fn retract_intents(&mut self) {
        let recorded = std::mem::take(&mut self.unwritten).into_iter();
        let (intents, kept): (Vec<_>, Vec<_>) = recorded.partition(|event| event.is_intent());
        self.unwritten = kept;
        for intent in intents {
            let key = intent.key();
            self.seen.remove(&key);
            self.order.retain(|known| !Arc::ptr_eq(known, &intent));
            if let Event::CallSent(sent) = &*intent {
                self.ledger.settle(&sent.call, Usd::ZERO);
            }
        }
    }

    /// Settles every call that was sent and not settled at its reserved maximum, since it may have
    /// been billed. Returns the events to be written.
    pub fn settle_open(&mut self) -> Vec<Event> {
        let is_open = |sent: &&CallSent| !self.seen.contains_key(&settled_key(&sent.call));
        let sent = self.seen.values().filter_map(|event| match &**event {
            Event::CallSent(sent) => Some(sent),
            _ => None,
        });
        let open: Vec<CallSettled> = sent
            .filter(is_open)
            .map(|sent| CallSettled {
                call: sent.call.clone(),
                result: CallResult::InDoubt,
                cost: sent.reserved_amount(),
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

/// Returns the bytes of an event's text that users and models wrote.
fn text_bytes(event: &Event) -> usize {
    match event {
        Event::Accepted(accepted) => accepted.question.message.len(),
        Event::CallSettled(CallSettled {
            result: CallResult::Answered { text, .. },
            ..
        }) => text.len(),
        _ => 0,
    }
}

fn ledger_of(cap: Usd, entries: &[Entry]) -> Ledger {
    let mut ledger = Ledger::new(cap);
    for entry in entries {
        match &entry.event {
            Event::CallSent(sent) => {
                ledger.restore(&sent.call, sent.reserved_amount());
            }
            Event::CallSettled(settled) => ledger.settle(&settled.call, settled.cost),
            _ => {}
        }
    }
    ledger
}
