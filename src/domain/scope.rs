//! Scopes of bearer tokens.

use serde::{Deserialize, Serialize};

/// A part of the API that a token may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
#[strum(parse_err_ty = NoSuchScope, parse_err_fn = NoSuchScope::of)]
pub enum Scope {
    /// Ask the committee, and read the results.
    Chat,
    /// Actions.
    Act,
    /// Tool plans.
    Tools,
    /// Everything, including metrics and runs of other users.
    Admin,
}

/// The word is not the name of a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope: chat, act, tools or admin")]
pub struct NoSuchScope(pub String);

impl NoSuchScope {
    fn of(word: &str) -> Self {
        Self(word.to_owned())
    }
}
