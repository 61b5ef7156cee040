//! Compares the final answer that a reply names with what its texts say.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};

use super::answer::{self, Answer, Day, Number, Options, Phrase};
use crate::domain::{AgentReport, AnswerGroup, in_digits, is_unspaced};
use crate::text::{
    MAX_BYTES, Word, clip, collapse_whitespace, count_words, figures, language_code, pattern, words,
};

/// A word of an answer is found inside another word by this share of its letters.
const STEM: f64 = 0.6;
/// The least letters of such a part. In scripts without spaces a whole word does.
const MIN_STEM_CHARS: usize = 4;
/// Words of this similarity (Jaro-Winkler) are forms of one word: "Орёл", "Орле".
const SIMILAR: f64 = 0.8;
/// To compare a longer word takes time by its length.
const MAX_WORD_BYTES: usize = 64;
/// A summary of at most this number of words is nothing but the answer.
const MAX_BARE_WORDS: usize = 3;
/// The most bytes of a text in which a number is looked for in words.
const MAX_IN_WORDS_BYTES: usize = 20_000;

/// False if the texts of a reply give another final answer than it names: they have other numbers
/// than it and the request, state another date, verdict or choice, or have the words of another group
/// and not its own. A text with fractions or powers may have a number in another form, and a text in
/// another script a name. A summary that is a part of the main answer says nothing by itself. A text
/// that only lacks the words of an answer may say it in others.
pub fn may_give(
    request: &str,
    tldr: &str,
    main: &str,
    answer: &str,
    groups: &[AnswerGroup],
) -> bool {
    let plain = [request, tldr, main, answer].map(|text| collapse_whitespace(text));
    let [request, tldr, main, answer] = plain.each_ref().map(|text| &**text);
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
            short.is_none_or(|text| has_words(text, phrase))
                && !has_other_words(&all, answer, phrase, groups)
                && have_figures()
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

/// False if no report supports the final answer that a reply names: it certainly differs from each
/// answer that the reports tag, or has figures and none of them is in a report or in the request. Words
/// are not looked up, because another one may mean the same.
pub fn is_supported(request: &str, answer: &str, reports: &[&AgentReport]) -> bool {
    let Some(named) = answer::parse(answer) else {
        return true;
    };
    let tagged = reports.iter().flat_map(|report| report.answers());
    let mut tagged = tagged
        .filter_map(|unit| answer::parse(&unit.text))
        .peekable();
    if tagged.peek().is_some() && tagged.all(|it| named.differs(&it)) {
        return false;
    }
    let figures = bare_figures(answer);
    let own = reports.iter().flat_map(|report| {
        let lists = [&report.answer_summary, &report.steps_or_deliverables]
            .into_iter()
            .flatten();
        let claims = report.units.iter().map(|unit| &unit.text);
        lists.chain(claims).chain([&report.reasoning])
    });
    let mut texts = own.map(String::as_str).chain([request]);
    figures.is_empty() || texts.any(|text| has_one_of(&figures, text))
}

/// True if a text has one of these figures, in digits or words.
fn has_one_of(figures: &BTreeSet<String>, text: &str) -> bool {
    let text = clip(text, MAX_IN_WORDS_BYTES);
    let has = |text: &str| !bare_figures(text).is_disjoint(figures);
    has(text) || in_digits(text, language_code(text)).any(|text| has(&text))
}

/// False if a text lacks a figure of an answer, in digits and words, and has others that are neither
/// in the answer nor in the request: "10:30", and a text with "04:30".
fn has_figures(request: &str, text: &str, answer: &str) -> bool {
    // "5.3.2024" has those of "5. maaliskuuta 2024".
    static DATE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"\b\d{1,4}[-./]\s?\d{1,2}[-./]\s?\d{1,4}\b"));
    let [known, mut found, wanted] = [request, text, answer].map(bare_figures);
    let dates = DATE.find_iter(text).map(|date| date.as_str());
    let parts = dates.flat_map(|date| date.split(|c: char| !c.is_ascii_digit()));
    found.extend(parts.map(|part| part.trim_start_matches('0').to_owned()));
    if !wanted.is_subset(&found) {
        let words = clip(text, MAX_IN_WORDS_BYTES);
        found.extend(in_digits(words, language_code(words)).flat_map(|it| bare_figures(&it)));
    }
    let is_known = |it: &String| wanted.contains(it) || known.contains(it);
    wanted.is_subset(&found) || found.iter().all(is_known)
}

/// Returns the figures of a text without their units.
fn bare_figures(text: &str) -> BTreeSet<String> {
    // "(1,2)" has two.
    static LISTED: LazyLock<Regex> = LazyLock::new(|| pattern(r",(\d{1,2}(?:\D|$))"));
    let figures = figures(&LISTED.replace_all(text, " $1")).into_iter();
    let unit = |c: char| !c.is_ascii_digit();
    let bare = figures.map(|it| it.trim_end_matches(unit).to_owned());
    bare.collect()
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
    if OTHER_FORM.is_match(text) || has_amount(text, number) || is_named_in(request, text, number) {
        return true;
    }
    let given = answer::numbers(request, None);
    answer::each_amount(text).all(|it| it.is_among(&given))
}

/// True if a text has a number in digits.
fn has_amount(text: &str, number: &Number) -> bool {
    answer::each_amount(text).any(|found| number.is_among(&[found]))
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

/// True if a text has this answer as a value, or one of its words, however both are written: "1,000"
/// and "1000", "5. März 2024" and "2024-03-05", "Лев Толстой" and "Льва Толстого".
pub fn states(text: &str, answer: &str) -> bool {
    let text = &collapse_whitespace(text);
    match answer::parse(answer) {
        Some(Answer::Number(number)) => has_amount(text, &number),
        Some(Answer::Date(day, _)) => answer::dates::have(text, &day) == Some(true),
        Some(Answer::Words(phrase)) => {
            let text_words = TextWords::of(text);
            let has_one = phrase.words.iter().any(|word| text_words.have(word));
            (has_one || phrase.words.is_empty())
                && phrase.numbers.iter().all(|it| has_amount(text, it))
        }
        _ => false,
    }
}

/// True if a text has all words in which another group differs from an answer, and none of those in
/// which the answer differs from it.
fn has_other_words(text: &str, answer: &str, own: &Phrase, groups: &[AnswerGroup]) -> bool {
    let text = TextWords::of(text);
    let given = super::answer_group(groups, answer);
    let others = groups.iter().enumerate();
    let others = others.filter(|(at, _)| given != Some(*at));
    let mut wordings = others.flat_map(|(_, group)| group.texts());
    wordings.any(|wording| {
        let Some(Answer::Words(other)) = answer::parse(wording) else {
            return false;
        };
        let differing = |a: &Phrase, b: &Phrase| -> Vec<String> {
            let words = a.words.iter().filter(|word| !b.words.contains(word));
            words.cloned().collect()
        };
        let (more, less) = (differing(&other, own), differing(own, &other));
        !more.is_empty()
            && !less.is_empty()
            && more.iter().all(|word| text.have(word))
            && !less.iter().any(|word| text.have(word))
    })
}

/// False if a text in the script of a phrase has none of its words.
fn has_words(text: &str, phrase: &Phrase) -> bool {
    let Some(script) = phrase.words.iter().find_map(|word| script(word)) else {
        return true;
    };
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let own = letters.clone().filter(|c| script_of(*c) == script).count();
    let text = TextWords::of(text);
    2 * own < letters.count() || phrase.words.iter().any(|word| text.have(word))
}

/// A text in which words are looked for in all their forms.
struct TextWords {
    text: String,
    words: Vec<Word>,
}

impl TextWords {
    fn of(text: &str) -> Self {
        let text = folded(clip(text, MAX_BYTES));
        let mut words = words(&text);
        words.retain(|word| word.len() <= MAX_WORD_BYTES);
        Self { words, text }
    }

    /// True if the text has a form of a word, or a long part of it inside another word.
    fn have(&self, word: &str) -> bool {
        let word = folded(word);
        let is_whole = word.contains(is_unspaced);
        let part = if is_whole { &word } else { stem(&word) };
        let is_long = is_whole || part.chars().count() >= MIN_STEM_CHARS;
        let is_form = |own: &Word| strsim::jaro_winkler(own, &word) >= SIMILAR;
        is_long && self.text.contains(part)
            || word.len() <= MAX_WORD_BYTES && self.words.iter().any(is_form)
    }
}

/// Returns the text without its marks and without a difference of case: "ß" is "ss".
fn folded(text: &str) -> String {
    let bare = text.nfd().filter(|c| !is_combining_mark(*c));
    let capitals = bare.flat_map(char::to_uppercase);
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
    use crate::domain::{Tag, Unit};

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
            let may = may_give("When did the Wall fall?", text, text, "1989", &[]);
            assert_eq!(may, gives, "{text}");
        }
        let asked = "Von 20 Eiern zerbrechen 8. Wie viele bleiben?";
        assert!(may_give(asked, "", "Es bleiben zwölf von 20.", "12", &[]));
        assert!(!may_give(asked, "", "Es bleiben 13 von 20.", "12", &[]));
        assert!(may_give(asked, "", "Es bleiben zwölf der 30.", "12", &[]));
        assert!(!may_give(asked, "", "Es bleiben elf der 30.", "12", &[]));
        assert!(may_give("¿Cuántos?", "", "Quedan doce de 40.", "12", &[]));
        let coins = "There are 50 coins, and each of them is worth a cent.";
        assert!(!may_give("How many?", "", coins, "100", &[]));
        for (said, named, gives) in [
            ("-40 °C", "40 °C", false),
            ("**1/6**", "5/6", false),
            ("5/6.", "5/6", true),
            ("0.83", "5/6", true),
            ("It is −40 °C there.", "-40 °C", true),
        ] {
            assert_eq!(
                may_give("", said, "See below: 40, 5/6.", named, &[]),
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
                may_give("What is the price?", "", text, "€20", &[]),
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
                may_give("Of 12, which?", text, text, answer, &[]),
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
            assert_eq!(
                may_give(asked, text, text, "4 July 1776", &[]),
                gives,
                "{text}"
            );
        }
        let main = "Der höchste Berg ist der Grossglockner.";
        assert!(may_give("Welcher Berg?", main, main, "Großglockner", &[]));
        let main = "Bukan, 91 adalah 7 kali 13.";
        assert!(may_give(
            "Apakah 91 bilangan prima?",
            main,
            main,
            "Tidak",
            &[]
        ));
        let asked = "Which one?\nA) rouge\nB) vert\nC) bleu";
        for (text, gives) in [
            ("C'est le vert.", true),
            ("C'est lui, à 420 °C.", true),
            ("The right option is C.", false),
        ] {
            assert_eq!(may_give(asked, text, text, "B", &[]), gives, "{text}");
        }
    }

    #[test]
    fn words_of_any_language_are_no_reason_to_ask() {
        for (answer, text) in [
            ("Kyllä", "Se on sallittua."),
            ("Igen", "Szabad."),
            ("হ্যাঁ", "অনুমতি আছে।"),
            ("5. maaliskuuta 2024", "Se oli 5.3.2024."),
            ("2024. március 5.", "2024.03.05."),
            ("5 tháng 3 năm 2024", "05/03/2024."),
            ("5 במרץ 2024", "2024-03-05."),
        ] {
            assert!(may_give("?", text, text, answer, &[]), "{answer}: {text}");
        }
        assert!(!may_give(
            "?",
            "",
            "Se oli 6.3.2024.",
            "5. maaliskuuta 2024",
            &[]
        ));
        for (answer, tldr) in [
            ("Орёл", "В Орле."),
            ("Łódź", "W Łodzi."),
            ("الرياض", "للرياض."),
            ("Helsinki", "Helsingissä."),
        ] {
            assert!(may_give("?", tldr, "…", answer, &[]), "{answer}: {tldr}");
        }
        assert!(!may_give("?", "В Туле.", "…", "Орёл", &[]));
    }

    #[test]
    fn an_answer_is_supported_by_a_report_that_gives_it_or_has_its_figures() {
        let report = |answer: Option<&str>| AgentReport {
            reasoning: "Most shops take goods back for thirty days, some for 14.".to_owned(),
            units: Vec::from_iter(answer.map(|text| Unit {
                id: "u1".to_owned(),
                topic: "period".to_owned(),
                text: text.to_owned(),
                tags: vec![Tag::Answer],
            })),
            ..AgentReport::default()
        };
        for (tagged, answer, supported) in [
            (None, "14 days", true),
            (None, "30 days", true),
            (None, "42 days", false),
            (None, "5 euros", true),
            (None, "two weeks", true),
            (None, "", true),
            (Some("42 days"), "42 days", true),
            (Some("42 days"), "six weeks", true),
            (Some("42 days"), "14 days", false),
            (Some("yes"), "no", false),
        ] {
            let report = report(tagged);
            let found = is_supported("How long, at 5 euros?", answer, &[&report]);
            assert_eq!(found, supported, "{tagged:?}, {answer}");
        }
    }

    #[test]
    fn a_text_states_an_answer_however_it_is_written() {
        for (answer, text, has) in [
            ("1,000", "without annex: the answer is 1000", true),
            ("1\u{202f}000", "sans annexe : 1000", true),
            ("1,000", "with annex: the answer is 2000", false),
            ("March 5, 2024", "local time: 2024-03-05", true),
            ("5. März 2024", "Ortszeit: 05.03.2024", true),
            ("5. März 2024", "Ortszeit: 06.03.2024", false),
            ("61", "الجواب هو ٦١ صفحة", true),
            ("62", "उत्तर ६१ है", false),
            ("Лев Толстой", "книга Льва Толстого", true),
            ("Aleksis Kivi", "kirja on Aleksis Kiven", true),
            ("Aleksis Kivi", "kirja on Väinö Linnan", false),
        ] {
            assert_eq!(states(text, answer), has, "{answer}: {text}");
        }
    }
}
