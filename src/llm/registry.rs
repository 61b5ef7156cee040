//! The providers by name. Each has a limit on its calls, and each of its models a limit of its own and
//! a circuit breaker.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::anthropic::Anthropic;
use super::circuit::{self, BreakerSettings, Circuit, CircuitPosition, Permit, Signal};
use super::limit::{Limit, Load, ProviderLimit};
use super::openai::OpenAi;
use super::redacting_model::RedactingModel;
use super::run_slots::RunSlots;
use super::{ChatModel, ChatReply, ChatRequest, Error, ErrorKind, MIN_TIME};
use crate::domain::{Provider, ProviderKind};

/// All providers.
#[derive(Default)]
pub struct Registry {
    models: BTreeMap<String, Arc<Limited>>,
    breaker: BreakerSettings,
    /// Secrets to be removed from replies and errors.
    secrets: Arc<[SecretString]>,
    /// Told when a call ends or stops waiting.
    changed: Arc<Notify>,
}

/// The circuit of one model at one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitState {
    pub provider: String,
    /// The provider's model id.
    pub model: String,
    pub state: CircuitPosition,
    /// How often it has opened since the process started.
    pub opened_total: u64,
}

impl Registry {
    /// Creates one HTTP client per provider, except for the in-process model.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] if a provider's client cannot be built.
    pub fn new<'a>(
        providers: impl IntoIterator<Item = &'a Provider>,
        connect_timeout: Duration,
        breaker: BreakerSettings,
    ) -> Result<Registry, Error> {
        let mut registry = Registry {
            breaker,
            ..Registry::default()
        };
        for provider in providers {
            let model: Arc<dyn ChatModel> = match provider.kind {
                ProviderKind::Anthropic => Arc::new(Anthropic::new(provider, connect_timeout)?),
                ProviderKind::Openai => Arc::new(OpenAi::new(provider, connect_timeout)?),
                ProviderKind::Local => continue,
            };
            registry.add(provider.name.clone(), model, provider.max_concurrent, true);
        }
        Ok(registry)
    }

    /// Adds a model that is not behind HTTP, or replaces the provider with this name. Its limits do
    /// not adapt: its capacity is known.
    pub fn insert(
        &mut self,
        name: impl Into<String>,
        model: Arc<dyn ChatModel>,
        max_concurrent: usize,
    ) {
        self.add(name.into(), model, max_concurrent, false);
    }

    fn add(
        &mut self,
        name: String,
        model: Arc<dyn ChatModel>,
        max_concurrent: usize,
        is_adaptive: bool,
    ) {
        let changed = Arc::clone(&self.changed);
        let limited = Limited {
            provider: name.clone(),
            limit: Arc::new(ProviderLimit::new(max_concurrent, changed)),
            is_adaptive,
            model,
            breaker: self.breaker,
            guards: Mutex::default(),
        };
        self.models.insert(name, Arc::new(limited));
    }

    /// Returns the run slots for runs whose first call goes to one of the models `first`, and whose
    /// others go to `others`. Models are given with their providers.
    pub fn run_slots<'a>(
        &self,
        first: impl IntoIterator<Item = (&'a str, &'a str)>,
        others: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> RunSlots {
        let limit = |(provider, model): (&str, &str)| {
            let limited = self.models.get(provider)?;
            Some(limited.with_guard(model, |guard| Arc::clone(&guard.limit)))
        };
        RunSlots::new(
            first.into_iter().filter_map(limit).collect(),
            others.into_iter().filter_map(limit).collect(),
            Arc::clone(&self.changed),
        )
    }

    /// Returns the load of each model that was called so far or that every run calls, with its
    /// provider.
    pub fn loads(&self) -> Vec<(String, String, Load)> {
        self.guarded(|provider, model, guard| (provider, model, guard.limit.load()))
    }

    /// Returns the same providers, with these secrets removed from everything that they return.
    #[must_use]
    pub fn redacting(mut self, secrets: &[SecretString]) -> Registry {
        self.secrets = secrets.into();
        self
    }

    /// Returns the provider with this name, with its limit, circuit breakers and redaction.
    pub fn model(&self, provider: &str) -> Option<Arc<dyn ChatModel>> {
        let limited = Arc::clone(self.models.get(provider)?);
        Some(Arc::new(RedactingModel {
            provider: provider.to_owned(),
            model: limited,
            secrets: Arc::clone(&self.secrets),
        }))
    }

    /// True if a model has answered a call within this time.
    pub fn has_answered_within(&self, provider: &str, model: &str, time: Duration) -> bool {
        let limited = self.models.get(provider);
        limited.is_some_and(|limited| {
            limited.with_guard(model, |guard| guard.limit.has_answered_within(time))
        })
    }

    /// Returns the error of a call to this model, if its circuit is open.
    pub fn open_circuit(&self, provider: &str, model: &str) -> Option<Error> {
        let limited = self.models.get(provider)?;
        let guards = limited.guards();
        let wait = guards.get(model)?.circuit.refuses(Instant::now())?;
        drop(guards);
        // A circuit without a wait is half-open, and its probe may succeed.
        (!wait.is_zero()).then(|| limited.refused(model, wait))
    }

    /// Returns the circuits of all models that were called so far or that every run calls, by provider
    /// and model id.
    pub fn circuits(&self) -> Vec<CircuitState> {
        let now = Instant::now();
        self.guarded(|provider, model, guard| CircuitState {
            provider,
            model,
            state: guard.circuit.position(now),
            opened_total: guard.circuit.opened_total,
        })
    }

    /// Returns what `read` tells of each model, by its provider and its id.
    fn guarded<T>(&self, read: impl Fn(String, String, &Guard) -> T) -> Vec<T> {
        let mut all = vec![];
        for limited in self.models.values() {
            let guards = limited.guards();
            let of_model = |(model, guard): (&String, &Guard)| {
                read(limited.provider.clone(), model.clone(), guard)
            };
            all.extend(guards.iter().map(of_model));
        }
        all
    }
}

/// A provider with a fair concurrency limit and a circuit breaker per model.
struct Limited {
    provider: String,
    limit: Arc<ProviderLimit>,
    is_adaptive: bool,
    model: Arc<dyn ChatModel>,
    breaker: BreakerSettings,
    /// By model id.
    guards: Mutex<BTreeMap<String, Guard>>,
}

/// What protects one model from more calls than it takes.
struct Guard {
    circuit: Circuit,
    limit: Arc<Limit>,
}

impl Limited {
    fn guards(&self) -> MutexGuard<'_, BTreeMap<String, Guard>> {
        self.guards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_guard<T>(&self, model: &str, look: impl FnOnce(&mut Guard) -> T) -> T {
        let mut guards = self.guards();
        let guard = guards.entry(model.to_owned()).or_insert_with(|| Guard {
            circuit: Circuit::new(self.breaker),
            limit: Arc::new(Limit::new(Arc::clone(&self.limit), self.is_adaptive)),
        });
        look(guard)
    }

    fn with_circuit<T>(&self, model: &str, look: impl FnOnce(&mut Circuit) -> T) -> T {
        self.with_guard(model, |guard| look(&mut guard.circuit))
    }

    fn refused(&self, model: &str, retry_in: Duration) -> Error {
        let last = self.with_circuit(model, |circuit| circuit.last_failure.clone());
        let kind = ErrorKind::CircuitOpen {
            model: model.to_owned(),
            last: last.unwrap_or_else(|| "failed too often in a row".to_owned()),
            retry_in,
        };
        Error::new(&self.provider, kind, "")
    }

    fn record(&self, model: &str, permit: Permit, signal: Signal) {
        let record = |circuit: &mut Circuit| circuit.record(permit, signal, Instant::now());
        let (provider, open_seconds) = (&self.provider, self.breaker.open_for.as_secs());
        match self.with_circuit(model, record) {
            Some(CircuitPosition::Open) => {
                tracing::warn!(
                    provider,
                    model,
                    open_seconds,
                    "the circuit opened: the model is not asked for a while"
                );
            }
            Some(_) => {
                tracing::info!(
                    provider,
                    model,
                    "the circuit closed: the model answers again"
                );
            }
            None => {}
        }
    }

    /// Makes the call if the circuit admits it, and records the outcome.
    async fn admitted(&self, request: &ChatRequest) -> (Result<ChatReply, Error>, Signal) {
        let model = &request.model;
        let permit = self.with_circuit(model, |circuit| circuit.admit(Instant::now()));
        let permit = match permit {
            Ok(permit) => permit,
            Err(wait) => return (Err(self.refused(model, wait)), Signal::None),
        };
        let mut watch = Watch {
            limited: self,
            model,
            permit,
            signal: Signal::None,
        };
        let result = self.model.chat(request).await;
        watch.signal = circuit::classify(
            &result,
            (request.timeout, request.has_fallback),
            self.breaker.patience,
        );
        if let (Signal::Failure, Err(error)) = (watch.signal, &result) {
            let cause = error.named();
            self.with_circuit(model, |circuit| circuit.last_failure = Some(cause));
        }
        (result, watch.signal)
    }
}

/// Records a call's outcome in the circuit when dropped, also if the call's future was dropped.
struct Watch<'a> {
    limited: &'a Limited,
    model: &'a str,
    permit: Permit,
    signal: Signal,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.limited.record(self.model, self.permit, self.signal);
    }
}

#[async_trait]
impl ChatModel for Limited {
    /// Waits for a permit, then makes the call. The wait counts towards the request's timeout. A request
    /// with a fallback does not wait for a limit that was lowered.
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        // Do not wait for a call that would be refused.
        let model = &request.model;
        let (refused, limit) = self.with_guard(model, |guard| {
            let refused = guard.circuit.refuses(Instant::now());
            (refused, Arc::clone(&guard.limit))
        });
        if let Some(wait) = refused {
            return Err(self.refused(model, wait));
        }
        if request.has_fallback && limit.is_throttled() {
            let model = model.clone();
            let kind = ErrorKind::Throttled { model };
            return Err(Error::new(&self.provider, kind, ""));
        }
        let saturated = || Error::new(&self.provider, ErrorKind::Saturated, "");
        let permit = limit.permit(request.timeout).await;
        let permit = permit.ok_or_else(saturated)?;
        let (result, signal) = match permit.waited {
            None => self.admitted(request).await,
            Some(waited) => {
                let left = request.timeout.saturating_sub(waited);
                if left < MIN_TIME {
                    return Err(saturated());
                }
                let request = ChatRequest {
                    timeout: left,
                    ..request.clone()
                };
                self.admitted(&request).await
            }
        };
        permit.record(request, &result, signal);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use futures_util::future::join_all;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::domain::{FailureCause, Retryable};

    /// Answers after two seconds with the timeout of its request.
    struct Slow;

    #[async_trait]
    impl ChatModel for Slow {
        async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
            sleep(Duration::from_secs(2)).await;
            Ok(ChatReply::sample(&request.timeout.as_secs().to_string()))
        }
    }

    fn request(seconds: u64) -> ChatRequest {
        ChatRequest {
            timeout: Duration::from_secs(seconds),
            ..ChatRequest::sample()
        }
    }

    fn slow() -> Arc<dyn ChatModel> {
        let mut registry = Registry::default();
        registry.insert("slow", Arc::new(Slow), 1);
        registry.model("slow").unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_turn_counts_towards_the_timeout() {
        let (model, patient, impatient) = (slow(), request(10), request(1));
        let (first, second, impatient) = tokio::join!(
            model.chat(&patient),
            model.chat(&patient),
            model.chat(&impatient)
        );
        assert_eq!(first.unwrap().text, "10");
        assert_eq!(second.unwrap().text, "8");
        assert_eq!(impatient.unwrap_err().kind, ErrorKind::Saturated);
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_call_gives_its_turn_back() {
        let model = slow();
        let request = request(10);
        let abandoned = timeout(Duration::from_secs(1), model.chat(&request)).await;
        assert!(abandoned.is_err());
        assert_eq!(model.chat(&request).await.unwrap().text, "10");
    }

    /// Fails until the flag is changed.
    #[derive(Default)]
    struct Ill(AtomicBool);

    #[async_trait]
    impl ChatModel for Ill {
        async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
            if self.0.load(Relaxed) {
                return Slow.chat(request).await;
            }
            Err(Error::new("ill", ErrorKind::Connect, "refused"))
        }
    }

    fn with_breaker(failures: u32, seconds: u64) -> (Registry, Arc<Ill>, Arc<dyn ChatModel>) {
        let breaker = BreakerSettings {
            failures,
            open_for: Duration::from_secs(seconds),
            ..BreakerSettings::default()
        };
        let mut registry = Registry::new([], Duration::ZERO, breaker).unwrap();
        let ill = Arc::new(Ill::default());
        registry.insert("ill", Arc::clone(&ill) as Arc<dyn ChatModel>, 4);
        let model = registry.model("ill").unwrap();
        (registry, ill, model)
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_that_fails_in_a_row_is_not_asked_for_a_while_and_others_of_its_provider_are() {
        let (registry, ill, model) = with_breaker(2, 30);
        let other = ChatRequest {
            model: "other".into(),
            ..request(10)
        };
        for asked in [&request(10), &request(10), &other] {
            let error = model.chat(asked).await.unwrap_err();
            assert_eq!(error.cause(), FailureCause::Unreachable);
        }
        let refused = model.chat(&request(10)).await.unwrap_err();
        assert_eq!(
            (refused.cause(), refused.retry(), refused.may_be_billed()),
            (FailureCause::CircuitOpen, Retryable::No, false)
        );
        assert_eq!(
            refused.outline(),
            "unreachable; the circuit of m at ill is open for 30 s"
        );
        let circuits = registry.circuits();
        let states = circuits
            .iter()
            .map(|c| (c.model.as_str(), c.state, c.opened_total));
        let expected = [
            ("m", CircuitPosition::Open, 1),
            ("other", CircuitPosition::Closed, 0),
        ];
        assert_eq!(states.collect::<Vec<_>>(), expected);
        ill.0.store(true, Relaxed);
        sleep(Duration::from_secs(30)).await;
        let (first, second) = (request(10), request(10));
        let (probe, beside) = tokio::join!(model.chat(&first), model.chat(&second));
        assert!(probe.is_ok());
        let beside = beside.unwrap_err();
        assert_eq!(
            (beside.outline().as_str(), beside.retry()),
            (
                "unreachable; the circuit of m at ill is open until a probe ends",
                Retryable::AfterMs(0)
            ),
            "one probe at a time"
        );
        assert!(model.chat(&first).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_probe_leaves_the_place_to_the_next() {
        let (_, ill, model) = with_breaker(1, 1);
        let request = request(10);
        assert!(model.chat(&request).await.is_err());
        ill.0.store(true, Relaxed);
        sleep(Duration::from_secs(1)).await;
        let abandoned = timeout(Duration::from_millis(10), model.chat(&request)).await;
        assert!(abandoned.is_err());
        assert!(model.chat(&request).await.is_ok());
    }

    /// Refuses its first call, and answers the others as [`Slow`].
    #[derive(Default)]
    struct RefusedOnce(AtomicBool);

    #[async_trait]
    impl ChatModel for RefusedOnce {
        async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
            if self.0.swap(true, Relaxed) {
                return Slow.chat(request).await;
            }
            let kind = ErrorKind::Status {
                status: 429,
                retry_after: None,
            };
            Err(Error::new("p", kind, ""))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_with_a_fallback_does_not_wait_for_a_lowered_limit() {
        let mut registry = Registry::default();
        let server = Arc::new(RefusedOnce::default());
        registry.add("p".into(), server, 64, true);
        let model = registry.model("p").unwrap();
        let (alone, with_fallback) = (
            request(10),
            ChatRequest {
                has_fallback: true,
                ..request(10)
            },
        );
        assert!(model.chat(&alone).await.is_err());
        let four = join_all((0..4).map(|_| model.chat(&alone)));
        let (four, passed_on, waited) =
            tokio::join!(four, model.chat(&with_fallback), model.chat(&alone));
        assert!(four.iter().all(Result::is_ok));
        let throttled = ErrorKind::Throttled { model: "m".into() };
        assert_eq!(passed_on.unwrap_err().kind, throttled);
        assert_eq!(waited.unwrap().text, "8", "it waited for two seconds");
        assert!(model.chat(&with_fallback).await.is_ok(), "a place is free");
    }

    #[tokio::test(start_paused = true)]
    async fn runs_begin_while_the_provider_has_free_places_and_those_that_have_begun_come_first() {
        let mut registry = Registry::default();
        registry.insert("p", Arc::new(Slow), 8);
        registry.insert("small", Arc::new(Slow), 1);
        let slots = Arc::new(registry.run_slots([("p", "m")], [("p", "m"), ("q", "m")]));
        let small = Arc::new(registry.run_slots([("small", "m")], []));
        let only = small.try_acquire().unwrap();
        assert!(small.try_acquire().is_none(), "one run may always begin");
        drop(only);
        let model = registry.model("p").unwrap();
        let (first, second) = (slots.try_acquire().unwrap(), slots.try_acquire().unwrap());
        assert!(
            slots.try_acquire().is_none(),
            "two runs make all calls that there is room for"
        );
        let request = request(1000);
        drop((first, second));
        let later = async {
            sleep(Duration::from_millis(1)).await;
            assert!(slots.try_acquire().is_none(), "a call waits");
            let begun = Instant::now();
            drop(slots.acquire().await);
            begun.elapsed()
        };
        let calls = join_all((0..17).map(|_| model.chat(&request)));
        let (_, waited) = tokio::join!(calls, later);
        assert_eq!(waited.as_secs(), 3, "the last call began after two others");
    }
}
