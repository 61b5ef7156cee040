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
fn invisible_characters_and_other_minus_signs_change_no_dice() {
    for (text, expected) in [
        ("roll 2d6\u{200b}", "2d6"),
        ("\u{feff}/roll 2d6 \u{200b}\n", "2d6"),
        ("roll 2d6 \u{2212} 1", "2d6 - 1"),
        ("roll d20 with advantage \u{2212} 1", "2d20kh1 - 1"),
    ] {
        assert_eq!(rolled(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn texts_are_the_commands_that_are_meant() {
    let rows = include_str!("commands.tsv").lines();
    for row in rows.filter(|row| !row.starts_with('#')) {
        let [text, name, arguments] = row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let (sign, found, given) = match read(text) {
            ParsedMessage::Clear(action) => ("", action.name(), action.arguments()),
            ParsedMessage::FirstPerson(action) => ("?", action.name(), action.arguments()),
            ParsedMessage::Wrong { command, problem } if !problem.is_empty() => {
                ("!", command, Value::Null)
            }
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(format!("{found}{sign}"), name, "{text}");
        let expected: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!(given, expected, "{text}");
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
    assert!(command("*waves*\n\n*sits down*").is_some());
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

#[test]
fn a_word_with_digits_hyphens_apostrophes_and_dots_is_a_name() {
    for name in [
        "R2D2",
        "Char1",
        "HK-47",
        "C-3PO",
        "D'Artagnan",
        "7of9",
        "T.J.",
        "x.y",
        "Zoë2",
    ] {
        for text in [
            format!("/sheet create {name}"),
            format!("/sheet create name: {name}"),
            format!("/sheet create --name {name} --level 2"),
            format!("create a character named {name}"),
            format!("create a character named {name} the droid"),
            format!("show the sheet of {name}"),
        ] {
            let found = command(&text).unwrap_or_else(|| panic!("{text}: {:?}", read(&text)));
            assert_eq!(found.1["name"], name, "{text}");
        }
    }
}

/// Players mean a change by a sign, but the number is set.
#[test]
fn a_number_of_a_sheet_has_no_sign() {
    for (text, part) in [
        ("/sheet update --hp +5", "hp"),
        ("/sheet update --hp -3", "hp"),
        ("/sheet update --level +1", "level"),
        ("/sheet update ac=+2", "ac"),
        ("/sheet set dex \u{2212}2", "dex"),
        ("/sheet create Bo dex: +3", "dex"),
    ] {
        let ParsedMessage::Wrong { problem, .. } = read(text) else {
            panic!("{text}: {:?}", read(text));
        };
        let sign = "is a whole number without a sign, which replaces the old one: --";
        assert_eq!(problem, format!("{part} {sign}{part} 15"), "{text}");
    }
}
