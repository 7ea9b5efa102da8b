//! Whether a policy's expressions can be used.

use super::{Expression, ExpressionError, Policy, Subject};

impl Policy {
    /// Compiles an expression whose value is a text. One that does not depend on contents has the same value for every task, so
    /// it is evaluated, too.
    pub(super) fn check_expression(&self, source: &str) -> Result<(), String> {
        self.check_with(source, |expression, any| expression.evaluate(any).map(drop))
    }

    /// The same for an expression whose value is a weight.
    pub(super) fn check_number(&self, source: &str) -> Result<(), String> {
        self.check_with(source, |expression, any| expression.weight(any).map(drop))
    }

    /// The same for an expression whose value is true or false.
    pub(super) fn check_flag(&self, source: &str) -> Result<(), String> {
        self.check_with(source, |expression, any| expression.flag(any).map(drop))
    }

    /// The same for an expression whose value is a head start.
    pub(super) fn check_head_start(&self, source: &str) -> Result<(), String> {
        self.check_with(source, |expression, any| expression.head_start(any).map(drop))
    }

    fn check_with(
        &self,
        source: &str,
        evaluate: impl Fn(&Expression, &Subject<'_>) -> Result<(), ExpressionError>,
    ) -> Result<(), String> {
        let expression = Expression::compile(source).map_err(|error| error.to_string())?;
        if expression.uses_content() {
            return Ok(());
        }
        let value = Subject::new(&self.kind, &serde_json::Value::Null).and_then(|any| evaluate(&expression, &any));
        value.map_err(|error| format!("fails for every task: {error}"))
    }
}
