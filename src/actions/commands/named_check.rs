//! The check that a narrated action names.
//!
//! A text is split at punctuation and conjunctions. A part, or the end of one, is a check if the parser
//! of checks understands each of its words: "athletics DC 12", "sneaks past with a stealth check". So no
//! list of verbs decides what a character does. Only "attack" counts as the first word of the text.

use std::sync::LazyLock;

use super::check::{self, CheckArguments, D20Roll};
use crate::actions::check_words;
use crate::actions::sheet::{Ability, Sheet};
use crate::actions::speech::without_speech;
use crate::text::pattern;
use regex::{Captures, Regex};
use unicode_normalization::UnicodeNormalization as _;

/// A check that a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedCheck {
    pub arguments: CheckArguments,
    attack: Option<Attack>,
}

/// What an attack is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    Unspecified,
    Melee,
    Ranged,
    Spell,
}

/// What a text says of checks, in order.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub checks: Vec<NamedCheck>,
    /// The parts with a difficulty, an advantage or a number with a sign that belong to no check.
    pub others: Vec<String>,
}

/// A part of a text.
enum Part<'t> {
    Check(Found),
    /// A difficulty, an advantage or a modifier of the check before.
    Options(CheckArguments, &'t str),
    Prose(&'t str),
}

struct Found {
    check: NamedCheck,
    /// True if it is a name, perhaps with a number, and nothing else, which may be prose.
    is_bare: bool,
}

/// Returns the checks that a text names outside of speech.
///
/// # Errors
/// If the number of one is out of bounds.
pub(super) fn read(text: &str) -> Result<Named, String> {
    let plain = plain(text);
    let mut parts: Vec<Part<'_>> = SEPARATOR
        .split(&plain)
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(part)
        .collect();
    let has_prose = parts.iter().any(|part| matches!(part, Part::Prose(_)));
    let is_name = |found: &Found| found.is_bare && found.check.arguments.dc.is_none();
    if has_prose && matches!(parts.first(), Some(Part::Check(found)) if is_name(found)) {
        // "History: the king died" asks for no check.
        parts.remove(0);
    }
    let mut named = Named::default();
    let is_attack =
        |part: &Part<'_>| matches!(part, Part::Check(found) if found.check.attack.is_some());
    if !parts.iter().any(is_attack)
        && let Some(first) = parts.first_mut()
        && let Part::Prose(text) = *first
        && let Some(attack) = opening_attack(text)
    {
        // "Attack goblin 3" may mean the third goblin.
        let number = text.split_whitespace().last().filter(|it| is_number(it));
        let number = number.filter(|_| attack.check.arguments.dc.is_none());
        named.others.extend(number.map(str::to_owned));
        *first = Part::Check(attack);
    }
    for part in parts {
        match part {
            Part::Check(found) => named.checks.push(found.check),
            Part::Options(options, text) => match named.checks.last_mut() {
                Some(of) if of.has_none_of(&options) => of.add(&options),
                _ => named.others.push(text.to_owned()),
            },
            Part::Prose(text)
                if RULES.is_match(text) || is_number(text) && !named.checks.is_empty() =>
            {
                named.others.push(text.to_owned());
            }
            Part::Prose(_) => {}
        }
    }
    for check in &named.checks {
        check.arguments.check_bounds()?;
    }
    Ok(named)
}

fn is_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit())
}

// Punctuation of all scripts, but no hyphens, no quotation marks and no marks that stand in words.
static SEPARATOR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"[\n\p{Po}\p{Ps}\p{Pe}\p{Pc}\u{2013}-\u{2015}--["'/\\%#&@„「」『』｢｣]]|--+|\b(?:and|then|or|but)\b"#,
    )
});

// What a player expects to count: a difficulty, an advantage, a number with a sign.
static RULES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\b(?:dc|difficulty) ?-?\d|\b(?:dis)?adv(?:antage)?\b|(?:^|\s)[+-] ?\d")
});

/// Returns a text in lower case and half width, without speech, with an AC as a DC, a comma for a
/// dash between words, and "strength (intimidation)" without its brackets.
fn plain(text: &str) -> String {
    static ARMOUR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b[ad]c\s*[:=]?\s*(-?\d)"));
    static BRACKETS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b([a-z]+) \(([a-z ]+)\)"));
    static DASH: LazyLock<Regex> = LazyLock::new(|| pattern(r" - (\D)"));
    let text: String = text.nfkc().collect();
    let text = without_speech(&text)
        .to_lowercase()
        .replace('\u{2212}', "-");
    let text = text.replace("_of_", " of ").replace("vs.", "vs");
    let text = ARMOUR.replace_all(&text, "dc $1");
    let text = BRACKETS.replace_all(&text, |found: &Captures<'_>| {
        let joined = format!("{} {}", &found[1], &found[2]);
        let words: Vec<&str> = joined.split(' ').collect();
        match skill_or_ability(&words) {
            Some(_) => joined,
            None => found[0].to_owned(),
        }
    });
    DASH.replace_all(&text, ", $1").into_owned()
}

/// Reads a part: it is options as a whole, or a check up to its end.
fn part(text: &str) -> Part<'_> {
    if let Some(options) = check_words::options(text) {
        return Part::Options(options, text);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let found = (0..words.len()).find_map(|from| {
        let end = words.get(from..)?;
        let found = attack(end).or_else(|| skill_or_ability(end))?;
        (from == 0 || !found.is_bare).then_some(found)
    });
    found.map_or(Part::Prose(text), Part::Check)
}

/// Reads a check of a skill or an ability, or a saving throw. An ability alone is none.
fn skill_or_ability(words: &[&str]) -> Option<Found> {
    let text = words.join(" ");
    let (arguments, has_number) = match check_words::named(&text) {
        Some(arguments) => (arguments, false),
        None => (check_words::numbered(&text)?, true),
    };
    let is_said = words.contains(&"check");
    let is_save = arguments.save.is_some();
    let is_check = is_said || arguments.skill.is_some() || is_save || arguments.dc.is_some();
    let name_alone = CheckArguments {
        ability: arguments.ability,
        skill: arguments.skill,
        ..CheckArguments::default()
    };
    is_check.then_some(Found {
        is_bare: !is_said && (arguments == name_alone || has_number && !is_save),
        check: NamedCheck {
            arguments,
            attack: None,
        },
    })
}

/// Reads an attack of a kind, or one with options.
fn attack(words: &[&str]) -> Option<Found> {
    let (attack, rest) = match words {
        ["melee", "attack" | "attacks", rest @ ..] => (Attack::Melee, rest),
        ["ranged", "attack" | "attacks", rest @ ..] => (Attack::Ranged, rest),
        ["spell", "attack" | "attacks", rest @ ..] => (Attack::Spell, rest),
        ["attack" | "attacks", rest @ ..] if !rest.is_empty() => (Attack::Unspecified, rest),
        _ => return None,
    };
    let arguments = if rest.is_empty() {
        CheckArguments::default()
    } else {
        check_words::options_behind_name(&rest.join(" "))?
    };
    Some(attack_with(attack, arguments))
}

fn attack_with(attack: Attack, arguments: CheckArguments) -> Found {
    Found {
        check: NamedCheck {
            arguments,
            attack: Some(attack),
        },
        is_bare: false,
    }
}

/// Reads the first part of a text that begins with an attack: "attack the goblin with advantage".
fn opening_attack(text: &str) -> Option<Found> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (["attack" | "attacks", rest @ ..] | ["i", "attack", rest @ ..]) = words.as_slice() else {
        return None;
    };
    let mut ends = (0..rest.len()).filter_map(|from| rest.get(from..));
    let own = ends.find_map(|end| check_words::options(&end.join(" ")));
    Some(attack_with(Attack::Unspecified, own.unwrap_or_default()))
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
    /// True if options set nothing that the check has already.
    fn has_none_of(&self, options: &CheckArguments) -> bool {
        let own = &self.arguments;
        own.dc.and(options.dc).is_none()
            && own.modifier.and(options.modifier).is_none()
            && own.proficient.and(options.proficient).is_none()
            && own.advantage.and(options.advantage).is_none()
    }

    fn add(&mut self, options: &CheckArguments) {
        let own = &mut self.arguments;
        own.dc = own.dc.or(options.dc);
        own.modifier = own.modifier.or(options.modifier);
        own.proficient = own.proficient.or(options.proficient);
        own.advantage = own.advantage.or(options.advantage);
    }

    /// Returns the roll for a sheet.
    pub fn roll(&self, sheet: Option<&Sheet>) -> D20Roll {
        let Some(attack) = self.attack else {
            return check::roll_of(&self.arguments, sheet);
        };
        let (name, ability) = attack.with(sheet);
        let of_sheet = sheet.map_or(0, |sheet| sheet.times("attack"));
        D20Roll {
            what: format!("{} ({name})", ability.title()),
            ability,
            times: self.arguments.proficient.map_or(of_sheet, i64::from),
        }
    }

    /// Returns how a text names it.
    pub fn name(&self) -> String {
        let CheckArguments { ability, skill, .. } = &self.arguments;
        match (self.attack, skill, ability) {
            (Some(attack), ..) => attack.with(None).0.to_owned(),
            (None, Some(skill), _) => skill.into_str().to_owned(),
            (None, None, ability) => {
                let ability = ability.map_or("", |it| it.into_str());
                let kind = if self.is_save() { "save" } else { "check" };
                format!("{ability} {kind}")
            }
        }
    }

    fn is_save(&self) -> bool {
        self.arguments.save == Some(true)
    }

    /// Returns the outcome of a total. Without a DC, a skill or an ability has fixed tiers. A save or
    /// an attack has no outcome then, because it depends on the target.
    pub fn outcome(&self, total: i64) -> Option<&'static str> {
        match self.arguments.dc {
            Some(dc) if total >= dc => Some("a success"),
            Some(_) => Some("a failure"),
            None => (self.attack.is_none() && !self.is_save()).then(|| tier(total)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
