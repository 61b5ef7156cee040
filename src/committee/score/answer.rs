//! Finds the final answer in what an agent wrote, given the shape of answer that the request expects.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::dates;
use super::normal::{Answer, in_words, normalise, number, undress, yes_no};
use super::pattern::pattern;
use super::request::{Expect, Request};
use super::text::{MAX_BYTES, clip, content, covered_share, is_content, sentences, stem, tidy, words};

/// The final answer of a text; `None` when there is none, or when the request is open and nothing marks an answer.
pub(super) fn in_text(text: &str, request: &Request) -> Option<Answer> {
    let text = clip(text, MAX_BYTES);
    let found = match request.expect {
        Expect::Code => None,
        Expect::Steps => boxed(text).and_then(|inside| fit(inside, request)),
        Expect::Choice => choice(text, request),
        Expect::YesNo => {
            marked(text, request).filter(|answer| matches!(answer, Answer::YesNo(_))).or_else(|| verdict(text, request))
        }
        Expect::Value => marked(text, request).or_else(|| value(text, request)),
        Expect::Short => marked(text, request).or_else(|| dated(text, request)).or_else(|| short(text, request)),
        Expect::List | Expect::Open if request.text.trim().is_empty() => {
            // Nothing is known of the request: whatever the text ends on as its result.
            lettered(text).or_else(|| marked(text, request)).or_else(|| concluded(text, request))
        }
        Expect::List | Expect::Open => lettered(text).or_else(|| marked(text, request)),
    };
    found.filter(|answer| !answer.label().trim().is_empty())
}

/// The final answer of a report's summary, which has it first: "52.8: 17 % of 240 is 40.8, and 12 more make 52.8".
pub(super) fn in_summary(summary: &[String], request: &Request) -> Option<Answer> {
    static HEAD: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^\W{0,4}([-−]?[$€£]?\d[\d.,/]*\s*%?(?:\s*(?:°[CF]|[A-Za-z]+))?)\s*[:;,–—]\s"));
    let tidied = |text: &str| tidy(clip(text, MAX_BYTES)).into_owned();
    let first = summary.first().map(|first| tidied(first)).unwrap_or_default();
    let head = HEAD.captures(&first).and_then(|found| number(&undress(found.get(1)?.as_str())));
    head.filter(|_| request.expect == Expect::Value)
        .or_else(|| in_text(&first, request))
        .or_else(|| in_text(&tidied(&summary.join("\n")), request))
}

/// The sentence that a reader would quote as the answer: one that is marked as such, else a conclusion, else the first.
pub(super) fn conclusive_sentence(text: &str) -> Option<String> {
    let all: Vec<&str> = sentences(text).into_iter().filter(|s| !is_opener(s)).collect();
    all.iter()
        .rev()
        .find(|s| MARK.is_match(s) || s.contains("boxed{"))
        .or_else(|| all.iter().rev().take(3).find(|s| CONCLUSION.is_match(s)))
        .or(all.first())
        .map(|s| (*s).to_owned())
}

/// "Sure!" and "Great question." say nothing.
pub(super) fn is_opener(sentence: &str) -> bool {
    static OPENER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:sure|certainly|of course|absolutely|great question|good question|hello|hi|okay|ok|thanks?(?: you)?|happy to help|i(?:'d| would) be (?:happy|glad) to help)\b[^.]{0,40}[!.:,]?$|^let'?s (?:think|break|solve|approach)\b|^here (?:is|are)\b.*:$",
        )
    });
    OPENER.is_match(sentence.trim())
}

static MARK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?im)(?:\b(?:final|correct|right|best)?\s*answer(?:\s+(?:to|choice|option|for)\b[^.:\n]{0,50}?)?\**\s*(?:(?:is|would be|must be|should be)\b\s*:?|:|=)|^\s*\**A\**:|^####)\s*\**\s*([^\n]{1,200})",
    )
});

static CONCLUSION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:therefore|thus|hence|in total|altogether|in conclusion|overall|finally|as a result|consequently|which means)\b|^(?:so|total)\b|[∴]",
    )
});

/// An answer that the text itself marks: `\boxed{}`, "The answer is", "A:", "####". The last one counts.
fn marked(text: &str, request: &Request) -> Option<Answer> {
    if let Some(inside) = boxed(text) {
        return fit(inside, request).or_else(|| normalise(inside));
    }
    let line = MARK.captures_iter(text).last()?.get(1)?.as_str();
    let sentence = sentences(line).first().copied().unwrap_or(line);
    let found = fit(sentence, request);
    if request.expect != Expect::Value {
        return found;
    }
    // "2107, which was obtained by the second method": what comes after the comma explains.
    let clause = CLAUSE.find(sentence).and_then(|cut| sentence.get(..cut.start()));
    found
        .or_else(|| clause.and_then(|clause| fit(clause, request)))
        .or_else(|| clause.and_then(|clause| number_of_sentence(clause, request)))
        .or_else(|| number_of_sentence(sentence, request))
        .or_else(|| NOTHING.is_match(sentence).then(|| in_words(NONE_SUCH)).flatten())
}

/// How an answer that there is none is put, whatever its words.
const NONE_SUCH: &str = "none exists";

static NOTHING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:does not exist|do not exist|no (?:real |integer |such )?(?:solutions?|values?|numbers?)|undefined|impossible|none|n/a)\b",
    )
});

static CLAUSE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(?:[,;(]|\s[-–—])\s|\s(?:which|because|since|as|so|if|when|using|rather)\s"));

/// The normal form in the shape that the request expects.
fn fit(raw: &str, request: &Request) -> Option<Answer> {
    let text = undress(raw);
    match request.expect {
        Expect::YesNo => yes_no(&text).or_else(|| yes_no(&format!("{},", words(&text).first()?.lower))),
        Expect::Value => {
            let value = text.rsplit_once('=').map_or(text.as_str(), |(_, value)| value.trim());
            number(value)
                .or_else(|| number(&text))
                .or_else(|| normalise(&text).filter(|answer| !matches!(answer, Answer::Words { .. })))
        }
        Expect::Short => {
            let clause = text.split([',', ';', '(']).next().unwrap_or(&text);
            // A date has a comma of its own.
            dates::alone(&text).map(Answer::Date).or_else(|| normalise(clause))
        }
        _ => normalise(&text),
    }
}

/// What stands in the last `\boxed{...}`, braces inside counted.
fn boxed(text: &str) -> Option<&str> {
    let start = text.rfind("boxed{")? + "boxed{".len();
    let rest = text.get(start..)?;
    let mut depth = 1;
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return rest.get(..at);
        }
    }
    None
}

/// A letter that the text marks as its answer, where the options are not known.
fn lettered(text: &str) -> Option<Answer> {
    static ENDS_ON: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?:^|[.!?*]\s*|\n\s*)\(?\*{0,2}\(([A-J])\)\W*$|boxed\{\s*\(?([A-J])\)?\s*\}\W*$"));
    static MARKED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?:(?i:\b(?:answer|choice|option)\b[^.\n]{0,60}?(?:\bis\b|:|\bbe\b))|(?i:\b(?:choose|select)\b[^.\n]{0,30}?))\s*\*{0,2}\(([A-J])\)",
        )
    });
    static CALLED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"\(([A-J])\)[^.\n]{0,60}?\bis the (?:correct|right|best|most)\b"));
    let found = ENDS_ON.captures(text.trim_end());
    let found = found.or_else(|| MARKED.captures_iter(text).last()).or_else(|| CALLED.captures_iter(text).last())?;
    found.iter().skip(1).flatten().next()?.as_str().chars().next().map(Answer::Choice)
}

/// The figure of the last sentence that concludes.
fn concluded(text: &str, request: &Request) -> Option<Answer> {
    let all = sentences(text);
    let last = all.iter().rev().take(3).find(|s| CONCLUSION.is_match(s) && s.chars().any(|c| c.is_ascii_digit()))?;
    number_of_sentence(last, request)
}

/// The letter of an option, by the plainest sign there is: boxed, alone at the end, marked as the answer, the only one
/// that the end names, called the right one, or told by its text or number.
fn choice(text: &str, request: &Request) -> Option<Answer> {
    static MARKED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i:\banswer\b[^.\n]{0,60}?(?:\bis\b|:|\bbe\b|=))\s*(?i:most likely|likely|probably|clearly|option|choice|\s)*[\*`$\\]*[\({\[]?([A-J])(?:[)\]}*.,:;]|\s|$)",
        )
    });
    static CHOSEN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i:\b(?:select|choose|chose|pick|go with|option|choice|is|be|thus|therefore|hence),?)\s*(?i:likely|probably|option|choice|\s)*[\*`$]*\(?([A-J])(?:\)|\b)|\(([A-J])\)|\*\*([A-J])\b",
        )
    });
    static LEADING: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\W*([A-J])(?:[).:,]|\s*$)"));
    static ALONE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:\(X\)|[^\w-])*([A-J])[^\w]*$"));
    let known = |letter: char| request.options.iter().any(|(c, _)| *c == letter);
    let letter = |found: regex::Captures<'_>| {
        found.iter().skip(1).flatten().next()?.as_str().chars().next().filter(|c| known(*c))
    };
    if let Some(inside) = boxed(text) {
        let bare = undress(inside);
        let found = ALONE.captures(bare.trim()).or_else(|| LEADING.captures(bare.trim())).and_then(letter);
        if let Some(found) = found.or_else(|| option_named(&bare, request)) {
            return Some(Answer::Choice(found));
        }
    }
    let all = sentences(text);
    let repeated = || {
        words(text).iter().rev().find_map(|word| {
            let mut chars = word.lower.chars();
            let first = chars.next()?.to_ascii_uppercase();
            (word.lower.len() >= 3 && chars.all(|c| c.to_ascii_uppercase() == first) && known(first)).then_some(first)
        })
    };
    // Sentences that turn an option down do not choose it.
    let kept: Vec<&str> = all.iter().copied().filter(|sentence| !REJECTS.is_match(sentence)).collect();
    let only = |sentence: &str| {
        let letters: BTreeSet<char> = CHOSEN.captures_iter(sentence).filter_map(letter).collect();
        letters.first().copied().filter(|_| letters.len() == 1)
    };
    let last_line = text.lines().rev().find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or_default();
    [Some(last_line), all.last().copied()]
        .into_iter()
        .flatten()
        .find_map(|end| ALONE.captures(end).and_then(letter))
        .or_else(repeated)
        .or_else(|| MARKED.captures_iter(text).filter_map(letter).last())
        .or_else(|| kept.iter().rev().take(2).find_map(|sentence| only(sentence)))
        .or_else(|| all.first().and_then(|first| LEADING.captures(first)).and_then(letter))
        .or_else(|| MARK.captures_iter(text).last().and_then(|found| option_named(found.get(1)?.as_str(), request)))
        .or_else(|| kept.iter().rev().take(2).find_map(|sentence| option_named(sentence, request)))
        .or_else(|| option_of_value(text, request))
        .or_else(|| kept.iter().rev().find_map(|sentence| only(sentence)))
        .map(Answer::Choice)
}

static REJECTS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:incorrect|wrong|false|inaccurate|irrelevant|unlikely|eliminate[sd]?|rule[sd]? out|not|cannot|can't|isn't|doesn't|neither|nor|other options?|misrepresents?)\b",
    )
});

/// The one option that is the number on which the text ends.
fn option_of_value(text: &str, request: &Request) -> Option<char> {
    let all = sentences(text);
    let last = all.iter().rev().take(2).find(|s| s.chars().any(|c| c.is_ascii_digit()))?;
    let stated = marked_number(last).or_else(|| number_of_sentence(last, request))?;
    let mut same =
        request.options.iter().filter(|(_, option)| number(&undress(option)).is_some_and(|n| n.same(&stated)));
    let first = same.next()?;
    same.next().is_none().then_some(first.0)
}

fn marked_number(sentence: &str) -> Option<Answer> {
    number(&undress(MARK.captures_iter(sentence).last()?.get(1)?.as_str()))
}

/// The one option whose text a sentence repeats.
fn option_named(sentence: &str, request: &Request) -> Option<char> {
    let said: BTreeSet<String> = words(sentence).iter().map(|word| stem(&word.lower)).collect();
    let mut named = request.options.iter().filter(|(_, text)| {
        let wanted: BTreeSet<String> = words(text).iter().map(|word| stem(&word.lower)).collect();
        !wanted.is_empty() && wanted.is_subset(&said)
    });
    let first = named.next()?;
    named.next().is_none().then_some(first.0)
}

/// A yes or a no at the head, or a statement that repeats the question with or without a "not".
fn verdict(text: &str, request: &Request) -> Option<Answer> {
    let all: Vec<&str> = sentences(text).into_iter().filter(|s| !is_opener(s)).collect();
    let first = all.first()?;
    if let Some(answer) = yes_no(&undress(first)) {
        return Some(answer);
    }
    let asked = request.part_stems.last()?;
    all.iter().take(2).chain(all.last()).find_map(|sentence| {
        let stated = content(sentence);
        if asked.len() < 2 || covered_share(asked, &stated) < 0.75 || sentence.ends_with('?') {
            return None;
        }
        let negations = words(sentence).iter().filter(|word| super::claims::is_negation(&word.lower)).count();
        Some(Answer::YesNo(negations % 2 == 0))
    })
}

/// The number of the conclusion: of the last sentence that concludes, else of the last one with a number in it.
fn value(text: &str, request: &Request) -> Option<Answer> {
    let all = sentences(text);
    let with_number: Vec<&str> =
        all.into_iter().filter(|s| s.chars().any(|c| c.is_ascii_digit()) && !s.ends_with('?')).collect();
    let concluding = with_number.iter().rev().take(3).find(|s| CONCLUSION.is_match(s));
    concluding.into_iter().chain(with_number.last()).find_map(|sentence| number_of_sentence(sentence, request)).or_else(
        || {
            let bare = undress(text);
            if words(&bare).len() <= 3 { number(&bare) } else { None }
        },
    )
}

/// A result is looked for in so many bytes behind the word that announces it.
const MAX_RESULT_BYTES: usize = 300;

fn number_of_sentence(sentence: &str, request: &Request) -> Option<Answer> {
    static BOLD: LazyLock<Regex> = LazyLock::new(|| pattern(r"\*\*([^*\n]{1,60})\*\*"));
    static RESULT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?:[=≈]|\b(?:is|are|was|were|equals|be|gives|costs?|takes?|needs?|has|have|had|gets?|makes?|earns?|total of)\b)\s*(?:(?:about|approximately|only|exactly|roughly|equal to)\s+)?",
        )
    });
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"[-−]?[$€£]?\s?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+)(?:\s*/\s*\d+)?\s*%?(?:\s*(?:°[CF]|[A-Za-z]+))?",
        )
    });
    let sentence = undress(sentence);
    if let Some(bold) =
        BOLD.captures_iter(&sentence).filter_map(|found| number(&undress(found.get(1)?.as_str()))).last()
    {
        return Some(bold);
    }
    // "how many packs": the number right before "packs" is meant.
    let figures: Vec<(usize, &str)> =
        NUMBER.find_iter(&sentence).map(|found| (found.start(), found.as_str())).collect();
    if let Some((_, figure)) = figures
        .iter()
        .rev()
        .find(|(_, figure)| words(figure).last().is_some_and(|word| request.counted.contains(&stem(&word.lower))))
        && !sentence.contains('=')
    {
        return number(&undress(figure));
    }
    let ends: Vec<usize> = RESULT.find_iter(&sentence).map(|found| found.end()).collect();
    let after_last_result = ends.into_iter().rev().find_map(|end| {
        let rest = clip(sentence.get(end..)?, MAX_RESULT_BYTES);
        let formula = rest.trim_end_matches('.').trim_start_matches('$');
        if let Some(answer) = number(&undress(formula)) {
            return Some(answer);
        }
        let figure = NUMBER.find(rest).filter(|figure| figure.start() <= 2)?;
        // The left side of a sum is not its result.
        let tail = rest.get(figure.end()..).unwrap_or_default().trim_start();
        if tail.starts_with(['+', '*', '×', '÷', '/', '-', '^']) {
            return None;
        }
        number(&undress(figure.as_str()))
    });
    after_last_result.or_else(|| figures.last().and_then(|(_, figure)| number(&undress(figure))))
}

/// Where the request asks for a date: the only one of the first sentence that repeats the question or concludes, other
/// than those that the request names.
fn dated(text: &str, request: &Request) -> Option<Answer> {
    static WHEN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)(?:^|[.!?]\s+)(?:when|on (?:what|which))\b|\b(?:what|which|the|exact) (?:date|day)\b")
    });
    if !WHEN.is_match(request.text.trim()) {
        return None;
    }
    let asked = request.part_stems.last()?;
    let known = dates::mentions(&request.text);
    let all = sentences(text);
    let telling = |sentence: &&&str| covered_share(asked, &content(sentence)) >= 0.5 || CONCLUSION.is_match(sentence);
    all.iter().filter(|sentence| all.len() == 1 || telling(sentence)).find_map(|sentence| {
        let found = dates::mentions(sentence).into_iter().map(|mention| mention.day);
        let new: BTreeSet<_> = found.filter(|day| !known.iter().any(|known| known.day == *day)).collect();
        new.first().filter(|_| new.len() == 1).map(|day| Answer::Date(*day))
    })
}

/// A short text's own words, or what the sentence that repeats the question adds to it: "The capital of France is
/// Paris" adds "Paris".
fn short(text: &str, request: &Request) -> Option<Answer> {
    let all: Vec<&str> = sentences(text).into_iter().filter(|s| !is_opener(s)).collect();
    let first = all.first()?;
    if words(first).len() <= 4 && all.len() <= 2 {
        let own = residue(first, request).filter(|answer| matches!(answer, Answer::Words { .. }));
        return own.or_else(|| normalise(first));
    }
    let asked = request.part_stems.last()?;
    all.iter()
        .take(4)
        .chain(all.iter().rev().take(2).filter(|s| CONCLUSION.is_match(s)))
        .filter(|sentence| covered_share(asked, &content(sentence)) >= 0.5 && !sentence.ends_with('?'))
        .find_map(|sentence| residue(sentence, request))
}

fn residue(sentence: &str, request: &Request) -> Option<Answer> {
    static CLAUSE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)[;(]|,\s*(?:which|who|where|and|but|as|located|known|a|an|the|because|with)\b|\b(?:because|since|which|who is|known for|located in|situated)\b",
        )
    });
    let sentence = undress(sentence);
    let clause = CLAUSE
        .find(&sentence)
        .filter(|cut| cut.start() > 8)
        .map_or(sentence.as_str(), |cut| sentence.get(..cut.start()).unwrap_or(&sentence));
    let new: Vec<_> = words(clause)
        .into_iter()
        .filter(|word| is_content(&word.lower) && !request.stems.contains(&stem(&word.lower)) && !is_glue(&word.lower))
        .collect();
    let is_figure = |word: &super::text::Word| word.lower.starts_with(|c: char| c.is_ascii_digit());
    let of_kind = |kind: &dyn Fn(&super::text::Word) -> bool| {
        new.iter().filter(|word| kind(word)).map(|word| word.lower.as_str()).collect::<Vec<_>>()
    };
    // Names tell most, then figures, then any words.
    let kept = [of_kind(&|word| word.capital), of_kind(&is_figure), of_kind(&|_| true)]
        .into_iter()
        .find(|kind| !kind.is_empty())
        .unwrap_or_default();
    match kept.as_slice() {
        [] => None,
        [one] if one.starts_with(|c: char| c.is_ascii_digit()) => number(one).or_else(|| in_words(one)),
        some if some.len() <= 4 => in_words(&some.join(" ")),
        _ => None,
    }
}

/// Words that introduce an answer rather than being one.
fn is_glue(lower: &str) -> bool {
    matches!(
        lower,
        "answer"
            | "called"
            | "named"
            | "known"
            | "located"
            | "sure"
            | "think"
            | "believe"
            | "city"
            | "country"
            | "correct"
            | "indeed"
            | "officially"
            | "currently"
            | "simply"
            | "therefore"
            | "actually"
            | "final"
            | "according"
    )
}

#[cfg(test)]
mod tests {
    use super::super::request::read;
    use super::*;

    fn label(message: &str, text: &str) -> Option<String> {
        in_text(text, &read(message)).map(|answer| answer.label())
    }

    #[test]
    fn short_factual_answers_are_found_whatever_the_wording() {
        for text in [
            "Paris",
            "Paris.",
            "The capital of France is Paris.",
            "Sure! The capital of France is **Paris**.",
            "The capital of France is Paris, which is known for the Eiffel Tower.",
            "France's capital city is Paris. It lies on the Seine.",
            "Paris is the capital of France.",
            "The answer is Paris.",
            "Answer: Paris",
            "The capital city of France is Paris (since 987).",
        ] {
            assert_eq!(label("What is the capital of France?", text).as_deref(), Some("paris"), "{text}");
        }
        assert_eq!(
            label("Who wrote Hamlet?", "Hamlet was written by William Shakespeare around 1600.").as_deref(),
            Some("william shakespeare")
        );
    }

    #[test]
    fn dates_are_one_answer_in_any_notation() {
        for text in [
            "It was signed on July 4th, 1776.",
            "The Declaration of Independence was signed on 4 July 1776 in Philadelphia.",
            "Answer: July 4, 1776",
            "1776-07-04",
        ] {
            let found = label("When was the Declaration of Independence signed?", text);
            assert_eq!(found.as_deref(), Some("1776-07-04"), "{text}");
        }
    }

    #[test]
    fn numbers_are_taken_from_the_conclusion() {
        let asked = "How many packs of gum will he need?";
        for text in [
            "He needs 120 / 15 = 8 packs of gum.",
            "4 × 30 = 120. So he needs 8 packs.",
            r"It is \boxed{8}",
            "A: 8",
            "#### 8",
            "The answer is 8 packs.",
            "Each has 15 pieces.\nTherefore, Parker needs **8** packs to last 30 days.",
            "8",
        ] {
            assert_eq!(label(asked, text).as_deref(), Some("8"), "{text}");
        }
    }

    #[test]
    fn choices_are_found_by_letter_or_by_text() {
        let asked = "What is it?\n(A) red\n(B) dark green\n(C) blue";
        for text in [
            "(B)",
            "B",
            "The answer is (B) dark green.",
            "I think (A) is wrong. The correct option is B.",
            "So it is BBBBB.",
            "It must be dark green.",
            r"\boxed{B}",
        ] {
            assert_eq!(label(asked, text).as_deref(), Some("B"), "{text}");
        }
        assert_eq!(label(asked, "It could be (A) or (C)."), None);
    }

    #[test]
    fn yes_and_no_are_found_in_statements() {
        let asked = "Is 17 a prime number?";
        assert_eq!(label(asked, "Yes, it is.").as_deref(), Some("yes"));
        assert_eq!(label(asked, "17 is a prime number.").as_deref(), Some("yes"));
        assert_eq!(label(asked, "17 is not a prime number.").as_deref(), Some("no"));
    }

    #[test]
    fn an_open_question_has_no_final_answer() {
        assert_eq!(label("Explain how DNS works.", "DNS maps names to addresses. It has 13 root servers."), None);
    }
}
