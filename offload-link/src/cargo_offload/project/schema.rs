//! `cargo offload schema`: the JSON schema of `[package.metadata.offload]`.
//!
//! Source: JSON Schema, draft 7, which editors of TOML read.

use std::io::Write;

use offload_build::tools::{self, KeyDescription, KeyForm};
use serde_json::{Map, Value, json};

use crate::cargo_offload::error::CargoOffloadError;
use crate::json;

/// Prints the JSON schema of `[package.metadata.offload]`, for editors.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  cargo offload schema > offload.schema.json")]
pub(crate) struct SchemaLine {}

pub(crate) fn run(_: &SchemaLine, out: &mut impl Write) -> Result<(), CargoOffloadError> {
    json::write(&schema(), out).map_err(CargoOffloadError::unwritten)
}

fn schema() -> Value {
    let keys = tools::keys();
    let mut table = properties(&keys, |_| true);
    let per_target = object(properties(&keys, |key| key.is_per_target));
    let module = {
        let mut own = table.clone();
        own.insert("target".to_owned(), reference("targets"));
        let mut module = object(own);
        module["required"] = json!(["name"]);
        module
    };
    let profile = {
        let mut own = table.clone();
        own.insert("target".to_owned(), reference("targets"));
        object(own)
    };
    table.insert("target".to_owned(), reference("targets"));
    table.insert(
        "profile".to_owned(),
        json!({
            "type": "object",
            "description": "Keys for one of Cargo's profiles.",
            "properties": { "dev": reference("profile"), "release": reference("profile") },
            "additionalProperties": false,
        }),
    );
    table.insert(
        "module".to_owned(),
        json!({
            "type": "array",
            "description": "Modules, each with a name and keys of its own.",
            "items": reference("module"),
            "minItems": 1,
        }),
    );
    let mut schema = object(table);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("[package.metadata.offload]");
    schema["description"] = json!("Device code of a Cargo package, built by offload-build.");
    schema["definitions"] = json!({
        "module": module,
        "profile": profile,
        "targets": {
            "type": "object",
            "description": "Keys for one target, in addition to those for all.",
            "additionalProperties": per_target,
        },
    });
    schema
}

fn reference(definition: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{definition}") })
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn properties(
    keys: &[KeyDescription],
    is_wanted: impl Fn(&KeyDescription) -> bool,
) -> Map<String, Value> {
    let wanted = keys.iter().filter(|key| is_wanted(key));
    wanted
        .map(|key| (key.name.to_owned(), property(key)))
        .collect()
}

fn property(key: &KeyDescription) -> Value {
    let mut property = match key.form {
        KeyForm::Text => json!({ "type": "string" }),
        KeyForm::List => json!({ "type": "array", "items": { "type": "string" } }),
        KeyForm::Map => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        KeyForm::Flag => json!({ "type": "boolean" }),
        KeyForm::Choice(choices) => {
            // A choice that is a number may stand without quotes.
            let numbers = choices
                .iter()
                .filter_map(|choice| choice.parse::<u8>().ok());
            let numbers: Vec<Value> = numbers.map(Value::from).collect();
            let texts = choices.iter().map(|choice| Value::from(*choice));
            json!({ "enum": texts.chain(numbers).collect::<Vec<_>>() })
        }
    };
    let mut description = format!("{} Default: {}.", key.description, key.default);
    if let Some(languages) = key.languages {
        description += &format!(" Languages: {}.", languages.join(", "));
    }
    property["description"] = json!(description);
    property
}
