//! Functions of a template and what invokes them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::TemplateError;
use super::events::{self, EventSource, Route, Schedule};
use super::field::Field;

/// Seconds a function may run if the template does not set them.
const DEFAULT_TIMEOUT: u32 = 3;

/// A Lambda function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its logical id.
    pub name: String,
    /// How long an invocation may run.
    pub timeout: Duration,
    /// Its environment, with that of all functions.
    pub environment: BTreeMap<String, String>,
}

/// A function with what invokes it.
pub(super) struct Declared {
    pub(super) function: Function,
    pub(super) sources: Vec<EventSource>,
    pub(super) schedules: Vec<Schedule>,
    pub(super) routes: Vec<Route>,
}

impl Declared {
    /// Reads a function; `globals` is what the template sets for all functions.
    pub(super) fn read(name: &str, properties: &Field<'_>, globals: &Field<'_>) -> Result<Self, TemplateError> {
        let timeout = match properties.get("Timeout")? {
            Some(timeout) => Some(timeout),
            None => globals.get("Timeout")?,
        };
        let seconds = timeout.map_or(Ok(DEFAULT_TIMEOUT), |timeout| timeout.number(1..=900))?;
        let mut environment = BTreeMap::new();
        for level in [globals, properties] {
            environment.extend(read_environment(level)?);
        }
        let function = Function { name: name.to_owned(), timeout: Duration::from_secs(seconds.into()), environment };
        let mut declared = Self { function, sources: Vec::new(), schedules: Vec::new(), routes: Vec::new() };
        if let Some(events) = properties.get("Events")? {
            for (event, field) in events.entries()? {
                events::read(&event, &field, &mut declared)?;
            }
        }
        Ok(declared)
    }
}

fn read_environment(level: &Field<'_>) -> Result<Vec<(String, String)>, TemplateError> {
    let Some(environment) = level.get("Environment")? else {
        return Ok(Vec::new());
    };
    let Some(variables) = environment.get("Variables")? else {
        return Ok(Vec::new());
    };
    variables.entries()?.into_iter().map(|(name, value)| Ok((name, value.text()?))).collect()
}
