//! A kind's gate, and how it is stored.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::store::attributes::Reader;
use crate::store::{Item, StoreError};

/// A kind's gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The kind.
    pub kind: String,
    /// Who holds a place, and until when.
    pub places: BTreeMap<Uuid, Timestamp>,
}

impl Gate {
    /// Places held whose lease has not ended.
    #[must_use]
    pub fn held(&self, now: Timestamp) -> usize {
        self.places.values().filter(|until| **until >= now).count()
    }

    /// Places whose lease has ended.
    pub fn dead(&self, now: Timestamp) -> impl Iterator<Item = (Uuid, Timestamp)> + '_ {
        self.places.iter().filter(move |(_, until)| **until < now).map(|(holder, until)| (*holder, *until))
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("locks", "lane", item);
        let wrong = || reader.corrupt("places", "is not a map of ids to times");
        let places = match item.get("places") {
            None => BTreeMap::new(),
            Some(AttributeValue::M(places)) => places
                .iter()
                .map(|(holder, until)| {
                    let until = until.as_n().ok().and_then(|until| until.parse().ok()).map(Timestamp);
                    holder.parse().ok().zip(until).ok_or_else(wrong)
                })
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(wrong()),
        };
        Ok(Self { kind: reader.text("kind")?.to_owned(), places })
    }
}
