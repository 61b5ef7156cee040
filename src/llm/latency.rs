//! How long a model takes: a bounded window of the calls that it answered, learned in this process.

use std::collections::VecDeque;
use std::time::Duration;

/// Calls that are remembered: enough for a 95th percentile, few enough to forget a slow hour.
const WINDOW: usize = 200;

/// The latencies of one model's latest answers.
#[derive(Debug, Default)]
pub(super) struct Latencies(VecDeque<Duration>);

impl Latencies {
    pub fn learn(&mut self, latency: Duration) {
        if self.0.len() == WINDOW {
            self.0.pop_front();
        }
        self.0.push_back(latency);
    }

    /// The latency that 95 of 100 answers do not pass (nearest rank), once there are `least` of them.
    pub fn p95(&self, least: usize) -> Option<Duration> {
        if self.0.len() < least.max(1) {
            return None;
        }
        let mut sorted: Vec<Duration> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * 95).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_the_nearest_rank_of_the_latest_answers() {
        let mut latencies = Latencies::default();
        for ms in 1..=20 {
            assert_eq!(latencies.p95(20), None);
            latencies.learn(Duration::from_millis(ms));
        }
        assert_eq!(latencies.p95(20), Some(Duration::from_millis(19)));
        for _ in 0..WINDOW {
            latencies.learn(Duration::from_millis(500));
        }
        assert_eq!(
            latencies.p95(20),
            Some(Duration::from_millis(500)),
            "what was before the window is forgotten"
        );
        assert_eq!(latencies.0.len(), WINDOW);
    }
}
