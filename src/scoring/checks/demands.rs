//! Counts in an output what a request demands of the form of its answer.

use crate::domain::{AgentReport, Counted, Demand};
use crate::text::{self, clip, collapse_whitespace, count_words, read_markdown, sentences};

/// True if the output satisfies a demand, by all of its deliverables together or by one of them.
/// Without deliverables its summary counts, and for a plain text the whole text.
pub(in crate::scoring) fn satisfies(demand: Demand, report: &AgentReport, is_text: bool) -> bool {
    let (steps, summary) = (&report.steps_or_deliverables, &report.answer_summary);
    let parts = if steps.is_empty() { summary } else { steps };
    if is_text {
        return demand.takes(count(demand.counted, &report.reasoning));
    }
    let whole = parts.join("\n\n");
    let together = match demand.counted {
        Counted::Items if parts.len() > 1 => parts.len(),
        counted => count(counted, &whole),
    };
    demand.takes(together)
        || parts
            .iter()
            .any(|part| demand.takes(count(demand.counted, part)))
}

fn count(counted: Counted, text: &str) -> usize {
    let tidied = collapse_whitespace(clip(text, text::MAX_BYTES));
    let text = tidied.trim();
    let fenced = |is: fn(&text::Block) -> bool| {
        read_markdown(text)
            .blocks
            .iter()
            .filter(|block| is(block))
            .count()
    };
    match counted {
        Counted::Items => {
            let marked = text.lines().filter(|line| is_marked(line)).count();
            read_markdown(text).items.len().max(marked)
        }
        Counted::Words => count_words(text),
        Counted::Sentences => sentences(text).len(),
        Counted::Characters => text.chars().count(),
        Counted::Json if is_json(text) => 1,
        Counted::Json => fenced(|block| is_json(&block.code)),
        Counted::Code => fenced(|_| true),
    }
}

/// True for a line with a mark of lists that Markdown does not have.
fn is_marked(line: &str) -> bool {
    line.trim_start()
        .starts_with(|c| matches!(c, '•' | '・' | '①'..='⓿'))
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoring::report_from_text;

    fn demand(counted: Counted, at_least: Option<u32>, at_most: Option<u32>) -> Demand {
        Demand {
            counted,
            at_least,
            at_most,
        }
    }

    #[test]
    fn a_plain_text_is_counted_in_any_language() {
        let of =
            |demand, text: &str| satisfies(demand, &report_from_text("solver", "", text), true);
        let three = demand(Counted::Items, Some(3), Some(3));
        assert!(of(three, "Drei Namen:\n- Anna\n- Bert\n- Carla"));
        assert!(!of(three, "Drei Namen:\n- Anna\n- Bert"));
        assert!(of(three, "・猫\n・犬\n・鳥") && of(three, "①猫\n②犬\n③鳥"));
        let short = demand(Counted::Words, None, Some(5));
        assert!(of(short, "Nimm den Zug.") && !of(short, "Nimm den Zug um acht Uhr früh."));
        assert!(of(
            demand(Counted::Sentences, Some(2), Some(2)),
            "首都はキャンベラです。人口は約45万人です。"
        ));
        assert!(of(demand(Counted::Characters, None, Some(4)), "Haus"));
        let json = demand(Counted::Json, None, None);
        assert!(
            of(json, "{\"a\": 1}") && of(json, "Here:\n```json\n[1]\n```") && !of(json, "a: 1")
        );
        assert!(of(demand(Counted::Code, Some(1), None), "```\nls\n```"));
    }

    #[test]
    fn deliverables_count_together_or_each() {
        let mut report = report_from_text("solver", "", "x");
        report.steps_or_deliverables = vec!["one two".into(), "three".into(), "four".into()];
        let of = |demand| satisfies(demand, &report, false);
        assert!(of(demand(Counted::Items, Some(3), Some(3))));
        assert!(
            of(demand(Counted::Words, Some(4), Some(4)))
                && of(demand(Counted::Words, None, Some(1)))
        );
        assert!(!of(demand(Counted::Words, Some(5), None)));
    }
}
