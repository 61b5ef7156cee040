//! A schema with all that is computed from it, each once.

use std::fmt;
use std::sync::OnceLock;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Problem, strict, whole};

/// A schema in the form that schemars generates. Its forms for vendors and for reading are computed
/// when they are first needed.
pub struct Schema {
    value: Value,
    bytes: usize,
    for_vendor: OnceLock<Box<RawValue>>,
    check: OnceLock<Result<SchemaCheck, Vec<Problem>>>,
}

/// A schema compiled for reading.
pub(crate) struct SchemaCheck {
    pub schema: Value,
    pub required: Vec<String>,
    pub validator: Validator,
    /// True if no object may have other keys than the schema names.
    is_closed: bool,
}

impl Schema {
    pub fn new(value: Value) -> Self {
        let bytes = value.to_string().len();
        Self {
            value,
            bytes,
            for_vendor: OnceLock::new(),
            check: OnceLock::new(),
        }
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the length of the schema as JSON text.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the schema in the subset that all providers accept, as text: [`strict::for_vendor`].
    pub fn for_vendor(&self) -> &RawValue {
        self.for_vendor.get_or_init(|| {
            let schema = serde_json::value::to_raw_value(&strict::for_vendor(&self.value));
            schema.unwrap_or_else(|_| RawValue::NULL.to_owned())
        })
    }

    /// True if a value satisfies the schema. False if the schema itself cannot be used.
    pub fn accepts(&self, value: &Value) -> bool {
        self.check()
            .is_ok_and(|check| check.validator.is_valid(value))
    }

    pub(crate) fn check(&self) -> Result<&SchemaCheck, Vec<Problem>> {
        let check = self.check.get_or_init(|| SchemaCheck::new(&self.value));
        check.as_ref().map_err(Clone::clone)
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.value).finish()
    }
}

impl SchemaCheck {
    fn new(schema: &Value) -> Result<SchemaCheck, Vec<Problem>> {
        let schema = strict::inlined(schema);
        let validator = jsonschema::validator_for(&schema)
            .map_err(|error| whole(&format!("the schema cannot be used: {error}")))?;
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let required = required
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let is_closed = is_closed(&schema);
        Ok(SchemaCheck {
            schema,
            required,
            validator,
            is_closed,
        })
    }

    /// True if a value satisfies the schema and none of its keys can be another spelling of a known
    /// one. Then there is nothing to coerce.
    pub fn is_as_wanted(&self, value: &Value) -> bool {
        self.is_closed && self.validator.is_valid(value)
    }
}

/// Returns the words that a value may be, as far as an error of its schema tells them.
pub fn allowed_words(error: &ValidationErrorKind) -> Vec<&str> {
    match error {
        ValidationErrorKind::Constant { expected_value } => {
            expected_value.as_str().into_iter().collect()
        }
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().into_iter().flatten();
            options.filter_map(Value::as_str).collect()
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let errors = context.iter().flatten();
            errors
                .flat_map(|error| allowed_words(error.kind()))
                .collect()
        }
        _ => vec![],
    }
}

fn is_closed(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let is_open = members.contains_key("properties")
                && members.get("additionalProperties") != Some(&Value::Bool(false));
            !is_open && members.values().all(is_closed)
        }
        Value::Array(items) => items.iter().all(is_closed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
