//! Words of prose that change a number beside them: "Millionen", "percent". The table is `words.tsv`.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use unicode_script::{Script, UnicodeScript as _};

use crate::domain::is_unspaced;
use crate::text::Word;

/// The meaning of a word. A word has several roles if languages differ: "por" multiplies, and
/// stands between units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// "plus", "mal": what is calculated in words is not read, because few languages could be.
    Operator,
    Per,
    Of,
    Percent,
    /// "square", before the unit that it raises.
    Power(i8),
    Scale(f64),
    /// It stands beside the base or the modulus of the numbers: "in base 16".
    Base,
    /// It makes its surroundings an unknown value.
    Opaque,
}

static ROLES: LazyLock<FxHashMap<&'static str, Vec<Role>>> = LazyLock::new(|| {
    let mut out: FxHashMap<&'static str, Vec<Role>> = FxHashMap::default();
    let rows = include_str!("words.tsv").lines();
    for row in rows.filter(|line| !line.starts_with('#')) {
        let [role, value, words] = row.split('\t').collect::<Vec<_>>()[..] else {
            continue;
        };
        let role = match role {
            "operator" => Role::Operator,
            "per" => Role::Per,
            "of" => Role::Of,
            "percent" => Role::Percent,
            "power" => Role::Power(value.parse().unwrap_or(1)),
            "base" => Role::Base,
            "scale" => Role::Scale(value.parse().unwrap_or(1.0)),
            _ => Role::Opaque,
        };
        for word in words.split_whitespace() {
            out.entry(word).or_default().push(role);
        }
    }
    out
});

/// Returns the roles of a word in any case. A single letter keeps its case ("5M", "5k").
fn roles(word: &str) -> &'static [Role] {
    let found = if word.len() > 1 && word.chars().any(char::is_uppercase) {
        ROLES.get(word.to_lowercase().as_str())
    } else {
        ROLES.get(word)
    };
    found.map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn is(word: &str, role: Role) -> bool {
    roles(word).contains(&role)
}

/// True if a text with these words may name a base or a modulus: "base 16", "16進数", "mod 12".
pub fn names_base(words: &[Word]) -> bool {
    let is_one = |number: &Word| number.parse().is_ok_and(|it: u32| it > 1 && it != 10);
    let is_named =
        |[a, b]: &[Word; 2]| is_one(a) && is(b, Role::Base) || is_one(b) && is(a, Role::Base);
    words.array_windows().any(is_named)
}

/// Returns the power of ten of a word such as "million".
pub(super) fn scale(word: &str) -> Option<f64> {
    roles(word).iter().find_map(|role| match role {
        Role::Scale(scale) => Some(*scale),
        _ => None,
    })
}

/// True for Latin, Greek and Cyrillic letters, and for signs that are no letters: "CO2" is one word,
/// and "4b" a product. Letters of other scripts touch a number that does not belong to them.
pub(super) fn shares_words_with_digits(c: char) -> bool {
    !c.is_alphabetic()
        || matches!(c, '\0'..='\u{52f}' | '\u{1c80}'..='\u{1fff}' | '\u{2100}'..='\u{214f}')
}

/// True for letters of scripts in which one letter may say what a number counts: "5個", "5개".
pub(super) fn is_counter_script(c: char) -> bool {
    is_unspaced(c) || c.script() == Script::Hangul
}

/// The most characters of a scale in a script without blanks: "천만".
const MAX_SCALE_CHARS: usize = 2;

/// Returns the length of the longest scale with which a word of a script without blanks begins.
pub(super) fn leading_scale(word: &str) -> Option<usize> {
    if word.starts_with(shares_words_with_digits) {
        return None;
    }
    let ends = word.char_indices().map(|(at, c)| at + c.len_utf8());
    let is_scale = |at: &usize| word.get(..*at).is_some_and(|it| scale(it).is_some());
    ends.take(MAX_SCALE_CHARS).filter(is_scale).max()
}

/// Returns the power of a word such as "square".
pub(super) fn power(word: &str) -> Option<i8> {
    roles(word).iter().find_map(|role| match role {
        Role::Power(power) => Some(*power),
        _ => None,
    })
}
