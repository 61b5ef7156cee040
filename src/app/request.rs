//! Requests as clients send them, and as they are once their rules are checked.

use std::borrow::Cow;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::continuation::without_new_prefix;
use super::problems::{self, FieldProblem};
use crate::config::Limits;
use crate::domain::{
    Attachment, Context, EvidenceFocus, Mode, Question, Salience, Source, User, is_invisible,
    or_default,
};
use crate::llm::without_secrets;

/// Maximum length in characters of an id or a name.
const MAX_NAME_CHARS: usize = 200;
/// Maximum length in characters of a path.
const MAX_PATH_CHARS: usize = 4096;

/// A chat as a client sent it. Its rules are not checked: the lengths in its schema are those of
/// [`ChatRequest`]. A body that breaks only these has the right shape.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ChatBody", description = "A question to the committee.")]
pub struct ChatInput {
    pub source: Source,
    /// ask: one round, no audit. audit: up to two rounds. deep: up to three rounds and the larger
    /// cap.
    pub mode: Mode,
    pub user: User,
    pub context: Context,
    /// Counted after trimming. Without NUL.
    #[schemars(length(min = 1, max = 32000), regex(pattern = MESSAGE))]
    pub message: String,
    /// Images are shown to the visual agent. For other files the models get only name and type.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "or_default"
    )]
    #[schemars(with = "Option<Vec<Attachment>>", length(max = 10))]
    pub attachments: Vec<Attachment>,
    #[serde(
        default,
        skip_serializing_if = "Salience::is_none",
        deserialize_with = "or_default"
    )]
    #[schemars(with = "Option<Salience>")]
    pub salience: Salience,
}

/// An action as a client sent it: a chat without mode and attachments. Its rules are not checked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(
    rename = "ActBody",
    description = "A text that is to become a command."
)]
pub struct ActionInput {
    pub source: Source,
    pub user: User,
    pub context: Context,
    /// Counted after trimming. Without NUL.
    #[schemars(length(min = 1, max = 32000), regex(pattern = MESSAGE))]
    pub message: String,
}

/// The pattern of a message: without NUL, and not only spaces.
pub const MESSAGE: &str = r"^[^\u0000]*[^\s\u0000][^\u0000]*$";

/// A chat that keeps the rules, without the configured secrets.
#[derive(Debug, Clone)]
pub struct ChatRequest(pub(super) Question);

/// An action that keeps the rules, without the configured secrets.
#[derive(Debug, Clone)]
pub struct ActionRequest(pub(super) Question);

impl ChatRequest {
    /// Trims the message and checks the rules.
    ///
    /// # Errors
    /// Every rule that the input breaks, bounded in number.
    pub fn parse(
        input: ChatInput,
        limits: &Limits,
        secrets: &[SecretString],
    ) -> Result<Self, Vec<FieldProblem>> {
        let question = Question {
            source: input.source,
            mode: input.mode,
            user: input.user,
            context: input.context,
            message: input.message,
            attachments: input.attachments,
            salience: input.salience,
        };
        let question = checked(question, limits, secrets)?;
        if question.message.eq_ignore_ascii_case("new:") {
            let detail = "has nothing after \"new:\"";
            return Err(vec![FieldProblem::new("/message", detail)]);
        }
        Ok(Self(question))
    }

    pub fn question(&self) -> &Question {
        &self.0
    }
}

impl ActionRequest {
    /// As [`ChatRequest::parse`].
    ///
    /// # Errors
    /// As [`ChatRequest::parse`].
    pub fn parse(
        input: ActionInput,
        limits: &Limits,
        secrets: &[SecretString],
    ) -> Result<Self, Vec<FieldProblem>> {
        // The journal has one type for both. The mode of an action has no meaning.
        let question = Question {
            source: input.source,
            mode: Mode::Ask,
            user: input.user,
            context: input.context,
            message: input.message,
            attachments: vec![],
            salience: Salience::default(),
        };
        Ok(Self(checked(question, limits, secrets)?))
    }
}

fn checked(
    mut question: Question,
    limits: &Limits,
    secrets: &[SecretString],
) -> Result<Question, Vec<FieldProblem>> {
    question.message = question.message.trim().to_owned();
    let mut problems = vec![];
    message_problems(&question.message, limits, &mut problems);
    name_problems(&question.user, &question.context, &mut problems);
    let count = question.attachments.len();
    if count > limits.attachments {
        let detail = format!(
            "has {count} entries; at most {} are allowed",
            limits.attachments
        );
        problems.push(FieldProblem::new("/attachments", detail));
    }
    // A list that is too long has a problem of its own. Only the allowed number of entries is
    // checked.
    for (i, attachment) in question
        .attachments
        .iter()
        .take(limits.attachments)
        .enumerate()
    {
        for (field, detail) in attachment_problems(attachment) {
            let pointer = format!("/attachments/{i}/{field}");
            problems.push(FieldProblem::new(pointer, detail));
        }
    }
    for (name, value) in question.salience.by_name() {
        if !(0.0..=1.0).contains(&value) {
            let pointer = format!("/salience/{name}");
            problems.push(FieldProblem::new(pointer, "is not a number from 0 to 1"));
        }
    }
    problems::none(problems)?;
    redact(&mut question, secrets);
    Ok(question)
}

/// Checks the ids of a confirmation.
///
/// # Errors
/// As [`ChatRequest::parse`].
pub(super) fn check_names(user: &User, context: &Context) -> Result<(), Vec<FieldProblem>> {
    let mut problems = vec![];
    name_problems(user, context, &mut problems);
    problems::none(problems)
}

/// True if a request comes from the user of an earlier question, in the same guild.
pub(super) fn is_own(earlier: &Question, source: Source, user: &User, context: &Context) -> bool {
    earlier.source == source
        && earlier.user.id == user.id
        && earlier.context.guild_id == context.guild_id
}

/// Checks what the evidence of a plan is gathered for.
///
/// # Errors
/// As [`ChatRequest::parse`].
pub(super) fn check_focus(focus: &EvidenceFocus) -> Result<(), Vec<FieldProblem>> {
    let mut problems = vec![];
    let fields = [
        ("/file", &focus.file, MAX_PATH_CHARS),
        ("/diagnostic", &focus.diagnostic, MAX_NAME_CHARS),
    ];
    for (pointer, value, most) in fields {
        let detail = match value {
            Some(value) if value.trim().is_empty() => "must not be empty".to_owned(),
            Some(value) if value.chars().any(is_invisible) => "has invisible characters".to_owned(),
            Some(value) if value.chars().count() > most => {
                format!("has more than {most} characters")
            }
            _ => continue,
        };
        problems.push(FieldProblem::new(pointer, detail));
    }
    problems::none(problems)
}

fn message_problems(message: &str, limits: &Limits, problems: &mut Vec<FieldProblem>) {
    let mut add = |detail: String| problems.push(FieldProblem::new("/message", detail));
    if message.is_empty() {
        add("must not be empty".into());
    }
    // The prefix is no part of the question.
    let question = without_new_prefix(message).unwrap_or(message);
    let (chars, most) = (question.chars().count(), limits.message_chars);
    if chars > most {
        add(format!(
            "has {chars} characters; at most {most} are allowed"
        ));
    }
    if message.contains('\0') {
        // Not every database can store this character.
        add("has a NUL character".into());
    }
}

fn name_problems(user: &User, context: &Context, problems: &mut Vec<FieldProblem>) {
    let ids = [
        ("/user/id", Some(&user.id), true),
        ("/user/name", Some(&user.name), false),
        ("/context/channelId", context.channel_id.as_ref(), true),
        ("/context/guildId", context.guild_id.as_ref(), true),
        ("/context/messageId", context.message_id.as_ref(), true),
    ];
    for (pointer, value, needed) in ids {
        let Some(value) = value else { continue };
        let detail = if needed && value.trim().is_empty() {
            "must not be empty"
        } else if value.chars().count() > MAX_NAME_CHARS {
            "has more than 200 characters"
        } else if value.chars().any(char::is_control) {
            "has control characters"
        } else {
            continue;
        };
        problems.push(FieldProblem::new(pointer, detail));
    }
}

/// Returns the fields of an attachment that break a rule, each with the rule.
fn attachment_problems(attachment: &Attachment) -> Vec<(&'static str, &'static str)> {
    let mut problems = vec![];
    if attachment.filename.trim().is_empty() || attachment.filename.chars().count() > 255 {
        problems.push(("filename", "must have 1 to 255 characters"));
    } else if attachment.filename.chars().any(char::is_control) {
        problems.push(("filename", "has control characters"));
    }
    if let Some(declared) = &attachment.content_type
        && (declared.len() > 100 || !declared.bytes().all(|b| b == b' ' || b.is_ascii_graphic()))
    {
        problems.push((
            "contentType",
            "must have at most 100 characters, all of them visible ASCII",
        ));
    }
    let data = attachment.url.starts_with("data:");
    if !written_as_uri(&attachment.url) {
        problems.push((
            "url",
            "has characters that an address must have percent-encoded",
        ));
    } else if !data {
        match url::Url::parse(&attachment.url) {
            Ok(url) if url.scheme() == "https" => {}
            Ok(_) => problems.push(("url", "must be an https address")),
            Err(_) => problems.push(("url", "is not an address")),
        }
    }
    problems
}

/// True if a text contains only what a URI (RFC 3986) may contain: no spaces, only ASCII, two
/// hexadecimal digits after each `%`, and at most one `#`.
fn written_as_uri(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&'()*+,;=%".contains(c);
    let hex = |part: &str| {
        part.get(..2)
            .is_some_and(|two| two.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    text.chars().all(plain) && text.split('%').skip(1).all(hex) && text.matches('#').count() <= 1
}

/// Removes secrets that a user quotes, so that they reach neither the journal nor a model.
fn redact(question: &mut Question, secrets: &[SecretString]) {
    let Question {
        user,
        context,
        message,
        attachments,
        ..
    } = question;
    let files = attachments.iter_mut().flat_map(|a| {
        [&mut a.filename, &mut a.url]
            .into_iter()
            .chain(&mut a.content_type)
    });
    let places = [
        &mut context.channel_id,
        &mut context.guild_id,
        &mut context.message_id,
    ]
    .into_iter()
    .flatten();
    for text in files
        .chain(places)
        .chain([message, &mut user.id, &mut user.name])
    {
        if let Cow::Owned(cleaned) = without_secrets(text, secrets) {
            *text = cleaned;
        }
    }
}

/// The ids that a request carries in its headers.
#[derive(Debug, Clone, Default)]
pub struct RequestIds {
    pub idempotency_key: Option<String>,
    pub correlation_id: Option<String>,
}

impl RequestIds {
    pub(super) fn redacted(self, secrets: &[SecretString]) -> Self {
        let clean = |value: Option<String>| {
            value.map(|value| without_secrets(&value, secrets).into_owned())
        };
        Self {
            idempotency_key: clean(self.idempotency_key),
            correlation_id: clean(self.correlation_id),
        }
    }
}
