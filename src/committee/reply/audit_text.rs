//! Renders the audit appendix as Markdown.

use crate::committee::reply::headings::AUDIT;
use crate::committee::reply::render::figure;
use crate::committee::reply::rounding::with_two_decimals;
use crate::text::{excerpt, one_line};
use serde_json::Value;
use std::fmt::Write as _;

/// Renders the JSON audit as the appendix of a reply.
pub fn markdown(audit: &Value) -> String {
    let mut text = format!("{AUDIT}\n\n");
    let _ = writeln!(text, "- Run: {}", plain(&audit["runId"]));
    if let Some(parent) = audit.pointer("/continues/parent").and_then(Value::as_str) {
        let _ = writeln!(text, "- Continues: {parent}");
    }
    let _ = writeln!(
        text,
        "- Config: {}; prompts: {}",
        short(&audit["configHash"]),
        short(&audit["promptsHash"])
    );
    let _ = write!(
        text,
        "\n### Plan\n\n```json\n{}\n```\n\n",
        pretty(&audit["plan"])
    );
    if !audit["planObtained"].is_null() {
        let _ = writeln!(text, "- Obtained: {}", plain(&audit["planObtained"]));
    }
    list(&mut text, "Corrected", &audit["planCorrections"]);
    list(&mut text, "Left out", &audit["leftOut"]);
    if let Some(agents) = audit["agents"].as_array().filter(|a| !a.is_empty()) {
        agents_section(&mut text, agents);
        scores_section(&mut text, agents);
    }
    if let Some(rounds) = audit["rounds"].as_array().filter(|r| !r.is_empty()) {
        rounds_section(&mut text, rounds);
    }
    cross_check_section(&mut text, &audit["crossCheck"]);
    disagreements_section(&mut text, &audit["disagreements"]);
    confidence_section(&mut text, &audit["confidence"]);
    synthesis_section(&mut text, &audit["synthesis"]);
    if let Some(justified) = audit["quarantineJustifications"]
        .as_array()
        .filter(|j| !j.is_empty())
    {
        text.push_str("\n### Why quarantined material was used\n\n");
        for j in justified {
            let _ = writeln!(text, "- {}: {}", plain(&j["agent"]), plain(&j["why"]));
        }
    }
    if !audit["executionEstimate"].is_null() {
        let _ = write!(
            text,
            "\n### Estimate object\n\n```json\n{}\n```\n",
            pretty(&with_two_decimals(audit["executionEstimate"].clone()))
        );
    }
    budget_section(&mut text, &audit["budget"]);
    text
}

fn rounds_section(text: &mut String, rounds: &[Value]) {
    text.push_str("\n### Rounds\n\n");
    for round in rounds {
        let _ = writeln!(
            text,
            "- Round {}: {}. {}",
            round["round"],
            plain(&round["state"]),
            plain(&round["why"])
        );
        decisions(text, round);
    }
}

fn synthesis_section(text: &mut String, synthesis: &Value) {
    if synthesis.is_null() {
        return;
    }
    text.push_str("\n### Synthesis\n\n");
    let _ = writeln!(text, "- Obtained: {}", plain(&synthesis["obtained"]));
    list(text, "Units used", &synthesis["unitsUsed"]);
    list(text, "Corrected", &synthesis["corrections"]);
    let broken = "A rule that the master's reply would have broken";
    list(text, broken, &synthesis["brokenRules"]);
}

/// Renders a round's decisions on contested claims, new reports, failures and notes, one bullet
/// each.
pub(super) fn decisions(text: &mut String, round: &Value) {
    for decided in round["resolutions"].as_array().into_iter().flatten() {
        let agent = plain(&decided["agent"]);
        for resolution in decided["resolutions"].as_array().into_iter().flatten() {
            let did = if resolution["decision"] == "concede" {
                "concedes"
            } else {
                "keeps"
            };
            let evidence = excerpt(&plain(&resolution["evidence"]), 160);
            let (claim, by) = (plain(&resolution["claim"]), plain(&resolution["by"]));
            let _ = writeln!(text, "  - {agent} {did} {claim}, by {by}: {evidence}");
        }
        if let Some(cause) = decided["failed"].as_str() {
            let _ = writeln!(
                text,
                "  - {agent} gave nothing further ({cause}): its earlier report stands"
            );
        } else if decided["anew"] == true {
            let _ = writeln!(text, "  - {agent} reported anew");
        }
        for note in decided["notes"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  - {agent}: {}", plain(note));
        }
    }
}

/// Renders the passes of the cross-check with their verdicts.
pub(super) fn cross_check_section(text: &mut String, check: &Value) {
    if check.is_null() {
        return;
    }
    text.push_str("\n### Cross-check\n\n");
    for pass in check["passes"].as_array().into_iter().flatten() {
        let order = if pass["reversed"] == true {
            ", in reverse order"
        } else {
            ""
        };
        let (role, model) = (plain(&pass["role"]), cell(&pass["model"]));
        let _ = writeln!(text, "- By the model of {role} ({model}){order}:");
        for verdict in pass["claims"].as_array().into_iter().flatten() {
            verdict_line(text, verdict);
        }
        for group in pass["sameAnswers"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  - the same final answer: {}", join(group));
        }
        for part in pass["parts"].as_array().into_iter().flatten() {
            let by = join(&part["answeredBy"]);
            let by = if by.is_empty() { "none" } else { &by };
            let _ = writeln!(
                text,
                "  - part \"{}\" is answered by {by}",
                plain(&part["part"])
            );
        }
        for report in pass["reports"].as_array().into_iter().flatten() {
            let (agent, kind) = (plain(&report["agent"]), plain(&report["kind"]));
            let why = excerpt(&plain(&report["why"]), 160);
            let _ = writeln!(text, "  - {agent} is no answer ({kind}): {why}");
        }
        for note in pass["notes"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  - {}", plain(note));
        }
    }
    list(text, "Not made", &check["notes"]);
}

/// Renders one verdict of the cross-check.
fn verdict_line(text: &mut String, verdict: &Value) {
    let said = excerpt(&plain(&verdict["text"]), 80);
    let evidence = excerpt(&plain(&verdict["evidence"]), 160);
    let named = |key: &str, what: &str| {
        let names = join(&verdict[key]);
        if names.is_empty() {
            String::new()
        } else {
            format!("; {what} {names}")
        }
    };
    let _ = writeln!(
        text,
        "  - {} \"{said}\" holds: {}, by {}: {}{}{}",
        plain(&verdict["claim"]),
        plain(&verdict["holds"]),
        plain(&verdict["by"]),
        if evidence.is_empty() {
            "no evidence"
        } else {
            &evidence
        },
        named("supportedBy", "supported by"),
        named("contradictedBy", "contradicted by"),
    );
}

/// Renders the table of agents, and their failures.
pub(super) fn agents_section(text: &mut String, agents: &[Value]) {
    text.push_str(
        "\n### Agents\n\n\
         Cred is the score of an output, from 0 to 1: its points on five axes of 25, divided by 125. By their Cred, \
         outputs are VALID (used), QUARANTINE (used only with a justification) or DISCARD (not used). JSON says how the \
         output was read.\n\n\
         | agent | status | Cred | model | served | latency, sum of its calls | tokens in/out (thinking) | cost USD | attempts \
         | JSON |\n",
    );
    text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for a in agents {
        let json = match (a["obtained"].as_str(), a["reusedFrom"].as_str()) {
            (Some(obtained), Some(_)) => format!("{obtained}, reused"),
            (Some(obtained), None) => obtained.to_owned(),
            (None, _) => format!("failed ({})", cell(&a["cause"])),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {:.5} | {} | {json} |",
            plain(&a["agent"]),
            plain(&a["status"]),
            a["cred"]
                .as_f64()
                .map_or("none".into(), |c| format!("{c:.3}")),
            cell(&a["model"]),
            served(a),
            milliseconds(&a["latencyMs"]),
            tokens(a),
            a["costUsd"].as_f64().unwrap_or(0.0),
            a["attempts"],
        );
    }
    for a in agents.iter().filter(|a| a["cause"].is_string()) {
        let _ = writeln!(
            text,
            "\n{} failed: {}",
            plain(&a["agent"]),
            plain(&a["cause"])
        );
    }
}

/// Renders the axes of each agent with their features.
fn scores_section(text: &mut String, agents: &[Value]) {
    text.push_str("\n### Scores\n\n");
    for a in agents {
        let Some(axes) = a["axes"].as_object() else {
            continue;
        };
        let _ = writeln!(text, "- {} ({}):", plain(&a["agent"]), plain(&a["status"]));
        for (name, axis) in axes {
            let features = axis["features"].as_array().into_iter().flatten();
            let features: Vec<String> = features.filter_map(feature).collect();
            let _ = writeln!(
                text,
                "  - {name} {:.1}/25, {:.1} from code, {:.1} from peers: {}",
                number(&axis["points"]),
                number(&axis["fromCode"]),
                number(&axis["points"]) - number(&axis["fromCode"]),
                features.join(", ")
            );
        }
    }
}

/// Renders a feature: its value and points. `None` if it has neither.
fn feature(feature: &Value) -> Option<String> {
    let name = plain(&feature["name"]);
    let name = name.rsplit('.').next().unwrap_or_default();
    let (value, points) = (number(&feature["value"]), number(&feature["points"]));
    match (figure(value).as_str(), points == 0.0) {
        ("0", true) => None,
        (value, true) => Some(format!("{name} {value}")),
        (value, false) => Some(format!("{name} {value} ({points:+.1})")),
    }
}

/// Renders the detected disagreements and the master's summaries of them.
pub(super) fn disagreements_section(text: &mut String, disagreements: &Value) {
    text.push_str("\n### Disagreements\n\n");
    let detected = disagreements["detected"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if detected.is_empty() {
        text.push_str("- none detected\n");
    }
    for d in &detected {
        let positions: Vec<String> = d["positions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|p| format!("\"{}\" ({})", plain(&p["text"]), join(&p["agents"])))
            .collect();
        let _ = writeln!(
            text,
            "- {}: {}",
            plain(&d["topic"]),
            positions.join(" against ")
        );
    }
    for d in disagreements["summary"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "- As the master saw it, {}: {}",
            plain(&d["topic"]),
            plain(&d["summary"])
        );
    }
}

/// Renders the terms of the confidence.
pub(super) fn confidence_section(text: &mut String, c: &Value) {
    if c.is_null() {
        return;
    }
    text.push_str(
        "\n### Confidence\n\n\
         c_final is the confidence in the reply: BaseScore, the weighted mean Cred of the VALID outputs, minus the penalty, plus \
         the bonus, within 0 and 1. The reply ships if c_final reaches the threshold.\n\n",
    );
    let term = |t: &Value| {
        let estimated = t["estimated"]
            .as_f64()
            .map_or("not estimated".into(), |e| format!("estimated {e:.3}"));
        format!(
            "{:.3} ({estimated}, measured {:.3})",
            number(&t["applied"]),
            number(&t["measured"])
        )
    };
    let _ = writeln!(text, "- BaseScore: {:.3}", number(&c["baseScore"]));
    let _ = writeln!(text, "- Conflict penalty: {}", term(&c["conflictPenalty"]));
    let _ = writeln!(text, "- Coverage bonus: {}", term(&c["coverageBonus"]));
    let _ = writeln!(
        text,
        "- c_final: {:.4}; threshold {:.2}",
        number(&c["c_final"]),
        number(&c["threshold"])
    );
}

/// Renders the table of calls and the money spent.
pub(super) fn budget_section(text: &mut String, budget: &Value) {
    text.push_str(
        "\n### Budget\n\nThe name of a call begins with its stage: r1 is round 1. A number after # counts its attempts.\n\n\
         | call | model | served | effort | state | reserved USD | cost USD | tokens in/out (thinking) | \
         latency | prompt |\n",
    );
    text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for call in budget["calls"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            plain(&call["call"]),
            cell(&call["model"]),
            served(call),
            call["effort"].as_str().unwrap_or("-"),
            cell(&call["state"]),
            dollars(&call["reservedUsd"]),
            dollars(&call["costUsd"]),
            tokens(call),
            milliseconds(&call["latencyMs"]),
            short(&call["promptHash"])
        );
    }
    let exceeded = if budget["modeCapExceeded"] == true {
        "; A PROVIDER BILLED MORE THAN WAS RESERVED"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "\nSpent {:.5} of {:.2} USD{exceeded}.",
        number(&budget["spentUsd"]),
        number(&budget["capUsd"])
    );
}

/// Returns a string on one line, or any other value as JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), one_line)
}

/// Returns the model that answered, with a flag if it is not the requested model.
pub(super) fn served(row: &Value) -> String {
    match row["servedModel"].as_str() {
        None => "not said".to_owned(),
        Some(_) if row["modelReplaced"] == true => {
            format!("{} **(another model)**", cell(&row["servedModel"]))
        }
        Some(_) => cell(&row["servedModel"]),
    }
}

/// Returns the text of a table cell, at most 60 characters. Replaces `|`, which would end the cell,
/// by `/`. Shortens the path of a GGUF file to the file name.
pub(super) fn cell(value: &Value) -> String {
    let text = plain(value).replace('|', "/");
    let text = text
        .rsplit('/')
        .next()
        .filter(|_| text.contains(".gguf"))
        .unwrap_or(&text);
    excerpt(text, 60)
}

/// Returns the first 12 characters of a hash.
pub(super) fn short(value: &Value) -> String {
    plain(value).chars().take(12).collect()
}

pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// Renders input and output tokens, and the thinking among the output if there is any.
fn tokens(row: &Value) -> String {
    let (Some(input), Some(output)) = (row["inputTokens"].as_u64(), row["outputTokens"].as_u64())
    else {
        return "-".to_owned();
    };
    match row["thinkingTokens"].as_u64() {
        Some(thinking) if thinking > 0 => format!("{input}/{output} ({thinking})"),
        _ => format!("{input}/{output}"),
    }
}

fn milliseconds(value: &Value) -> String {
    value.as_u64().map_or("-".into(), |ms| format!("{ms} ms"))
}

pub(super) fn dollars(value: &Value) -> String {
    value.as_f64().map_or("free".into(), |d| format!("{d:.5}"))
}

pub(super) fn join(values: &Value) -> String {
    values
        .as_array()
        .into_iter()
        .flatten()
        .map(plain)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Appends one bullet for each element of an array.
pub(super) fn list(text: &mut String, title: &str, values: &Value) {
    for value in values.as_array().into_iter().flatten() {
        let _ = writeln!(text, "- {title}: {}", plain(value));
    }
}
