//! `conclave token`: bearer tokens of the database. The service sees a new or revoked token at the
//! next request.

use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::json;

use super::exit::{Done, Exit, fail, failing};
use super::local::open;
use super::terminal::{say, say_json};
use crate::app::is_active;
use crate::clock::Clock;
use crate::config::Env;
use crate::domain::{BearerToken, Scope};
use crate::journal::{TokenRow, TokenStore};

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Create a token and print it once; the token itself is not stored.
    Create(CreateArguments),
    /// List every token that was ever made.
    List {
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token: it stops working from the next request on.
    Revoke {
        /// The token's id, as `token list` shows it: the part between the two underscores.
        id: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct CreateArguments {
    /// The owner or the purpose of the token.
    #[arg(long, value_parser = name)]
    name: String,
    /// What it permits: chat (questions and runs), act, tools, or admin (everything); several with
    /// commas.
    #[arg(long, value_delimiter = ',', required = true)]
    scope: Vec<Scope>,
    /// When it expires, counted from now: 90d, 12h, 1y. Without it, the token is valid until it is
    /// revoked.
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Span>,
}

pub(super) async fn run(env: &Env, command: TokenCommand) -> Done {
    let store = open(env).await?;
    let clock = Clock::System;
    match command {
        TokenCommand::Create(arguments) => create(&*store, &clock, arguments).await,
        TokenCommand::List { json } => list(&*store, clock.now(), json).await,
        TokenCommand::Revoke { id } => revoke(&*store, clock.now(), &id).await,
    }
}

async fn create(store: &dyn TokenStore, clock: &Clock, arguments: CreateArguments) -> Done {
    let mut scopes = arguments.scope;
    scopes.sort();
    scopes.dedup();
    let now = clock.now();
    let expires = arguments
        .expires
        .map(|span| now.to_zoned_datetime(TimeZone::UTC).checked_add(span));
    let expires = expires.transpose();
    let expires = expires.map_err(|_| fail(Exit::Usage, "--expires: that is too far away"))?;
    let [a, b, c, d, e, f, ..] = clock.new_secret();
    let token = BearerToken::new([a, b, c, d, e, f], clock.new_secret());
    let row = TokenRow {
        id: token.id().to_owned(),
        name: arguments.name,
        scopes,
        hash: token.hash(),
        created_at: now,
        expires_at: expires.map(|at| at.timestamp()),
        revoked_at: None,
    };
    let added = store.add_token(&row).await;
    added.map_err(failing(Exit::Unexpected))?;
    let end = end(&row).unwrap_or_else(|| "it is revoked".to_owned());
    let (id, scopes) = (&row.id, self::scopes(&row));
    tell!("token {id} opens {scopes} until {end}. It is shown only now:");
    say(format_args!("{}", token.reveal()));
    Ok(())
}

async fn list(store: &dyn TokenStore, now: Timestamp, as_json: bool) -> Done {
    let rows = store.tokens().await.map_err(failing(Exit::Unexpected))?;
    if rows.is_empty() && !as_json {
        tell!("no tokens yet: conclave token create --name NAME --scope chat");
    }
    for row in rows {
        if as_json {
            let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
            let line = json!({ "id": row.id, "name": row.name, "scopes": row.scopes, "works": is_active(&row, now),
                               "createdAt": row.created_at.to_string(), "expiresAt": time(row.expires_at),
                               "revokedAt": time(row.revoked_at) });
            say_json(&line.to_string());
            continue;
        }
        let state = match (row.revoked_at, end(&row)) {
            (Some(at), _) => format!("revoked {}", day(at)),
            (None, Some(end)) if !is_active(&row, now) => format!("expired {end}"),
            (None, Some(end)) => format!("until {end}"),
            (None, None) => "works".to_owned(),
        };
        let (id, name) = (&row.id, &row.name);
        let (created, scopes) = (day(row.created_at), scopes(&row));
        say(format_args!(
            "{id}  {created}  {state:<25}  {scopes:<16}  {name}"
        ));
    }
    Ok(())
}

async fn revoke(store: &dyn TokenStore, now: Timestamp, given: &str) -> Done {
    // A user may also give the whole token, which contains its id.
    let token = BearerToken::parse(given);
    let id = token.as_ref().map_or(given, BearerToken::id);
    let revoked = store.revoke_token(id, now).await;
    if revoked.map_err(failing(Exit::Unexpected))? {
        say(format_args!("token {id} is revoked"));
        return Ok(());
    }
    let detail = "no token of this id is there, or it was revoked already (conclave token list)";
    Err(fail(Exit::Refused, detail))
}

fn scopes(row: &TokenRow) -> String {
    let scopes: Vec<&str> = row.scopes.iter().map(Scope::into_str).collect();
    scopes.join(",")
}

/// Returns when a token expires.
fn end(row: &TokenRow) -> Option<String> {
    let at = row.expires_at?;
    Some(at.strftime("%Y-%m-%d %H:%MZ").to_string())
}

fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

fn name(given: &str) -> Result<String, String> {
    let name = given.trim();
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        return Err("a name has 1 to 100 characters, none of them a control character".into());
    }
    Ok(name.to_owned())
}

fn lifetime(given: &str) -> Result<Span, String> {
    let span = given.parse::<Span>().ok().filter(Span::is_positive);
    span.ok_or_else(|| "a time such as 90d, 12h or 1y".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_time_from_now_on() {
        let is_one = |text: &&str| lifetime(text).is_ok();
        assert!(["90d", "12h", "1y", "2w"].iter().all(is_one));
        assert!(!["", "0d", "-3d", "soon", "90"].iter().any(is_one));
    }
}
