//! How the state of a rate is stored: a few attributes of a kind's gate or a lane's lock.

use uuid::Uuid;

use crate::aws::attributes::{Reader, id, number, text};
use crate::aws::{Change, Item, StoreError, Write};
use crate::clock::Timestamp;
use crate::limits::CONTENTION_TRIES_MAX;
use crate::pacing::{Ask, Bucket, CallTime, Micros, Verdict, moment};
use crate::store::places::ID;

/// The name of the rate.
const NAME: &str = "pace_of";
/// When the bucket is full again.
const FULL: &str = "pace_full";
/// Up to when times are promised.
const PROMISED: &str = "pace_promised";
/// The id that got the latest time.
const BY: &str = "pace_by";

/// The answer to a call that asked for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paced {
    /// It has one.
    Given(Box<CallTime>),
    /// Its batch has waited for its turn, and its time is later. The bucket as it stands.
    Wait(Micros, Bucket),
    /// Its batch is to get a turn. The bucket as it stands.
    Queue(Bucket),
    /// There is no such record.
    Gone,
}

/// The state of a rate in a record.
pub(super) fn decode(reader: &Reader<'_>) -> Result<Bucket, StoreError> {
    Ok(Bucket {
        name: reader.optional_text(NAME)?.map(str::to_owned),
        full: reader.optional_number(FULL)?,
        promised: reader.optional_number(PROMISED)?,
        by: reader.has(BY).then(|| reader.id(BY)).transpose()?,
    })
}

fn bucket(item: &Item) -> Result<Bucket, StoreError> {
    decode(&Reader::new("locks", ID, item))
}

/// A change that also gives `by` a time. `seen`: the bucket as it was read, if it has a time. Without it the bucket is assumed
/// to be full, and the change is refused if it is not.
pub(super) fn give<'a>(change: Change<'a>, ask: &Ask, by: Uuid, seen: Option<&Bucket>) -> Change<'a> {
    let change = change.set(BY, id(by));
    match seen {
        // The state of another rate is replaced only as it was read.
        Some(seen) if seen.name.as_ref().is_some_and(|name| *name != ask.name) => change
            .set(NAME, text(&ask.name))
            .set(FULL, number(ask.after(seen.by_rate_of(ask).full)))
            .remove([PROMISED])
            .when_same(NAME, seen.name.as_ref().map(text))
            .when_same(FULL, seen.full.map(number)),
        // A call that got a time in between makes this one later. That is fine as long as it is near enough.
        Some(seen) if seen.full.is_some_and(|full| full > ask.floor()) => {
            let change = change.add(FULL, number(ask.cost())).when(
                "pace_of = :pace_is AND pace_full > :pace_floor AND pace_full <= :pace_ceiling",
                [
                    (":pace_is", text(&ask.name)),
                    (":pace_floor", number(ask.floor())),
                    (":pace_ceiling", number(ask.ceiling())),
                ],
            );
            in_order(change, ask)
        }
        _ => {
            let change = change.set(NAME, text(&ask.name)).set(FULL, number(ask.after(None))).when(
                "attribute_not_exists(pace_of) OR (pace_of = :pace_is AND (attribute_not_exists(pace_full) OR pace_full <= :pace_floor))",
                [(":pace_is", text(&ask.name)), (":pace_floor", number(ask.floor()))],
            );
            in_order(change, ask)
        }
    }
}

/// A change that is refused if the bucket is not full again by this moment.
pub(super) fn spent_by(change: Change<'_>, until: Timestamp) -> Change<'_> {
    let spent = "attribute_not_exists(pace_full) OR pace_full <= :pace_until";
    change.when(spent, [(":pace_until", number(moment(until)))])
}

/// A batch without a turn does not overtake those that wait for theirs.
fn in_order<'a>(change: Change<'a>, ask: &Ask) -> Change<'a> {
    if ask.has_turn {
        return change;
    }
    let free = "attribute_not_exists(pace_promised) OR pace_promised <= :pace_from";
    change.when(free, [(":pace_from", number(ask.from))])
}

/// Gives a time to a call. `begin` begins a change of the record; `by`: an id that no other call has.
pub(super) async fn take<'a>(begin: impl Fn() -> Change<'a>, ask: &Ask, by: Uuid) -> Result<Paced, StoreError> {
    let mut seen: Option<Bucket> = None;
    for _ in 0..CONTENTION_TRIES_MAX {
        let item = match give(begin(), ask, by, seen.as_ref()).send_for_new().await? {
            Write::Done(item) => {
                let given = bucket(&item)?.given(ask, by);
                return Ok(given.map_or(Paced::Gone, |given| Paced::Given(Box::new(given))));
            }
            Write::Refused(None) => return Ok(Paced::Gone),
            Write::Refused(Some(item)) => item,
        };
        let bucket = bucket(&item)?;
        // This very write, whose answer was lost.
        if let Some(given) = bucket.given(ask, by) {
            return Ok(Paced::Given(Box::new(given)));
        }
        match bucket.verdict(ask) {
            Verdict::Go => seen = Some(bucket),
            Verdict::Wait(at) => return Ok(Paced::Wait(at, bucket)),
            Verdict::Queue => return Ok(Paced::Queue(bucket)),
        }
    }
    Err(StoreError::Contended { what: "giving a call its time".to_owned() })
}

/// Promises a time to a batch that waits. Returns when its turn comes.
pub(super) async fn promise<'a>(
    begin: impl Fn() -> Change<'a>,
    ask: &Ask,
    seen: &Bucket,
) -> Result<Micros, StoreError> {
    let mut seen = seen.clone();
    for _ in 0..CONTENTION_TRIES_MAX {
        let (turn, promised) = seen.turn(ask);
        // Many batches that ask at once need no compare-and-set: each gets the time after the one before.
        if let Some(last) = last_of_many(&seen, ask) {
            let change = begin().add(PROMISED, number(ask.cost())).when_is(NAME, text(&ask.name));
            let change = change.when("pace_promised >= :pace_last", [(":pace_last", number(last))]);
            match change.send_for_new().await? {
                Write::Done(item) => return Ok(bucket(&item)?.promised.map_or(turn, |promised| ask.time(promised))),
                Write::Refused(None) => return Ok(turn),
                Write::Refused(Some(item)) => seen = bucket(&item)?,
            }
            continue;
        }
        let change = begin().set(NAME, text(&ask.name)).set(PROMISED, number(promised));
        let change = if seen.name.as_ref().is_some_and(|name| *name != ask.name) {
            // A call that was made meanwhile by the rate before stays spent.
            change.put([(FULL, seen.by_rate_of(ask).full.map(number))]).when_same(FULL, seen.full.map(number))
        } else {
            change
        };
        let change =
            change.when_same(NAME, seen.name.as_ref().map(text)).when_same(PROMISED, seen.promised.map(number));
        match change.send().await? {
            Write::Done(()) | Write::Refused(None) => return Ok(turn),
            Write::Refused(Some(item)) => seen = bucket(&item)?,
        }
    }
    Err(StoreError::Contended { what: "giving a batch its turn".to_owned() })
}

/// Up to when times are promised, if batches wait and this alone decides when the next turn is.
fn last_of_many(seen: &Bucket, ask: &Ask) -> Option<Micros> {
    let same = seen.name.as_ref() == Some(&ask.name);
    seen.promised.filter(|promised| same && *promised > ask.floor() && Some(*promised) >= seen.full)
}

/// Releases a time that will not be used for a call, if no other call got one since.
pub(super) async fn release(change: Change<'_>, given: &CallTime) -> Result<(), StoreError> {
    let change = change.subtract(FULL, number(given.ask.cost())).remove([BY]);
    change.when_is(BY, id(given.by)).when_is(FULL, number(given.full)).send().await.map(|_| ())
}

/// Gives a later time to a call that missed its own. If no other call got one since, the time is moved; otherwise the call
/// spends again.
pub(super) async fn again<'a>(
    begin: impl Fn() -> Change<'a>,
    given: &CallTime,
    ask: &Ask,
    by: Uuid,
) -> Result<Paced, StoreError> {
    let full = ask.after(Some(given.full.saturating_sub(given.ask.cost())));
    let moved = begin()
        .set(FULL, number(full))
        .set(BY, id(by))
        .when_is(NAME, text(&ask.name))
        .when_is(BY, id(given.by))
        .when_is(FULL, number(given.full));
    match moved.send().await? {
        Write::Done(()) => Ok(Paced::Given(Box::new(CallTime::given(ask.clone(), by, full)))),
        Write::Refused(_) => take(begin, ask, by).await,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::aws::attributes::item;
    use crate::testing::any_id;

    /// The attributes of a bucket.
    pub(crate) fn encode(bucket: &Bucket) -> [(&'static str, Option<aws_sdk_dynamodb::types::AttributeValue>); 4] {
        [
            (NAME, bucket.name.as_ref().map(text)),
            (FULL, bucket.full.map(number)),
            (PROMISED, bucket.promised.map(number)),
            (BY, bucket.by.map(id)),
        ]
    }

    pub(crate) fn any_bucket() -> impl Strategy<Value = Bucket> {
        let id = prop::option::of(any_id());
        (prop::option::of("[a-z0-9 ]{1,9}"), any::<[Option<u64>; 2]>(), id)
            .prop_map(|(name, [full, promised], by)| Bucket { name, full, promised, by })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(written in any_bucket()) {
            prop_assert_eq!(bucket(&item(encode(&written))).unwrap(), written);
        }
    }
}
