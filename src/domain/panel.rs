//! The agents and roles of the committee.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

/// A member of the committee that answers the question.
//
// The order of the variants is part of the seeds of a run (`RequestContext::random`), so a new one
// comes last.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Agent {
    Solver,
    Critic,
    Verifier,
    Editor,
    Implementer,
    Visual,
}

/// The agents that every plan includes. The cap may still leave out the critic and the verifier.
pub const CORE_AGENTS: [Agent; 3] = [Agent::Solver, Agent::Critic, Agent::Verifier];

impl Agent {
    pub const ALL: &[Self] = Self::VARIANTS;

    pub fn is_core(self) -> bool {
        CORE_AGENTS.contains(&self)
    }
}

/// The name of an agent in scored outputs: an agent of the committee, or any name in a recorded file
/// (SPEC 13.1).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(untagged, from = "String")]
pub enum AgentName {
    #[strum(transparent)]
    Committee(Agent),
    #[strum(transparent)]
    Recorded(String),
}

impl AgentName {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Committee(agent) => agent.into_str(),
            Self::Recorded(name) => name,
        }
    }

    /// Returns the agent of the committee with this name.
    pub fn agent(&self) -> Option<Agent> {
        match self {
            Self::Committee(agent) => Some(*agent),
            Self::Recorded(_) => None,
        }
    }
}

impl From<Agent> for AgentName {
    fn from(agent: Agent) -> Self {
        Self::Committee(agent)
    }
}

impl From<String> for AgentName {
    fn from(name: String) -> Self {
        let agent = name.parse().map(Self::Committee);
        agent.unwrap_or(Self::Recorded(name))
    }
}

impl PartialEq<Agent> for AgentName {
    fn eq(&self, agent: &Agent) -> bool {
        self.agent() == Some(*agent)
    }
}

/// A role to which the config assigns a model: the master, an agent, or the proposer of actions.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display, strum::IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    Master,
    #[strum(transparent)]
    Agent(Agent),
    /// Proposes a command for a text that the parser does not understand. Not part of the
    /// committee.
    Proposer,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the agent of an agent's role.
    pub fn agent(self) -> Option<Agent> {
        match self {
            Role::Agent(agent) => Some(agent),
            Role::Master | Role::Proposer => None,
        }
    }
}

impl FromStr for Role {
    type Err = strum::ParseError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "master" => Ok(Role::Master),
            "proposer" => Ok(Role::Proposer),
            agent => agent.parse().map(Role::Agent),
        }
    }
}

impl Serialize for Role {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse()
            .map_err(|_| serde::de::Error::custom(format!("unknown role {name:?}")))
    }
}
