//! Stores what the commands of actions change: sheets and memories.

use jiff::Timestamp;
use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Sqlite};

use crate::journal::{Effect, Error, statements};

/// Applies a command's effect, in the transaction that writes its event.
pub(super) async fn apply(
    tx: &mut SqliteConnection,
    run: &str,
    at: Timestamp,
    effect: &Effect,
) -> Result<(), Error> {
    let mut statement = QueryBuilder::new("");
    push(&mut statement, run, at, effect);
    statement.build().execute(tx).await?;
    Ok(())
}

/// Appends the statement for an effect. It takes the owner from the run's row.
pub(super) fn push(
    statements: &mut QueryBuilder<Sqlite>,
    run: &str,
    at: Timestamp,
    effect: &Effect,
) {
    let (run, at_ms) = (
        Value::Text(run.to_owned()),
        Value::Whole(at.as_millisecond()),
    );
    match effect {
        Effect::Sheet { name, sheet } => {
            let texts = [name.to_lowercase(), name.clone(), sheet.to_string()].map(Value::Text);
            let [key, name, sheet] = texts;
            push_numbered(
                statements,
                statements::PUT_SHEET,
                &[run, key, name, sheet, at_ms],
            );
        }
        Effect::Memory { content } => {
            push_numbered(
                statements,
                statements::PUT_MEMORY,
                &[run, Value::Text(content.clone()), at_ms],
            );
        }
    }
}

enum Value {
    Text(String),
    Whole(i64),
}

/// Appends a statement with numbered parameters (`$1` to `$9`) to `statements`.
fn push_numbered(statements: &mut QueryBuilder<Sqlite>, sql: &str, values: &[Value]) {
    let mut pieces = sql.split('$');
    statements.push(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (number, rest) = piece.split_at(1);
        match number
            .parse::<usize>()
            .ok()
            .and_then(|number| values.get(number.checked_sub(1)?))
        {
            Some(Value::Text(text)) => statements.push_bind(text.clone()),
            Some(Value::Whole(whole)) => statements.push_bind(*whole),
            None => statements.push("NULL"),
        };
        statements.push(rest);
    }
    statements.push(";");
}
