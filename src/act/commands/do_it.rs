//! `do`: what a character does in the world. The dice are the code's alone; a model may tell what came of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::check::{self, CheckArguments};
use super::{Action, Command, Done, Facts, Reach, read, schema, text_of};
use crate::act::echo::echo;
use crate::act::sheet::Skill;
use crate::domain::{CommandName, Scope};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Do")]
pub struct DoArguments {
    /// What the character does, in the player's words.
    #[schemars(length(min = 1, max = 2000))]
    pub deed: String,
}

pub(super) fn command() -> Command {
    Command {
        name: CommandName::Do,
        help: "Do something in the scene: the dice decide, and the committee may tell what happens.",
        permission: Scope::Act,
        reach: Reach::Narrates,
        examples: &["I sneak along the wall, quiet as a cat", "/do climb the tower"],
        schema: schema::<DoArguments>,
        read: |arguments| {
            let read: DoArguments = read(arguments)?;
            Ok(Action::Do(DoArguments { deed: text_of("deed", &read.deed, 2000)? }))
        },
    }
}

/// Words that call for a check of a skill. The first that occurs in the deed counts.
const SKILLS: [(Skill, &[&str]); 16] = [
    (Skill::Stealth, &["sneak", "hide", "creep", "tiptoe", "stealth", "lurk", "shadow"]),
    (
        Skill::SleightOfHand,
        &["pickpocket", "pick the lock", "pick a lock", "picks the lock", "steal", "palm", "disarm the trap"],
    ),
    (Skill::Acrobatics, &["balance", "tumble", "somersault", "dodge", "cartwheel", "flip over"]),
    (
        Skill::Athletics,
        &[
            "climb",
            "jump",
            "leap",
            "swim",
            "grapple",
            "shove",
            "lift",
            "push",
            "force",
            "break down",
            "kick",
            "tackle",
            "sprint",
            "vault",
        ],
    ),
    (Skill::Deception, &["lie ", "lie to", "bluff", "deceive", "disguise", "mislead"]),
    (Skill::Persuasion, &["persuade", "convince", "negotiate", "haggle", "plead"]),
    (Skill::Intimidation, &["intimidate", "threaten", "scare", "frighten"]),
    (Skill::Investigation, &["investigate", "search", "examine", "inspect", "decipher"]),
    (Skill::Perception, &["listen", "look", "watch", "spot", "scan", "peer", "sniff"]),
    (Skill::Insight, &["read his face", "read her face", "sense motive", "gauge"]),
    (Skill::Medicine, &["bandage", "stabilize", "stabilise", "treat the wound", "heal"]),
    (Skill::Survival, &["track", "forage", "hunt", "navigate"]),
    (Skill::AnimalHandling, &["tame", "calm the horse", "ride", "pet the"]),
    (Skill::Performance, &["sing", "dance", "perform", "juggle"]),
    (Skill::Arcana, &["identify the spell", "study the runes", "recognise the magic", "recognize the magic"]),
    (Skill::Religion, &["pray", "consecrate"]),
];

/// The skill that a deed is about, by whole words.
pub fn skill_of(deed: &str) -> Option<Skill> {
    let lower = format!(" {} ", deed.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " "));
    let begins = |word: &str| {
        let word = word.trim_end();
        lower.match_indices(word).map(|(at, _)| at).find(|at| {
            let at = *at;
            let before = lower.get(..at).is_some_and(|text| text.ends_with(' '));
            let rest = lower.get(at + word.len()..).unwrap_or("");
            // sneak, sneaks, sneaking; but not "hide" in "hideous".
            let ending = rest.split(' ').next().unwrap_or("");
            before && matches!(ending, "" | "s" | "es" | "ed" | "d" | "ing" | "ning" | "ping" | "ming" | "ting")
        })
    };
    let first = |words: &[&str]| words.iter().filter_map(|word| begins(word)).min();
    let found = SKILLS.iter().filter_map(|(skill, words)| Some((first(words)?, *skill)));
    found.min_by_key(|(at, _)| *at).map(|(_, skill)| skill)
}

/// How well it went, by the total alone: the tiers are fixed.
fn outcome(total: i64) -> &'static str {
    match total {
        20.. => "a great success",
        15..=19 => "a success",
        10..=14 => "a partial success, at some cost",
        _ => "a failure",
    }
}

pub(super) fn execute(arguments: &DoArguments, facts: &Facts, seed: u64) -> Done {
    let deed = echo(&arguments.deed);
    let checked = skill_of(&arguments.deed).and_then(|skill| {
        let asked = CheckArguments { skill: Some(skill), ..CheckArguments::default() };
        check::execute(&asked, facts, seed).ok()
    });
    let result = match checked {
        None => {
            json!({ "text": format!("> {deed}\nNo check is needed."), "deed": deed, "mechanics": null, "outcome": null })
        }
        Some(done) => {
            let total = done.result.get("total").and_then(Value::as_i64).unwrap_or(0);
            let line = done.result.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
            let outcome = outcome(total);
            json!({ "text": format!("> {deed}\n{line}: {outcome}"), "deed": deed, "mechanics": done.result, "outcome": outcome })
        }
    };
    Done::saying(result)
}

/// What the committee is asked to tell. The result of the dice is given, and not to be changed.
pub fn narration(deed: &str, result: &Value, scene: &[String]) -> String {
    let mechanics = result.pointer("/mechanics/text").and_then(Value::as_str);
    let decided = match (mechanics, result.get("outcome").and_then(Value::as_str)) {
        (Some(line), Some(outcome)) => {
            format!("The dice have decided, and nothing may change it: {line}. That is {outcome}.")
        }
        _ => "No dice were needed: it simply happens, as far as it can.".to_owned(),
    };
    let before = if scene.is_empty() {
        String::new()
    } else {
        format!(
            "\n\nWhat was said in the scene before:\n{}",
            scene.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n")
        )
    };
    format!(
        "Tell in at most five sentences, in the present tense and in the second person, what happens in a tabletop game. \
         Invent no dice, no numbers and no rules, decide nothing for other players, and end where the player can act again. \
         {decided}\n\nThe player's deed:\n{deed}{before}"
    )
}
