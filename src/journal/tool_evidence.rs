//! Evidence of earlier tool steps, as aggregates over the journal. The statements are the same on
//! both databases; the views that they read are in the migrations.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::Error;
use super::database::{Bound, Columns as _, Connection as _, Database};
use crate::domain::EvidenceFocus;

/// The most rows of one query that a model is shown, and the most gaps of one row.
const MAX_ROWS: i64 = 10;

/// Held while evidence is gathered: the queries read all steps.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Executions of each tool, how many of them succeeded, and whether the last one did.
const Q1: &str = "SELECT tool AS name, COUNT(*) AS n, COUNT(CASE WHEN ok = 1 THEN 1 END) AS successes,
        MAX(CASE WHEN nth = 1 THEN ok END) AS good
    FROM (SELECT tool, ok, ROW_NUMBER() OVER (PARTITION BY tool ORDER BY at_ms DESC, run DESC, seq DESC) AS nth
        FROM tool_steps) s
    GROUP BY tool ORDER BY tool LIMIT $1";

/// Failures of each tool, with the last error.
const Q2: &str = "SELECT tool AS name, COUNT(*) AS n, MAX(CASE WHEN nth = 1 THEN error END) AS error
    FROM (SELECT tool, error, ROW_NUMBER() OVER (PARTITION BY tool ORDER BY at_ms DESC, run DESC, seq DESC) AS nth
        FROM tool_steps WHERE ok = 0) s
    GROUP BY tool ORDER BY tool LIMIT $1";

/// Executions whose output has a diagnostic.
const Q3: &str = "SELECT code AS name, COUNT(*) AS n FROM tool_step_codes
    WHERE $2 IS NULL OR code = $2 GROUP BY code ORDER BY n DESC, code LIMIT $1";

/// Executions on each file, and whether the last one succeeded.
const Q4: &str = "SELECT file AS name, COUNT(*) AS n, MAX(CASE WHEN nth = 1 THEN ok END) AS good
    FROM (SELECT file, ok, ROW_NUMBER() OVER (PARTITION BY file ORDER BY at_ms DESC, run DESC, seq DESC) AS nth
        FROM tool_step_files WHERE $2 IS NULL OR file = $2) f
    GROUP BY file ORDER BY n DESC, file LIMIT $1";

/// The last execution, step by step.
const Q5: &str = "SELECT run AS name, tool, ok AS good, error FROM tool_steps
    WHERE run = (SELECT run FROM tool_steps ORDER BY at_ms DESC, run DESC, seq DESC LIMIT 1) ORDER BY seq LIMIT $1";

/// The last outcome on the file in focus, if there is one.
const Q6: &str = "SELECT file AS name, tool, ok AS good, at_ms AS n FROM tool_step_files
    WHERE file = $2 ORDER BY at_ms DESC, run DESC, seq DESC LIMIT $1";

/// Diagnostics that occurred in at least two executions, each with its own file.
const Q7: &str = "SELECT code AS name, file, COUNT(*) AS n
    FROM (SELECT DISTINCT run, seq, code, file FROM tool_step_diagnostics) d
    GROUP BY code, file HAVING COUNT(*) >= 2 ORDER BY n DESC, code, file LIMIT $1";

/// Changes of files after each diagnostic, with the times between them, the last change first. With a
/// file in focus, only its changes. Changes have one order for all diagnostics: those after a diagnostic
/// are the first of it. So the steps are read a fixed number of times, and never joined with themselves.
pub(super) const Q8: &str = "WITH fixes AS MATERIALIZED (
        SELECT tool, at_ms, ROW_NUMBER() OVER (ORDER BY at_ms DESC, run DESC, seq DESC) AS nth FROM tool_steps
        WHERE changes > 0 AND ok = 1 AND tool <> 'lsp_check'
          AND ($3 IS NULL OR (run, seq) IN (SELECT run, seq FROM tool_step_files WHERE file = $3))),
    seen AS MATERIALIZED (SELECT code, at_ms FROM tool_step_codes WHERE $2 IS NULL OR code = $2),
    fixed AS MATERIALIZED (
        SELECT code, (SELECT COUNT(*) FROM fixes WHERE fixes.at_ms > first_ms) AS n
        FROM (SELECT code, MIN(at_ms) AS first_ms FROM seen GROUP BY code) firsts
        WHERE first_ms < (SELECT MAX(at_ms) FROM fixes) ORDER BY code LIMIT $1)
    SELECT code AS name, n, STRING_AGG(CAST(gap AS TEXT), ',' ORDER BY nth) AS gaps,
        STRING_AGG(tool, ',' ORDER BY nth) AS tools
    FROM (SELECT fixed.code, n, nth, tool, fixes.at_ms - MAX(seen.at_ms) AS gap
        FROM fixes JOIN seen ON seen.at_ms < fixes.at_ms JOIN fixed ON fixed.code = seen.code
        WHERE nth <= $1 GROUP BY fixed.code, n, nth, tool, fixes.at_ms) gaps
    GROUP BY code, n ORDER BY code";

/// The evidence queries, by the names that plans cite.
#[derive(Debug, Clone, Copy, strum::IntoStaticStr)]
enum Query {
    Q1,
    Q2,
    Q3,
    Q4,
    Q5,
    Q6,
    Q7,
    Q8,
}

/// Gathers the summaries of all queries, by name.
pub(super) async fn gather<D: Database>(
    database: &D,
    focus: &EvidenceFocus,
) -> Result<Value, Error> {
    let mut summaries = Map::new();
    let (file, code) = (&focus.file, &focus.diagnostic);
    let named =
        |about: &Option<String>| -> Vec<Bound> { vec![MAX_ROWS.into(), about.clone().into()] };
    let all = || vec![MAX_ROWS.into()];
    let queries = [
        (Query::Q1, Q1, all()),
        (Query::Q2, Q2, all()),
        (Query::Q3, Q3, named(code)),
        (Query::Q4, Q4, named(file)),
        (Query::Q5, Q5, all()),
        (Query::Q7, Q7, all()),
        (
            Query::Q8,
            Q8,
            [named(code), vec![file.clone().into()]].concat(),
        ),
        (Query::Q6, Q6, vec![1.into(), file.clone().into()]),
    ];
    // Those who only want a price must not occupy all connections.
    let _turn = ONE_AT_A_TIME.lock().await;
    let mut reader = database.reader().await?;
    for (query, statement, values) in queries {
        let mut rows = vec![];
        for row in &reader.rows(statement, values).await? {
            let whole = |column: &str| row.whole(column);
            let good = |column: &str| row.whole(column).map(|ok| ok == 1);
            let name = row.text("name")?;
            rows.push(match query {
                Query::Q1 => json!({ "tool": name, "count": whole("n")?, "successes": whole("successes")?,
                                "last_success": good("good")? }),
                Query::Q2 => json!({ "tool": name, "count": whole("n")?, "last_error": short(row.text_or_null("error")?) }),
                Query::Q3 => json!({ "code": name, "occurrences": whole("n")? }),
                Query::Q4 => json!({ "file": name, "executions": whole("n")?, "last": if good("good")? { "success" } else { "failure" } }),
                Query::Q5 => json!({ "execution_id": name, "tool": row.text("tool")?, "success": good("good")?,
                                "error": short(row.text_or_null("error")?) }),
                Query::Q7 => json!({ "code": name, "file": row.text("file")?, "count": whole("n")? }),
                Query::Q8 => {
                    let (gaps, tools) = (row.text("gaps")?, row.text("tools")?);
                    let gaps = gaps.split(',').filter_map(|gap| gap.parse().ok());
                    let tools: BTreeSet<&str> = tools.split(',').collect();
                    json!({ "code": name, "fix_attempts": whole("n")?, "temporal_gaps": gaps.collect::<Vec<i64>>(),
                            "tools": tools })
                }
                Query::Q6 => {
                    let at = Timestamp::from_millisecond(whole("n")?).unwrap_or_default();
                    json!({ "file": name, "tool": row.text("tool")?, "success": good("good")?, "timestamp": at.to_string() })
                }
            });
        }
        let name: &str = query.into();
        summaries.insert(name.to_owned(), Value::Array(rows));
    }
    Ok(Value::Object(summaries))
}

/// The most characters of an error that a summary has. A longer one would not fit into a prompt.
const MAX_ERROR_CHARS: usize = 200;

fn short(error: Option<String>) -> Option<String> {
    error.map(|error| error.chars().take(MAX_ERROR_CHARS).collect())
}
