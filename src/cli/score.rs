//! `conclave score`: scores recorded outputs, JSON Lines in and out (SPEC 13.1).

use std::path::Path;

use indicatif::ProgressBar;

use super::exit::{Done, Exit, fail, failing};
use super::input::json_lines;
use super::progress::spinner;
use super::terminal::say_json;
use crate::config::{self, Env};
use crate::domain::{ScoringPolicy, counted};
use crate::scoring;

pub(super) fn run(env: &Env, path: &Path) -> Done {
    let policy = config::policy(env).map_err(failing(Exit::Configuration))?;
    let lines = json_lines(path)?;
    let progress =
        spinner("{spinner} {pos} requests, {msg} ({per_sec})").unwrap_or_else(ProgressBar::hidden);
    let (mut outputs, mut refused) = (0, 0);
    for line in lines {
        let (number, line) = line?;
        let answered = line.and_then(|line| scored(&line, &policy.scoring, &mut outputs));
        match answered {
            Ok(answer) => progress.suspend(|| say_json(&answer.to_string())),
            Err(error) => {
                refused += 1;
                progress.suspend(|| fail(Exit::Refused, format!("line {number}: {error}")));
            }
        }
        progress.inc(1);
        progress.set_message(counted(outputs, "output", "outputs"));
    }
    progress.finish_and_clear();
    if refused > 0 {
        Err(Exit::Refused)
    } else {
        Ok(())
    }
}

fn scored(line: &str, policy: &ScoringPolicy, outputs: &mut usize) -> Result<String, String> {
    let record = scoring::parse_record(line)?;
    *outputs += record.outputs();
    Ok(record.judge(policy).to_string())
}
