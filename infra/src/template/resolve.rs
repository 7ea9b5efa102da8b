//! CloudFormation's intrinsic functions, resolved for one machine: a table's name is its logical id, a queue's URL the one
//! the embedded SQS gives it, a parameter its default.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::engine::place;

/// What functions may refer to.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Parameters with their defaults, if they have any.
    pub(super) parameters: BTreeMap<String, Option<Value>>,
    /// Conditions, not yet evaluated.
    pub(super) conditions: Map<String, Value>,
    /// Types of the resources by logical id.
    pub(super) resources: BTreeMap<String, String>,
    /// Names of the conditions being evaluated.
    pub(super) evaluating: RefCell<Vec<String>>,
}

/// Why a value cannot be resolved.
type Problem = String;

impl Scope {
    /// Evaluates the function a value stands for; any other value is returned as it is. `None` is `AWS::NoValue`.
    pub(super) fn resolve(&self, value: &Value) -> Result<Option<Value>, Problem> {
        let Some((name, argument)) = function(value) else {
            return Ok(Some(value.clone()));
        };
        match name {
            "Ref" if argument == "AWS::NoValue" => Ok(None),
            "Ref" => self.reference(text(argument)?).map(Some),
            "Fn::GetAtt" => self.attribute(argument).map(|text| Some(text.into())),
            "Fn::Sub" => self.substitute(argument).map(|text| Some(text.into())),
            "Fn::Join" => self.join(argument).map(|text| Some(text.into())),
            "Fn::If" => match list(argument)? {
                [condition, yes, no] => self.resolve(if self.condition(text(condition)?)? { yes } else { no }),
                _ => Err("Fn::If takes a condition and two values".to_owned()),
            },
            _ => Err(format!("the local runner does not know the function {name}")),
        }
    }

    /// Evaluates a named condition.
    pub(super) fn condition(&self, name: &str) -> Result<bool, Problem> {
        let condition = self.conditions.get(name).ok_or_else(|| format!("there is no condition {name}"))?;
        if self.evaluating.borrow().iter().any(|outer| outer == name) {
            return Err(format!("condition {name} depends on itself"));
        }
        self.evaluating.borrow_mut().push(name.to_owned());
        let holds = self.holds(condition);
        self.evaluating.borrow_mut().pop();
        holds
    }

    fn holds(&self, condition: &Value) -> Result<bool, Problem> {
        let Some((name, argument)) = function(condition) else {
            return Err("a condition is a function".to_owned());
        };
        match name {
            "Condition" => self.condition(text(argument)?),
            "Fn::Equals" => match list(argument)? {
                [left, right] => Ok(self.plain(left)? == self.plain(right)?),
                _ => Err("Fn::Equals takes two values".to_owned()),
            },
            "Fn::Not" => match list(argument)? {
                [one] => self.holds(one).map(|holds| !holds),
                _ => Err("Fn::Not takes one condition".to_owned()),
            },
            "Fn::And" => list(argument)?.iter().try_fold(true, |all, one| Ok(all && self.holds(one)?)),
            "Fn::Or" => list(argument)?.iter().try_fold(false, |any, one| Ok(any || self.holds(one)?)),
            _ => Err(format!("the local runner does not know the condition {name}")),
        }
    }

    fn reference(&self, name: &str) -> Result<Value, Problem> {
        if let Some(default) = self.parameters.get(name) {
            return default.clone().ok_or_else(|| format!("parameter {name} has no default"));
        }
        if let Some(value) = pseudo_parameter(name) {
            return Ok(value.into());
        }
        match self.resources.get(name).map(String::as_str) {
            Some("AWS::SQS::Queue") => Ok(place::queue_url(name).into()),
            Some(_) => Ok(name.into()),
            None => Err(format!("there is no parameter or resource {name}")),
        }
    }

    fn attribute(&self, argument: &Value) -> Result<String, Problem> {
        let (name, attribute) = match argument {
            Value::String(path) => path.split_once('.').ok_or("Fn::GetAtt takes Resource.Attribute")?,
            _ => match list(argument)? {
                [name, attribute] => (text(name)?, text(attribute)?),
                _ => return Err("Fn::GetAtt takes a resource and an attribute".to_owned()),
            },
        };
        let kind = self.resources.get(name).ok_or_else(|| format!("there is no resource {name}"))?;
        match (kind.as_str(), attribute) {
            ("AWS::SQS::Queue", "Arn") => Ok(place::queue_arn(name)),
            ("AWS::SQS::Queue", "QueueName") => Ok(name.to_owned()),
            ("AWS::SQS::Queue", "QueueUrl") => Ok(place::queue_url(name)),
            ("AWS::DynamoDB::Table", "Arn") => Ok(place::table_arn(name)),
            ("AWS::Serverless::Function" | "AWS::Lambda::Function", "Arn") => Ok(place::function_arn(name)),
            _ => Err(format!("the local runner does not know the attribute {attribute} of a {kind}")),
        }
    }

    fn substitute(&self, argument: &Value) -> Result<String, Problem> {
        let nothing = Map::new();
        let (mut rest, variables) = match argument {
            Value::String(text) => (text.as_str(), &nothing),
            _ => match list(argument)? {
                [pattern, Value::Object(variables)] => (text(pattern)?, variables),
                _ => return Err("Fn::Sub takes a text, or a text and its variables".to_owned()),
            },
        };
        let mut result = String::new();
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or("a ${ of Fn::Sub is not closed")?;
            result.push_str(before);
            rest = after;
            if let Some(literal) = name.strip_prefix('!') {
                result.push_str(&format!("${{{literal}}}"));
            } else if let Some(variable) = variables.get(name) {
                result.push_str(&self.plain(variable)?);
            } else if name.contains('.') {
                result.push_str(&self.attribute(&name.into())?);
            } else {
                result.push_str(&scalar(&self.reference(name)?)?);
            }
        }
        result.push_str(rest);
        Ok(result)
    }

    fn join(&self, argument: &Value) -> Result<String, Problem> {
        let [separator, items] = list(argument)? else {
            return Err("Fn::Join takes a separator and a list".to_owned());
        };
        let items = list(items)?.iter().map(|item| self.plain(item)).collect::<Result<Vec<_>, _>>()?;
        Ok(items.join(text(separator)?))
    }

    /// A value as text.
    fn plain(&self, value: &Value) -> Result<String, Problem> {
        self.resolve(value)?.as_ref().map_or_else(|| Ok(String::new()), scalar)
    }
}

/// The name and argument of the function a value stands for.
fn function(value: &Value) -> Option<(&str, &Value)> {
    let map = value.as_object().filter(|map| map.len() == 1)?;
    let (name, argument) = map.iter().next()?;
    (name == "Ref" || name == "Condition" || name.starts_with("Fn::")).then_some((name.as_str(), argument))
}

/// A text, a number or a boolean as CloudFormation writes it where it needs a text.
pub(super) fn scalar(value: &Value) -> Result<String, Problem> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err("must be a text, a number or a boolean".to_owned()),
    }
}

fn text(value: &Value) -> Result<&str, Problem> {
    value.as_str().ok_or_else(|| format!("{value} must be a text"))
}

fn list(value: &Value) -> Result<&[Value], Problem> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("{value} must be a list"))
}

fn pseudo_parameter(name: &str) -> Option<&'static str> {
    Some(match name {
        "AWS::AccountId" => place::ACCOUNT,
        "AWS::Partition" => "aws",
        "AWS::Region" => place::REGION,
        "AWS::StackName" => "fanfold",
        "AWS::URLSuffix" => "amazonaws.com",
        _ => return None,
    })
}
