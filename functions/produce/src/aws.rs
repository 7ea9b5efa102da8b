//! Which errors of AWS APIs another try may mend.

use std::time::Duration;

use fanfold::limits::SOURCE_RETRY_AFTER_MAX;
use fanfold_http_client::aws::{AwsError, PASSING};

use crate::SourceError;
use crate::url::failure;

/// Statuses that say that the call is wrong, and would be again: there is no such function or object, or it is elsewhere. (A
/// permission, 403, may be on its way.)
const FINAL: [u16; 7] = [301, 307, 400, 404, 412, 413, 415];

impl From<AwsError> for SourceError {
    fn from(error: AwsError) -> Self {
        match error {
            AwsError::NotMade(why) => Self::for_good(why),
            AwsError::NoAnswer(error) => failure(&error),
            AwsError::Refused(refused) => {
                let for_good = FINAL.contains(&refused.status.as_u16()) && !PASSING.contains(&refused.code.as_str());
                let retry_after = refused.retry_after.unwrap_or(Duration::ZERO).min(SOURCE_RETRY_AFTER_MAX);
                Self { for_good, retry_after, ..Self::again(refused) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fanfold_http_client::aws::Refused;
    use reqwest::StatusCode;

    use super::*;

    #[test]
    fn what_is_wrong_for_good_is_known_by_status_and_code() {
        let error = |status, code: &str| {
            let (code, message) = (code.to_owned(), "why".to_owned());
            let retry_after = Some(Duration::from_secs(999_999));
            SourceError::from(AwsError::Refused(Refused { service: "s3", status, code, message, retry_after }))
        };
        for (status, code, for_good) in [
            (StatusCode::NOT_FOUND, "NoSuchKey", true),
            (StatusCode::PRECONDITION_FAILED, "PreconditionFailed", true),
            (StatusCode::MOVED_PERMANENTLY, "PermanentRedirect", true),
            (StatusCode::BAD_REQUEST, "ExpiredToken", false),
            (StatusCode::FORBIDDEN, "AccessDenied", false),
            (StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsException", false),
            (StatusCode::SERVICE_UNAVAILABLE, "SlowDown", false),
        ] {
            assert_eq!(error(status, code).for_good, for_good, "{status} {code}");
        }
        let slow = error(StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
        assert_eq!(slow.message, "s3 answered 503 Service Unavailable: SlowDown: why");
        assert_eq!(slow.retry_after, SOURCE_RETRY_AFTER_MAX);
        assert_eq!(error(StatusCode::NOT_FOUND, "").message, "s3 answered 404 Not Found: why");
    }
}
