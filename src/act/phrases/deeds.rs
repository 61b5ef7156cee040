//! Deeds in the first person: "I sneak past the guard".
//!
//! The verbs of deeds are words of everyday life too: one swims in debt, hides one's feelings, climbs a career ladder. So a
//! verb is not enough. A text is clearly a deed only if the verb stands alone, where that says enough, or if what it is done
//! to is something of the scene: a being, a place, a piece of gear, by the lists below. Nothing in the text may speak of
//! everyday life, of habits or of another time. All else is unclear.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use super::{Found, is, pattern};
use crate::act::inflection::{Form, form};
use crate::domain::CommandName;

const MOST_CHARS: usize = 300;

/// Whom adventurers meet.
const BEINGS: &str = "goblin hobgoblin bugbear orc ogre troll giant dragon wyrm wyvern drake kobold gnoll lizardfolk skeleton \
    zombie ghoul ghost wraith wight specter spectre lich vampire mummy undead demon devil imp fiend angel elemental golem \
    gargoyle construct basilisk manticore chimera hydra griffon griffin owlbear beholder flayer mimic ooze slime cube kraken \
    minotaur centaur satyr harpy medusa gorgon naga sphinx unicorn pegasus werewolf worg wolf wolves bear boar lion tiger panther \
    spider scorpion snake serpent rat bat crow raven beast monster creature monstrosity abomination aberration horror enemy \
    enemies foe opponent attacker assailant intruder guard guardsman guardsmen guardian sentry sentinel watchman watchmen warden \
    jailer jailor gaoler soldier knight paladin cleric priest priestess acolyte monk cultist fanatic wizard mage sorcerer \
    sorceress warlock witch necromancer druid ranger archer warrior fighter barbarian berserker rogue thief thieves assassin \
    bandit brigand outlaw highwayman highwaymen robber smuggler pirate raider marauder mercenary mercenaries thug ruffian \
    gladiator duelist scout spy king queen prince princess duke duchess baron baroness countess lord lady noble nobleman \
    noblewoman courtier emperor empress merchant innkeeper barkeep bartender blacksmith shopkeeper villager peasant farmer \
    traveler traveller stranger prisoner captive hostage captain leader chief chieftain warlord elder hermit oracle elf elves \
    dwarf dwarves halfling gnome tiefling dragonborn drow fairy pixie sprite treant dryad nymph mermaid siren horse hound";

/// Places that hardly anybody speaks of who does not play.
const FABLED: &str = "castle fortress citadel stronghold dungeon crypt tomb catacomb sepulcher sepulchre mausoleum sarcophagus \
    coffin lair cave cavern grotto chasm abyss crevasse ravine gorge moat rampart battlement parapet drawbridge \
    portcullis palisade throne altar shrine temple sanctum chapel cathedral monastery abbey tavern inn camp campfire encampment \
    guardhouse barracks armory armoury treasury vault dais obelisk monolith pillar column colonnade statue fountain brazier \
    pedestal plinth pit pitfall ledge cliff cliffside precipice cellar sewer tunnel passage passageway corridor chamber antechamber \
    hall hallway alcove niche archway balcony belfry tower turret spire hayloft haystack barrel crate tapestry bookcase \
    trapdoor shadow shadows underbrush undergrowth thicket bramble swamp bog marsh ruin ruins rubble debris boulder wagon cart \
    carriage caravan galley mast rigging trap tripwire lever rune barricade chandelier";

/// Places of which everybody speaks: they count if one of them is meant, "the door".
const COMMON: &str = "door gate doorway entrance wall window roof rooftop chimney stairs staircase stairway steps ladder rope fence \
    hedge bridge river stream creek lake pond water waterfall forest woods tree bush bushes rock rocks hill slope mountain \
    mountainside valley alley alleyway street rooftops courtyard garden ditch trench gap hole opening house hut cabin barn \
    table desk curtain curtains wardrobe chest lock room area body corpse ship boat dock pier";

/// What adventurers carry and use.
const GEAR: &str = "sword longsword shortsword greatsword broadsword scimitar rapier sabre saber katana blade dagger dirk stiletto axe \
    handaxe battleaxe greataxe mace morningstar flail warhammer maul club quarterstaff staff spear javelin pike halberd glaive \
    trident lance whip bow longbow shortbow crossbow arrow bolt quiver sling dart shuriken shield buckler armor armour helmet \
    gauntlet cloak hood wand scepter sceptre orb amulet talisman grimoire spellbook scroll potion elixir vial flask torch lantern \
    grapple grappling caltrops lockpick lockpicks weapon weapons fist fists claws fangs";

/// What adventurers take.
const LOOT: &str = "key keys purse pouch coin coins gold gem gems jewel jewels ruby emerald diamond crown tiara ring necklace idol \
    relic artifact artefact treasure loot map letter chalice goblet satchel strongbox lockbox";

/// What is cast.
const SPELLS: &str = "spell cantrip fireball firebolt bolt missile missiles eldritch lightning thunderwave thunderbolt frostbite \
    invisibility entangle thaumaturgy prestidigitation wounds hex curse smite hideous counterspell polymorph scorching \
    chromatic guiding sacred vicious mockery faerie";

/// What may be one's own in a deed, beside gear.
const OWN: &str = "breath back hand hands foot feet head face eyes teeth shoulder shoulders knee knees elbow way companion companions \
    party friends allies ally comrades hiding cover";

/// Words that say only how or whereto.
const MANNER: &str = "up down back away forward forwards backwards aside sideways past left right around across over through in out \
    inside outside closer ahead along again now at once to the side as i can possible slow fast low high still hard";

/// What something of the scene is, as bits of a set.
const BEING: u16 = 1;
const FABLED_PLACE: u16 = 1 << 1;
const COMMON_PLACE: u16 = 1 << 2;
const ON_ONE: u16 = 1 << 3;
const TO_TAKE: u16 = 1 << 4;
const MAGIC: u16 = 1 << 5;
const BARRED: u16 = 1 << 6;
const LOCKED: u16 = 1 << 7;
const PLACE: u16 = FABLED_PLACE | COMMON_PLACE;
const FOE: u16 = BEING | ON_ONE;

/// What says enough without an object: "I hide."
const ALONE: u8 = 1;
/// What is done to "him" too.
const HIM: u8 = 2;
/// What people do every day, so that with a common place more must not follow: "I run to the door and there is a parcel".
const DAILY: u8 = 4;
/// What is done to one's own, or to one that is meant: who draws "a sword" may be a painter.
const MEANT: u8 = 8;

/// The verbs of deeds, what each of them is done to, and how it is used.
const VERBS: [(&str, u16, u8); 71] = [
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
    ("crawl", PLACE | BEING, 0),
    ("creep", PLACE | BEING, ALONE),
    ("dash", PLACE | BEING, DAILY),
    ("deceive", BEING, 0),
    ("disarm", FOE | FABLED_PLACE, 0),
    ("dodge", FOE | MAGIC, ALONE),
    ("draw", ON_ONE, MEANT),
    ("drink", ON_ONE, DAILY),
    ("duck", PLACE, 0),
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
    ("listen", PLACE, DAILY),
    ("look", PLACE | BEING | TO_TAKE, ALONE | DAILY),
    ("lunge", FOE, ALONE),
    ("open", BARRED | TO_TAKE, DAILY),
    ("parry", FOE, ALONE),
    ("persuade", BEING, 0),
    ("pick", LOCKED, 0),
    ("pickpocket", BEING, HIM),
    ("pull", FABLED_PLACE | BEING, DAILY),
    ("punch", FOE, HIM),
    ("push", FABLED_PLACE | BEING, DAILY),
    ("run", PLACE | BEING, DAILY),
    ("search", PLACE | BEING | TO_TAKE, 0),
    ("shoot", FOE, HIM),
    ("shove", FOE, HIM),
    ("slash", FOE, HIM),
    ("slay", BEING, HIM),
    ("smash", FOE | BARRED, 0),
    ("smite", FOE, HIM),
    ("sneak", PLACE | BEING, ALONE),
    ("sprint", PLACE | BEING, DAILY),
    ("stab", FOE, HIM),
    ("steal", BEING | TO_TAKE, 0),
    ("strike", FOE, HIM),
    ("swim", PLACE, DAILY),
    ("swing", FOE, 0),
    ("tackle", FOE, HIM),
    ("threaten", BEING, 0),
    ("throw", FOE, DAILY),
    ("thrust", FOE, 0),
    ("tiptoe", PLACE | BEING, ALONE),
    ("track", BEING, 0),
    ("vault", PLACE, 0),
];

/// What is barred, or opened.
const DOORS: &str = "door gate lock padlock chain chains shackles manacles hatch lid seal barricade portcullis trapdoor chest \
    strongbox lockbox barrel crate";

const LOCKS: &str = "lock padlock pocket pockets";

/// Words of everyday life, of habit, of other times and of chat.
const EVERYDAY: &str = "ago yesterday tomorrow later usually always often never sometimes rarely normally typically occasionally \
    regularly recently really literally basically honestly actually almost nearly accidentally every everyday when whenever \
    unless if why how whether wonder think should could would might monday tuesday wednesday thursday friday saturday sunday \
    weekday weekend week month year years summer winter autumn holiday vacation birthday christmas childhood night-shift job jobs \
    work works working career corporate business company team boss bosses manager colleague coworker office meeting project \
    client customer salary living school class classes homework exam test college university teacher gym workout marathon jog \
    jogging race bike bicycle bus train subway metro taxi uber airport highway traffic car cars drive driving phone email inbox \
    laptop computer keyboard screen pc code bug server software app website internet online wifi browser button game games gaming \
    gamer videogame level lane jungler healer tank nexus lobby ranked match stats movie movies film netflix series episode season \
    stream twitch youtube tiktok instagram twitter reddit discord facebook song songs album music band concert playlist minecraft \
    skyrim zelda mario fortnite valorant league elden ps5 xbox nintendo steam deck pizza coffee beer lunch dinner breakfast \
    groceries supermarket mall kitchen fridge bathroom shower couch sofa tv mom mum mommy dad daddy parent parents wife husband \
    girlfriend boyfriend kid kids son daughter baby puppy neighbor neighbour landlord rent tax taxes debt bill bills money budget \
    price prices market stock stocks shares crypto vote election politics feelings emotions conclusion conclusions opportunities \
    lol lmao lmfao haha hahaha rofl tbh imo btw irl ngl fr omg wtf xd mailman postman parcel package cops ball football soccer \
    basketball tennis photoshop excel remote charger glasses wallet socks queue photo photos picture pictures camera video videos gun shark bandwagon";

/// What is struck, cast, drawn, killed or broken in a manner of speaking only.
const FIGURES: &str = "deal bargain balance pose chord nerve doubt vote glance glimpse look eye eyes net shade fit tantrum time vibe \
    mood buzz ice news bread record habit line conclusion attention crowd thunder heart show spotlight joke conversation chat talk";

/// What may follow the name of a thing without making it a part of another name, as in "guard rail".
const AFTER: &str = "with without in at by from to on over through into onto behind under underneath beneath below above beside near \
    nearby next past across around along off up down out against towards toward inside outside between among who that which \
    whose for again now instead first too there here using one once twice is not";

/// Endings of abstract nouns.
const ABSTRACT: [&str; 11] = ["ness", "ism", "ity", "ities", "ment", "ments", "tion", "tions", "sion", "ance", "ence"];

static OPENING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:ok|okay|alright|so|now|then|and|well|next)[,!]?\s+)*i(?P<to>['’]ll|\s+will|\s+shall|(?:['’]m|\s+am)\s+going\s+to|['’]m\s+gonna|\s+want\s+to|['’]d\s+like\s+to|\s+would\s+like\s+to)?(?P<am>['’]m|\s+am)?\s+(?P<try>(?:try|tried|attempt|attempted|manage|managed|decide|decided)\s+to\s+)?(?P<how>(?:(?:\p{L}+ly|just|then|also)\s+)*)(?P<verb>\p{L}+)(?P<rest>.*)$",
    )
});

static QUIET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"[?]|\blast\s+(?:night|week|month|year|summer|winter|time|session|game|weekend)\b|\bused\s+to\b|\bclimb\w*\s+the\s+walls\b|\blook\w*\s+(?:up\s+to|down\s+on|forward\s+to)\b",
    )
});

/// The kinds of every word of the scene.
struct Words {
    kinds: Vec<(u16, BTreeSet<&'static str>)>,
    own: BTreeSet<&'static str>,
    manner: BTreeSet<&'static str>,
    figures: BTreeSet<&'static str>,
    after: BTreeSet<&'static str>,
    everyday: BTreeSet<&'static str>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let set = |list: &'static str| list.split_whitespace().collect::<BTreeSet<_>>();
    let kinds = [
        (BEING, BEINGS),
        (FABLED_PLACE, FABLED),
        (COMMON_PLACE, COMMON),
        (ON_ONE, GEAR),
        (TO_TAKE, LOOT),
        (MAGIC, SPELLS),
        (BARRED, DOORS),
        (LOCKED, LOCKS),
    ];
    Words {
        kinds: kinds.map(|(kind, list)| (kind, set(list))).into(),
        own: set(OWN),
        manner: set(MANNER),
        figures: set(FIGURES),
        after: set(AFTER),
        everyday: set(EVERYDAY),
    }
});

impl Words {
    /// The kinds of a noun, and whether it stands in the plural.
    fn kinds(&self, word: &str) -> (u16, bool) {
        let word = word.strip_suffix("'s").unwrap_or(word);
        let of = |word: &str| {
            self.kinds.iter().filter(|(_, words)| words.contains(word)).fold(0, |all, (kind, _)| all | kind)
        };
        let singular = word.strip_suffix("es").map(of).filter(|kinds| *kinds > 0);
        let singular = singular.or_else(|| word.strip_suffix('s').map(of)).unwrap_or(0);
        let plural = singular > 0 || ["men", "ves", "ies"].iter().any(|ending| word.ends_with(ending));
        (of(word) | singular, plural)
    }
}

/// A text that tells a deed in the first person and nothing else.
pub(super) fn read(text: &str) -> Option<Found> {
    if text.chars().count() > MOST_CHARS || is(&QUIET, &text.to_lowercase()) {
        return None;
    }
    let lower = text.to_lowercase().replace('’', "'");
    let captures = OPENING.as_ref()?.captures(&lower)?;
    let part = |name: &str| captures.name(name).map_or("", |found| found.as_str());
    let (verb, rest) = (part("verb"), part("rest"));
    let (form, takes, used) = VERBS.iter().find_map(|(name, takes, used)| Some((form(verb, name)?, *takes, *used)))?;
    let fits = match (captures.name("am"), captures.name("to").or(captures.name("try"))) {
        (Some(_), None) => form == Form::Ongoing,
        (None, Some(_)) => form == Form::Present,
        (None, None) => form != Form::Ongoing,
        (Some(_), Some(_)) => false,
    };
    let everyday = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        WORDS.everyday.contains(word) || word.strip_suffix('s').is_some_and(|word| WORDS.everyday.contains(word))
    };
    if !fits || rest.split_whitespace().chain(part("how").split_whitespace()).any(everyday) {
        return None;
    }
    clear(rest, form, takes, used).then(|| (CommandName::Do, json!({ "deed": text })))
}

/// Whether what follows the verb is of the scene.
fn clear(rest: &str, form: Form, takes: u16, used: u8) -> bool {
    let (object, more) = object(rest);
    let manner = |word: &&str| WORDS.manner.contains(*word) || word.ends_with("ly");
    if object.iter().all(manner) {
        return used & ALONE > 0 && !(more && used & DAILY > 0);
    }
    let kinds: Vec<(u16, bool)> = object.iter().map(|word| WORDS.kinds(word)).collect();
    let abstracts = |(word, (kinds, _)): (&&str, &(u16, bool))| {
        *kinds == 0 && word.chars().count() > 5 && ABSTRACT.iter().any(|ending| word.ends_with(ending))
    };
    let figurative = object.iter().any(|word| WORDS.figures.contains(word));
    if used & MEANT > 0 && !object.iter().any(|word| matches!(*word, "my" | "the")) {
        return false;
    }
    if figurative || object.iter().zip(&kinds).any(abstracts) || !is_own(&object) {
        return false;
    }
    let found = evidence(&object, &kinds) & takes;
    if used & HIM > 0 && object.first().is_some_and(|word| matches!(*word, "him" | "her" | "them" | "it")) {
        let rest = object.get(1..).unwrap_or_default();
        return rest.iter().all(|word| word.ends_with("ly")) || found & ON_ONE > 0;
    }
    let told = more && (form == Form::Past || used & DAILY > 0);
    if told { found & !(COMMON_PLACE | BARRED) > 0 } else { found > 0 }
}

/// The words up to the end of the first part of the sentence, and whether more follows.
fn object(rest: &str) -> (Vec<&str>, bool) {
    let mut object = vec![];
    let mut words = rest.split_whitespace();
    for word in words.by_ref() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if matches!(
            bare,
            "and" | "then" | "while" | "but" | "so" | "because" | "before" | "after" | "until" | "as" | "like"
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
        after.into_iter().any(|word| WORDS.own.contains(word) || WORDS.kinds(word).0 & (ON_ONE | MAGIC) > 0)
    })
}

/// The kinds of what is named: a single being with an article, and a common place only if one of them is meant.
fn evidence(object: &[&str], kinds: &[(u16, bool)]) -> u16 {
    let before = |at: usize, words: &[&str]| object.iter().take(at).rev().take(4).any(|word| words.contains(word));
    let definite = ["the", "this", "that", "these", "those", "his", "her", "their", "its"];
    let article = ["a", "an", "another", "one", "two", "three", "four", "five", "some", "both", "all"];
    let mut found = 0;
    for (at, (kinds, plural)) in kinds.iter().enumerate().filter(|(at, _)| is_head(object, kinds, *at)) {
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
    let last =
        (at..object.len()).take_while(|at| kinds.get(*at).is_some_and(|(kinds, _)| *kinds > 0)).last().unwrap_or(at);
    match object.get(last + 1) {
        None => true,
        Some(&"of") => kinds.iter().skip(last + 2).any(|(kinds, _)| *kinds > 0),
        Some(next) => {
            let possessive = object.get(last).is_some_and(|word| word.ends_with("'s"));
            possessive || next.ends_with("ly") || WORDS.after.contains(next)
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
        ] {
            assert_eq!(read(text), Some((CommandName::Do, json!({ "deed": text }))), "{text}");
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
