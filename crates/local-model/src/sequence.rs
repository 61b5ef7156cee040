//! A running request.

use std::collections::VecDeque;

use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::vocab::LlamaVocab;

use crate::constrain::Constraint;
use crate::queue::{Job, Reply};
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
    /// The reply so far, in bytes, since a token may end inside a character.
    text: Vec<u8>,
    sampler: Sampler,
    constraint: Option<Constraint>,
    reply: Reply,
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
            text: Vec::new(),
            sampler: job.sampler,
            constraint: job.constraint,
            reply: job.reply,
        }
    }

    /// True if its prompt is in the cache. A long step would then interrupt its output.
    pub(crate) fn is_writing(&self) -> bool {
        self.position.cast_unsigned() >= self.input_tokens
    }

    /// True if the caller has dropped its future.
    pub(crate) fn is_gone(&self) -> bool {
        self.reply.is_closed()
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
            let added = batch.add(token, self.position, &[self.slot], is_last);
            added.map_err(|error| Error::Decode {
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
        let id = choice.ok_or_else(|| Error::Decode {
            reason: "no token can follow".to_owned(),
        })?;
        // A model that starts a new turn has ended its own.
        if vocabulary.is_eog(id) || id == vocabulary.bos() {
            return Ok(Some(StopReason::End));
        }
        if let Some(constraint) = &mut self.constraint {
            constraint.consume(id.0.cast_unsigned())?;
        }
        match self.write(vocabulary, id) {
            None => self.write_forced(vocabulary),
            Some(_) if self.is_complete()? => Ok(Some(StopReason::End)),
            stopped => Ok(stopped),
        }
    }

    /// Writes the tokens that the schema forces.
    pub(crate) fn write_forced(
        &mut self,
        vocabulary: &LlamaVocab<'_>,
    ) -> Result<Option<StopReason>, Error> {
        let left = self.max_tokens.saturating_sub(self.output_tokens) as usize;
        let Some(constraint) = &mut self.constraint else {
            return Ok(None);
        };
        let mut stopped = None;
        for token in constraint.forced(left)? {
            stopped = self.write(vocabulary, LlamaToken(token.cast_signed()));
        }
        Ok(if self.is_complete()? {
            Some(StopReason::End)
        } else {
            stopped
        })
    }

    fn is_complete(&self) -> Result<bool, Error> {
        self.constraint
            .as_ref()
            .map_or(Ok(false), Constraint::is_complete)
    }

    fn write(&mut self, vocabulary: &LlamaVocab<'_>, token: LlamaToken) -> Option<StopReason> {
        self.output_tokens += 1;
        self.feed.push_back(token);
        self.sampler.wrote(token);
        self.text
            .extend(vocabulary.token_to_piece(token, false, None));
        (self.output_tokens >= self.max_tokens).then_some(StopReason::MaxTokens)
    }

    /// Sends the result to the caller.
    pub(crate) fn finish(self, outcome: Result<StopReason, Error>) {
        let completion = outcome.map(|stop| Completion {
            text: whole_characters(self.text),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            stop,
        });
        // Fails if the caller has dropped its future, and then needs no answer.
        let _ = self.reply.send(completion);
    }
}

/// Returns the text without an incomplete character at its end.
fn whole_characters(mut bytes: Vec<u8>) -> String {
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_character_is_left_out_and_bytes_that_are_no_text_are_replaced() {
        let text = |bytes: &[u8]| whole_characters(bytes.to_vec());
        assert_eq!(text(b"caf\xC3\xA9 \xE2\x82"), "café ");
        assert_eq!(text(b"a\xFFb"), "a\u{FFFD}b");
    }
}
