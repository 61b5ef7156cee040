//! Provides databases on the throwaway PostgreSQL server of `scripts/postgres.sh`.

use sha2::{Digest as _, Sha256};
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

/// Returns the address of the server. Without one the tests fail instead of being skipped.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place where the tests read the environment"
)]
fn server() -> url::Url {
    let url = std::env::var("CONCLAVE_TEST_POSTGRES").expect(
        "CONCLAVE_TEST_POSTGRES is not set: run the tests by `make test`, or by `scripts/postgres.sh cargo nextest run`",
    );
    url.parse().expect("CONCLAVE_TEST_POSTGRES is an address")
}

/// True if the tests of the whole service keep their journals in PostgreSQL. `make test` sets this
/// in its second pass.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place where the tests read the environment"
)]
pub fn is_chosen() -> bool {
    match std::env::var("CONCLAVE_TEST_STORE").as_deref() {
        Ok("postgres") => true,
        Ok("sqlite" | "") | Err(_) => false,
        Ok(other) => panic!("CONCLAVE_TEST_STORE is sqlite or postgres, not {other}"),
    }
}

/// Returns the address of the database for a name. Creates the database if it is missing.
pub async fn database(name: &str) -> String {
    let mut url = server();
    let digest = Sha256::digest(name);
    let digest: String = digest
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let own = format!("test_{digest}");
    let connection = PgConnectOptions::from_url(&url).unwrap().connect().await;
    let mut connection = connection.expect("the PostgreSQL of the tests");
    let known = sqlx::query("SELECT FROM pg_database WHERE datname = $1").bind(&own);
    let known = known.fetch_optional(&mut connection).await.unwrap();
    if known.is_none() {
        let create = AssertSqlSafe(format!("CREATE DATABASE {own} TEMPLATE template0"));
        sqlx::query(create).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    url.set_path(&own);
    url.to_string()
}

/// Returns the address of a new database.
pub async fn fresh() -> String {
    database(&uuid::Uuid::from_u128(rand::random()).to_string()).await
}

/// Opens a raw connection, separate from the store.
pub async fn raw(url: &str) -> PgPool {
    PgPool::connect(url).await.unwrap()
}
