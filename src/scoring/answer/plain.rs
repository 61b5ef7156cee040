//! Finds the final answer of a plain text, which has no fields. The answer is one of: what the text
//! marks, a letter of the request's options, a verdict at its start, the result of its last
//! calculation, or the whole text. The words of each language are in `data/answer_markers.tsv` and
//! `answer/verdicts.tsv`.

use std::sync::LazyLock;

use super::normalize::{Answer, parse, undress};
use super::options::{Options, letter_of};
use super::phrase;
use crate::text::{MAX_BYTES, clip, count_words, pattern, read_markdown, sentences};
use regex::Regex;

/// A text of at most this number of words may be its own answer.
const MAX_BARE_WORDS: usize = 6;
/// The bytes after an answer's noun that are searched for its verb or colon.
const MAX_GAP_BYTES: usize = 60;

/// Returns the bare final answer as the text writes it; `None` if there is none.
pub(in crate::scoring) fn final_answer(text: &str, options: &Options) -> Option<String> {
    let text = clip(text, MAX_BYTES).trim();
    let found = boxed(text)
        .map(|inside| pick(inside).unwrap_or(inside.to_owned()))
        .or_else(|| chosen(text, options))
        .or_else(|| announced(text))
        .or_else(|| verdict(text))
        .or_else(|| calculated(text))
        .or_else(|| bare(text));
    found
        .map(|raw| raw.trim().to_owned())
        .filter(|raw| !raw.is_empty())
}

/// Returns the content of the last `\boxed{...}`, with nested braces.
fn boxed(text: &str) -> Option<&str> {
    let rest = text.get(text.rfind("boxed{")? + "boxed{".len()..)?;
    let mut depth = 1;
    let end = rest.find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    })?;
    rest.get(..end)
}

/// Returns the letter of an option. It is announced, or alone on the last line or at its start, or
/// the only one in brackets in the last sentence. If the options are unknown, only a letter in
/// brackets counts.
fn chosen(text: &str, options: &Options) -> Option<String> {
    let only = |sentence: &str| {
        let is_in = |letter: &char| {
            let in_brackets = |letter: char| sentence.contains(&format!("({letter})"));
            in_brackets(*letter) || !options.is_empty() && in_brackets(letter.to_ascii_lowercase())
        };
        let mut found = options.letters().filter(is_in);
        found.next().filter(|_| found.next().is_none())
    };
    let line = |line: Option<&str>| letter_of(line?, options);
    let last = sentences(text).pop()?;
    announcements(text)
        .find_map(|rest| letter_of(rest, options).or_else(|| only(rest)))
        .or_else(|| line(text.lines().next_back()))
        .or_else(|| only(last))
        .or_else(|| line(text.lines().next()))
        .map(|letter| format!("({letter})"))
}

struct Marker {
    noun: &'static str,
    verbs: Vec<&'static str>,
    /// What may follow the answer at the end of its sentence.
    closers: Vec<&'static str>,
}

static MARKERS: LazyLock<Vec<Marker>> = LazyLock::new(|| {
    let rows = include_str!("../data/answer_markers.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let mut fields = line.split('\t').skip(1);
        Some(Marker {
            noun: fields.next()?,
            verbs: fields.next()?.split(',').collect(),
            closers: fields.next().map_or(vec![], |it| it.split(',').collect()),
        })
    };
    rows.filter_map(read).collect()
});

/// Returns the text after each announcement of an answer up to the end of its sentence, the last
/// one first. If nothing follows on the line, the next line counts.
fn announcements(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    // Beside "B:", it is the first of several parts.
    let is_part = text.contains("B:");
    for (at, line) in lines.iter().enumerate() {
        let marked = line.trim().strip_prefix("A:").filter(|_| !is_part);
        let rests: Vec<&str> = match marked {
            Some(rest) => vec![rest],
            None => sentences(line)
                .into_iter()
                .filter_map(announced_in)
                .collect(),
        };
        let mut below = lines.iter().skip(at + 1).map(|line| line.trim());
        let next = below.find(|line| !line.is_empty());
        found.extend(rests.into_iter().filter_map(|rest| {
            let is_empty = rest.trim().trim_matches(['*', ':', '：', ' ']).is_empty();
            if is_empty { next } else { Some(rest.trim()) }
        }));
    }
    found.into_iter().rev()
}

/// Returns the text after the noun and its verb, colon or dash.
fn announced_in(sentence: &str) -> Option<&str> {
    let lower = sentence.to_lowercase();
    if lower.len() != sentence.len() {
        return None;
    }
    MARKERS.iter().find_map(|marker| {
        let start = lower
            .rmatch_indices(marker.noun)
            .map(|(at, _)| at)
            .find(|at| begins_word(&lower, *at))?;
        let behind = start + marker.noun.len();
        let window = clip(lower.get(behind..)?, MAX_GAP_BYTES);
        let signs = [":", "：", " - ", " – ", " — "]
            .iter()
            .filter_map(|sign| separator(window, sign));
        let verbs = marker
            .verbs
            .iter()
            .filter_map(|verb| Some(whole_word(window, verb)? + verb.len()));
        let end = signs.chain(verbs).min()?;
        let rest = sentence.get(behind + end..)?;
        let said = rest.trim_end_matches([' ', '.', '。', '!', '！', '*']);
        let mut closers = marker.closers.iter();
        closers.find_map(|it| said.strip_suffix(it)).or(Some(rest))
    })
}

/// Returns the end of the first sign that separates: the colon of "13:45" does not.
fn separator(text: &str, sign: &str) -> Option<usize> {
    let is_digit = |c: char| c.is_numeric();
    let mut ends = text
        .match_indices(sign)
        .map(|(at, _)| (at, at + sign.len()));
    let separates = |&(at, end): &(usize, usize)| {
        let (head, rest) = (text.get(..at), text.get(end..));
        !(head.is_some_and(|it| it.ends_with(is_digit))
            && rest.is_some_and(|it| it.starts_with(is_digit)))
    };
    ends.find(separates).map(|(_, end)| end)
}

fn begins_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|head| head.chars().next_back());
    before.is_none_or(|c| !c.is_alphabetic() || !c.is_ascii() && !c.is_lowercase())
}

/// Returns the position of a verb that is a separate word; in scripts without spaces, any position.
fn whole_word(text: &str, word: &str) -> Option<usize> {
    let spaced = word
        .chars()
        .all(|c| c.is_lowercase() || c.is_uppercase() || c == ' ');
    let is_whole = |at: &usize| {
        let (head, rest) = text.split_at_checked(*at).unwrap_or_default();
        let behind = rest.get(word.len()..).unwrap_or_default();
        !head.ends_with(char::is_alphabetic) && !behind.starts_with(char::is_alphabetic)
    };
    let mut places = text.match_indices(word).map(|(at, _)| at);
    places.find(|at| !spaced || is_whole(at))
}

fn announced(text: &str) -> Option<String> {
    announcements(text).find_map(pick)
}

/// Returns the bare answer at the start of a sentence: its figure before words and a calculation, the
/// result of its calculation, all of it, the clause before the first break, or its only figure.
fn pick(rest: &str) -> Option<String> {
    // "5 because 2 * 5 + 3 = 13", and not "5 apples + 3 apples = 8 apples".
    static REASONED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(\S*\d\S*?)(?:\.| \p{L}[\p{L} ]+) [\d(].*="));
    let text = undress(rest);
    let before = |breaks: &[&str]| {
        let end = breaks.iter().filter_map(|sign| text.find(sign)).min();
        end.and_then(|at| text.get(..at))
    };
    let clause = before(&[", ", "; ", " (", " – ", " — ", " - "]);
    // "12, because 12 * 12 = 144". The other breaks may be signs of a calculation.
    let stated = before(&[", ", "; ", "，", "；"]).unwrap_or(&text);
    let reasoned = REASONED.captures(stated).and_then(|found| found.get(1));
    let result = stated.rsplit_once('=').map(|(_, value)| value.trim());
    let explained = !stated.contains('=') && text.contains('=');
    let whole = if explained { stated } else { &text };
    let candidates = [reasoned.map(|it| it.as_str()), result, Some(whole)];
    if let Some(value) = candidates.into_iter().flatten().find(|text| is_value(text)) {
        return Some(value.to_owned());
    }
    let words = || text.split_whitespace();
    // Words beside a figure in a short answer belong to it: "before 2010", "TCP port 53".
    let short = clause.unwrap_or(&text);
    if (1..=MAX_BARE_WORDS).contains(&count_words(short)) {
        return Some(short.to_owned());
    }
    let first = words().next().filter(|word| is_figure(word)).map(undress);
    let mut figures = words().filter(|word| word.contains(|c: char| c.is_ascii_digit()));
    let only = figures
        .next()
        .filter(|_| figures.next().is_none())
        .map(undress);
    [first, only]
        .into_iter()
        .flatten()
        .find(|figure| is_value(figure))
}

/// True if a text is more than words: a figure, a date, a choice, yes or no.
fn is_value(text: &str) -> bool {
    parse(text).is_some_and(|answer| !matches!(answer, Answer::Words(_)))
}

fn is_figure(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// True or false if the text begins with yes or no.
pub(in crate::scoring) fn opening_verdict(text: &str) -> Option<bool> {
    phrase::yes_no(&undress(sentences(clip(text, MAX_BYTES)).first()?))
}

/// Returns the yes or no with which the text begins.
fn verdict(text: &str) -> Option<String> {
    let head = undress(sentences(text).first()?);
    phrase::yes_no(&head)?;
    let end = head.find(|c: char| !c.is_alphanumeric());
    head.get(..end.unwrap_or(head.len())).map(str::to_lowercase)
}

/// Returns the result after the last equals sign, if the last sentence has it.
fn calculated(text: &str) -> Option<String> {
    let prose = read_markdown(text).prose;
    let (_, behind) = prose.rsplit_once(['=', '≈'])?;
    let line = behind.lines().next()?.trim();
    let value = line.split(['$', ';', '≈']).next()?;
    let value = value.split(". ").next()?.split(", ").next()?;
    let value = undress(value.trim_end_matches(['.', '\\', ')', ' ']));
    let head = value.split_whitespace().next().map(undress);
    let has_figure = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let mut results = [Some(value), head].into_iter().flatten();
    let result = results.find(|text| has_figure(text) && is_value(text))?;
    let last = sentences(&prose).pop()?;
    last.contains(&result).then_some(result)
}

/// Returns the text itself if it is short enough to be nothing but an answer.
fn bare(text: &str) -> Option<String> {
    let one_line = text.lines().filter(|line| !line.trim().is_empty()).count() == 1;
    let short = (1..=MAX_BARE_WORDS).contains(&count_words(text)) && sentences(text).len() <= 1;
    (one_line && short && !text.ends_with(['?', '？', ':'])).then(|| undress(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        final_answer(text, &Options::read("How many are there?"))
    }

    #[test]
    fn the_last_announced_answer_counts_and_is_cut_at_its_sentence() {
        for text in [
            "The answer is 61. March has 31 days and April has 30.",
            "Die Antwort lautet 61.",
            "Das Ergebnis ist 61, weil März 31 Tage hat.",
            "La réponse est 61.",
            "La respuesta es: 61.",
            "答えは: 61",
            "答えは61です。",
            "正解は61である",
            "정답은 61입니다.",
            "31 + 30 = 61",
            r"So it is \boxed{61} days.",
            "First 31, then 30.\nA: 61",
            "**Final answer:**\n\n61",
            "The answer is 61 days because 31 + 30 makes it.",
            "61",
            "最終的な答え：61",
            "31 + 30 = 60 + 1. Ответ: 61",
            "الإجابة هي 61",
            "उत्तर: 61",
            "정답은 61",
            "Cevap: 61",
        ] {
            let answer = found(text)
                .and_then(|raw| parse(&raw))
                .map(|answer| answer.label());
            assert!(
                answer
                    .as_deref()
                    .is_some_and(|label| label.starts_with("61")),
                "{text}: {answer:?}"
            );
        }
    }

    #[test]
    fn verdicts_and_names_are_found_in_several_languages() {
        for (text, expected) in [
            ("Yes, it is.", "yes"),
            ("Nein, das stimmt nicht, denn 91 ist 7 mal 13.", "nein"),
            ("Oui.", "oui"),
            ("Canberra", "Canberra"),
            ("The answer is Paris.", "Paris"),
            (
                "It was Dr. Alexander Fleming. The answer is Dr. Alexander Fleming. He was a Scot.",
                "Dr. Alexander Fleming",
            ),
            ("221 = 13 × 17.\nОтвет: нет", "нет"),
            ("Answer: 192.168.1.10", "192.168.1.10"),
            ("Answer - Mary Shelley", "Mary Shelley"),
            ("答案是13:45。", "13:45"),
            ("उत्तर 13:45 है।", "उत्तर 13:45 है।"),
            ("A: 12. B: 30. C: 25. The answer is C.", "C"),
            ("The answer is before 2010.", "before 2010"),
            ("The answer is 12, because 12 * 12 = 144.", "12"),
            ("The answer is 5 because 2 * 5 + 3 = 13.", "5"),
            ("The answer is 408. 17 * 20 = 340 and 17 * 4 = 68.", "408"),
            ("The answer is plan B, because 12 * 9 = 108.", "plan B"),
            ("The answer is 5 apples + 3 apples = 8 apples.", "8 apples"),
            ("Die Antwort ist nein, denn 7 * 13 = 91.", "nein"),
            ("答案是12，因为12 * 12 = 144。", "12"),
            (
                "Antwort: 9. November 1989. Danach fiel die Mauer.",
                "9. November 1989",
            ),
        ] {
            assert_eq!(found(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn the_letter_of_an_option_is_found() {
        let options = Options::read("What is it?\n(A) red\n(B) dark green\n(C) blue");
        for text in [
            "(B)",
            "B",
            "B) dark green",
            "The answer is (B) dark green.",
            "It is green, so (B).",
        ] {
            assert_eq!(
                final_answer(text, &options).as_deref(),
                Some("(B)"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_explanation_has_no_final_answer() {
        for text in [
            "Two cities are possible: 1 + 1 = 2. It must be the one in the east.",
            "DNS maps names to addresses. It has 13 root servers. Caches keep what they were told.",
            "Run 3 replicas behind a load balancer, and keep 2 backups elsewhere.",
            "Which database do you mean?",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
