//! What the preset of a batch API gives a policy, and what it does not allow.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::check::Faults;
use super::{Policy, Way};
use crate::limits::{BATCH_MEMBERS_DEFAULT, SENT_BYTES_MAX};
use crate::mapping::Preset;

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Policy {
    /// Reads a policy. What its batch API's preset says of sizes stands in it from then on: a policy that is stored does not change
    /// with the presets.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer).map(Self::filled)
    }
}

impl Policy {
    fn filled(mut self) -> Self {
        let sizes = self.batch_api.sizes();
        self.max_batch = self.max_batch.or(sizes.max_batch).or(Some(BATCH_MEMBERS_DEFAULT));
        self.max_batch_bytes = self.max_batch_bytes.or(sizes.max_batch_bytes);
        self.weight = self.weight.or(sizes.weight);
        if self.max_weight.is_none() {
            self.max_weight = sizes.max_weight.filter(|_| self.weight.is_some());
        }
        self
    }

    /// What the batch API's own limits do not allow, and what its mapping asks of the policy.
    pub(super) fn check_preset(&self, faults: &mut Faults) {
        if self.batch_api.needs_distinct() && self.distinct.is_none() {
            let problem = "is missing: with `match: echo`, members of a batch are distinguished by what was sent, so a key of the content \
                           is needed";
            faults.add("distinct", problem);
        }
        if let (Way::Sqs(_), Some(bytes)) =
            (&self.batch_api.way, self.max_batch_bytes.filter(|bytes| *bytes > SENT_BYTES_MAX))
        {
            faults.add("max_batch_bytes", format!("is {bytes}, a message has at most {SENT_BYTES_MAX} bytes"));
        }
        let Some((name, Preset { limits, docs, .. })) = self.batch_api.preset.as_deref().zip(self.batch_api.preset())
        else {
            return;
        };
        let docs = docs.first().map(String::as_str).unwrap_or_default();
        let mut above = |field: &str, value: String, most: String| {
            faults.add(field, format!("is {value}, `{name}` allows at most {most} ({docs})"));
        };
        if let Some(most) = limits.max_batch.filter(|most| self.max_batch() > *most) {
            above("max_batch", self.max_batch().to_string(), most.to_string());
        }
        if let Some((bytes, most)) =
            self.max_batch_bytes.zip(limits.max_batch_bytes).filter(|(bytes, most)| bytes > most)
        {
            above("max_batch_bytes", bytes.to_string(), most.to_string());
        }
        if let Some((weight, most)) = self.max_weight.zip(limits.max_weight).filter(|(weight, most)| weight > most) {
            above("max_weight", weight.to_string(), most.to_string());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(batch_api: Value, changes: Value) -> Policy {
        let mut value = json!({"kind": "row", "target": "kind", "batch_api": batch_api});
        value.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    fn sqs() -> Value {
        json!({"use": "sqs", "url": "https://sqs.eu-west-1.amazonaws.com/", "with": {"queue_url": "q"}})
    }

    fn faults(policy: &Policy) -> Vec<String> {
        policy.check().err().map(|error| error.to_string().split("; ").map(str::to_owned).collect()).unwrap_or_default()
    }

    #[test]
    fn sizes_of_a_preset_are_defaults_and_maxima() {
        let given = policy(sqs(), json!({}));
        assert_eq!((given.max_batch(), given.max_batch_bytes, faults(&given)), (10, Some(900_000), Vec::new()));
        let larger = faults(&policy(sqs(), json!({"max_batch": 11, "max_batch_bytes": 2_000_000})));
        let docs = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html";
        assert_eq!(
            larger,
            [
                format!("`max_batch`: is 11, `sqs` allows at most 10 ({docs})"),
                format!("`max_batch_bytes`: is 2000000, `sqs` allows at most 1048576 ({docs})"),
            ]
        );
        let embeddings = policy(json!({"use": "openai-embeddings"}), json!({}));
        assert_eq!(embeddings.max_weight.unwrap().to_string(), "300000");
        assert_eq!((embeddings.weight.as_deref(), embeddings.max_batch()), (Some("size(content.input) + 1"), 50));
        let less = policy(json!({"use": "openai-embeddings"}), json!({"max_weight": 1_000}));
        assert_eq!((less.weight.as_deref(), faults(&less)), (Some("size(content.input) + 1"), Vec::new()));
        let own =
            policy(json!({"use": "openai-embeddings"}), json!({"weight": "content.tokens", "max_weight": 300_001}));
        assert!(faults(&own)[0].starts_with("`max_weight`: is 300001, `openai-embeddings` allows at most 300000"));
        assert_eq!(policy(json!({"command": ["x"]}), json!({})).max_batch(), 100);
    }

    #[test]
    fn a_policy_with_a_preset_is_stored_whole() {
        let given = policy(sqs(), json!({}));
        let stored = serde_json::to_value(&given).unwrap();
        assert_eq!(
            (&stored["max_batch"], &stored["batch_api"]["request"]["sign"]),
            (&json!(10), &json!({"aws": "sqs"}))
        );
        assert_eq!(serde_json::from_value::<Policy>(stored).unwrap(), given);
    }

    #[test]
    fn what_is_matched_by_value_is_told_apart() {
        let dynamodb =
            json!({"use": "dynamodb", "url": "https://dynamodb.eu-west-1.amazonaws.com/", "with": {"table": "t"}});
        assert!(faults(&policy(dynamodb.clone(), json!({})))[0].starts_with("`distinct`: is missing"));
        assert_eq!(faults(&policy(dynamodb, json!({"distinct": "content.id.S"}))), Vec::<String>::new());
    }
}
