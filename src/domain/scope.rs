//! Scopes of bearer tokens.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of the API that a token may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl Scope {
    pub const ALL: [Scope; 4] = [Scope::Chat, Scope::Act, Scope::Tools, Scope::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Chat => "chat",
            Scope::Act => "act",
            Scope::Tools => "tools",
            Scope::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word is not the name of a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope: chat, act, tools or admin")]
pub struct NoSuchScope(pub String);

impl FromStr for Scope {
    type Err = NoSuchScope;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Scope::ALL
            .into_iter()
            .find(|scope| scope.as_str() == word)
            .ok_or_else(|| NoSuchScope(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_as_it_is_written() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        assert_eq!("Chat".parse::<Scope>(), Err(NoSuchScope("Chat".into())));
    }
}
