//! Answers of batch APIs: each is read, or refused as one to be tried again, in a few words.
#![no_main]

use fanfold::limits::ERROR_BYTES_MAX;
use fanfold_batch_api::Answer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    match Answer::read(body) {
        Ok(Answer::AllSucceeded) => {
            let nothing = String::from_utf8_lossy(body).chars().all(|letter| letter == '\u{feff}' || letter.is_whitespace());
            assert!(nothing, "only nothing says that all succeeded");
        }
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
