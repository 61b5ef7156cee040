//! Chooses the next token by the model's scores.

use std::collections::VecDeque;

use toktrie::SimpleVob;

const TOP_K: usize = 40;
const TOP_P: f64 = 0.95;
/// Scores of recent tokens are divided by this (or multiplied, if below zero), because small models
/// repeat themselves.
const REPEAT_PENALTY: f32 = 1.1;
const REPEAT_WINDOW: usize = 64;

/// A token and its score.
type Candidate = (f32, u32);

/// Chooses tokens for one request. Deterministic for a seed and a sequence of scores.
pub(crate) struct Sampler {
    temperature: f32,
    random: Random,
    recent: VecDeque<u32>,
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// Creates a sampler. It is greedy if `temperature` is not a positive number.
    pub(crate) fn new(temperature: f32, seed: u64) -> Self {
        Self {
            temperature,
            random: Random(seed),
            recent: VecDeque::with_capacity(REPEAT_WINDOW),
            candidates: Vec::new(),
        }
    }

    /// Records a token of the reply, so that it is penalized for a while.
    pub(crate) fn wrote(&mut self, token: u32) {
        if self.recent.len() == REPEAT_WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(token);
    }

    /// Returns the next token of plain text, with the penalty on repetition. Returns `None` if
    /// there are no scores.
    pub(crate) fn choose(&mut self, scores: &[f32]) -> Option<u32> {
        self.candidates.clear();
        self.candidates
            .extend((0..).zip(scores).map(|(token, &score)| (score, token)));
        for (at, &token) in self.recent.iter().enumerate() {
            let is_first = !self.recent.iter().take(at).any(|&earlier| earlier == token);
            if let (true, Some((score, _))) = (is_first, self.candidates.get_mut(token as usize)) {
                *score = if *score > 0.0 {
                    *score / REPEAT_PENALTY
                } else {
                    *score * REPEAT_PENALTY
                };
            }
        }
        self.pick()
    }

    /// Returns the next of the allowed tokens, without a penalty, because JSON is repetitive.
    /// Returns `None` if none is allowed.
    pub(crate) fn choose_allowed(&mut self, scores: &[f32], allowed: &SimpleVob) -> Option<u32> {
        self.candidates.clear();
        let candidates = &mut self.candidates;
        allowed.iter_set_entries(|token| {
            if let (Some(&score), Ok(token)) = (scores.get(token), u32::try_from(token)) {
                candidates.push((score, token));
            }
        });
        self.pick()
    }

    fn pick(&mut self) -> Option<u32> {
        self.candidates.retain(|(score, _)| !score.is_nan());
        // `is_normal` is false for 0, infinity and NaN.
        if !(self.temperature.is_normal() && self.temperature > 0.0) || self.candidates.len() <= 1 {
            return self
                .candidates
                .iter()
                .min_by(|a, b| best_first(a, b))
                .map(|&(_, token)| token);
        }
        if self.candidates.len() > TOP_K {
            self.candidates.select_nth_unstable_by(TOP_K, best_first);
            self.candidates.truncate(TOP_K);
        }
        self.candidates.sort_unstable_by(best_first);
        keep_top_p(&mut self.candidates);
        draw(&self.candidates, self.temperature, self.random.unit())
    }
}

/// Orders higher scores first, and equal scores by the lower token, so that the order is total.
fn best_first(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// Returns weights proportional to the probability at this temperature, 1 for the first. `sorted`
/// has the best first.
fn weights(sorted: &[Candidate], temperature: f32) -> impl Iterator<Item = f64> {
    let best = sorted.first().map_or(0.0, |first| first.0);
    sorted
        .iter()
        .map(move |(score, _)| f64::from((score - best) / temperature).exp())
}

/// Truncates `sorted` to the fewest best tokens that have [`TOP_P`] of the probability.
fn keep_top_p(sorted: &mut Vec<Candidate>) {
    let total: f64 = weights(sorted, 1.0).sum();
    let mut held = 0.0;
    let below = weights(sorted, 1.0).take_while(|weight| {
        held += weight;
        held < TOP_P * total
    });
    let keep = below.count() + 1;
    sorted.truncate(keep);
}

/// Returns the token at `point` (from 0, below 1) of the cumulated probability.
fn draw(sorted: &[Candidate], temperature: f32, point: f64) -> Option<u32> {
    let total: f64 = weights(sorted, temperature).sum();
    let mut left = point * total;
    let drawn = sorted
        .iter()
        .zip(weights(sorted, temperature))
        .find(|(_, weight)| {
            left -= weight;
            left < 0.0
        });
    drawn
        .map(|(candidate, _)| candidate)
        .or(sorted.last())
        .map(|&(_, token)| token)
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    /// Returns a number from 0 up to, but not including, 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // 53 bits fill the mantissa exactly.
        (z >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperature_zero_takes_the_best_and_the_lower_token_among_equals() {
        let mut sampler = Sampler::new(0.0, 1);
        assert_eq!(sampler.choose(&[0.5, 3.0, 3.0, -1.0]), Some(1));
        assert_eq!(sampler.choose(&[]), None);
        assert_eq!(sampler.choose(&[f32::NAN, -2.0]), Some(1));
    }

    #[test]
    fn a_token_written_lately_is_penalised_once() {
        let mut sampler = Sampler::new(0.0, 1);
        sampler.wrote(1);
        sampler.wrote(1);
        assert_eq!(sampler.choose(&[0.0, 2.1, 2.0]), Some(2));
        assert_eq!(sampler.choose(&[0.0, 2.3, 2.0]), Some(1));
    }

    #[test]
    fn a_penalty_lowers_scores_below_zero_too() {
        let mut sampler = Sampler::new(0.0, 1);
        sampler.wrote(0);
        assert_eq!(sampler.choose(&[-1.0, -1.05]), Some(1));
    }

    #[test]
    fn the_penalty_ends_with_the_window() {
        let mut sampler = Sampler::new(0.0, 1);
        sampler.wrote(1);
        (0..REPEAT_WINDOW).for_each(|_| sampler.wrote(0));
        assert_eq!(sampler.choose(&[0.0, 2.1, 2.0]), Some(1));
    }

    #[test]
    fn only_allowed_tokens_are_chosen() {
        let mut allowed = SimpleVob::alloc(4);
        allowed.allow_token(0);
        allowed.allow_token(3);
        let mut sampler = Sampler::new(0.0, 1);
        assert_eq!(
            sampler.choose_allowed(&[0.5, 9.0, 9.0, 1.0], &allowed),
            Some(3)
        );
        assert_eq!(
            sampler.choose_allowed(&[0.5, 9.0, 9.0, 1.0], &SimpleVob::alloc(4)),
            None
        );
    }

    #[test]
    fn the_same_seed_draws_the_same_tokens_and_another_seed_others() {
        let scores: Vec<f32> = (0..100u8)
            .map(|token| f32::from(token % 10) / 10.0)
            .collect();
        let draw = |seed| -> Vec<_> {
            let mut sampler = Sampler::new(1.0, seed);
            (0..20).map(|_| sampler.choose(&scores)).collect()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn unlikely_tokens_are_never_drawn() {
        let mut sampler = Sampler::new(1.0, 3);
        assert!((0..1000).all(|_| sampler.choose(&[10.0, 0.0, 0.0, 0.0]) == Some(0)));
    }

    #[test]
    fn likely_tokens_are_drawn_about_as_often_as_their_probability() {
        let mut sampler = Sampler::new(1.0, 3);
        let first = (0..1000)
            .filter(|_| sampler.choose(&[1.0, 1.0]) == Some(0))
            .count();
        assert!((450..550).contains(&first), "{first} of 1000");
    }
}
