//! The providers that are known by name.

use super::ProviderKind;

/// A provider that is known by its name.
pub(super) struct Preset {
    pub name: &'static str,
    pub kind: ProviderKind,
    pub address: &'static str,
    pub needs_key: bool,
    /// The variable that selects this provider: its key, or its address if it needs no key.
    pub found_by: &'static str,
}

const fn preset(
    name: &'static str,
    kind: ProviderKind,
    address: &'static str,
    found_by: &'static str,
) -> Preset {
    Preset {
        name,
        kind,
        address,
        needs_key: !matches!(name.as_bytes(), b"ollama"),
        found_by,
    }
}

pub(super) const ANTHROPIC: &str = "https://api.anthropic.com";

/// In the order in which a config is chosen by the keys that are set.
pub(super) const PRESETS: [Preset; 5] = [
    preset(
        "anthropic",
        ProviderKind::Anthropic,
        ANTHROPIC,
        "ANTHROPIC_API_KEY",
    ),
    preset(
        "openai",
        ProviderKind::Openai,
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
    ),
    preset(
        "xai",
        ProviderKind::Openai,
        "https://api.x.ai/v1",
        "XAI_API_KEY",
    ),
    preset(
        "openrouter",
        ProviderKind::Openai,
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
    ),
    preset(
        "ollama",
        ProviderKind::Openai,
        "http://127.0.0.1:11434/v1",
        "OLLAMA_BASE_URL",
    ),
];

/// The providers that need a key, each with the variable of its key.
pub const KEY_VARIABLES: [(&str, &str); 4] = [
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("openai", "OPENAI_API_KEY"),
    ("xai", "XAI_API_KEY"),
    ("openrouter", "OPENROUTER_API_KEY"),
];

impl Preset {
    pub fn of(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}
