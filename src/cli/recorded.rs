//! A run that a command reads: which one is meant, and its journal, from this machine's database or
//! from a running service.

use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::exit::{Exit, fail, failing};
use super::local::open;
use super::remote;
use crate::config::Env;
use crate::domain::{RunId, RunKind};
use crate::journal::{
    Entry, Error, Event, Listed, Proven, RunFilter, RunState, Store, Transcript, ancestors,
    read_proven,
};
use crate::text::excerpt;
use crate::tools::answers::PlanView;
use crate::tools::view;

/// Candidates that the error for an ambiguous prefix lists.
const MAX_CANDIDATES: usize = 5;

#[derive(Debug, Args)]
pub(super) struct RunArgument {
    /// The run: its id, the first characters of its id, or `last`.
    run: String,
    /// Read it from a running service instead of the journal on this machine; CONCLAVE_TOKEN is the
    /// service's token.
    #[arg(long, value_name = "URL", value_parser = remote::server_address)]
    server: Option<String>,
}

impl RunArgument {
    /// Finds the run and reads it. `last` is the newest run of this kind.
    ///
    /// # Errors
    /// The exit code, after the error was printed.
    pub async fn read<'a>(
        &'a self,
        env: &'a Env,
        kind: Option<RunKind>,
    ) -> Result<(Recorded, Journals<'a>), Exit> {
        let server = self.server.as_deref();
        let (id, journals) = find(env, server, &self.run, kind).await?;
        let recorded = journals.read(id).await?;
        let recorded =
            recorded.ok_or_else(|| fail(Exit::Refused, format!("there is no run {id}")))?;
        Ok((recorded, journals))
    }
}

/// Finds the run that the words on the command line mean, and where its journal is.
///
/// # Errors
/// The exit code, after the error was printed.
pub(super) async fn find<'a>(
    env: &'a Env,
    server: Option<&'a str>,
    run: &str,
    kind: Option<RunKind>,
) -> Result<(RunId, Journals<'a>), Exit> {
    let journals = match server {
        Some(server) => Journals::There { env, server },
        None => Journals::Here(open(env).await?),
    };
    Ok((journals.named(run, kind).await?, journals))
}

/// A run with its journal. The API gives the journal apart.
#[derive(Deserialize)]
pub(super) struct Recorded {
    pub id: RunId,
    pub kind: RunKind,
    pub state: RunState,
    pub cause: Option<String>,
    pub message: String,
    #[serde(skip)]
    pub entries: Vec<Entry>,
    #[serde(skip)]
    pub head: String,
    /// Where the journal was altered.
    #[serde(skip)]
    pub broken: Option<String>,
}

/// A run as a list shows it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    id: RunId,
    accepted_at: Timestamp,
    message: String,
}

#[derive(Deserialize)]
struct Page {
    runs: Vec<Candidate>,
}

/// Where journals are read.
pub(super) enum Journals<'a> {
    Here(Arc<dyn Store>),
    There { env: &'a Env, server: &'a str },
}

impl Journals<'_> {
    /// Returns the run that the words on the command line mean.
    async fn named(&self, name: &str, kind: Option<RunKind>) -> Result<RunId, Exit> {
        if let Ok(id) = name.parse() {
            return Ok(id);
        }
        if name == "last" {
            let newest = self.before(None, kind, 1).await?;
            return newest
                .first()
                .map(|run| run.id)
                .ok_or_else(|| fail(Exit::Refused, "there is no run yet"));
        }
        let Some((prefix, end)) = prefix_of(name) else {
            let detail = format!("{name:?} is not an id of a run, the start of one, or `last`");
            return Err(fail(Exit::Usage, detail));
        };
        let limit = MAX_CANDIDATES + 1;
        let mut found = self.before(Some(end), None, limit).await?;
        found.retain(|run| run.id.uuid().simple().to_string().starts_with(&prefix));
        match found.as_slice() {
            [only] => Ok(only.id),
            [] => Err(format!("no run's id begins with {name}")),
            several => Err(ambiguous(name, several)),
        }
        .map_err(failing(Exit::Refused))
    }

    /// Lists runs older than `end`, newest first.
    async fn before(
        &self,
        end: Option<RunId>,
        kind: Option<RunKind>,
        limit: usize,
    ) -> Result<Vec<Candidate>, Exit> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        match self {
            Self::Here(store) => {
                let filter = RunFilter {
                    kind,
                    before: end,
                    limit,
                    ..RunFilter::default()
                };
                let rows = store.listed(&filter).await;
                let rows = rows.map_err(failing(Exit::Unexpected))?.into_iter();
                // A row that cannot be read is a candidate too: to read it gives the error.
                let candidate = |(id, row): Listed| {
                    let id: RunId = id.parse().ok()?;
                    let made_at = id.made_at().unwrap_or_default();
                    let (accepted_at, message) = row
                        .map(|row| (row.accepted_at, row.message))
                        .unwrap_or_else(|error| (made_at, error.to_string()));
                    Some(Candidate {
                        id,
                        accepted_at,
                        message,
                    })
                };
                Ok(rows.filter_map(candidate).collect())
            }
            Self::There { env, server } => {
                let kind = kind.map_or("all", |kind| kind.into_str());
                let cursor = end.map(|end| format!("&cursor={end}")).unwrap_or_default();
                let path = format!("/api/runs?kind={kind}&limit={limit}{cursor}");
                let page: Page = typed(server, remote::get(env, server, &path).await?)?;
                Ok(page.runs)
            }
        }
    }

    /// Reads a run; `None` if it does not exist.
    pub async fn read(&self, id: RunId) -> Result<Option<Recorded>, Exit> {
        match self {
            Self::Here(store) => read_here(&**store, id).await,
            Self::There { env, server } => {
                let path = format!("/api/runs/{id}");
                let Some(run) = remote::find(env, server, &path).await? else {
                    return Ok(None);
                };
                let mut run: Recorded = typed(server, run)?;
                let journal = remote::get(env, server, &format!("{path}/journal")).await?;
                let journal: Journal = typed(server, journal)?;
                let unverified = (!journal.verified).then(|| "it is not verified".to_owned());
                let rows = journal.entries.into_iter();
                let entries = rows.map(|row| row.entry(server));
                run.entries = entries.collect::<Result<_, _>>()?;
                run.head = journal.head;
                run.broken = journal.broken.or(unverified);
                Ok(Some(run))
            }
        }
    }

    /// Returns a plan with its executions; `None` if the run gave none.
    ///
    /// # Errors
    /// The exit code, after the error was printed.
    pub async fn plan(&self, id: RunId, events: &[Event]) -> Result<Option<PlanView>, Exit> {
        match self {
            Self::Here(store) => {
                let rows = store.executions(id).await;
                let mut executions = vec![];
                for row in rows.map_err(failing(Exit::Unexpected))? {
                    let entries = store.entries(row.id, 0).await;
                    let entries = entries.map_err(failing(Exit::Unexpected))?;
                    executions.push((row, entries.into_iter().map(|entry| entry.event).collect()));
                }
                Ok(view::plan_view(id, events, &executions))
            }
            // The API has no view of a run without a plan.
            Self::There { .. } if view::plan_view(id, events, &[]).is_none() => Ok(None),
            Self::There { env, server } => {
                let known = remote::find(env, server, &format!("/api/plans/{id}")).await?;
                known.map(|plan| typed(server, plan)).transpose()
            }
        }
    }

    /// Returns the journals of a run's ancestors, the nearest first. Stops after an ancestor that no
    /// longer exists.
    ///
    /// # Errors
    /// The exit code, after the error was printed.
    pub async fn ancestors(&self, run: &Recorded) -> Result<Vec<(RunId, Vec<Entry>)>, Exit> {
        let read = async |id: RunId| {
            let run = self.read(id).await?;
            Ok(run.map(|run| run.entries).unwrap_or_default())
        };
        ancestors(Transcript::of_entries(&run.entries).accepted, read).await
    }
}

/// A journal as the API gives it.
#[derive(Deserialize)]
struct Journal {
    entries: Vec<Row>,
    head: String,
    verified: bool,
    broken: Option<String>,
}

#[derive(Deserialize)]
struct Row {
    seq: i64,
    at: Timestamp,
    key: String,
    body: Value,
    prev: String,
    hash: String,
}

impl Row {
    fn entry(self, server: &str) -> Result<Entry, Exit> {
        let body = self.body.to_string();
        let event = body.parse().map_err(unread(server))?;
        Ok(Entry {
            seq: self.seq,
            at: self.at,
            key: self.key,
            body,
            prev: self.prev,
            hash: self.hash,
            event,
        })
    }
}

/// Reads an answer of the service.
fn typed<T: DeserializeOwned>(server: &str, answer: Value) -> Result<T, Exit> {
    serde_json::from_value(answer).map_err(unread(server))
}

fn unread(server: &str) -> impl Fn(serde_json::Error) -> Exit {
    move |error| {
        let why = format!("{server}: the answer cannot be read: {error}");
        fail(Exit::Server, why)
    }
}

async fn read_here(store: &dyn Store, id: RunId) -> Result<Option<Recorded>, Exit> {
    // A row or an entry that cannot be read was altered.
    let unread = |error: Error| match error {
        error @ Error::Corrupt { .. } => fail(Exit::Altered, error),
        error => fail(Exit::Unexpected, error),
    };
    let Some(read) = read_proven(store, id).await.map_err(unread)? else {
        return Ok(None);
    };
    let Proven {
        row,
        entries,
        fault,
    } = read;
    Ok(Some(Recorded {
        id,
        kind: row.kind,
        state: row.state,
        cause: row.cause,
        message: row.message,
        entries,
        head: row.head_hash,
        broken: fault.map(|broken| broken.to_string()),
    }))
}

/// Returns the hex digits of a prefix of an id, and the least id above all with it.
fn prefix_of(name: &str) -> Option<(String, RunId)> {
    let digits: String = name.to_lowercase().chars().filter(|c| *c != '-').collect();
    let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit());
    if digits.is_empty() || digits.len() > 32 || !is_hex {
        return None;
    }
    let greatest = u128::from_str_radix(&format!("{digits:f<32}"), 16).ok()?;
    let above = format!("{:032x}", greatest.saturating_add(1))
        .parse()
        .ok()?;
    Some((digits, above))
}

/// Returns the error for a prefix of several ids.
fn ambiguous(name: &str, found: &[Candidate]) -> String {
    let line = |run: &Candidate| {
        let message = excerpt(&run.message, 50);
        format!("\n  {}  {}  {message}", run.id, run.accepted_at)
    };
    let is_cut = found.len() > MAX_CANDIDATES;
    let more = if is_cut { "\n  and more" } else { "" };
    let lines: String = found.iter().take(MAX_CANDIDATES).map(line).collect();
    format!("several runs' ids begin with {name}:{lines}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_hex_with_or_without_hyphens() {
        let above = "019b2c4e-8000-0000-0000-000000000000".parse().unwrap();
        for name in ["019b2c4e-7", "019B2C4E7"] {
            assert_eq!(prefix_of(name), Some(("019b2c4e7".to_owned(), above)));
        }
        assert_eq!(
            ["", "-", "latest", &"0".repeat(33)].map(prefix_of),
            [None, None, None, None]
        );
    }
}
