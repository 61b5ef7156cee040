//! Dice in words: "can you roll three d8 plus 2 for me?".

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::{Found, capture, is, pattern};
use crate::domain::{CommandName, number_named};
use conclave_dice::{Expression, repeated};

patterns! {
    // The words before the dice: courtesy, and a verb of rolling.
    ORDER = r"^(?:(?:hey|ok|okay|now|so|please|pls|and|then|bot|dm)[,!]?\s+)*(?:(?:can|could|would|will)\s+you\s+(?:please\s+)?|i(?:['’]d|\s+would)\s+like\s+(?:you\s+)?to\s+|i\s+want\s+(?:you\s+)?to\s+|i['’]?ll\s+|i\s+|let\s+me\s+|let['’]?s\s+)?(?:please\s+)?(?:roll|throw|reroll|rolling|toss)\s+(?:me\s+|for\s+me\s+|us\s+)?(.+)$";
    GIVE = r"^(?:please\s+)?(?:gimme|give\s+me)\s+(.+)$";
    DIE = r"d(?:\d|%|f)";
    HARM = r"^(?P<dice>.+?)\s+(?P<label>(?:(?:acid|bludgeoning|cold|fire|force|lightning|necrotic|piercing|poison|psychic|radiant|slashing|thunder|sneak attack|weapon|extra)\s+)?(?:damage|dmg|healing))$";
    COIN = r"^(?:(?:please|can you|could you|would you|let me|let['’]s|i)\s+)*(?:flip|toss|throw)\s+(?:me\s+)?(?P<n>an?|one|the|\d+|two|three|four|five|six|seven|eight|nine|ten)\s+(?:fair\s+)?coins?(?:\s+(?:for me|please|thanks))*$";
    DICE_FIRST = r"^(?:\d+\s*[#x×]\s*)?\(?\d*\s?d(?:\d|%|f)";
    TAIL = r"\s*(?:,\s*)?(?:for me|please|pls|thanks|thank you|thx|now|will you|would you)$";
    NAMED = r"^(?:(?:my|the|some)\s+)?(?P<label>[a-z][a-z '’]{0,40}?)\s*:\s*(?P<rest>.+)$";
    PURPOSE = r"^(?P<dice>.+?)\s+(?:for|to|as|against)\s+(?P<label>[^:;?]{1,120})$";
    AFTERWARDS = r"^(?P<dice>.+?)\s+(?P<purpose>(?:for|to)\s+[a-z '’]{1,40}?)\s*,?\s+(?P<more>(?:plus|minus|add|\+|-)\s*\d+|(?:with\s+|at\s+)?(?:dis)?adv(?:antage)?|(?:and\s+)?(?:drop|keep)\s+the\s+[a-z ]{3,20})$";
    UNFIT = r"\d|[+,*/]|\b(?:and|plus|minus|add|adv|disadv|advantage|disadvantage|drop|keep|best|highest|lowest|worst|reroll|ones|twice|double|times|again|dc|not|never|is|are|was|each|unless|if|but|sale|example|avoid|advice)\b";
    COUPLE = r"\b(?:a\s+)?(?:couple|pair)\s+of\b";
    DOZEN = r"\b(?:a\s+)?dozen\b";
    SIDED = r"\b(?P<n>\d+|an?|the)\s+(?P<s>\d+)[\s-]*sided\s+(?:dice|dies|die)\b";
    APART = r"\b(?P<n>\d+|an?|the|another)\s+d\s?(?P<s>\d+|%)(?:['’]?s)?\b";
    PLURAL = r"\b(?P<d>\d*d\d+)['’]?s\b";
    PLAIN = r"\b(?P<n>\d+|an?|the|some)\s+(?:dice|die)\b";
    PERCENTILE = r"\b(?:an?\s+|the\s+|1\s+)?percentile(?:\s+(?:dice|die))?\b";
    ADVANTAGE = r"\s*,?\s*\b(?:with|at|on)\s+(?P<dis>dis)?adv(?:antage)?\b|\s+(?P<short>dis)?(?:adv(?:antage)?)$";
    KEEP = r"\s*,?\s*(?:and\s+|but\s+)?\b(?:keep|keeping|take|taking)\s+(?:only\s+)?(?:the\s+)?(?:(?P<n>\d+)\s+)?(?P<what>highest|higher|best|top|lowest|lower|worst)(?:\s+(?P<m>\d+))?(?:\s+(?:dice|die|ones?|rolls?|results?))?";
    DROP = r"(?P<count>\d+)d(?P<s>\d+|%)\s*,?\s*(?:and\s+|but\s+)?\b(?:drop|dropping|without|discard|discarding|minus)\s+(?:the\s+)?(?:(?P<n>\d+)\s+)?(?P<what>highest|best|lowest|worst)(?:\s+(?P<m>\d+))?(?:\s+(?:dice|die|ones?|rolls?|results?))?";
    ONES = r"\s*,?\s*(?:and\s+)?\breroll(?:ing)?\s+(?:the\s+)?(?:1['’]?s|ones)(?:\s+once)?";
    EXPLODING = r"\bexploding\s+(?P<n>\d*)d(?P<s>\d+)\b|\b(?P<k>\d*)d(?P<t>\d+)\s+exploding\b";
    PLUS = r"\s*,?\s*\b(?:and\s+)?(?:plus|add|adding)\s+(?:an?\s+)?";
    MINUS = r"\s*,?\s*\b(?:and\s+)?(?:minus|subtract|less|take\s+away)\s+(?:an?\s+)?";
    TIMES = r"\s+(?:times|multiplied\s+by)\s+";
    DIVIDED = r"\s+divided\s+by\s+";
    TIMES_BEFORE = r"^(?:(?P<times>twice|thrice|(?P<n>\d{1,4}|[a-z]{3,9})\s+times)\s+|(?P<m>\d{1,4})\s*[#x×]\s*)(?P<dice>.+)$";
    TIMES_BEHIND = r"^(?P<dice>.+?)\s*,?\s+(?P<times>twice|thrice|(?:[x×]\s*(?P<n>\d{1,4}))|(?P<m>\d{1,4}|[a-z]{3,9})\s+times)(?P<more>\s+(?:for|to|as)\s+.+)?$";
    HYPHENED = r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred)-(?:one|two|three|four|five|six|seven|eight|nine|ten|hundred|d\d)";
    NUMBER = r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|hundred)\b";
}

/// Reads a text that rolls dice and does nothing else.
pub(super) fn read(text: &str) -> Option<Found> {
    if Expression::parse(text).is_ok_and(|e| e.has_dice()) || repeated(text).is_some() {
        return Some((CommandName::Roll, json!({ "expression": text })));
    }
    let lower = text.to_lowercase();
    let plain = lower.trim_end_matches(['.', '!', '?']).trim();
    if let Some(coins) = COIN.as_ref()?.captures(plain) {
        let count = count(coins.name("n")?.as_str())?;
        return Some((
            CommandName::Roll,
            json!({ "expression": format!("{count}d2") }),
        ));
    }
    let (dice, words) = match (capture(&ORDER, plain), capture(&GIVE, plain)) {
        (Some(rest), _) => (rest, usize::MAX),
        // With a purpose the user may want a real die: "give me a d20 for my birthday".
        (None, Some(rest)) => (rest, 0),
        // Without a verb the dice come first, the text is no question, and the purpose is short.
        (None, None) if is(&DICE_FIRST, plain) && !lower.trim().ends_with('?') => {
            (plain.to_owned(), 3)
        }
        (None, None) => return None,
    };
    let found = expression(&dice)?;
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    let expression = text("expression");
    let rolls =
        Expression::parse(expression).is_ok_and(|e| e.has_dice()) || repeated(expression).is_some();
    let fits = text("label").split_whitespace().count() <= words;
    (rolls && fits).then_some((CommandName::Roll, found))
}

/// Returns the arguments of dice in words, or `None` if a word is not understood.
pub(super) fn expression(text: &str) -> Option<Value> {
    if Expression::parse(text).is_ok_and(|e| e.has_dice()) || repeated(text).is_some() {
        return Some(json!({ "expression": text }));
    }
    let mut text = text.to_lowercase().trim().to_owned();
    while let Some(tail) = TAIL.as_ref()?.find(&text) {
        text.truncate(tail.start());
    }
    if let Some((times, dice)) = several(&text) {
        let mut found = expression(&dice).filter(|found| found.get("times").is_none())?;
        found.as_object_mut()?.insert("times".into(), json!(times));
        return Some(found);
    }
    if let Some(expression) = understood(&text) {
        return Some(json!({ "expression": expression }));
    }
    let labelled = |pattern: &LazyLock<Option<Regex>>, dice: &str| -> Option<Value> {
        let captures = pattern.as_ref()?.captures(&text)?;
        let (dice, label) = (
            captures.name(dice)?.as_str(),
            captures.name("label")?.as_str().trim().to_owned(),
        );
        // Words that could change the roll are no label.
        let expression = understood(dice).filter(|_| !is(&UNFIT, &label))?;
        Some(json!({ "expression": expression, "label": label }))
    };
    let reordered = || -> Option<Value> {
        let captures = AFTERWARDS.as_ref()?.captures(&text)?;
        let part = |name: &str| captures.name(name).map_or("", |m| m.as_str());
        let label = part("purpose")
            .split_once(' ')
            .map_or("", |(_, label)| label.trim())
            .to_owned();
        let expression = understood(&format!("{} {}", part("dice"), part("more")))
            .filter(|_| !is(&UNFIT, &label))?;
        Some(json!({ "expression": expression, "label": label }))
    };
    reordered()
        .or_else(|| labelled(&HARM, "dice"))
        .or_else(|| labelled(&PURPOSE, "dice"))
        .or_else(|| labelled(&NAMED, "rest"))
}

/// Returns how many times the dice are rolled, and the dice: "4d6 six times for stats", "six times
/// 4d6", "4d6 x6 for stats".
fn several(text: &str) -> Option<(u32, String)> {
    let captures = [&TIMES_BEFORE, &TIMES_BEHIND]
        .into_iter()
        .find_map(|pattern| pattern.as_ref()?.captures(text))?;
    let part = |name: &str| captures.name(name).map_or("", |part| part.as_str());
    let times = match part("times") {
        "twice" => 2,
        "thrice" => 3,
        _ => count(&format!("{}{}", part("n"), part("m")))?,
    };
    Some((times, format!("{}{}", part("dice"), part("more"))))
}

/// Replaces every match of a pattern.
fn replaced(
    pattern: &LazyLock<Option<Regex>>,
    text: &str,
    with: impl Fn(&Captures<'_>) -> String,
) -> String {
    match pattern.as_ref() {
        Some(pattern) => pattern.replace_all(text, with).into_owned(),
        None => text.to_owned(),
    }
}

/// Translates words to dice notation. Returns `None` if a word is left over.
fn understood(text: &str) -> Option<String> {
    let part = |c: &Captures<'_>, name: &str| c.name(name).map_or("", |m| m.as_str()).to_owned();
    let many = |c: &Captures<'_>, name: &str| count(&part(c, name)).unwrap_or(1).to_string();
    let sided = |c: &Captures<'_>| format!("{}d{}", many(c, "n"), part(c, "s"));
    // "Twenty-one" is one number, which this parser does not know.
    if is(&HYPHENED, text) {
        return None;
    }
    let mut text = replaced(&COUPLE, text, |_| "2".into());
    text = replaced(&DOZEN, &text, |_| "12".into());
    text = replaced(&NUMBER, &text, |c| {
        let number = c.get(0).and_then(|m| count(m.as_str()));
        number.unwrap_or(0).to_string()
    });
    text = replaced(&PERCENTILE, &text, |_| "1d100".into());
    text = replaced(&SIDED, &text, sided);
    text = replaced(&APART, &text, sided);
    text = replaced(&PLURAL, &text, |c| part(c, "d"));
    text = replaced(&PLAIN, &text, |c| format!("{}d6", many(c, "n")));
    text = replaced(&EXPLODING, &text, |c| {
        let (n, s) = (part(c, "n") + &part(c, "k"), part(c, "s") + &part(c, "t"));
        format!("{n}d{s}e{s}")
    });
    text = replaced(&ONES, &text, |_| "ro1".into());
    let which = |c: &Captures<'_>| {
        let number = Some(part(c, "n") + &part(c, "m")).filter(|n| !n.is_empty());
        number.and_then(|n| n.parse::<u32>().ok()).unwrap_or(1)
    };
    let low = |c: &Captures<'_>| matches!(part(c, "what").as_str(), "lowest" | "lower" | "worst");
    text = replaced(&DROP, &text, |c| {
        let dice = part(c, "count").parse::<u32>().unwrap_or(0);
        let (kept, sides) = (dice.saturating_sub(which(c)), part(c, "s"));
        format!("{dice}d{sides}{}{kept}", if low(c) { "kh" } else { "kl" })
    });
    text = replaced(&KEEP, &text, |c| {
        format!("{}{}", if low(c) { "kl" } else { "kh" }, which(c))
    });
    text = with_advantage(&text)?;
    text = replaced(&PLUS, &text, |_| "+".into());
    text = replaced(&MINUS, &text, |_| "-".into());
    text = replaced(&TIMES, &text, |_| "*".into());
    text = replaced(&DIVIDED, &text, |_| "/".into());
    let text: String = text.trim().to_owned();
    let expression = Expression::parse(&text).ok()?;
    (expression.has_dice() && expression.comment().is_none()).then_some(text)
}

/// Translates the advantage or disadvantage of a single d20, the only roll that can have it.
fn with_advantage(text: &str) -> Option<String> {
    let mut advantages = ADVANTAGE.as_ref()?.captures_iter(text);
    let (Some(found), None) = (advantages.next(), advantages.next()) else {
        return Some(text.to_owned());
    };
    let keep = if found.name("dis").or(found.name("short")).is_some() {
        "2d20kl1"
    } else {
        "2d20kh1"
    };
    let without = text.replacen(found.get(0)?.as_str(), "", 1);
    let rest = without.trim();
    let rest = rest
        .strip_prefix("1d20")
        .or_else(|| rest.strip_prefix("d20"))?;
    let other = rest.starts_with(|c: char| c.is_alphanumeric()) || is(&DIE, rest);
    (!other).then(|| format!("{keep}{rest}"))
}

/// Returns a small number, written in words or digits.
fn count(word: &str) -> Option<u32> {
    match word {
        "a" | "an" | "the" | "another" | "some" => Some(1),
        "thirty" => Some(30),
        "hundred" => Some(100),
        word => number_named(word).or_else(|| word.parse().ok()),
    }
}
