//! JSON from outside. Errors distinguish malformed JSON from JSON of the wrong shape, and name the field that is wrong.

mod lines;
mod strict;
mod unique;

use serde::de::{DeserializeOwned, Deserializer, IgnoredAny};
use serde_json::Value;

use crate::limits::FIELD_PATH_BYTES_MAX;
use crate::policy::FieldError;
use crate::text::shorten;
pub use lines::{lines, read_line};
use strict::Strict;
pub use unique::Unique;

/// A text is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// There is no text.
    #[error("is empty, JSON is expected")]
    Empty,
    /// It is no JSON; why, with the place.
    #[error("is not JSON: {0}")]
    Malformed(String),
    /// It is JSON of the wrong shape as a whole.
    #[error("{0}")]
    Shape(String),
    /// A field is missing, not known, or not what it should be.
    #[error("`{}`: {}", .0.field, .0.problem)]
    Field(FieldError),
}

/// Reads one object. A list of the fields' values is not accepted in place of an object, at any depth.
///
/// # Errors
/// The text is no JSON, or of another shape; then the error names field, value and what is allowed.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    if let Ok(text) = std::str::from_utf8(text)
        && is_object(text)
    {
        let mut reader = serde_json::Deserializer::from_str(text);
        if let Ok(value) = T::deserialize(Strict(&mut reader))
            && reader.end().is_ok()
        {
            return Ok(value);
        }
    }
    // Only wrong input is read again.
    read_seldom(text)
}

/// The same, for what is read seldom: it takes longer, and less code for each type.
///
/// # Errors
/// The same.
pub fn read_seldom<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    let text = std::str::from_utf8(text)
        .map_err(|error| JsonError::Malformed(format!("byte {} is not UTF-8", error.valid_up_to())))?;
    if text.is_empty() {
        return Err(JsonError::Empty);
    }
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(JsonError::Malformed(error.to_string()));
    }
    if !is_object(text) {
        return Err(JsonError::Shape("is not an object, a JSON object is expected".to_owned()));
    }
    located(&mut serde_json::Deserializer::from_str(text))
}

/// Reads JSON from a record; it may be of any shape.
pub(crate) fn stored<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = located(&mut reader)?;
    reader.end().map_err(|error| JsonError::Malformed(error.to_string()))?;
    Ok(value)
}

fn is_object(text: &str) -> bool {
    text.bytes().find(|byte| !byte.is_ascii_whitespace()) == Some(b'{')
}

/// Reads a JSON value as this type.
///
/// # Errors
/// It is of another shape; the error names field, value and what is allowed.
pub fn shape<T: DeserializeOwned>(value: Value) -> Result<T, JsonError> {
    located(value)
}

fn located<'de, T, D>(reader: D) -> Result<T, JsonError>
where
    T: DeserializeOwned,
    D: Deserializer<'de, Error = serde_json::Error>,
{
    serde_path_to_error::deserialize(Strict(reader)).map_err(|error| {
        let path = error.path().to_string();
        fault(&path, &error.into_inner().to_string())
    })
}

/// The field and what is wrong with it; `path` is a dot for the whole body.
fn fault(path: &str, message: &str) -> JsonError {
    let problem = plain(without_place(message));
    // These messages are about the object around the field.
    let of_parent = ["missing field `", "duplicate field `"].iter().find_map(|start| problem.strip_prefix(start));
    let field = match (path, of_parent.and_then(|rest| rest.strip_suffix('`'))) {
        (".", None) => return JsonError::Shape(problem),
        (".", Some(name)) => name.to_owned(),
        (path, Some(name)) => format!("{path}.{name}"),
        (path, None) => path.to_owned(),
    };
    JsonError::Field(FieldError { field: shorten(&field, FIELD_PATH_BYTES_MAX).into_owned(), problem })
}

/// The message without line and column: the field says where.
fn without_place(message: &str) -> &str {
    let Some((start, place)) = message.rsplit_once(" at line ") else { return message };
    let numbers = place.split_once(" column ").is_some_and(|(line, column)| {
        [line, column].iter().all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    if numbers { start } else { message }
}

/// The reader's message in the terms of JSON.
fn plain(message: &str) -> String {
    match message {
        "recursion limit exceeded" => return "is nested more than 127 deep, which is not read".to_owned(),
        "number out of range" => return "holds a number beyond what a double holds".to_owned(),
        // JSON allows one half of a surrogate pair, which no text can hold.
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            return "holds half a pair of surrogates (`\\ud800` to `\\udfff`), which is not a character".to_owned();
        }
        _ => {}
    }
    let mut message = message.to_owned();
    for (rust, json) in
        [("invalid type: map,", "invalid type: object,"), ("invalid type: sequence,", "invalid type: list,")]
    {
        if let Some(rest) = message.strip_prefix(rust) {
            message = format!("{json}{rest}");
        }
    }
    for (rust, json) in [
        (", expected a map", ", expected an object"),
        (", expected a sequence", ", expected a list"),
        (", expected u32", ", expected a whole number below 2^32"),
        (", expected u64", ", expected a whole number below 2^64"),
    ] {
        if let Some(start) = message.strip_suffix(rust) {
            message = format!("{start}{json}");
        }
    }
    message
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
