//! How far a notice has come, and how that is stored. No I/O but reading an item.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::aws::StoreError;
use crate::aws::attributes::{Reader, count, number, text, time};
use crate::clock::Timestamp;

/// How far a notice has come. It stands in the record that the notice is about, and never grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeProgress {
    /// Which change of its record the notice reports, of a record that changes again and again. Another change ends this
    /// notice, and begins one of its own.
    pub change: Option<u64>,
    /// When it was delivered.
    pub delivered: Option<Timestamp>,
    /// When it was given up: no further try follows by itself.
    pub given_up: Option<Timestamp>,
    /// Tries begun.
    pub tries: u32,
    /// When the first of them began, or the first since a user asked for it anew.
    pub since: Option<Timestamp>,
    /// When the next one is due; none: the first, at once. It also identifies the message that begins it: any other is a
    /// copy that came too late.
    pub due: Option<Timestamp>,
    /// While one runs: until when no other should begin.
    pub lease_until: Option<Timestamp>,
    /// Parts of the notice that were delivered, of one that has several.
    pub parts: u32,
    /// Why the last try failed.
    pub error: Option<String>,
}

/// What follows from a message that asks for a notice to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: it was delivered, or given up.
    Over,
    /// Nothing: another message continues it.
    Superseded,
    /// It is not due, or a try runs: the message comes again after this time.
    Wait(Duration),
    /// A try may begin.
    Try,
}

impl NoticeProgress {
    /// Whether it was delivered or given up.
    #[must_use]
    pub fn over(&self) -> bool {
        self.delivered.is_some() || self.given_up.is_some()
    }

    /// Whether a worker began with it. From then on its own messages continue it.
    #[must_use]
    pub fn begun(&self) -> bool {
        self.tries > 0 || self.due.is_some()
    }

    /// What follows from a message for the try that is due at `due`.
    #[must_use]
    pub fn next(&self, due: Option<Timestamp>, now: Timestamp) -> Next {
        if self.over() {
            Next::Over
        } else if due != self.due {
            Next::Superseded
        } else {
            let wait = self.wait(now);
            if wait.is_zero() { Next::Try } else { Next::Wait(wait) }
        }
    }

    /// How long no try may begin.
    #[must_use]
    pub fn wait(&self, now: Timestamp) -> Duration {
        self.due.max(self.lease_until).map_or(Duration::ZERO, |until| until.since(now))
    }

    /// Since when a try is overdue; `ended`: when the event that it reports happened.
    #[must_use]
    pub fn waiting_since(&self, ended: Timestamp) -> Timestamp {
        self.lease_until.or(self.due).unwrap_or(ended)
    }

    pub(in crate::store) fn encode(&self) -> [(&'static str, Option<AttributeValue>); 9] {
        [
            ("changes", self.change.map(number)),
            ("notified", self.delivered.map(time)),
            ("undeliverable", self.given_up.map(time)),
            ("notice_tries", count(self.tries)),
            ("notice_since", self.since.map(time)),
            ("notice_due", self.due.map(time)),
            ("notice_lease", self.lease_until.map(time)),
            ("notice_parts", count(self.parts)),
            ("notice_error", self.error.as_ref().map(text)),
        ]
    }

    pub(in crate::store) fn decode(reader: &Reader<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            change: reader.optional_number("changes")?,
            delivered: reader.time("notified")?,
            given_up: reader.time("undeliverable")?,
            tries: reader.small("notice_tries")?,
            since: reader.time("notice_since")?,
            due: reader.time("notice_due")?,
            lease_until: reader.time("notice_lease")?,
            parts: reader.small("notice_parts")?,
            error: reader.optional_text("notice_error")?.map(str::to_owned),
        })
    }
}

#[cfg(test)]
pub(in crate::store) fn any_notice() -> impl proptest::strategy::Strategy<Value = NoticeProgress> {
    use proptest::prelude::*;

    use crate::testing::any_time;

    let times = prop::array::uniform5(prop::option::of(any_time()));
    (prop::option::of(any::<u64>()), times, any::<[u32; 2]>(), prop::option::of(".{0,9}")).prop_map(
        |(change, [delivered, given_up, since, due, lease_until], [tries, parts], error)| NoticeProgress {
            change,
            delivered,
            given_up,
            tries,
            since,
            due,
            lease_until,
            parts,
            error,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn later(seconds: u64) -> Timestamp {
        NOW.plus(Duration::from_secs(seconds))
    }

    #[test]
    fn the_first_message_begins_and_waits_while_its_try_runs() {
        let fresh = NoticeProgress::default();
        assert_eq!(fresh.next(None, NOW), Next::Try);
        let running = NoticeProgress { tries: 1, lease_until: Some(later(60)), ..fresh };
        assert_eq!(running.next(None, NOW), Next::Wait(Duration::from_secs(60)));
        assert_eq!(running.next(None, later(60)), Next::Try, "its worker died");
        assert_eq!(running.waiting_since(NOW), later(60));
    }

    #[test]
    fn after_a_failure_only_the_next_message_counts() {
        let failed = NoticeProgress { tries: 1, due: Some(later(4)), ..NoticeProgress::default() };
        assert_eq!(failed.next(None, later(9)), Next::Superseded);
        assert_eq!(failed.next(Some(later(4)), later(1)), Next::Wait(Duration::from_secs(3)));
        assert_eq!(failed.next(Some(later(4)), later(4)), Next::Try);
        assert_eq!(failed.waiting_since(NOW), later(4));
        let running = NoticeProgress { tries: 2, lease_until: Some(later(64)), ..failed };
        assert_eq!(running.waiting_since(NOW), later(64), "its try has begun");
    }

    #[test]
    fn what_is_over_stays_over() {
        for over in [
            NoticeProgress { delivered: Some(NOW), ..NoticeProgress::default() },
            NoticeProgress { given_up: Some(NOW), tries: 40, due: Some(NOW), ..NoticeProgress::default() },
        ] {
            assert_eq!((over.next(None, NOW), over.next(over.due, later(1))), (Next::Over, Next::Over));
        }
    }
}
