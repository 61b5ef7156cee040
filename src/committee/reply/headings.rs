//! The headings of the sections that the service renders.

pub const TLDR: &str = "## TL;DR";
pub const ACCEPTANCE: &str = "## Acceptance tests";
pub const ASSUMPTIONS: &str = "## Assumptions";
pub const CONFIDENCE: &str = "## Confidence";
/// One heading level below the others.
pub const ESTIMATE: &str = "### Execution time estimate";
pub const AUDIT: &str = "## Audit appendix";

/// The sections that the service renders, and those with figures that it computes.
pub const SECTIONS: [&str; 6] = [TLDR, ACCEPTANCE, ASSUMPTIONS, CONFIDENCE, ESTIMATE, AUDIT];
pub const COMPUTED: [&str; 3] = [CONFIDENCE, ESTIMATE, AUDIT];

/// Returns the text of one of the heading constants above without its Markdown mark.
pub(super) fn title(heading: &str) -> &str {
    heading.trim_start_matches(['#', ' '])
}
