//! Tests the names and the numbers of sheets.

use super::*;

#[test]
fn a_sheet_is_made_for_who_has_a_name() {
    for (text, name) in [
        ("create sheet Aria", "Aria"),
        ("create character Lia", "Lia"),
        ("new pc Kay", "Kay"),
    ] {
        let (command, arguments) = command(text).unwrap();
        assert_eq!(
            (command, &arguments["name"]),
            (CommandName::SheetCreate, &json!(name)),
            "{text}"
        );
    }
    for text in [
        "create a sheet",
        "make a sheet of paper",
        "make a character sheet",
        "create character tomorrow",
    ] {
        assert_eq!(command(text), None, "{text}");
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
    assert_eq!(command("create character BB-8").unwrap().1["name"], "BB-8");
    assert_eq!(
        command("create a character named Aria.").unwrap().1["name"],
        "Aria"
    );
    assert_eq!(
        command("/sheet create \"Agent 47\"").unwrap().1["name"],
        "Agent 47"
    );
    assert_eq!(
        command("/sheet create name: \"47\"").unwrap().1["name"],
        "47"
    );
    for text in [
        "/sheet create 47",
        "/sheet create name: 47",
        "/sheet create +5",
        "/sheet create Thorin STR16 DEX12",
    ] {
        assert!(matches!(read(text), ParsedMessage::Wrong { .. }), "{text}");
    }
    for text in ["create a character named 47", "make a sheet for dnd5e"] {
        assert_eq!(read(text), ParsedMessage::Unclear, "{text}");
    }
}

/// Players mean a change by a sign, but the number is set.
#[test]
fn what_stands_in_quotation_marks_is_no_option() {
    for text in [
        r#"/sheet update notes: "he has hp: 12""#,
        "/sheet update notes: “he has hp: 12”",
    ] {
        let (name, arguments) = command(text).unwrap();
        assert_eq!(name, CommandName::SheetUpdate);
        assert_eq!(arguments, json!({ "notes": "he has hp: 12" }), "{text}");
    }
}

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
    assert_eq!(
        command("/sheet set hp to 3").unwrap().1,
        json!({ "hitPoints": { "current": 3 } })
    );
    assert_eq!(
        command("/sheet update --hp=15").unwrap().1,
        json!({ "hitPoints": { "current": 15 } })
    );
}

#[test]
fn a_polite_question_is_a_request() {
    use CommandName::SheetShow;
    for text in [
        "can you show the sheet of Aria?",
        "please show the sheet of Aria ?",
    ] {
        let expected = (SheetShow, json!({ "name": "Aria" }));
        assert_eq!(command(text), Some(expected), "{text}");
    }
    assert!(command("can you create a character named Rufus?").is_some());
}
