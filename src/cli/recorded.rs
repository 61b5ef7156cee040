//! A run that a command reads: which one is meant, and its journal, from this machine's database or
//! from a running service.

use std::sync::Arc;

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::exit::{Exit, fail, failing};
use super::remote;
use super::show::open;
use crate::config::Env;
use crate::domain::{RunId, RunKind};
use crate::journal::{Entry, Error, Event, RunFilter, RunState, Store, Transcript, prove};
use crate::tools::answers::PlanView;
use crate::tools::view;

/// Candidates that the error for an ambiguous prefix lists.
const MAX_CANDIDATES: usize = 5;

/// The most ancestors that are read, so that a damaged journal cannot cause an endless loop.
const MAX_ANCESTORS: usize = 32;

#[derive(Debug, Args)]
pub(super) struct RunArgument {
    /// The run: its id, the first characters of its id, or `last`.
    run: String,
    /// Read it from a running service instead of the journal on this machine; CONCLAVE_TOKEN is the
    /// service's token.
    #[arg(long, value_name = "URL")]
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
        let journals = match &self.server {
            Some(server) => Journals::There { env, server },
            None => Journals::Here(open(env).await?),
        };
        let id = journals.named(&self.run, kind).await?;
        let recorded = journals.read(id).await?;
        let recorded =
            recorded.ok_or_else(|| fail(Exit::Refused, format!("there is no run {id}")))?;
        Ok((recorded, journals))
    }
}

/// A run with its journal.
pub(super) struct Recorded {
    pub id: RunId,
    pub kind: RunKind,
    pub state: RunState,
    pub cause: Option<String>,
    pub message: String,
    pub entries: Vec<Entry>,
    pub head: String,
    /// Where the journal was altered.
    pub broken: Option<String>,
}

/// A run as a list shows it.
struct Candidate {
    id: RunId,
    accepted_at: String,
    message: String,
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
            [] => Err(fail(
                Exit::Refused,
                format!("no run's id begins with {name}"),
            )),
            [only] => Ok(only.id),
            several => Err(fail(Exit::Refused, ambiguous(name, several))),
        }
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
                let rows = store
                    .runs(&filter)
                    .await
                    .map_err(failing(Exit::Unexpected))?;
                let candidate = |row: crate::journal::RunRow| Candidate {
                    id: row.id,
                    accepted_at: row.accepted_at.to_string(),
                    message: row.message,
                };
                Ok(rows.into_iter().map(candidate).collect())
            }
            Self::There { env, server } => {
                let kind = kind.map_or("all", |kind| kind.into_str());
                let cursor = end.map(|end| format!("&cursor={end}")).unwrap_or_default();
                let path = format!("/api/runs?kind={kind}&limit={limit}{cursor}");
                let page = remote::get(env, server, &path).await?;
                let rows = page
                    .get("runs")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                rows.map(|row| self.candidate(row)).collect()
            }
        }
    }

    fn candidate(&self, row: &Value) -> Result<Candidate, Exit> {
        Ok(Candidate {
            id: self.field(row, "id")?,
            accepted_at: self.field(row, "acceptedAt")?,
            message: self.field(row, "message")?,
        })
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
                let journal = remote::get(env, server, &format!("{path}/journal")).await?;
                let verified = journal.get("verified") == Some(&Value::Bool(true));
                let broken: Option<String> = self.field(&journal, "broken")?;
                Ok(Some(Recorded {
                    id,
                    kind: self.field(&run, "kind")?,
                    state: self.field(&run, "state")?,
                    cause: self.field(&run, "cause")?,
                    message: self.field(&run, "message")?,
                    entries: self.entries(&journal)?,
                    head: self.field(&journal, "head")?,
                    broken: broken.or_else(|| (!verified).then(|| "it is not verified".to_owned())),
                }))
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
            Self::There { env, server } => {
                let known = remote::find(env, server, &format!("/api/plans/{id}")).await?;
                known
                    .map(|plan| serde_json::from_value(plan).map_err(failing(Exit::Server)))
                    .transpose()
            }
        }
    }

    /// Parses the entries of a journal as the API gives it.
    fn entries(&self, journal: &Value) -> Result<Vec<Entry>, Exit> {
        let rows = journal["entries"].as_array().into_iter().flatten();
        rows.map(|row| {
            Ok(Entry {
                seq: self.field(row, "seq")?,
                at: self.field(row, "at")?,
                key: self.field(row, "key")?,
                body: row["body"].to_string(),
                prev: self.field(row, "prev")?,
                hash: self.field(row, "hash")?,
                event: self.field(row, "body")?,
            })
        })
        .collect()
    }

    /// Reads a field of an answer of the service.
    fn field<T: DeserializeOwned>(&self, row: &Value, name: &str) -> Result<T, Exit> {
        let place = match self {
            Self::Here(_) => "the journal",
            Self::There { server, .. } => server,
        };
        serde_json::from_value(row[name].clone()).map_err(|error| {
            fail(
                Exit::Server,
                format!("{place}: {name} cannot be read: {error}"),
            )
        })
    }

    /// Returns the journals of a run's ancestors, the nearest first. Stops after an ancestor that no
    /// longer exists.
    ///
    /// # Errors
    /// The exit code, after the error was printed.
    pub async fn ancestors(&self, run: &Recorded) -> Result<Vec<(RunId, Vec<Entry>)>, Exit> {
        let parent_of = |entries: &[Entry]| {
            let accepted = Transcript::of_entries(entries).accepted?;
            accepted
                .continues
                .as_ref()
                .map(|continues| continues.parent)
        };
        let mut found = vec![];
        let mut parent = parent_of(&run.entries);
        while let Some(id) = parent
            && found.len() < MAX_ANCESTORS
        {
            let entries = self
                .read(id)
                .await?
                .map(|run| run.entries)
                .unwrap_or_default();
            parent = parent_of(&entries);
            found.push((id, entries));
        }
        Ok(found)
    }
}

async fn read_here(store: &dyn Store, id: RunId) -> Result<Option<Recorded>, Exit> {
    let Some(row) = store.run(id).await.map_err(failing(Exit::Unexpected))? else {
        return Ok(None);
    };
    let mut entries = match store.entries(id, 0).await {
        Ok(entries) => entries,
        // An entry that cannot be parsed was altered.
        Err(error @ Error::Corrupt { .. }) => return Err(fail(Exit::Altered, error)),
        Err(error) => return Err(fail(Exit::Unexpected, error)),
    };
    if !row.state.is_terminal() {
        // New entries may have been written between the two reads.
        entries.truncate(usize::try_from(row.head_seq).unwrap_or(0));
    }
    let broken = prove(&row, &entries).err().map(|broken| broken.to_string());
    Ok(Some(Recorded {
        id,
        kind: row.kind,
        state: row.state,
        cause: row.cause,
        message: row.message,
        entries,
        head: row.head_hash,
        broken,
    }))
}

/// Returns the hex digits of a prefix of an id, and the greatest id with it.
fn prefix_of(name: &str) -> Option<(String, RunId)> {
    let digits: String = name.to_lowercase().chars().filter(|c| *c != '-').collect();
    let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit());
    if digits.is_empty() || digits.len() > 32 || !is_hex {
        return None;
    }
    let greatest = format!("{digits:f<32}").parse().ok()?;
    Some((digits, greatest))
}

/// Returns the error for a prefix of several ids.
fn ambiguous(name: &str, found: &[Candidate]) -> String {
    let line = |run: &Candidate| {
        let message: Vec<&str> = run.message.split_whitespace().collect();
        let message: String = message.join(" ").chars().take(50).collect();
        format!("\n  {}  {}  {message}", run.id, run.accepted_at)
    };
    let more = if found.len() > MAX_CANDIDATES {
        "\n  and more"
    } else {
        ""
    };
    let lines: String = found.iter().take(MAX_CANDIDATES).map(line).collect();
    format!("several runs' ids begin with {name}:{lines}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_hex_with_or_without_hyphens() {
        let greatest = "019b2c4e-7fff-ffff-ffff-ffffffffffff".parse().unwrap();
        for name in ["019b2c4e-7", "019B2C4E7"] {
            assert_eq!(prefix_of(name), Some(("019b2c4e7".to_owned(), greatest)));
        }
        assert_eq!(
            ["", "-", "latest", &"0".repeat(33)].map(prefix_of),
            [None, None, None, None]
        );
    }
}
