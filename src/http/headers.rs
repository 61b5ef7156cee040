//! Reads request headers.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// True if a list header contains a value, unless its quality is 0 (RFC 9110, 12.4.2). Other
/// parameters are ignored.
pub(in crate::http) fn wants(headers: &HeaderMap, name: &str, value: &str) -> bool {
    quality(headers, name, value) > 0.0
}

/// True if the client accepts a media type and prefers no JSON to it.
pub(in crate::http) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let [this, json] =
        [media_type, "application/json"].map(|it| quality(headers, ACCEPT.as_str(), it));
    this > 0.0 && this >= json
}

/// Returns the largest quality of a value in a list header, 0 if it is not there.
fn quality(headers: &HeaderMap, name: &str, value: &str) -> f32 {
    let lists = headers.get_all(name).iter();
    let lists = lists.filter_map(|list| list.to_str().ok());
    let items = lists.flat_map(|list| list.split(','));
    let qualities = items.filter_map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_named = parts.next()?.eq_ignore_ascii_case(value);
        let quality = parts.find_map(|part| {
            let quality = part.strip_prefix(['q', 'Q'])?.strip_prefix('=')?;
            quality.parse().ok()
        });
        is_named.then(|| quality.unwrap_or(1.0))
    });
    qualities.fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_accepted_unless_json_is_preferred_to_it() {
        for (given, expected) in [
            ("text/event-stream", true),
            ("application/json, text/event-stream", true),
            ("text/event-stream;q=0.5, application/json;q=0.4", true),
            ("application/json;q=1, text/event-stream;q=0.001", false),
            ("text/event-stream; q=0.3, application/json", false),
            ("text/event-stream;q=0", false),
            ("*/*", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, given.parse().unwrap());
            assert_eq!(accepts(&headers, "text/event-stream"), expected, "{given}");
        }
    }
}
