//! Restricts tokens so that the reply is JSON that satisfies a schema.

use std::sync::Arc;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::{
    InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv,
};

use crate::Error;

/// Compiles schemas for one model.
pub(crate) struct Grammars(ParserFactory);

impl Grammars {
    /// Reads the whole vocabulary, which takes about 0.1 s for 50,000 tokens.
    pub(crate) fn new(model: &Arc<LlamaModel>) -> Result<Self, Error> {
        let tokenizer: TokEnv = Arc::new(Tokenizer::new(model)?);
        let forces = InferenceCapabilities {
            ff_tokens: tokenizer.tokenize_is_canonical(),
            ..Default::default()
        };
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let factory = ParserFactory::new(&tokenizer, forces, &slices);
        let mut factory = factory.map_err(|error| schema_error(&error))?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self(factory))
    }

    /// Compiles a schema. Takes 1 to 2 ms, and is bounded by the compiler's own limits.
    pub(crate) fn compile(&self, schema: Value) -> Result<Constraint, Error> {
        let grammar = TopLevelGrammar::from_json_schema(with_writing_style(schema));
        let mut matcher = Matcher::new(self.0.create_parser(grammar));
        if let Some(reason) = matcher.get_error() {
            return Err(Error::Schema { reason });
        }
        for warning in matcher.grammar_warnings() {
            tracing::debug!(%warning, "json schema");
        }
        Ok(Constraint(matcher))
    }
}

/// Selects compact JSON, and `oneOf` as `anyOf`, unless the schema has its own `x-guidance`.
fn with_writing_style(mut schema: Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema
            .entry("x-guidance")
            .or_insert_with(|| json!({ "whitespace_flexible": false, "coerce_one_of": true }));
    }
    schema
}

fn schema_error(error: &impl std::fmt::Display) -> Error {
    Error::Schema {
        reason: error.to_string(),
    }
}

/// The grammar state of one reply.
pub(crate) struct Constraint(Matcher);

impl Constraint {
    /// Returns the tokens that may come next.
    pub(crate) fn allowed(&mut self) -> Result<SimpleVob, Error> {
        self.0.compute_mask().map_err(|error| schema_error(&error))
    }

    /// Advances the state by one token of the reply.
    pub(crate) fn consume(&mut self, token: u32) -> Result<(), Error> {
        self.0
            .consume_token(token)
            .map_err(|error| schema_error(&error))
    }

    /// Returns the tokens that must come next, at most `most`. The state has already advanced past
    /// them.
    pub(crate) fn forced(&mut self, most: usize) -> Result<Vec<u32>, Error> {
        if self.0.is_stopped() {
            return Ok(Vec::new());
        }
        let mut forced = self.0.compute_ff_tokens();
        forced.truncate(most);
        self.0
            .consume_tokens(&forced)
            .map_err(|error| schema_error(&error))?;
        Ok(forced)
    }

    /// True if the value is complete and no token may follow.
    pub(crate) fn is_complete(&self) -> Result<bool, Error> {
        match (self.0.is_stopped(), self.0.stop_reason()) {
            (false, _) => Ok(false),
            (true, reason) if reason.is_ok() => Ok(true),
            (true, reason) => Err(Error::Schema {
                reason: self.0.get_error().unwrap_or_else(|| reason.to_string()),
            }),
        }
    }
}

/// The model's vocabulary and tokenizer in the form that llguidance needs.
struct Tokenizer {
    model: Arc<LlamaModel>,
    trie: TokTrie,
    /// True if the vocabulary is byte-level: it tokenizes a part of a text as in the whole text.
    /// Other vocabularies put a space before a part, so tokens cannot be forced with them.
    byte_level: bool,
}

impl Tokenizer {
    fn new(model: &Arc<LlamaModel>) -> Result<Self, Error> {
        let vocabulary = model.vocab();
        let mut words = Vec::new();
        let mut ends = Vec::new();
        for token in vocabulary.tokens() {
            let id = token.0.cast_unsigned();
            if vocabulary.is_eog(token) {
                ends.push(id);
            }
            let text = vocabulary.token_to_piece(token, false, None);
            words.push(if text.is_empty() {
                marked(vocabulary.token_to_piece(token, true, None))
            } else {
                text
            });
        }
        // The token that ends a turn comes first, because chat models are trained to end with it.
        let mut turn_ends = [vocabulary.eot(), vocabulary.eos()].into_iter();
        let turn_end = turn_ends.find(|token| token.0 >= 0);
        let turn_end = turn_end.map(|token| token.0.cast_unsigned());
        let turn_end = turn_end.or(ends.first().copied());
        let Some(end) = turn_end.filter(|&end| (end as usize) < words.len()) else {
            return Err(Error::Schema {
                reason: "the model has no token that ends a reply".to_owned(),
            });
        };
        ends.retain(|&other| other != end);
        ends.insert(0, end);
        let size = u32::try_from(words.len()).map_err(|error| schema_error(&error))?;
        let trie = TokTrie::from(&TokRxInfo::new(size, end), &words).with_eos_tokens(&ends);
        let byte_level = model
            .meta_val_str("tokenizer.ggml.model")
            .is_ok_and(|kind| kind == "gpt2");
        Ok(Self {
            model: Arc::clone(model),
            trie,
            byte_level,
        })
    }
}

/// Marks a control token with a byte that no text contains.
fn marked(text: Vec<u8>) -> Vec<u8> {
    let marker = (!text.is_empty()).then_some(TokTrie::SPECIAL_TOKEN_MARKER);
    marker.into_iter().chain(text).collect()
}

impl TokenizerEnv for Tokenizer {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        if !self.byte_level {
            return self.trie.greedy_tokenize(bytes);
        }
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            let tokens = self.model.vocab().tokenize(text.as_bytes(), false, false);
            let ids = tokens.into_iter().map(|LlamaToken(id)| id.cast_unsigned());
            ids.collect()
        })
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.byte_level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_tokens_are_marked_and_absent_ones_stay_empty() {
        assert_eq!(marked(b"<|im_end|>".to_vec()), b"\xFF<|im_end|>".to_vec());
        assert_eq!(marked(Vec::new()), Vec::<u8>::new());
    }
}
