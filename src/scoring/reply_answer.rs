//! Compares the final answer that a reply names with what its texts say.

use unicode_normalization::UnicodeNormalization as _;
use unicode_script::{Script, UnicodeScript as _};

use super::answer::{self, Answer, Number, Options, Phrase};
use crate::domain::number_named;
use crate::text::{Word, collapse_whitespace, count_words, words};

/// A word of an answer is found in a text by this share of its letters, because words are inflected.
const STEM: f64 = 0.6;
/// The least letters of a stem; shorter words must be whole.
const MIN_STEM_CHARS: usize = 3;
/// A summary of at most this number of words is nothing but the answer.
const MAX_BARE_WORDS: usize = 3;

/// False if the texts of a reply do not give the final answer that it names: they have other numbers,
/// state another verdict or choice, or lack its words. A text with fractions or powers may have a
/// number in another form, and a text in another script a name. A summary that is a part of the main
/// answer says nothing by itself.
pub fn may_give(request: &str, tldr: &str, main: &str, answer: &str) -> bool {
    let Some(named) = answer::parse(answer) else {
        return true;
    };
    let summary = Some(tldr.trim()).filter(|tldr| !tldr.is_empty() && !main.contains(tldr));
    let all = format!("{tldr}\n{main}");
    match &named {
        Answer::Number(number) => [Some(all.as_str()), summary]
            .into_iter()
            .flatten()
            .all(|text| has_number(text, number)),
        Answer::Words(phrase) => {
            let short = summary.filter(|text| count_words(text) <= MAX_BARE_WORDS);
            let mut texts = [Some(all.as_str()), short].into_iter().flatten();
            texts.all(|text| has_words(text, phrase))
        }
        Answer::YesNo(_) | Answer::Choice(_) => {
            let options = Options::read(request);
            let differs = |text: &str| {
                let opening = answer::opening_verdict(text).map(Answer::YesNo);
                let stated = answer::final_answer(text, &options);
                let stated = stated.and_then(|stated| answer::parse(&stated));
                let mut stated = [opening, stated].into_iter().flatten();
                let is_other = |letter: char| has_only_other(text, letter, &options);
                stated.any(|it| named.differs(&it))
                    || matches!(named, Answer::Choice(letter) if is_other(letter))
            };
            ![Some(main), summary].into_iter().flatten().any(differs)
        }
        Answer::Date(..) | Answer::Formula { .. } => true,
    }
}

/// True if a text has letters of options, but not this one. A lone "A" may be an article.
fn has_only_other(text: &str, letter: char, options: &Options) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let lone = words.filter_map(|word| word.parse::<char>().ok());
    let lone: Vec<char> = lone
        .filter(|c| options.text(&c.to_string()).is_some())
        .collect();
    !lone.contains(&letter) && lone.iter().any(|c| *c != 'A')
}

/// False if a text has numbers, but not this one.
fn has_number(text: &str, number: &Number) -> bool {
    let text = collapse_whitespace(text);
    let is_named =
        |word: &Word| number_named(word).is_some_and(|value| number.may_be(f64::from(value)));
    let found = answer::numbers(&text, None);
    found.is_empty()
        || text.contains(['/', '^', '\\', '⁄', '½', '¼', '¾'])
        || number.is_among(&found)
        || words(&text).iter().any(is_named)
}

/// False if a text in the script of a phrase has none of its words.
fn has_words(text: &str, phrase: &Phrase) -> bool {
    let text: String = text.nfc().flat_map(char::to_lowercase).collect();
    let mut stems = phrase.words.iter().map(|word| stem(word)).peekable();
    let Some(script) = phrase.words.iter().find_map(|word| script(word)) else {
        return true;
    };
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let own = letters.clone().filter(|c| script_of(*c) == script).count();
    stems.peek().is_none() || 2 * own < letters.count() || stems.any(|stem| text.contains(stem))
}

/// Returns the beginning of a word that its forms have in common.
fn stem(word: &str) -> &str {
    let chars = word.chars().count();
    let kept = (chars as f64 * STEM).ceil() as usize;
    let end = word.char_indices().nth(kept.max(MIN_STEM_CHARS));
    end.map_or(word, |(at, _)| word.get(..at).unwrap_or(word))
}

fn script(word: &str) -> Option<Script> {
    word.chars().find(|c| c.is_alphabetic()).map(script_of)
}

/// Returns the script of a letter, with those of Japanese as one.
fn script_of(c: char) -> Script {
    match c.script() {
        Script::Hiragana | Script::Katakana => Script::Han,
        script => script,
    }
}
