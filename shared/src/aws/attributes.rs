//! Attributes of an item: writing them, and reading them with errors that name record and attribute.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_types::Blob;
use uuid::Uuid;

use super::StoreError;
use crate::bits::Bits;
use crate::clock::Timestamp;

/// An item as DynamoDB has it.
pub type Item = HashMap<String, AttributeValue>;

pub(crate) fn text(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

pub(crate) fn number(value: impl Into<u64>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

pub(crate) fn time(value: Timestamp) -> AttributeValue {
    number(value.0)
}

/// The value of an attribute that means something by being there.
pub(crate) fn flag() -> AttributeValue {
    AttributeValue::Bool(true)
}

pub(crate) fn binary(value: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

/// A value as JSON text.
pub(crate) fn json(value: &impl serde::Serialize) -> AttributeValue {
    // Maps in records have text keys, so this does not fail.
    text(serde_json::to_string(value).unwrap_or_default())
}

/// A bitfield; none if no bit is set, so that it is left out.
pub(crate) fn bits(value: &Bits) -> Option<AttributeValue> {
    (!value.is_zero()).then(|| binary(value.as_bytes()))
}

/// A count; none if it is zero, so that it is left out.
pub(crate) fn count(value: impl Into<u64>) -> Option<AttributeValue> {
    Some(value.into()).filter(|value| *value > 0).map(number)
}

/// When DynamoDB may delete an item.
pub(crate) fn expiry(at: Timestamp) -> AttributeValue {
    number(at.seconds())
}

/// An item of the attributes that have a value.
pub(crate) fn item(attributes: impl IntoIterator<Item = (&'static str, Option<AttributeValue>)>) -> Item {
    attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// An id in its 16-byte form: less than half of what its text is billed for. It sorts as its text does.
pub(crate) fn id(value: Uuid) -> AttributeValue {
    binary(value.as_bytes())
}

/// A set of ids in their 16-byte form: a quarter of what a string set would be billed for.
pub(crate) fn id_set<'a>(ids: impl IntoIterator<Item = &'a Uuid>) -> AttributeValue {
    AttributeValue::Bs(ids.into_iter().map(|id| Blob::new(id.as_bytes().as_slice())).collect())
}

/// Reads one item's attributes.
pub(crate) struct Reader<'a> {
    table: &'static str,
    key: &'static str,
    item: &'a Item,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(table: &'static str, key: &'static str, item: &'a Item) -> Self {
        Self { table, key, item }
    }

    pub(crate) fn corrupt(&self, attribute: &'static str, problem: impl ToString) -> StoreError {
        let id = match self.item.get(self.key) {
            Some(AttributeValue::S(id)) => id.clone(),
            _ => "?".to_owned(),
        };
        StoreError::Corrupt { table: self.table, id, attribute, problem: problem.to_string() }
    }

    pub(crate) fn has(&self, attribute: &str) -> bool {
        self.item.contains_key(attribute)
    }

    pub(crate) fn text(&self, attribute: &'static str) -> Result<&'a str, StoreError> {
        self.optional_text(attribute)?.ok_or_else(|| self.corrupt(attribute, "is missing"))
    }

    pub(crate) fn optional_text(&self, attribute: &'static str) -> Result<Option<&'a str>, StoreError> {
        match self.item.get(attribute) {
            None => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(text)),
            Some(_) => Err(self.corrupt(attribute, "is not a string")),
        }
    }

    /// A text that parses.
    pub(crate) fn parsed<T>(&self, attribute: &'static str) -> Result<T, StoreError>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        self.text(attribute)?.parse().map_err(|error| self.corrupt(attribute, error))
    }

    /// A text that parses, if there is one.
    pub(crate) fn optional_parsed<T>(&self, attribute: &'static str) -> Result<Option<T>, StoreError>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        self.has(attribute).then(|| self.parsed(attribute)).transpose()
    }

    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self, attribute: &'static str) -> Result<T, StoreError> {
        crate::json::stored(self.text(attribute)?).map_err(|error| self.corrupt(attribute, error))
    }

    /// JSON, if there is any.
    pub(crate) fn optional_json<T: serde::de::DeserializeOwned>(
        &self,
        attribute: &'static str,
    ) -> Result<Option<T>, StoreError> {
        self.has(attribute).then(|| self.json(attribute)).transpose()
    }

    pub(crate) fn optional_number(&self, attribute: &'static str) -> Result<Option<u64>, StoreError> {
        match self.item.get(attribute) {
            None => Ok(None),
            Some(AttributeValue::N(digits)) => {
                digits.parse().map(Some).map_err(|_| self.corrupt(attribute, "is not a whole number"))
            }
            Some(_) => Err(self.corrupt(attribute, "is not a number")),
        }
    }

    /// A number that parses, if there is one.
    pub(crate) fn parsed_number<T>(&self, attribute: &'static str) -> Result<Option<T>, StoreError>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        match self.item.get(attribute) {
            None => Ok(None),
            Some(AttributeValue::N(digits)) => digits.parse().map(Some).map_err(|error| self.corrupt(attribute, error)),
            Some(_) => Err(self.corrupt(attribute, "is not a number")),
        }
    }

    /// A number; zero where it is absent.
    pub(crate) fn number(&self, attribute: &'static str) -> Result<u64, StoreError> {
        Ok(self.optional_number(attribute)?.unwrap_or(0))
    }

    pub(crate) fn small(&self, attribute: &'static str) -> Result<u32, StoreError> {
        u32::try_from(self.number(attribute)?).map_err(|_| self.corrupt(attribute, "is too large"))
    }

    pub(crate) fn time(&self, attribute: &'static str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.optional_number(attribute)?.map(Timestamp))
    }

    pub(crate) fn bytes(&self, attribute: &'static str) -> Result<&'a [u8], StoreError> {
        match self.item.get(attribute) {
            None => Ok(&[]),
            Some(AttributeValue::B(blob)) => Ok(blob.as_ref()),
            Some(_) => Err(self.corrupt(attribute, "is not binary")),
        }
    }

    pub(crate) fn bits(&self, attribute: &'static str) -> Result<Bits, StoreError> {
        Ok(Bits::from_bytes(self.bytes(attribute)?.to_vec()))
    }

    /// An id in its 16-byte form.
    pub(crate) fn id(&self, attribute: &'static str) -> Result<Uuid, StoreError> {
        Uuid::from_slice(self.bytes(attribute)?).map_err(|error| self.corrupt(attribute, error))
    }

    pub(crate) fn ids(&self, attribute: &'static str) -> Result<Vec<Uuid>, StoreError> {
        match self.item.get(attribute) {
            None => Ok(Vec::new()),
            Some(AttributeValue::Bs(blobs)) => blobs
                .iter()
                .map(|blob| Uuid::from_slice(blob.as_ref()).map_err(|error| self.corrupt(attribute, error)))
                .collect(),
            Some(_) => Err(self.corrupt(attribute, "is not a set of ids")),
        }
    }
}
