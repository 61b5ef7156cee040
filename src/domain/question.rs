//! The question and its origin.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// How thorough the committee is to be.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Mode {
    Ask,
    Audit,
    Deep,
}

impl Mode {
    /// Returns the maximum number of rounds in this mode.
    pub fn max_rounds(self) -> u8 {
        match self {
            Mode::Ask => 1,
            Mode::Audit => 2,
            Mode::Deep => 3,
        }
    }

    /// True if the reply has the audit appendix.
    pub fn has_audit(self) -> bool {
        self != Mode::Ask
    }
}

/// Where a question came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Source {
    Discord,
    Cli,
    Http,
}

/// A pattern: no control characters, and not only spaces.
const NAMED: &str = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";

/// Who asks. No control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct User {
    #[schemars(length(min = 1, max = 200), regex(pattern = NAMED))]
    pub id: String,
    /// May be empty.
    #[schemars(
        length(max = 200),
        regex(pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")
    )]
    pub name: String,
}

/// Where in the client it was asked, by the client's own ids. May be `{}`. No control characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Context {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200), regex(pattern = NAMED))]
    pub channel_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200), regex(pattern = NAMED))]
    pub guild_id: Option<String>,
    /// With `source`, the idempotency key if no `Idempotency-Key` is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200), regex(pattern = NAMED))]
    pub message_id: Option<String>,
}

/// A file that the question is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct Attachment {
    /// No control characters.
    #[schemars(length(min = 1, max = 255), regex(pattern = NAMED))]
    pub filename: String,
    /// https, on a host of the allowlist; or data.
    #[schemars(url, regex(pattern = "^(https://[A-Za-z0-9]|data:)[!-~]*$"))]
    pub url: String,
    /// Printable ASCII. The type of an image is detected from its bytes, not from this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), regex(pattern = "^[ -~]*$"))]
    pub content_type: Option<String>,
}

/// What an attachment says of being an image, before its bytes are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageClaim {
    Image,
    /// It has no type, or one for any bytes, or its type and its name differ.
    Unknown,
    /// As unknown, but its name says another kind.
    Unlikely,
    Other,
}

impl Attachment {
    /// Returns what the declared content type and the file name say. They may be wrong: only two that
    /// agree on another kind are believed.
    pub fn image_claim(&self) -> ImageClaim {
        let declared = self.content_type.as_deref().map(str::trim);
        let declared = declared.map(str::to_lowercase).unwrap_or_default();
        let is_declared = !matches!(declared.as_str(), "" | "application/octet-stream");
        let named = mime_guess::from_path(&self.filename).first();
        let is_image = named.map(|mime| mime.type_() == mime_guess::mime::IMAGE);
        match (is_declared, is_image) {
            (true, _) if declared.starts_with("image/") => ImageClaim::Image,
            (false, Some(true)) => ImageClaim::Image,
            (true, Some(true)) | (false, None) => ImageClaim::Unknown,
            (false, Some(false)) => ImageClaim::Unlikely,
            (true, Some(false) | None) => ImageClaim::Other,
        }
    }
}

/// What makes the request stand out. Decision strategies read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, inline)]
pub struct Salience {
    /// How soon an answer is needed. With `heuristic_first` it lowers the threshold by up to 0.20.
    #[serde(deserialize_with = "or_default")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1))]
    pub urgency: f64,
    /// How much harm a wrong answer does. From 0.5 on, the whole committee answers: no learned
    /// answer, and not the solver alone.
    #[serde(deserialize_with = "or_default")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1))]
    pub gravity: f64,
}

/// Reads a value that may be null, which means its default.
///
/// # Errors
/// As the value's own.
pub fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    value: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

impl Salience {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub fn by_name(self) -> [(&'static str, f64); 2] {
        [("gravity", self.gravity), ("urgency", self.urgency)]
    }
}

/// A validated question to the committee: the message is trimmed and within its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    pub source: Source,
    pub mode: Mode,
    pub user: User,
    #[serde(default)]
    pub context: Context,
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    #[serde(default, skip_serializing_if = "Salience::is_none")]
    pub salience: Salience,
}

impl Question {
    pub fn has_image(&self) -> bool {
        let mut attachments = self.attachments.iter();
        attachments.any(|it| it.image_claim() == ImageClaim::Image)
    }
}
