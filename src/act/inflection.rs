//! English verbs in the forms in which players write them: "hide", "hides", "hiding", "hid".

/// How a verb stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// "hide", "hides".
    Present,
    /// "hiding".
    Ongoing,
    /// "hid", "hidden".
    Past,
}

/// The pasts that no rule gives, of the verbs of deeds.
const IRREGULAR: [(&str, &[&str]); 27] = [
    ("bite", &["bit", "bitten"]),
    ("break", &["broke", "broken"]),
    ("cast", &["cast"]),
    ("creep", &["crept"]),
    ("cut", &["cut"]),
    ("draw", &["drew", "drawn"]),
    ("fight", &["fought"]),
    ("flee", &["fled"]),
    ("fling", &["flung"]),
    ("hide", &["hid", "hidden"]),
    ("hit", &["hit"]),
    ("leap", &["leapt"]),
    ("read", &["read"]),
    ("ride", &["rode", "ridden"]),
    ("run", &["ran"]),
    ("shoot", &["shot"]),
    ("sing", &["sang", "sung"]),
    ("slay", &["slew", "slain"]),
    ("sling", &["slung"]),
    ("sneak", &["snuck"]),
    ("spring", &["sprang", "sprung"]),
    ("steal", &["stole", "stolen"]),
    ("strike", &["struck", "stricken"]),
    ("swim", &["swam", "swum"]),
    ("swing", &["swung"]),
    ("throw", &["threw", "thrown"]),
    ("thrust", &["thrust"]),
];

/// The form in which `word` is `verb`; `None` if it is another word. Both in lower case. What is the same in the present and
/// in the past ("hit") is the present.
pub fn form(word: &str, verb: &str) -> Option<Form> {
    if word == verb {
        return Some(Form::Present);
    }
    if IRREGULAR
        .iter()
        .any(|(known, pasts)| *known == verb && pasts.contains(&word))
    {
        return Some(Form::Past);
    }
    let without = |ending: char| verb.strip_suffix(ending);
    if let Some(Some(ending)) = without('e').map(|stem| word.strip_prefix(stem)) {
        match ending {
            "es" => return Some(Form::Present),
            "ed" => return Some(Form::Past),
            "ing" => return Some(Form::Ongoing),
            _ => {}
        }
    }
    if let Some(Some(ending)) = without('y').map(|stem| word.strip_prefix(stem)) {
        match ending {
            "ies" => return Some(Form::Present),
            "ied" => return Some(Form::Past),
            _ => {}
        }
    }
    let ending = word.strip_prefix(verb)?;
    // "stabbed": the last letter stands twice.
    let ending = verb
        .chars()
        .last()
        .and_then(|last| ending.strip_prefix(last))
        .unwrap_or(ending);
    match ending {
        "s" | "es" => Some(Form::Present),
        "ed" => Some(Form::Past),
        "ing" => Some(Form::Ongoing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_known_in_all_its_forms_and_no_other_word_is_taken_for_it() {
        for (verb, words, expected) in [
            ("hide", vec!["hide", "hides"], Some(Form::Present)),
            ("hide", vec!["hid", "hidden"], Some(Form::Past)),
            ("hide", vec!["hiding"], Some(Form::Ongoing)),
            ("stab", vec!["stabbed"], Some(Form::Past)),
            ("stab", vec!["stabbing"], Some(Form::Ongoing)),
            ("pry", vec!["pries"], Some(Form::Present)),
            ("pry", vec!["pried"], Some(Form::Past)),
            ("leap", vec!["leapt", "leaped"], Some(Form::Past)),
            ("search", vec!["searches"], Some(Form::Present)),
            ("hit", vec!["hit", "hits"], Some(Form::Present)),
            ("hide", vec!["hideous", "hideout", "hi", "hidalgo"], None),
            ("stab", vec!["stable", "sta", "stabs-"], None),
            ("look", vec!["lookout", "loo"], None),
        ] {
            for word in words {
                assert_eq!(form(word, verb), expected, "{word}");
            }
        }
    }
}
