//! Normalizes reports before any other code reads them.

use crate::domain::AgentReport;

/// Entries kept of each list of a report. A sound report has fewer.
const MAX_ENTRIES: usize = 100;

/// Normalizes a report: caps its lists and its confidence, and makes unit ids short, unique and
/// free of the characters that qualify them.
pub fn clean(mut report: AgentReport, ceiling: f64) -> AgentReport {
    for list in [
        &mut report.answer_summary,
        &mut report.assumptions,
        &mut report.steps_or_deliverables,
        &mut report.failure_modes,
    ] {
        list.truncate(MAX_ENTRIES);
    }
    report.units.truncate(MAX_ENTRIES);
    let stated = Some(report.self_confidence).filter(|stated| stated.is_finite());
    report.self_confidence = stated.map_or(0.0, |stated| stated.clamp(0.0, ceiling));
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
