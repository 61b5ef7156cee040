//! Words that are operators in prose: "plus", "mal", "Millionen". The table is `words.tsv`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The meaning of a word. A word has several roles if languages differ: "por" multiplies and
/// divides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    Plus,
    Minus,
    Times,
    Per,
    Of,
    Percent,
    /// "square", before the unit that it raises.
    Power(i8),
    Scale(f64),
    About,
    /// It makes its surroundings an unknown value.
    Opaque,
}

static ROLES: LazyLock<HashMap<&'static str, Vec<Role>>> = LazyLock::new(|| {
    let mut out: HashMap<&'static str, Vec<Role>> = HashMap::new();
    for line in include_str!("words.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let mut columns = line.split('\t');
        let (role, value) = (
            columns.next().unwrap_or_default(),
            columns.next().unwrap_or_default(),
        );
        let (exponent, scale) = (value.parse().unwrap_or(1), value.parse().unwrap_or(1.0));
        let role = match role {
            "plus" => Role::Plus,
            "minus" => Role::Minus,
            "times" => Role::Times,
            "per" => Role::Per,
            "of" => Role::Of,
            "percent" => Role::Percent,
            "power" => Role::Power(exponent),
            "scale" => Role::Scale(scale),
            "about" => Role::About,
            _ => Role::Opaque,
        };
        for word in columns.next().unwrap_or_default().split_whitespace() {
            out.entry(word).or_default().push(role);
        }
    }
    out
});

/// Returns the roles of a word in any case. A single letter keeps its case ("5M", "5k").
pub(super) fn roles(word: &str) -> &'static [Role] {
    let lower = if word.len() > 1 && word.chars().any(char::is_uppercase) {
        Cow::Owned(word.to_lowercase())
    } else {
        Cow::Borrowed(word)
    };
    ROLES
        .get(lower.as_ref())
        .map(Vec::as_slice)
        .unwrap_or_default()
}

pub(super) fn is(word: &str, role: Role) -> bool {
    roles(word).contains(&role)
}

/// Returns the power of ten of a word such as "million".
pub(super) fn scale(word: &str) -> Option<f64> {
    roles(word).iter().find_map(|role| {
        if let Role::Scale(scale) = role {
            Some(*scale)
        } else {
            None
        }
    })
}
