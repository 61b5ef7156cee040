//! Compares the final answer that a reply names with what its texts say.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization as _;
use unicode_script::{Script, UnicodeScript as _};

use super::answer::{self, Answer, Day, Number, Options, Phrase};
use crate::domain::in_digits;
use crate::text::{clip, collapse_whitespace, count_words, figures, language_code, pattern};

/// A word of an answer is found in a text by this share of its letters, because words are inflected.
const STEM: f64 = 0.6;
/// The least letters of a stem; shorter words must be whole.
const MIN_STEM_CHARS: usize = 3;
/// A summary of at most this number of words is nothing but the answer.
const MAX_BARE_WORDS: usize = 3;
/// The most bytes of a text in which a number is looked for in words.
const MAX_IN_WORDS_BYTES: usize = 20_000;

/// False if the texts of a reply do not give the final answer that it names: they have other numbers
/// than it and the request, state another date, verdict or choice, or lack its words. A text with
/// fractions or powers may have a number in another form, and a text in another script a name. A
/// summary that is a part of the main answer says nothing by itself.
pub fn may_give(request: &str, tldr: &str, main: &str, answer: &str) -> bool {
    let options = Options::read(request);
    let letter = answer::letter_of(answer, &options).map(Answer::Choice);
    let Some(named) = letter.or_else(|| answer::parse(answer)) else {
        return true;
    };
    let summary = Some(tldr.trim()).filter(|tldr| !tldr.is_empty() && !main.contains(tldr));
    let all = format!("{tldr}\n{main}");
    let have_figures = || {
        let mut texts = [all.as_str()].into_iter().chain(summary);
        texts.all(|text| has_figures(request, text, answer))
    };
    match &named {
        Answer::Number(number) => {
            // Only beside other words may a sign be a dash, and a fraction a step.
            let is_bare = |text: &&str| count_words(text) <= MAX_BARE_WORDS;
            let mut bare = summary.into_iter().chain([main]).filter(is_bare);
            let is_other = |text: &str| answer::parse(text).is_some_and(|it| named.differs(&it));
            let mut texts = [all.as_str()].into_iter().chain(summary);
            // "3/4", and a text with "2/3"
            let is_fraction = answer.contains('/') && !has_amount(&all, number);
            texts.all(|text| has_number(request, text, number))
                && !bare.any(is_other)
                && (!is_fraction || has_figures(request, &all, answer))
        }
        Answer::Words(phrase) => {
            let short = summary.filter(|text| count_words(text) <= MAX_BARE_WORDS);
            let mut texts = [Some(all.as_str()), short].into_iter().flatten();
            texts.all(|text| has_words(text, phrase)) && have_figures()
        }
        Answer::YesNo(_) | Answer::Choice(_) => {
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
        Answer::Date(day, _) => [all.as_str()]
            .into_iter()
            .chain(summary)
            .all(|text| has_day(request, text, day)),
        Answer::Formula { .. } => have_figures(),
    }
}

/// False if a text lacks a figure of an answer, in digits and words, and has others that are neither
/// in the answer nor in the request: "10:30", and a text with "04:30".
fn has_figures(request: &str, text: &str, answer: &str) -> bool {
    // "(1,2)" has two.
    static LISTED: LazyLock<Regex> = LazyLock::new(|| pattern(r",(\d{1,2}(?:\D|$))"));
    let bare = |text: &str| -> BTreeSet<String> {
        let text = collapse_whitespace(text);
        let figures = figures(&LISTED.replace_all(&text, " $1")).into_iter();
        let unit = |c: char| !c.is_ascii_digit();
        figures
            .map(|it| it.trim_end_matches(unit).to_owned())
            .collect()
    };
    let (known, mut found, wanted) = (bare(request), bare(text), bare(answer));
    if !wanted.is_subset(&found) {
        let words = clip(text, MAX_IN_WORDS_BYTES);
        found.extend(in_digits(words, language_code(words)).flat_map(|it| bare(&it)));
    }
    let is_known = |it: &String| wanted.contains(it) || known.contains(it);
    wanted.is_subset(&found) || found.iter().all(is_known)
}

/// True if a text has letters of options, but neither this one nor its text. A lone "A" may be an
/// article.
fn has_only_other(text: &str, letter: char, options: &Options) -> bool {
    let own = options.text(&letter.to_string()).map(str::to_lowercase);
    if own.is_some_and(|own| text.to_lowercase().contains(&own)) {
        return false;
    }
    // "C'est" and "°C" have none.
    let words = text.split_whitespace();
    let words = words.map(|word| word.trim_matches(|c: char| c.is_ascii_punctuation()));
    let lone = words.filter_map(|word| word.parse::<char>().ok());
    let lone: Vec<char> = lone
        .filter(|c| options.text(&c.to_string()).is_some())
        .collect();
    !lone.contains(&letter) && lone.iter().any(|c| *c != 'A')
}

/// False if a text has dates, but not this one, or else numbers, but not its year.
fn has_day(request: &str, text: &str, day: &Day) -> bool {
    answer::dates::have(text, day).unwrap_or_else(|| {
        let year = day.year.map(|year| Number::exact(f64::from(year)));
        year.is_none_or(|year| has_number(request, text, &year))
    })
}

/// False if a text has numbers that are not in the request, but not this one. Beside those of the
/// request the number may stand in words.
fn has_number(request: &str, text: &str, number: &Number) -> bool {
    static OTHER_FORM: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d\s*[/⁄]\s*\d|[\^\\½¼¾]"));
    let text = collapse_whitespace(text);
    if OTHER_FORM.is_match(&text)
        || has_amount(&text, number)
        || is_named_in(request, &text, number)
    {
        return true;
    }
    let given = answer::numbers(&collapse_whitespace(request), None);
    answer::each_amount(&text).all(|it| it.is_among(&given))
}

/// True if a text has a number in digits.
fn has_amount(text: &str, number: &Number) -> bool {
    answer::each_amount(&collapse_whitespace(text)).any(|found| number.is_among(&[found]))
}

/// True if a text has a number in words of its language, if that is one that is read.
fn is_named_in(request: &str, text: &str, number: &Number) -> bool {
    let text = clip(text, MAX_IN_WORDS_BYTES);
    let code = language_code(text).or_else(|| language_code(&format!("{request}\n{text}")));
    in_digits(text, code).any(|text| {
        let mut found = answer::each_amount(&text);
        found.any(|found| number.is_among(&[found]))
    })
}

/// False if a text in the script of a phrase has none of its words.
fn has_words(text: &str, phrase: &Phrase) -> bool {
    let text = folded(text);
    let words: Vec<String> = phrase.words.iter().map(|word| folded(word)).collect();
    let mut stems = words.iter().map(|word| stem(word)).peekable();
    let Some(script) = phrase.words.iter().find_map(|word| script(word)) else {
        return true;
    };
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let own = letters.clone().filter(|c| script_of(*c) == script).count();
    stems.peek().is_none() || 2 * own < letters.count() || stems.any(|stem| text.contains(stem))
}

/// Returns the text without a difference of case: "ß" is "ss".
fn folded(text: &str) -> String {
    let capitals = text.nfc().flat_map(char::to_uppercase);
    capitals.flat_map(char::to_lowercase).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_wherever_it_stands() {
        for (text, gives) in [
            ("The Wall fell in 1989. It had stood for 28 years.", true),
            ("1989. It had stood for 28 years.", true),
            ("柏林墙于1989年倒塌，存在了28年。", true),
            ("柏林墙于1991年倒塌。", false),
            ("It fell in 1991.", false),
            ("1989\n28 years", true),
            ("It fell at the end of that decade.", true),
        ] {
            let may = may_give("When did the Wall fall?", text, text, "1989");
            assert_eq!(may, gives, "{text}");
        }
        let asked = "Von 20 Eiern zerbrechen 8. Wie viele bleiben?";
        assert!(may_give(asked, "", "Es bleiben zwölf von 20.", "12"));
        assert!(!may_give(asked, "", "Es bleiben 13 von 20.", "12"));
        assert!(may_give(asked, "", "Es bleiben zwölf der 30.", "12"));
        assert!(!may_give(asked, "", "Es bleiben elf der 30.", "12"));
        assert!(may_give("¿Cuántos?", "", "Quedan doce de 40.", "12"));
        let coins = "There are 50 coins, and each of them is worth a cent.";
        assert!(!may_give("How many?", "", coins, "100"));
        for (said, named, gives) in [
            ("-40 °C", "40 °C", false),
            ("**1/6**", "5/6", false),
            ("5/6.", "5/6", true),
            ("0.83", "5/6", true),
            ("It is −40 °C there.", "-40 °C", true),
        ] {
            assert_eq!(
                may_give("", said, "See below: 40, 5/6.", named),
                gives,
                "{said}"
            );
        }
        for (text, gives) in [
            ("It costs €20.", true),
            ("It costs 20 euros.", true),
            ("Er kostet 20,00 €.", true),
            ("It costs 20.", true),
            ("It costs $20.", false),
            ("It costs (20).", true),
        ] {
            assert_eq!(
                may_give("What is the price?", "", text, "€20"),
                gives,
                "{text}"
            );
        }
    }

    #[test]
    fn figures_of_an_answer_in_other_forms_are_found() {
        for (answer, text, gives) in [
            ("10:30", "It starts at 10:30.", true),
            ("10:30", "It starts at 04:30.", false),
            ("10:30", "It starts at half past ten.", true),
            ("97 km/h", "It goes 97km/h.", true),
            ("97 km/h", "It goes 84 km/h.", false),
            ("120/80 mmHg", "The pressure is 140/90 mmHg.", false),
            ("(1,2)", "It is (1, 2), as 1 comes first.", true),
            ("(1,2)", "It is (2, 3).", false),
            ("√2", "It is √2, about 1.41.", true),
            ("√2", "It is √3.", false),
            ("3:2", "Three to two, of 12 in all.", true),
            ("3/4", "It is 3/4, and not 2/3.", true),
            ("3/4", "It is 0.75.", true),
            ("3/4", "It is 2/3.", false),
        ] {
            assert_eq!(
                may_give("Of 12, which?", text, text, answer),
                gives,
                "{answer}: {text}"
            );
        }
    }

    #[test]
    fn dates_and_choices_are_compared() {
        let asked = "When was it signed?";
        for (text, gives) in [
            ("It was signed on 2 August 1776.", false),
            ("It was signed in 1777.", false),
            ("It was signed on July 4, 1776.", true),
            ("It was signed that summer.", true),
            ("In the night of 4 to 5 July 1776.", true),
            ("In der Nacht vom 4. auf den 5. Juli 1776.", true),
            ("In the night of 3 to 5 July 1776.", false),
            ("Le 4 et le 5 juillet 1776.", true),
            ("4–5 July 1776", true),
        ] {
            assert_eq!(may_give(asked, text, text, "4 July 1776"), gives, "{text}");
        }
        let main = "Der höchste Berg ist der Grossglockner.";
        assert!(may_give("Welcher Berg?", main, main, "Großglockner"));
        let main = "Bukan, 91 adalah 7 kali 13.";
        assert!(may_give("Apakah 91 bilangan prima?", main, main, "Tidak"));
        let asked = "Which one?\nA) rouge\nB) vert\nC) bleu";
        for (text, gives) in [
            ("C'est le vert.", true),
            ("C'est lui, à 420 °C.", true),
            ("The right option is C.", false),
        ] {
            assert_eq!(may_give(asked, text, text, "B"), gives, "{text}");
        }
    }
}
