use super::*;

/// Returns the dice as `TIMES of EXPRESSION # COMMENT | WORDS`.
fn read(text: &str, place: Place) -> Option<String> {
    let read = written(text, place).ok()?;
    let times = read
        .times
        .map(|times| format!("{times} of "))
        .unwrap_or_default();
    let comment = read.comment.map(|comment| format!(" # {comment}"));
    let words = Some(read.words).filter(|words| !words.is_empty());
    let words = words.map(|words| format!(" | {words}")).unwrap_or_default();
    Some(format!(
        "{times}{}{}{words}",
        read.expression.text(),
        comment.unwrap_or_default()
    ))
}

#[test]
fn players_notation_is_translated_to_the_grammar() {
    for (text, expected) in [
        ("4d6kh3", "4d6kh3"),
        ("1d20-3 dis", "2d20kl1-3"),
        ("1d20+1d4 adv", "2d20kh1+1d4"),
        ("d20 + 5 with advantage", "2d20kh1 + 5"),
        ("d20 with advantage + 5", "2d20kh1 + 5"),
        ("adv d20", "2d20kh1"),
        ("d20, at disadvantage", "2d20kl1"),
        ("(1d20, 5)", "(1d20, 5)"),
        ("-1d4+5", "-1d4+5"),
        ("-d200", "-d200"),
        ("2d6.", "2d6"),
        ("2d6+3 ...", "2d6+3"),
        ("max(d20, 10) adv", "max(2d20kh1, 10)"),
        ("4d6 k3", "4d6kh3"),
        ("4d6k3", "4d6kh3"),
        ("d%k1+2d20K1", "d%kh1+2d20kh1"),
        ("10d6k1k2", "10d6k1k2"),
        ("4D6KH3 X2", "2 of 4D6KH3"),
        ("1D20 Adv", "2d20kh1"),
        ("4d6 d1", "4d6dl1"),
        ("3d6 !", "3d6!"),
        ("3d6 ! + 2 # fire", "3d6! + 2 # fire"),
        ("5d6+2 k4", "5d6kh4+2"),
        ("2d20+5 d1", "2d20dl1+5"),
        ("4d6[fire]+1 d1", "4d6dl1[fire]+1"),
        ("3d6 ie6", "3d6e6"),
        ("4d6k3+2 d1", "4d6kh3+2 | d1"),
        ("1d8+2d6+1 k1", "1d8+2d6+1 | k1"),
        ("repeat (4d6k3, 6)", "6 of 4d6kh3"),
        ("4d6 kh3 + 2", "4d6kh3 + 2"),
        ("(2d6 k1, 1d8)kh1", "(2d6kh1, 1d8)kh1"),
        ("6#4d6kh3", "6 of 4d6kh3"),
        ("6 # 4d6 kh3", "6 of 4d6kh3"),
        ("6x4d6", "6 of 4d6"),
        ("3 × (1d8+2)", "3 of (1d8+2)"),
        ("4d6kh3 x6", "6 of 4d6kh3"),
        ("4d6kh3 x 6 # stats", "6 of 4d6kh3 # stats"),
        (
            "6#1d20 adv # for his friends",
            "6 of 2d20kh1 # for his friends",
        ),
        ("2d6max3x2", "2 of 2d6max3"),
        ("0#1d6", "0 of 1d6"),
        ("repeat(1d4+1, 3)", "3 of 1d4+1"),
        ("[[2d6+4]] piercing", "2d6+4 | piercing"),
        ("d20 + 3 \\ hiding", "d20 + 3 # hiding"),
        ("4d6 ! Hello", "4d6 | ! Hello"),
        ("2d20kh1>=15", "2d20kh1>=15"),
        ("1d100<=65", "1d100<=65"),
        ("(5d10)>=7", "(5d10)>=7"),
        ("2d6 # 3x4", "2d6 # 3x4"),
        ("2d6 # fire; then ice", "2d6 # fire; then ice"),
        ("1d20+5 dis sneaky attack", "2d20kl1+5 | sneaky attack"),
        ("1d20 avd", "1d20 | avd"),
        ("1d20 d6", "1d20 | d6"),
        ("4d6 r2", "4d6 | r2"),
        ("2d6 ! \"Hi\"", "2d6 | ! \"Hi\""),
        ("4d6 d4", "4d6 | d4"),
        ("2d6 six of them", "2d6 | six of them"),
        ("6 4d6", "6 | 4d6"),
        ("20 d6", "20 | d6"),
    ] {
        assert_eq!(read(text, Place::Bare).as_deref(), Some(expected), "{text}");
    }
    for (text, expected) in [
        ("10#2w6", "10 of 2d6"),
        ("w20+1 adv", "2d20kh1+1"),
        ("6 4d6 k3", "6 of 4d6kh3"),
        ("20 d6", "20 | d6"),
    ] {
        assert_eq!(
            read(text, Place::Explicit).as_deref(),
            Some(expected),
            "{text}"
        );
    }
}

#[test]
fn what_cannot_be_translated_is_refused() {
    for text in [
        "2d20 adv",
        "1d20+1d20 adv",
        "1d20 adv dis",
        "4d6 adv",
        "1d20+5 ro1 adv",
        "2d6 + bananas",
        "6#1d20 x2",
        "2#3#4d6",
        "6#six of them",
        "x6",
        "repeat(1d6)",
        "[[1d6]",
        "5d10>=7",
        "5d10x10",
        "4d6foo",
        "2d6!fire",
        "+d20",
        "-1d20+5",
        "1d20 + 5 # hit; 2d12 + 3 # damage",
        "",
    ] {
        assert_eq!(read(text, Place::Explicit), None, "{text}");
    }
    assert_eq!(read("10w40", Place::Bare), None);
    for (text, expected) in [
        ("1d20 avd", "\"avd\" was not expected here (at character 6)"),
        (
            "[[2d6]] [[1d8]]",
            "\"[[1d8]]\" was not expected here (at character 9)",
        ),
        (
            "3d6 > 10",
            "bots differ in what 3d6 > 10 means: (3d6) > 10 compares the total, and the dice that are > 10 are not counted (at character 9)",
        ),
        (
            "3d6!=6",
            "(3d6)!=6 compares the total, and exploding dice are 3d6e6 (at character 7)",
        ),
        ("2d6 ! fire", "a comment is 3d8 # comment (at character 5)"),
        (
            "d20+5 ! sneak",
            "a comment is 3d8 # comment (at character 7)",
        ),
        (
            "4d6 r2",
            "ro2 takes each 2, ro<=2 others too (at character 5)",
        ),
        ("4d6 ir2", "rr<=2 others too (at character 5)"),
        ("3d6 ie5", "!>=5 others too (at character 5)"),
    ] {
        let read = written(text, Place::Bare).and_then(Written::complete);
        let error = read.unwrap_err();
        assert!(error.to_string().ends_with(expected), "{text}: {error}");
    }
}

#[test]
fn dice_inside_a_text_are_seen() {
    for text in [
        "the wolf deals 2d4 + 2, the bear flees",
        "(2d6, I think)",
        "at level 6 2d8",
        "lance 1W20+3.",
    ] {
        assert!(crate::is_inside(text), "{text}");
    }
    for text in ["a -1d6 is no die", "nothing 3 + 4", "no die in the shop"] {
        assert!(!crate::is_inside(text), "{text}");
    }
}
