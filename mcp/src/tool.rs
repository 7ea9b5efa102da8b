//! What a tool is: a command of `fanfold`, with parameters that become its arguments.

use std::time::Duration;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// A command that assistants may have run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    /// The tool's name.
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
    /// The words of the command.
    pub(crate) words: &'static [&'static str],
    /// Its parameters.
    pub(crate) parameters: &'static [Parameter],
    /// Parameters one of which must be given, if there are any.
    pub(crate) one_of: &'static [&'static str],
    /// Whether it changes something.
    pub(crate) action: bool,
    /// How long the command may take.
    pub(crate) time: Duration,
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) sort: Sort,
    pub(crate) required: bool,
}

/// What a parameter takes, and how it becomes arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A text: an option with a value.
    Text,
    /// A whole number: an option with a value.
    Number,
    /// Yes or no: an option without a value.
    Flag,
    /// A text: an argument.
    Argument,
    /// Several texts: an argument each.
    Arguments,
}

/// Why arguments cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("`{name}` is not a parameter; there are: {known}")]
    Unknown { name: String, known: String },
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("{} is needed", .0.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or "))]
    OneOf(&'static [&'static str]),
    #[error("`{name}`: {expected} is expected, and it is {value}")]
    Value { name: &'static str, expected: &'static str, value: String },
}

impl Spec {
    /// How the protocol describes it.
    pub(crate) fn tool(&self) -> Tool {
        let property = |parameter: &Parameter| (parameter.name.to_owned(), parameter.schema());
        let properties: JsonObject = self.parameters.iter().map(property).collect();
        let required: Vec<&str> = self.parameters.iter().filter(|it| it.required).map(|it| it.name).collect();
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema.insert("required".to_owned(), json!(required));
        schema.insert("additionalProperties".to_owned(), json!(false));
        let annotations = ToolAnnotations::new().read_only(!self.action).destructive(self.action).open_world(false);
        Tool::new(self.name, self.about, schema).with_annotations(annotations)
    }

    /// The arguments of the command. Values cannot pass for options: those of options are joined to them, and all others follow `--`.
    pub(crate) fn arguments(&self, given: &JsonObject) -> Result<Vec<String>, Unusable> {
        if let Some(name) = given.keys().find(|name| self.parameters.iter().all(|it| it.name != *name)) {
            let known: Vec<&str> = self.parameters.iter().map(|it| it.name).collect();
            return Err(Unusable::Unknown { name: name.clone(), known: known.join(", ") });
        }
        let is_given = |name: &&str| !matches!(given.get(*name), None | Some(Value::Null | Value::Bool(false)));
        if !self.one_of.is_empty() && !self.one_of.iter().any(is_given) {
            return Err(Unusable::OneOf(self.one_of));
        }
        let mut arguments: Vec<String> = self.words.iter().map(|word| (*word).to_owned()).collect();
        let mut last = vec!["--".to_owned()];
        for parameter in self.parameters {
            match given.get(parameter.name) {
                Some(Value::Null) | None if parameter.required => return Err(Unusable::Missing(parameter.name)),
                Some(Value::Null) | None => {}
                Some(value) => parameter.add(value, &mut arguments, &mut last)?,
            }
        }
        arguments.push("--json".to_owned());
        if last.len() > 1 {
            arguments.extend(last);
        }
        Ok(arguments)
    }
}

impl Parameter {
    fn schema(&self) -> Value {
        match self.sort {
            Sort::Text | Sort::Argument => json!({"type": "string", "description": self.about}),
            Sort::Number => json!({"type": "integer", "minimum": 0, "description": self.about}),
            Sort::Flag => json!({"type": "boolean", "description": self.about}),
            Sort::Arguments => {
                json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "description": self.about})
            }
        }
    }

    fn add(&self, value: &Value, options: &mut Vec<String>, last: &mut Vec<String>) -> Result<(), Unusable> {
        let option = format!("--{}", self.name.replace('_', "-"));
        let wrong = |expected| Unusable::Value { name: self.name, expected, value: value.to_string() };
        match self.sort {
            Sort::Text => options.push(format!("{option}={}", value.as_str().ok_or_else(|| wrong("a text"))?)),
            Sort::Number => {
                options.push(format!("{option}={}", value.as_u64().ok_or_else(|| wrong("a whole number"))?))
            }
            Sort::Flag if value.as_bool().ok_or_else(|| wrong("true or false"))? => options.push(option),
            Sort::Flag => {}
            Sort::Argument => last.push(value.as_str().ok_or_else(|| wrong("a text"))?.to_owned()),
            Sort::Arguments => {
                let values = value.as_array().filter(|values| !values.is_empty()).ok_or_else(|| wrong("a list"))?;
                for value in values {
                    last.push(value.as_str().ok_or_else(|| wrong("a list of texts"))?.to_owned());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::tools::TOOLS;

    fn arguments(tool: &str, given: Value) -> Result<Vec<String>, Unusable> {
        let spec = TOOLS.iter().find(|spec| spec.name == tool).unwrap();
        spec.arguments(given.as_object().unwrap())
    }

    #[test]
    fn parameters_become_arguments() {
        let listed = arguments("list_fanouts", json!({"state": "open", "oldest": true, "limit": 5})).unwrap();
        assert_eq!(listed, ["list", "--state=open", "--oldest", "--limit=5", "--json"]);
        assert_eq!(
            arguments("get_tasks", json!({"ids": ["a", "b"]})).unwrap(),
            ["tasks", "get", "--json", "--", "a", "b"]
        );
        assert_eq!(arguments("list_fanouts", json!({"oldest": false, "state": null})).unwrap(), ["list", "--json"]);
    }

    #[test]
    fn what_changes_much_is_told_what() {
        assert_eq!(arguments("redrive", json!({"all": true})).unwrap(), ["redrive", "--all", "--json"]);
        assert_eq!(arguments("redrive", json!({"steps": ["ack"]})).unwrap(), ["redrive", "--json", "--", "ack"]);
        assert_eq!(
            arguments("cancel_tasks", json!({"kind": "row", "target": "a"})).unwrap(),
            ["tasks", "cancel", "--kind=row", "--target=a", "--json"]
        );
        assert_eq!(
            arguments("resume_producer", json!({"producer": "x"})).unwrap(),
            ["resume", "--producer=x", "--json"]
        );
        assert_eq!(
            arguments("wake_fanout", json!({"id": "x"})).unwrap(),
            ["reissue", "--outstanding", "--json", "--", "x"]
        );
    }

    #[test]
    fn what_works_through_many_records_has_more_time() {
        for name in ["cancel_tasks", "reset_tasks", "redrive", "wake_fanout", "get_results"] {
            let spec = TOOLS.iter().find(|spec| spec.name == name).unwrap();
            assert_eq!(spec.time, crate::command::LONG, "{name}");
        }
    }

    #[test]
    fn parameters_that_are_needed_exist() {
        for spec in TOOLS {
            for name in spec.one_of {
                assert!(spec.parameters.iter().any(|it| it.name == *name && !it.required), "{}: {name}", spec.name);
            }
        }
    }

    #[test]
    fn a_value_cannot_pass_for_an_option() {
        assert_eq!(
            arguments("get_fanout", json!({"id": "--endpoint=x"})).unwrap(),
            ["status", "--json", "--", "--endpoint=x"]
        );
        assert_eq!(arguments("list_lanes", json!({"kind": "--all"})).unwrap(), ["lanes", "--kind=--all", "--json"]);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (tool, given, problem) in [
            ("get_fanout", json!({}), "`id` is missing"),
            ("get_fanout", json!({"id": 7}), "`id`: a text is expected, and it is 7"),
            ("get_tasks", json!({"ids": []}), "`ids`: a list is expected, and it is []"),
            ("redrive", json!({}), "`steps` or `all` is needed"),
            ("redrive", json!({"all": false, "steps": null}), "`steps` or `all` is needed"),
            ("reset_tasks", json!({"target": "a"}), "`ids` or `kind` is needed"),
            ("resume_producer", json!({}), "`producer` is missing"),
            ("list_switches", json!({"kind": "x"}), "`kind` is not a parameter; there are: "),
            ("list_fanouts", json!({"limit": -1}), "`limit`: a whole number is expected, and it is -1"),
        ] {
            assert_eq!(arguments(tool, given).unwrap_err().to_string(), problem);
        }
    }

    #[test]
    fn names_are_different_and_descriptions_say_what_is_changed() {
        let mut names: Vec<&str> = TOOLS.iter().map(|spec| spec.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOOLS.len());
        for spec in TOOLS {
            let tool = spec.tool();
            assert_eq!(tool.annotations.unwrap().read_only_hint, Some(!spec.action), "{}", spec.name);
        }
    }
}
