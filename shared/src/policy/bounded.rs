//! The cost of an expression: one that could run for hours, or fill a worker's memory, is refused when it is compiled. The
//! content of tasks is not trusted, so the bound holds for any content.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr};

use super::tree::{parts, text};
use crate::limits::EXPRESSION_GROWTH_MAX;

/// Functions whose cost is the product of two texts' sizes: one of these has to be a literal.
const PATTERNED: [&str; 5] = ["replace", "join", "indexOf", "lastIndexOf", "matches"];

/// Why an expression may cost too much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// It loops. A loop over a list of a content has no useful bound on its time.
    Loop,
    /// It calls this function with a value of the task where a literal text is required.
    Pattern(String),
    /// Its result may be larger than the content by this factor.
    Growth(usize),
}

/// Refuses expressions that may cost too much.
pub(super) fn check(expression: &IdedExpr) -> Result<(), Excess> {
    let mut growth = 1;
    walk(expression, &mut growth)?;
    if growth > EXPRESSION_GROWTH_MAX { Err(Excess::Growth(growth)) } else { Ok(()) }
}

/// As deep as the expression is nested, which is bounded. `growth` is multiplied by what each call may add to its input, as if
/// every call got the result of another.
fn walk(expression: &IdedExpr, growth: &mut usize) -> Result<(), Excess> {
    match &expression.expr {
        Expr::Comprehension(_) => return Err(Excess::Loop),
        Expr::Call(call) => *growth = growth.saturating_mul(factor(call)?),
        _ => {}
    }
    parts(expression).into_iter().try_for_each(|part| walk(part, growth))
}

/// The factor by which a call's result may be larger than its input.
fn factor(call: &CallExpr) -> Result<usize, Excess> {
    let name = call.func_name.as_str();
    if PATTERNED.contains(&name) && !call.args.iter().all(written) {
        return Err(Excess::Pattern(name.to_owned()));
    }
    let bytes = |at: usize| call.args.get(at).and_then(text).map_or(0, str::len);
    Ok(match name {
        // Between any two characters there is an empty text.
        "replace" if bytes(0) == 0 => bytes(1) + 1,
        "replace" => bytes(1).div_ceil(bytes(0)).max(1),
        "join" => bytes(0) + 1,
        // Each character may be escaped, or become two digits.
        "quote" | "strings.quote" | "format" => 2,
        _ => 1,
    })
}

/// Whether it is a literal text or number.
fn written(part: &IdedExpr) -> bool {
    matches!(part.expr, Expr::Literal(_))
}
