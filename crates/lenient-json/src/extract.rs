//! Searches a text for JSON values.

use super::reader::{self, GaveUp, LastNumber, ParsedJson};

/// A value found in a text.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub reading: ParsedJson,
    /// Its length in the text, in characters.
    pub length: usize,
}

/// The values found, and whether the search stopped at one that is nested too deep.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Search {
    pub found: Vec<Found>,
    pub too_deep: bool,
}

/// The places where a value may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Places {
    /// Every outermost object or list.
    Outermost,
    /// Every object, also inside values that were read already. Finds a reply that follows a stray
    /// bracket in prose.
    EveryObject,
}

/// The search stops after this number of values.
const MAX_FOUND: usize = 200;

/// Returns all objects and lists in the text, in order.
pub(crate) fn search(text: &str, places: Places, last_number: LastNumber) -> Search {
    let chars: Vec<char> = text.chars().collect();
    let fuel = reader::fuel(&chars);
    let mut search = Search::default();
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        let opens = match places {
            Places::Outermost => matches!(c, '{' | '['),
            Places::EveryObject => *c == '{',
        };
        if !opens {
            at += 1;
            continue;
        }
        match reader::read(&chars, at, last_number, &fuel) {
            Ok(reading) => {
                let next = match places {
                    Places::Outermost => reading.end,
                    Places::EveryObject => at + 1,
                };
                search.found.push(Found {
                    length: reading.end - at,
                    reading,
                });
                at = next.max(at + 1);
            }
            Err(GaveUp::NotJson) => at += 1,
            Err(GaveUp::TooDeep) => {
                search.too_deep = true;
                break;
            }
            Err(GaveUp::OutOfFuel) => break,
        }
        if search.found.len() >= MAX_FOUND {
            break;
        }
    }
    search
}

/// Returns the text after the model's thinking; empty if the thinking has no end.
pub fn without_thinking(text: &str) -> &str {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    for (open, close) in [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<reasoning>", "</reasoning>"),
        ("<|think|>", "<|/think|>"),
    ] {
        if let Some(rest) = text.strip_prefix(open) {
            return rest.split_once(close).map_or("", |(_, answer)| answer);
        }
        // Some templates put the opening tag into the prompt.
        if let Some((thoughts, answer)) = text.split_once(close)
            && !thoughts.trim_start().starts_with(['{', '[', '"', '`'])
            && !thoughts.contains(open)
        {
            return answer;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn values(text: &str) -> Vec<Value> {
        let search = search(text, Places::Outermost, LastNumber::Drop);
        search
            .found
            .into_iter()
            .map(|found| found.reading.value)
            .collect()
    }

    #[test]
    fn values_are_found_among_words() {
        assert_eq!(
            values("see [1] and {\"a\": \"}{\"}, {not exact}"),
            [json!([1]), json!({"a": "}{"})]
        );
        assert_eq!(values("nothing here"), [] as [Value; 0]);
    }

    #[test]
    fn thinking_is_not_the_answer() {
        assert_eq!(without_thinking("\n<think>{\"a\": 1}</think>\n{}"), "\n{}");
        assert_eq!(without_thinking("so {\"a\": 1}</think>{}"), "{}");
        assert_eq!(without_thinking("<think>still at it {}"), "");
        assert_eq!(
            without_thinking("{\"text\": \"</think>\"}"),
            "{\"text\": \"</think>\"}"
        );
    }

    #[test]
    fn hostile_text_takes_bounded_work() {
        let started = std::time::Instant::now();
        let units = "{|[{|\",'a'/*|{\"a\":\"|{a |[1,|{\"a\":[|'\"|/*|{\"|``` {|\\u|![|[|{a:";
        for unit in units.split('|') {
            let text = format!("{{{}(", unit.repeat(10_000));
            for places in [Places::Outermost, Places::EveryObject] {
                search(&text, places, LastNumber::Drop);
            }
        }
        assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
    }
}
