//! Answers of batch APIs: each is read, or refused as one to be tried again, in a few words.
#![no_main]

use fanfold::limits::ERROR_BYTES_MAX;
use fanfold_batch_api::{Answer, Call, CallMember};
use libfuzzer_sys::fuzz_target;

/// The members of the call, whose ids the seeds have, too.
const IDS: [&str; 2] = ["01890000-0000-7000-8000-000000000001", "6f5b2f0e-93d1-5c0a-8d4e-fa9f01d00001"];

fn call() -> Call {
    let member = |id: &str| CallMember { id: id.parse().unwrap(), content: serde_json::from_str("{}").unwrap() };
    let (kind, target) = ("parcel".to_owned(), "NY".to_owned());
    Call { batch_id: Default::default(), kind, attempt: 1, target, members: IDS.iter().map(|id| member(id)).collect() }
}

fuzz_target!(|body: &[u8]| {
    match Answer::read(body, &call()) {
        Ok(Answer::AllSucceeded) => {
            let nothing =
                String::from_utf8_lossy(body).chars().all(|letter| letter == '\u{feff}' || letter.is_whitespace());
            assert!(nothing, "only nothing says that all succeeded");
        }
        Ok(Answer::Later(_)) => panic!("only a status says that the answer comes later"),
        Ok(Answer::Members(members)) => assert!(members.len() <= body.len()),
        Ok(Answer::Unclear { members, problem }) => {
            assert!(members.len() < body.len() && (1..=ERROR_BYTES_MAX).contains(&problem.len()));
        }
        Err(error) => {
            assert!(error.retriable && error.retry_after.is_none());
            assert!((1..=ERROR_BYTES_MAX).contains(&error.message.len()));
        }
    }
});
