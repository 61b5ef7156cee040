//! Deeds in the first person: "I sneak past the guard".
//!
//! The verbs of deeds are words of everyday life too: one swims in debt, hides one's feelings, climbs a career ladder. So a
//! verb is not enough. A text is clearly a deed only if the verb stands alone, where that says enough, or if what it is done
//! to is something of the scene: a being, a place, a piece of gear, by the lists in `scene.rs`. Nothing in the text may speak of
//! everyday life, of habits or of another time. All else is unclear.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use super::scene::{
    BARRED, BEING, COMMON_PLACE, FABLED_PLACE, FOE, LOCKED, MAGIC, ON_ONE, PLACE, TO_TAKE, WORDS,
};
use super::{Found, is, pattern};
use crate::act::inflection::{Form, form};
use crate::domain::CommandName;

const MAX_CHARS: usize = 300;

/// What says enough without an object: "I hide."
const ALONE: u8 = 1;
/// What is done to "him" too.
const HIM: u8 = 2;
/// What people do every day, so that with a common place more must not follow: "I run to the door and there is a parcel".
const DAILY: u8 = 4;
/// What is done to one's own, or to one that is meant: who draws "a sword" may be a painter.
const MEANT: u8 = 8;
/// What goes somewhere: "I run past the guard", and not "I run the castle".
const GOES: u8 = 16;

/// The verbs of deeds, what each of them is done to, and how it is used.
const VERBS: [(&str, u16, u8); 72] = [
    ("ambush", FOE, HIM),
    ("attack", FOE, ALONE | HIM),
    ("bash", FOE | BARRED, HIM),
    ("behead", FOE, HIM),
    ("block", ON_ONE | MAGIC, 0),
    ("bluff", BEING, 0),
    ("break", BARRED, 0),
    ("cast", BEING | MAGIC, 0),
    ("charge", FOE | FABLED_PLACE, 0),
    ("charm", BEING, 0),
    ("climb", PLACE | BEING, ALONE),
    ("crawl", PLACE | BEING, GOES),
    ("creep", PLACE | BEING, ALONE),
    ("dash", PLACE | BEING, DAILY | GOES),
    ("deceive", BEING, 0),
    ("disarm", FOE | FABLED_PLACE, 0),
    ("dodge", FOE | MAGIC, ALONE),
    ("draw", ON_ONE, MEANT),
    ("drink", ON_ONE, DAILY),
    ("duck", PLACE, GOES),
    ("examine", PLACE | BEING | TO_TAKE, 0),
    ("fight", FOE, 0),
    ("fire", FOE, 0),
    ("flee", PLACE | BEING, 0),
    ("fling", FOE, DAILY),
    ("follow", BEING, 0),
    ("force", BARRED, 0),
    ("grapple", FOE, HIM),
    ("hide", PLACE | FOE | TO_TAKE, ALONE),
    ("hit", FOE, HIM),
    ("hurl", FOE, DAILY),
    ("inspect", PLACE | BEING | TO_TAKE, 0),
    ("intimidate", BEING, HIM),
    ("investigate", PLACE | BEING | TO_TAKE, 0),
    ("jump", PLACE | BEING, ALONE),
    ("kick", BEING | BARRED, HIM),
    ("kill", FOE, HIM),
    ("leap", PLACE | BEING, ALONE),
    ("listen", PLACE, DAILY | GOES),
    ("look", PLACE | BEING | TO_TAKE, ALONE | DAILY | GOES),
    ("loose", ON_ONE, 0),
    ("lunge", FOE, ALONE),
    ("open", BARRED | TO_TAKE, DAILY),
    ("parry", FOE, ALONE),
    ("persuade", BEING, 0),
    ("pick", LOCKED, 0),
    ("pickpocket", BEING, HIM),
    ("pull", FABLED_PLACE | BEING, DAILY),
    ("punch", FOE, HIM),
    ("push", FABLED_PLACE | BEING, DAILY),
    ("run", PLACE | BEING, DAILY | GOES),
    ("search", PLACE | BEING | TO_TAKE, 0),
    ("shoot", FOE, HIM),
    ("shove", FOE, HIM),
    ("slash", FOE, HIM),
    ("slay", BEING, HIM),
    ("smash", FOE | BARRED, 0),
    ("smite", FOE, HIM),
    ("sneak", PLACE | BEING, ALONE),
    ("sprint", PLACE | BEING, DAILY | GOES),
    ("stab", FOE, HIM),
    ("steal", BEING | TO_TAKE, 0),
    ("strike", FOE, HIM),
    ("swim", PLACE, DAILY | GOES),
    ("swing", FOE, 0),
    ("tackle", FOE, HIM),
    ("threaten", BEING, 0),
    ("throw", FOE, DAILY),
    ("thrust", FOE, 0),
    ("tiptoe", PLACE | BEING, ALONE),
    ("track", BEING, 0),
    ("vault", PLACE, 0),
];

static OPENING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:ok|okay|alright|so|now|then|and|well|next)[,!]?\s+)*i(?P<to>['’]ll|\s+will|\s+shall|(?:['’]m|\s+am)\s+going\s+to|['’]m\s+gonna|\s+want\s+to|['’]d\s+like\s+to|\s+would\s+like\s+to)?(?P<am>['’]m|\s+am)?\s+(?P<try>(?:try|tried|attempt|attempted|manage|managed|decide|decided)\s+to\s+)?(?P<how>(?:(?:\p{L}+ly|just|then|also)\s+)*)(?P<verb>\p{L}+)(?P<rest>.*)$",
    )
});

/// What tells of something else, in more than one word.
static ASIDE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"[?]|\blast\s+(?:night|week|month|year|summer|winter|time|session|game|weekend)\b|\bused\s+to\b|\bclimb\w*\s+the\s+walls\b|\blook\w*\s+(?:up\s+to|down\s+on|forward\s+to)\b|\br[au]n(?:ning)?\s+(?:into|with|out\s+of)\b",
    )
});

/// A text that tells a deed in the first person and nothing else.
pub(super) fn read(text: &str) -> Option<Found> {
    if text.chars().count() > MAX_CHARS || is(&ASIDE, &text.to_lowercase()) {
        return None;
    }
    let lower = text.to_lowercase().replace('’', "'");
    let captures = OPENING.as_ref()?.captures(&lower)?;
    let part = |name: &str| captures.name(name).map_or("", |found| found.as_str());
    let (verb, rest) = (part("verb"), part("rest"));
    let (form, takes, used) = VERBS
        .iter()
        .find_map(|(name, takes, used)| Some((form(verb, name)?, *takes, *used)))?;
    let fits = match (
        captures.name("am"),
        captures.name("to").or(captures.name("try")),
    ) {
        (Some(_), None) => form == Form::Ongoing,
        (None, Some(_)) => form == Form::Present,
        (None, None) => form != Form::Ongoing,
        (Some(_), Some(_)) => false,
    };
    let everyday = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        WORDS.is_everyday(word)
    };
    if !fits
        || rest
            .split_whitespace()
            .chain(part("how").split_whitespace())
            .any(everyday)
    {
        return None;
    }
    clear(rest, form, takes, used).then(|| (CommandName::Do, json!({ "deed": text })))
}

/// Whether what follows the verb is of the scene.
fn clear(rest: &str, form: Form, takes: u16, used: u8) -> bool {
    let (object, more) = object(rest);
    if object.iter().all(|word| WORDS.is_manner(word)) {
        return used & ALONE > 0 && !(more && used & DAILY > 0);
    }
    let kinds: Vec<(u16, bool)> = object.iter().map(|word| WORDS.kinds(word)).collect();
    let figurative = object
        .iter()
        .any(|word| WORDS.is_figure(word) || WORDS.is_abstract(word));
    if used & GOES > 0 && !object.first().is_some_and(|word| WORDS.ends_a_name(word)) {
        return false;
    }
    if used & MEANT > 0 && !object.iter().any(|word| matches!(*word, "my" | "the")) {
        return false;
    }
    if figurative || !is_own(&object) {
        return false;
    }
    let found = evidence(&object, &kinds) & takes;
    if used & HIM > 0
        && object
            .first()
            .is_some_and(|word| matches!(*word, "him" | "her" | "them" | "it"))
    {
        let rest = object.get(1..).unwrap_or_default();
        // One says "I kill it" of an evening, too.
        let clear = used & ALONE > 0 || object.first() != Some(&"it");
        return found & ON_ONE > 0 || (clear && rest.iter().all(|word| word.ends_with("ly")));
    }
    let told = more && (form == Form::Past || used & DAILY > 0);
    if told {
        found & !(COMMON_PLACE | BARRED) > 0
    } else {
        found > 0
    }
}

/// The words up to the end of the first part of the sentence, and whether more follows.
fn object(rest: &str) -> (Vec<&str>, bool) {
    let mut object = vec![];
    let mut words = rest.split_whitespace();
    for word in words.by_ref() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if matches!(
            bare,
            "and"
                | "then"
                | "while"
                | "but"
                | "so"
                | "because"
                | "before"
                | "after"
                | "until"
                | "as"
                | "like"
        ) {
            return (object, true);
        }
        if !bare.is_empty() {
            object.push(bare);
        }
        if word.ends_with([',', ';', '.', '!', ':']) || word == "-" {
            break;
        }
    }
    (object, words.next().is_some())
}

/// What is called "my" must be what a character has.
fn is_own(object: &[&str]) -> bool {
    let mines = object.iter().enumerate().filter(|(_, word)| **word == "my");
    mines.into_iter().all(|(at, _)| {
        let after = object.iter().skip(at + 1).take(3);
        after.into_iter().any(|word| WORDS.is_own(word))
    })
}

/// The kinds of what is named: a single being with an article, and a common place only if one of them is meant.
fn evidence(object: &[&str], kinds: &[(u16, bool)]) -> u16 {
    let before = |at: usize, words: &[&str]| {
        object
            .iter()
            .take(at)
            .rev()
            .take(4)
            .any(|word| words.contains(word))
    };
    let definite = [
        "the", "this", "that", "these", "those", "his", "her", "their", "its",
    ];
    let article = [
        "a", "an", "another", "one", "two", "three", "four", "five", "some", "both", "all",
    ];
    let mut found = 0;
    for (at, (kinds, plural)) in kinds
        .iter()
        .enumerate()
        .filter(|(at, _)| is_head(object, kinds, *at))
    {
        let meant = before(at, &definite);
        let mut kinds = *kinds;
        if !meant {
            kinds &= !(COMMON_PLACE | BARRED | LOCKED);
        }
        if !meant && !plural && !before(at, &article) {
            kinds &= !(BEING | TO_TAKE);
        }
        found |= kinds;
    }
    found
}

/// Whether a noun is what the words are about, and no part of another name ("guard rail") or figure ("forest of lies").
fn is_head(object: &[&str], kinds: &[(u16, bool)], at: usize) -> bool {
    let last = (at..object.len())
        .take_while(|at| kinds.get(*at).is_some_and(|(kinds, _)| *kinds > 0))
        .last()
        .unwrap_or(at);
    match object.get(last + 1) {
        None => true,
        Some(&"of") => kinds.iter().skip(last + 2).any(|(kinds, _)| *kinds > 0),
        Some(next) => {
            let possessive = object.get(last).is_some_and(|word| word.ends_with("'s"));
            possessive || WORDS.ends_a_name(next)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_to_something_of_the_scene_is_a_deed() {
        for text in [
            "I sneak.",
            "I sneak along the wall, quiet as a cat",
            "I creep past the sleeping ogre",
            "I crept past the guard",
            "ok, I tiptoe down the corridor",
            "I quickly hide behind the altar",
            "I hid in the shadows",
            "I hide my dagger",
            "I'm hiding under the cart",
            "I'll climb the tower",
            "I climb up the rope and look around",
            "I leaped over the pit",
            "I leapt across the chasm",
            "I swam across the river",
            "I ran past the guard",
            "I ran to the drawbridge and pulled the lever",
            "I broke down the door",
            "I stole the merchant's purse",
            "I threw my spear at the wyvern",
            "I fought the two bandits",
            "I attack the goblin",
            "I attack!",
            "I attack it",
            "I snuck past the sentries",
            "I loose an arrow at the champion",
            "I run away from the dragon",
            "I force the gate open",
            "I swim through the moat",
            "I hurl a javelin at the giant",
            "I shove the cultist off the ledge",
            "I look for tracks in the forest",
            "Okay, I attack the zombie!",
            "I'm going to ambush the caravan guards",
            "I attack him with my axe",
            "I stab her",
            "I hit the skeleton with my mace",
            "I shoot an arrow at the archer",
            "I cast fire bolt at the troll",
            "I try to persuade the captain to let us in",
            "I decide to ambush the caravan's guards",
            "I pick the lock",
            "I search the body",
            "I draw my sword",
            "I look around",
            "I want to kick the door in",
            "I stab the goblin's leg",
            "I attack the orc camp with my axe",
            "I sneak past the captain of the guard",
            "I climb the tower wall",
            "I stab the ogre in the eye",
        ] {
            assert_eq!(
                read(text),
                Some((CommandName::Do, json!({ "deed": text }))),
                "{text}"
            );
        }
    }

    #[test]
    fn what_people_do_every_day_is_no_deed() {
        for text in [
            "I swim in debt",
            "I hide my feelings",
            "I hide my age",
            "I hide from responsibility",
            "I jump to conclusions",
            "I run a company",
            "I run the numbers",
            "I run to the door and it's a delivery",
            "I climb the career ladder",
            "I climb the ladder at work",
            "I'm climbing the walls here",
            "I climbed the tree and fell on my face",
            "I break my word",
            "I broke my arm",
            "I broke the ice",
            "I stole this joke",
            "I threw up",
            "I threw shade at him",
            "I fought the law",
            "I fight for the users",
            "I shoot weddings",
            "I shot a video of the castle",
            "I cast my vote",
            "I cast a shadow",
            "I hit the gym",
            "I hit the wall",
            "I hit him up",
            "I look like a goblin",
            "I run the castle campaign",
            "I run the dungeon for new players",
            "I ran into the captain",
            "I ran out of potions",
            "I run with the wolves",
            "I kill it",
            "I fight demons daily",
            "I grapple with guilt",
            "I steal the spotlight",
            "I look good",
            "I draw dragons",
            "I draw a sword",
            "I hit the guard rail",
            "I tackle the orc problem",
            "I fight with the dwarf fortress community",
            "I open the chest freezer",
            "I crawl through the forest of lies",
            "I hide behind the curtain of irony",
            "I strike a deal with the merchant",
            "I cast doubt on the king",
            "I look up to the king",
            "I block the troll",
            "I search the room for the remote",
            "I drink coffee",
            "I open the door to new possibilities",
            "I attack the problem",
            "I attack the darkness of procrastination",
            "I slash prices",
            "I dodge the question",
            "I sneak snacks into the cinema",
            "I follow the king on instagram",
            "I sneak past the guards in Skyrim",
            "I always attack the goblin",
            "I attacked the goblin last session",
            "I used to climb the tower",
            "do I attack the goblin?",
            "I don't attack the goblin",
            "I could climb the tower",
            "I am attack the goblin",
            "we sneak past the guard",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
