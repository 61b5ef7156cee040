//! Chooses the next token by the model's scores, with the samplers of llama.cpp.

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use toktrie::SimpleVob;

const TOP_K: i32 = 40;
const TOP_P: f32 = 0.95;
/// Scores of recent tokens are divided by this (or multiplied, if below zero), because small models
/// repeat themselves.
const REPEAT_PENALTY: f32 = 1.1;
const REPEAT_WINDOW: i32 = 64;

/// Chooses tokens for one request. Deterministic for a seed and a sequence of scores.
pub(crate) struct Sampler {
    penalties: LlamaSampler,
    choice: LlamaSampler,
}

impl Sampler {
    /// Creates a sampler. It is greedy if `temperature` is not a positive number.
    pub(crate) fn new(vocabulary: i32, temperature: f32, seed: u64) -> Self {
        // `is_normal` is false for 0, infinity and NaN.
        let choice = if temperature.is_normal() && temperature > 0.0 {
            LlamaSampler::chain_simple([
                LlamaSampler::top_k(TOP_K),
                LlamaSampler::top_p(TOP_P, 1),
                LlamaSampler::temp(temperature),
                LlamaSampler::dist(short_seed(seed)),
            ])
        } else {
            LlamaSampler::greedy()
        };
        let penalties =
            LlamaSampler::penalties(vocabulary, REPEAT_WINDOW, REPEAT_PENALTY, 0.0, 0.0);
        Self { penalties, choice }
    }

    /// Records a token of the reply, so that it is penalized for a while.
    pub(crate) fn wrote(&mut self, token: LlamaToken) {
        self.penalties.accept(token);
    }

    /// Returns the next token of plain text, with the penalty on repetition. Returns `None` if
    /// there are no scores.
    pub(crate) fn choose(&mut self, scores: &[f32]) -> Option<LlamaToken> {
        let all = (0..).zip(scores).map(|(token, score)| (token, *score));
        let mut candidates = candidates(all);
        candidates.apply_sampler(&mut self.penalties);
        self.pick(candidates)
    }

    /// Returns the next of the allowed tokens, without a penalty, because JSON is repetitive.
    /// Returns `None` if none is allowed.
    pub(crate) fn choose_allowed(
        &mut self,
        scores: &[f32],
        allowed: &SimpleVob,
    ) -> Option<LlamaToken> {
        let score = |token: u32| Some((token.cast_signed(), *scores.get(token as usize)?));
        self.pick(candidates(allowed.iter().filter_map(score)))
    }

    fn pick(&mut self, mut candidates: LlamaTokenDataArray) -> Option<LlamaToken> {
        if candidates.data.is_empty() {
            return None;
        }
        candidates.apply_sampler(&mut self.choice);
        candidates.selected_token()
    }
}

fn candidates(scored: impl Iterator<Item = (i32, f32)>) -> LlamaTokenDataArray {
    let numbers = scored.filter(|(_, score)| !score.is_nan());
    let data = numbers.map(|(token, score)| LlamaTokenData::new(LlamaToken(token), score, 0.0));
    LlamaTokenDataArray::from_iter(data, false)
}

/// Returns a seed of llama.cpp, for which the greatest number means a random seed.
fn short_seed(seed: u64) -> u32 {
    let folded = (seed ^ (seed >> 32)) & u64::from(u32::MAX >> 1);
    u32::try_from(folded).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greedy(wrote: &[i32]) -> Sampler {
        let mut sampler = Sampler::new(4, 0.0, 1);
        let tokens = wrote.iter().map(|token| LlamaToken(*token));
        tokens.for_each(|token| sampler.wrote(token));
        sampler
    }

    #[test]
    fn temperature_zero_takes_the_best_and_recent_tokens_are_penalized_once() {
        let out_of_the_window = [&[1][..], &[0; 64]].concat();
        let cases: [(&[i32], &[f32], Option<i32>); 7] = [
            (&[], &[0.5, 3.0, 3.0, -1.0], Some(1)),
            (&[], &[f32::NAN, -2.0], Some(1)),
            (&[], &[], None),
            (&[1, 1], &[0.0, 2.1, 2.0], Some(2)),
            (&[1, 1], &[0.0, 2.3, 2.0], Some(1)),
            (&[0], &[-1.0, -1.05], Some(1)),
            (&out_of_the_window, &[0.0, 2.1, 2.0], Some(1)),
        ];
        for (wrote, scores, expected) in cases {
            let chosen = greedy(wrote).choose(scores);
            assert_eq!(
                chosen.map(|token| token.0),
                expected,
                "{wrote:?} {scores:?}"
            );
        }
    }

    #[test]
    fn only_allowed_tokens_are_chosen() {
        let mut allowed = SimpleVob::alloc(4);
        assert_eq!(greedy(&[]).choose_allowed(&[0.5, 9.0], &allowed), None);
        allowed.allow_token(0);
        allowed.allow_token(3);
        let chosen = greedy(&[]).choose_allowed(&[0.5, 9.0, 9.0, 1.0], &allowed);
        assert_eq!(chosen, Some(LlamaToken(3)));
    }

    #[test]
    fn a_seed_draws_the_same_tokens_and_only_likely_ones() {
        let draw = |seed, scores: &[f32]| -> Vec<_> {
            let mut sampler = Sampler::new(100, 1.0, seed);
            (0..200).map(|_| sampler.choose(scores)).collect()
        };
        let scores: Vec<f32> = (0..100u8).map(|token| f32::from(token % 10)).collect();
        assert_eq!(draw(7, &scores), draw(7, &scores));
        assert_ne!(draw(7, &scores), draw(8, &scores));
        let first = |scores: &[f32]| {
            let drawn = draw(3, scores).into_iter().flatten();
            drawn.filter(|token| token.0 == 0).count()
        };
        assert_eq!(first(&[10.0, 0.0, 0.0, 0.0]), 200);
        assert!((60..140).contains(&first(&[1.0, 1.0])));
    }
}
