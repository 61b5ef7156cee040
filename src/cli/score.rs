//! `conclave score`: scores recorded outputs, JSON Lines in and out (SPEC 13.1).

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use indicatif::ProgressBar;

use super::exit::{Done, Exit, fail, failing};
use super::progress::spinner;
use super::terminal::say_json;
use crate::config::{self, Env};
use crate::domain::counted;
use crate::scoring;

pub(super) fn run(env: &Env, path: &Path) -> Done {
    let policy = config::policy(env).map_err(failing(Exit::Configuration))?;
    let policy = scoring::Policy::from(&policy);
    let shown = path.display();
    let reader: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else if path.is_dir() {
        let why = format!("{shown} is a folder, and no file of JSON Lines");
        return Err(fail(Exit::Usage, why));
    } else {
        let file = File::open(path).map_err(|error| format!("cannot read {shown}: {error}"));
        Box::new(BufReader::new(file.map_err(failing(Exit::Refused))?))
    };
    let progress =
        spinner("{spinner} {pos} requests, {msg} ({per_sec})").unwrap_or_else(ProgressBar::hidden);
    let (mut outputs, mut refused) = (0, 0);
    for (at, line) in reader.split(b'\n').enumerate() {
        let line = line.map_err(|error| format!("line {}: {error}", at + 1));
        let line = line.map_err(failing(Exit::Unexpected))?;
        let text = std::str::from_utf8(&line);
        let text = text.map(|text| text.trim_start_matches('\u{feff}').trim());
        let answered = match text {
            Ok("") => continue,
            Ok(text) => scored(text, &policy, &mut outputs),
            Err(_) => Err("it is not UTF-8".to_owned()),
        };
        match answered {
            Ok(answer) => progress.suspend(|| say_json(&answer.to_string())),
            Err(error) => {
                refused += 1;
                progress.suspend(|| fail(Exit::Refused, format!("line {}: {error}", at + 1)));
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

fn scored(line: &str, policy: &scoring::Policy, outputs: &mut usize) -> Result<String, String> {
    let record = scoring::parse_record(line)?;
    *outputs += record.outputs();
    Ok(record.judge(policy).to_string())
}
