//! Messages of every queue: each is refused, or reads the same after it was written again.
#![no_main]

use fanfold::delivery::read;
use fanfold::limits::{NAMED_RECORDS_MAX, PROBLEM_BYTES_MAX};
use fanfold::messages::{
    AckRequest, ElectMessage, GroupMessage, HandleMessage, NotifyMessage, RegisterRequest, TaskRequest,
};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|body: &str| {
    message::<RegisterRequest>(body);
    message::<TaskRequest>(body);
    message::<AckRequest>(body);
    message::<HandleMessage>(body);
    message::<NotifyMessage>(body);
    if let Some(elect) = message::<ElectMessage>(body) {
        assert!(elect.waiting.records() <= NAMED_RECORDS_MAX);
    }
    if let Some(group) = message::<GroupMessage>(body) {
        assert!(group.waiting.records() <= NAMED_RECORDS_MAX);
    }
});

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
