//! One value of a resource with the path to it, so that every error names its place.

use serde_json::Value;

use super::TemplateError;
use super::resolve::{Scope, scalar};

/// A resolved value at a path of a resource. What it holds is resolved when it is asked for.
pub(super) struct Field<'a> {
    scope: &'a Scope,
    resource: &'a str,
    path: String,
    value: Value,
}

impl<'a> Field<'a> {
    pub(super) fn new(scope: &'a Scope, resource: &'a str, path: &str, value: Value) -> Self {
        Self { scope, resource, path: path.to_owned(), value }
    }

    /// The entry of a map; `None` if it is not there, is null, or is `AWS::NoValue`.
    pub(super) fn get(&self, name: &str) -> Result<Option<Self>, TemplateError> {
        let Value::Object(map) = &self.value else {
            return if self.value.is_null() { Ok(None) } else { Err(self.wrong("must be a map")) };
        };
        match map.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => self.at(name, value),
        }
    }

    /// The entry of a map that must be there.
    pub(super) fn require(&self, name: &str) -> Result<Self, TemplateError> {
        self.get(name)?
            .ok_or_else(|| TemplateError::Missing { resource: self.resource.to_owned(), property: self.join(name) })
    }

    /// The entries of a map.
    pub(super) fn entries(&self) -> Result<Vec<(String, Self)>, TemplateError> {
        let Value::Object(map) = &self.value else {
            return Err(self.wrong("must be a map"));
        };
        let mut entries = Vec::with_capacity(map.len());
        for (name, value) in map {
            if let Some(field) = self.at(name, value)? {
                entries.push((name.clone(), field));
            }
        }
        Ok(entries)
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Result<Vec<Self>, TemplateError> {
        let Value::Array(list) = &self.value else {
            return Err(self.wrong("must be a list"));
        };
        let mut items = Vec::with_capacity(list.len());
        for (index, value) in list.iter().enumerate() {
            items.extend(self.at(&index.to_string(), value)?);
        }
        Ok(items)
    }

    /// The value as a text; numbers and booleans as they are written.
    pub(super) fn text(&self) -> Result<String, TemplateError> {
        scalar(&self.value).map_err(|problem| self.wrong(&problem))
    }

    /// The value as a whole number of a range. CloudFormation takes numbers written as texts.
    pub(super) fn number(&self, range: std::ops::RangeInclusive<u32>) -> Result<u32, TemplateError> {
        let number = match &self.value {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.wrong(&format!("must be a whole number from {} to {}", range.start(), range.end())))
    }

    /// The value as a boolean.
    pub(super) fn boolean(&self) -> Result<bool, TemplateError> {
        match &self.value {
            Value::Bool(value) => Ok(*value),
            Value::String(text) if text == "true" => Ok(true),
            Value::String(text) if text == "false" => Ok(false),
            _ => Err(self.wrong("must be true or false")),
        }
    }

    /// A complaint about this value.
    pub(super) fn wrong(&self, problem: &str) -> TemplateError {
        TemplateError::Value {
            resource: self.resource.to_owned(),
            property: self.path.clone(),
            value: self.value.clone(),
            problem: problem.to_owned(),
        }
    }

    fn at(&self, name: &str, value: &Value) -> Result<Option<Self>, TemplateError> {
        let path = self.join(name);
        match self.scope.resolve(value) {
            Ok(value) => Ok(value.map(|value| Self { scope: self.scope, resource: self.resource, path, value })),
            Err(problem) => Err(TemplateError::Value {
                resource: self.resource.to_owned(),
                property: path,
                value: value.clone(),
                problem,
            }),
        }
    }

    fn join(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}
