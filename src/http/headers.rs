//! Reads request headers.

use axum::http::HeaderMap;

/// True if a list header contains a value, unless its quality is 0 (RFC 9110, 12.4.2). Other
/// qualities and parameters are ignored.
pub(in crate::http) fn wants(headers: &HeaderMap, name: &str, value: &str) -> bool {
    let lists = headers.get_all(name).iter();
    let lists = lists.filter_map(|list| list.to_str().ok());
    let mut items = lists.flat_map(|list| list.split(','));
    items.any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(value));
        let is_refused = |part: &str| {
            let quality = part
                .strip_prefix(['q', 'Q'])
                .and_then(|it| it.strip_prefix('='));
            quality.and_then(|it| it.parse().ok()) == Some(0.0)
        };
        is_named && !parts.any(is_refused)
    })
}
