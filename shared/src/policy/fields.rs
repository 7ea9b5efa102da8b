//! Which fields of a task's content an expression reads: values are made for these alone.

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::Expr;
use serde::{Serialize, Serializer};

use super::tree::{parts, text};

/// Fields at the top of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fields {
    /// All of them, or a content that has no fields.
    All,
    /// Those with these names.
    These(BTreeSet<String>),
}

impl Default for Fields {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl Fields {
    /// Those that an expression may read.
    pub(super) fn read_by(expression: &IdedExpr) -> Self {
        match &expression.expr {
            // Loops are refused; what one reads is not looked for.
            Expr::Comprehension(_) => return Self::All,
            Expr::Ident(name) if is_content(name) => return Self::All,
            Expr::Select(select) if is_all(&select.operand) => return Self::one(&select.field),
            Expr::Call(call) if call.func_name == "_[_]" => {
                if let [whole, name] = call.args.as_slice()
                    && is_all(whole)
                    && let Some(name) = text(name)
                {
                    return Self::one(name);
                }
            }
            _ => {}
        }
        parts(expression).into_iter().map(Self::read_by).fold(Self::default(), Self::and)
    }

    /// These and others.
    #[must_use]
    pub(super) fn and(self, others: Self) -> Self {
        match (self, others) {
            (Self::These(mut some), Self::These(others)) => {
                some.extend(others);
                Self::These(some)
            }
            _ => Self::All,
        }
    }

    /// A content, of which only these fields are seen.
    pub(super) fn of<'a>(&'a self, content: &'a serde_json::Value) -> Seen<'a> {
        Seen { fields: self, content }
    }

    fn one(name: &str) -> Self {
        Self::These(BTreeSet::from([name.to_owned()]))
    }
}

/// What is seen of a content.
pub(super) struct Seen<'a> {
    fields: &'a Fields,
    content: &'a serde_json::Value,
}

impl Serialize for Seen<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.fields, self.content) {
            (Fields::These(names), serde_json::Value::Object(all)) => {
                serializer.collect_map(names.iter().filter_map(|name| all.get_key_value(name)))
            }
            _ => self.content.serialize(serializer),
        }
    }
}

fn is_content(name: &str) -> bool {
    name == "content"
}

fn is_all(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if is_content(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::Fields;
    use crate::policy::{Expression, Subject};

    fn these(names: &[&str]) -> Fields {
        Fields::These(names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn fields_are_found_wherever_an_expression_reads_them() {
        for (source, expected) in [
            ("kind", these(&[])),
            ("content.a + '/' + content.b.c", these(&["a", "b"])),
            ("content['a b'] + content[\"c\"]", these(&["a b", "c"])),
            ("has(content.a) ? content.a : 'none'", these(&["a"])),
            ("[content.a, {'x': content.b}.x, [content.c][0]]", these(&["a", "b", "c"])),
            ("content.list[content.n]", these(&["list", "n"])),
            ("content.a.matches('x') || size(content.b) > 1", these(&["a", "b"])),
            ("content.content", these(&["content"])),
            ("content", Fields::All),
            ("content[kind]", Fields::All),
            ("content[content.name]", Fields::All),
            ("'a' in content", Fields::All),
            ("size(content) > 2 ? content.a : ''", Fields::All),
            ("{'x': content}.x.a", Fields::All),
        ] {
            assert_eq!(Expression::compile(source).unwrap().fields(), &expected, "{source}");
        }
    }

    #[test]
    fn values_and_errors_do_not_depend_on_what_is_not_read() {
        let contents = [
            json!({"a": "x", "b": {"c": 1, "a": 2}, "c": [1, 2], "n": 1, "other": "y"}),
            json!({"b": 3, "c": null}),
            json!({}),
            json!(null),
            json!("text"),
            json!([{"a": 1}]),
        ];
        for source in [
            "content.a",
            "content['a']",
            "content.b.c",
            "has(content.a)",
            "has(content.b.c)",
            "content.c[content.n]",
            "has(content.a) ? content.b : content.c",
            "content.missing",
            "content",
            "size(content)",
            "'other' in content",
            "content == {'b': 3, 'c': null}",
        ] {
            let expression = Expression::compile(source).unwrap();
            for content in &contents {
                let narrow = Subject::reading(expression.fields(), "parcel", content).unwrap();
                let wide = Subject::new("parcel", content).unwrap();
                let (narrow, wide) = (expression.evaluate(&narrow), expression.evaluate(&wide));
                assert_eq!(format!("{narrow:?}"), format!("{wide:?}"), "{source} of {content}");
            }
        }
    }
}
