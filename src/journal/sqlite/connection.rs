//! A SQLite connection. It answers on the thread that asks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use rusqlite::types::{FromSql, Value, ValueRef};
use rusqlite::{CachedStatement, OpenFlags};
use sqlx::SqlStr;

use crate::journal::Error;
use crate::journal::database::{Bound, Columns, Connection, Failure, Statement, unexpected};

pub struct SqliteConnection(pub rusqlite::Connection);

impl SqliteConnection {
    /// Executes a statement without parameters.
    pub fn execute(&self, statement: &str) -> rusqlite::Result<()> {
        self.0.prepare_cached(statement)?.raw_execute()?;
        Ok(())
    }

    /// Opens a file that is there, to read it. `patience` is how long a query waits for a lock.
    pub fn reading(path: &Path, patience: Duration) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(patience)?;
        Ok(Self(connection))
    }

    pub fn change_now(&self, statement: &str, values: &[Bound]) -> rusqlite::Result<u64> {
        let mut statement = self.0.prepare_cached(statement)?;
        bind(&mut statement, values)?;
        Ok(statement.raw_execute()?.try_into().unwrap_or(u64::MAX))
    }

    pub fn query_now(&self, statement: &str, values: &[Bound]) -> rusqlite::Result<Vec<OwnedRow>> {
        let mut statement = self.0.prepare_cached(statement)?;
        bind(&mut statement, values)?;
        let names: Arc<[CompactString]> = statement
            .column_names()
            .into_iter()
            .map(Into::into)
            .collect();
        let mut found = statement.raw_query();
        let mut rows = vec![];
        while let Some(row) = found.next()? {
            let values: rusqlite::Result<Vec<Value>> = (0..names.len())
                .map(|n| row.get_ref(n).map(owned))
                .collect();
            rows.push(OwnedRow {
                names: Arc::clone(&names),
                values: values?,
            });
        }
        Ok(rows)
    }
}

/// Returns a value of a row. A text that is not UTF-8 becomes bytes, so that only its own column cannot
/// be read.
fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(whole) => Value::Integer(whole),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_or_else(
            |_| Value::Blob(bytes.to_owned()),
            |text| Value::Text(text.to_owned()),
        ),
    }
}

/// Binds values to the parameters `$1`, `$2` and so on. SQLite numbers parameters in the order of
/// their appearance, so each is found by its name.
fn bind(statement: &mut CachedStatement<'_>, values: &[Bound]) -> rusqlite::Result<()> {
    for index in 1..=statement.parameter_count() {
        let name = statement
            .parameter_name(index)
            .and_then(|name| name.get(1..));
        let number = name.and_then(|name| name.parse::<usize>().ok());
        let value = number.and_then(|number| values.get(number.checked_sub(1)?));
        match value {
            Some(Bound::Text(text)) => statement.raw_bind_parameter(index, text)?,
            Some(Bound::Whole(whole)) => statement.raw_bind_parameter(index, whole)?,
            Some(Bound::Real(real)) => statement.raw_bind_parameter(index, real)?,
            Some(Bound::Bytes(bytes)) => statement.raw_bind_parameter(index, bytes)?,
            None => return Err(rusqlite::Error::InvalidParameterCount(index, values.len())),
        }
    }
    Ok(())
}

impl Connection for SqliteConnection {
    type Row = OwnedRow;

    async fn query(
        &mut self,
        statement: SqlStr,
        values: Vec<Bound>,
    ) -> Result<Vec<OwnedRow>, Failure> {
        Ok(self.query_now(statement.as_str(), &values)?)
    }

    async fn change(&mut self, (statement, values): Statement) -> Result<u64, Failure> {
        Ok(self.change_now(statement, &values)?)
    }
}

/// A row with its values.
pub struct OwnedRow {
    names: Arc<[CompactString]>,
    values: Vec<Value>,
}

impl OwnedRow {
    /// Returns the value of a column; `None` for null.
    fn value<T: FromSql>(&self, column: &str) -> Result<Option<T>, Error> {
        let index = self.names.iter().position(|name| name == column);
        let value = index.and_then(|index| self.values.get(index));
        let value = value.ok_or_else(unexpected)?;
        FromSql::column_result(value.into()).map_err(|_| unexpected())
    }
}

impl Columns for OwnedRow {
    fn text_or_null(&self, column: &str) -> Result<Option<String>, Error> {
        self.value(column)
    }

    fn whole_or_null(&self, column: &str) -> Result<Option<i64>, Error> {
        self.value(column)
    }

    fn real_or_null(&self, column: &str) -> Result<Option<f64>, Error> {
        self.value(column)
    }

    fn bytes_or_null(&self, column: &str) -> Result<Option<Vec<u8>>, Error> {
        self.value(column)
    }
}
