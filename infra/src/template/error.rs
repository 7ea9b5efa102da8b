//! What can be wrong with a template.

use serde_json::Value;

/// A template that cannot be read, or that has something the local runner does not support.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// It is not YAML, or not a template.
    #[error("the template cannot be read: {0}")]
    Yaml(String),
    /// A property has a value that is not understood.
    #[error("{resource}: {property}: {problem}, found {value}")]
    Value {
        /// Logical id of the resource, or the section of the template.
        resource: String,
        /// Path of the property in it.
        property: String,
        /// The value found, as JSON.
        value: Value,
        /// What is wrong with it.
        problem: String,
    },
    /// A property that must be there is not.
    #[error("{resource}: {property} is missing")]
    Missing {
        /// Logical id of the resource, or the section of the template.
        resource: String,
        /// Path of the property in it.
        property: String,
    },
}
