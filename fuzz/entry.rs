//! The targets of the fuzzer and of the replay of its corpus, each a function of arbitrary bytes. A
//! function panics if the input breaks a rule that every input must satisfy.
//!
//! This file is part of two programs: the fuzzer (`fuzz/Cargo.toml`) and the integration tests
//! (`tests/it/fuzz_replay.rs`).

use conclave::actions::commands::{Action, Inputs, execute};
use conclave::actions::parser::{self, ParsedMessage};
use conclave::config::{self, Env};
use conclave::domain::{Agent, AgentReport, Obtained, RunId, ScoringPolicy};
use conclave::journal::{self, Archive, Entry};
use conclave::llm::{StreamEvent, StreamReader};
use conclave::scoring::{self as score, Output, Panel, report_from_text};
use conclave::{app, http};
use conclave_dice::Expression;

#[path = "cost.rs"]
pub mod cost;

/// A target's name, which is also the folder of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[
    ("structured", structured_output),
    ("chat", chat),
    ("answer", answer),
    ("sse", sse),
    ("config", configuration),
    ("journal", journal),
    ("score", score_text),
    ("dice", dice),
    ("act", act),
    ("cost", cost),
];

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// Parses a model's output. The result is a report that reads back the same after it is written, or
/// a refusal with its reasons.
pub fn structured_output(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let schema = conclave_lenient_json::Schema::new(schemars::schema_for!(AgentReport).to_value());
    match conclave_lenient_json::parse::<AgentReport>(text, &schema) {
        Err(problems) => assert!(!problems.is_empty(), "refused without a reason"),
        Ok(parsed) => {
            let written = serde_json::to_string(&parsed.value).expect("a report can be written");
            let again = conclave_lenient_json::parse::<AgentReport>(&written, &schema)
                .expect("a written report can be read");
            assert!(
                again.clean && again.value == parsed.value,
                "another report was read"
            );
        }
    }
    let _ = conclave_lenient_json::extract_any(text);
}

/// Reads the body of a chat. The result is a question, or a list of problems. A question that
/// passes the checks passes them again unchanged.
pub fn chat(data: &[u8]) {
    let limits = config::Limits::default();
    match http::question(data) {
        Err(http::Unread::NotJson(detail)) => {
            assert!(!detail.is_empty(), "refused without a reason");
        }
        Err(http::Unread::WrongShape(problems)) => {
            assert!(!problems.is_empty(), "refused without a reason");
        }
        Ok(input) => {
            if let Ok(request) = app::ChatRequest::parse(input.clone(), &limits, &[]) {
                let trimmed = app::ChatInput {
                    message: request.question().message.clone(),
                    ..input
                };
                let again = app::ChatRequest::parse(trimmed, &limits, &[]);
                let again = again.expect("a checked request passes again");
                assert_eq!(again.question(), request.question(), "checked twice");
                let stored = serde_json::to_string(request.question());
                let stored = stored.expect("a question can be stored");
                assert_eq!(
                    serde_json::from_str::<conclave::domain::Question>(&stored)
                        .ok()
                        .as_ref(),
                    Some(request.question())
                );
            }
        }
    }
}

/// Reads a message that answers a question. The first line is the text of an option.
pub fn answer(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let (option, message) = text.split_once('\n').unwrap_or(("Docker", text));
    let options = [option, "Kubernetes", "bare metal"].map(str::to_owned);
    if let Some(asked) = conclave::domain::Clarification::new("Where does it run", &options) {
        let _ = app::read_answer(&asked, message);
        assert_eq!(asked.question.matches('?').count(), 1);
    }
    if let Some((handles, _)) = app::read_correction(message) {
        let is_handle = |it: &String| it.starts_with('A') && it.len() <= 3;
        assert!(handles.iter().all(is_handle), "{handles:?}");
    }
}

/// Checks that an event stream gives the same events however it is split.
pub fn sse(data: &[u8]) {
    let cut = data.first().map_or(1, |byte| usize::from(*byte % 16) + 1);
    let whole = StreamReader::default().read(data);
    let mut reader = StreamReader::default();
    let pieces: Result<Vec<Vec<StreamEvent>>, _> =
        data.chunks(cut).map(|piece| reader.read(piece)).collect();
    assert_eq!(
        whole,
        pieces.map(|events| events.concat()),
        "cut after every {cut} bytes"
    );
}

/// Reads the config file and, after a NUL, the environment. The result is a config, or all problems
/// at once.
pub fn configuration(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let (file, environment) = text.split_once('\0').unwrap_or((text, ""));
    let variables = environment.lines().filter_map(|line| line.split_once('='));
    let env = Env::of(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    match config::from_text(file, &env) {
        Ok(config) => {
            let _ = format!("{config:?}");
        }
        Err(problems) => assert!(!problems.to_string().is_empty(), "refused without a reason"),
    }
}

/// Reads a stored event and archives. What can be read can be written and read again. A chain with
/// an invented hash is never accepted.
pub fn journal(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(event) = text.parse::<journal::Event>() {
        let written = serde_json::to_string(&event).expect("an event can be written");
        let again: journal::Event = written.parse().expect("a written event can be read");
        // Compares the texts, because NaN is not equal to itself.
        assert_eq!(serde_json::to_string(&again).ok(), Some(written));
        assert_eq!(again.key(), event.key());
        let entry = Entry {
            seq: 1,
            at: jiff::Timestamp::UNIX_EPOCH,
            key: event.key(),
            body: text.to_owned(),
            prev: "0".repeat(64),
            hash: "f".repeat(64),
            event,
        };
        let run: RunId = "01890000-0000-7000-8000-000000000000"
            .parse()
            .expect("an id");
        assert!(
            journal::verify(run, &[entry], &"f".repeat(64)).is_err(),
            "an invented hash was believed"
        );
    }
    for line in text.lines() {
        if let Ok(archive) = serde_json::from_str::<Archive>(line) {
            let written = serde_json::to_string(&archive).expect("an archive can be written");
            assert_eq!(
                serde_json::from_str::<Archive>(&written).ok(),
                Some(archive)
            );
        }
    }
}

/// Scores the prose of two agents under a message, separated by NUL. The figures stay within their
/// bounds, and scoring twice gives the same result.
pub fn score_text(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let mut parts = text.splitn(3, '\0');
    let texts = [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default);
    let [message, first, second] = texts;
    let reports = [
        report_from_text("solver", "", first),
        report_from_text("critic", "", second),
    ];
    let output = |agent: Agent, report| Output {
        agent: agent.into(),
        report,
        obtained: Obtained::Text,
        truncated: false,
        role_matches: true,
        family: None,
    };
    let outputs = vec![
        output(Agent::Solver, &reports[0]),
        output(Agent::Critic, &reports[1]),
    ];
    let panel = Panel {
        message,
        task_type: None,
        demands: &[],
        lost: 0,
        first_round: outputs.clone(),
        outputs,
        cross_checks: &[],
        resolutions: &[],
    };
    let judgement = score::judge(&panel, &ScoringPolicy::default());
    for score in &judgement.scores {
        assert!((0.0..=1.0).contains(&score.cred), "{}", score.cred);
        assert!(
            score
                .axes
                .iter()
                .all(|(_, axis)| (0.0..=25.0).contains(&axis.points))
        );
    }
    assert!((0.0..=1.0).contains(&judgement.base_score));
    assert_eq!(
        judgement,
        score::judge(&panel, &ScoringPolicy::default()),
        "judged twice"
    );
}

/// Checks that an expression can be rolled with any dice, and that its text reads back as the same
/// expression.
pub fn dice(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(expression) = Expression::parse(text) else {
        return;
    };
    let again = Expression::parse(expression.text()).expect("what was read can be read again");
    assert_eq!(again.text(), expression.text());
    // Any source of randomness will do: all low, all high, then something between.
    for start in [0_i64, -1, 7] {
        let mut state = start;
        let _ = expression.roll_times(1, &mut |sides| match start {
            0 => 1,
            -1 => sides,
            _ => {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33).rem_euclid(sides) + 1
            }
        });
    }
}

/// Parses a message. The result is one command whose arguments read back the same, a wrong command
/// with its problem, or no command.
pub fn act(data: &[u8]) {
    let Some(text) = text(data) else { return };
    match parser::read(text) {
        ParsedMessage::Clear(action) | ParsedMessage::FirstPerson(action) => {
            match (Action::read(action.name(), action.arguments()), &action) {
                // Only the user's own JSON replaces a sheet.
                (Ok(Action::SheetCreate(again)), Action::SheetReplace(sheet)) => {
                    assert_eq!(&again, sheet);
                }
                (again, _) => assert_eq!(again.as_ref(), Ok(&action)),
            }
            let _ = execute(&action, &Inputs::default(), 1);
        }
        ParsedMessage::Wrong { problem, .. } => {
            assert!(!problem.is_empty(), "refused without a reason");
        }
        ParsedMessage::Unclear => {}
    }
}

/// Bytes on which the replay runs a routine, and the smaller size of the fuzzer.
pub const COST_BYTES: usize = 2000;

/// Checks that a routine ends on a repeated piece of text. The fuzzer measures its time
/// (`fuzz/targets/cost.rs`).
pub fn cost(data: &[u8]) {
    cost::run_repeated(data, COST_BYTES);
}
