//! An attached image that no agent can see.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An image that could not be fetched or read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UnseenImage {
    Image {
        /// The name of its file.
        name: String,
        cause: UnseenCause,
        /// The cause with its figures, in English.
        detail: String,
    },
    /// One sentence. Only in journals of earlier versions.
    Sentence(String),
}

/// Why an image was not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum UnseenCause {
    /// The address is none that the service fetches.
    AddressNotAllowed,
    Unreachable,
    TooLarge,
    NotAnImage,
}

/// One English sentence.
impl fmt::Display for UnseenImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image { name, detail, .. } => {
                write!(f, "the image {name:?} was not seen: {detail}")
            }
            Self::Sentence(sentence) => f.write_str(sentence),
        }
    }
}
