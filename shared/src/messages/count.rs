//! Counts of estimated fan-outs, and what a message of the ack queue may be.

use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use super::{AckEntry, AckRequest, LaneBatch};
use crate::ids::parse_uuid;
use crate::limits::COUNTS_PER_REQUEST_MAX;
use crate::policy::FieldError;

/// Counts in estimated fan-outs: the body of `POST /counts`, and of messages to the queue `ack`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CountRequest {
    /// The counts. Entries for the same fan-out are added up.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = COUNTS_PER_REQUEST_MAX)))]
    pub counts: Vec<CountEntry>,
}

/// A count in one fan-out. An entry without numbers only returns the fan-out's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CountEntry {
    /// An estimated fan-out.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::fanout_id"))]
    #[serde(deserialize_with = "fanout")]
    pub fanout: Uuid,
    /// How many more are to be done.
    #[cfg_attr(feature = "openapi", schemars(range(max = u32::MAX)))]
    #[serde(default, deserialize_with = "crate::whole::u32", skip_serializing_if = "crate::unset::is_default")]
    pub add: u32,
    /// How many are done and succeeded.
    #[cfg_attr(feature = "openapi", schemars(range(max = u32::MAX)))]
    #[serde(default, deserialize_with = "crate::whole::u32", skip_serializing_if = "crate::unset::is_default")]
    pub succeeded: u32,
    /// How many are done and failed.
    #[cfg_attr(feature = "openapi", schemars(range(max = u32::MAX)))]
    #[serde(default, deserialize_with = "crate::whole::u32", skip_serializing_if = "crate::unset::is_default")]
    pub failed: u32,
}

fn fanout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_uuid(&text, "a fan-out's id (a UUID in lower case, with hyphens)").map_err(serde::de::Error::custom)
}

impl CountRequest {
    /// Checks that it has as many entries as a request may.
    ///
    /// # Errors
    /// It has none, or too many.
    pub fn check(&self) -> Result<(), FieldError> {
        let entries = self.counts.len();
        if (1..=COUNTS_PER_REQUEST_MAX).contains(&entries) {
            return Ok(());
        }
        let problem = format!("has {entries} entries, 1 to {COUNTS_PER_REQUEST_MAX} are allowed");
        Err(FieldError { field: "counts".to_owned(), problem })
    }
}

/// What a message of the ack queue may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "Fields")]
pub enum AckMessage {
    /// Items that are done.
    Acks(AckRequest),
    /// Counts of estimated fan-outs.
    Counts(CountRequest),
}

/// The fields of both: only all of them show which one was meant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default)]
    items: Vec<AckEntry>,
    #[serde(default)]
    failed: Vec<AckEntry>,
    #[serde(default)]
    duplicates: Vec<AckEntry>,
    #[serde(default)]
    batch: Option<LaneBatch>,
    #[serde(default)]
    gathered: u32,
    counts: Option<Vec<CountEntry>>,
}

impl TryFrom<Fields> for AckMessage {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let Fields { items, failed, duplicates, batch, gathered, counts } = fields;
        let acks = AckRequest { items, failed, duplicates, batch, gathered };
        match counts {
            None => Ok(Self::Acks(acks)),
            Some(_) if acks != AckRequest::default() => {
                Err("`counts` is beside acks of items, one of the two is allowed in a message".to_owned())
            }
            Some(counts) => {
                let request = CountRequest { counts };
                request.check().map_err(|FieldError { field, problem }| format!("`{field}` {problem}"))?;
                Ok(Self::Counts(request))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::delivery::read;

    const ID: &str = "01890000-0000-7000-8000-000000000001";

    fn message(body: &Value) -> Result<AckMessage, String> {
        let message = read::<AckMessage>(&body.to_string()).map_err(|error| error.to_string())?;
        assert_eq!(read::<AckMessage>(&serde_json::to_string(&message).unwrap()).unwrap(), message);
        Ok(message)
    }

    #[test]
    fn a_message_is_one_of_both() {
        assert_eq!(message(&json!({})), Ok(AckMessage::Acks(AckRequest::default())));
        let counts = json!({"counts": [{"fanout": ID, "add": 3.0}, {"fanout": ID, "failed": 4_294_967_295_u32}, {"fanout": ID}]});
        let Ok(AckMessage::Counts(CountRequest { counts })) = message(&counts) else { panic!("{counts}") };
        let counts: Vec<_> = counts.iter().map(|entry| (entry.add, entry.succeeded, entry.failed)).collect();
        assert_eq!(counts, [(3, 0, 0), (0, 0, u32::MAX), (0, 0, 0)]);
        let item = format!("{ID}:{ID}:0");
        assert!(matches!(message(&json!({"failed": [item]})), Ok(AckMessage::Acks(acks)) if acks.failed.len() == 1));
        for (body, named) in [
            (json!({"counts": [{"fanout": ID}], "items": [item]}), "`counts` is beside acks of items"),
            (json!({"counts": []}), "`counts` has 0 entries, 1 to 1000 are allowed"),
            (json!({"counts": vec![json!({"fanout": ID}); 1_001]}), "`counts` has 1001 entries"),
            (json!({"counts": [{"fanout": ID, "done": 1}]}), "unknown field `done`, expected one of `fanout`, `add`"),
            (json!({"counts": [{"fanout": ID, "add": -1}]}), "`counts[0].add`: invalid value: integer `-1`"),
            (json!({"counts": [{"fanout": ID, "add": 1.5}]}), "`counts[0].add`"),
            (json!({"counts": [{"add": 1}]}), "missing field `fanout`"),
            (json!({"counts": [{"fanout": ID.to_uppercase().replace('0', "A")}]}), "is not a fan-out's id"),
            (json!({"counts": [{"fanout": item}]}), "is not a fan-out's id"),
        ] {
            let problem = message(&body).unwrap_err();
            assert!(problem.contains(named), "{body}: {problem}");
        }
    }
}
