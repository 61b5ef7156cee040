//! The settings of actions: the part `policy.actions` of the file, and the switches of the
//! environment.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::checker::Check;
use super::file::ActionsFile;
use super::shape::below;
use crate::domain::{CommandName, Usd};

/// The name of the provider that proposes nothing.
const STUB: &str = "stub";

/// The settings of actions.
#[derive(Debug, Clone)]
pub struct ActionsPolicy {
    pub proposer: ProposerPolicy,
    /// The rules outside of the guilds that have their own.
    pub rules: ActionRules,
    pub guilds: BTreeMap<String, ActionRules>,
    /// The cap of a proposal.
    pub max: Usd,
    pub timeout: Duration,
    pub cache: Duration,
    pub proposal: Duration,
    pub user_per_minute: u32,
    pub user_burst: u32,
    /// The most bytes of a user's sheets and memories.
    pub user_bytes: u64,
}

/// When a model is asked, and what may be executed without confirmation.
#[derive(Debug, Clone)]
pub struct ProposerPolicy {
    pub enabled: bool,
    pub allow_autoexec: bool,
    pub min_confidence: f64,
    /// `None`: the stub, which proposes nothing.
    pub provider: Option<String>,
}

/// The settings that apply in one guild, or outside of all guilds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRules {
    /// False if `FEATURE_PLANNER_ENABLED` switches all actions off, or the guild its own.
    pub enabled: bool,
    pub commands: BTreeSet<CommandName>,
    pub proposer_commands: BTreeSet<CommandName>,
    pub narration: bool,
    pub shadow: bool,
}

impl ActionRules {
    /// Returns the commands that are allowed here and that a model may propose.
    pub fn proposable(&self) -> BTreeSet<CommandName> {
        self.proposer_commands
            .intersection(&self.commands)
            .copied()
            .filter(|name| !name.is_deletion())
            .collect()
    }
}

impl ActionsPolicy {
    pub fn rules(&self, guild: Option<&str>) -> ActionRules {
        let own = guild.and_then(|id| self.guilds.get(id));
        own.unwrap_or(&self.rules).clone()
    }

    /// Returns when a proposal made at `at` expires.
    pub fn expiry(&self, at: Timestamp) -> Timestamp {
        let lasts = SignedDuration::try_from(self.proposal);
        let lasts = lasts.unwrap_or(SignedDuration::from_mins(15));
        at.saturating_add(lasts).unwrap_or(Timestamp::MAX)
    }
}

impl Check<'_> {
    pub(super) fn actions(&mut self, a: &ActionsFile) -> ActionsPolicy {
        let all: BTreeSet<CommandName> = CommandName::ALL.iter().copied().collect();
        let at = "/policy/actions";
        let commands = self.commands(&below(at, "commands"), a.commands.as_deref());
        let of_proposer = below(at, "proposerCommands");
        let of_proposer = self.commands(&of_proposer, a.proposer_commands.as_deref());
        let rules = ActionRules {
            enabled: self.switch(&["FEATURE_PLANNER_ENABLED"]).unwrap_or(true),
            commands: commands.unwrap_or_else(|| all.clone()),
            proposer_commands: of_proposer.unwrap_or(all),
            narration: a.narration.unwrap_or(false),
            shadow: a.shadow.unwrap_or(false),
        };
        let mut guilds = BTreeMap::new();
        for (id, guild) in &a.guilds {
            let place = below(&below(&below(at, "guilds"), id), "commands");
            let mut own = rules.clone();
            if let Some(wanted) = self.commands(&place, guild.commands.as_deref()) {
                own.commands.retain(|name| wanted.contains(name));
            }
            own.enabled &= guild.enabled.unwrap_or(true);
            own.narration = guild.narration.unwrap_or(own.narration);
            own.shadow = guild.shadow.unwrap_or(own.shadow);
            guilds.insert(id.clone(), own);
        }
        ActionsPolicy {
            proposer: self.proposer(),
            rules,
            guilds,
            max: Usd::from_dollars(a.max_usd.unwrap_or(0.05)),
            timeout: Duration::from_millis(a.timeout_ms.unwrap_or(5000)),
            cache: Duration::from_secs(a.cache_seconds.unwrap_or(30)),
            proposal: Duration::from_secs(a.proposal_seconds.unwrap_or(900)),
            user_per_minute: a.user_per_minute.unwrap_or(60),
            user_burst: a.user_burst.unwrap_or(20),
            user_bytes: a.user_bytes.unwrap_or(1024 * 1024),
        }
    }

    /// Parses a list of command names. An unknown name is an error, because otherwise the list
    /// would silently allow less than it says.
    fn commands(
        &mut self,
        place: &str,
        names: Option<&[Option<String>]>,
    ) -> Option<BTreeSet<CommandName>> {
        let mut known = BTreeSet::new();
        for (i, name) in names?.iter().enumerate() {
            let Some(name) = name else { continue };
            if let Ok(command) = name.parse::<CommandName>() {
                known.insert(command);
            } else {
                let all: Vec<&str> = CommandName::ALL.iter().map(CommandName::into_str).collect();
                let all = all.join(", ");
                let detail = format!("there is no command {name:?}; the commands are {all}");
                self.add(format!("{place}/{i}"), detail);
            }
        }
        Some(known)
    }

    fn proposer(&mut self) -> ProposerPolicy {
        let enabled = self.switch(&["PROPOSER_ENABLED", "VICTUS_LLM_ENABLED"]);
        let legacy = self.switch(&["VICTUS_ENABLE_LLM_FALLBACK"]);
        let allow = self.switch(&["PROPOSER_ALLOW_AUTOEXEC", "VICTUS_LLM_ALLOW_AUTOEXEC"]);
        let names = [
            "PROPOSER_AUTOEXEC_MIN_CONFIDENCE",
            "VICTUS_LLM_AUTOEXEC_MIN_CONFIDENCE",
        ];
        let min_confidence = self.number(&names, 0.90, 1.0, "a number from 0 to 1, such as 0.90");
        let provider = self
            .first(&["PROPOSER_PROVIDER", "VICTUS_LLM_PROVIDER"])
            .map(|(_, name)| name);
        ProposerPolicy {
            enabled: enabled.or(legacy).unwrap_or(false),
            allow_autoexec: allow.unwrap_or(false),
            min_confidence: min_confidence.unwrap_or(0.90),
            provider: provider.filter(|name| name != STUB),
        }
    }

    fn switch(&mut self, names: &[&'static str]) -> Option<bool> {
        let (variable, text) = self.first(names)?;
        match text.to_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => {
                self.add(variable, format!("{text:?} is neither true nor false"));
                None
            }
        }
    }
}
