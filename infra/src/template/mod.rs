//! Reads the stack's SAM template: the tables, queues, functions and event sources a local run needs.

mod error;
mod events;
mod field;
mod functions;
mod queues;
mod resolve;
mod tables;
mod yaml;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub use error::TemplateError;
pub use events::{EventSource, Route, Schedule};
pub use functions::Function;
pub use queues::{QueueResource, Redrive};
pub use tables::{Index, Key, Projection, TableResource};

use field::Field;
use functions::Declared;
use resolve::Scope;

/// A template, with every reference resolved for one machine.
#[derive(Clone, Debug, Default)]
pub struct Template {
    tables: BTreeMap<String, TableResource>,
    queues: BTreeMap<String, QueueResource>,
    functions: BTreeMap<String, Function>,
    sources: Vec<EventSource>,
    schedules: Vec<Schedule>,
    routes: Vec<Route>,
}

impl Template {
    /// Reads the text of a SAM template. Parameters have their defaults.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let document = yaml::parse(text)?;
        let mut resources = section(&document, "Resources")?;
        let scope = scope(&document, &mut resources)?;
        let globals = section(&document, "Globals")?.remove("Function").unwrap_or_default();
        let globals = Field::new(&scope, "Globals", "Function", globals);
        let mut template = Self::default();
        for (name, resource) in &resources {
            let properties = resource.get("Properties").cloned().unwrap_or_default();
            let properties = Field::new(&scope, name, "", properties);
            template.add(name, kind(resource), &properties, &globals)?;
        }
        template.check_queues()?;
        Ok(template)
    }

    /// The text of a SAM template as the JSON it stands for, with short tags in their long form and nothing resolved.
    pub fn document(text: &str) -> Result<Value, TemplateError> {
        yaml::parse(text)
    }

    /// The tables.
    pub fn tables(&self) -> impl Iterator<Item = &TableResource> {
        self.tables.values()
    }

    /// The queues, dead-letter queues among them.
    pub fn queues(&self) -> impl Iterator<Item = &QueueResource> {
        self.queues.values()
    }

    /// A queue by its logical id.
    pub fn queue(&self, name: &str) -> Option<&QueueResource> {
        self.queues.get(name)
    }

    /// The functions.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// A function by its logical id.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    /// The environment of a function by its logical id, if there is such a function.
    pub fn environment(&self, function: &str) -> Option<BTreeMap<String, String>> {
        self.function(function).map(|function| function.environment.clone())
    }

    /// The queues that invoke functions.
    pub fn event_sources(&self) -> &[EventSource] {
        &self.sources
    }

    /// The schedules that invoke functions.
    pub fn schedules(&self) -> &[Schedule] {
        &self.schedules
    }

    /// The HTTP routes.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    fn add(
        &mut self,
        name: &str,
        kind: &str,
        properties: &Field<'_>,
        globals: &Field<'_>,
    ) -> Result<(), TemplateError> {
        match kind {
            "AWS::DynamoDB::Table" => {
                self.tables.insert(name.to_owned(), TableResource::read(name, properties)?);
            }
            "AWS::SQS::Queue" => {
                self.queues.insert(name.to_owned(), QueueResource::read(name, properties)?);
            }
            "AWS::Serverless::Function" => {
                let declared = Declared::read(name, properties, globals)?;
                self.functions.insert(name.to_owned(), declared.function);
                self.sources.extend(declared.sources);
                self.schedules.extend(declared.schedules);
                self.routes.extend(declared.routes);
            }
            _ => {}
        }
        Ok(())
    }

    /// Every queue a queue or function names must be there; `Fn::GetAtt` makes sure unless an ARN is spelled out.
    fn check_queues(&self) -> Result<(), TemplateError> {
        let redrives = self.queues.values().filter_map(|queue| Some((&queue.name, &queue.redrive.as_ref()?.queue)));
        let sources = self.sources.iter().map(|source| (&source.function, &source.queue));
        for (resource, queue) in redrives.chain(sources) {
            if !self.queues.contains_key(queue) {
                return Err(TemplateError::Missing { resource: resource.clone(), property: format!("queue {queue}") });
            }
        }
        Ok(())
    }
}

/// A section of the document; empty if it is not there.
fn section(document: &Value, name: &str) -> Result<Map<String, Value>, TemplateError> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(other) => Err(TemplateError::Value {
            resource: "template".to_owned(),
            property: name.to_owned(),
            value: other.clone(),
            problem: "must be a map".to_owned(),
        }),
    }
}

/// What references may mean. Removes the resources whose condition does not hold.
fn scope(document: &Value, resources: &mut Map<String, Value>) -> Result<Scope, TemplateError> {
    let parameters = section(document, "Parameters")?;
    let mut scope = Scope {
        parameters: parameters.into_iter().map(|(name, it)| (name, it.get("Default").cloned())).collect(),
        conditions: section(document, "Conditions")?,
        ..Scope::default()
    };
    let mut kept = Map::new();
    for (name, resource) in std::mem::take(resources) {
        if holds(&scope, &name, &resource)? {
            kept.insert(name, resource);
        }
    }
    *resources = kept;
    scope.resources = resources.iter().map(|(name, it)| (name.clone(), kind(it).to_owned())).collect();
    Ok(scope)
}

fn holds(scope: &Scope, name: &str, resource: &Value) -> Result<bool, TemplateError> {
    let Some(condition) = resource.get("Condition").and_then(Value::as_str) else {
        return Ok(true);
    };
    scope.condition(condition).map_err(|problem| TemplateError::Value {
        resource: name.to_owned(),
        property: "Condition".to_owned(),
        value: condition.into(),
        problem,
    })
}

fn kind(resource: &Value) -> &str {
    resource.get("Type").and_then(Value::as_str).unwrap_or_default()
}
