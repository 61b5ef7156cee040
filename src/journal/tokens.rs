//! The API tokens, on both databases.

use async_trait::async_trait;
use jiff::Timestamp;

use super::Error;
use super::database::Database;
use super::records::TokenRow;
use super::store::TokenStore;
use super::{rows, writes};
use crate::domain::Scope;

#[async_trait]
impl<D: Database> TokenStore for D {
    async fn add_token(&self, token: &TokenRow) -> Result<(), Error> {
        let scopes: Vec<&str> = token.scopes.iter().map(Scope::into_str).collect();
        let statement = "INSERT INTO tokens (id, name, scopes, hash, created_ms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6)";
        let values = vec![
            token.id.as_str().into(),
            token.name.as_str().into(),
            scopes.join(" ").into(),
            token.hash.as_str().into(),
            token.created_at.as_millisecond().into(),
            token.expires_at.map(Timestamp::as_millisecond).into(),
        ];
        writes::change(self, statement, values).await?;
        Ok(())
    }

    async fn token(&self, id: &str) -> Result<Option<TokenRow>, Error> {
        let statement = "SELECT * FROM tokens WHERE id = $1";
        let found = self.read_inline(statement, vec![id.into()]).await?;
        found.first().map(rows::token).transpose()
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        self.in_place()?;
        let statement = "SELECT * FROM tokens ORDER BY created_ms, id";
        let found = self.read_inline(statement, vec![]).await?;
        found.iter().map(rows::token).collect()
    }

    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<bool, Error> {
        let statement = "UPDATE tokens SET revoked_ms = $2 WHERE id = $1 AND revoked_ms IS NULL";
        let values = vec![id.into(), at.as_millisecond().into()];
        Ok(writes::change(self, statement, values).await? > 0)
    }
}
