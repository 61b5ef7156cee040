//! Reads request headers.

use axum::http::HeaderMap;

/// True if a list header contains a value. Parameters such as `q=` are ignored.
pub(in crate::http) fn wants(headers: &HeaderMap, name: &str, value: &str) -> bool {
    let lists = headers.get_all(name).iter();
    let lists = lists.filter_map(|list| list.to_str().ok());
    let mut items = lists.flat_map(|list| list.split(','));
    items.any(|item| {
        let name = item.split(';').next().unwrap_or("");
        name.trim().eq_ignore_ascii_case(value)
    })
}
