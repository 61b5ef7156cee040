//! The ready-made scenarios with an open question: agents disagree, or the request is vague.

use serde_json::{Value, json};

use super::panels::{answering, plan, question, scenario, synthesis};
use super::replies::{ReportBuilder, Scenario, report};

/// Possible release blockers: the option's text, the claim in an agent's words, the number, and its
/// evidence.
const READINGS: [(&str, &str, u32, &str); 3] = [
    (
        "All bugs count and feature requests do not, so the number is 42",
        "Every open bug blocks the release, critical or not.",
        42,
        "The backlog has 17 critical and 25 other bugs, and 17 + 25 = 42.",
    ),
    (
        "The critical bugs alone count, so the number is 17",
        "A bug blocks the release if it is marked critical, and otherwise not.",
        17,
        "Of 42 bugs 25 are not critical, and 42 - 25 = 17.",
    ),
    (
        "The whole backlog counts with its feature requests, so the number is 99",
        "Whatever is in the backlog blocks the release, feature requests included.",
        99,
        "The backlog has 42 bugs and 57 feature requests, and 42 + 57 = 99.",
    ),
];

const BACKLOG: &str = "Our backlog has 99 entries: 57 feature requests and 42 bugs, of which 17 are critical. How many \
                       have to be done before the release?";

fn backlog_report(agent: &str, reading: usize) -> ReportBuilder {
    let (_, claim, number, check) = READINGS[reading];
    report(agent)
        .says(&format!(
            "{number}: so many entries have to be done before the release."
        ))
        .assumes(claim)
        .because(check)
        .fails_if("The release rules say otherwise; then another part of the backlog counts.")
        .unit(
            "release number",
            &format!("The number to be done before the release is {number}."),
            &["key"],
        )
        .unit("release rule", claim, &["given"])
        .unit("sum", check, &["calculated"])
        .unit("release number", &number.to_string(), &["answer", "given"])
}

fn backlog_question() -> Value {
    question(
        "Which entries of the backlog block the release?",
        READINGS.map(|(option, ..)| option),
    )
}

fn settled_backlog(reading: usize) -> Scenario {
    let (option, claim, number, check) = READINGS[reading];
    let reports = ["solver", "critic", "verifier"].map(|agent| backlog_report(agent, reading));
    let reply =
        format!("**{number}** entries have to be done before the release. {claim}\n\n{check}");
    let tldr = format!("{number} entries have to be done.");
    let synthesis = synthesis(
        "VERBAL_REASONING",
        &reply,
        &tldr,
        option,
        &backlog_question(),
    );
    let synthesis = answering(&number.to_string(), synthesis);
    scenario(
        BACKLOG,
        plan("VERBAL_REASONING", 1, "ask"),
        reports,
        synthesis,
    )
}

impl Scenario {
    /// Three answers, 42 (solver), 17 (critic) and 99 (verifier), each right under its own reading
    /// of the request. The question offers them as A, B and C. Once a request carries the chosen
    /// option, all agents agree on it.
    pub fn disagreeing() -> Self {
        let reports = [("solver", 0), ("critic", 1), ("verifier", 2)]
            .map(|(agent, r)| backlog_report(agent, r));
        let reply = "The number depends on what blocks the release: 42, 17 or 99.";
        let tldr = "It is 42, 17 or 99, depending on the release rule.";
        let assumes = "The release rule is not given.";
        let mut synthesis = synthesis(
            "VERBAL_REASONING",
            reply,
            tldr,
            assumes,
            &backlog_question(),
        );
        synthesis["meta"]["assumptions"][0]["kind"] = json!("guess");
        synthesis["audit"]["disagreements"] = json!([{"topic": "release number", "summary": "solver says 42, critic says 17, verifier says 99"}]);
        synthesis["audit"]["conflictPenalty"] = json!(0.3);
        synthesis["audit"]["coverageBonus"] = json!(0.0);
        let answered =
            [0, 1, 2].map(|reading| (READINGS[reading].0.to_owned(), settled_backlog(reading)));
        let open = scenario(
            BACKLOG,
            plan("VERBAL_REASONING", 1, "ask"),
            reports,
            synthesis,
        );
        Scenario {
            answered: answered.into(),
            ..open
        }
    }

    /// The plan itself asks, and no agent runs. After the answer the committee agrees.
    pub fn vague() -> Self {
        let options = [
            "The database queries, which calls for an index on the column that they filter by",
            "The first load of the page, which calls for smaller images",
            "The build in CI, which calls for a cache of its dependencies",
        ];
        let measures = [
            "an index on the filtered column",
            "smaller images",
            "a cache of the dependencies",
        ];
        let asks = question("What is to become faster?", options);
        let message = "Make it faster.";
        let settled = |at: usize| {
            let (measure, option) = (measures[at], options[at]);
            let answer = |agent: &str, check: &str| {
                report(agent)
                    .says(&format!("Add {measure}, and measure before and after."))
                    .assumes(option)
                    .because(&format!("{check} A run of 1200 ms that drops to 300 ms is 1200 / 300 = 4 times as fast."))
                    .fails_if("The time is spent elsewhere: the measurement after the change then shows no gain.")
                    .unit("measure", &format!("The change with the greatest effect is {measure}."), &["key"])
                    .unit("evidence", check, &["tested"])
            };
            let reports = [
                answer(
                    "solver",
                    "Take ten timings before the change and compare their medians.",
                ),
                answer(
                    "critic",
                    "Rule out the network first by timing an empty request on the same machine.",
                ),
                answer(
                    "verifier",
                    "Profile one slow run and see whether the slow part takes half of its time.",
                ),
            ];
            let reply = format!(
                "Add **{measure}**. Take ten timings before and after, and compare their medians."
            );
            let synthesis = synthesis("MIXED", &reply, &format!("Add {measure}."), option, &asks);
            (
                option.to_owned(),
                scenario(message, plan("MIXED", 1, "ask"), reports, synthesis),
            )
        };
        let answered: Vec<_> = (0..3).map(settled).collect();
        let mut open = answered[0].1.clone();
        open.plan["needsClarification"] = json!(true);
        open.plan["clarificationQuestion"] = asks.clone();
        Scenario { answered, ..open }
    }

    /// Two rounds. In round 1 solver and verifier say 61 days, and the critic says 60. In round 2
    /// the critic concedes.
    pub fn converging() -> Self {
        let days = |agent: &str, number: u32, why: &str| {
            report(agent)
                .says(&format!(
                    "{number} days lie between 1 March 2025 and 1 May 2025."
                ))
                .assumes("The first day counts and the last one does not.")
                .because(why)
                .fails_if("Counting both ends adds a day; a calendar shows which count is meant.")
                .unit(
                    "number of days",
                    &format!("From 1 March 2025 to 1 May 2025 it is {number} days."),
                    &["key"],
                )
        };
        let march = "March has 31 days and April has 30.";
        let solver = days(
            "solver",
            61,
            "March has 31 days and April has 30, and 31 + 30 = 61.",
        )
        .unit("sum", "31 + 30 = 61 days.", &["calculated"])
        .unit("month lengths", march, &["key", "memory"])
        .unit("number of days", "61", &["answer", "calculated"]);
        let critic = days("critic", 60, "Two months of 30 days each are 2 * 30 = 60.")
            .unit("sum", "2 * 30 = 60 days.", &["calculated"])
            .unit(
                "month lengths",
                "March and April have 30 days each.",
                &["key", "memory"],
            )
            .unit("number of days", "60", &["answer", "calculated"]);
        let verifier = days(
            "verifier",
            61,
            "1 May is day 121 of 2025 and 1 March is day 60, and 121 - 60 = 61.",
        )
        .unit("sum", "121 - 60 = 61 days.", &["calculated"])
        .unit("month lengths", march, &["key", "memory"])
        .unit("number of days", "61", &["answer", "calculated"]);
        let asks = question(
            "Which days are to be counted?",
            [
                "The first day but not the last, which gives 61",
                "Neither end, which gives 60",
                "Both ends, which gives 62",
            ],
        );
        let reply = "**61 days**: March has 31 days and April has 30, and 31 + 30 = 61. The first day counts, the last \
                     one does not.";
        let tldr = "61 days lie between the two dates.";
        let assumes = "The first day counts and the last one does not.";
        let synthesis = answering(
            "61",
            synthesis("VERBAL_REASONING", reply, tldr, assumes, &asks),
        );
        let message = "How many days are between 1 March 2025 and 1 May 2025?";
        let plan = plan("VERBAL_REASONING", 2, "deep");
        let mut converging = scenario(message, plan, [solver, critic, verifier], synthesis);
        converging.right = vec!["61".to_owned(), "March has 31 days".to_owned()];
        converging
    }
}
