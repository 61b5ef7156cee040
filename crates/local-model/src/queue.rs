//! The bounded queue between callers and the model's thread.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use llama_cpp_2::token::LlamaToken;
use tokio::sync::oneshot;

use crate::constrain::Constraint;
use crate::sample::Sampler;
use crate::{Completion, Error};

/// Where the caller waits for the result. It is closed once the caller has dropped its future.
pub(crate) type Reply = oneshot::Sender<Result<Completion, Error>>;

/// A request that is ready for decoding.
pub(crate) struct Job {
    pub prompt: Vec<LlamaToken>,
    pub max_tokens: u32,
    pub sampler: Sampler,
    pub constraint: Option<Constraint>,
    pub reply: Reply,
}

impl Job {
    /// Returns the number of key-value cache cells that the request may need.
    pub(crate) fn cells(&self) -> u32 {
        u32::try_from(self.prompt.len())
            .unwrap_or(u32::MAX)
            .saturating_add(self.max_tokens)
    }
}

/// The result of asking the queue for work.
pub(crate) enum Next {
    Job(Box<Job>),
    /// No request can start now.
    Nothing,
    Closed,
}

/// A first-in, first-out queue. Small requests do not pass a large one at the front, so that it is
/// served eventually.
pub(crate) struct Queue {
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Queue {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Adds a job, unless the queue is full or closed.
    pub(crate) fn push(&self, job: Job) -> Result<(), Error> {
        let mut state = self.lock();
        if state.closed {
            return Err(Error::Closed);
        }
        state.jobs.retain(|job| !job.reply.is_closed());
        if state.jobs.len() >= self.most {
            return Err(Error::QueueFull {
                waiting: state.jobs.len(),
            });
        }
        state.jobs.push_back(job);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes the first job if it `fits`. If no job is waiting, returns at once, or waits for one if
    /// `idle`.
    pub(crate) fn next(&self, idle: bool, fits: impl Fn(&Job) -> bool) -> Next {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Next::Closed;
            }
            state.jobs.retain(|job| !job.reply.is_closed());
            if state.jobs.front().is_some_and(&fits) {
                let job = state.jobs.pop_front();
                return job.map_or(Next::Nothing, |job| Next::Job(Box::new(job)));
            }
            if !idle || !state.jobs.is_empty() {
                return Next::Nothing;
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Refuses new jobs and drops the waiting ones. Their callers get [`Error::Closed`].
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.jobs.clear();
        self.changed.notify_all();
    }

    /// Returns a guard that closes the queue when the thread ends, even by a panic.
    pub(crate) fn close_at_end(queue: &Arc<Self>) -> CloseAtEnd {
        CloseAtEnd(Arc::clone(queue))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Poisoning is harmless: no code that can panic leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the queue when dropped.
pub(crate) struct CloseAtEnd(Arc<Queue>);

impl Drop for CloseAtEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = oneshot::Receiver<Result<Completion, Error>>;

    fn job(max_tokens: u32) -> (Job, Outcome) {
        let (reply, outcome) = oneshot::channel();
        let sampler = Sampler::new(1, 0.0, 0);
        let job = Job {
            prompt: vec![LlamaToken(1)],
            max_tokens,
            sampler,
            constraint: None,
            reply,
        };
        (job, outcome)
    }

    fn cells(next: Next) -> Option<u32> {
        match next {
            Next::Job(job) => Some(job.cells()),
            Next::Nothing | Next::Closed => None,
        }
    }

    #[test]
    fn a_full_queue_refuses_and_says_how_many_wait() {
        let queue = Queue::new(1);
        let (first, _outcome) = job(1);
        assert_eq!(queue.push(first), Ok(()));
        assert_eq!(queue.push(job(1).0), Err(Error::QueueFull { waiting: 1 }));
    }

    #[test]
    fn a_caller_that_went_away_makes_room() {
        let queue = Queue::new(1);
        let (second, _outcome) = job(2);
        assert_eq!(queue.push(job(1).0), Ok(()));
        assert_eq!(queue.push(second), Ok(()));
        assert_eq!(cells(queue.next(false, |_| true)), Some(3));
    }

    #[test]
    fn jobs_start_in_order_and_a_large_one_is_not_overtaken() {
        let queue = Queue::new(8);
        let ((large, _a), (small, _b)) = (job(99), job(4));
        assert_eq!((queue.push(large), queue.push(small)), (Ok(()), Ok(())));
        assert_eq!(cells(queue.next(false, |job| job.cells() <= 50)), None);
        assert_eq!(cells(queue.next(false, |_| true)), Some(100));
        assert_eq!(cells(queue.next(false, |_| true)), Some(5));
    }

    #[test]
    fn closing_drops_what_waits_and_refuses_the_rest() {
        let queue = Queue::new(8);
        let (first, mut outcome) = job(1);
        assert_eq!(queue.push(first), Ok(()));
        queue.close();
        let closed = oneshot::error::TryRecvError::Closed;
        assert_eq!(outcome.try_recv(), Err(closed));
        assert_eq!(queue.push(job(1).0), Err(Error::Closed));
        assert!(matches!(queue.next(true, |_| true), Next::Closed));
    }
}
