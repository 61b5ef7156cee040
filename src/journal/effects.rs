//! What commands change besides the journal: sheets and memories, with a note of each deletion, so
//! that no copy of an older run brings back what its user has deleted.

use serde_json::Value;

use super::Effect;
use super::database::Statement;
use crate::domain::{fingerprint, search_words};

/// Where a change comes from.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    /// A command of now. It is the latest, even if the clock of an earlier one was ahead.
    Command,
    /// An archive. A sheet that is newer stays, and what was deleted later is not stored.
    Archive,
}

/// Returns the statements for a command's change of a sheet or memory. The owner comes from the run's
/// row.
pub(super) fn project_effect(
    run: &str,
    at_ms: i64,
    effect: Effect,
    origin: Origin,
) -> Vec<Statement> {
    let replaces_until = match origin {
        Origin::Command => i64::MAX,
        Origin::Archive => at_ms,
    };
    match effect {
        Effect::Sheet { name, sheet } => {
            vec![store_sheet(run, &name, &sheet, at_ms, replaces_until)]
        }
        Effect::Memory { content } => vec![(
            "
            INSERT INTO memories (run, source, guild_id, user_id, content, words_of, created_ms)
            SELECT id, source, guild_id, user_id, $2, $3, $4 FROM runs
            WHERE id = $1 AND NOT EXISTS (
                SELECT 1 FROM deleted_records AS d WHERE d.record = $5
                  AND (d.source, d.guild_id, d.user_id) = (runs.source, runs.guild_id, runs.user_id))
            ON CONFLICT (run) DO NOTHING",
            vec![
                run.into(),
                content.as_str().into(),
                search_words(&content).into(),
                at_ms.into(),
                memory_record(run).into(),
            ],
        )],
        // A sheet that was stored again after its deletion stays.
        Effect::SheetDeleted { name } => {
            let key = name.to_lowercase();
            let noted = deletion(run, sheet_record(&key), at_ms);
            let deleted = (
                "
                DELETE FROM sheets WHERE name_key = $2 AND updated_ms <= $3
                  AND (source, guild_id, user_id) = (SELECT source, guild_id, user_id FROM runs WHERE id = $1)",
                vec![run.into(), key.into(), replaces_until.into()],
            );
            vec![noted, deleted]
        }
        Effect::MemoryDeleted { memory } => {
            let memory = memory.to_string();
            let noted = deletion(run, memory_record(&memory), at_ms);
            let deleted = (
                "
                DELETE FROM memories WHERE run = $2
                  AND (source, guild_id, user_id) = (SELECT source, guild_id, user_id FROM runs WHERE id = $1)",
                vec![run.into(), memory.into()],
            );
            vec![noted, deleted]
        }
    }
}

/// Returns the statement that stores a sheet. It replaces one that was stored until
/// `replaces_until`, and does nothing if the sheet was deleted later.
fn store_sheet(run: &str, name: &str, sheet: &Value, at_ms: i64, replaces_until: i64) -> Statement {
    let key = name.to_lowercase();
    let record = sheet_record(&key);
    (
        "
        INSERT INTO sheets (source, guild_id, user_id, name_key, name, sheet, updated_ms, run)
        SELECT source, guild_id, user_id, $2, $3, $4, $5, id FROM runs
        WHERE id = $1 AND NOT EXISTS (
            SELECT 1 FROM deleted_records AS d WHERE d.record = $7 AND d.deleted_ms >= $6
              AND (d.source, d.guild_id, d.user_id) = (runs.source, runs.guild_id, runs.user_id))
        ON CONFLICT (source, guild_id, user_id, name_key)
        DO UPDATE SET name = excluded.name, sheet = excluded.sheet, updated_ms = excluded.updated_ms, run = excluded.run
        WHERE sheets.updated_ms <= $6",
        vec![
            run.into(),
            key.into(),
            name.into(),
            sheet.to_string().into(),
            at_ms.into(),
            replaces_until.into(),
            record.into(),
        ],
    )
}

/// Returns the statement that notes a deletion by a run.
fn deletion(run: &str, record: String, at_ms: i64) -> Statement {
    let statement = "
        INSERT INTO deleted_records (source, guild_id, user_id, record, deleted_ms)
        SELECT source, guild_id, user_id, $2, $3 FROM runs WHERE id = $1
        ON CONFLICT (source, guild_id, user_id, record)
        DO UPDATE SET deleted_ms = excluded.deleted_ms
        WHERE deleted_records.deleted_ms < excluded.deleted_ms";
    (statement, vec![run.into(), record.into(), at_ms.into()])
}

/// The name of a sheet is its user's, and is not kept after the deletion.
fn sheet_record(name_key: &str) -> String {
    format!("sheet {}", fingerprint(&[name_key.as_bytes()]))
}

fn memory_record(memory: &str) -> String {
    format!("memory {memory}")
}
