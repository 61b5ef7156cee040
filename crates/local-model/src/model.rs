//! The public handle of a model.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use tokio::sync::oneshot;

use crate::constrain::Grammars;
use crate::engine::Engine;
use crate::prompt::Prompter;
use crate::queue::{Job, Queue};
use crate::sample::Sampler;
use crate::{Completion, Error, Options, Request, cpu, native, quantize};

/// A loaded model. Clones share it. When the last clone is dropped, the thread ends after its
/// current step.
#[derive(Clone)]
pub struct LocalModel(Arc<Shared>);

struct Shared {
    /// The maximum tokens of one request, for prompt and `max_tokens` together.
    context_tokens: u32,
    /// The number of tokens that the model knows.
    vocabulary: i32,
    prompter: Prompter,
    grammars: Grammars,
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LocalModel {
    /// Loads the weights, allocates the key-value cache and starts the thread. Blocks for about
    /// half a second with a model of 150 MB. The first time, requantizing the model may take some
    /// seconds more.
    ///
    /// # Errors
    ///
    /// [`Error::ModelMissing`], [`Error::Cpu`], [`Error::Load`].
    pub fn load(options: Options) -> Result<Self, Error> {
        cpu::check()?;
        let path = options.model_path.clone();
        if !path.is_file() {
            return Err(Error::ModelMissing { path });
        }
        let load_error = |reason: String| Error::Load {
            path: path.clone(),
            reason,
        };
        let backend = native::backend()
            .ok_or_else(|| load_error("llama.cpp was started by something else".to_owned()))?;
        let started = Instant::now();
        let threads = options.thread_count();
        let file = quantize::fast_version(&path, threads);
        let load = |file: &Path| {
            LlamaModel::load_from_file(backend, file, &LlamaModelParams::default())
                .map_err(|error| load_error(native::last_error(&error.to_string())))
        };
        let model = load(&file).or_else(|error| {
            if file == path || fs::remove_file(&file).is_err() {
                return Err(error);
            }
            // A damaged copy is made again.
            load(&quantize::fast_version(&path, threads))
        })?;
        let model = Arc::new(model);
        let prompter = Prompter::new(&model).map_err(|error| load_error(error.to_string()))?;
        let grammars = Grammars::new(&model).map_err(|error| load_error(error.to_string()))?;
        let (trained_for, vocabulary) = (model.n_ctx_train(), model.n_vocab());
        let queue = Arc::new(Queue::new(options.queue));
        let (thread, cells) = start_thread(backend, model, options, &queue)?;
        let context_tokens = cells.min(if trained_for == 0 { cells } else { trained_for });
        tracing::info!(file = %file.display(), threads, context_tokens,
            took_ms = started.elapsed().as_millis(), "local model is loaded");
        let thread = Mutex::new(Some(thread));
        Ok(Self(Arc::new(Shared {
            context_tokens,
            vocabulary,
            prompter,
            grammars,
            queue,
            thread,
        })))
    }

    /// Waits for a free sequence, then for the reply. The prompt is tokenized and the schema
    /// compiled before the first await, which takes a few milliseconds at most. Dropping the future
    /// ends the request.
    ///
    /// # Errors
    ///
    /// Immediately: [`Error::TooLong`], [`Error::Schema`], [`Error::QueueFull`]. Later:
    /// [`Error::Decode`], and [`Error::Schema`] if the schema proves too complex during decoding.
    /// [`Error::Closed`] if the thread has ended.
    pub async fn complete(&self, request: Request) -> Result<Completion, Error> {
        let outcome = self.submit(request)?;
        // The thread drops the sender of a request that it can no longer answer.
        outcome.await.unwrap_or(Err(Error::Closed))
    }

    fn submit(
        &self,
        request: Request,
    ) -> Result<oneshot::Receiver<Result<Completion, Error>>, Error> {
        let limit = self.0.context_tokens;
        let max_tokens = request.max_tokens.max(1);
        let too_long = |prompt: u32| Error::TooLong {
            tokens: prompt.saturating_add(max_tokens),
            limit,
        };
        let prompt = self.0.prompter.tokens(&request.messages, limit);
        let prompt = prompt.map_err(too_long)?;
        let prompt_tokens = count(prompt.len());
        if prompt_tokens.saturating_add(max_tokens) > limit {
            return Err(too_long(prompt_tokens));
        }
        let compile = |schema| self.0.grammars.compile(schema);
        let constraint = request.schema.map(compile).transpose()?;
        let sampler = Sampler::new(self.0.vocabulary, request.temperature, request.seed);
        let (reply, outcome) = oneshot::channel();
        self.0.queue.push(Job {
            prompt,
            max_tokens,
            sampler,
            constraint,
            reply,
        })?;
        Ok(outcome)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
        let thread = self.thread.get_mut();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        // The process must not exit while the thread is inside llama.cpp. No caller is left, so the
        // thread ends after its current step.
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the local model panicked");
        }
    }
}

/// Starts the thread and waits for its cache. Returns the number of cells.
fn start_thread(
    backend: &'static LlamaBackend,
    model: Arc<LlamaModel>,
    options: Options,
    queue: &Arc<Queue>,
) -> Result<(JoinHandle<()>, u32), Error> {
    let path = options.model_path.clone();
    let (ready, started) = mpsc::sync_channel(1);
    let close_at_end = Queue::close_at_end(queue);
    let queue = Arc::clone(queue);
    let run = move || {
        let _close_at_end = close_at_end;
        match Engine::new(backend, &model, &options, queue) {
            Ok(engine) => {
                if ready.send(Ok(engine.cells())).is_ok() {
                    engine.run();
                }
            }
            Err(error) => {
                // The receiver is gone only if the loading thread panicked.
                let _ = ready.send(Err(error));
            }
        }
    };
    let load_error = |reason: String| Error::Load {
        path: path.clone(),
        reason,
    };
    let thread = thread::Builder::new()
        .name("local-model".to_owned())
        .stack_size(8 << 20)
        .spawn(run)
        .map_err(|error| load_error(error.to_string()))?;
    let cells = started
        .recv()
        .map_err(|_| load_error("its thread ended while it started".to_owned()))??;
    Ok((thread, cells))
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
