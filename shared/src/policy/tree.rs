//! The tree of an expression.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, LiteralValue};

/// The direct parts of an expression. Those of a loop are left out, since loops are refused.
pub(super) fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).collect(),
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(of_entry).collect(),
        Expr::Struct(fields) => fields.entries.iter().flat_map(of_entry).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Comprehension(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

/// The text that an expression is, if it is a literal.
pub(super) fn text(part: &IdedExpr) -> Option<&str> {
    match &part.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

fn of_entry(entry: &IdedEntryExpr) -> Vec<&IdedExpr> {
    match &entry.expr {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}
