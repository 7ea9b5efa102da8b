//! Functions of texts.

use std::borrow::Cow;

use serde_json::Value;

use super::node::Function;
use super::numbers::Num;

/// A text, number or boolean as a text.
pub(super) fn of(value: Cow<'_, Value>) -> Option<Cow<'_, str>> {
    Some(match value {
        Cow::Borrowed(Value::String(text)) => Cow::Borrowed(text),
        Cow::Owned(Value::String(text)) => Cow::Owned(text),
        value => match value.as_ref() {
            Value::Bool(flag) => Cow::Owned(flag.to_string()),
            number => match Num::of(number)? {
                Num::Whole(whole) => Cow::Owned(whole.to_string()),
                // As expressions of policies write them.
                Num::Fraction(fraction) => Cow::Owned(fraction.to_string()),
            },
        },
    })
}

/// The value of a function of a text and of further values.
pub(super) fn call(function: Function, text: &str, arguments: &[Cow<'_, Value>]) -> Result<Value, String> {
    let other = || match arguments.first().map(AsRef::as_ref) {
        Some(Value::String(other)) => Ok(other.as_str()),
        _ => Err("gives a function of a text something else than a text".to_owned()),
    };
    Ok(match function {
        Function::Contains => text.contains(other()?).into(),
        Function::StartsWith => text.starts_with(other()?).into(),
        Function::EndsWith => text.ends_with(other()?).into(),
        Function::LowerAscii => text.to_ascii_lowercase().into(),
        Function::UpperAscii => text.to_ascii_uppercase().into(),
        Function::Trim => text.trim().into(),
        _ => substring(text, arguments)?.into(),
    })
}

/// The letters from a position, counted from 0, up to but without another one.
fn substring<'t>(text: &'t str, bounds: &[Cow<'_, Value>]) -> Result<&'t str, String> {
    let length = text.chars().count();
    let bound = |at: usize, default: usize| match bounds.get(at).map(|bound| bound.as_u64()) {
        None => Ok(default),
        Some(Some(bound)) => Ok(usize::try_from(bound).unwrap_or(usize::MAX)),
        Some(None) => Err("gives `substring` a position that is not a whole number of 0 or more".to_owned()),
    };
    let (from, to) = (bound(0, 0)?, bound(1, length)?);
    if from > to || to > length {
        return Err(format!("takes the letters from {from} to {to} of a text of {length}"));
    }
    let byte = |letter: usize| text.char_indices().nth(letter).map_or(text.len(), |(byte, _)| byte);
    Ok(&text[byte(from)..byte(to)])
}
