//! Why a call had no outcomes: the batch API's answer, or the stage at which the call failed.

/// The stage at which a call without outcomes failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An answer with this status, which is not a success.
    Status(u16),
    /// A program ended with a status other than 0.
    Exit,
    /// An answer whose outcomes cannot be read.
    BadAnswer,
    /// An answer by which some members did not succeed, where that fails the call as a whole.
    Members,
    /// The batch API was not reached: no address, no connection, or a program that cannot be started.
    Unreachable,
    /// No secure connection.
    Tls,
    /// No answer in time, or the connection or the worker was lost after the call may have been received.
    Silence,
    /// The request was not sent: it would be larger than allowed, or its answer could not name one of its members. Smaller calls may work:
    /// it counts as refused by a status 413, but shows nothing of the batch API.
    NotSent,
    /// Fanfold did not make the call.
    NotMade,
}

impl Cause {
    /// Whether it is known that the call did not do its work: it was refused, or never received. Silence, an answer
    /// that cannot be read, and a gateway that got no answer itself leave open whether it worked.
    #[must_use]
    pub fn answered(self) -> bool {
        match self {
            Self::Silence | Self::BadAnswer => false,
            // Bad gateway, gateway time-out, and the codes by which a CDN reports a broken or silent origin.
            Self::Status(status) => !matches!(status, 502 | 504 | 520 | 522 | 524),
            Self::Exit | Self::Members | Self::Unreachable | Self::Tls | Self::NotSent | Self::NotMade => true,
        }
    }

    /// Whether the answer concerns not this batch, but the caller, who is wrong or must wait: any other batch of the kind would
    /// get the same. A redirect, which is not followed, shows that the policy has the wrong URL.
    #[must_use]
    pub fn concerns_every_batch(self) -> bool {
        match self {
            Self::Status(status) => matches!(status, 300..=399 | 401 | 403 | 404 | 405 | 415 | 429 | 503),
            Self::Unreachable | Self::Tls => true,
            Self::Exit | Self::BadAnswer | Self::Members | Self::Silence | Self::NotSent | Self::NotMade => false,
        }
    }

    /// Whether it is an answer to this very call, which may have failed because of one of its members: calls for fewer
    /// members may work. Some more statuses are about the caller, the connection or the protocol, whatever the members are.
    #[must_use]
    pub fn may_be_one_member(self) -> bool {
        let caller = matches!(self, Self::Status(402 | 406 | 407 | 411 | 421 | 426 | 428 | 451 | 505 | 511));
        matches!(self, Self::Status(_) | Self::Exit | Self::Members | Self::NotSent)
            && self.answered()
            && !self.concerns_every_batch()
            && !caller
    }

    /// Whether there was a call, or none could be made to the batch API as it is. Otherwise it shows nothing of the batch API.
    #[must_use]
    pub fn is_of_a_call(self) -> bool {
        !matches!(self, Self::NotSent | Self::NotMade)
    }

    /// Whether it means "not now" rather than "not this". 408: the request did not arrive in time, so nothing was done, and the
    /// next one may arrive.
    #[must_use]
    pub fn retriable(self) -> bool {
        match self {
            Self::Status(status) => status >= 500 || matches!(status, 408 | 409 | 425 | 429),
            Self::NotMade | Self::NotSent | Self::Members => false,
            Self::Exit | Self::BadAnswer | Self::Unreachable | Self::Tls | Self::Silence => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_may_have_worked_are_recognized() {
        for cause in [Cause::Silence, Cause::BadAnswer, Cause::Status(502), Cause::Status(504)] {
            assert!(!cause.answered() && cause.retriable() && !cause.concerns_every_batch(), "{cause:?}");
        }
        for cause in [
            Cause::Status(500),
            Cause::Status(404),
            Cause::Status(408),
            Cause::Status(301),
            Cause::Exit,
            Cause::Unreachable,
            Cause::Tls,
        ] {
            assert!(cause.answered(), "{cause:?}");
        }
    }

    #[test]
    fn refusals_of_every_batch_are_recognized() {
        for status in [300, 301, 302, 303, 307, 308, 401, 403, 404, 405, 415, 429, 503] {
            assert!(Cause::Status(status).concerns_every_batch(), "{status}");
        }
        for status in [101, 400, 408, 409, 413, 422, 425, 500, 501, 502, 504] {
            assert!(!Cause::Status(status).concerns_every_batch(), "{status}");
        }
        assert!(Cause::Unreachable.concerns_every_batch() && Cause::Tls.concerns_every_batch());
        assert!(!Cause::Exit.concerns_every_batch() && !Cause::NotMade.concerns_every_batch());
    }

    #[test]
    fn what_one_member_may_have_caused_is_recognized() {
        let others = [Cause::Exit, Cause::NotSent];
        for cause in [400, 408, 409, 410, 413, 422, 425, 500, 501].map(Cause::Status).into_iter().chain(others) {
            assert!(cause.may_be_one_member(), "{cause:?}");
        }
        let others = [301, 401, 403, 404, 429, 502, 503, 504, 524];
        let caller = [402, 406, 407, 411, 421, 426, 428, 451, 505, 511];
        let others = others.into_iter().chain(caller).map(Cause::Status);
        let silent = [Cause::BadAnswer, Cause::Unreachable, Cause::Tls, Cause::Silence, Cause::NotMade];
        for cause in others.chain(silent) {
            assert!(!cause.may_be_one_member(), "{cause:?}");
        }
    }

    #[test]
    fn causes_worth_a_retry_are_recognized() {
        for status in [408, 409, 425, 429, 500, 501, 502, 503, 504, 599] {
            assert!(Cause::Status(status).retriable(), "{status}");
        }
        for status in [101, 300, 301, 308, 400, 401, 403, 404, 405, 410, 413, 415, 422] {
            assert!(!Cause::Status(status).retriable(), "{status}");
        }
        assert!(!Cause::NotMade.retriable() && !Cause::NotSent.retriable());
    }
}
