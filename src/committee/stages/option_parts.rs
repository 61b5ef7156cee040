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
    static PARTS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(\w.*?)(?:[：—→]|([^\d\s]):|:\s|\s[-–]\s)(.*\w.*)"));
    let parts = options.iter().map(|option| {
        let parts = PARTS.captures(option)?;
        let part = |at: usize| parts.get(at).map_or("", |part| part.as_str());
        let terms = |text: &str| BTreeSet::from_iter(search_terms(text));
        let meaning = [part(1), part(2)].concat();
        Some((terms(&meaning), terms(part(3))))
    });
    let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
        return false;
    };
    let says = |(at, (meaning, change)): (usize, &(BTreeSet<String>, BTreeSet<String>))| {
        let is_own = |term: &&String| {
            let mut others = parts.iter().enumerate().filter(|(other, _)| *other != at);
            !others.any(|(_, (_, change))| change.contains(*term))
        };
        change.difference(meaning).any(|term| is_own(&term))
    };
    parts.iter().enumerate().all(says)
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
