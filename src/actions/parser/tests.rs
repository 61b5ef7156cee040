mod sheets;

use super::*;

fn command(text: &str) -> Option<(CommandName, Value)> {
    match read(text) {
        ParsedMessage::Clear(action) => Some((action.name(), action.arguments())),
        _ => None,
    }
}

fn hint(text: &str) -> Option<String> {
    super::hint(text, &CommandName::ALL.iter().copied().collect())
}

fn rolled(text: &str) -> Option<String> {
    let (name, arguments) = command(text)?;
    (name == CommandName::Roll).then(|| arguments["expression"].as_str().unwrap().to_owned())
}

#[test]
fn a_number_in_two_words_is_not_taken_for_a_subtraction() {
    for text in [
        "roll twenty-one d6",
        "roll one-hundred d6",
        "roll two-d6",
        "roll twenty-five d10",
    ] {
        assert_eq!(rolled(text), None, "{text}");
    }
    assert_eq!(rolled("roll a twenty-sided die").as_deref(), Some("1d20"));
}

#[test]
fn dice_in_words_are_the_dice_that_are_meant() {
    for (text, expected) in [
        ("roll 3d8", "3d8"),
        ("Roll 2d6+3 for damage", "2d6+3"),
        ("2d10 + 4", "2d10 + 4"),
        ("could you roll five d10 plus 2 for me?", "5d10+2"),
        ("please roll seven 4-sided dice", "7d4"),
        ("throw two d12 and add 7", "2d12+7"),
        ("toss a coin", "1d2"),
        ("flip three coins please", "3d2"),
        ("roll a d20 with advantage", "2d20kh1"),
        ("roll d20 for initiative with advantage", "2d20kh1"),
        ("roll 2d6 for damage plus 3", "2d6+3"),
        ("/roll --expr 2d6+3", "2d6+3"),
        ("/act roll 2d6", "2d6"),
        ("roll d20 with disadvantage plus 4", "2d20kl1+4"),
        ("d20 at advantage", "2d20kh1"),
        ("roll 5d6 and drop the lowest", "5d6kh4"),
        ("roll 6d10 drop the 2 highest", "6d10kl4"),
        ("roll 4d8, keep the best 2", "4d8kh2"),
        ("roll stats: 4d6 drop lowest", "4d6kh3"),
        ("roll 4d6 drop lowest plus 1d4", "4d6kh3+1d4"),
        ("roll percentile dice", "1d100"),
        ("roll a couple of d8s", "2d8"),
        ("roll a die", "1d6"),
        ("roll two dice", "2d6"),
        ("roll 1d20 to hit the goblin", "1d20"),
        ("roll 1d20 to hit with disadv", "2d20kl1"),
        ("roll 2d6.", "2d6"),
        ("roll 2d6\u{200b}", "2d6"),
        ("\u{feff}/roll 2d6 \u{200b}\n", "2d6"),
        ("/roll 2d6+3.", "2d6+3"),
        ("roll -1d4+5", "-1d4+5"),
        ("roll 2d6 \u{2212} 1", "2d6 - 1"),
        ("roll d20 with advantage \u{2212} 1", "2d20kh1 - 1"),
        ("3d8!", "3d8!"),
        ("roll 2d6 # sneak attack", "2d6"),
        ("/roll 4d6kh3", "4d6kh3"),
        ("/roll two d6", "2d6"),
        ("roll exploding 3d6", "3d6e6"),
        ("/r 2d6", "2d6"),
        ("gimme a d20", "1d20"),
        ("roll 2d20, take the lower", "2d20kl1"),
        ("roll d20 with advantage and add 5", "2d20kh1+5"),
        ("2d6+3 fire damage", "2d6+3"),
        ("roll d20 adv", "2d20kh1"),
        ("roll d20+5 disadv", "2d20kl1+5"),
        ("!roll 2d6", "2d6"),
    ] {
        assert_eq!(rolled(text).as_deref(), Some(expected), "{text}");
    }
    for (text, times, dice) in [
        ("6#4d6kh3", 6, "4d6kh3"),
        ("6#1d20 adv", 6, "2d20kh1"),
        ("/roll 6#1d20 adv", 6, "2d20kh1"),
        ("!rr 6 4d6kh3", 6, "4d6kh3"),
        ("/roll 6#4d6", 6, "4d6"),
        ("4d6kh3 x6", 6, "4d6kh3"),
        ("roll 4d6kh3 x6", 6, "4d6kh3"),
        ("roll 6 times 4d6kh3", 6, "4d6kh3"),
        ("roll 4d6 drop lowest six times", 6, "4d6kh3"),
        ("roll stats: 4d6 drop lowest, 6 times", 6, "4d6kh3"),
        ("roll 2d6 twice", 2, "2d6"),
        ("please roll 1d20+5 three times for the wolves", 3, "1d20+5"),
    ] {
        let found = command(text).unwrap_or_else(|| panic!("{text}")).1;
        assert_eq!(
            (&found["times"], &found["expression"]),
            (&json!(times), &json!(dice)),
            "{text}"
        );
    }
    assert_eq!(
        command("roll 2d6 times 3").unwrap().1,
        json!({ "expression": "2d6*3" })
    );
    assert_eq!(
        command("roll 2d6+3 for damage").unwrap().1["label"],
        "damage"
    );
    assert_eq!(
        command("roll stats: 4d6 drop lowest").unwrap().1["label"],
        "stats"
    );
}

#[test]
fn clear_phrasings_are_the_commands_that_are_meant() {
    let rows = include_str!("commands.tsv").lines().skip(1);
    for row in rows {
        let [text, name, arguments] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let expected = (
            name.parse().unwrap(),
            serde_json::from_str(arguments).unwrap(),
        );
        assert_eq!(command(text), Some(expected), "{text}");
    }
}

#[test]
fn dice_in_the_first_person_are_offered_and_nothing_else_in_it_is() {
    use CommandName::*;
    for (text, name, arguments) in [
        ("I roll 2d6+3", Roll, json!({ "expression": "2d6+3" })),
        (
            "ok, I'll roll 1d20 to hit the goblin",
            Roll,
            json!({ "expression": "1d20", "label": "hit the goblin" }),
        ),
        ("i flip a coin", Roll, json!({ "expression": "1d2" })),
        ("we roll 2d6", Roll, json!({ "expression": "2d6" })),
        (
            "We attack: 2d6",
            Roll,
            json!({ "expression": "2d6", "label": "We attack" }),
        ),
        (
            "(I attack) 1d20+5",
            Roll,
            json!({ "expression": "1d20+5", "label": "I attack" }),
        ),
        (
            "[I sneak] d20",
            Roll,
            json!({ "expression": "d20", "label": "I sneak" }),
        ),
        (
            "I make a stealth check",
            Check,
            json!({ "skill": "stealth" }),
        ),
        (
            "can I get a perception check",
            Check,
            json!({ "skill": "perception" }),
        ),
        (
            "may I make a dex save?",
            Check,
            json!({ "ability": "dex", "save": true }),
        ),
        (
            "can I roll for initiative?",
            Check,
            json!({ "ability": "dex" }),
        ),
        ("can I roll 2d6?", Roll, json!({ "expression": "2d6" })),
        ("may I roll a d20?", Roll, json!({ "expression": "1d20" })),
        ("could I flip a coin?", Roll, json!({ "expression": "1d2" })),
        (
            "I will make a stealth check",
            Check,
            json!({ "skill": "stealth" }),
        ),
        ("I'm rolling 2d6", Roll, json!({ "expression": "2d6" })),
        ("I am rolling 2d6", Roll, json!({ "expression": "2d6" })),
        ("I'm gonna roll 2d6", Roll, json!({ "expression": "2d6" })),
        ("I gotta roll a d20", Roll, json!({ "expression": "1d20" })),
        (
            "I need to roll a dex save dc 12",
            Check,
            json!({ "ability": "dex", "save": true, "dc": 12 }),
        ),
        (
            "I have to make a wisdom save",
            Check,
            json!({ "ability": "wis", "save": true }),
        ),
        (
            "I am making a stealth check",
            Check,
            json!({ "skill": "stealth" }),
        ),
    ] {
        let ParsedMessage::FirstPerson(action) = read(text) else {
            panic!("{text}: {:?}", read(text))
        };
        assert_eq!((action.name(), action.arguments()), (name, arguments));
    }
    for text in [
        "I sneak past the guard",
        "I attack the goblin",
        "I'll climb the tower",
        "I swim in debt",
        "I rolled 2d6 yesterday",
        "I roll 18",
        "I take the key",
        "I never roll 2d6",
        "I don't want to roll 2d6",
        "I did not roll 2d6",
        "I roll 1d20 for stealth without advantage",
    ] {
        assert_eq!(read(text), ParsedMessage::Unclear, "{text}");
    }
}

/// Texts near a command that are none, or not clearly one.
#[test]
fn what_is_not_clear_is_no_command() {
    for text in include_str!("unclear.txt").lines() {
        assert_eq!(read(text), ParsedMessage::Unclear, "{text}");
    }
    for text in ["", "1d6\n1d8"] {
        assert_eq!(command(text), None, "{text:?}");
    }
}

#[test]
fn an_explicit_command_with_wrong_arguments_says_what_is_wrong() {
    for (text, name) in [
        ("/roll 3d", CommandName::Roll),
        ("/roll 6#1d20 bananas", CommandName::Roll),
        ("/roll 1d20 avd", CommandName::Roll),
        ("/rr 4d6", CommandName::Roll),
        (
            "/sheet create Thorin STR 16 DEX 12",
            CommandName::SheetCreate,
        ),
        ("/rr 6 bananas", CommandName::Roll),
        ("/sheet create old tom", CommandName::SheetCreate),
        ("/sheet create name:Razor str 14", CommandName::SheetCreate),
        (
            "/sheet create Pip, halfling bard 3, str 8 dex 16",
            CommandName::SheetCreate,
        ),
        ("/roll 2d6 ! Fire damage", CommandName::Roll),
        ("/roll two d6 ! fire damage", CommandName::Roll),
        ("/roll 2d6 ! please", CommandName::Roll),
        ("/roll 2d6!fire damage", CommandName::Roll),
        ("/roll 8d6 fire damage, halved", CommandName::Roll),
        ("/roll (adv) 1d20+5", CommandName::Roll),
        ("/roll 4d6 r2", CommandName::Roll),
        ("/rr 6 2d6 twice", CommandName::Roll),
        ("/roll 5d10>=7", CommandName::Roll),
        ("/roll 4d6 ! Hello World!", CommandName::Roll),
        ("/c per", CommandName::Check),
        ("/save stealth", CommandName::Check),
        ("/do climb, athletics DC 120", CommandName::Do),
        ("/check", CommandName::Check),
        ("/check everything", CommandName::Check),
        ("/sheet.create {\"level\": 3}", CommandName::SheetCreate),
        (
            "/sheet.create {\"name\": \"A\", \"level\": 99}",
            CommandName::SheetCreate,
        ),
        ("/memory.add", CommandName::MemoryAdd),
        ("/roll {\"expression\": 5}", CommandName::Roll),
        ("/roll 101#1d6", CommandName::Roll),
        ("/roll 0#1d6", CommandName::Roll),
        ("/roll 3#5000d6", CommandName::Roll),
        (
            "/roll {\"expression\": \"2#1d6\", \"times\": 2}",
            CommandName::Roll,
        ),
        (
            "/roll {\"expression\": \"1d6\", \"user\": \"u2\"}",
            CommandName::Roll,
        ),
    ] {
        assert!(
            matches!(read(text), ParsedMessage::Wrong { command, problem } if command == name && !problem.is_empty()),
            "{text}"
        );
    }
}

/// Further commands are in the text of the first one, whose answer shows them, or are refused.
#[test]
fn a_message_has_one_command() {
    for text in [
        "!r 1d20+5\n!r 2d6+3",
        "/check dex\n/roll 1d8",
        "/sheet list\n/roll 1d8",
        "/sheet create Aria\n/roll 2d6",
    ] {
        assert!(matches!(read(text), ParsedMessage::Wrong { .. }), "{text}");
    }
    for (text, name) in [
        ("/roll 1d20 # hit\n/roll 1d8", CommandName::Roll),
        ("/sheet show\n\n  /flip a coin", CommandName::SheetShow),
        ("/memory add x\n/roll 2d6", CommandName::MemoryAdd),
        ("/do waves\n/roll 2d6", CommandName::Do),
        ("ooc: brb, and /roll 2d6", CommandName::Ooc),
    ] {
        assert_eq!(command(text).map(|(name, _)| name), Some(name), "{text}");
    }
}

#[test]
fn what_is_not_understood_is_named() {
    for (text, named) in [
        ("1d20 avd", "\"avd\" was not expected here (at character 6)"),
        ("lance 2d6+3", "Write dice alone"),
        ("3d6 STR", "\"STR\" was not expected here"),
        ("2#d20+7 longbow", "Write dice alone"),
        (
            "Würfle bitte 1W20 mit Vorteil",
            "I read commands and English",
        ),
        (
            "!rol 1d20",
            "no command \"rol\" here, and nothing was done. Did you mean /roll?",
        ),
        ("/gmroll 1d20", "no command \"gmroll\""),
        ("! r 2d6+1", "Write dice alone"),
        ("!r2d6", "no command \"r2d6\""),
        ("!!2d6", "Write dice alone"),
        ("*nods* !c perc", "Send it alone: !c perc"),
        ("hello\n/roll 2d6", "Send it alone: /roll 2d6"),
        ("roll 2d6\nroll 3d6", "Write dice alone"),
        ("roll -d20", "bots differ in what a sign before dice means"),
        (
            "2d6 ! Fire",
            "exploding dice are 3d8!, a comment is 3d8 # comment",
        ),
    ] {
        assert_eq!(read(text), ParsedMessage::Unclear, "{text}");
        let hint = hint(text).unwrap_or_default();
        assert!(hint.contains(named), "{text}: {hint}");
    }
    for text in [
        "hello there",
        "/roll 1d20",
        "!!!",
        "/",
        "save the whales",
        "",
        "stealth check without advantage",
        "do you remember the password?",
        "death save",
        "I attack the goblin with my sword, AC 13",
    ] {
        assert_eq!(hint(text), None, "{text}");
    }
    for (text, named) in [
        (r#"/check {"skill":"stealth","skill":"arcana"}"#, "twice"),
        (
            "!s dxe",
            "\"dxe\" is no ability, skill or option of a check (did you mean dex?)",
        ),
        ("!c percpetion adv", "did you mean perception?"),
        (
            "!c per",
            "did you mean perception or performance or persuasion?",
        ),
        ("!c slight of hand dc 15", "did you mean sleight of hand?"),
        (
            "/roll stat:Stealth mode:dis label:Sneak past",
            "there is no argument stat, mode",
        ),
        (
            "/sheet create name:Zed color:red",
            "there is no argument color",
        ),
        (
            "/sheet create name:Zed level:1 level:2",
            "level is said twice",
        ),
        ("/sheet create name:Zed level:x", "level is a whole number"),
        ("/sheet create Thorin STR 16", "name: Aria class: rogue"),
        (
            "/check stealth dc high",
            "\"dc\" needs a number, not \"high\"",
        ),
        ("/check dex dis adv", "\"adv\" says the advantage twice"),
    ] {
        let ParsedMessage::Wrong { problem, .. } = read(text) else {
            panic!("{text}");
        };
        assert!(problem.contains(named), "{text}: {problem}");
    }
}

#[test]
fn a_hint_says_why_dice_were_not_rolled() {
    let alone = "Write dice alone, with a comment behind #, as in /roll 2d6+3 # fire";
    for (text, named) in [
        (
            "roll 2d6 and 1d8",
            "\"and\" was not expected here (at character 10)",
        ),
        ("roll 2d6; 3d6", alone),
        ("roll 2d6\nroll 3d6 twice", alone),
        ("roll 6#1d20 bananas", "\"bananas\" was not expected"),
        ("roll 6#1d20 bananas", alone),
        ("roll three d8, and two d6 for the twins and so on", alone),
        ("the wolf deals 2d4 + 2, the bear 2d6 plus 5 I think", alone),
        ("Fireball twice 8d6", alone),
        ("roll half a dozen d6", alone),
        ("roll twenty-one d6", alone),
        ("roll 3 exploding d6", alone),
        ("roll advantage on 1d20+5", alone),
        ("roll 2d6 adv", "an advantage needs exactly one d20"),
        ("roll d20 adv dis", "the advantage is said twice"),
        ("1d20 adv dis", "the advantage is said twice"),
        ("roll 10001d6", "at most 10000 dice"),
    ] {
        assert_eq!(read(text), ParsedMessage::Unclear, "{text}");
        let hint = hint(text).unwrap_or_default();
        assert!(hint.contains(named), "{text}: {hint}");
    }
}

#[test]
fn a_hint_names_only_commands_that_are_allowed() {
    let dice = [CommandName::Roll, CommandName::Help].into();
    for text in [
        "remember me",
        "insight",
        "I attack the goblin",
        "my dexterity score",
        "blah",
        "*nods* !c perc",
        "create a sheet",
        "death save",
        "forget the notes",
    ] {
        assert_eq!(super::hint(text, &dice), None, "{text}");
    }
    for text in ["/chek dex", "/remembr x", "/newchar Bo"] {
        let hint = super::hint(text, &dice).unwrap();
        let end = "here, and nothing was done. Say \"help\" to see what I can do.";
        assert!(hint.ends_with(end), "{text}: {hint}");
    }
    let memory = [CommandName::MemoryList].into();
    for (text, expected) in [
        ("roll 2d6 and 1d8", None),
        (
            "/rol 2d6",
            Some("There is no command \"rol\" here, and nothing was done."),
        ),
    ] {
        assert_eq!(super::hint(text, &memory).as_deref(), expected, "{text}");
    }
}

#[test]
fn a_command_that_lacks_its_text_says_how_it_is_written() {
    for (text, example) in [
        ("/memory add", "/memory add the duke hates dogs"),
        ("/notes search", "/memory search duke"),
        ("/forget", "/memory delete 3"),
        ("/sheet delete", "/sheet delete Aria"),
        ("/sheet use", "/sheet use Aria"),
        ("/sheet show name:", "/sheet show Aria"),
        ("/do", "/do climb the tower"),
        ("/ooc text:", "/ooc who brings snacks?"),
        ("/sheet update --name Bo", "/sheet update --level 4 --hp 21"),
        (
            "/sheet update class wizard",
            "/sheet update --hp 21 --class wizard",
        ),
    ] {
        let ParsedMessage::Wrong { problem, .. } = read(text) else {
            panic!("{text}: {:?}", read(text));
        };
        assert!(problem.contains(example), "{text}: {problem}");
    }
}

#[test]
fn every_pattern_compiles_and_is_used() {
    let sources = concat!(
        include_str!("mod.rs"),
        include_str!("rolls.rs"),
        include_str!("checks.rs"),
        include_str!("explicit.rs")
    );
    for row in PATTERNS.lines().filter(|line| !line.starts_with('#')) {
        let name = row.split_once('\t').unwrap().0;
        assert!(sources.contains(&format!("\"{name}\"")), "{name}");
    }
    let given = Regex::new(r#""((?:text|roll|check|explicit)\.[a-z_]+)""#).unwrap();
    for captures in given.captures_iter(sources) {
        assert!(!regex(captures.get(1).unwrap().as_str()).as_str().is_empty());
    }
}
