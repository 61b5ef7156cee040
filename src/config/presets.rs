//! The providers that are known by name.

use crate::domain::ProviderKind::{self, Anthropic, Openai};

/// A provider that is known by its name.
#[derive(Debug)]
pub struct Preset {
    pub name: &'static str,
    pub(super) kind: ProviderKind,
    pub(super) address: &'static str,
}

pub(super) const ANTHROPIC: &str = "https://api.anthropic.com";

/// In the order in which a config is chosen by the keys that are set.
pub const PRESETS: [Preset; 5] = [
    preset("anthropic", Anthropic, ANTHROPIC),
    preset("openai", Openai, "https://api.openai.com/v1"),
    preset("xai", Openai, "https://api.x.ai/v1"),
    preset("openrouter", Openai, "https://openrouter.ai/api/v1"),
    preset("ollama", Openai, "http://127.0.0.1:11434/v1"),
];

const fn preset(name: &'static str, kind: ProviderKind, address: &'static str) -> Preset {
    Preset {
        name,
        kind,
        address,
    }
}

impl Preset {
    pub fn of(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    pub fn needs_key(&self) -> bool {
        self.name != "ollama"
    }

    /// Returns the variable that selects this provider: its key, or its address if it needs no key.
    pub fn variable(&self) -> String {
        let suffix = if self.needs_key() {
            "API_KEY"
        } else {
            "BASE_URL"
        };
        format!("{}_{suffix}", self.name.to_uppercase())
    }
}
