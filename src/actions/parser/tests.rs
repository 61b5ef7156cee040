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
        ("roll 3d8!?", "3d8!"),
        ("can you roll 3d6!?!", "3d6!"),
        ("roll 3d6?!", "3d6"),
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
            ParsedMessage::Wrong { command, problem } => {
                let is_named = !problem.is_empty() && problem.contains(arguments);
                assert!(is_named, "{text}: {problem}");
                ("!", command, Value::Null)
            }
            ParsedMessage::Unclear => panic!("{text}: it is not clear"),
        };
        assert_eq!(format!("{found}{sign}"), name, "{text}");
        if sign != "!" {
            let expected: Value = serde_json::from_str(arguments).unwrap();
            assert_eq!(given, expected, "{text}");
        }
    }
}

/// Texts near a command that are none, or not clearly one, with a part of the hint.
#[test]
fn what_is_not_clear_is_no_command() {
    for row in include_str!("unclear.txt").lines() {
        let (text, named) = row.split_once('\t').unwrap_or((row, ""));
        let text = &text.replace("\\n", "\n");
        assert_eq!(read(text), ParsedMessage::Unclear, "{text}");
        let hint = hint(text).unwrap_or_default();
        assert!(hint.contains(named), "{text}: {hint}");
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
fn other_texts_get_no_hint() {
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
