//! Character sheets, and the modifiers that follow from them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most bytes that a sheet may have as JSON.
pub const MAX_SHEET_BYTES: usize = 16 * 1024;

pub const MAX_NAME_CHARS: usize = 80;
const MAX_ENTRIES: usize = 100;
const MAX_ENTRY_CHARS: usize = 200;

/// One of six abilities.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
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
    pub const ALL: [Ability; 6] = [
        Ability::Str,
        Ability::Dex,
        Ability::Con,
        Ability::Int,
        Ability::Wis,
        Ability::Cha,
    ];

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
        Ability::ALL
            .into_iter()
            .find(|ability| word == ability.into_str() || word == ability.title().to_lowercase())
    }
}

/// A skill, which belongs to an ability.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Skill {
    Acrobatics,
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
    SleightOfHand,
    Stealth,
    Survival,
}

impl Skill {
    /// Each with its name as people write it and its ability (fifth edition's rules, SRD 5.1).
    pub const ALL: [(Skill, &'static str, Ability); 18] = [
        (Skill::Acrobatics, "acrobatics", Ability::Dex),
        (Skill::AnimalHandling, "animal handling", Ability::Wis),
        (Skill::Arcana, "arcana", Ability::Int),
        (Skill::Athletics, "athletics", Ability::Str),
        (Skill::Deception, "deception", Ability::Cha),
        (Skill::History, "history", Ability::Int),
        (Skill::Insight, "insight", Ability::Wis),
        (Skill::Intimidation, "intimidation", Ability::Cha),
        (Skill::Investigation, "investigation", Ability::Int),
        (Skill::Medicine, "medicine", Ability::Wis),
        (Skill::Nature, "nature", Ability::Int),
        (Skill::Perception, "perception", Ability::Wis),
        (Skill::Performance, "performance", Ability::Cha),
        (Skill::Persuasion, "persuasion", Ability::Cha),
        (Skill::Religion, "religion", Ability::Int),
        (Skill::SleightOfHand, "sleight of hand", Ability::Dex),
        (Skill::Stealth, "stealth", Ability::Dex),
        (Skill::Survival, "survival", Ability::Wis),
    ];

    fn row(self) -> (Skill, &'static str, Ability) {
        Skill::ALL
            .into_iter()
            .find(|(skill, ..)| *skill == self)
            .unwrap_or((self, "", Ability::Dex))
    }

    pub fn title(self) -> &'static str {
        self.row().1
    }

    pub fn ability(self) -> Ability {
        self.row().2
    }
}

/// The six scores, each from 1 to 30.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Abilities {
    #[serde(rename = "str")]
    #[schemars(range(min = 1, max = 30))]
    pub strength: i64,
    #[serde(rename = "dex")]
    #[schemars(range(min = 1, max = 30))]
    pub dexterity: i64,
    #[serde(rename = "con")]
    #[schemars(range(min = 1, max = 30))]
    pub constitution: i64,
    #[serde(rename = "int")]
    #[schemars(range(min = 1, max = 30))]
    pub intelligence: i64,
    #[serde(rename = "wis")]
    #[schemars(range(min = 1, max = 30))]
    pub wisdom: i64,
    #[serde(rename = "cha")]
    #[schemars(range(min = 1, max = 30))]
    pub charisma: i64,
}

impl Default for Abilities {
    fn default() -> Self {
        Self {
            strength: 10,
            dexterity: 10,
            constitution: 10,
            intelligence: 10,
            wisdom: 10,
            charisma: 10,
        }
    }
}

impl Abilities {
    pub fn score(&self, ability: Ability) -> i64 {
        match ability {
            Ability::Str => self.strength,
            Ability::Dex => self.dexterity,
            Ability::Con => self.constitution,
            Ability::Int => self.intelligence,
            Ability::Wis => self.wisdom,
            Ability::Cha => self.charisma,
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
    /// Returns every problem of the sheet, one sentence each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = vec![];
        let chars = self.name.trim().chars().count();
        if chars == 0 || chars > MAX_NAME_CHARS || self.name.chars().any(char::is_control) {
            problems.push(format!(
                "the name has 1 to {MAX_NAME_CHARS} characters, and no line breaks"
            ));
        }
        if self.level.is_some_and(|level| !(1..=30).contains(&level)) {
            problems.push("the level is from 1 to 30".into());
        }
        if let Some(abilities) = &self.abilities {
            for ability in Ability::ALL {
                if !(1..=30).contains(&abilities.score(ability)) {
                    problems.push(format!("{} is from 1 to 30", ability.title()));
                }
            }
        }
        if self.hit_points.as_ref().is_some_and(|hp| {
            !(0..=10_000).contains(&hp.max) || !(-1000..=10_000).contains(&hp.current)
        }) {
            problems.push("hit points are from 0 to 10000".into());
        }
        if self.armor_class.is_some_and(|ac| !(0..=100).contains(&ac)) {
            problems.push("the armor class is from 0 to 100".into());
        }
        if self
            .extra
            .values()
            .any(|value| !is_shallow(value, MAX_LEVELS))
        {
            problems.push(format!(
                "extra is nested more than {MAX_LEVELS} levels deep"
            ));
        }
        for (name, text) in [("class", &self.class), ("ancestry", &self.ancestry)] {
            if text
                .as_ref()
                .is_some_and(|text| text.chars().count() > MAX_ENTRY_CHARS)
            {
                problems.push(format!("{name} has at most {MAX_ENTRY_CHARS} characters"));
            }
        }
        for (name, list) in [
            ("proficiencies", &self.proficiencies),
            ("expertise", &self.expertise),
            ("inventory", &self.inventory),
        ] {
            if list.len() > MAX_ENTRIES
                || list
                    .iter()
                    .any(|entry| entry.chars().count() > MAX_ENTRY_CHARS)
            {
                problems.push(format!(
                    "{name} has at most {MAX_ENTRIES} entries of {MAX_ENTRY_CHARS} characters"
                ));
            }
        }
        let bytes = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_SHEET_BYTES {
            problems.push(format!(
                "the sheet has {bytes} bytes; at most {MAX_SHEET_BYTES} are kept"
            ));
        }
        problems
    }

    /// Checks that the hit points are at most their maximum. Sheets that were stored without this
    /// check stay readable.
    ///
    /// # Errors
    /// If they are more.
    pub fn check_hit_points(&self) -> Result<(), String> {
        match &self.hit_points {
            Some(HitPoints { current, max }) if current > max => Err(format!(
                "{current} hit points are more than their maximum, {max}: write --hp {max} --maxhp {max}, or --hp \
                 {current} --maxhp {current}"
            )),
            _ => Ok(()),
        }
    }

    /// Returns (score - 10) / 2, rounded down.
    pub fn modifier(&self, ability: Ability) -> i64 {
        self.abilities
            .as_ref()
            .map_or(0, |abilities| (abilities.score(ability) - 10).div_euclid(2))
    }

    /// Returns 2, plus one at every fourth level after the first.
    pub fn proficiency(&self) -> i64 {
        2 + (self.level.unwrap_or(1) - 1).div_euclid(4)
    }

    /// Returns how often the proficiency counts for a skill or a saving throw: 0, 1 or 2 times.
    pub fn times(&self, what: &str) -> i64 {
        let has = |list: &[String]| {
            list.iter()
                .any(|entry| entry.trim().replace('_', " ").eq_ignore_ascii_case(what))
        };
        if has(&self.expertise) {
            2
        } else {
            i64::from(has(&self.proficiencies))
        }
    }
}
