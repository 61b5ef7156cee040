//! Colours for statuses, states and the gate. They are used on a terminal only, and not with
//! `NO_COLOR` (the rules of `console`).

use console::{Style, StyledObject};

use crate::domain::{Gate, Status};
use crate::journal::RunState;

/// The meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Doubtful,
    Bad,
    Pending,
    /// Neither good nor bad.
    Neutral,
}

impl From<Status> for Tone {
    fn from(status: Status) -> Self {
        match status {
            Status::Valid => Tone::Good,
            Status::Quarantine => Tone::Doubtful,
            Status::Discard => Tone::Bad,
        }
    }
}

impl From<Gate> for Tone {
    fn from(gate: Gate) -> Self {
        match gate {
            Gate::Ship => Tone::Good,
            Gate::Ask => Tone::Doubtful,
        }
    }
}

impl From<RunState> for Tone {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Answered | RunState::Heuristic => Tone::Good,
            RunState::Clarification => Tone::Doubtful,
            RunState::Failed => Tone::Bad,
            RunState::Queued | RunState::Running => Tone::Pending,
            RunState::Cancelled => Tone::Neutral,
        }
    }
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Good => Style::new().green(),
            Tone::Doubtful => Style::new().yellow(),
            Tone::Bad => Style::new().red(),
            Tone::Pending => Style::new().cyan(),
            Tone::Neutral => Style::new().dim(),
        }
    }

    /// Styles a word for standard output. Its padding is kept.
    pub fn on_stdout<D>(self, word: D) -> StyledObject<D> {
        self.style().for_stdout().apply_to(word)
    }

    /// Styles a word for standard error.
    pub fn on_stderr<D>(self, word: D) -> StyledObject<D> {
        self.style().for_stderr().apply_to(word)
    }
}

/// Styles a column heading of a table on standard output.
pub(super) fn heading(text: &str) -> StyledObject<&str> {
    Style::new().bold().for_stdout().apply_to(text)
}

/// Returns the text of an audit appendix for standard output, with its statuses and the line of
/// c_final in colour.
pub(super) fn appendix(text: &str, gate: Option<Gate>) -> String {
    let mut text = text.to_owned();
    for status in [Status::Valid, Status::Quarantine, Status::Discard] {
        let word = status.into_str();
        let coloured = Tone::from(status).on_stdout(word);
        // The two texts are a cell of the table of agents, and the heading of an agent's scores.
        text = text.replace(&format!("| {word} |"), &format!("| {coloured} |"));
        text = text.replace(&format!(" ({word}):\n"), &format!(" ({coloured}):\n"));
    }
    let Some(gate) = gate else { return text };
    let mut lines = text.lines();
    let Some(line) = lines.find(|line| line.starts_with("- c_final: ")) else {
        return text;
    };
    text.replace(line, &Tone::from(gate).on_stdout(line).to_string())
}
