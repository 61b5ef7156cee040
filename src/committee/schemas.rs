//! The schemas of what models write, generated once for each type.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use conclave_lenient_json::Schema;
use schemars::JsonSchema;

static SCHEMAS: LazyLock<RwLock<HashMap<TypeId, Arc<Schema>>>> = LazyLock::new(RwLock::default);

/// Returns the schema of a type.
pub fn schema_of<T: JsonSchema + 'static>() -> Arc<Schema> {
    let id = TypeId::of::<T>();
    let known = SCHEMAS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = known.get(&id) {
        return Arc::clone(schema);
    }
    drop(known);
    let mut schemas = SCHEMAS.write().unwrap_or_else(PoisonError::into_inner);
    let generated = || Arc::new(Schema::new(schemars::schema_for!(T).to_value()));
    Arc::clone(schemas.entry(id).or_insert_with(generated))
}
