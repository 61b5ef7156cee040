//! Orders of checks: "make a dexterity check against DC 15".

use serde_json::json;

use super::{Found, regex};
use crate::actions::check_words::{self, Wording, words};
use crate::domain::CommandName;

/// Returns how a check, or a saving throw, is written.
pub(super) fn usage(is_save: bool) -> &'static str {
    if is_save {
        "/save dex 15, /save wis with advantage"
    } else {
        "/check dex 15, /check stealth with advantage"
    }
}

/// Reads a text that asks for a check and for nothing else.
pub(super) fn read(text: &str) -> Option<Found> {
    let lower = text.to_lowercase();
    let is_polite = |word: &str| matches!(word.trim_matches(','), "please" | "pls");
    let question = lower.trim().ends_with('?') && !lower.split_whitespace().any(is_polite);
    let plain = lower.trim_end_matches(['.', '!', '?']).trim();
    let captures = regex("check.order").captures(plain);
    let part = |name: &str| Some(captures.as_ref()?.name(name)?.as_str());
    let ordered = part("what");
    // "dex check dc 15" is an order too, but "dex check?" is a question.
    if ordered.is_none() && question {
        return None;
    }
    let text = ordered.unwrap_or(plain);
    let wording = if plain.starts_with("check ") {
        Wording::Command
    } else {
        Wording::Phrase
    };
    // "Roll stealth" is a check; "roll 15 stealth" is none.
    let rolled = || check_words::named(ordered.filter(|_| part("roll").is_some())?);
    let check = words(text, wording).ok().or_else(rolled)?;
    Some((CommandName::Check, json!(check)))
}
