//! JSON in which no object has a duplicate key. Of two equal keys one parser takes the first and
//! another the last. So a proxy that checks a request could see a different request than the
//! service.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The maximum length in characters of a key in an error.
const MAX_SHOWN: usize = 60;

/// A value that was read from JSON without duplicate keys.
pub struct Unambiguous(pub Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = vec![];
        while let Some(Unambiguous(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                let shown: String = key.chars().take(MAX_SHOWN).collect();
                return Err(A::Error::custom(format_args!(
                    "the key {shown:?} stands twice in one object"
                )));
            }
            let Unambiguous(value) = members.next_value()?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        serde_json::from_str(text)
            .map(|Unambiguous(value)| value)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_every_depth_and_however_it_is_written() {
        for text in [
            r#"{"a": 1, "a": 2}"#,
            r#"[{"b": {"a": 1, "a": 1}}]"#,
            r#"{"a": 1, "\u0061": 2}"#,
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.contains("the key \"a\" stands twice in one object"),
                "{error}"
            );
        }
        let text = r#"{"a": [null, true, -1, 18446744073709551615, 1.5, "x\n"], "b": {"a": {}}}"#;
        let whole = json!({ "a": [null, true, -1, u64::MAX, 1.5, "x\n"], "b": { "a": {} } });
        assert_eq!(read(text), Ok(whole));
    }
}
