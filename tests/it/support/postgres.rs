//! Provides databases on the throwaway PostgreSQL server of `scripts/postgres.sh`.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::mix::mixed;

#[allow(
    clippy::disallowed_methods,
    reason = "the one place where the tests read the environment"
)]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// True if the tests of the whole service keep their journals in PostgreSQL. `make test` sets this
/// in its second pass.
pub fn is_chosen() -> bool {
    match variable("CONCLAVE_TEST_STORE").as_str() {
        "postgres" => true,
        "sqlite" | "" => false,
        other => panic!("CONCLAVE_TEST_STORE is sqlite or postgres, not {other}"),
    }
}

/// Returns the address of the database for a name. Creates the database if it is missing. Without a
/// server the tests fail instead of being skipped.
pub async fn database(name: &str) -> String {
    let url = url::Url::parse(&variable("CONCLAVE_TEST_POSTGRES"));
    let mut url = url.expect(
        "CONCLAVE_TEST_POSTGRES is no address: run the tests by `make test`, or by `scripts/postgres.sh cargo nextest run`",
    );
    let own = format!("test_{:016x}", mixed(0, name));
    let connection = PgConnection::connect(url.as_str()).await;
    let mut connection = connection.expect("the PostgreSQL of the tests");
    let known = sqlx::query("SELECT FROM pg_database WHERE datname = $1").bind(&own);
    let known = known.fetch_optional(&mut connection).await.unwrap();
    if known.is_none() {
        let create = AssertSqlSafe(format!("CREATE DATABASE {own} TEMPLATE template0"));
        sqlx::query(create).execute(&mut connection).await.unwrap();
    }
    url.set_path(&own);
    url.to_string()
}

/// Returns the address of a new database.
pub async fn fresh() -> String {
    database(&format!("{:x}", rand::random::<u128>())).await
}
