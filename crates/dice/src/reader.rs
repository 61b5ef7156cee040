//! The characters of a text under a parser, and what it has found in them.

use std::ops::Range;

use crate::{MAX_CHARS, ParseError, Sides};

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// The most characters of a text that an error repeats.
const MAX_QUOTED: usize = 20;

/// Where the dice are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Behind the name of a command. Here German dice, `2w6`, and sets of rolls, `6 4d6`, are read
    /// too.
    Explicit,
    /// In a text of its own.
    Bare,
}

/// A term of dice, at its place without further operations.
pub(super) struct Term {
    pub place: Range<usize>,
    pub count: usize,
    pub sides: Sides,
    /// True without operations.
    pub is_plain: bool,
}

/// What a reader of [`crate::written()`] has found besides the grammar. Ranges are of characters.
pub(super) struct Extras {
    pub place: Place,
    /// Parts of the text that the grammar writes in another way.
    pub edits: Vec<(Range<usize>, String)>,
    pub dice: Vec<Term>,
    /// What an advantage makes of its d20.
    pub edge: Option<&'static str>,
}

pub(super) struct Reader {
    pub chars: Vec<char>,
    pub at: usize,
    pub depth: usize,
    /// What [`crate::written()`] reads beyond the grammar. `None` for [`Expression::parse`].
    pub extras: Option<Extras>,
}

impl Reader {
    pub fn new(chars: Vec<char>) -> Self {
        Self {
            chars,
            at: 0,
            depth: 0,
            extras: None,
        }
    }

    /// # Errors
    /// If the text is longer than [`MAX_CHARS`].
    pub fn of(text: &str) -> Result<Self> {
        // The mathematical sign of a subtraction, and the dash that phones make of a hyphen.
        let plain = |c| {
            if matches!(c, '\u{2212}' | '\u{2013}') {
                '-'
            } else {
                c
            }
        };
        let chars: Vec<char> = text.chars().map(plain).collect();
        if chars.len() > MAX_CHARS {
            let detail = format!("an expression has at most {MAX_CHARS} characters");
            return Err(ParseError::new(MAX_CHARS, detail));
        }
        Ok(Self::new(chars))
    }

    /// Returns the error that the next word is not expected, or `None` at the end.
    pub fn unexpected(&self) -> Option<ParseError> {
        self.peek()?;
        let left = self.chars.iter().skip(self.at);
        let word: String = left
            .take_while(|c| !c.is_whitespace())
            .take(MAX_QUOTED)
            .collect();
        Some(self.wrong(format!("{word:?} was not expected here")))
    }

    /// Returns the next character. The grammar does not distinguish upper and lower case.
    pub fn peek(&self) -> Option<char> {
        self.chars.get(self.at).map(char::to_ascii_lowercase)
    }

    pub fn starts(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(i, c)| self.chars.get(self.at + i).map(char::to_ascii_lowercase) == Some(c))
    }

    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.starts(text);
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// Reads characters up to the first of another kind, and returns them.
    pub fn read_while(&mut self, is_meant: impl Fn(char) -> bool) -> String {
        let from = self.at;
        while self.peek().is_some_and(&is_meant) {
            self.at += 1;
        }
        self.since(from)
    }

    pub fn spaces(&mut self) {
        self.read_while(char::is_whitespace);
    }

    pub fn at_digit(&self) -> bool {
        self.peek().is_some_and(|c| c.is_ascii_digit())
    }

    /// Returns the characters from `from` up to here.
    pub fn since(&self, from: usize) -> String {
        let read = self.chars.get(from..self.at).unwrap_or_default();
        read.iter().collect()
    }

    pub fn wrong(&self, detail: impl Into<String>) -> ParseError {
        ParseError::new(self.at + 1, detail)
    }

    /// Returns true if a `w` stands for the `d` of dice here.
    pub fn takes_german_dice(&self) -> bool {
        let extras = self.extras.as_ref();
        extras.is_some_and(|extras| extras.place == Place::Explicit)
    }

    /// Replaces the characters from `from` up to here.
    pub fn edit(&mut self, from: usize, with: impl Into<String>) {
        let range = from..self.at;
        if let Some(extras) = &mut self.extras {
            extras.edits.push((range, with.into()));
        }
    }
}
