//! Removes secrets from text, including secrets in JSON escapes.
//!
//! A provider's reply is mostly JSON, and `"\u0073k-..."` decodes to a key. So the decoded form of
//! a text is searched too, and the decoded form of that, since a JSON string may contain JSON.
//! Matches are replaced in the original text. Other encodings (base64, percent signs, a key in two
//! halves) are not decoded.

use std::borrow::Cow;
use std::ops::Range;

use regex::Regex;
use secrecy::{ExposeSecret, SecretString};

use crate::domain::BearerToken;

/// Minimum length of a secret. A shorter one may be an ordinary word.
pub const MIN_SECRET_CHARS: usize = 8;

/// Minimum length of the beginning of a secret that is removed where a text was cut.
const MIN_CUT_BYTES: usize = 4;

/// How often a text is decoded: JSON in a string of JSON in a string of JSON.
const MAX_LAYERS: usize = 4;

const REPLACEMENT: &str = "[secret]";

/// Returns the text without the secrets and without bearer tokens of this service, whether plain or in
/// JSON escapes. Linear in the text for each secret.
pub fn without_secrets<'a>(text: &'a str, secrets: &[SecretString]) -> Cow<'a, str> {
    let mut secrets: Vec<&str> = secrets.iter().map(ExposeSecret::expose_secret).collect();
    secrets.retain(|secret| secret.chars().count() >= MIN_SECRET_CHARS);
    let mut spans: Vec<Range<usize>> = places(text, &secrets).collect();
    spans.extend(escaped(text, &secrets));
    if spans.is_empty() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(replaced(text, spans))
    }
}

/// As [`without_secrets`], for a text that was cut in front of each `mark`. There it may end with the
/// beginning of a secret, which is removed if it has four bytes or more.
pub fn without_cut_secrets(text: &str, mark: &Regex, secrets: &[SecretString]) -> String {
    let text = without_secrets(text, secrets);
    let (mut cleaned, mut done) = (String::with_capacity(text.len()), 0);
    for cut in mark.find_iter(&text) {
        let before = text.get(done..cut.start()).unwrap_or_default();
        let secrets = secrets.iter().map(ExposeSecret::expose_secret);
        let secrets = secrets.filter(|it| it.chars().count() >= MIN_SECRET_CHARS);
        let parts = secrets.filter_map(|secret| {
            let mut lengths = (MIN_CUT_BYTES..secret.len()).rev();
            lengths.find(|length| secret.get(..*length).is_some_and(|it| before.ends_with(it)))
        });
        let part = parts.max().map(|length| before.len() - length);
        let part = part
            .into_iter()
            .chain(BearerToken::cut_at_end(before))
            .min();
        cleaned.push_str(part.and_then(|at| before.get(..at)).unwrap_or(before));
        if part.is_some() {
            cleaned.push_str(REPLACEMENT);
        }
        done = cut.start();
    }
    cleaned.push_str(text.get(done..).unwrap_or_default());
    cleaned
}

/// Returns the byte ranges of the text that are a secret or a token.
fn places<'a>(text: &'a str, secrets: &'a [&str]) -> impl Iterator<Item = Range<usize>> + 'a {
    let found = secrets
        .iter()
        .flat_map(|secret| text.match_indices(*secret));
    let found = found.map(|(at, found)| at..at + found.len());
    found.chain(BearerToken::places(text))
}

/// Returns the byte ranges of the text in which a decoded form contains a secret.
fn escaped(text: &str, secrets: &[&str]) -> Vec<Range<usize>> {
    let (mut spans, mut layers, mut text) = (vec![], vec![], Cow::Borrowed(text));
    while layers.len() < MAX_LAYERS {
        let Some((decoded, shifts)) = decoded(&text) else {
            break;
        };
        layers.push(shifts);
        let original = |at| layers.iter().rev().fold(at, encoded_position);
        let found = places(&decoded, secrets);
        spans.extend(found.map(|place| original(place.start)..original(place.end)));
        text = Cow::Owned(decoded);
    }
    spans
}

fn replaced(text: &str, mut spans: Vec<Range<usize>>) -> String {
    spans.sort_by_key(|span| (span.start, span.end));
    let (mut cleaned, mut done) = (String::with_capacity(text.len()), 0);
    for span in spans {
        // A span that overlaps the previous one belongs to the same replacement.
        if span.start >= done {
            cleaned.push_str(text.get(done..span.start).unwrap_or_default());
            cleaned.push_str(REPLACEMENT);
        }
        done = done.max(span.end);
    }
    cleaned.push_str(text.get(done..).unwrap_or_default());
    cleaned
}

/// Where the distance between a decoded text and its encoded form changes: byte positions in both, in
/// order.
type Shifts = Vec<(usize, usize)>;

/// Returns a text with its escapes decoded; `None` if it has none.
fn decoded(text: &str) -> Option<(String, Shifts)> {
    let (mut out, mut shifts, mut rest) = (String::new(), vec![], text);
    while let Some((plain, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        let (c, length) = unescaped(escape).unwrap_or(('\\', 1));
        out.push_str(plain);
        out.push(c);
        rest = escape.get(length..).unwrap_or_default();
        shifts.push((out.len(), text.len() - rest.len()));
    }
    out.push_str(rest);
    (out.len() < text.len()).then_some((out, shifts))
}

/// Returns the position in the encoded form of what is at `at` in the decoded one.
fn encoded_position(at: usize, shifts: &Shifts) -> usize {
    let after = shifts.partition_point(|(decoded, _)| *decoded <= at);
    let last = after.checked_sub(1).and_then(|last| shifts.get(last));
    last.map_or(at, |(decoded, encoded)| encoded + (at - decoded))
}

/// Decodes the escape at the start of the text. Returns the character and the length of the escape
/// in bytes.
fn unescaped(text: &str) -> Option<(char, usize)> {
    let rest = text.strip_prefix('\\')?;
    let next = rest.chars().next()?;
    let c = match next {
        'u' => {
            let unit = hex(rest.get(1..5)?)?;
            let next = rest.get(5..).and_then(|next| next.strip_prefix("\\u"));
            let low = next.and_then(|next| hex(next.get(..4)?));
            if let (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) = (unit, low) {
                let c = char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))?;
                return Some((c, 12));
            }
            let c = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
            return Some((c, 6));
        }
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        // The lenient JSON parser keeps unknown escapes unchanged.
        c if c.is_ascii_alphanumeric() => return None,
        c => c,
    };
    Some((c, 1 + next.len_utf8()))
}

/// Returns the number that hexadecimal digits mean; `None` for other text.
fn hex(digits: &str) -> Option<u32> {
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "sk-private/0123456789";

    fn clean(text: &str) -> String {
        without_secrets(text, &[SecretString::from(KEY)]).into_owned()
    }

    /// Replaces every character by a JSON escape, `times` times.
    fn spelled(text: &str, times: usize) -> String {
        (0..times).fold(text.to_owned(), |text, _| {
            text.encode_utf16()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect::<String>()
        })
    }

    #[test]
    fn a_secret_in_json_escapes_is_found_at_every_depth() {
        for written in [
            KEY.to_owned(),
            KEY.replacen('s', "\\u0073", 1),
            KEY.replacen('k', "\\u006B", 1),
            KEY.replace('/', "\\/"),
            KEY.replacen('s', "\\\\u0073", 1),
            spelled(KEY, 1),
            spelled(KEY, 2),
        ] {
            let cleaned = clean(&format!("a \\n {written}, {written}."));
            assert_eq!(cleaned, "a \\n [secret], [secret].", "{written}");
        }
    }

    #[test]
    fn a_secret_of_eight_characters_is_removed_and_a_shorter_one_may_be_a_word() {
        let cleaned = |secret: &str| {
            let said = format!("The key {secret} is bad.");
            without_secrets(&said, &[SecretString::from(secret)]).into_owned()
        };
        assert_eq!(cleaned("gw-42-xy"), "The key [secret] is bad.");
        assert_eq!(cleaned("gateway"), "The key gateway is bad.");
    }

    #[test]
    fn a_token_of_this_service_is_found_by_its_form() {
        let token = BearerToken::new([7; 6], [9; 32]).reveal();
        for written in [token.clone(), token.replace('_', "\\u005f")] {
            let said = format!("Bearer {written}, conclave_07 and {token}");
            let cleaned = without_secrets(&said, &[]).into_owned();
            assert_eq!(cleaned, "Bearer [secret], conclave_07 and [secret]");
        }
    }

    #[test]
    fn the_beginning_of_a_secret_is_removed_where_a_text_was_cut() {
        let mark = Regex::new(r"\[cut\]").unwrap();
        let token = BearerToken::new([7; 6], [9; 32]).reveal();
        let all = [KEY, &token];
        for secret in all {
            for length in MIN_CUT_BYTES..secret.len() {
                let part = secret.get(..length).unwrap();
                let said = format!("a {part}[cut] b {part}[cut], {part}");
                let cleaned = without_cut_secrets(&said, &mark, &all.map(SecretString::from));
                let expected = format!("a [secret][cut] b [secret][cut], {part}");
                assert_eq!(cleaned, expected, "{length}");
            }
        }
        let unknown = BearerToken::new([8; 6], [1; 32]).reveal();
        let said = format!("{}[cut]", unknown.get(..unknown.len() - 1).unwrap());
        assert_eq!(without_cut_secrets(&said, &mark, &[]), "[secret][cut]");
        assert_eq!(
            without_cut_secrets("sk[cut]", &mark, &[KEY.into()]),
            "sk[cut]"
        );
    }

    #[test]
    fn a_text_without_the_secret_stays_as_it_is() {
        for text in [
            "",
            "\\",
            "\\u",
            "\\u12",
            "\\ud83d\\ude00 \\ud800 x",
            "C:\\users\\new",
            "sk-private\\u002f",
            "a\\\\",
        ] {
            let secrets = [SecretString::from(KEY)];
            let is_kept = matches!(without_secrets(text, &secrets), Cow::Borrowed(_));
            assert!(is_kept, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_value_of_a_cleaned_json_text_holds_the_secret(before in "\\PC{0,8}", after in "\\PC{0,8}", mask in any::<u32>()) {
            let pick = |(at, c): (usize, char)| {
                if mask >> (at % 32) & 1 == 1 { format!("\\u{:04X}", u32::from(c)) } else { c.to_string() }
            };
            let key: String = KEY.chars().enumerate().map(pick).collect();
            let (before, after) = (serde_json::to_string(&before).unwrap(), serde_json::to_string(&after).unwrap());
            let json = format!("\"{}{key}{}\"", before.trim_matches('"'), after.trim_matches('"'));
            if let Ok(said) = serde_json::from_str::<String>(&clean(&json)) {
                prop_assert!(!said.contains(KEY), "{}", said);
            }
        }
    }
}
