//! What the errors of AWS APIs say. Many that concern every call have the status 400, so the code counts more.

use fanfold_http_client::aws::{AwsError, PASSING, THROTTLED};

use crate::url::failure;
use crate::{CallError, Cause, RetryAfter};

/// The caller may not do this now, or its credentials are wrong.
const DENIED: [&str; 27] = [
    "AccessDenied",
    "AccessDeniedException",
    "AccountSuspendedException",
    "AuthFailure",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidSignatureException",
    "KMSAccessDeniedException",
    "KMSDisabledException",
    "KMSInvalidStateException",
    "KMSNotFoundException",
    "KMSOptInRequired",
    "KmsAccessDenied",
    "KmsDisabled",
    "KmsInvalidState",
    "KmsNotFound",
    "MailFromDomainNotVerifiedException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotAuthorized",
    "OptInRequired",
    "SendingPausedException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// What is called does not exist: a queue, a table, a stream.
const MISSING: [&str; 5] = [
    "AWS.SimpleQueueService.NonExistentQueue",
    "InvalidAddress",
    "NonExistentQueue",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
];

/// The cause that an error's code shows, if it concerns every call.
pub(crate) fn cause_of(code: &str) -> Option<Cause> {
    let of = |codes: &[&str], cause| codes.contains(&code).then_some(cause);
    // Nothing is wrong with a batch whose credentials expired, or whose call came late: every call waits until that has passed.
    of(PASSING, Cause::Unreachable)
        .or_else(|| of(THROTTLED, Cause::Status(429)))
        .or_else(|| of(&DENIED, Cause::Status(403)))
        .or_else(|| of(&MISSING, Cause::Status(404)))
}

/// The error of a call of a service that was not made, had no answer, or was refused. `name`: the service's.
pub(crate) fn not_done(name: &str, error: &AwsError) -> CallError {
    match error {
        // Nothing is wrong with the batch: every call waits until the deployment is mended.
        AwsError::NotMade(why) => CallError::new(Cause::Unreachable, format!("the batch API cannot be called: {why}")),
        AwsError::NoAnswer(error) => failure(error),
        AwsError::Refused(refused) => {
            let cause = cause_of(&refused.code).unwrap_or(Cause::Status(refused.status.as_u16()));
            let retry_after = refused.retry_after.map(RetryAfter::Delay);
            CallError { retry_after, ..CallError::new(cause, refused.answered_by(name)) }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod testing {
    use super::*;
    use fanfold_http_client::aws::Refused;

    /// An error that a service answered.
    pub(crate) fn refused(service: &'static str, status: u16, code: &str, message: &str) -> AwsError {
        let status = reqwest::StatusCode::from_u16(status).unwrap();
        let (code, message) = (code.to_owned(), message.to_owned());
        let retry_after = Some(std::time::Duration::from_secs(7));
        AwsError::Refused(Refused { service, status, code, message, retry_after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_every_call_are_known_and_others_are_a_batchs_own() {
        for code in PASSING.iter().chain(THROTTLED).chain(&DENIED).chain(&MISSING) {
            assert!(cause_of(code).is_some_and(Cause::concerns_every_batch), "{code}");
        }
        for code in PASSING.iter().chain(THROTTLED) {
            assert!(cause_of(code).is_some_and(Cause::retriable), "{code} passes");
        }
        for code in ["", "ValidationException", "InvalidMessageContents", "SerializationException", "InternalFailure"] {
            assert_eq!(cause_of(code), None, "{code}");
        }
    }
}
