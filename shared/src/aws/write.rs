//! The result of a conditional write.

use super::{Item, StoreError};
use crate::metrics::CONFLICTS;

/// The result of a conditional write. A failed condition is no error: it shows the record as it stands, so that it need not be
/// read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Write<T = (), S = Option<Item>> {
    /// It was applied.
    Done(T),
    /// Its condition failed, so nothing was written; this is what stands.
    Refused(S),
}

impl<T, S> Write<T, S> {
    /// Whether it was applied.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// The result, if it was applied.
    #[must_use]
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(done) => Some(done),
            Self::Refused(_) => None,
        }
    }

    /// The same, counted as a conflict if its condition failed.
    pub(super) fn counted(self) -> Self {
        if !self.is_done() {
            metrics::counter!(CONFLICTS).increment(1);
        }
        self
    }

    /// The same, with another result of an applied write.
    pub fn map<U>(self, done: impl FnOnce(T) -> U) -> Write<U, S> {
        match self {
            Self::Done(value) => Write::Done(done(value)),
            Self::Refused(stands) => Write::Refused(stands),
        }
    }
}

impl<T, S> Write<T, Option<S>> {
    /// Whether it counts: it was applied, now or before (then its answer was lost, and `mine` recognizes it by the record that
    /// stands).
    pub(crate) fn counts(&self, mine: impl FnOnce(&S) -> bool) -> bool {
        match self {
            Self::Done(_) => true,
            Self::Refused(stands) => stands.as_ref().is_some_and(mine),
        }
    }
}

impl<S> Write<S, Option<S>> {
    /// A write whose answer was lost comes back as a failed condition when it is repeated. It counts as done: `mine` recognizes
    /// it by the record that stands.
    pub(crate) fn or_mine(self, mine: impl FnOnce(&S) -> bool) -> Self {
        match self {
            Self::Refused(Some(stands)) if mine(&stands) => Self::Done(stands),
            other => other,
        }
    }

    /// The record as it stands, if there is one, whether this write was applied or refused.
    pub(crate) fn stands(self) -> Option<S> {
        match self {
            Self::Done(stands) => Some(stands),
            Self::Refused(stands) => stands,
        }
    }

    /// The same, where what is absent is as good as `absent`.
    pub(crate) fn or_absent(self, absent: impl FnOnce() -> S) -> Write<S, S> {
        match self {
            Self::Done(stands) => Write::Done(stands),
            Self::Refused(stands) => Write::Refused(stands.unwrap_or_else(absent)),
        }
    }
}

impl<T> Write<T> {
    /// Reads the record that refused.
    pub(crate) fn decode_refused<R>(
        self,
        decode: impl FnOnce(&Item) -> Result<R, StoreError>,
    ) -> Result<Write<T, Option<R>>, StoreError> {
        Ok(match self {
            Self::Done(done) => Write::Done(done),
            Self::Refused(item) => Write::Refused(item.as_ref().map(decode).transpose()?),
        })
    }
}

impl Write<Item> {
    /// Reads the record, whether it was written or refused.
    pub(crate) fn decode<R>(
        self,
        decode: impl FnOnce(&Item) -> Result<R, StoreError>,
    ) -> Result<Write<R, Option<R>>, StoreError> {
        Ok(match self {
            Self::Done(item) => Write::Done(decode(&item)?),
            Self::Refused(item) => Write::Refused(item.as_ref().map(decode).transpose()?),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_write_whose_answer_was_lost_is_done() {
        let refused = |stands| Write::<u32, Option<u32>>::Refused(stands);
        assert_eq!(refused(Some(7)).or_mine(|stands| *stands == 7), Write::Done(7));
        assert_eq!(refused(Some(8)).or_mine(|stands| *stands == 7), refused(Some(8)));
        assert_eq!(refused(None).or_mine(|_| true), refused(None), "nobody wrote it");
        assert!(refused(Some(7)).counts(|stands| *stands == 7) && !refused(None).counts(|_| true));
    }

    #[test]
    fn what_stands_is_what_was_written_or_what_refused() {
        assert_eq!(Write::<u32, Option<u32>>::Done(1).stands(), Some(1));
        assert_eq!(Write::<u32, Option<u32>>::Refused(None).stands(), None);
        assert_eq!(Write::<u32, Option<u32>>::Refused(None).or_absent(|| 9), Write::Refused(9));
    }
}
