//! JSON Schemas, made from the types that are serialised. What is committed in docs/schema is a copy: the
//! tests beside each document hold it to what is made here, and the document to it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// The schema of what `T` serialises to.
pub(crate) fn text<T: JsonSchema>() -> String {
    let root = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&root).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::Value;
    use std::{env, fs, path::Path};

    /// `UPDATE=1 cargo test -p tcpwhy-report` rewrites the committed file.
    #[track_caller]
    pub(crate) fn is_committed(name: &str, now: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
        if env::var_os("UPDATE").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, now).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == now, "{} is old: run UPDATE=1 cargo test -p tcpwhy-report", path.display());
    }

    /// Where `document` does not keep to the schema.
    pub(crate) fn faults(schema: &str, document: &Value) -> Vec<String> {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let mut wrong = Vec::new();
        check(&schema, &schema, document, "$", &mut wrong);
        wrong
    }

    /// The part of JSON Schema that the generator uses.
    fn check(root: &Value, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let target = root.pointer(name.trim_start_matches('#')).unwrap();
            return check(root, target, value, at, wrong);
        }
        if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
            let fits = any.iter().any(|s| {
                let mut inner = Vec::new();
                check(root, s, value, at, &mut inner);
                inner.is_empty()
            });
            if !fits {
                wrong.push(format!("{at}: {value} fits no alternative"));
            }
            return;
        }
        let is = |kind: &str| match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            other => unreachable!("type {other}"),
        };
        match schema.get("type") {
            Some(Value::String(kind)) if !is(kind) => {
                return wrong.push(format!("{at}: {value} is no {kind}"));
            }
            Some(Value::Array(kinds)) if !kinds.iter().any(|k| is(k.as_str().unwrap())) => {
                return wrong.push(format!("{at}: {value} is none of {kinds:?}"));
            }
            _ => {}
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array)
            && !values.contains(value)
        {
            wrong.push(format!("{at}: {value} is not in the list"));
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if value.get(name.as_str().unwrap()).is_none() {
                wrong.push(format!("{at}: {name} is missing"));
            }
        }
        for (name, inner) in value.as_object().into_iter().flatten() {
            let of = schema
                .get("properties")
                .and_then(|p| p.get(name))
                .or_else(|| schema.get("additionalProperties"));
            match of {
                Some(of) => check(root, of, inner, &format!("{at}.{name}"), wrong),
                None => wrong.push(format!("{at}.{name}: not in the schema")),
            }
        }
        for (i, inner) in value.as_array().into_iter().flatten().enumerate() {
            match schema.get("items") {
                Some(of) => check(root, of, inner, &format!("{at}[{i}]"), wrong),
                None => wrong.push(format!("{at}: items are not described")),
            }
        }
    }
}
