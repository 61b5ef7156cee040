//! Bearer tokens as rows.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::{SqlitePool, SqliteRow};

use super::rows;
use crate::journal::{Error, TokenRow};

pub(super) async fn add(pool: &SqlitePool, token: &TokenRow) -> Result<(), Error> {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    sqlx::query("INSERT INTO tokens (id, name, scopes, hash, created_ms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(&token.id)
        .bind(&token.name)
        .bind(scopes.join(" "))
        .bind(&token.hash)
        .bind(token.created_at.as_millisecond())
        .bind(token.expires_at.map(Timestamp::as_millisecond))
        .execute(pool)
        .await?;
    Ok(())
}

pub(super) async fn one(pool: &SqlitePool, id: &str) -> Result<Option<TokenRow>, Error> {
    let found = sqlx::query("SELECT * FROM tokens WHERE id = $1").bind(id).fetch_optional(pool).await?;
    found.as_ref().map(row).transpose()
}

pub(super) async fn all(pool: &SqlitePool) -> Result<Vec<TokenRow>, Error> {
    let found = sqlx::query("SELECT * FROM tokens ORDER BY created_ms, id").fetch_all(pool).await?;
    found.iter().map(row).collect()
}

pub(super) async fn revoke(pool: &SqlitePool, id: &str, at: Timestamp) -> Result<bool, Error> {
    let done = sqlx::query("UPDATE tokens SET revoked_ms = $2 WHERE id = $1 AND revoked_ms IS NULL")
        .bind(id)
        .bind(at.as_millisecond())
        .execute(pool)
        .await?;
    Ok(done.rows_affected() > 0)
}

fn row(row: &SqliteRow) -> Result<TokenRow, Error> {
    let id: String = row.try_get("id")?;
    let scopes: String = row.try_get("scopes")?;
    let time = |column: &'static str| -> Result<Option<Timestamp>, Error> {
        let ms: Option<i64> = row.try_get(column)?;
        ms.map(|ms| rows::timestamp(ms, "tokens", &id)).transpose()
    };
    Ok(TokenRow {
        name: row.try_get("name")?,
        scopes: scopes
            .split_whitespace()
            .map(|word| word.parse().map_err(|_| rows::corrupt("tokens", "scopes", &id)))
            .collect::<Result<_, _>>()?,
        hash: row.try_get("hash")?,
        created_at: rows::timestamp(row.try_get("created_ms")?, "tokens", &id)?,
        expires_at: time("expires_ms")?,
        revoked_at: time("revoked_ms")?,
        id,
    })
}
