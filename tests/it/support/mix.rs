//! Mixes every kind of fault by a seed: the same case and attempt meet the same fault in every run
//! of a test.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use super::call::Call;
use super::script::Fault;

/// Returns every kind of fault with its name in tables.
pub fn kinds() -> [(&'static str, Fault); 19] {
    // Longer than the timeout of any call in the tests.
    let for_ever = Duration::from_secs(60);
    [
        ("connection reset", Fault::Hang(Duration::ZERO)),
        ("reset mid-body", Fault::CutBody),
        ("hang", Fault::Hang(for_ever)),
        ("408", Fault::Status(408)),
        ("409", Fault::Status(409)),
        ("429, retry-after 1 s", Fault::RateLimited(1)),
        ("429", Fault::Status(429)),
        ("500", Fault::Status(500)),
        ("502", Fault::Status(502)),
        ("503", Fault::Status(503)),
        ("529", Fault::Status(529)),
        ("400", Fault::Status(400)),
        ("truncated JSON", Fault::CutJson),
        ("no JSON", Fault::Malformed),
        ("wrong schema", Fault::WrongSchema),
        ("a proxy's page", Fault::Body(200, "<html>".into())),
        ("refusal", Fault::Refusal),
        ("empty", Fault::Text(String::new())),
        ("slow", Fault::Latency(Duration::from_millis(400))),
    ]
}

/// Lets `percent` of 100 calls meet one of `faults`. A call is identified by the case in its
/// question ("case 17"), its step and its attempt. The run's id is not used, because it differs
/// every time.
pub fn of(seed: u64, percent: u64, faults: Vec<Fault>) -> impl Fn(&Call) -> Fault {
    move |call| {
        let prompt = call.prompt();
        let (_, case) = prompt.split_once("case ").unwrap_or_default();
        let case: String = case.chars().take_while(char::is_ascii_digit).collect();
        let drawn = mixed(seed, &format!("{case}/{}", call.key));
        let index = (drawn >> 20) as usize % faults.len();
        let is_hit = !case.is_empty() && drawn % 100 < percent;
        let none = Fault::Latency(Duration::ZERO);
        if is_hit { faults[index].clone() } else { none }
    }
}

/// Returns a pseudo-random number for a seed and a text.
pub fn mixed(seed: u64, text: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((seed, text))
}
