//! The main loop of the model's thread: admit requests, fill a batch, decode it, choose tokens.

use std::any::Any;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;

use crate::queue::{Job, Next, Queue};
use crate::sequence::Sequence;
use crate::{Error, Options, StopReason, native};

/// Maximum tokens per decode step. More would not make prompts faster, and cancellations are
/// handled between steps.
const BATCH_TOKENS: u32 = 256;
/// Maximum prompt tokens in a step while other requests generate tokens, so that those are not
/// delayed.
const PROMPT_TOKENS_BESIDE_WRITERS: usize = 64;

/// The running requests and their key-value cache.
pub(crate) struct Engine<'model> {
    model: &'model LlamaModel,
    context: LlamaContext<'model>,
    batch: LlamaBatch<'static>,
    queue: Arc<Queue>,
    /// In order of admission.
    running: Vec<Sequence>,
    free_slots: Vec<i32>,
}

impl<'model> Engine<'model> {
    /// Allocates the cache. There must be only one context per model, because llama.cpp may change
    /// the model while it creates one.
    pub(crate) fn new(
        backend: &LlamaBackend,
        model: &'model LlamaModel,
        options: &Options,
        queue: Arc<Queue>,
    ) -> Result<Self, Error> {
        let sequences = options.sequences();
        let threads = i32::try_from(options.thread_count()).unwrap_or(1);
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(options.context_tokens.max(BATCH_TOKENS)))
            .with_n_batch(BATCH_TOKENS)
            .with_n_ubatch(BATCH_TOKENS)
            .with_n_seq_max(u32::try_from(sequences).unwrap_or(1))
            // All sequences share one pool of cells. Otherwise each would have only a fixed share
            // of the context.
            .with_kv_unified(true)
            .with_n_threads(threads)
            .with_n_threads_batch(threads);
        let context = model
            .new_context(backend, params)
            .map_err(|error| Error::Load {
                path: options.model_path.clone(),
                reason: native::last_error(&error.to_string()),
            })?;
        let batch = LlamaBatch::new(BATCH_TOKENS as usize, 1);
        let free_slots = (0..i32::try_from(sequences).unwrap_or(1)).rev().collect();
        Ok(Self {
            model,
            context,
            batch,
            queue,
            running: Vec::new(),
            free_slots,
        })
    }

    /// Returns the number of cells of the key-value cache.
    pub(crate) fn cells(&self) -> u32 {
        self.context.n_ctx()
    }

    /// Serves the queue until it is closed.
    pub(crate) fn run(mut self) {
        while self.admit() {
            // A panic in one step must not leave callers waiting. It is safe to continue: llama.cpp
            // and llguidance hold none of our locks, and everything that the step used is
            // discarded.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.step())) {
                let reason = panic_text(panic.as_ref());
                tracing::error!(%reason, "a decode step of the local model panicked");
                self.fail(&Error::Decode { reason }, |_| true);
                self.context.clear_kv_cache();
            }
        }
        self.fail(&Error::Closed, |_| true);
    }

    /// Admits waiting requests in order, while there are free slots and cells. Returns `false` if
    /// the queue is closed.
    fn admit(&mut self) -> bool {
        loop {
            let taken: u32 = self.running.iter().map(|sequence| sequence.cells).sum();
            let left = self.cells().saturating_sub(taken);
            let slot = self.free_slots.last().copied();
            let fits = |job: &Job| slot.is_some() && job.cells() <= left;
            match self.queue.next(self.running.is_empty(), fits) {
                Next::Job(job) => self.start(*job),
                Next::Nothing => return true,
                Next::Closed => return false,
            }
        }
    }

    fn start(&mut self, job: Job) {
        let Some(slot) = self.free_slots.pop() else {
            let reason = "no free sequence".to_owned();
            let _ = job.reply.send(Err(Error::Decode { reason }));
            return;
        };
        let mut sequence = Sequence::new(job, slot);
        let outcome = sequence.write_forced(&self.model.vocab()).transpose();
        self.running.push(sequence);
        if let Some(outcome) = outcome {
            self.end(slot, outcome);
        }
    }

    /// Decodes one batch for all running requests.
    fn step(&mut self) {
        // No caller hears of it.
        self.fail(&Error::Closed, Sequence::is_gone);
        if let Err(error) = self.fill() {
            return self.fail(&error, |sequence| sequence.in_batch);
        }
        if self.batch.n_tokens() == 0 {
            return;
        }
        if let Err(error) = self.context.decode(&mut self.batch) {
            let reason = native::last_error(&error.to_string());
            tracing::error!(%reason, "a decode step of the local model failed");
            return self.fail(&Error::Decode { reason }, |sequence| sequence.in_batch);
        }
        self.choose_tokens();
    }

    fn clear_batch(&mut self) {
        self.batch.clear();
        for sequence in &mut self.running {
            sequence.in_batch = false;
            sequence.row = None;
        }
    }

    /// Fills a batch with all requests. Generating requests come first: each needs one token, or a
    /// few more that its schema forced. Prompts share the rest.
    fn fill(&mut self) -> Result<(), Error> {
        self.clear_batch();
        let size = BATCH_TOKENS as usize;
        let mut used = 0;
        let running = self.running.iter_mut();
        for sequence in running.filter(|sequence| sequence.is_writing()) {
            used += sequence.add_to(&mut self.batch, size - used)?;
        }
        let mut room = size - used;
        if used > 0 {
            room = room.min(PROMPT_TOKENS_BESIDE_WRITERS);
        }
        let running = self.running.iter_mut();
        for sequence in running.filter(|sequence| !sequence.in_batch && !sequence.is_writing()) {
            room -= sequence.add_to(&mut self.batch, room)?;
        }
        Ok(())
    }

    fn choose_tokens(&mut self) {
        let vocabulary = self.model.vocab();
        let mut ended = Vec::new();
        for sequence in &mut self.running {
            if let Some(row) = sequence.row.take() {
                let scores = self.context.get_logits_ith(row);
                let outcome = sequence.advance(&vocabulary, scores).transpose();
                ended.extend(outcome.map(|outcome| (sequence.slot, outcome)));
            }
        }
        for (slot, outcome) in ended {
            self.end(slot, outcome);
        }
    }

    /// Ends the matching requests with an error.
    fn fail(&mut self, error: &Error, which: impl Fn(&Sequence) -> bool) {
        let failed = self.running.iter().filter(|sequence| which(sequence));
        let slots: Vec<i32> = failed.map(|sequence| sequence.slot).collect();
        for slot in slots {
            self.end(slot, Err(error.clone()));
        }
    }

    /// Frees the request's cells, then answers its caller.
    fn end(&mut self, slot: i32, outcome: Result<StopReason, Error>) {
        let mut running = self.running.iter();
        let Some(at) = running.position(|sequence| sequence.slot == slot) else {
            return;
        };
        let sequence = self.running.remove(at);
        let cells = u32::try_from(slot).ok();
        if let Err(error) = self.context.clear_kv_cache_seq(cells, None, None) {
            tracing::error!(%error, slot, "cells of the key-value cache were not freed");
        }
        self.free_slots.push(slot);
        sequence.finish(outcome);
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}
