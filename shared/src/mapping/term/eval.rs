//! The value of a term.

use std::borrow::Cow;
use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::node::{Function, Node, Operator};
use super::numbers::Num;
use super::{Bindings, Variable, texts};
use crate::limits::TERM_VALUE_BYTES_MAX;

/// A value. None: an optional one that is not there.
type Got<'v> = Option<Cow<'v, Value>>;

/// Evaluates a part of a term.
pub(super) fn eval<'v>(node: &'v Node, bindings: &Bindings<'v>) -> Result<Got<'v>, String> {
    match node {
        Node::Literal(value) => Ok(Some(Cow::Borrowed(value))),
        Node::Variable(variable) => match bindings.get(*variable) {
            Some(value) => Ok(Some(Cow::Borrowed(value))),
            None => Err(format!("refers to `{}`, which has no value here", variable.name())),
        },
        Node::List(nodes) => {
            let values: Result<Vec<Value>, String> =
                nodes.iter().map(|node| needed(node, bindings).map(Cow::into_owned)).collect();
            owned(Value::Array(values?))
        }
        Node::Field { of, name, optional } => {
            let Some(object) = eval(of, bindings)? else { return Ok(None) };
            let found = field(object, name)?;
            if found.is_some() || *optional { Ok(found) } else { Err(format!("finds no field `{name}`")) }
        }
        Node::Element { of, at, optional } => {
            let Some(container) = eval(of, bindings)? else { return Ok(None) };
            let at = needed(at, bindings)?;
            let found = element(container, &at)?;
            if found.is_some() || *optional { Ok(found) } else { Err(format!("finds no element {at}")) }
        }
        Node::Has { of, name } => owned(match eval(of, bindings)? {
            None => false,
            Some(object) => field(object, name)?.is_some(),
        }),
        Node::Not(node) => owned(!flag(node, bindings)?),
        Node::Negative(node) => {
            let number = Num::of(needed(node, bindings)?.as_ref()).ok_or("negates something else than a number")?;
            owned(number.negative().value().ok_or("gives a number that is too large")?)
        }
        Node::Binary(operator @ (Operator::Or | Operator::And), one, other) => logic(*operator, one, other, bindings),
        Node::Binary(operator, one, other) => {
            let (one, other) = (needed(one, bindings)?, needed(other, bindings)?);
            binary(*operator, one, other.as_ref()).map(|value| Some(Cow::Owned(value)))
        }
        Node::Choice(asked, yes, no) => eval(if flag(asked, bindings)? { yes } else { no }, bindings),
        Node::Call(function, arguments) => call(*function, arguments, bindings),
    }
}

fn owned<'v>(value: impl Into<Value>) -> Result<Got<'v>, String> {
    Ok(Some(Cow::Owned(value.into())))
}

fn needed<'v>(node: &'v Node, bindings: &Bindings<'v>) -> Result<Cow<'v, Value>, String> {
    eval(node, bindings)?.ok_or_else(|| "uses a value that is not there; `.orValue(…)` gives another".to_owned())
}

fn flag<'v>(node: &'v Node, bindings: &Bindings<'v>) -> Result<bool, String> {
    let value = needed(node, bindings)?;
    value.as_bool().ok_or_else(|| format!("uses {} where true or false is expected", sort(&value)))
}

/// As in CEL, one side may decide although the other has no value.
fn logic<'v>(operator: Operator, one: &'v Node, other: &'v Node, bindings: &Bindings<'v>) -> Result<Got<'v>, String> {
    let decides = operator == Operator::Or;
    let first = flag(one, bindings);
    if first == Ok(decides) {
        return owned(decides);
    }
    match (first, flag(other, bindings)) {
        (_, Ok(second)) if second == decides => owned(decides),
        (Ok(_), second) => owned(second?),
        (Err(problem), _) => Err(problem),
    }
}

fn binary(operator: Operator, one: Cow<'_, Value>, other: &Value) -> Result<Value, String> {
    let ordered = |holds: fn(Ordering) -> bool| match order(&one, other) {
        Some(order) => Ok(Value::Bool(holds(order))),
        None => Err(format!("compares {} with {}", sort(&one), sort(other))),
    };
    match operator {
        Operator::Equal => Ok(equal(&one, other).into()),
        Operator::Unequal => Ok((!equal(&one, other)).into()),
        Operator::Less => ordered(Ordering::is_lt),
        Operator::AtMost => ordered(Ordering::is_le),
        Operator::More => ordered(Ordering::is_gt),
        Operator::AtLeast => ordered(Ordering::is_ge),
        Operator::In => match (one.as_ref(), other) {
            (one, Value::Array(values)) => Ok(values.iter().any(|value| equal(one, value)).into()),
            (Value::String(name), Value::Object(fields)) => Ok(fields.contains_key(name).into()),
            (_, Value::Object(_)) => Ok(false.into()),
            (_, other) => Err(format!("looks for a value in {}", sort(other))),
        },
        _ => match (one.into_owned(), other) {
            (Value::String(one), Value::String(other)) if operator == Operator::Plus => bounded(one + other),
            (Value::Array(mut ones), Value::Array(others)) if operator == Operator::Plus => {
                ones.extend_from_slice(others);
                Ok(Value::Array(ones))
            }
            (one, other) => {
                let (Some(left), Some(right)) = (Num::of(&one), Num::of(other)) else {
                    return Err(format!("calculates with {} and {}", sort(&one), sort(other)));
                };
                left.calculate(operator, right)?.value().ok_or_else(|| "gives a number that is too large".to_owned())
            }
        },
    }
}

fn call<'v>(function: Function, arguments: &'v [Node], bindings: &Bindings<'v>) -> Result<Got<'v>, String> {
    let Some((first, others)) = arguments.split_first() else {
        return Err("calls a function without an argument".to_owned());
    };
    match (function, first) {
        (Function::OrValue, _) => {
            let value = eval(first, bindings)?;
            return if value.is_some() {
                Ok(value)
            } else {
                others.first().map_or(Ok(None), |other| eval(other, bindings))
            };
        }
        (Function::HasValue, _) => return owned(eval(first, bindings)?.is_some()),
        // As it was registered.
        (Function::Json, Node::Variable(Variable::Content)) if bindings.raw.is_some() => {
            return bounded(bindings.raw.unwrap_or_default().to_owned()).map(|text| Some(Cow::Owned(text)));
        }
        _ => {}
    }
    let value = needed(first, bindings)?;
    match function {
        Function::Size => owned(size(&value)?),
        Function::String => {
            let sort = sort(&value);
            owned(texts::of(value).ok_or_else(|| format!("makes a text of {sort}; `json(…)` does"))?.into_owned())
        }
        Function::Int => owned(whole(&value).and_then(Num::value).ok_or_else(|| none_of("whole number", &value))?),
        Function::Double => owned(fraction(&value).and_then(Num::value).ok_or_else(|| none_of("number", &value))?),
        Function::Json => bounded(value.to_string()).map(|text| Some(Cow::Owned(text))),
        Function::Base64 => match value.as_ref() {
            Value::String(text) => bounded(STANDARD.encode(text)).map(|text| Some(Cow::Owned(text))),
            other => Err(format!("encodes {}, a text is expected; `base64(json(…))` takes any value", sort(other))),
        },
        _ => {
            let Value::String(text) = value.as_ref() else {
                return Err(format!("calls a function of a text on {}", sort(&value)));
            };
            let others: Result<Vec<Cow<'v, Value>>, String> =
                others.iter().map(|node| needed(node, bindings)).collect();
            texts::call(function, text, &others?).map(|value| Some(Cow::Owned(value)))
        }
    }
}

fn none_of(wanted: &str, value: &Value) -> String {
    format!("cannot make a {wanted} of {}", sort(value))
}

/// Texts only grow up to a limit: terms within terms would double them each time.
fn bounded(text: String) -> Result<Value, String> {
    if text.len() > TERM_VALUE_BYTES_MAX {
        return Err(format!("gives a text of {} bytes, at most {TERM_VALUE_BYTES_MAX} are allowed", text.len()));
    }
    Ok(Value::String(text))
}

fn size(value: &Value) -> Result<usize, String> {
    match value {
        Value::String(text) => Ok(text.chars().count()),
        Value::Array(values) => Ok(values.len()),
        Value::Object(fields) => Ok(fields.len()),
        other => Err(format!("asks for the size of {}", sort(other))),
    }
}

fn whole(value: &Value) -> Option<Num> {
    match (value, Num::of(value)) {
        (Value::String(text), _) => text.parse::<i64>().ok().map(|whole| Num::Whole(whole.into())),
        // The text of a fraction without its digits after the point is a whole number.
        (_, Some(Num::Fraction(fraction))) => format!("{:.0}", fraction.trunc()).parse().ok().map(Num::Whole),
        (_, number) => number,
    }
}

fn fraction(value: &Value) -> Option<Num> {
    match (value, Num::of(value)) {
        (Value::String(text), _) => text.parse().ok().map(Num::Fraction),
        (_, Some(Num::Whole(whole))) => Some(Num::Fraction(whole as f64)),
        (_, number) => number,
    }
}

fn field<'v>(object: Cow<'v, Value>, name: &str) -> Result<Got<'v>, String> {
    match object {
        Cow::Borrowed(Value::Object(fields)) => Ok(fields.get(name).map(Cow::Borrowed)),
        Cow::Owned(Value::Object(mut fields)) => Ok(fields.remove(name).map(Cow::Owned)),
        other => Err(format!("looks for the field `{name}` of {}", sort(&other))),
    }
}

fn element<'v>(container: Cow<'v, Value>, at: &Value) -> Result<Got<'v>, String> {
    if let Value::String(name) = at {
        return field(container, name);
    }
    let Some(Num::Whole(position)) = Num::of(at) else { return Err(format!("looks for an element by {}", sort(at))) };
    let position = usize::try_from(position).ok();
    match container {
        Cow::Borrowed(Value::Array(values)) => Ok(position.and_then(|at| values.get(at)).map(Cow::Borrowed)),
        Cow::Owned(Value::Array(mut values)) => {
            Ok(position.filter(|at| *at < values.len()).map(|at| Cow::Owned(values.swap_remove(at))))
        }
        other => Err(format!("looks for an element of {}", sort(&other))),
    }
}

/// Numbers are compared by value, as in CEL: 1 is 1.0.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => order(one, other) == Some(Ordering::Equal),
        (Value::Array(ones), Value::Array(others)) => {
            ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| equal(one, other))
        }
        (Value::Object(ones), Value::Object(others)) => {
            let same = |(name, one): (&String, &Value)| others.get(name).is_some_and(|other| equal(one, other));
            ones.len() == others.len() && ones.iter().all(same)
        }
        (one, other) => one == other,
    }
}

fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        (one, other) => Num::of(one)?.compare(Num::of(other)?),
    }
}

/// The sort of a value, for errors.
pub(super) fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether a term needs the content's value, and not only its text.
pub(super) fn reads_content(node: &Node) -> bool {
    match node {
        Node::Variable(variable) => *variable == Variable::Content,
        Node::Call(Function::Json, arguments) if arguments.as_slice() == [Node::Variable(Variable::Content)] => false,
        node => node.parts().into_iter().any(reads_content),
    }
}
