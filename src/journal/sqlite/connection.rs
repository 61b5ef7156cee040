//! A SQLite connection that answers at once, for the thread that writes.

use std::sync::Arc;

use compact_str::CompactString;
use rusqlite::CachedStatement;
use rusqlite::types::{FromSql, Value};
use sqlx::SqlStr;

use crate::journal::Error;
use crate::journal::database::{Bound, Columns, Connection, Failure, Statement, unexpected};

pub struct WriteConnection(pub rusqlite::Connection);

impl WriteConnection {
    /// Executes a statement without parameters.
    pub fn execute(&self, statement: &str) -> rusqlite::Result<()> {
        self.0.prepare_cached(statement)?.raw_execute()?;
        Ok(())
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
            let values: rusqlite::Result<Vec<Value>> =
                (0..names.len()).map(|n| row.get(n)).collect();
            rows.push(OwnedRow {
                names: Arc::clone(&names),
                values: values?,
            });
        }
        Ok(rows)
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

impl Connection for WriteConnection {
    type Row = OwnedRow;

    async fn query(
        &mut self,
        statement: SqlStr,
        values: Vec<Bound>,
    ) -> Result<Vec<OwnedRow>, Failure> {
        Ok(self.query_now(statement.as_str(), &values)?)
    }

    async fn change(&mut self, (statement, values): Statement) -> Result<u64, Failure> {
        let mut statement = self.0.prepare_cached(statement)?;
        bind(&mut statement, &values)?;
        Ok(statement.raw_execute()?.try_into().unwrap_or(u64::MAX))
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
