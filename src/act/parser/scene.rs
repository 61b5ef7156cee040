//! What a scene is made of: the words by which a deed is known, and those by which it is none.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// What something of the scene is, as bits of a set.
pub(super) const BEING: u16 = 1;
pub(super) const FABLED_PLACE: u16 = 1 << 1;
pub(super) const COMMON_PLACE: u16 = 1 << 2;
pub(super) const ON_ONE: u16 = 1 << 3;
pub(super) const TO_TAKE: u16 = 1 << 4;
pub(super) const MAGIC: u16 = 1 << 5;
pub(super) const BARRED: u16 = 1 << 6;
pub(super) const LOCKED: u16 = 1 << 7;
pub(super) const PLACE: u16 = FABLED_PLACE | COMMON_PLACE;
pub(super) const FOE: u16 = BEING | ON_ONE;

/// Whom adventurers meet.
const BEINGS: &str = "champion goblin hobgoblin bugbear orc ogre troll giant dragon wyrm wyvern drake kobold gnoll lizardfolk skeleton zombie \
    ghoul ghost wraith wight specter spectre lich vampire mummy undead demon devil imp fiend angel elemental golem \
    gargoyle construct basilisk manticore chimera hydra griffon griffin owlbear beholder flayer mimic ooze slime \
    cube kraken minotaur centaur satyr harpy medusa gorgon naga sphinx unicorn pegasus werewolf worg wolf wolves \
    bear boar lion tiger panther spider scorpion snake serpent rat bat crow raven beast monster creature monstrosity \
    abomination aberration horror enemy enemies foe opponent attacker assailant intruder guard guardsman guardsmen \
    guardian sentry sentinel watchman watchmen warden jailer jailor gaoler soldier knight paladin cleric priest \
    priestess acolyte monk cultist fanatic wizard mage sorcerer sorceress warlock witch necromancer druid ranger \
    archer warrior fighter barbarian berserker rogue thief thieves assassin bandit brigand outlaw highwayman \
    highwaymen robber smuggler pirate raider marauder mercenary mercenaries thug ruffian gladiator duelist scout spy \
    king queen prince princess duke duchess baron baroness countess lord lady noble nobleman noblewoman courtier \
    emperor empress merchant innkeeper barkeep bartender blacksmith shopkeeper villager peasant farmer traveler \
    traveller stranger prisoner captive hostage captain leader chief chieftain warlord elder hermit oracle elf elves \
    dwarf dwarves halfling gnome tiefling dragonborn drow fairy pixie sprite treant dryad nymph mermaid siren horse \
    hound";

/// Places that hardly anybody speaks of who does not play.
const FABLED: &str = "castle fortress citadel stronghold dungeon crypt tomb catacomb sepulcher sepulchre mausoleum sarcophagus coffin \
    lair cave cavern grotto chasm abyss crevasse ravine gorge moat rampart battlement parapet drawbridge portcullis \
    palisade throne altar shrine temple sanctum chapel cathedral monastery abbey tavern inn camp campfire encampment \
    guardhouse barracks armory armoury treasury vault dais obelisk monolith pillar column colonnade statue fountain \
    brazier pedestal plinth pit pitfall ledge cliff cliffside precipice cellar sewer tunnel passage passageway \
    corridor chamber antechamber hall hallway alcove niche archway balcony belfry tower turret spire hayloft \
    haystack barrel crate tapestry bookcase trapdoor shadow shadows underbrush undergrowth thicket bramble swamp bog \
    marsh ruin ruins rubble debris boulder wagon cart carriage caravan galley mast rigging trap tripwire lever rune \
    barricade chandelier";

/// Places of which everybody speaks: they count if one of them is meant, "the door".
const COMMON: &str = "door gate doorway entrance wall window roof rooftop chimney stairs staircase stairway steps ladder rope fence \
    hedge bridge river stream creek lake pond water waterfall forest woods tree bush bushes rock rocks hill slope \
    mountain mountainside valley alley alleyway street rooftops courtyard garden ditch trench gap hole opening house \
    hut cabin barn table desk curtain curtains wardrobe chest lock room area body corpse ship boat dock pier";

/// What adventurers carry and use.
const GEAR: &str = "sword longsword shortsword greatsword broadsword scimitar rapier sabre saber katana blade dagger dirk stiletto \
    axe handaxe battleaxe greataxe mace morningstar flail warhammer maul club quarterstaff staff spear javelin pike \
    halberd glaive trident lance whip bow longbow shortbow crossbow arrow bolt quiver sling dart shuriken shield \
    buckler armor armour helmet gauntlet cloak hood wand scepter sceptre orb amulet talisman grimoire spellbook \
    scroll potion elixir vial flask torch lantern grapple grappling caltrops lockpick lockpicks weapon weapons fist \
    fists claws fangs";

/// What adventurers take.
const LOOT: &str = "key keys purse pouch coin coins gold gem gems jewel jewels ruby emerald diamond crown tiara ring necklace idol \
    relic artifact artefact treasure loot map letter chalice goblet satchel strongbox lockbox";

/// What is cast.
const SPELLS: &str = "spell cantrip fireball firebolt bolt missile missiles eldritch lightning thunderwave thunderbolt frostbite \
    invisibility entangle thaumaturgy prestidigitation wounds hex curse smite hideous counterspell polymorph \
    scorching chromatic guiding sacred vicious mockery faerie";

/// What is barred, or opened.
const DOORS: &str = "sarcophagus coffin door gate lock padlock chain chains shackles manacles hatch lid seal barricade portcullis trapdoor chest \
    strongbox lockbox barrel crate";

/// What is picked.
const LOCKS: &str = "lock padlock pocket pockets";

/// What may be one's own in a deed, beside gear.
const OWN: &str = "breath back hand hands foot feet head face eyes teeth shoulder shoulders knee knees elbow way companion \
    companions party friends allies ally comrades hiding cover";

/// Words that say only how or whereto.
const MANNER: &str = "up down back away forward forwards backwards aside sideways past left right around across over through in out \
    inside outside closer ahead along again now at once to the side as i can possible slow fast low high still hard";

/// Words of everyday life, of habit, of other times and of chat.
const EVERYDAY: &str = "daily weekly monthly yearly store ago yesterday tomorrow later usually always often never sometimes rarely normally typically occasionally \
    regularly recently really literally basically honestly actually almost nearly accidentally every everyday when \
    whenever unless if why how whether wonder think should could would might monday tuesday wednesday thursday \
    friday saturday sunday weekday weekend week month year years summer winter autumn holiday vacation birthday \
    christmas childhood job jobs work works working career corporate business company team boss bosses manager \
    colleague coworker office meeting project client customer salary living school class classes homework exam test \
    college university teacher gym workout marathon jog jogging race bike bicycle bus train subway metro taxi uber \
    airport highway traffic car cars drive driving phone email inbox laptop computer keyboard screen pc code bug \
    server software app website internet online wifi browser button game games gaming gamer videogame level lane \
    jungler healer tank nexus lobby ranked match stats movie movies film netflix series episode season stream twitch \
    youtube tiktok instagram twitter reddit discord facebook song songs album music band concert playlist minecraft \
    skyrim zelda mario fortnite valorant league elden ps5 xbox nintendo steam deck pizza coffee beer lunch dinner \
    breakfast groceries supermarket mall kitchen fridge bathroom shower couch sofa tv mom mum mommy dad daddy parent \
    parents wife husband girlfriend boyfriend kid kids son daughter baby puppy neighbor neighbour landlord rent tax \
    taxes debt bill bills money budget price prices market stock stocks shares crypto vote election politics \
    feelings emotions conclusion conclusions opportunities lol lmao lmfao haha hahaha rofl tbh imo btw irl ngl fr \
    omg wtf xd mailman postman parcel package cops ball football soccer basketball tennis photoshop excel remote \
    charger glasses wallet socks queue photo photos picture pictures camera video videos gun shark bandwagon";

/// What is struck, cast, drawn, killed or broken in a manner of speaking only.
const FIGURES: &str = "deal bargain balance pose chord nerve doubt vote glance glimpse shade fit tantrum time vibe mood buzz ice news \
    bread record habit line conclusion attention crowd thunder show spotlight joke conversation chat talk";

/// What may follow the name of a thing without making it a part of another name, as in "guard rail".
const AFTER: &str = "away open shut apart with without in at by from to on over through into onto behind under underneath beneath below above beside near \
    nearby next past across around along off up down out against towards toward inside outside between among who \
    that which whose for again now instead first too there here using one once twice is not";

/// Endings of abstract nouns.
const ABSTRACT: [&str; 11] = [
    "ness", "ism", "ity", "ities", "ment", "ments", "tion", "tions", "sion", "ance", "ence",
];

/// The kinds of every word of the scene.
pub(super) struct Words {
    kinds: Vec<(u16, BTreeSet<&'static str>)>,
    own: BTreeSet<&'static str>,
    manner: BTreeSet<&'static str>,
    figures: BTreeSet<&'static str>,
    after: BTreeSet<&'static str>,
    everyday: BTreeSet<&'static str>,
}

pub(super) static WORDS: LazyLock<Words> = LazyLock::new(|| {
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
    /// What a character has, beside gear.
    pub(super) fn is_own(&self, word: &str) -> bool {
        self.own.contains(word) || self.kinds(word).0 & (ON_ONE | MAGIC) > 0
    }

    pub(super) fn is_manner(&self, word: &str) -> bool {
        self.manner.contains(word) || word.ends_with("ly")
    }

    pub(super) fn is_figure(&self, word: &str) -> bool {
        self.figures.contains(word)
    }

    /// Whether the name of a thing is over before this word.
    pub(super) fn ends_a_name(&self, word: &str) -> bool {
        self.after.contains(word) || word.ends_with("ly")
    }

    pub(super) fn is_everyday(&self, word: &str) -> bool {
        self.everyday.contains(word)
            || word
                .strip_suffix('s')
                .is_some_and(|word| self.everyday.contains(word))
    }

    /// Whether a word is abstract by its ending, and none of the scene.
    pub(super) fn is_abstract(&self, word: &str) -> bool {
        let ends = ABSTRACT.iter().any(|ending| word.ends_with(ending));
        ends && word.chars().count() > 5 && self.kinds(word).0 == 0
    }

    /// The kinds of a noun, and whether it stands in the plural.
    pub(super) fn kinds(&self, word: &str) -> (u16, bool) {
        let word = word.strip_suffix("'s").unwrap_or(word);
        let of = |word: &str| {
            self.kinds
                .iter()
                .filter(|(_, words)| words.contains(word))
                .fold(0, |all, (kind, _)| all | kind)
        };
        let singular = word.strip_suffix("es").map(of).filter(|kinds| *kinds > 0);
        let singular = singular
            .or_else(|| word.strip_suffix('s').map(of))
            .filter(|kinds| *kinds > 0);
        let singular = singular
            .or_else(|| word.strip_suffix("ies").map(|stem| of(&format!("{stem}y"))))
            .unwrap_or(0);
        let plural = singular > 0
            || ["men", "ves", "ies"]
                .iter()
                .any(|ending| word.ends_with(ending));
        (of(word) | singular, plural)
    }
}
