//! Queues of a template.

use super::TemplateError;
use super::field::Field;
use crate::engine::place;

/// An SQS queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueResource {
    /// Its logical id, and its name in the embedded SQS.
    pub name: String,
    /// Seconds a received message stays invisible.
    pub visibility_timeout: u32,
    /// Seconds every message is delayed if it sets no delay of its own.
    pub delay: u32,
    /// Where messages go that were received too often.
    pub redrive: Option<Redrive>,
}

/// The dead-letter rule of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redrive {
    /// Logical id of the dead-letter queue.
    pub queue: String,
    /// How often a message is received before it goes there.
    pub max_receive_count: u32,
}

impl QueueResource {
    /// Its URL in the embedded SQS.
    pub fn url(&self) -> String {
        place::queue_url(&self.name)
    }

    pub(super) fn read(name: &str, properties: &Field<'_>) -> Result<Self, TemplateError> {
        if let Some(fifo) = properties.get("FifoQueue")?
            && fifo.boolean()?
        {
            return Err(fifo.wrong("the local runner does not know FIFO queues"));
        }
        let number = |name, range, default| match properties.get(name)? {
            Some(field) => field.number(range),
            None => Ok(default),
        };
        Ok(Self {
            name: name.to_owned(),
            visibility_timeout: number("VisibilityTimeout", 0..=43_200, 30)?,
            delay: number("DelaySeconds", 0..=900, 0)?,
            redrive: properties.get("RedrivePolicy")?.as_ref().map(Redrive::read).transpose()?,
        })
    }
}

impl Redrive {
    fn read(policy: &Field<'_>) -> Result<Self, TemplateError> {
        Ok(Self {
            queue: queue_of(&policy.require("deadLetterTargetArn")?)?,
            max_receive_count: policy.require("maxReceiveCount")?.number(1..=1000)?,
        })
    }
}

/// The logical id of the queue an ARN names.
pub(super) fn queue_of(arn: &Field<'_>) -> Result<String, TemplateError> {
    let text = arn.text()?;
    let name = text.rsplit(':').next().unwrap_or_default();
    if place::queue_arn(name) == text {
        return Ok(name.to_owned());
    }
    Err(arn.wrong("must be the ARN of a queue of this template"))
}
