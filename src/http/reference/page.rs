//! The document as a page.

use serde_json::Value;

pub(super) fn render(_document: &Value) -> (String, String) {
    (String::new(), "default-src 'none'".to_owned())
}
