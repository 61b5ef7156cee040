//! Short answers in words, with the numbers in them, and the words of verdicts (`verdicts.tsv`).

use std::sync::LazyLock;

use regex::Regex;
use rustc_hash::FxHashSet;
use unicode_normalization::char::is_combining_mark;

use super::decimals::DecimalSign;
use super::number::{Number, asked, has_all};
use crate::scoring::expr::amount;
use crate::text::{Word, pattern};

/// The most words of a short answer. A longer text is a statement.
const MAX_WORDS: usize = 12;
/// The most characters of an answer without letters and digits.
const MAX_SIGNS: usize = 4;
/// The most words that the shorter of two equal answers may lack.
const MAX_MORE: usize = 3;
/// The number of characters that count as one word in a script without spaces.
const IDEOGRAPHS_A_WORD: usize = 2;

/// A short answer in words: in lower case and order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Phrase {
    pub words: Vec<String>,
    pub numbers: Vec<Number>,
    /// For each word, its place.
    places: Vec<Place>,
    /// For each word, true if a slash joins it to the one before: "V/A".
    slashed: Vec<bool>,
    /// The words that the request has.
    asked: Vec<String>,
    /// The text as it is written, if it has two characters: "Pa" is not "pA".
    symbol: Option<String>,
    pub text: String,
}

/// Where a word of a phrase stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Name,
    /// Behind a comma: it adds to the name before, or is the next item of a list.
    Listed,
    /// In brackets: it adds to the name before.
    Bracketed,
}

/// A list of words in `verdicts.tsv`, in the order of its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum WordList {
    Yes,
    No,
    Negation,
}

static VERDICTS: LazyLock<FxHashSet<(WordList, &'static str)>> = LazyLock::new(|| {
    let lists = [WordList::Yes, WordList::No, WordList::Negation];
    let rows = include_str!("verdicts.tsv").lines();
    let rows = rows.filter(|line| !line.starts_with('#'));
    // The first column is the language.
    let columns = rows.flat_map(|row| lists.into_iter().zip(row.split('\t').skip(1)));
    columns
        .flat_map(|(list, words)| words.split_whitespace().map(move |word| (list, word)))
        .collect()
});

fn is_of(word: &str, list: WordList) -> bool {
    VERDICTS.contains(&(list, word))
}

/// True for a word that denies: "not", "nicht".
pub fn is_negation(word: &str) -> bool {
    is_of(word, WordList::Negation)
}

/// Returns yes or no, if the text is such a word or begins with one and punctuation: "Ja, das
/// stimmt."
pub fn yes_no(text: &str) -> Option<bool> {
    let is_inner = |c: char| c.is_alphanumeric() || c == '\'' || is_combining_mark(c);
    let end = text.find(|c: char| !is_inner(c));
    let (word, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
    let rest = rest.trim_start_matches(['*', ' ']);
    if !rest.is_empty() && !rest.starts_with(|c: char| ",.;:!-–—。、，！；।،؛".contains(c))
    {
        return None;
    }
    let word = word.to_lowercase();
    match (is_of(&word, WordList::Yes), is_of(&word, WordList::No)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// True if a text begins with a decade: "1990s". "30s" and "1800s" may be seconds.
pub fn begins_decade(text: &str) -> bool {
    static DECADE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:18[1-9]|19\d|20\d)0'?s\b"));
    DECADE.is_match(text)
}

/// True for digits that name something: "0420" is a PIN or a postal code, and no 420.
pub fn is_numeral(text: &str) -> bool {
    text.len() > 2 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the words and numbers of a short text; `None` if it is too long or has none.
pub fn read(text: &str) -> Option<Phrase> {
    let mut phrase = Phrase::default();
    let (mut rest, mut count, mut place, mut slash) = (text, 0, Place::Name, false);
    let mut parts: Vec<&str> = vec![];
    while !rest.is_empty() {
        let token = rest.split(char::is_whitespace).next().unwrap_or_default();
        if let Some(found) = begins_number(rest).then(|| amount(rest)).flatten()
            && !is_numeral(token)
            && found.is_exact(rest)
            && let Some((number, behind)) = rest.split_at_checked(found.end)
            && !behind.starts_with(|c: char| c.is_alphanumeric() || is_symbol(c))
        {
            phrase.numbers.push(Number::of(found, vec![]));
            parts.push(number.trim());
            rest = behind;
            count += 1;
        } else if is_code(token) || is_numeral(token) {
            // Commands and paths are compared exactly as written.
            phrase.push(token.to_owned(), Place::Name, false);
            parts.push(token);
            rest = rest.get(token.len()..)?;
            count += 1;
        } else {
            let (word, behind) =
                rest.split_at_checked(rest.find(separates).unwrap_or(rest.len()))?;
            let next = match behind.trim_start().chars().next() {
                Some('(' | '（') => Place::Bracketed,
                Some(',' | '，') => Place::Listed,
                Some(')' | '）') => Place::Name,
                _ => place,
            };
            let joins = behind.strip_prefix('/');
            let next_slash = joins.is_some_and(|it| !it.starts_with(char::is_whitespace));
            rest = behind.strip_prefix(separates).unwrap_or(behind);
            let own = std::mem::replace(&mut place, next);
            let is_joined = std::mem::replace(&mut slash, next_slash);
            let word = without_punctuation(word, word == text);
            if !word.contains(|c: char| c.is_alphanumeric() || is_symbol(c)) {
                continue;
            }
            let ideographs = word
                .chars()
                .filter(|c| ('\u{2e80}'..'\u{fb00}').contains(c));
            count += (ideographs.count() / IDEOGRAPHS_A_WORD).max(1);
            phrase.push(word.to_lowercase(), own, is_joined);
            parts.push(word);
        }
        if count > MAX_WORDS {
            return None;
        }
    }
    if count == 0 && text.chars().count() <= MAX_SIGNS {
        // "%" or "=>" is an answer too.
        phrase.push(text.to_owned(), Place::Name, false);
        parts.push(text);
        count = 1;
    }
    name_brackets(&mut phrase.places);
    phrase.symbol = Some(text.to_owned()).filter(|text| text.chars().count() == 2);
    phrase.text = parts.join(" ").to_lowercase();
    (count > 0).then_some(phrase)
}

/// Takes what is in brackets for the name, if nothing else is: "(Paris, France)".
fn name_brackets(places: &mut [Place]) {
    if places.contains(&Place::Name) {
        return;
    }
    for place in places.iter_mut().filter(|it| **it == Place::Bracketed) {
        *place = Place::Name;
    }
}

/// Returns the word without the punctuation around it. "Cl-" is charged, "pre-war" is one word, and
/// "A*" is another grade than "A". A question mark behind the only word is no doubt, but a type:
/// "String?".
fn without_punctuation(word: &str, is_only: bool) -> &str {
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '+' | '#') || is_symbol(c);
    let is_emphasised = word.starts_with('*') && word.ends_with('*');
    let is_mark = |c: char| is_combining_mark(c) && !matches!(c, '\u{fe00}'..='\u{fe0f}');
    let ends = |c: char| {
        kept(c)
            || matches!(c, '-' | '$')
            || is_mark(c)
            || c == '*' && !is_emphasised
            || c == '?' && is_only
            || c == '\'' && has_prime(word)
    };
    let word = word.trim_start_matches(|c| !kept(c));
    word.trim_end_matches(|c| !ends(c))
}

/// True for a sign that is part of what is said: "∪", "→", "¬", and those of chess, cards and music.
/// Decorations such as "★" are none.
pub fn is_symbol(c: char) -> bool {
    static SYMBOL: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^(?:[\p{S}--\p{ASCII}--\p{Extended_Pictographic}--\p{Sk}]|[♔-♯])$")
    });
    is_unit_sign(c)
        || !c.is_ascii() && !c.is_alphanumeric() && SYMBOL.is_match(c.encode_utf8(&mut [0; 4]))
}

/// True for a sign of a unit.
pub fn is_unit_sign(c: char) -> bool {
    matches!(c, '‰' | '‱' | '′' | '″' | '‴')
}

/// True for a letter with a prime: "f'".
pub fn has_prime(text: &str) -> bool {
    let name = text.trim_end_matches('\'');
    let last = name.split(|c: char| !c.is_alphanumeric()).next_back();
    // "option 'B'" has a quotation.
    text.len() == name.len() + 1
        && !name.contains('\'')
        && last.is_some_and(|last| last.chars().count() == 1)
}

fn separates(c: char) -> bool {
    c.is_whitespace() || ",;()/\"“”„–—~≈、，".contains(c)
}

/// True for options, paths, patterns and variables: "-V", "~/.bashrc", "*.txt", "$HOME", "&&".
fn is_code(token: &str) -> bool {
    let mut chars = token.chars();
    // ":q!" is a command, and ":Paris" a slip.
    let is_command = token
        .strip_prefix(':')
        .is_some_and(|it| it.starts_with(char::is_lowercase));
    let signed = chars.next().is_some_and(|c| r"-~$*/\&|.<>!@".contains(c)) || is_command;
    signed && chars.next().is_some_and(|c| !c.is_ascii_digit())
}

fn begins_number(text: &str) -> bool {
    let text =
        text.trim_start_matches(['-', '$', '€', '£', '¥', '₹', '₩', '₽', '₺', '₴', ' ', '.']);
    text.starts_with(|c: char| c.is_ascii_digit()) && !begins_decade(text)
}

impl Phrase {
    fn push(&mut self, word: String, place: Place, slashed: bool) {
        self.words.push(word);
        self.places.push(place);
        self.slashed.push(slashed);
    }

    /// True if two phrases say the same. Either they have the same numbers and words, or one has a
    /// few more words that do not change what is named: in brackets, or behind a comma if the
    /// request has them ("Paris, France" for the capital of France).
    pub fn same(&self, other: &Phrase) -> bool {
        self.is_alike(other, |long, at, word| match long.places.get(at) {
            Some(Place::Bracketed) => true,
            // A letter is the next of several options.
            Some(Place::Listed) => long.asked.contains(word) && word.chars().nth(1).is_some(),
            Some(Place::Name) | None => false,
        })
    }

    /// True if a reply that says `said` gives this answer: it may add any words to the name.
    pub fn is_given_by(&self, said: &Phrase) -> bool {
        self.same(said)
            || self.words.len() < said.words.len()
                && self.is_alike(said, |long, at, _| {
                    long.places.get(at).is_some_and(|it| *it != Place::Name)
                })
    }

    /// True if two phrases add different words to a name: "Georgia (country)", "Georgia (state)".
    pub fn excludes(&self, other: &Phrase) -> bool {
        let adds = |phrase: &Phrase| phrase.places.iter().any(|place| *place != Place::Name);
        adds(self) && adds(other) && !self.same(other)
    }

    fn is_alike(&self, other: &Phrase, adds: impl Fn(&Phrase, usize, &String) -> bool) -> bool {
        let mut numbers = self.numbers.iter().zip(&other.numbers);
        let differ = self.numbers.len() != other.numbers.len()
            || !numbers.all(|(a, b)| a.same_version(b))
            || self.denied() != other.denied()
            || self.is_other_symbol(other);
        let (short, long) = if self.words.len() <= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
        !differ
            && long.has_all(short)
            && match long.words.len() - short.words.len() {
                0 => short.has_all(long) && short.groups_as(long),
                more => {
                    let mut named = short.words.iter().peekable();
                    let mut words = long.words.iter().enumerate();
                    let only_adds = words.all(|(at, word)| {
                        named.next_if_eq(&word).is_some() || adds(long, at, word)
                    });
                    more <= MAX_MORE && only_adds
                }
            }
    }

    /// True if the same words stand in the same brackets and fractions: "P(A and B)" is not "P(A) and B",
    /// and "V/A" is not "V A". "Paris (France)" is "Paris, France".
    fn groups_as(&self, other: &Phrase) -> bool {
        let mut places = self.places.iter().zip(&other.places);
        self.slashed == other.slashed
            && places.all(|pair| {
                use Place::{Bracketed, Name};
                !matches!(pair, (Bracketed, Name) | (Name, Bracketed))
            })
    }

    /// Returns the letter of an alphabet that the phrase consists of.
    pub fn letter(&self) -> Option<&str> {
        let [word] = self.words.as_slice() else {
            return None;
        };
        let is_letter = |c: char| c.is_alphabetic() && !('\u{2e80}'..'\u{fb00}').contains(&c);
        let is_alone = word.chars().count() == 1 && self.numbers.is_empty();
        (is_alone && word.starts_with(is_letter)).then_some(word)
    }

    /// True for two symbols that only their capitals tell apart: "CO" and "Co", but not "au" and "Au".
    fn is_other_symbol(&self, other: &Phrase) -> bool {
        let is_careless = |text: &str| text.chars().all(char::is_lowercase);
        let symbols = self.symbol.as_deref().zip(other.symbol.as_deref());
        symbols.is_some_and(|(a, b)| a != b && !is_careless(a) && !is_careless(b))
    }

    /// True if the phrase is this letter, perhaps behind a word: "c", "option C".
    pub fn is_choice(&self, letter: char) -> bool {
        let letter = letter.to_string();
        !self.denied()
            && self.numbers.is_empty()
            && match self.words.as_slice() {
                [last] => last.eq_ignore_ascii_case(&letter),
                // "A, B" names two.
                [first, last] => {
                    first.chars().nth(1).is_some() && last.eq_ignore_ascii_case(&letter)
                }
                _ => false,
            }
    }

    /// Sets its numbers by the decimal sign of the texts around it.
    pub fn read_decimals(&mut self, sign: Option<DecimalSign>) {
        let numbers = self.numbers.iter_mut();
        numbers.for_each(|number| number.read_decimals(sign));
    }

    /// True if the phrase names another version than a number: "Python 3.10" beside "3.1".
    pub fn is_other_version(&self, number: &Number) -> bool {
        let [own] = self.numbers.as_slice() else {
            return false;
        };
        !self.words.is_empty() && own.same(number) && !own.same_version(number)
    }

    /// Notes which of its words a request has: they may be left out beside a number.
    pub fn read_request(&mut self, request: &[Word]) {
        self.asked = asked(&self.words, request);
    }

    /// True if the phrase is that number with words of the request around it.
    pub fn is_number(&self, number: &Number) -> bool {
        let counted = number.words();
        let mut words = self.words.iter();
        self.gives(number) && words.all(|word| counted.contains(word) || self.asked.contains(word))
    }

    /// True if the phrase is that number with any words around it.
    pub fn gives(&self, number: &Number) -> bool {
        matches!(self.numbers.as_slice(), [own] if own.same_version(number))
            && !self.denied()
            && has_all(&self.words, &number.words())
    }

    fn denied(&self) -> bool {
        self.words
            .iter()
            .any(|word| is_of(word, WordList::Negation))
    }

    /// True if it has all words of `short`, in their order: "A beats B" is not "B beats A".
    fn has_all(&self, short: &Phrase) -> bool {
        if short.words.is_empty() {
            return !short.numbers.is_empty();
        }
        let mut words = self.words.iter();
        short.words.iter().all(|word| words.any(|own| own == word))
    }
}
