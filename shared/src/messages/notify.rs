//! Messages to the step `notify`.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::LaneBatch;
use crate::clock::Timestamp;
use crate::notice::Notice;
use crate::policy::is_kind;
use crate::store::places::Party;

/// Asks for a notice to be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct NotifyMessage {
    /// What it is about.
    pub about: About,
    /// When the try it asks for is due, as the record shows; none: the first. If another try is due by now, the message came
    /// too late.
    pub due: Option<Timestamp>,
    /// How often the receiver had no place for it.
    pub waits: u32,
    /// The notice that could not be delivered: the message is a dead letter. Sent again, it starts over.
    pub undelivered: Option<Box<Undelivered>>,
}

/// What a notice is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// The end of a fan-out.
    Fanout(Uuid),
    /// The failures of a batch, after which it is closed.
    Batch(LaneBatch),
    /// A kind that stopped or resumed.
    Kind(String),
}

impl About {
    /// The key of the record with the state of the notice.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Fanout(id) => id.to_string(),
            Self::Batch(named) => named.batch.to_string(),
            Self::Kind(kind) => Party::Kind(kind.clone()).key(),
        }
    }

    /// The span of work on the notice, which names the event in every line that is logged.
    #[must_use]
    pub fn span(&self) -> tracing::Span {
        match self {
            Self::Fanout(fanout) => tracing::error_span!("notice", %fanout),
            Self::Batch(LaneBatch { batch, lane, .. }) => tracing::error_span!("notice", %batch, %lane),
            Self::Kind(kind) => tracing::error_span!("notice", kind),
        }
    }
}

/// A notice that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Undelivered {
    /// The notice.
    pub notice: Notice,
    /// Where it was to be delivered.
    pub to: String,
    /// Tries made.
    pub tries: u32,
    /// Why the last one failed.
    pub error: String,
}

/// The fields as they are sent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fanout: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<LaneBatch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<u64>,
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    waits: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undelivered: Option<Box<Undelivered>>,
}

impl TryFrom<Fields> for NotifyMessage {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let Fields { fanout, batch, kind, due, waits, undelivered } = fields;
        let about = match (fanout, batch, kind) {
            (Some(id), None, None) => About::Fanout(id),
            (None, Some(named), None) => About::Batch(named),
            (None, None, Some(kind)) if is_kind(&kind) => About::Kind(kind),
            (None, None, Some(_)) => return Err("`kind` is not a kind"),
            (None, None, None) => return Err("neither `fanout` nor `batch` nor `kind` is there"),
            _ => return Err("of `fanout`, `batch` and `kind` more than one is there, one is allowed"),
        };
        Ok(Self { about, due: due.map(Timestamp), waits, undelivered })
    }
}

impl From<NotifyMessage> for Fields {
    fn from(message: NotifyMessage) -> Self {
        let NotifyMessage { about, due, waits, undelivered } = message;
        let (fanout, batch, kind) = match about {
            About::Fanout(id) => (Some(id), None, None),
            About::Batch(named) => (None, Some(named), None),
            About::Kind(kind) => (None, None, Some(kind)),
        };
        Self { fanout, batch, kind, due: due.map(|due| due.0), waits, undelivered }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::delivery::read;

    const NOBODY: &str = "01890000-0000-7000-8000-000000000001";

    #[test]
    fn the_first_message_names_what_it_is_about_and_nothing_else() {
        let first = NotifyMessage::first(About::Fanout(NOBODY.parse().unwrap()));
        let text = serde_json::to_string(&first).unwrap();
        assert_eq!(text, format!("{{\"fanout\":\"{NOBODY}\"}}"));
        assert_eq!(read::<NotifyMessage>(&text).unwrap(), first);
    }

    #[test]
    fn whatever_is_sent_is_read() {
        let named = LaneBatch { batch: NOBODY.parse().unwrap(), lane: "parcel:0:NY".parse().unwrap() };
        for about in [About::Batch(named), About::Kind("parcel".to_owned())] {
            let message = NotifyMessage { waits: 3, ..NotifyMessage::due(about, Some(Timestamp(17))) };
            assert_eq!(read::<NotifyMessage>(&serde_json::to_string(&message).unwrap()).unwrap(), message);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let batch = format!("\"batch\": {{\"batch\": \"{NOBODY}\", \"lane\": \"parcel:0:NY\"}}");
        for body in [
            "{}".to_owned(),
            "{\"due\": 1}".to_owned(),
            format!("{{\"fanout\": \"{NOBODY}\", {batch}}}"),
            format!("{{{batch}, \"tries\": 1}}"),
            format!("{{{batch}, \"kind\": \"parcel\"}}"),
            "{\"kind\": \"no/kind\"}".to_owned(),
        ] {
            assert!(read::<NotifyMessage>(&body).is_err(), "{body}");
        }
    }
}
