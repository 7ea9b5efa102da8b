//! A batch being gathered, within the limits of one invocation.

use std::collections::VecDeque;

use aws_sdk_sqs::types::Message;
use fanfold::limits::{BODY_BYTES_MAX, ENVELOPE_BYTES};

/// Messages for one invocation.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) messages: Vec<Message>,
    bytes: usize,
}

impl Batch {
    /// Moves messages from `waiting` until the batch is full or nothing waits; returns whether it is full.
    pub(super) fn fill(&mut self, waiting: &mut VecDeque<Message>, size: usize) -> bool {
        while self.messages.len() < size {
            let Some(message) = waiting.pop_front() else {
                return false;
            };
            let bytes = message.body().map_or(0, str::len) + ENVELOPE_BYTES;
            if !self.messages.is_empty() && self.bytes + bytes > BODY_BYTES_MAX {
                waiting.push_front(message);
                return true;
            }
            self.bytes += bytes;
            self.messages.push(message);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(count: usize, bytes: usize) -> VecDeque<Message> {
        let message = Message::builder().body("x".repeat(bytes)).build();
        VecDeque::from(vec![message; count])
    }

    #[test]
    fn a_batch_is_full_at_its_size() {
        let (mut batch, mut waiting) = (Batch::default(), waiting(5, 1));
        assert!(!batch.fill(&mut waiting, 6));
        assert!(waiting.is_empty());
        waiting.extend(self::waiting(3, 1));
        assert!(batch.fill(&mut waiting, 6));
        assert_eq!((batch.messages.len(), waiting.len()), (6, 2));
    }

    #[test]
    fn a_batch_is_full_before_its_payload_is_too_large() {
        let (mut batch, mut waiting) = (Batch::default(), waiting(40, 255 * 1024));
        assert!(batch.fill(&mut waiting, 100));
        assert_eq!((batch.messages.len(), waiting.len()), (24, 16));
    }

    #[test]
    fn a_message_larger_than_a_payload_still_goes_alone() {
        let (mut batch, mut waiting) = (Batch::default(), waiting(2, BODY_BYTES_MAX));
        assert!(batch.fill(&mut waiting, 10));
        assert_eq!((batch.messages.len(), waiting.len()), (1, 1));
    }
}
