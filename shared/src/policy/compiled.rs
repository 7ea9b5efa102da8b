//! A policy ready to place tasks.

use super::{Expression, ExpressionError, FieldError, Policy, PolicyError, Subject};
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
}

/// Where a task belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The lane whose leader will group it.
    pub lane: Lane,
    /// Its key, if the policy has one.
    pub key: Option<String>,
    /// The scope within which its key is accepted once, if the policy has one.
    pub scope: Option<String>,
    /// What it takes of a batch, except its bytes.
    pub load: Load,
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
        Ok(Self { policy, target, key, scope, weight, distinct })
    }

    /// Works out where a task belongs, and what it takes of a batch. `fallback` decides the partition of a task of a policy without
    /// keys.
    ///
    /// # Errors
    /// An expression gives no usable value for this content; the first one is reported, with its field.
    pub fn place(
        &self,
        content: &serde_json::Value,
        fallback: &str,
    ) -> Result<Placement, (&'static str, ExpressionError)> {
        let subject = Subject::new(&self.policy.kind, content).map_err(|error| ("content", error))?;
        let target = self.target.evaluate(&subject).map_err(|error| ("target", error))?;
        let text = |field, expression: &Option<Expression>| {
            let value = expression.as_ref().map(|expression| expression.evaluate(&subject)).transpose();
            value.map_err(|error| (field, error))
        };
        let (key, scope) = (text("key", &self.key)?, text("scope", &self.scope)?);
        let distinct = text("distinct", &self.distinct)?.map(|value| distinct(&value));
        let weight = self.weight.as_ref().map(|weight| weight.weight(&subject)).transpose();
        let weight = weight.map_err(|error| ("weight", error))?.unwrap_or_default();
        let partition = share(key.as_deref().unwrap_or(fallback), self.policy.partitions);
        let lane = Lane { kind: self.policy.kind.clone(), partition, target };
        Ok(Placement { lane, key, scope, load: Load { weight, distinct, ..Load::default() } })
    }
}
