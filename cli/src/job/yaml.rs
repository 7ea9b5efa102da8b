//! Reading YAML, and explaining what is wrong with it: who writes a policy need not know YAML's rules.

use std::path::Path;

use fanfold::json::JsonError;
use fanfold::policy::FieldError;
use serde::de::DeserializeOwned;

use crate::fault::Fault;

/// Characters that begin something else than a plain text.
const BEGINNINGS: &str = "\"'[]{}!&*|>@`%?,#";

/// Fields that are expressions.
const EXPRESSIONS: [&str; 7] = ["target", "key", "scope", "weight", "distinct", "flush_when", "priority"];

/// Reads YAML (JSON is YAML). `wanted` is what should be in it, for errors; these name line, column and field.
pub(crate) fn read<T: DeserializeOwned>(file: &Path, text: &str, wanted: &str) -> Result<T, Fault> {
    if is_empty(text) {
        return Err(Fault::new(file.display(), format_args!("is empty; {wanted} is expected")));
    }
    serde_saphyr::from_str_with_options(text, options()).map_err(|error: serde_saphyr::Error| {
        // The YAML reader knows the line, the JSON reader the field and the value.
        let value = serde_saphyr::from_str_with_options::<serde_json::Value>(text, options());
        let (error, problem) = match value.map(fanfold::json::shape::<T>) {
            Ok(Err(misfit)) => (error, misshapen(&misfit, wanted)),
            Ok(Ok(_)) => {
                let problem = plain(&error);
                (error, problem)
            }
            Err(error) => {
                let line = error.location().and_then(|at| usize::try_from(at.line()).ok());
                let hint = line.and_then(|line| explain(text, line)).unwrap_or_default();
                let problem = format!("is not valid YAML: {}{hint}", plain(&error));
                (error, problem)
            }
        };
        let place = match error.location() {
            Some(at) => format!("{}:{}:{}", file.display(), at.line(), at.column()),
            None => file.display().to_string(),
        };
        Fault::new(place, problem)
    })
}

/// `no` and `on` are words, as YAML 1.2 has it.
pub(crate) fn options() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true }
}

/// Whether there is nothing but comments.
pub(crate) fn is_empty(text: &str) -> bool {
    let content = |line: &str| !line.is_empty() && !line.starts_with('#') && line != "---";
    !text.trim_start_matches('\u{feff}').lines().any(|line| content(line.trim()))
}

/// What a field is missing because YAML takes it for a comment.
pub(crate) fn hint_of_comment(text: &str, field: &str) -> Option<String> {
    let line = text.lines().find(|line| split(line).is_some_and(|(name, _)| name == field))?;
    let (_, value) = split(line)?;
    let cut = value.contains(" #") && !value.starts_with(['"', '\'', '|', '>']);
    cut.then(|| {
        format!("; YAML takes what follows ` #` for a comment: quote the whole value, {}", quoted(field, value))
    })
}

/// What is wrong with valid YAML.
fn misshapen(error: &JsonError, wanted: &str) -> String {
    match error {
        JsonError::Shape(problem) => {
            let found = problem.split(", expected").next().unwrap_or(problem);
            format!("{}, {wanted} is expected", found.replace("invalid type: ", "is the "))
        }
        // An expression that begins with a bracket is a list to YAML, or a map.
        JsonError::Field(FieldError { field, problem })
            if EXPRESSIONS.contains(&field.as_str())
                && ["list", "object"].iter().any(|found| problem.starts_with(&format!("invalid type: {found}"))) =>
        {
            let hint =
                "an expression that begins with [ or { must be quoted as a whole, as in '[content.a, content.b]'";
            format!("`{field}`: {problem}; {hint}")
        }
        _ => error.to_string(),
    }
}

/// The message without the location, which goes before it, and in the words of who reads it.
fn plain(error: &serde_saphyr::Error) -> String {
    let message = error.without_snippet().to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    match message.strip_prefix("duplicate mapping key: ") {
        Some(rest) => format!("the field `{}` is there twice", rest.split(',').next().unwrap_or(rest)),
        None => message.to_owned(),
    }
}

/// Why a line is not valid YAML, if it is for one of the usual reasons.
fn explain(text: &str, line: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    // Some faults are seen only when the next line begins.
    for line in [line, line.saturating_sub(1)] {
        let Some(text) = line.checked_sub(1).and_then(|at| lines.get(at)) else { continue };
        if text.trim_start_matches(' ').starts_with('\t') {
            return Some("; YAML is indented with spaces, not with tabs".to_owned());
        }
        let Some((name, value)) = split(text) else { continue };
        let expression = EXPRESSIONS.contains(&name) && value.starts_with(|first| BEGINNINGS.contains(first));
        let collection = value.starts_with(['[', '{']);
        if expression || (!collection && (value.contains(": ") || value.ends_with(':'))) {
            return Some(format!("; quote the whole value: {}", quoted(name, value)));
        }
        if text.starts_with(' ') && line > 1 {
            return Some("; fields of one level begin in the same column".to_owned());
        }
    }
    lines
        .iter()
        .any(|line| line.trim_start_matches(' ').starts_with('\t'))
        .then(|| "; YAML is indented with spaces, not with tabs".to_owned())
}

/// Name and value of a line that has both.
fn split(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && value.starts_with(' ') && !value.trim().is_empty()).then_some((name, value.trim()))
}

/// A field with its value in quotes that YAML takes as it is.
fn quoted(name: &str, value: &str) -> String {
    format!("{name}: '{}'", value.replace('\'', "''"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn problem(text: &str) -> String {
        read::<std::collections::BTreeMap<String, String>>(Path::new("p.yaml"), text, "a thing")
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn an_expression_that_must_be_quoted_is_shown_quoted() {
        let target = "double(content.weight_kg) > 30.0 ? \"heavy\" : \"light\"";
        let message = problem(&format!("kind: row\ntarget: {target}\n"));
        assert!(message.starts_with("p.yaml:2:"), "{message}");
        assert!(message.contains(&format!("quote the whole value: target: '{target}'")), "{message}");
        let message = problem("kind: row\ntarget: \"a\" + content.shop\n");
        assert!(message.ends_with("target: '\"a\" + content.shop'"), "{message}");
        let message = problem("kind: row\ntarget: 'a' + content.shop\n");
        assert!(message.ends_with("target: '''a'' + content.shop'"), "{message}");
        // What is shown is valid.
        let shown = message.split("value: ").nth(1).unwrap();
        let value: Value = serde_saphyr::from_str(shown).unwrap();
        assert_eq!(value["target"], "'a' + content.shop");
    }

    #[test]
    fn the_usual_mistakes_are_explained() {
        for (text, part) in [
            ("kind: row\n\ttarget: content.shop\n", "not with tabs"),
            ("kind: row\n target: content.shop\n", "begin in the same column"),
            ("kind: row\nkind: row\n", "the field `kind` is there twice"),
            ("kind: row\ntarget: [a, b]\n", "must be quoted as a whole"),
            ("kind: row\nbatch_api: {command: [true\n", "not valid YAML: unclosed bracket"),
            ("", "is empty; a thing is expected"),
            ("# nothing\n---\n", "is empty; a thing is expected"),
        ] {
            assert!(problem(text).contains(part), "{text:?}: {}", problem(text));
        }
        let hint = hint_of_comment("kind: row\ntarget: content.a + \" #\"\n", "target").unwrap();
        assert!(hint.ends_with("target: 'content.a + \" #\"'"), "{hint}");
        assert_eq!(hint_of_comment("target: 'a' # a comment\n", "target"), None);
    }
}
