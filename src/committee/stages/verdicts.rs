//! Selects what the cross-check is shown of the reports, and reads its answer. Labels are mapped
//! back to agents. Names of things that were not shown, and reports that support their own claims,
//! are dropped.

use std::collections::{BTreeMap, BTreeSet};

use conclave_lenient_json::Problem;
use rand::seq::SliceRandom;
use serde_json::{Value, json};

use crate::committee::money::budget::ModelText;
use crate::committee::money::check_cost::{CLAIM_BYTES, SUMMARY_BYTES, claims_of};
use crate::committee::output_shapes::{CrossCheckReply, VerdictOut};
use crate::committee::request_context::{Purpose, RequestContext};
use crate::domain::{
    Agent, AgentName, AgentReport, ClaimVerdict, Conduct, CrossCheck, Holds, PartAnswered,
    ReportRef, Tag, Unit, UnitRef,
};
use crate::journal::CheckScope;
use crate::text::{clip, excerpt, one_line};

/// The most parts of the request, and characters of a text, that are kept.
const MAX_PARTS: usize = 8;
const EVIDENCE_CHARS: usize = 300;
const PART_CHARS: usize = 120;

/// A report to check.
pub struct AnsweredReport<'a> {
    pub agent: Agent,
    pub report: &'a AgentReport,
    pub tokens: u64,
}

/// A report as the model sees it.
pub struct LabelledReport<'a> {
    agent: Agent,
    /// "R1", "R2", ...
    label: String,
    summary: String,
    /// With their ids, "R1.1", "R1.2", ...
    claims: Vec<(String, &'a Unit)>,
    /// Tokens of the whole report.
    tokens: u64,
}

impl LabelledReport<'_> {
    pub fn value(&self) -> Value {
        let claim = |(id, unit): &(String, &Unit)| {
            let mut tags: Vec<&str> = unit.tags.iter().map(Tag::into_str).collect();
            if tags.is_empty() {
                tags.push("no tag");
            }
            json!({ "id": id, "tags": tags.join(", "), "text": line(&unit.text, CLAIM_BYTES) })
        };
        let claims: Vec<Value> = self.claims.iter().map(claim).collect();
        json!({ "label": self.label, "summary": self.summary, "claims": claims })
    }

    /// Returns the bound of the text that a model wrote.
    pub fn model_text(&self) -> ModelText {
        let claims = self
            .claims
            .iter()
            .map(|(_, unit)| line(&unit.text, CLAIM_BYTES));
        let lines: Vec<String> = std::iter::once(self.summary.clone())
            .chain(claims)
            .collect();
        ModelText::of(&lines.join("\n"), self.tokens)
    }
}

/// Returns the reports with their labels, in an order seeded by the run.
pub fn shown<'a>(
    request: &RequestContext,
    reports: &[AnsweredReport<'a>],
    scope: CheckScope,
    reversed: bool,
) -> Vec<LabelledReport<'a>> {
    let mut order: Vec<usize> = (0..reports.len()).collect();
    order.shuffle(&mut request.random(Purpose::Labels));
    if reversed {
        order.reverse();
    }
    let written = order.into_iter().filter_map(|at| reports.get(at));
    let show = |(at, written): (usize, &AnsweredReport<'a>)| {
        let label = format!("R{}", at + 1);
        let mut units = key_units(written.report, scope);
        if reversed {
            units.reverse();
        }
        let named = units.into_iter().enumerate();
        LabelledReport {
            agent: written.agent,
            summary: line(&written.report.answer_summary.join(" "), SUMMARY_BYTES),
            claims: named
                .map(|(n, unit)| (format!("{label}.{}", n + 1), unit))
                .collect(),
            label,
            tokens: written.tokens,
        }
    };
    written.enumerate().map(show).collect()
}

/// Returns the units that the answer depends on: the final answer first, then those tagged as key.
/// If a report tags none, returns its first unit.
fn key_units(report: &AgentReport, scope: CheckScope) -> Vec<&Unit> {
    let mut units = report.key_units();
    units.sort_by_key(|unit| !unit.is_answer());
    units.truncate(claims_of(scope));
    units
}

/// Returns a text as one line of at most `bytes` bytes.
fn line(text: &str, bytes: usize) -> String {
    let line = one_line(text);
    if line.len() <= bytes {
        return line;
    }
    let cut = clip(&line, bytes.saturating_sub('…'.len_utf8()));
    format!("{}…", cut.trim_end())
}

/// Returns the problem of an answer that is valid by its schema but contains nothing usable.
pub fn problems(reply: &CrossCheckReply, shown: &[LabelledReport<'_>]) -> Vec<Problem> {
    let mut claims = shown.iter().flat_map(|shown| &shown.claims).peekable();
    let known = |verdict: &VerdictOut| claim_of(shown, &verdict.claim).is_some();
    if claims.peek().is_none() || reply.claims.iter().any(known) {
        return vec![];
    }
    let detail =
        "there is no verdict on any claim that was given: name each by its id, such as R1.1";
    vec![Problem {
        pointer: "/claims".into(),
        detail: detail.into(),
    }]
}

/// Reads the answer. Returns the verdicts by agents and units.
pub fn read(reply: &CrossCheckReply, shown: &[LabelledReport<'_>]) -> CrossCheck {
    let agents = |labels: &[String]| -> Vec<AgentName> {
        let named = labels.iter().filter_map(|label| report_of(shown, label));
        distinct(named.map(|it| it.agent.into()))
    };
    let same_answers = reply.same_answers.iter().map(|group| agents(group));
    let same_answers = same_answers.filter(|group| group.len() > 1).collect();
    let parts = reply.parts.iter().filter(|it| !it.part.trim().is_empty());
    let parts = parts
        .take(MAX_PARTS)
        .map(|part| PartAnswered {
            part: excerpt(&part.part, PART_CHARS),
            answered_by: agents(&part.answered_by),
        })
        .collect();
    CrossCheck {
        claims: verdicts(reply, shown),
        same_answers,
        parts,
        conduct: conduct(reply, shown),
    }
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = vec![];
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// Returns one verdict on each claim that was shown.
fn verdicts(reply: &CrossCheckReply, shown: &[LabelledReport<'_>]) -> Vec<ClaimVerdict> {
    let claims = reply.claims.iter();
    let claims = claims
        .filter_map(|out| Some(verdict(out, claim_of(shown, &out.claim)?, shown)))
        .collect::<Vec<_>>();
    merged(claims.iter())
}

/// Merges verdicts into one per claim. A claim on which they differ is undecided.
pub(super) fn merged<'a>(verdicts: impl Iterator<Item = &'a ClaimVerdict>) -> Vec<ClaimVerdict> {
    let mut all: BTreeMap<String, ClaimVerdict> = BTreeMap::new();
    for verdict in verdicts {
        let known = all.entry(verdict.claim.to_string());
        let known = known.or_insert_with(|| verdict.clone());
        if known.holds != verdict.holds {
            known.holds = Holds::Unknown;
            known.evidence.clear();
        }
        for (names, more) in [
            (&mut known.supported_by, &verdict.supported_by),
            (&mut known.contradicted_by, &verdict.contradicted_by),
        ] {
            for name in more {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
    }
    all.into_values().collect()
}

/// Returns what the reply says of each report, the first remark only.
fn conduct(reply: &CrossCheckReply, shown: &[LabelledReport<'_>]) -> Vec<Conduct> {
    let mut seen = BTreeSet::new();
    let conduct = reply.reports.iter().filter_map(|out| {
        let agent = report_of(shown, &out.report)?.agent;
        seen.insert(agent).then(|| Conduct {
            agent: agent.into(),
            kind: out.kind,
            why: excerpt(&out.why, EVIDENCE_CHARS),
        })
    });
    conduct.collect()
}

fn verdict(
    out: &VerdictOut,
    (holder, unit): (&LabelledReport<'_>, &Unit),
    shown: &[LabelledReport<'_>],
) -> ClaimVerdict {
    let reference = |label: &String| {
        let (of, unit) = match claim_of(shown, label) {
            Some((of, unit)) => (of, Some(unit.id.clone())),
            None => (report_of(shown, label)?, None),
        };
        // A report says nothing for or against its own claim.
        (of.agent != holder.agent).then(|| ReportRef {
            agent: of.agent.into(),
            unit,
        })
    };
    let named = |labels: &[String]| distinct(labels.iter().filter_map(reference));
    let contradicted_by = named(&out.contradicted_by);
    let mut supported_by = named(&out.supported_by);
    // A report that is named on both sides does not support.
    supported_by.retain(|it| contradicted_by.iter().all(|other| other.agent != it.agent));
    ClaimVerdict {
        claim: UnitRef::new(holder.agent, &unit.id),
        supported_by,
        contradicted_by,
        holds: out.holds,
        by: out.by,
        evidence: excerpt(&out.evidence, EVIDENCE_CHARS),
    }
}

/// Returns the claim of an id such as "R1.2".
fn claim_of<'a, 'b>(
    shown: &'a [LabelledReport<'b>],
    id: &str,
) -> Option<(&'a LabelledReport<'b>, &'b Unit)> {
    let claims = shown
        .iter()
        .flat_map(|it| it.claims.iter().map(move |claim| (it, claim)));
    let mut named = claims.filter(|(_, (own, _))| own.eq_ignore_ascii_case(id.trim()));
    named.next().map(|(shown, (_, unit))| (shown, *unit))
}

/// Returns the report of a label such as "R1", or of one of its claims.
fn report_of<'a, 'b>(
    shown: &'a [LabelledReport<'b>],
    label: &str,
) -> Option<&'a LabelledReport<'b>> {
    let label = label.trim();
    let own = shown
        .iter()
        .find(|shown| shown.label.eq_ignore_ascii_case(label));
    own.or_else(|| claim_of(shown, label).map(|(shown, _)| shown))
}
