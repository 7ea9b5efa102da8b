//! A policy ready to assign tasks to their lanes.

use super::fields::Fields;
use super::{Expression, ExpressionError, FieldError, HeadStart, Policy, PolicyError, Subject, Weight};
use crate::grouping::{Load, distinct};
use crate::lane::Lane;
use crate::share::share;

/// A policy with its expressions compiled.
#[derive(Debug)]
pub struct CompiledPolicy {
    /// The policy.
    pub policy: Policy,
    target: Expression,
    key: Option<Expression>,
    scope: Option<Expression>,
    weight: Option<Expression>,
    distinct: Option<Expression>,
    flush_when: Option<Expression>,
    priority: Option<Expression>,
    /// What these read of a content.
    fields: Fields,
}

/// Where a task belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The lane whose leader will group it.
    pub lane: Lane,
    /// Its key, if the policy has one.
    pub key: Option<String>,
    /// The scope within which its key is accepted once, if the policy has one.
    pub scope: Option<String>,
    /// What it takes of a batch, except its bytes.
    pub load: Load,
    /// By how much earlier it counts in the order of its lane.
    pub head_start: HeadStart,
}

/// The values of a policy's expressions for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// What tasks must share to be grouped.
    pub target: String,
    /// Its key, if the policy has one.
    pub key: Option<String>,
    /// The scope in which its key is accepted once, if the policy has one.
    pub scope: Option<String>,
    /// Its weight, if the policy has one.
    pub weight: Option<Weight>,
    /// The value that no two members of a batch share, if the policy has one.
    pub distinct: Option<String>,
    /// Whether its lane does not linger while it waits, if the policy says when.
    pub flushes: Option<bool>,
    /// By how much earlier it counts in the order of its lane, if the policy says so.
    pub head_start: Option<HeadStart>,
}

impl CompiledPolicy {
    /// Checks and compiles a policy.
    ///
    /// # Errors
    /// The policy cannot be used.
    pub fn new(policy: Policy) -> Result<Self, PolicyError> {
        policy.check()?;
        let compile = |field: &str, source: &str| {
            Expression::compile(source)
                .map_err(|error| PolicyError(vec![FieldError { field: field.to_owned(), problem: error.to_string() }]))
        };
        let target = compile("target", &policy.target)?;
        let optional =
            |field, source: &Option<String>| source.as_deref().map(|source| compile(field, source)).transpose();
        let key = optional("key", &policy.key)?;
        let scope = optional("scope", &policy.scope)?;
        let weight = optional("weight", &policy.weight)?;
        let distinct = optional("distinct", &policy.distinct)?;
        let flush_when = optional("flush_when", &policy.flush_when)?;
        let priority = optional("priority", &policy.priority)?;
        let others = [&key, &scope, &weight, &distinct, &flush_when, &priority];
        let all = others.into_iter().flatten().chain([&target]).map(|expression| expression.fields().clone());
        let fields = all.fold(Fields::default(), Fields::and);
        Ok(Self { policy, target, key, scope, weight, distinct, flush_when, priority, fields })
    }

    /// Works out where a task belongs, and what it takes of a batch. `fallback` decides the partition of a task of a policy without
    /// keys.
    ///
    /// # Errors
    /// An expression gives no usable value for this content; the first one is reported, with its field.
    pub fn assign(
        &self,
        content: &serde_json::Value,
        fallback: &str,
    ) -> Result<Assignment, (&'static str, ExpressionError)> {
        let Values { target, key, scope, weight, distinct: alone, flushes, head_start } = self.values(content)?;
        let load = Load {
            weight: weight.unwrap_or_default(),
            distinct: alone.as_deref().map(distinct),
            flushes: flushes.unwrap_or_default(),
            ..Load::default()
        };
        let partition = share(key.as_deref().unwrap_or(fallback), self.policy.partitions);
        let lane = Lane { kind: self.policy.kind.clone(), partition, target };
        Ok(Assignment { lane, key, scope, load, head_start: head_start.unwrap_or_default() })
    }

    /// Evaluates all expressions for a task.
    ///
    /// # Errors
    /// An expression gives no usable value for this content; the first one is reported, with its field.
    pub fn values(&self, content: &serde_json::Value) -> Result<Values, (&'static str, ExpressionError)> {
        let subject = Subject::reading(&self.fields, &self.policy.kind, content).map_err(|error| ("content", error))?;
        let target = self.target.evaluate(&subject).map_err(|error| ("target", error))?;
        let text = |field, expression: &Option<Expression>| {
            let value = expression.as_ref().map(|expression| expression.evaluate(&subject)).transpose();
            value.map_err(|error| (field, error))
        };
        let (key, scope) = (text("key", &self.key)?, text("scope", &self.scope)?);
        let distinct = text("distinct", &self.distinct)?;
        let weight = self.weight.as_ref().map(|weight| weight.weight(&subject)).transpose();
        let weight = weight.map_err(|error| ("weight", error))?;
        let flushes = self.flush_when.as_ref().map(|flush_when| flush_when.flag(&subject)).transpose();
        let flushes = flushes.map_err(|error| ("flush_when", error))?;
        let head_start = self.priority.as_ref().map(|priority| priority.head_start(&subject)).transpose();
        let head_start = head_start.map_err(|error| ("priority", error))?;
        Ok(Values { target, key, scope, weight, distinct, flushes, head_start })
    }
}
