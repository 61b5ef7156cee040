//! Rows of bearer tokens.

use jiff::Timestamp;
use sqlx::postgres::PgPool;

use super::transact::plain;
use crate::journal::{Error, TokenRow, rows, statements};

pub(super) async fn add(pool: &PgPool, token: &TokenRow) -> Result<(), Error> {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    sqlx::query(statements::ADD_TOKEN)
        .bind(&token.id)
        .bind(plain(&token.name))
        .bind(scopes.join(" "))
        .bind(&token.hash)
        .bind(token.created_at.as_millisecond())
        .bind(token.expires_at.map(Timestamp::as_millisecond))
        .execute(pool)
        .await?;
    Ok(())
}

pub(super) async fn one(pool: &PgPool, id: &str) -> Result<Option<TokenRow>, Error> {
    let found = sqlx::query(statements::TOKEN)
        .bind(plain(id))
        .fetch_optional(pool)
        .await?;
    found.as_ref().map(rows::token).transpose()
}

pub(super) async fn all(pool: &PgPool) -> Result<Vec<TokenRow>, Error> {
    let found = sqlx::query(statements::TOKENS).fetch_all(pool).await?;
    found.iter().map(rows::token).collect()
}

pub(super) async fn revoke(pool: &PgPool, id: &str, at: Timestamp) -> Result<bool, Error> {
    let done = sqlx::query(statements::REVOKE_TOKEN)
        .bind(plain(id))
        .bind(at.as_millisecond())
        .execute(pool)
        .await?;
    Ok(done.rows_affected() > 0)
}
