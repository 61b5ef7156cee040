//! Reads request headers.

use axum::http::HeaderMap;

/// True if a list header contains a value. Parameters such as `q=` are ignored.
pub(in crate::http) fn wants(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .any(|list| {
            list.split(',').any(|item| {
                item.split(';')
                    .next()
                    .unwrap_or("")
                    .trim()
                    .eq_ignore_ascii_case(value)
            })
        })
}
