//! Character sheets, and the modifiers that follow from them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sanitize::sanitize;
use crate::domain::changes_direction;

/// The most bytes that a sheet may have as JSON.
pub const MAX_SHEET_BYTES: usize = 16 * 1024;

pub const MAX_NAME_CHARS: usize = 80;
const MAX_ENTRIES: usize = 100;
const MAX_ENTRY_CHARS: usize = 200;

/// One of six abilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Ability {
    Str,
    Dex,
    Con,
    Int,
    Wis,
    Cha,
}

impl Ability {
    pub const ALL: &[Ability] = <Ability as strum::VariantArray>::VARIANTS;

    pub fn title(self) -> &'static str {
        match self {
            Ability::Str => "Strength",
            Ability::Dex => "Dexterity",
            Ability::Con => "Constitution",
            Ability::Int => "Intelligence",
            Ability::Wis => "Wisdom",
            Ability::Cha => "Charisma",
        }
    }

    /// Returns the ability with this short or full name, in lower case.
    pub fn named(word: &str) -> Option<Self> {
        let is_named =
            |ability: &Self| word == ability.into_str() || word == ability.title().to_lowercase();
        Ability::ALL.iter().copied().find(is_named)
    }
}

/// A skill, which belongs to an ability. Its text is its name as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Skill {
    Acrobatics,
    #[strum(serialize = "animal handling")]
    AnimalHandling,
    Arcana,
    Athletics,
    Deception,
    History,
    Insight,
    Intimidation,
    Investigation,
    Medicine,
    Nature,
    Perception,
    Performance,
    Persuasion,
    Religion,
    #[strum(serialize = "sleight of hand")]
    SleightOfHand,
    Stealth,
    Survival,
}

impl Skill {
    pub const ALL: &[Skill] = <Skill as strum::VariantArray>::VARIANTS;

    /// Its ability (fifth edition's rules, SRD 5.1).
    pub fn ability(self) -> Ability {
        use Skill::{
            Acrobatics, AnimalHandling, Arcana, Athletics, Deception, History, Insight,
            Intimidation, Investigation, Medicine, Nature, Perception, Performance, Persuasion,
            Religion, SleightOfHand, Stealth, Survival,
        };
        match self {
            Athletics => Ability::Str,
            Acrobatics | SleightOfHand | Stealth => Ability::Dex,
            Arcana | History | Investigation | Nature | Religion => Ability::Int,
            AnimalHandling | Insight | Medicine | Perception | Survival => Ability::Wis,
            Deception | Intimidation | Performance | Persuasion => Ability::Cha,
        }
    }
}

/// The six scores, each from 1 to 30.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Abilities {
    #[schemars(range(min = 1, max = 30))]
    pub str: i64,
    #[schemars(range(min = 1, max = 30))]
    pub dex: i64,
    #[schemars(range(min = 1, max = 30))]
    pub con: i64,
    #[schemars(range(min = 1, max = 30))]
    pub int: i64,
    #[schemars(range(min = 1, max = 30))]
    pub wis: i64,
    #[schemars(range(min = 1, max = 30))]
    pub cha: i64,
}

impl Default for Abilities {
    fn default() -> Self {
        Self {
            str: 10,
            dex: 10,
            con: 10,
            int: 10,
            wis: 10,
            cha: 10,
        }
    }
}

impl Abilities {
    pub fn score(&self, ability: Ability) -> i64 {
        match ability {
            Ability::Str => self.str,
            Ability::Dex => self.dex,
            Ability::Con => self.con,
            Ability::Int => self.int,
            Ability::Wis => self.wis,
            Ability::Cha => self.cha,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "HitPointsGiven")]
pub struct HitPoints {
    pub current: i64,
    pub max: i64,
}

/// If one of the two is not given, it is the other.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HitPoints")]
struct HitPointsGiven {
    #[schemars(range(min = -1000, max = 10_000))]
    current: Option<i64>,
    #[schemars(range(min = 0, max = 10_000))]
    max: Option<i64>,
}

impl TryFrom<HitPointsGiven> for HitPoints {
    type Error = &'static str;

    fn try_from(given: HitPointsGiven) -> Result<Self, Self::Error> {
        let missing = "current or max is missing";
        Ok(Self {
            current: given.current.or(given.max).ok_or(missing)?,
            max: given.max.or(given.current).ok_or(missing)?,
        })
    }
}

/// The most levels of a value in `extra`. Parsers of JSON refuse 128.
const MAX_LEVELS: usize = 32;

fn is_shallow(value: &Value, levels: usize) -> bool {
    let below = |value: &Value| levels > 0 && is_shallow(value, levels - 1);
    match value {
        Value::Array(items) => items.iter().all(below),
        Value::Object(parts) => parts.values().all(below),
        _ => true,
    }
}

/// A character.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sheet {
    /// The character's name, 1 to 80 characters.
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub ancestry: Option<String>,
    /// 1 to 30; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 30))]
    pub level: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abilities: Option<Abilities>,
    /// Skills, and abilities whose saving throws are meant: "stealth", "dex".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub proficiencies: Vec<String>,
    /// Skills in which the proficiency counts twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub expertise: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_points: Option<HitPoints>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub armor_class: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub inventory: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Whatever else belongs to the character. It is kept and not looked at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Value>,
}

impl Sheet {
    /// Checks the sheet.
    ///
    /// # Errors
    /// Every problem of the sheet, for people.
    pub fn check(&self) -> Result<(), String> {
        let mut problems = vec![];
        let mut require = |holds: bool, problem: String| {
            if !holds {
                problems.push(problem);
            }
        };
        let is_long = |text: &String| text.chars().count() > MAX_ENTRY_CHARS;
        let chars = self.name.trim().chars().count();
        let is_name = (1..=MAX_NAME_CHARS).contains(&chars);
        require(
            is_name && !self.name.chars().any(char::is_control),
            format!("the name has 1 to {MAX_NAME_CHARS} characters, and no line breaks"),
        );
        let is_level = self.level.is_none_or(|level| (1..=30).contains(&level));
        require(is_level, "the level is from 1 to 30".into());
        for ability in Ability::ALL {
            let score = self.abilities.as_ref().map(|all| all.score(*ability));
            require(
                score.is_none_or(|score| (1..=30).contains(&score)),
                format!("{} is from 1 to 30", ability.title()),
            );
        }
        let are_points = self.hit_points.as_ref().is_none_or(|points| {
            (0..=10_000).contains(&points.max) && (-1000..=10_000).contains(&points.current)
        });
        let points = "hit points are from 0 to 10000, and the current ones from -1000";
        require(are_points, points.into());
        let is_armor_class = self.armor_class.is_none_or(|ac| (0..=100).contains(&ac));
        require(is_armor_class, "the armor class is from 0 to 100".into());
        let is_shallow = self.extra.values().all(|it| is_shallow(it, MAX_LEVELS));
        require(
            is_shallow,
            format!("extra is nested more than {MAX_LEVELS} levels deep"),
        );
        for (name, text) in [("class", &self.class), ("ancestry", &self.ancestry)] {
            require(
                !text.as_ref().is_some_and(is_long),
                format!("{name} has at most {MAX_ENTRY_CHARS} characters"),
            );
        }
        for (name, list) in [
            ("proficiencies", &self.proficiencies),
            ("expertise", &self.expertise),
            ("inventory", &self.inventory),
        ] {
            require(
                list.len() <= MAX_ENTRIES && !list.iter().any(is_long),
                format!("{name} has at most {MAX_ENTRIES} entries of {MAX_ENTRY_CHARS} characters"),
            );
        }
        let bytes = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        require(
            bytes <= MAX_SHEET_BYTES,
            format!("the sheet has {bytes} bytes; at most {MAX_SHEET_BYTES} are kept"),
        );
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("; "))
        }
    }

    /// Checks that the name can be seen and is no link. Sheets that were stored without this check stay
    /// readable.
    ///
    /// # Errors
    /// If it cannot be seen, changes the direction of the text, or has a link.
    pub fn check_name(&self) -> Result<(), String> {
        // The fillers of Hangul are letters without a shape.
        let is_blank = |c: char| {
            !c.is_alphanumeric() && !c.is_ascii_punctuation() && c < '\u{2190}'
                || matches!(
                    c,
                    '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}'
                )
        };
        let is_seen = !self.name.chars().all(is_blank);
        if is_seen && !self.name.contains("://") && !self.name.contains(changes_direction) {
            Ok(())
        } else {
            Err("the name needs a visible character, and has no link and no sign that turns the text around".into())
        }
    }

    /// Returns (score - 10) / 2, rounded down.
    pub fn modifier(&self, ability: Ability) -> i64 {
        let score = self.abilities.as_ref().map_or(10, |all| all.score(ability));
        (score - 10).div_euclid(2)
    }

    /// Returns 2, plus one at every fourth level after the first.
    pub fn proficiency(&self) -> i64 {
        2 + (self.level.unwrap_or(1) - 1).div_euclid(4)
    }

    /// Names the proficiencies that count for nothing, as the end of an answer; empty without any.
    pub fn idle_proficiencies(&self) -> String {
        let counts = |entry: &str| {
            let name = entry.trim().replace('_', " ").to_lowercase();
            let is_skill = Skill::ALL.iter().any(|skill| skill.into_str() == name);
            is_skill || Ability::named(&name).is_some() || name == "attack"
        };
        let all = self.proficiencies.iter().chain(&self.expertise);
        let idle: Vec<&str> = all.map(String::as_str).filter(|it| !counts(it)).collect();
        if idle.is_empty() {
            return String::new();
        }
        let idle = sanitize(&idle.join(", "));
        format!(
            " These proficiencies name no skill, no ability and no attack, so they count for nothing: {idle}."
        )
    }

    /// Returns how often the proficiency counts for a skill or a saving throw: 0, 1 or 2 times.
    pub fn times(&self, what: &str) -> i64 {
        let is_meant = |entry: &String| {
            let entry = entry.trim().replace('_', " ");
            entry.eq_ignore_ascii_case(what)
        };
        if self.expertise.iter().any(is_meant) {
            2
        } else {
            i64::from(self.proficiencies.iter().any(is_meant))
        }
    }
}
