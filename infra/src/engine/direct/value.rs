//! Values: as requests bring them, in JSON or as the SDK has them, and as they are stored.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use aws_smithy_types::Blob;
use base64::prelude::{BASE64_STANDARD, Engine};
use dynoxide::types::{AttributeValue, Item};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Digits of a number that is stored as it is written.
const DIGITS: usize = 37;
/// Levels of lists and maps, far below what DynamoDB takes.
const DEPTH_MAX: usize = 8;

/// A value. The engine has to judge, and to read, those of other types.
#[derive(Deserialize)]
pub(in crate::engine) enum Value {
    S(String),
    N(String),
    #[serde(deserialize_with = "binary")]
    B(Vec<u8>),
    #[serde(rename = "BOOL")]
    Bool(bool),
    #[serde(rename = "NULL")]
    Null(bool),
    #[serde(rename = "SS")]
    Strings(Vec<String>),
    #[serde(rename = "BS", deserialize_with = "binaries")]
    Binaries(Vec<Vec<u8>>),
    L(Vec<Value>),
    M(HashMap<String, Value>),
}

impl Value {
    /// A value of the SDK's; none if the engine has to judge it.
    pub(in crate::engine) fn of(value: &SdkValue) -> Option<Self> {
        let bytes = |blob: &Blob| blob.as_ref().to_vec();
        Some(match value {
            SdkValue::S(text) => Self::S(text.clone()),
            SdkValue::N(number) => Self::N(number.clone()),
            SdkValue::B(blob) => Self::B(bytes(blob)),
            SdkValue::Bool(flag) => Self::Bool(*flag),
            SdkValue::Null(is) => Self::Null(*is),
            SdkValue::Ss(set) => Self::Strings(set.clone()),
            SdkValue::Bs(set) => Self::Binaries(set.iter().map(bytes).collect()),
            SdkValue::L(values) => Self::L(values.iter().map(Self::of).collect::<Option<_>>()?),
            SdkValue::M(values) => Self::M(of_item(values)?),
            _ => return None,
        })
    }

    /// A value that was stored: there is nothing left to be judged.
    pub(super) fn read(self) -> AttributeValue {
        match self {
            Self::S(text) => AttributeValue::S(text),
            Self::N(number) => AttributeValue::N(number),
            Self::B(bytes) => AttributeValue::B(bytes),
            Self::Bool(flag) => AttributeValue::BOOL(flag),
            Self::Null(is) => AttributeValue::NULL(is),
            Self::Strings(set) => AttributeValue::SS(set),
            Self::Binaries(set) => AttributeValue::BS(set),
            Self::L(values) => AttributeValue::L(values.into_iter().map(Self::read).collect()),
            Self::M(values) => AttributeValue::M(read(values)),
        }
    }

    /// The value as it is stored; none if the engine has to judge it.
    pub(in crate::engine) fn stored(self) -> Option<AttributeValue> {
        self.at_depth(0)
    }

    fn at_depth(self, depth: usize) -> Option<AttributeValue> {
        let inner = |value: Value| value.at_depth(depth + 1);
        Some(match self {
            Self::S(text) => AttributeValue::S(text),
            Self::N(number) => AttributeValue::N(plain(number)?),
            Self::B(bytes) => AttributeValue::B(bytes),
            Self::Bool(flag) => AttributeValue::BOOL(flag),
            Self::Null(is) => AttributeValue::NULL(is.then_some(true)?),
            Self::Strings(set) => AttributeValue::SS(sorted(set)?),
            Self::Binaries(set) => AttributeValue::BS(sorted(set)?),
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

/// An item that was stored, as the engine has it.
pub(super) fn read(item: HashMap<String, Value>) -> Item {
    item.into_iter().map(|(name, value)| (name, value.read())).collect()
}

/// An item that was stored, as the SDK has it.
pub(super) fn read_for_sdk(item: HashMap<String, Value>) -> HashMap<String, SdkValue> {
    item.into_iter().map(|(name, value)| (name, sdk_value(value.read()))).collect()
}

/// All values of a map; none if the engine has to judge one of them, or a name.
pub(in crate::engine) fn stored(values: HashMap<String, Value>) -> Option<HashMap<String, AttributeValue>> {
    let pair = |(name, value): (String, Value)| Some((Some(name).filter(|name| !name.is_empty())?, value.stored()?));
    values.into_iter().map(pair).collect()
}

/// All values of a map of the SDK's; none if the engine has to judge one of them.
pub(in crate::engine) fn of_item(values: &HashMap<String, SdkValue>) -> Option<HashMap<String, Value>> {
    values.iter().map(|(name, value)| Some((name.clone(), Value::of(value)?))).collect()
}

/// A key by its name and value.
pub(in crate::engine) fn key((name, value): (&str, &str)) -> HashMap<String, Value> {
    HashMap::from([(name.to_owned(), Value::S(value.to_owned()))])
}

/// An item as the SDK has it.
pub(in crate::engine) fn sdk_item(item: Item) -> HashMap<String, SdkValue> {
    item.into_iter().map(|(name, value)| (name, sdk_value(value))).collect()
}

fn sdk_value(value: AttributeValue) -> SdkValue {
    match value {
        AttributeValue::S(text) => SdkValue::S(text),
        AttributeValue::N(number) => SdkValue::N(number),
        AttributeValue::B(bytes) => SdkValue::B(Blob::new(bytes)),
        AttributeValue::BOOL(flag) => SdkValue::Bool(flag),
        AttributeValue::NULL(is) => SdkValue::Null(is),
        AttributeValue::SS(set) => SdkValue::Ss(set),
        AttributeValue::NS(set) => SdkValue::Ns(set),
        AttributeValue::BS(set) => SdkValue::Bs(set.into_iter().map(Blob::new).collect()),
        AttributeValue::L(values) => SdkValue::L(values.into_iter().map(sdk_value).collect()),
        AttributeValue::M(values) => SdkValue::M(sdk_item(values)),
    }
}

fn binary<'de, D: Deserializer<'de>>(base64: D) -> Result<Vec<u8>, D::Error> {
    BASE64_STANDARD.decode(String::deserialize(base64)?).map_err(D::Error::custom)
}

fn binaries<'de, D: Deserializer<'de>>(set: D) -> Result<Vec<Vec<u8>>, D::Error> {
    let set = Vec::<String>::deserialize(set)?;
    set.iter().map(|base64| BASE64_STANDARD.decode(base64).map_err(D::Error::custom)).collect()
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
