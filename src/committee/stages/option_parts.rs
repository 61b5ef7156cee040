//! Reads the options of a question, which have a meaning and, behind a colon, what choosing it would
//! change.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::domain::search_terms;
use crate::text::pattern;

/// True if each option has a meaning and, after a colon, a dash or an arrow, what the answer then is:
/// words that neither its meaning nor another option has there. A dash between two spaces is no hyphen
/// and no range, and a colon behind a digit may be one of a time.
pub(super) fn say_what_changes(options: &[String]) -> bool {
    changes(options).is_some_and(|changes| changes.iter().all(|change| !change.is_empty()))
}

/// True if each option has both parts, and the second of one says nothing new, as in "the short
/// version: the reply is short".
pub(super) fn only_restate(options: &[String]) -> bool {
    changes(options).is_some_and(|changes| changes.iter().any(BTreeSet::is_empty))
}

/// Returns the words of each option's second part that neither its first part nor another option has
/// there; `None` if an option has only one part.
fn changes(options: &[String]) -> Option<Vec<BTreeSet<String>>> {
    static PARTS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(\w.*?)(?:[：—→]|([^\d\s]):|:\s|\s[-–]\s)(.*\w.*)"));
    let parts = options.iter().map(|option| {
        let parts = PARTS.captures(option)?;
        let part = |at: usize| parts.get(at).map_or("", |part| part.as_str());
        let terms = |text: &str| BTreeSet::from_iter(search_terms(text));
        let meaning = [part(1), part(2)].concat();
        Some((terms(&meaning), terms(part(3))))
    });
    let parts: Vec<(BTreeSet<String>, BTreeSet<String>)> = parts.collect::<Option<_>>()?;
    let is_only_in = |at: usize, term: &String| {
        let mut others = parts.iter().enumerate().filter(|(other, _)| *other != at);
        !others.any(|(_, (_, change))| change.contains(term))
    };
    let changes = parts.iter().enumerate().map(|(at, (meaning, change))| {
        let own = change.difference(meaning);
        own.filter(|term| is_only_in(at, term)).cloned().collect()
    });
    Some(changes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_says_what_it_changes_after_a_colon_or_a_dash() {
        for (options, says) in [
            (
                [
                    "standby: the time from self-discharge and idle current",
                    "continuous load: capacity divided by rated current",
                    "mixed use: an average over a stated daily pattern",
                ],
                true,
            ),
            (["総容量：400", "有効容量：360", "溢れ口まで：380"], true),
            (["gross - 400 l", "usable – 360 l", "all—380 l"], true),
            (["gross: 400 l", "usable: 400 l", "all: 400 l"], false),
            (["gross: 400 l", "usable: 360 l", "all"], false),
            (
                ["the short version", "the long version", "another angle"],
                false,
            ),
            (
                [
                    "the short version: the reply is short",
                    "the long version: the reply is long",
                    "another angle: the reply takes another angle",
                ],
                false,
            ),
            (
                [
                    "short: the short version",
                    "long: the long version",
                    "other: another angle",
                ],
                false,
            ),
            (["短い：短い版", "長い：長い版", "別：別の視点"], false),
            (["a 16:9 screen", "10–12 hours", "a one-way trip"], false),
        ] {
            assert_eq!(
                say_what_changes(&options.map(str::to_owned)),
                says,
                "{options:?}"
            );
        }
    }
}
