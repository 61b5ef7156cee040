//! Collects the problems of a config while its parts are checked.

use super::Problem;
use super::env::Env;
use super::shape::Shaped;

/// The config file and the environment, with the problems found so far.
pub(super) struct Check<'a> {
    pub(super) env: &'a Env,
    pub(super) shaped: &'a Shaped,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl Check<'_> {
    pub(super) fn add(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        self.problems.push(Problem {
            place: place.into(),
            detail: detail.into(),
        });
    }

    /// Adds a warning. Warnings do not prevent the start.
    pub(super) fn warn(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        self.warnings.push(Problem {
            place: place.into(),
            detail: detail.into(),
        });
    }

    /// True if all of these places are as the user wrote them, with nothing removed.
    pub(super) fn are_sound(&self, places: &[&str]) -> bool {
        places.iter().all(|place| self.shaped.is_sound(place))
    }
}
