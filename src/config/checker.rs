//! Collects the problems of a config while its parts are checked.

use super::Problem;
use super::env::Env;
use super::file::File;
use super::shape::Shaped;

/// The config file and the environment, with the problems found so far.
pub(super) struct Check<'a> {
    pub(super) env: &'a Env,
    pub(super) shaped: &'a Shaped,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl<'a> Check<'a> {
    /// Returns the valid part of the file.
    pub(super) fn file(&self) -> &'a File {
        &self.shaped.file
    }

    pub(super) fn add(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        self.problems.push(Problem::new(place, detail));
    }

    /// Adds the problem that a variable is not set. If its line in a `.env` file cannot be read, that
    /// is a problem already.
    pub(super) fn add_unset(&mut self, name: &str, place: impl Into<String>, detail: String) {
        if !self.env.is_unread(name) {
            self.add(place, detail);
        }
    }

    /// Adds a warning. Warnings do not prevent the start.
    pub(super) fn warn(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        self.warnings.push(Problem::new(place, detail));
    }

    /// True if all of these places are as the user wrote them, with nothing removed.
    pub(super) fn are_sound(&self, places: &[&str]) -> bool {
        places.iter().all(|place| self.shaped.is_sound(place))
    }

    /// Returns the first of these variables that is set, with its value.
    pub(super) fn first(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        names
            .iter()
            .find_map(|name| Some((*name, self.env.get(name)?.to_owned())))
    }

    /// Returns the number from 0 to `most` in the first of these variables that is set, else the
    /// usual one. Another value is a problem: it is not `what`.
    pub(super) fn number(
        &mut self,
        names: &[&'static str],
        usual: f64,
        most: f64,
        what: &str,
    ) -> Option<f64> {
        let Some((variable, text)) = self.first(names) else {
            return Some(usual);
        };
        let number = text.parse::<f64>().ok();
        let number = number.filter(|number| (0.0..=most).contains(number));
        if number.is_none() {
            self.add(variable, format!("{text:?} is not {what}"));
        }
        number
    }
}
