//! Claims and how two of them relate. Likeness of words only says that two claims are about one thing; whether they
//! contradict is decided on what they conclude: numbers, names, negations, opposites.

use std::collections::BTreeSet;

use super::dates::{self, Day};
use super::text::{is_content, ratio, stem, words};

/// A claim, read for comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim {
    /// The unit's id in its report.
    pub id: String,
    pub text: String,
    /// Its topic as the agent named it.
    pub topic: String,
    topic_stems: BTreeSet<String>,
    /// Content words without numbers.
    stems: BTreeSet<String>,
    /// The first two of them, which mostly say what it is about.
    lead: Vec<String>,
    dates: Vec<Day>,
    /// Each number with the word that it counts, if any.
    numbers: Vec<(String, Option<String>)>,
    /// Names: capitalised words that do not begin the sentence.
    names: BTreeSet<String>,
    /// The stems before and after the first "is", "are", "was", "were".
    halves: Option<(BTreeSet<String>, BTreeSet<String>)>,
    negations: usize,
    marks: BTreeSet<&'static str>,
}

/// How two claims relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Agree,
    Contradict,
    Unrelated,
}

pub(super) fn read(id: &str, topic: &str, text: &str) -> Claim {
    let found = words(text);
    let copula =
        found.iter().position(|word| matches!(word.lower.as_str(), "is" | "are" | "was" | "were" | "equals" | "be"));
    let stems_of = |part: &[super::text::Word]| {
        part.iter().filter(|word| is_content(&word.lower)).map(|word| stem(&word.lower)).collect::<BTreeSet<_>>()
    };
    let halves = copula.map(|at| {
        let (before, after) = found.split_at(at);
        (stems_of(before), stems_of(after))
    });
    let dates = dates::mentions(text);
    // The day of a date counts nothing; its year is a number like others.
    let in_date = |word: &super::text::Word| {
        word.end - word.start != 4 && dates.iter().any(|date| (date.start..date.end).contains(&word.start))
    };
    let numbers = found
        .iter()
        .enumerate()
        .filter(|(_, word)| word.lower.starts_with(|c: char| c.is_ascii_digit()) && !in_date(word))
        .map(|(at, word)| {
            let next = found
                .get(at + 1)
                .filter(|next| is_content(&next.lower) && next.start <= word.end + 2)
                .map(|next| stem(&next.lower));
            (plain_number(&word.lower), next)
        })
        .collect();
    let content =
        |word: &&super::text::Word| is_content(&word.lower) && !word.lower.starts_with(|c: char| c.is_ascii_digit());
    Claim {
        id: id.to_owned(),
        text: text.to_owned(),
        topic: topic.to_owned(),
        topic_stems: super::text::content(topic),
        stems: found.iter().filter(content).map(|word| stem(&word.lower)).collect(),
        lead: found.iter().filter(content).take(2).map(|word| stem(&word.lower)).collect(),
        numbers,
        dates: dates.iter().map(|mention| mention.day).collect(),
        names: found
            .iter()
            .skip(1)
            .filter(|word| word.capital && is_content(&word.lower))
            .map(|word| stem(&word.lower))
            .collect(),
        halves,
        negations: found.iter().filter(|word| is_negation(&word.lower)).count(),
        marks: MARKS.iter().filter(|mark| found.iter().any(|word| word.lower == **mark)).copied().collect(),
    }
}

fn plain_number(word: &str) -> String {
    let digits: String = word.chars().filter(|c| *c != ',').collect();
    digits.parse::<f64>().map_or(digits, super::normal::six_digits)
}

/// "not" and its kin.
pub(super) fn is_negation(lower: &str) -> bool {
    matches!(
        lower,
        "not"
            | "no"
            | "never"
            | "none"
            | "nobody"
            | "nothing"
            | "neither"
            | "nor"
            | "cannot"
            | "without"
            | "nowhere"
            | "hardly"
    ) || lower.ends_with("n't")
}

/// Function words whose exchange turns a claim round.
const MARKS: [&str; 15] = [
    "more", "less", "before", "after", "above", "below", "over", "under", "all", "always", "never", "both", "few",
    "yes", "up",
];
const MARK_OPPOSITES: [(&str, &str); 6] =
    [("more", "less"), ("before", "after"), ("above", "below"), ("over", "under"), ("always", "never"), ("all", "few")];

/// Opposites, as stems.
const OPPOSITES: [(&str, &str); 46] = [
    ("increas", "decreas"),
    ("ris", "fall"),
    ("higher", "lower"),
    ("larger", "smaller"),
    ("greater", "smaller"),
    ("greater", "less"),
    ("fast", "slow"),
    ("faster", "slower"),
    ("hot", "cold"),
    ("true", "fals"),
    ("right", "wrong"),
    ("allow", "forbid"),
    ("enabl", "disabl"),
    ("accept", "reject"),
    ("start", "stop"),
    ("open", "clos"),
    ("win", "los"),
    ("buy", "sell"),
    ("early", "lat"),
    ("old", "new"),
    ("old", "young"),
    ("good", "bad"),
    ("better", "worse"),
    ("best", "worst"),
    ("easy", "hard"),
    ("easy", "difficult"),
    ("empty", "full"),
    ("cheap", "expensiv"),
    ("public", "privat"),
    ("internal", "external"),
    ("positiv", "negativ"),
    ("minimum", "maximum"),
    ("north", "south"),
    ("east", "west"),
    ("left", "right"),
    ("aliv", "dead"),
    ("male", "female"),
    ("man", "woman"),
    ("sit", "stand"),
    ("rare", "common"),
    ("strong", "weak"),
    ("success", "failur"),
    ("succeed", "fail"),
    ("big", "small"),
    ("long", "short"),
    ("present", "absent"),
];

/// How claim `a` relates to claim `b`; symmetric.
pub(super) fn relate(a: &Claim, b: &Claim) -> Relation {
    let shared = a.stems.intersection(&b.stems).count();
    let (shorter, longer) = (a.stems.len().min(b.stems.len()), a.stems.len().max(b.stems.len()));
    let cover = ratio(shared, shorter);
    let likeness = ratio(shared, shorter + longer - shared);
    let one_topic = !a.topic_stems.is_empty() && a.topic_stems == b.topic_stems;
    let about_one_thing =
        (shared >= 2 && cover >= 0.5) || (one_topic && cover >= 0.34) || (shared >= 1 && shorter <= 2 && cover >= 0.5);
    if !about_one_thing {
        return Relation::Unrelated;
    }
    let close = cover >= 0.6 && (likeness >= 0.34 || one_topic);
    if close && (a.negations % 2 != b.negations % 2 || opposed(a, b)) {
        return Relation::Contradict;
    }
    // A figure for a period says nothing of one that is for none: "61 days from 1 March to 1 May", "31 days in March".
    let spans = |claim: &Claim| claim.dates.len() >= 2;
    if spans(a) != spans(b) && !a.numbers.is_empty() && !b.numbers.is_empty() {
        return Relation::Unrelated;
    }
    match numbers(a, b) {
        Figures::Clash if cover >= 0.6 && !other_subject(a, b) => return Relation::Contradict,
        Figures::Clash => return Relation::Unrelated,
        Figures::Match if cover >= 0.5 => return Relation::Agree,
        Figures::Match | Figures::Apart => {}
    }
    if other_name(a, b) {
        return Relation::Contradict;
    }
    if cover >= 0.6 && likeness >= 0.45 { Relation::Agree } else { Relation::Unrelated }
}

/// Each has a word of its own, and the two are opposites: "rises" and "falls", "valid" and "invalid".
fn opposed(a: &Claim, b: &Claim) -> bool {
    let mut only_a = a.stems.difference(&b.stems);
    let pair = only_a.any(|x| {
        b.stems.difference(&a.stems).any(|y| {
            OPPOSITES.iter().any(|(p, q)| (x == p && y == q) || (x == q && y == p))
                || negating_prefix(x, y)
                || negating_prefix(y, x)
        })
    });
    pair || MARK_OPPOSITES.iter().any(|(p, q)| {
        (a.marks.contains(p) && b.marks.contains(q) && !a.marks.contains(q) && !b.marks.contains(p))
            || (a.marks.contains(q) && b.marks.contains(p) && !a.marks.contains(p) && !b.marks.contains(q))
    })
}

fn negating_prefix(plain: &str, negated: &str) -> bool {
    plain.len() >= 4
        && ["un", "in", "im", "il", "ir", "non", "dis"].iter().any(|prefix| negated.strip_prefix(prefix) == Some(plain))
}

enum Figures {
    Match,
    Clash,
    /// At least one has none, or they count different things.
    Apart,
}

/// Whether the figures of two claims about one thing can both be true: figures that count the same word are compared,
/// and where each claim has a single figure, those two.
fn numbers(a: &Claim, b: &Claim) -> Figures {
    if let ([x], [y]) = (a.dates.as_slice(), b.dates.as_slice()) {
        if x.differs(y) {
            return Figures::Clash;
        }
        if x.same(y) && a.numbers.len().max(b.numbers.len()) <= 1 {
            return Figures::Match;
        }
    }
    if a.numbers.is_empty() || b.numbers.is_empty() {
        return Figures::Apart;
    }
    let said = |claim: &Claim| claim.numbers.iter().map(|(number, _)| number.clone()).collect::<BTreeSet<_>>();
    let (of_a, of_b) = (said(a), said(b));
    if of_a.is_subset(&of_b) || of_b.is_subset(&of_a) {
        return Figures::Match;
    }
    if let ([(_, unit_a)], [(_, unit_b)]) = (a.numbers.as_slice(), b.numbers.as_slice()) {
        return if unit_a == unit_b || unit_a.is_none() || unit_b.is_none() { Figures::Clash } else { Figures::Apart };
    }
    let same_unit = a
        .numbers
        .iter()
        .flat_map(|x| b.numbers.iter().map(move |y| (x, y)))
        .filter(|((_, u), (_, v))| u.is_some() && u == v);
    let mut any = false;
    for ((x, _), (y, _)) in same_unit {
        if x == y {
            return Figures::Match;
        }
        any = true;
    }
    if any && of_a.is_disjoint(&of_b) { Figures::Clash } else { Figures::Apart }
}

/// Neither claim knows the words with which the other begins.
fn other_subject(a: &Claim, b: &Claim) -> bool {
    let foreign =
        |lead: &[String], stems: &BTreeSet<String>| lead.len() >= 2 && !lead.iter().any(|s| stems.contains(s));
    foreign(&a.lead, &b.stems) && foreign(&b.lead, &a.stems)
}

/// "The capital of France is Paris" and "The capital of France is Lyon": one subject, other names.
fn other_name(a: &Claim, b: &Claim) -> bool {
    let (Some((subject_a, said_a)), Some((subject_b, said_b))) = (&a.halves, &b.halves) else { return false };
    let one_subject = !subject_a.is_empty()
        && (subject_a == subject_b
            || subject_a.len().min(subject_b.len()) >= 2
                && (subject_a.is_subset(subject_b) || subject_b.is_subset(subject_a)));
    let short = |said: &BTreeSet<String>| (1..=3).contains(&said.len());
    let named = |said: &BTreeSet<String>, names: &BTreeSet<String>| said.iter().any(|word| names.contains(word));
    one_subject
        && short(said_a)
        && short(said_b)
        && said_a.is_disjoint(said_b)
        && named(said_a, &a.names)
        && named(said_b, &b.names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn related(a: &str, b: &str) -> Relation {
        let (a, b) = (read("u1", "", a), read("u1", "", b));
        assert_eq!(relate(&a, &b), relate(&b, &a));
        relate(&a, &b)
    }

    #[test]
    fn claims_with_other_conclusions_contradict() {
        for (a, b) in [
            ("Water boils at 100 degrees at sea level.", "Water boils at 90 degrees at sea level."),
            ("The cache is shared between workers.", "The cache is not shared between workers."),
            ("The latency increases with load.", "The latency decreases with load."),
            ("This certificate is valid today.", "This certificate is invalid today."),
            ("The capital of France is Paris.", "The capital of France is Lyon."),
            ("The treaty was signed in 1848.", "The treaty was signed in 1849."),
            ("The treaty was signed on 4 July 1848.", "The treaty was signed on July 5, 1848."),
            ("The launch is planned for March 3.", "The launch is planned for 3 April."),
            ("The lock is taken before the write.", "The lock is taken after the write."),
        ] {
            assert_eq!(related(a, b), Relation::Contradict, "{a} / {b}");
        }
    }

    #[test]
    fn claims_with_one_conclusion_agree() {
        for (a, b) in [
            ("Water boils at 100 degrees at sea level.", "At sea level water boils at 100 degrees."),
            ("The capital of France is Paris.", "Paris is the capital of France."),
            ("The treaty was signed on 4 July 1848.", "The treaty was signed on July 4th, 1848."),
            ("Replicas copy the write-ahead log.", "The write-ahead log is copied to replicas."),
        ] {
            assert_eq!(related(a, b), Relation::Agree, "{a} / {b}");
        }
    }

    #[test]
    fn claims_about_different_things_are_unrelated() {
        for (a, b) in [
            ("Water boils at 100 degrees.", "The treaty was signed in 1848."),
            ("The server has 4 cores.", "The server has 16 gigabytes."),
            ("From 1 March 2025 to 1 May 2025 it is 61 days.", "March has 31 days."),
            ("The alpha server holds exactly 10 entries.", "The zulu gateway holds exactly 9 entries."),
            ("Backups run every night.", "The API has a rate limit."),
        ] {
            assert_eq!(related(a, b), Relation::Unrelated, "{a} / {b}");
        }
    }
}
