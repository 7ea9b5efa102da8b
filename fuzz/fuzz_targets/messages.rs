//! Messages of every queue: each is refused, or reads the same after it was written again.
#![no_main]

use fanfold::bits::Bits;
use fanfold::delivery::read;
use fanfold::ids::GroupId;
use fanfold::limits::{GROUP_ITEMS_MAX, NAMED_RECORDS_MAX, PROBLEM_BYTES_MAX};
use fanfold::messages::{
    AckMessage, AckRequest, CountRequest, ElectMessage, GroupMessage, HandleMessage, NotifyMessage, ProduceMessage,
    RegisterRequest, TaskRequest,
};
use fanfold::tracking::{Acks, collect};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|body: &str| {
    message::<RegisterRequest>(body);
    message::<TaskRequest>(body);
    if let Some(ack) = message::<AckRequest>(body) {
        acked(&ack);
    }
    message::<CountRequest>(body);
    message::<AckMessage>(body);
    message::<HandleMessage>(body);
    message::<NotifyMessage>(body);
    message::<ProduceMessage>(body);
    if let Some(elect) = message::<ElectMessage>(body) {
        assert!(elect.waiting.records() <= NAMED_RECORDS_MAX);
    }
    if let Some(group) = message::<GroupMessage>(body) {
        assert!(group.waiting.records() <= NAMED_RECORDS_MAX);
    }
});

/// What an entry names is what is cleared, and nothing beyond a group.
fn acked(request: &AckRequest) {
    let mut acks = Acks::new();
    collect(&mut acks, request);
    for (_, _, entry) in request.all() {
        let mut items = Bits::default();
        entry.add_to(&mut items);
        assert!(items.last().is_none_or(|last| last < GROUP_ITEMS_MAX as usize));
        assert_eq!(entry.names_any(&items), !items.is_zero());
        let GroupId { fanout, group } = entry.group();
        let done = acks.get(&(fanout, group)).map(|mask| mask.done.clone()).unwrap_or_default();
        assert!(items.minus(&done).is_zero());
    }
}

fn message<M>(body: &str) -> Option<M>
where
    M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    match read::<M>(body) {
        Ok(message) => {
            let written = serde_json::to_string(&message).expect("a message can be written");
            assert_eq!(read::<M>(&written).as_ref(), Ok(&message));
            Some(message)
        }
        Err(error) => {
            assert!((1..=PROBLEM_BYTES_MAX).contains(&error.to_string().len()));
            None
        }
    }
}
