//! Dice as players of dice bots write them: an expression, then operations behind a space, an
//! advantage, a number of repetitions, and behind an explicit command a comment.
//!
//! ```text
//! roll   = [ times ( "#" | "x" ) ] expression { suffix } [ comment ]
//! suffix = operation | [ "with" | "at" ] ( "adv" | "dis" ) | "x" times
//! ```

use serde_json::{Map, Value, json};

use super::rolls::UNFIT;
use conclave_dice::Expression;

/// Where the dice stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind the name of the command: words that change nothing are a comment.
    Explicit,
    /// In a text of its own: every word has to be notation.
    Bare,
}

/// Returns the arguments of the dice, or `None` if a part of the text is not understood.
pub(super) fn read(text: &str, place: Place) -> Option<Value> {
    let text = match place {
        Place::Explicit => german(text),
        Place::Bare => text.to_owned(),
    };
    let (mut times, dice) = repeated(text.trim());
    let is_repeated = times.is_some();
    let (expression, rest) = Expression::split(dice)?;
    let (mut expression, mut edge) = (expression.to_owned(), None);
    let mut words = rest.split_whitespace().peekable();
    let mut comment = vec![];
    while let Some(word) = words.next() {
        let lower = word.to_lowercase();
        let next = words
            .peek()
            .and_then(|next| advantage(&next.to_lowercase()));
        if let (true, Some(claimed)) = (matches!(lower.as_str(), "with" | "at"), next) {
            words.next();
            set(&mut edge, claimed)?;
        } else if let Some(claimed) = advantage(&lower) {
            set(&mut edge, claimed)?;
        } else if let Some(number) = lower.strip_prefix('x').and_then(|n| n.parse().ok()) {
            set(&mut times, number)?;
        } else if let Some(longer) = with_operation(&expression, &lower) {
            expression = longer;
        } else {
            comment = std::iter::once(word).chain(words.by_ref()).collect();
        }
    }
    if let Some(advantage) = edge {
        expression = with_advantage(&expression, advantage)?;
    }
    if !Expression::parse(&expression).is_ok_and(|read| read.has_dice()) {
        return None;
    }
    let mut found = Map::from_iter([("expression".to_owned(), json!(expression))]);
    if let Some(times) = times {
        found.insert("times".into(), json!(times));
    }
    let comment = comment.join(" ");
    let label = comment.trim_start_matches('#').trim();
    if !label.is_empty() {
        // Behind "#" all is a comment. Words that could change the roll are none.
        let may_be_comment = place == Place::Explicit && !is_repeated;
        let fits = comment.starts_with('#') || (may_be_comment && is_comment(label));
        if !fits {
            return None;
        }
        found.insert("label".into(), json!(label));
    }
    Some(Value::Object(found))
}

/// True if a text begins with a plain word, and none of it can be notation or a misspelt advantage.
fn is_comment(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut words = lower.split_whitespace();
    let plain = |word: &str| word.chars().filter(|c| c.is_alphabetic()).count() >= 2;
    let Some(first) = words.next().filter(|word| plain(word)) else {
        return false;
    };
    !is_misspelt(first, &SHORT, 1)
        && !lower
            .split_whitespace()
            .any(|word| is_misspelt(word, &LONG, 2))
        && !UNFIT.is_match(&lower)
}

/// The words for an advantage. In the middle of a comment, a word that resembles a short one is
/// probably another word.
const SHORT: [&str; 3] = ["adv", "dis", "disadv"];
const LONG: [&str; 2] = ["advantage", "disadvantage"];

/// True if a word is at most so many edits away from one of these. A transposition is one edit.
fn is_misspelt(word: &str, known: &[&str], edits: usize) -> bool {
    let mut known = known.iter();
    known.any(|known| strsim::osa_distance(word, known) <= edits)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Advantage,
    Disadvantage,
}

fn advantage(word: &str) -> Option<Edge> {
    match word {
        "adv" | "advantage" => Some(Edge::Advantage),
        "dis" | "disadv" | "disadvantage" => Some(Edge::Disadvantage),
        _ => None,
    }
}

/// Sets a value. Returns `None` if it was set before: what is said twice is not understood.
fn set<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Splits `6#4d6` into the number of repetitions and the dice.
fn repeated(text: &str) -> (Option<u32>, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let (number, rest) = text.split_at(digits);
    let rest = rest.trim_start();
    let dice = rest.strip_prefix(['#', 'x', 'X', '×']);
    match (number.parse(), dice) {
        (Ok(times), Some(dice)) => (Some(times), dice.trim_start()),
        _ => (None, text),
    }
}

/// Appends an operation that stands behind a space. There `k3` keeps the three highest dice and
/// `d1` drops the lowest one, as in the bots that write it so.
fn with_operation(expression: &str, word: &str) -> Option<String> {
    let operation = match (word.get(..1)?, word.get(1..)?) {
        ("k", number) if number.is_empty() || number.parse::<u32>().is_ok() => {
            format!("kh{number}")
        }
        ("d", number) if number.parse::<u32>().is_ok() => format!("dl{number}"),
        // Bots differ in what "r2" rerolls.
        ("r", number) if number.parse::<u32>().is_ok() => return None,
        ("!", _) => word.to_owned(),
        (first, _) if first.chars().all(char::is_alphabetic) => {
            let keeps = matches!(word, "kh" | "kl" | "dl" | "dh");
            let numbered = word.ends_with(|c: char| c.is_ascii_digit());
            (keeps || numbered).then(|| word.to_owned())?
        }
        _ => return None,
    };
    let ends_in_dice = expression.rsplit(['+', '-', '*', '/', ' ']).next()?;
    if !Expression::parse(ends_in_dice).is_ok_and(|term| drops_fewer(&term, &operation)) {
        return None;
    }
    let longer = format!("{expression}{operation}");
    Expression::parse(&longer).ok().map(|_| longer)
}

/// True if an operation leaves a die of the term.
fn drops_fewer(term: &Expression, operation: &str) -> bool {
    let number = operation
        .strip_prefix("dl")
        .or(operation.strip_prefix("dh"))
        .map(|number| number.parse::<usize>().unwrap_or(1));
    term.has_dice() && number.is_none_or(|number| number < term.dice())
}

/// Gives the only d20 of an expression an advantage. Returns `None` if there is no such die, or
/// more than one.
fn with_advantage(expression: &str, edge: Edge) -> Option<String> {
    let lower = expression.to_lowercase();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '!' | '%' | ')');
    let dice: Vec<(usize, usize)> = lower
        .match_indices("d20")
        .filter_map(|(at, found)| {
            let before = lower.get(..at)?;
            let start = before.strip_suffix('1').unwrap_or(before);
            let end = at + found.len();
            let alone = !start.ends_with(is_part) && !lower.get(end..)?.starts_with(is_part);
            alone.then_some((start.len(), end))
        })
        .collect();
    let [(start, end)] = dice.as_slice() else {
        return None;
    };
    let keep = match edge {
        Edge::Advantage => "2d20kh1",
        Edge::Disadvantage => "2d20kl1",
    };
    Some(format!(
        "{}{keep}{}",
        expression.get(..*start)?,
        expression.get(*end..)?
    ))
}

/// Writes German dice, `2w6`, as `2d6`.
fn german(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_die = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        let after = chars.get(at + 1);
        before.is_none_or(|c| !c.is_alphabetic()) && after.is_some_and(char::is_ascii_digit)
    };
    let letter = |(at, c): (usize, &char)| match c {
        'w' | 'W' if is_die(at) => 'd',
        c => *c,
    };
    chars.iter().enumerate().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation_of_other_bots_is_read() {
        for (text, expression) in [
            ("1d20-3 dis", "2d20kl1-3"),
            ("1d20+1d4 adv", "2d20kh1+1d4"),
            ("d20 + 5 with advantage", "2d20kh1 + 5"),
            ("4d6 k3", "4d6kh3"),
            ("4d6 d1", "4d6dl1"),
            ("3d6 !", "3d6!"),
            ("4d6 kh3 + 2", "4d6kh3"),
        ] {
            let found = read(text, Place::Bare);
            let found = found.as_ref().map(|found| found["expression"].clone());
            if text.ends_with("+ 2") {
                assert_eq!(found, None, "{text}");
            } else {
                assert_eq!(found, Some(json!(expression)), "{text}");
            }
        }
        assert_eq!(
            read("6#4d6 kh3", Place::Bare),
            Some(json!({ "expression": "4d6kh3", "times": 6 }))
        );
        assert_eq!(
            read("10#2w6", Place::Explicit),
            Some(json!({ "expression": "2d6", "times": 10 }))
        );
        assert_eq!(
            read("1d20+5 dis sneaky attack", Place::Explicit),
            Some(json!({ "expression": "2d20kl1+5", "label": "sneaky attack" }))
        );
        assert_eq!(
            read("6#1d20 adv # for his friends", Place::Explicit),
            Some(json!({ "expression": "2d20kh1", "times": 6, "label": "for his friends" }))
        );
    }

    #[test]
    fn what_could_change_the_roll_is_no_comment() {
        for text in [
            "2d20 adv",
            "1d20 adv dis",
            "1d20 d6",
            "1d20 5",
            "4d6 r2",
            "1d20 twice",
            "6#six of them",
            "2d6 + bananas",
            "6#1d20 x2",
            "6#1d20 bananas",
            "1d20 avd",
            "1d20 advantge",
            "1d20+5 for the disavantage",
        ] {
            assert_eq!(read(text, Place::Explicit), None, "{text}");
        }
        for text in ["1d20+5 sneaky attack", "10w40", "5W30"] {
            assert_eq!(read(text, Place::Bare), None, "{text}");
        }
    }
}
