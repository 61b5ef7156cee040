//! Normalizes reports before any other code reads them.

use crate::domain::AgentReport;

/// Entries kept of each list of a report. A sound report has fewer.
const MAX_ENTRIES: usize = 100;

/// Normalizes a report: caps its lists and its confidence, drops units without a text, and makes unit
/// ids short, unique and free of the characters that qualify them.
pub fn clean(mut report: AgentReport, ceiling: f64) -> AgentReport {
    for list in [
        &mut report.answer_summary,
        &mut report.assumptions,
        &mut report.steps_or_deliverables,
        &mut report.failure_modes,
    ] {
        list.truncate(MAX_ENTRIES);
    }
    report.units.retain(|unit| !unit.text.trim().is_empty());
    report.units.truncate(MAX_ENTRIES);
    report.self_confidence = report.self_confidence.clamp(0.0, ceiling);
    let mut seen = std::collections::BTreeSet::new();
    for (i, unit) in report.units.iter_mut().enumerate() {
        let bare = unit.id.rsplit(':').next().unwrap_or_default().chars();
        let plain = bare.filter(|c| c.is_ascii_alphanumeric() || *c == '-');
        let id: String = plain.take(16).collect();
        unit.id = if id.is_empty() || seen.contains(&id) {
            format!("u{}", i + 1)
        } else {
            id
        };
        while !seen.insert(unit.id.clone()) {
            unit.id.push('x');
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Unit;

    #[test]
    fn a_unit_has_a_text_and_an_id_of_its_own() {
        let unit = |(id, text): (&str, &str)| Unit {
            id: id.into(),
            topic: "t".into(),
            text: text.into(),
            tags: vec![],
        };
        let units = [
            ("u1", " \n"),
            ("solver:u1", "a"),
            ("u1", "b"),
            ("?", "c"),
            ("u4", ""),
        ];
        let report = AgentReport {
            units: units.map(unit).into(),
            ..AgentReport::default()
        };
        let units = clean(report, 0.8).units;
        let units: Vec<(&str, &str)> = units.iter().map(|it| (&*it.id, &*it.text)).collect();
        assert_eq!(units, [("u1", "a"), ("u2", "b"), ("u3", "c")]);
    }
}
