//! Mixes every kind of fault by a seed: the same case and attempt meet the same fault in every run
//! of a test.

use std::sync::Arc;
use std::time::Duration;

use super::script::{Fault, Mix};

/// Returns every kind of fault with its name in tables.
pub fn kinds() -> [(&'static str, Fault); 19] {
    // Longer than the timeout of any call in the tests.
    let for_ever = Duration::from_secs(60);
    let rate_limited = Fault::RateLimited {
        retry_after_secs: 1,
    };
    [
        ("connection reset", Fault::Hang(Duration::ZERO)),
        ("reset mid-body", Fault::CutBody),
        ("hang", Fault::Hang(for_ever)),
        ("408", Fault::Status(408)),
        ("409", Fault::Status(409)),
        ("429, retry-after 1 s", rate_limited),
        ("429", Fault::Status(429)),
        ("500", Fault::Status(500)),
        ("502", Fault::Status(502)),
        ("503", Fault::Status(503)),
        ("529", Fault::Status(529)),
        ("400", Fault::Status(400)),
        ("truncated JSON", Fault::CutJson),
        ("no JSON", Fault::Malformed),
        ("wrong schema", Fault::WrongSchema),
        ("a proxy's page", Fault::Html),
        ("refusal", Fault::Refusal),
        ("empty", Fault::EmptyText),
        ("slow", Fault::Latency(Duration::from_millis(400))),
    ]
}

/// Lets `percent` of 100 calls meet one of `faults`. A call is identified by the case in its
/// question ("case 17"), its step and its attempt. The run's id is not used, because it differs
/// every time.
pub fn of(seed: u64, percent: u64, faults: Vec<Fault>) -> Mix {
    Arc::new(move |call| {
        let prompt = call.prompt();
        let (_, case) = prompt.split_once("case ")?;
        let case: String = case.chars().take_while(char::is_ascii_digit).collect();
        let drawn = mixed(seed, &format!("{case}/{}", call.key));
        let index = (drawn >> 20) as usize % faults.len();
        (drawn % 100 < percent).then(|| faults[index].clone())
    })
}

/// Returns a pseudo-random number for a seed and a text (FNV-1a, then the end of SplitMix64).
pub fn mixed(seed: u64, text: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = text.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
