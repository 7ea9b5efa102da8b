//! Batch APIs: requests, answers, and one module per way of calling.
//!
//! A new way is a variant of [`fanfold::policy::Way`], a module beside [`url`], and an arm in [`Callers`].

mod answer;
mod aws;
mod call;
mod callers;
mod cause;
mod error;
mod lambda;
mod mapping;
mod secrets;
mod shape;
mod shown;
mod sqs;
mod url;

pub use answer::{Accepted, Answer, MemberAnswer, MemberOutcome, Mismatch};
pub use call::{Call, CallMember, Caller, Calling, Request};
pub use callers::{Callers, Programs};
pub use cause::Cause;
pub use error::CallError;
pub use fanfold::retry_after::RetryAfter;
pub use mapping::{Head, Mapping, Reading, Readings};
pub use secrets::Secrets;
pub use shape::{Reply, SentCall, SentMember, Shape};
pub use shown::ShownRequest;
