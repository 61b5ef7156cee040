//! Parses error answers: the providers' error bodies and `retry-after`. Removes keys.

use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use hyper::header::{DATE, HeaderMap, RETRY_AFTER};
use jiff::Timestamp;
use regex::Regex;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{AccountProblem, ErrorKind, Fault};
use crate::clock::Clock;
use crate::text::pattern;

/// Maximum `retry-after`. A longer wait is a mistake or means "never".
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Parses an answer with a status other than 2xx. The detail is not yet cleaned.
pub(super) fn read(status: u16, headers: &HeaderMap, body: &[u8]) -> Fault {
    let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    // Google's compatible API puts the error into a list.
    let value = value.get(0).unwrap_or(&value);
    let other = match body {
        [] => "no explanation",
        _ => "an explanation that is not JSON",
    };
    let fault = from_body(status, value);
    let (mut kind, detail) = fault.unwrap_or_else(|| (kind_of(status, "", ""), other.to_owned()));
    if let ErrorKind::Status {
        retry_after: wait, ..
    } = &mut kind
    {
        *wait = retry_after(headers);
    }
    (kind, detail)
}

/// Returns the HTTP status that an error inside a 200 stands for. Without one in `code` it is 502.
pub(super) fn status_of(code: Option<u64>) -> u16 {
    let code = code.and_then(|code| u16::try_from(code).ok());
    code.filter(|code| (400..600).contains(code)).unwrap_or(502)
}

/// Parses `{"error": {"message", "type", "code"}}`, the variants `{"error": "text"}` and
/// `{"message": "text"}`, and the `detail` of services on FastAPI.
pub(super) fn from_body(status: u16, body: &Value) -> Option<Fault> {
    let error = &body["error"];
    let text = |name: &str| error[name].as_str();
    let detail = || details(&body["detail"]).or_else(|| details(body.pointer("/message/detail")?));
    let said = text("message").or(error.as_str());
    let said = said.or(body["message"].as_str()).or(text("type"));
    let message = &said.map(str::to_owned).or_else(detail)?;
    let code = text("code").or_else(|| text("type")).unwrap_or_default();
    let detail = match text("type") {
        Some(kind) if !message.contains(kind) => format!("{kind}: {message}"),
        _ => message.to_owned(),
    };
    Some((kind_of(status, code, message), detail))
}

/// Returns the text of a `detail`: as it is, or the path and the message of each wrong field.
fn details(detail: &Value) -> Option<String> {
    let of_field = |field: &Value| {
        let path = field["loc"].as_array()?.iter();
        let path = path.map(|part| part.as_str().map_or(part.to_string(), str::to_owned));
        let path = path.collect::<Vec<_>>().join(".");
        Some(format!("{path}: {}", field["msg"].as_str()?))
    };
    let fields = || Some(detail.as_array()?.iter().filter_map(of_field).collect());
    let fields: Option<Vec<String>> = fields();
    let text = detail.as_str().map(str::to_owned);
    text.or(fields.map(|it| it.join("; ")).filter(|it| !it.is_empty()))
}

/// Returns what an error's status, code and message stand for. Groq refuses output that does not
/// match the schema as if it were a request.
fn kind_of(status: u16, code: &str, message: &str) -> ErrorKind {
    let problem = match (status, code) {
        (413, _)
        | (_, "context_length_exceeded" | "exceed_context_size_error" | "request_too_large") => {
            return ErrorKind::Unfit;
        }
        (400, _) if TOO_LONG.is_match(message) => return ErrorKind::Unfit,
        (_, "json_validate_failed") => return ErrorKind::Unreadable,
        (402, _) | (_, "insufficient_quota" | "billing_error") => AccountProblem::NoCredit,
        (400 | 403, _) if NO_CREDIT.is_match(message) => AccountProblem::NoCredit,
        (400, _) if WRONG_KEY.is_match(message) => AccountProblem::WrongKey,
        _ => {
            let retry_after = None;
            return ErrorKind::Status {
                status,
                retry_after,
            };
        }
    };
    ErrorKind::Account { status, problem }
}

/// Returns one line. Removes the given key and anything else that looks like a key. The line is
/// not shortened: a secret that is cut is not found any more.
pub(super) fn clean(text: &str, key: Option<&SecretString>) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(key) = key {
        let key = key.expose_secret().trim();
        // A provider may echo part of the key, which its first eight characters identify.
        let head: String = key.chars().take(8).collect();
        if !head.is_empty() {
            line = line.replace(key, "[key]");
            if key.chars().count() >= 8
                && let Ok(pattern) = Regex::new(&format!(r"{}[^\s,;)\]]*", regex::escape(&head)))
            {
                line = pattern.replace_all(&line, "[key]").into_owned();
            }
        }
    }
    KEY.replace_all(&line, "[key]").into_owned()
}

static TOO_LONG: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)prompt is too long|maximum context length|context (length|window|size)|too many tokens",
    )
});

/// What Anthropic and xAI say, as of 2026-11-29, if an account has no credit or has reached its limit.
static NO_CREDIT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)credit balance is too low|\b(usage|spending) limits?\b|\b(any|available) credits\b",
    )
});

/// What xAI and Google say, as of 2026-11-29, if a key is wrong: both with status 400.
static WRONG_KEY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\b(incorrect|invalid) api key\b|\bapi key (is )?(not valid|invalid)\b")
});

static KEY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)
          (?i:bearer)\s+[^\s,;]+
        | \b(?:(?:sk|pk|xai|gsk|key)[-_]|AIza)[-_*.A-Za-z0-9]{8,}
        | \b[A-Za-z0-9_]{32,}\b",
    )
});

/// Parses `retry-after-ms`, or `retry-after` as seconds or as an HTTP date. A date is compared with
/// the answer's own `date`, or without one with the clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |text: &str, unit: f64| {
        let value = text.parse::<f64>().ok()? * unit;
        // A number that is too large for a duration means a long wait.
        (value >= 0.0).then(|| Duration::try_from_secs_f64(value).unwrap_or(MAX_RETRY_AFTER))
    };
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    let in_ms = text("retry-after-ms").and_then(|text| seconds(text, 0.001));
    let wait = in_ms.or_else(|| {
        let text_of_wait = text(RETRY_AFTER.as_str())?;
        seconds(text_of_wait, 1.0).or_else(|| {
            let now = text(DATE.as_str()).and_then(date);
            let now = now.or_else(|| {
                let now = Clock::System.now().duration_since(Timestamp::UNIX_EPOCH);
                Some(UNIX_EPOCH + Duration::try_from(now).ok()?)
            });
            date(text_of_wait)?.duration_since(now?).ok()
        })
    });
    wait.map(|wait| wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;
    use serde_json::json;

    use super::*;
    use crate::domain::Retryable;
    use crate::llm::Error;

    fn error(provider: &str, status: u16, body: &Value) -> Error {
        let (kind, detail) = read(status, &HeaderMap::new(), body.to_string().as_bytes());
        Error::new(provider, kind, detail)
    }

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        let wait = |pairs: &[(&str, &str)]| retry_after(&headers(pairs));
        let ms = |ms: u64| Some(Duration::from_millis(ms));
        for (given, expected) in [
            ("7", ms(7_000)),
            ("0.5", ms(500)),
            ("soon", None),
            ("-1", None),
            ("NaN", None),
            ("99999999", ms(3_600_000)),
            ("1e300", ms(3_600_000)),
            ("inf", ms(3_600_000)),
            ("Wed, 21 Oct 2015 07:28:30 GMT", ms(30_000)),
            ("Wed, 21 Oct 2015 07:27:30 GMT", None),
            ("Wednesday, 21-Oct-15 07:28:30 GMT", ms(30_000)),
            ("Wed Oct 21 07:28:30 2015", ms(30_000)),
            ("Thu, 31 Dec 2099 23:59:59 GMT", ms(3_600_000)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", ms(3_600_000)),
        ] {
            assert_eq!(wait(&[("retry-after", given), date]), expected, "{given}");
        }
        let undated = ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT");
        assert_eq!(wait(&[undated]), None);
        let undated = ("retry-after", "Thu, 31 Dec 2099 23:59:59 GMT");
        assert_eq!(wait(&[undated]), ms(3_600_000));
        let both = [("retry-after-ms", "120"), ("retry-after", "7")];
        assert_eq!(wait(&both), ms(120));
    }

    #[test]
    fn a_prompt_beyond_the_context_is_unfit_not_a_status() {
        let bodies = [
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}}),
            json!({"error": {"message": "too big", "type": "invalid_request_error", "code": "context_length_exceeded"}}),
            json!({"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}}),
        ];
        for body in bodies {
            assert_eq!(error("p", 400, &body).kind, ErrorKind::Unfit);
        }
    }

    #[test]
    fn output_that_the_provider_checked_and_refused_is_worth_another_attempt_and_may_be_billed() {
        let body = json!({"error": {
            "message": "Generated JSON does not match the expected schema. Please adjust your prompt.",
            "type": "invalid_request_error", "code": "json_validate_failed", "failed_generation": "{}",
        }});
        let error = error("groq", 400, &body);
        assert_eq!(error.kind, ErrorKind::Unreadable);
        assert_eq!(
            (error.retry(), error.may_be_billed()),
            (Retryable::AfterMs(0), true)
        );
    }

    #[test]
    fn rejected_fields_are_named() {
        let fields = json!([{ "loc": ["body", "reasoning_effort"], "msg": "Extra inputs are not permitted" }]);
        for body in [
            json!({ "detail": fields }),
            json!({ "message": { "detail": fields } }),
        ] {
            let (_, detail) = from_body(422, &body).unwrap();
            assert_eq!(
                detail,
                "body.reasoning_effort: Extra inputs are not permitted"
            );
        }
    }

    #[test]
    fn an_account_that_gets_no_answers_is_told_apart_and_not_worth_another_attempt() {
        let quota = json!({"error": {"type": "insufficient_quota", "message": "quota exceeded"}});
        let of =
            |message: &str| json!({"error": {"type": "invalid_request_error", "message": message}});
        let credit = of("Your credit balance is too low");
        let limit = of("You have reached your specified API usage limits.");
        let empty = "no credit is left there, or its limit is reached";
        let key = json!({"code": "invalid", "error": "Incorrect API key provided: xa***99."});
        let listed = json!([{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}]);
        let other = of("max_tokens: the limit of the API is 8192");
        for (status, body, meaning) in [
            (429, quota, empty),
            (400, credit, empty),
            (400, limit, empty),
            (402, json!({}), empty),
            (400, key, "wrong key"),
            (400, listed, "wrong key"),
            (400, other, "invalid request"),
        ] {
            let error = error("p", status, &body);
            let expected = format!("p answered {status}: {meaning}");
            assert_eq!((error.retry(), error.outline()), (Retryable::No, expected));
        }
    }

    #[test]
    fn keys_are_removed_and_the_rest_stays() {
        let key = SecretString::from("zz-private-0123456789");
        let cases = [
            (
                "Incorrect API key provided: sk-proj-ab****************wxyz. Find it",
                "Incorrect API key provided: [key] Find it",
            ),
            ("bad zz-private-0123456789 key", "bad [key] key"),
            ("bad zz-private-01... key", "bad [key] key"),
            (
                "Authorization: Bearer abc.def is wrong",
                "Authorization: [key] is wrong",
            ),
            (
                "skyscrapers and keyboards stay",
                "skyscrapers and keyboards stay",
            ),
            (
                "no model claude-sonnet-4-5-20250929\nhere",
                "no model claude-sonnet-4-5-20250929 here",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text, Some(&key)), expected);
        }
    }

    #[test]
    fn bodies_without_a_message_are_not_quoted() {
        let (_, detail) = read(502, &headers(&[]), b"<html>secret</html>");
        assert_eq!(detail, "an explanation that is not JSON");
    }
}
