//! Attributes, as OTLP/JSON writes them.

use serde::Serialize;
use std::borrow::Cow;

/// A key and its value.
#[derive(Serialize)]
pub(super) struct Attribute {
    key: Cow<'static, str>,
    value: Value,
}

#[derive(Serialize)]
enum Value {
    #[serde(rename = "stringValue")]
    Text(String),
    /// 64-bit integers are texts in the JSON of protocol buffers.
    #[serde(rename = "intValue")]
    Int(String),
    #[serde(rename = "doubleValue")]
    Double(f64),
    #[serde(rename = "arrayValue")]
    Array { values: Vec<Value> },
}

/// Attributes as they are collected.
#[derive(Default)]
pub(super) struct Attributes(pub(super) Vec<Attribute>);

impl Attributes {
    fn push(&mut self, key: impl Into<Cow<'static, str>>, value: Value) {
        self.0.push(Attribute { key: key.into(), value });
    }

    pub(super) fn text(&mut self, key: &'static str, value: impl Into<String>) {
        self.push(key, Value::Text(value.into()));
    }

    pub(super) fn int(&mut self, key: impl Into<Cow<'static, str>>, value: i64) {
        self.push(key, Value::Int(value.to_string()));
    }

    pub(super) fn double(&mut self, key: &'static str, value: f64) {
        self.push(key, Value::Double(value));
    }

    /// Nothing if there are none.
    pub(super) fn ints(&mut self, key: &'static str, values: impl Iterator<Item = u64>) {
        let values: Vec<Value> = values.map(|v| Value::Int(v.to_string())).collect();
        if !values.is_empty() {
            self.push(key, Value::Array { values });
        }
    }
}
