//! Values as requests bring them.

use std::collections::HashMap;

use base64::prelude::{BASE64_STANDARD, Engine};
use dynoxide::types::AttributeValue;
use serde::Deserialize;

/// Digits of a number that is stored as it is written.
const DIGITS: usize = 37;
/// Levels of lists and maps, far below what DynamoDB takes.
const DEPTH_MAX: usize = 8;

/// A value. The engine has to judge those of other types.
#[derive(Deserialize)]
pub(in crate::engine) enum Value {
    S(String),
    N(String),
    B(String),
    #[serde(rename = "BOOL")]
    Bool(bool),
    #[serde(rename = "NULL")]
    Null(bool),
    #[serde(rename = "SS")]
    Strings(Vec<String>),
    #[serde(rename = "BS")]
    Binaries(Vec<String>),
    L(Vec<Value>),
    M(HashMap<String, Value>),
}

impl Value {
    /// The value as it is stored; none if the engine has to judge it.
    pub(in crate::engine) fn stored(self) -> Option<AttributeValue> {
        self.at_depth(0)
    }

    fn at_depth(self, depth: usize) -> Option<AttributeValue> {
        let inner = |value: Value| value.at_depth(depth + 1);
        Some(match self {
            Self::S(text) => AttributeValue::S(text),
            Self::N(number) => AttributeValue::N(plain(number)?),
            Self::B(base64) => AttributeValue::B(binary(&base64)?),
            Self::Bool(flag) => AttributeValue::BOOL(flag),
            Self::Null(is) => AttributeValue::NULL(is.then_some(true)?),
            Self::Strings(set) => AttributeValue::SS(sorted(set)?),
            Self::Binaries(set) => {
                AttributeValue::BS(sorted(set.iter().map(|one| binary(one)).collect::<Option<Vec<_>>>()?)?)
            }
            _ if depth == DEPTH_MAX => return None,
            Self::L(values) => AttributeValue::L(values.into_iter().map(inner).collect::<Option<_>>()?),
            Self::M(values) => {
                let pair =
                    |(name, value): (String, Value)| Some((Some(name).filter(|name| !name.is_empty())?, inner(value)?));
                AttributeValue::M(values.into_iter().map(pair).collect::<Option<_>>()?)
            }
        })
    }
}

/// All values of a map; none if the engine has to judge one of them, or a name.
pub(super) fn stored(values: HashMap<String, Value>) -> Option<HashMap<String, AttributeValue>> {
    let pair = |(name, value): (String, Value)| Some((Some(name).filter(|name| !name.is_empty())?, value.stored()?));
    values.into_iter().map(pair).collect()
}

fn binary(base64: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(base64).ok()
}

/// A number written as it is stored: whole, or above one with digits after the point.
fn plain(number: String) -> Option<String> {
    let digits = number.strip_prefix('-').unwrap_or(&number);
    let (whole, parts) = digits.split_once('.').map_or((digits, None), |(whole, parts)| (whole, Some(parts)));
    let all = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let plain = digits.len() <= DIGITS && all(whole) && parts.is_none_or(|parts| all(parts) && !parts.ends_with('0'));
    let leads = whole.starts_with(|digit: char| digit != '0') || number == "0";
    (plain && leads).then_some(number)
}

/// A set in the order in which it is stored; none if it is none.
fn sorted<T: Ord>(mut set: Vec<T>) -> Option<Vec<T>> {
    let count = set.len();
    set.sort_unstable();
    set.dedup();
    (count > 0 && set.len() == count).then_some(set)
}
