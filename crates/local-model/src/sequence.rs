//! A running request.

use std::collections::VecDeque;
use std::time::Instant;

use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::vocab::LlamaVocab;

use crate::constrain::Constraint;
use crate::queue::{Caller, Job};
use crate::sample::Sampler;
use crate::{Completion, Error, StopReason};

/// A request with a sequence in the key-value cache.
pub(crate) struct Sequence {
    /// llama.cpp's sequence id.
    pub slot: i32,
    /// Cells reserved for it.
    pub cells: u32,
    /// The batch row with the scores for its next token. Set once all its tokens are in the batch.
    pub row: Option<i32>,
    /// True if it is part of the current batch.
    pub in_batch: bool,
    /// Tokens that are not in the cache yet: first the prompt, then the newly generated tokens.
    feed: VecDeque<LlamaToken>,
    /// The position of the next token.
    position: i32,
    input_tokens: u32,
    output_tokens: u32,
    max_tokens: u32,
    text: Text,
    sampler: Sampler,
    constraint: Option<Constraint>,
    caller: Caller,
    since: Instant,
    admitted: Instant,
}

impl Sequence {
    pub(crate) fn new(job: Job, slot: i32) -> Self {
        Self {
            slot,
            cells: job.cells(),
            row: None,
            in_batch: false,
            position: 0,
            input_tokens: u32::try_from(job.prompt.len()).unwrap_or(u32::MAX),
            output_tokens: 0,
            feed: job.prompt.into(),
            max_tokens: job.max_tokens,
            text: Text::new(job.stop),
            sampler: job.sampler,
            constraint: job.constraint,
            caller: job.caller,
            since: job.since,
            admitted: Instant::now(),
        }
    }

    /// True if its prompt is in the cache. A long step would then interrupt its output.
    pub(crate) fn is_writing(&self) -> bool {
        self.position.cast_unsigned() >= self.input_tokens
    }

    /// True if it is generating, and only its last token has to be decoded.
    pub(crate) fn needs_one_token(&self) -> bool {
        self.is_writing() && self.feed.len() == 1
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.caller.is_gone()
    }

    /// Writes the tokens that the schema forces at the start.
    pub(crate) fn begin(
        &mut self,
        vocabulary: &LlamaVocab<'_>,
    ) -> Result<Option<StopReason>, Error> {
        self.write_forced(vocabulary)
    }

    /// Moves up to `room` tokens into the batch. Returns how many.
    pub(crate) fn add_to(
        &mut self,
        batch: &mut LlamaBatch<'_>,
        room: usize,
    ) -> Result<usize, Error> {
        let count = room.min(self.feed.len());
        for _ in 0..count {
            let Some(token) = self.feed.pop_front() else {
                break;
            };
            let is_last = self.feed.is_empty();
            batch
                .add(token, self.position, &[self.slot], is_last)
                .map_err(|error| Error::Decode {
                    reason: error.to_string(),
                })?;
            self.position += 1;
            self.in_batch = true;
            self.row = is_last.then(|| batch.n_tokens() - 1);
        }
        Ok(count)
    }

    /// Chooses the next token by the model's scores, then adds the tokens that the schema forces.
    pub(crate) fn advance(
        &mut self,
        vocabulary: &LlamaVocab<'_>,
        scores: &[f32],
    ) -> Result<Option<StopReason>, Error> {
        let choice = match &mut self.constraint {
            Some(constraint) => self.sampler.choose_allowed(scores, &constraint.allowed()?),
            None => self.sampler.choose(scores),
        };
        let token = choice.ok_or_else(|| Error::Decode {
            reason: "no token can follow".to_owned(),
        })?;
        let id = LlamaToken(token.cast_signed());
        // A model that starts a new turn has ended its own.
        if vocabulary.is_eog(id) || id == vocabulary.bos() {
            return Ok(Some(StopReason::End));
        }
        if let Some(constraint) = &mut self.constraint {
            constraint.consume(token)?;
        }
        match self.write(vocabulary, id) {
            None => self.write_forced(vocabulary),
            Some(_) if self.is_complete()? => Ok(Some(StopReason::End)),
            stopped => Ok(stopped),
        }
    }

    fn write_forced(&mut self, vocabulary: &LlamaVocab<'_>) -> Result<Option<StopReason>, Error> {
        let left = self.max_tokens.saturating_sub(self.output_tokens) as usize;
        let Some(constraint) = &mut self.constraint else {
            return Ok(None);
        };
        let mut stopped = None;
        for token in constraint.forced(left)? {
            stopped = self.write(vocabulary, LlamaToken(token.cast_signed()));
        }
        if self.is_complete()? {
            Ok(Some(StopReason::End))
        } else {
            Ok(stopped)
        }
    }

    fn is_complete(&self) -> Result<bool, Error> {
        self.constraint
            .as_ref()
            .map_or(Ok(false), Constraint::is_complete)
    }

    fn write(&mut self, vocabulary: &LlamaVocab<'_>, token: LlamaToken) -> Option<StopReason> {
        self.output_tokens += 1;
        self.feed.push_back(token);
        self.sampler.wrote(token.0.cast_unsigned());
        let found = self
            .text
            .push(&vocabulary.token_to_piece(token, false, None));
        if found && self.constraint.is_none() {
            Some(StopReason::StopString)
        } else if self.output_tokens >= self.max_tokens {
            Some(StopReason::MaxTokens)
        } else {
            None
        }
    }

    /// Sends the result to the caller.
    pub(crate) fn finish(self, outcome: Result<StopReason, Error>) {
        let completion = outcome.map(|stop| Completion {
            text: self.text.finish(),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            stop,
            queued: self.admitted.duration_since(self.since),
            took: self.admitted.elapsed(),
        });
        self.caller.answer(completion);
    }
}

/// The reply so far, in bytes, since a token may end inside a character.
struct Text {
    bytes: Vec<u8>,
    stops: Vec<String>,
}

impl Text {
    fn new(mut stops: Vec<String>) -> Self {
        stops.retain(|stop| !stop.is_empty());
        Self {
            bytes: Vec::new(),
            stops,
        }
    }

    /// Adds the bytes of a token. If the text now contains a stop text, cuts it before the first
    /// one and returns `true`.
    fn push(&mut self, piece: &[u8]) -> bool {
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        // A stop text may begin in earlier tokens.
        let from = self.bytes.len().saturating_sub(longest.saturating_sub(1));
        self.bytes.extend_from_slice(piece);
        let recent = self.bytes.get(from..).unwrap_or_default();
        let found = self
            .stops
            .iter()
            .filter_map(|stop| find(recent, stop.as_bytes()))
            .min();
        if let Some(at) = found {
            self.bytes.truncate(from + at);
        }
        found.is_some()
    }

    /// Returns the text without an incomplete character at its end.
    fn finish(mut self) -> String {
        if let Err(error) = std::str::from_utf8(&self.bytes)
            && error.error_len().is_none()
        {
            self.bytes.truncate(error.valid_up_to());
        }
        String::from_utf8(self.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_split_over_tokens_is_whole_and_an_unfinished_one_is_left_out() {
        let mut text = Text::new(Vec::new());
        assert!(
            !text.push("caf".as_bytes()) && !text.push(b"\xC3") && !text.push(b"\xA9 \xE2\x82")
        );
        assert_eq!(text.finish(), "café ");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut text = Text::new(Vec::new());
        text.push(b"a\xFFb");
        assert_eq!(text.finish(), "a\u{FFFD}b");
    }

    #[test]
    fn a_stop_text_split_over_tokens_is_cut_off() {
        let mut text = Text::new(vec!["\n\n".to_owned(), String::new(), "END".to_owned()]);
        assert!(!text.push(b"one E"));
        assert!(!text.push(b"N"));
        assert!(text.push(b"D two"));
        assert_eq!(text.finish(), "one ");
    }

    #[test]
    fn the_first_of_several_stop_texts_counts() {
        let mut text = Text::new(vec!["b".to_owned(), "ab".to_owned()]);
        assert!(text.push(b"xab"));
        assert_eq!(text.finish(), "x");
    }
}
