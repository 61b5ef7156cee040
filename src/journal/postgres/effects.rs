//! Stores what the commands of actions change: sheets and memories.

use jiff::Timestamp;
use sqlx::PgConnection;

use super::transact::plain;
use crate::journal::{Effect, statements};

/// Applies a command's effect, in the transaction that writes its event. The owner comes from the
/// run's row.
pub(super) async fn apply(
    tx: &mut PgConnection,
    run: &str,
    at: Timestamp,
    effect: &Effect,
) -> Result<(), sqlx::Error> {
    let query = match effect {
        Effect::Sheet { name, sheet } => sqlx::query(statements::PUT_SHEET)
            .bind(run.to_owned())
            .bind(plain(&name.to_lowercase()).into_owned())
            .bind(plain(name).into_owned())
            .bind(sheet.to_string())
            .bind(at.as_millisecond()),
        Effect::Memory { content } => {
            let content = plain(content).into_owned();
            sqlx::query(statements::PUT_MEMORY)
                .bind(run.to_owned())
                .bind(content)
                .bind(at.as_millisecond())
        }
    };
    query.execute(tx).await?;
    Ok(())
}
