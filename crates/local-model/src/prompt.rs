//! Converts messages to tokens with the model's chat template and tokenizer.

use std::sync::Arc;

use llama_cpp_2::model::{LlamaChatMessage, LlamaChatTemplate, LlamaModel};
use llama_cpp_2::token::LlamaToken;

use crate::{Error, Message, Role};

/// Longer runs with or without white space are tokenized in parts, because some pre-tokenizers
/// recurse once per character.
const LONGEST_RUN: usize = 1024;

/// Renders and tokenizes prompts for one model.
pub(crate) struct Prompter {
    model: Arc<LlamaModel>,
    template: LlamaChatTemplate,
    /// The texts of control tokens.
    controls: Vec<String>,
    /// Length of the longest token in bytes.
    longest_token: usize,
}

impl Prompter {
    /// Uses the model's template, or ChatML if llama.cpp does not support it.
    pub(crate) fn new(model: &Arc<LlamaModel>) -> Result<Self, Error> {
        let vocabulary = model.vocab();
        let mut controls = Vec::new();
        let mut longest_token = 1;
        for token in vocabulary.tokens() {
            let text = vocabulary.token_to_piece(token, true, None);
            longest_token = longest_token.max(text.len());
            if vocabulary.is_control(token) || vocabulary.is_eog(token) {
                // A text of one character cannot be split, and is no control syntax.
                let text = String::from_utf8(text).ok();
                controls.extend(text.filter(|text| text.chars().count() > 1));
            }
        }
        let chatml = LlamaChatTemplate::new("chatml").map_err(decode_error)?;
        let probe = [Message::new(Role::User, "x")];
        let template = model.chat_template(None).ok();
        let template = template.filter(|template| render(model, template, &probe).is_ok());
        let template = template.unwrap_or_else(|| {
            tracing::warn!("the model's chat template is missing or not known, ChatML is used");
            chatml
        });
        Ok(Self {
            model: Arc::clone(model),
            template,
            controls,
            longest_token,
        })
    }

    /// Returns the tokens of the conversation, up to the start of the assistant's turn. Refuses a
    /// text that must have more than `most` tokens without tokenizing it. The error is the lower
    /// bound of its tokens.
    pub(crate) fn tokens(&self, messages: &[Message], most: u32) -> Result<Vec<LlamaToken>, u32> {
        let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        let least = u32::try_from(bytes / self.longest_token).unwrap_or(u32::MAX);
        if least > most {
            return Err(least);
        }
        // The texts of control tokens are broken up, so that a message cannot end its own turn.
        let clean = |message: &Message| {
            Message::new(message.role, neutralise(&message.content, &self.controls))
        };
        let clean: Vec<Message> = messages.iter().map(clean).collect();
        let text = render(&self.model, &self.template, &clean).unwrap_or_else(|error| {
            // Happens only with a template that refuses this order of roles.
            tracing::debug!(%error, "chat template failed, the messages are joined plainly");
            let line =
                |message: &Message| format!("{}: {}\n", message.role.name(), message.content);
            clean.iter().map(line).collect::<String>() + "assistant: "
        });
        let mut tokens = Vec::new();
        let mut is_start = true;
        for part in parts(&text) {
            tokens.append(&mut self.model.vocab().tokenize(part.as_bytes(), is_start, true));
            is_start = false;
        }
        Ok(tokens)
    }
}

fn decode_error(error: impl std::fmt::Display) -> Error {
    Error::Decode {
        reason: error.to_string(),
    }
}

fn render(
    model: &LlamaModel,
    template: &LlamaChatTemplate,
    messages: &[Message],
) -> Result<String, Error> {
    let turn = |message: &Message| {
        LlamaChatMessage::new(message.role.name().to_owned(), message.content.clone())
    };
    let chat = messages.iter().map(turn).collect::<Result<Vec<_>, _>>();
    let chat = chat.map_err(decode_error)?;
    let rendered = model.apply_chat_template(template, &chat, true);
    rendered.map_err(decode_error)
}

/// Inserts a space after the first character of every control token's text. Replaces NUL, which C
/// strings cannot contain.
fn neutralise(content: &str, controls: &[String]) -> String {
    let mut text = content.replace('\0', "\u{FFFD}");
    for control in controls {
        if text.contains(control.as_str()) {
            let mut rest = control.chars();
            let broken: String = rest.next().into_iter().chain([' ']).chain(rest).collect();
            text = text.replace(control.as_str(), &broken);
        }
    }
    text
}

/// Splits the text so that no part has a run of more than [`LONGEST_RUN`] characters that are all,
/// or all not, white space. Ordinary text stays one part.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = long_run(rest) {
        let Some((part, after)) = rest.split_at_checked(at) else {
            break;
        };
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Returns the position at which the first run exceeds [`LONGEST_RUN`] characters.
fn long_run(text: &str) -> Option<usize> {
    let mut run = 0;
    let mut in_space = false;
    for (at, character) in text.char_indices() {
        if character.is_whitespace() == in_space {
            run += 1;
        } else {
            run = 1;
            in_space = !in_space;
        }
        if run > LONGEST_RUN {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelled_out_control_tokens_are_broken_up() {
        let controls = ["<|im_end|>".to_owned(), "<|im_start|>".to_owned()];
        assert_eq!(
            neutralise("a<|im_end|>\n<|im_start|>b", &controls),
            "a< |im_end|>\n< |im_start|>b"
        );
        assert_eq!(neutralise("a < b | c", &controls), "a < b | c");
        assert_eq!(neutralise("a\0b", &controls), "a\u{FFFD}b");
    }

    #[test]
    fn ordinary_text_is_one_part() {
        let text = "The capital of France. ".repeat(500);
        assert_eq!(parts(&text), vec![text.as_str()]);
        assert_eq!(parts(""), Vec::<&str>::new());
    }

    #[test]
    fn long_runs_are_cut_between_characters_and_nothing_is_lost() {
        let text = "é".repeat(3000) + &" ".repeat(1501) + &"x".repeat(1025);
        let cut = parts(&text);
        assert_eq!(cut.concat(), text);
        assert!(cut.iter().all(|part| long_run(part).is_none()));
        assert_eq!(cut.len(), 5);
    }
}
