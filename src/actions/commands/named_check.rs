//! The check that a narrated action names, with its difficulty and its advantage.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::check::{self, Advantage};
use crate::actions::sheet::{Ability, Sheet, Skill};
use crate::actions::speech::without_speech;
use crate::domain::number_named;
use crate::text::pattern;

/// A check that a text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedCheck {
    /// With the ability that is named before it: Strength (Intimidation).
    Skill(Skill, Option<Ability>),
    Ability(Ability),
    Save(Ability),
    Attack(Attack),
}

/// What an attack is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attack {
    Unspecified,
    Melee,
    Ranged,
    Spell,
}

/// Returns every check that a text names, once each, in order. A full name, such as "stealth check",
/// counts anywhere outside of speech. A short one, such as "stealth" or "attack", may be prose. It counts
/// at the beginning of a part between punctuation, and behind an "and" after a check. So "I don't attack"
/// and "makes history" name none.
pub(super) fn named_checks(text: &str) -> Vec<NamedCheck> {
    let plain = plain(text);
    let mut checks: Vec<NamedCheck> = vec![];
    for part in plain.replace(" - ", " , ").split(PUNCTUATION) {
        let words = words(part);
        let mut is_list = true;
        for (at, words) in words.split(|word| *word == "and").enumerate() {
            let is_opening = |word: &&&str| OPENING.contains(*word);
            let opening = words.iter().take_while(is_opening).count();
            let short = words
                .get(opening..)
                .filter(|_| is_list)
                .and_then(short_name);
            let full = (0..words.len()).filter_map(|from| full_name(words, from));
            let named: Vec<NamedCheck> = short.into_iter().chain(full).collect();
            is_list &= at > 0 || opening == words.len() || !named.is_empty();
            for check in named {
                if !checks.contains(&check) {
                    checks.push(check);
                }
            }
        }
    }
    let is_plain = |check: &NamedCheck| *check == NamedCheck::Attack(Attack::Unspecified);
    let is_attack = |check: &NamedCheck| matches!(check, NamedCheck::Attack(_));
    // "Attacks with a melee attack" names one attack.
    if checks
        .iter()
        .any(|check| is_attack(check) && !is_plain(check))
    {
        checks.retain(|check| !is_plain(check));
    }
    checks
}

/// Returns a text in lower case, without speech. An ability and a skill, one of them in brackets, are a
/// part of the text with the skill last.
fn plain(text: &str) -> String {
    let text = without_speech(text).to_lowercase().replace("_of_", " of ");
    let in_order = |captures: &Captures<'_>| {
        let part = |name: &str| captures.name(name).map_or("", |part| part.as_str());
        let (one, other) = (part("one"), part("other"));
        let is_skill = |name: &str| Skill::ALL.iter().any(|skill| skill.into_str() == name);
        let (ability, skill) = if is_skill(one) {
            (other, one)
        } else {
            (one, other)
        };
        if Ability::named(ability).is_none() || !is_skill(skill) {
            return captures.get(0).map_or("", |all| all.as_str()).to_owned();
        }
        let end = if part("check").is_empty() { "," } else { "" };
        format!(", {ability} {skill}{}{end}", part("check"))
    };
    // The point of an abbreviation ends no part.
    BRACKETS.replace_all(&text, in_order).replace("vs.", "vs")
}

static BRACKETS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?P<one>[a-z]+)\s*\(\s*(?P<other>[a-z ]+?)\s*\)(?P<check>\s+(?:check|dc|vs|with|at)\b)?",
    )
});

/// Returns the words of a part of a text.
fn words(part: &str) -> Vec<&str> {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}');
    let words = part.split(|c: char| !is_of_word(c));
    words.filter(|word| !word.is_empty()).collect()
}

/// What separates the parts of a text.
const PUNCTUATION: [char; 13] = [
    ',', ';', ':', '.', '!', '?', '(', ')', '*', '\n', '_', '\u{2013}', '\u{2014}',
];

/// Words that may stand before the short name of a check in its part of the text.
const OPENING: [&str; 8] = ["i", "then", "roll", "rolls", "a", "an", "with", "using"];

/// Returns the skill with which words begin, and the words behind it.
fn skill_at<'a, 'w>(words: &'a [&'w str]) -> Option<(Skill, &'a [&'w str])> {
    Skill::ALL.iter().find_map(|skill| {
        let name: Vec<&str> = skill.into_str().split(' ').collect();
        Some((*skill, words.strip_prefix(name.as_slice())?))
    })
}

/// Returns the check whose full name begins at a word. An ability before a skill belongs to it.
fn full_name(words: &[&str], from: usize) -> Option<NamedCheck> {
    let named = words.get(from..)?;
    if let Some((skill, [next, ..])) = skill_at(named)
        && (matches!(*next, "check" | "checks") || is_difficulty(next))
    {
        let before = words.get(..from)?.last();
        return Some(NamedCheck::Skill(
            skill,
            before.and_then(|it| Ability::named(it)),
        ));
    }
    match named {
        [name, "save" | "saves", ..] | [name, "saving", "throw" | "throws", ..] => {
            Ability::named(name).map(NamedCheck::Save)
        }
        [name, "check" | "checks", ..] => Ability::named(name).map(NamedCheck::Ability),
        [kind, "attack" | "attacks", ..] => Some(NamedCheck::Attack(match *kind {
            "melee" => Attack::Melee,
            "ranged" => Attack::Ranged,
            "spell" => Attack::Spell,
            _ => return None,
        })),
        _ => None,
    }
}

/// True for `dc`, `dc12` and the long form.
fn is_difficulty(word: &str) -> bool {
    let number = word.strip_prefix("dc");
    word == "difficulty" || number.is_some_and(|it| it.chars().all(|c| c.is_ascii_digit()))
}

/// Returns the skill or attack with which words begin. Only what belongs to a check may follow a skill:
/// "history repeats itself" names none.
fn short_name(words: &[&str]) -> Option<NamedCheck> {
    if let ["attack" | "attacks", ..] | ["make" | "makes", "a" | "an", "attack", ..] = words {
        return Some(NamedCheck::Attack(Attack::Unspecified));
    }
    let ability = words.first().and_then(|word| Ability::named(word));
    let (skill, behind) = skill_at(words.get(usize::from(ability.is_some())..)?)?;
    let is_name = match behind {
        [] | ["to" | "for" | "on" | "vs" | "versus" | "against" | "ac", ..] => true,
        ["with" | "at", edge, ..] => Advantage::named(edge).is_some(),
        [other, ..] => {
            Advantage::named(other).is_some() || other.starts_with(|c: char| c.is_ascii_digit())
        }
    };
    is_name.then_some(NamedCheck::Skill(skill, ability))
}

impl Attack {
    /// Returns its name and its ability: the highest of the sheet among those that it allows, or
    /// the first without a sheet.
    fn with(self, sheet: Option<&Sheet>) -> (&'static str, Ability) {
        let (name, abilities): (_, &[Ability]) = match self {
            Attack::Unspecified => ("attack", &[Ability::Str, Ability::Dex]),
            Attack::Melee => ("melee attack", &[Ability::Str, Ability::Dex]),
            Attack::Ranged => ("ranged attack", &[Ability::Dex]),
            Attack::Spell => ("spell attack", &[Ability::Int, Ability::Wis, Ability::Cha]),
        };
        let modifier = |ability: &Ability| sheet.map_or(0, |sheet| sheet.modifier(*ability));
        let best = abilities.iter().copied().rev().max_by_key(modifier);
        (name, best.unwrap_or(Ability::Str))
    }
}

impl NamedCheck {
    /// Returns its title, its ability, and how often the proficiency counts.
    pub(super) fn with(self, sheet: Option<&Sheet>) -> (String, Ability, i64) {
        let (ability, skill, is_save) = match self {
            NamedCheck::Skill(skill, ability) => {
                (ability.unwrap_or(skill.ability()), Some(skill), false)
            }
            NamedCheck::Ability(ability) => (ability, None, false),
            NamedCheck::Save(ability) => (ability, None, true),
            NamedCheck::Attack(attack) => {
                let (name, ability) = attack.with(sheet);
                let times = sheet.map_or(0, |sheet| sheet.times("attack"));
                return (format!("{} ({name})", ability.title()), ability, times);
            }
        };
        let (title, times) = check::described(sheet, ability, skill, is_save);
        (title, ability, times)
    }

    /// Returns how a text names it.
    pub(super) fn name(self) -> String {
        match self {
            NamedCheck::Skill(skill, _) => skill.into_str().to_owned(),
            NamedCheck::Ability(ability) => format!("{} check", ability.into_str()),
            NamedCheck::Save(ability) => format!("{} save", ability.into_str()),
            NamedCheck::Attack(attack) => attack.with(None).0.to_owned(),
        }
    }

    /// Returns the outcome. Without a DC, a skill or an ability has fixed tiers. A save or an
    /// attack has no outcome then, because it depends on the target.
    pub(super) fn outcome(self, total: i64, dc: Option<i64>) -> Option<&'static str> {
        match (dc, self) {
            (Some(dc), _) if total >= dc => Some("a success"),
            (Some(_), _) => Some("a failure"),
            (None, NamedCheck::Skill(..) | NamedCheck::Ability(_)) => Some(tier(total)),
            (None, NamedCheck::Save(_) | NamedCheck::Attack(_)) => None,
        }
    }
}

pub(super) fn tier(total: i64) -> &'static str {
    match total {
        20.. => "a great success",
        15..=19 => "a success",
        10..=14 => "a partial success, at some cost",
        _ => "a failure",
    }
}

// An underscore after it closes Markdown emphasis.
static DIFFICULTY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:(?:dc|ac|difficulty(?:\s+class)?)(?:\s+(?:of|is))?\s*[:=]?\s*(-?\d+)|dc(?:\s+(?:of|is))?\s+([a-z]+(?:-[a-z]+)?))(?:_|\b)",
    )
});

// In the part of a text that names a check, at its end: "one against 3" may count enemies.
static VERSUS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\b(?:vs|versus|against)\s+(-?\d+)\s*(?:$|with\b|at\b|dis\b|(?:dis)?adv)")
});

// Wishes for more than one roll.
static REPEATED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:twice|thrice|(?:\d+|two|three|four|five|six) (?:times|(?:\w+ )?(?:attacks|checks|saves|saving throws)))\b",
    )
});

// A number with a sign, and a claimed proficiency.
static SIGNED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:^|[\s(\[])([+\u{2212}-]\d+|(?:plus|minus)\s+(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten)|proficien(?:t|cy)|expertise)\b",
    )
});

// A number at the end of the words of a check.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\s((?:[+\u{2212}-]\s)?\d+)\s*(?:$|with\b|at\b|dis\b|(?:dis)?adv)")
});

/// Returns the difficulties that a text names: "AC 15", "DC fifteen". A number that is too large for
/// the type is the largest.
pub(super) fn difficulties(text: &str) -> BTreeSet<i64> {
    let parts = parts_of_checks(text);
    let versus = parts.iter().flat_map(|part| VERSUS.captures_iter(part));
    let found = DIFFICULTY.captures_iter(text).chain(versus);
    found.filter_map(|captures| difficulty(&captures)).collect()
}

/// Returns the difficulty that was found, in digits or in words.
fn difficulty(captures: &Captures<'_>) -> Option<i64> {
    match captures.get(1) {
        Some(number) => Some(number.as_str().parse().unwrap_or(i64::MAX)),
        None => number_named(&captures.get(2)?.as_str().to_lowercase()).map(i64::from),
    }
}

// What may stand between two checks: [`PUNCTUATION`], or a word.
static BETWEEN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[,;:.!?()*\n_\u{2013}\u{2014}]|\b(?:and|or|then|but)\b"));

/// Returns the beginning of a text, up to the second check that it names. The difficulties and
/// advantages in it are those of the first check.
pub(super) fn of_first_check(text: &str) -> Cow<'_, str> {
    if named_checks(text).len() < 2 {
        return Cow::Borrowed(text);
    }
    let plain = plain(text);
    let ends: Vec<&str> = BETWEEN
        .find_iter(&plain)
        .filter_map(|between| plain.get(..between.start()))
        .collect();
    let own = ends.partition_point(|own| named_checks(own).len() < 2);
    let own = own.checked_sub(1).and_then(|at| ends.get(at));
    Cow::Owned(own.copied().unwrap_or_default().to_owned())
}

/// Returns the parts of a text that name a check.
fn parts_of_checks(text: &str) -> Vec<String> {
    let text = plain(text);
    let parts = text.split(PUNCTUATION);
    let parts = parts.filter(|part| !named_checks(part).is_empty());
    parts.map(str::to_owned).collect()
}

/// Returns the advantage that a text claims. Both kinds together cancel out.
pub(super) fn advantage(text: &str) -> Option<Advantage> {
    let (claimed, _) = edges(text);
    let has = |edge| claimed.contains(&edge);
    match (has(Advantage::Advantage), has(Advantage::Disadvantage)) {
        (true, false) => Some(Advantage::Advantage),
        (false, true) => Some(Advantage::Disadvantage),
        _ => None,
    }
}

/// Returns the advantages of a text that count, and the words of the others. One counts at the
/// beginning of its part, behind the name of a check, its difficulty or another advantage, and behind
/// "with", "at" or "and". "Takes advantage of" is no advantage on a roll.
fn edges(text: &str) -> (Vec<Advantage>, Vec<String>) {
    let (mut claimed, mut others) = (vec![], vec![]);
    for part in plain(text).split(PUNCTUATION) {
        let words = words(part);
        for (at, word) in words.iter().enumerate() {
            let Some(edge) = Advantage::named(word) else {
                continue;
            };
            let (before, behind) = words.split_at(at);
            let counts = behind.get(1) != Some(&"of")
                && before.last().is_none_or(|last| {
                    matches!(*last, "with" | "at" | "and")
                        || Advantage::named(last).is_some()
                        || last.ends_with(|c: char| c.is_ascii_digit())
                        || ends_a_name(before)
                });
            if counts {
                claimed.push(edge);
            } else {
                others.push((*word).to_owned());
            }
        }
    }
    (claimed, others)
}

/// True if the name of a check ends with these words.
fn ends_a_name(words: &[&str]) -> bool {
    let named = |from: usize| words.get(from..).and_then(skill_at);
    let is_skill =
        (0..words.len()).any(|from| named(from).is_some_and(|(_, left)| left.is_empty()));
    let last = words.last().copied().unwrap_or_default();
    is_skill
        || matches!(
            last.trim_end_matches('s'),
            "check" | "save" | "throw" | "attack"
        )
}

/// Returns the numbers beside the names of checks that are no difficulty, the advantages that do not
/// count, and the wishes for more than one roll, one sentence each.
pub(super) fn not_counted(text: &str) -> Vec<String> {
    let how = "An advantage is written like this: with advantage";
    let edges = edges(text).1.into_iter();
    let edges = edges.map(|word| format!("Not counted: {word}. {how}"));
    let without = |captures: &Captures<'_>| match difficulty(captures) {
        Some(_) => String::new(),
        None => captures.get(0).map_or("", |all| all.as_str()).to_owned(),
    };
    let text = DIFFICULTY.replace_all(text, without);
    let dice = conclave_dice::inside(&text);
    let named = parts_of_checks(&text);
    if named.is_empty() {
        return vec![];
    }
    let repeated = REPEATED.find_iter(&text);
    let repeated = repeated.map(|it| format!("Not counted: {}. A check is one roll.", it.as_str()));
    let parts = named.iter().filter(|_| dice.is_empty());
    let parts: Vec<_> = parts.map(|part| VERSUS.replace_all(part, "")).collect();
    let numbers = parts.iter().flat_map(|part| NUMBER.captures_iter(part));
    let signed = dice.is_empty().then(|| SIGNED.captures_iter(&text));
    let numbers = signed.into_iter().flatten().chain(numbers);
    let note = |captures: Captures<'_>| {
        let number = captures.get(1)?.as_str();
        Some(if number.starts_with(|c: char| c.is_ascii_digit()) {
            format!("Not counted: {number}. A difficulty is written like this: DC {number}")
        } else {
            format!("Not counted: {number}. A narrated action takes its modifiers from the sheet.")
        })
    };
    edges
        .chain(numbers.filter_map(note))
        .chain(repeated)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_check_that_is_named_is_found() {
        let skill = |skill| vec![NamedCheck::Skill(skill, None)];
        let by_strength = |skill| vec![NamedCheck::Skill(skill, Some(Ability::Str))];
        for (text, expected) in [
            ("sneaks past the guard (stealth)", skill(Skill::Stealth)),
            (
                "picks the lock, Sleight of Hand",
                skill(Skill::SleightOfHand),
            ),
            ("sleight_of_hand", skill(Skill::SleightOfHand)),
            (
                "jumps aside, DEX save",
                vec![NamedCheck::Save(Ability::Dex)],
            ),
            (
                "resists: wisdom saving throw",
                vec![NamedCheck::Save(Ability::Wis)],
            ),
            (
                "lifts the gate, strength check",
                vec![NamedCheck::Ability(Ability::Str)],
            ),
            (
                "attacks the goblin",
                vec![NamedCheck::Attack(Attack::Unspecified)],
            ),
            (
                "ranged attack on the archer",
                vec![NamedCheck::Attack(Attack::Ranged)],
            ),
            (
                "stealth, then athletics, then stealth",
                vec![
                    NamedCheck::Skill(Skill::Stealth, None),
                    NamedCheck::Skill(Skill::Athletics, None),
                ],
            ),
            (
                "sneaks past with a stealth check DC 12",
                skill(Skill::Stealth),
            ),
            ("uses athletics dc 12", skill(Skill::Athletics)),
            ("hides - stealth", skill(Skill::Stealth)),
            (
                "pass a dex save dc 15",
                vec![NamedCheck::Save(Ability::Dex)],
            ),
            (
                "attacks: strikes with a melee attack",
                vec![NamedCheck::Attack(Attack::Melee)],
            ),
            (
                "flexes, Strength (Intimidation) check DC 12",
                by_strength(Skill::Intimidation),
            ),
            (
                "intimidation (strength) check",
                by_strength(Skill::Intimidation),
            ),
            (
                "I use my str (sleight of hand) to climb",
                by_strength(Skill::SleightOfHand),
            ),
            (
                "sneaks, strength stealth vs 12",
                by_strength(Skill::Stealth),
            ),
            ("crie « stealth check dc 12 »", vec![]),
            ("叫「stealth check dc 12」", vec![]),
            ("»stealth check dc 12«, sagt er", vec![]),
            ("makes history", vec![]),
            (
                "makes an attack against the ogre",
                vec![NamedCheck::Attack(Attack::Unspecified)],
            ),
            ("history repeats itself", vec![]),
            ("\"stealth\", he says: \u{201c}attack\u{201d}", vec![]),
            ("sneaks past the guard", vec![]),
            ("hits the ogre with a club", vec![]),
            ("saves the child", vec![]),
            ("sleight of foot", vec![]),
        ] {
            assert_eq!(named_checks(text), expected, "{text}");
        }
    }

    #[test]
    fn an_attack_is_made_with_the_ability_that_its_kind_asks_for() {
        let sheet: Sheet = serde_json::from_value(
            json!({ "name": "Kay", "abilities": { "str": 8, "dex": 16, "wis": 14 } }),
        )
        .unwrap();
        let with = |attack: Attack, sheet: Option<&Sheet>| attack.with(sheet).1;
        assert_eq!(with(Attack::Melee, Some(&sheet)), Ability::Dex);
        assert_eq!(with(Attack::Spell, Some(&sheet)), Ability::Wis);
        assert_eq!(
            [Attack::Melee, Attack::Ranged, Attack::Spell].map(|attack| with(attack, None)),
            [Ability::Str, Ability::Dex, Ability::Int]
        );
    }
}
