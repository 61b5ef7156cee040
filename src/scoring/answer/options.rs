//! The options of a multiple choice, read from the request by their letters.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::Regex;

use super::normalize::undress;
use super::phrase::is_negation;
use crate::text::{pattern, plain_sign};

/// The letters, in upper case, and the texts of a multiple choice; empty if the request is not one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::scoring) struct Options(Vec<(char, String)>);

/// The most bracketed letters of a request that are read.
const MAX_LETTERS: usize = 400;

/// The letter of an option with its marks: "A) red", "b. red", "(A)", "A: red", "A、赤".
static OPTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[\s:;,，。?])(?:\(?([A-Ja-j])[).]\s+\S|([A-J]):\s+\S|([A-J])[).:、][\p{Han}\p{Hiragana}\p{Katakana}])|(?:^|[\s:;,，。?\p{Han}\p{Hiragana}\p{Katakana}])\(([A-Ja-j])\)",
    )
});

impl Options {
    /// Reads the options: at least A and B, in order, all in upper or all in lower case.
    pub fn read(request: &str) -> Self {
        let request = &request.chars().map(plain_sign).collect::<String>();
        let upper = Self::in_order(request, 'A'..='J');
        if upper.is_empty() {
            Self::in_order(request, 'a'..='j')
        } else {
            upper
        }
    }

    fn in_order(request: &str, letters: RangeInclusive<char>) -> Self {
        let mut found: Vec<(char, usize)> = Vec::new();
        for captures in OPTION.captures_iter(request).take(MAX_LETTERS) {
            let next = letters.clone().nth(found.len());
            if let Some(letter) = captures.iter().skip(1).flatten().next()
                && letter.as_str().chars().next() == next
            {
                found.extend(next.map(|c| (c.to_ascii_uppercase(), letter.start())));
            }
        }
        if found.len() < 2 {
            return Self::default();
        }
        let ends = found.iter().skip(1).map(|(_, start)| *start);
        let places = found.iter().zip(ends.chain([request.len()]));
        let text = |start: usize, end: usize| {
            let line = request.get(start + 1..end)?.lines().next()?;
            let ends = |c: char| c.is_whitespace() || "()[].,;:、，。".contains(c);
            Some(line.trim_matches(ends).to_owned())
        };
        let option = |((letter, start), end): (&(char, usize), usize)| {
            (*letter, text(*start, end).unwrap_or_default())
        };
        Self(places.map(option).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text of the option with this letter.
    pub fn text(&self, letter: &str) -> Option<&str> {
        let mut options = self.0.iter();
        let (_, text) =
            options.find(|(own, text)| letter == own.to_string() && !text.is_empty())?;
        Some(text)
    }

    /// Returns the letters of the options; the usual letters if no options are known.
    pub fn letters(&self) -> impl Iterator<Item = char> {
        let usual = self.is_empty().then_some('A'..='J').into_iter().flatten();
        self.0.iter().map(|(letter, _)| *letter).chain(usual)
    }
}

/// Returns the option that a short text names: by its letter alone or at its start, or by its whole
/// text.
pub(in crate::scoring) fn letter_of(text: &str, options: &Options) -> Option<char> {
    let text = undress(text.trim().trim_matches(['*', '`', ' ']));
    let bare = text.trim_start_matches('(');
    if options.is_empty()
        && bare.len() == text.len()
        && !text.get(1..).is_some_and(|rest| rest.starts_with(')'))
    {
        return None;
    }
    let mut chars = bare.chars();
    let first = chars.next()?;
    let closed = chars.next().is_none_or(|c| ")]}.:,*$".contains(c));
    // "C. S. Lewis" may be option B.
    let is_text = |own: &str| !own.is_empty() && own.eq_ignore_ascii_case(text.trim());
    let by_text = options.0.iter().find(|(_, own)| is_text(own));
    if let Some((letter, _)) = by_text.filter(|_| bare.chars().nth(1).is_some()) {
        return Some(*letter);
    }
    let is_known = !options.is_empty();
    let is_named =
        |letter: &char| *letter == first || is_known && letter.eq_ignore_ascii_case(&first);
    let by_letter = options.letters().find(|it| closed && is_named(it));
    if by_letter.is_some() && names_several(bare, options) {
        return None;
    }
    by_letter.or_else(|| Some(by_text?.0))
}

/// True if a text is a list of letters, each with at most one word: "A, B", "A and B", "A: 2, B: 3". "B,
/// because A is red" is none.
fn names_several(text: &str, options: &Options) -> bool {
    let is_letter = |word: &&str| {
        let mut chars = word.chars();
        let first = chars.next().filter(|_| chars.next().is_none());
        first.is_some_and(|c| options.letters().any(|letter| letter == c))
    };
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    let (letters, others): (Vec<&str>, Vec<&str>) = words.partition(is_letter);
    let is_denied = others.iter().any(|word| is_negation(&word.to_lowercase()));
    letters.len() > 1 && others.len() <= letters.len() && !is_denied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_told_from_other_brackets() {
        assert_eq!(
            Options::read("Pick: A) red, B) green"),
            Options(vec![('A', "red".into()), ('B', "green".into())])
        );
        let planets = Options(vec![('A', "地球".into()), ('B', "火星".into())]);
        for request in [
            "哪个？A、地球 B、火星",
            "哪个？\nＡ．地球\nＢ．火星",
            "どれですか。（A）地球（B）火星",
            "哪个？ A) 地球 B) 火星",
        ] {
            assert_eq!(Options::read(request), planets, "{request}");
        }
        let mars = Options(vec![('A', "Mars".into()), ('B', "Jupiter".into())]);
        for request in [
            "Which? a) Mars b) Jupiter",
            "Which?\n(a) Mars\n(b) Jupiter",
            "Which? a. Mars b. Jupiter",
            "Which? A: Mars, B: Jupiter",
        ] {
            let options = Options::read(request);
            assert_eq!(options, mars, "{request}");
            for answer in ["b", "B", "(b)", "b) Jupiter", "Jupiter"] {
                assert_eq!(letter_of(answer, &options), Some('B'), "{answer}");
            }
        }
        assert!(Options::read("It opens at 9 a. m. and closes at 8 p. m.").is_empty());
        assert!(Options::read("A、B、C三人分6个苹果").is_empty());
        assert!(Options::read("Plan (B) failed, what now?").is_empty());
        assert!(Options::read("Is vitamin C) good?").is_empty());
    }

    #[test]
    fn a_letter_is_found_alone_or_at_the_head() {
        let options = Options::read("What?\n(A) red\n(B) dark green");
        for text in [
            "B",
            "(B)",
            "**B**",
            "B) dark green",
            "B. dark green",
            "dark green",
        ] {
            assert_eq!(letter_of(text, &options), Some('B'), "{text}");
        }
        let authors = Options::read("Who?\n(A) J. R. R. Tolkien\n(B) C. S. Lewis\n(C) G. Orwell");
        assert_eq!(letter_of("C. S. Lewis", &authors), Some('B'));
        for text in ["B, not A", "B, because A is a colour of fire"] {
            assert_eq!(letter_of(text, &options), Some('B'), "{text}");
        }
        for text in [
            "Both",
            "A red one",
            "green",
            "A, B",
            "A) and B)",
            "(A), (B)",
            "A: 2, B: 3",
            "A, B und A",
        ] {
            assert_eq!(letter_of(text, &options), None, "{text}");
        }
    }
}
