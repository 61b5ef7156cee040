//! Actions, and the effects of their commands.
//!
//! An action that ends at once is one transaction with `synchronous = NORMAL`. It does not wait for
//! the disk, and survives any end of the process. Only a crash of the machine may lose the latest
//! of these actions, which are free.

use std::fmt::Write as _;

use sqlx::{QueryBuilder, Sqlite};

use super::SqliteStore;
use crate::journal::database::{Bound, Statement};
use crate::journal::{ActionStart, AfterAction, Error, NewRun, Owner, writes};

pub(super) async fn begin(
    store: &SqliteStore,
    run: &NewRun,
    then: &AfterAction,
) -> Result<ActionStart, Error> {
    if let AfterAction::End(events) = then
        && run.limits.is_empty()
    {
        let script = writes::script(run, events)?;
        let written = store.writer.at_once(|statements| {
            for statement in &script {
                push_numbered(statements, statement);
            }
        });
        match written.await {
            Ok(()) => return Ok(ActionStart::Ended),
            // Another run has the key. The transaction below finds out which.
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {}
            Err(error) => return Err(error.into()),
        }
    }
    writes::begin(store, run, then).await
}

/// Appends a statement with numbered parameters (`$1`, `$2`, ...) to `statements`.
fn push_numbered(statements: &mut QueryBuilder<Sqlite>, (sql, values): &Statement) {
    let mut pieces = sql.split('$');
    statements.push(pieces.next().unwrap_or_default());
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = piece.split_at(digits);
        let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        match index.and_then(|index| values.get(index)).cloned() {
            Some(Bound::Text(text)) => statements.push_bind(text),
            Some(Bound::Whole(whole)) => statements.push_bind(whole),
            Some(Bound::Real(real)) => statements.push_bind(real),
            None => statements.push("NULL"),
        };
        statements.push(rest);
    }
    statements.push(";");
}

pub(super) fn memory_query(owner: &Owner, terms: &[String]) -> Option<String> {
    // In quotes, a term is a word and never an operator of the query language.
    let words: Vec<String> = terms
        .iter()
        .map(|term| format!("\"{}\"", term.replace('"', "")))
        .collect();
    let (owner, words) = (owner_word(owner), words.join(" OR "));
    (!words.is_empty()).then(|| format!("owner : \"{owner}\" AND content : ({words})"))
}

/// Encodes an owner as one word of the full-text index. The migration computes the same from a
/// memory's columns.
fn owner_word(owner: &Owner) -> String {
    let whole = format!(
        "{}\u{1f}{}\u{1f}{}",
        owner.source.into_str(),
        owner.guild_id.as_deref().unwrap_or(""),
        owner.user_id
    );
    whole.bytes().fold(String::new(), |mut word, byte| {
        let _ = write!(word, "{byte:02X}");
        word
    })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::domain::{Context, Mode, Question, RunId, Source, Usd, User};
    use crate::journal::database::Database as _;
    use crate::journal::{
        Accepted, ActionIntake, ActionOutcome, Ending, Event, Finished, JournalStore as _,
    };

    const FULL: i64 = 2;

    async fn synchronous(store: &SqliteStore) -> i64 {
        let mut tx = store.transaction().await.unwrap();
        let (level,): (i64,) = sqlx::query_as("PRAGMA synchronous")
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        level
    }

    #[tokio::test]
    async fn what_costs_money_waits_for_the_disk_also_after_an_action_that_did_not() {
        let folder = TempDir::new().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db"), "o")
            .await
            .unwrap();
        assert_eq!(synchronous(&store).await, FULL);
        let question = Question {
            source: Source::Http,
            mode: Mode::Ask,
            user: User {
                id: "u".into(),
                name: String::new(),
            },
            context: Context::default(),
            message: "roll 1d6".into(),
            attachments: vec![],
            salience: Default::default(),
        };
        let accepted = Accepted {
            question,
            action: Some(ActionIntake::default()),
            tools: None,
            is_anew: false,
            continues: None,
            correlation_id: None,
            cap: Usd::ZERO,
            seed: 1,
            config_hash: String::new(),
            prompts_hash: String::new(),
            version: String::new(),
        };
        for n in 1..=3_u128 {
            let (id, at) = (
                RunId::from_uuid(uuid::Uuid::from_u128(n)),
                jiff::Timestamp::UNIX_EPOCH,
            );
            let ending = Ending::Acted {
                outcome: ActionOutcome::Executed,
                response: serde_json::json!({}),
            };
            let end = Event::Finished(Box::new(Finished {
                ending,
                spent: Usd::ZERO,
            }));
            let run = NewRun {
                id,
                at,
                accepted: accepted.clone(),
                idempotency_key: None,
                body_hash: String::new(),
                limits: vec![],
            };
            assert_eq!(
                store.begin(run, AfterAction::End(vec![end])).await.unwrap(),
                ActionStart::Ended
            );
            assert_eq!(synchronous(&store).await, FULL);
        }
    }
}
