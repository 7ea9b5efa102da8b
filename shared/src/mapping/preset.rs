//! Presets: mappings of well-known batch APIs. Each is a file beside this one, with the addresses of the documentation that it is from.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{RequestMapping, ResponseMapping};
use crate::policy::Weight;

/// A mapping of a well-known batch API.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// What is called, and what a content is.
    pub about: String,
    /// The addresses of the API's documentation.
    pub docs: Vec<String>,
    /// The form of its URL, if that depends on the user.
    #[serde(default)]
    pub url: Option<String>,
    /// Its URL, if that is the same for all.
    #[serde(default)]
    pub default_url: Option<String>,
    /// The constants that it needs.
    pub with: std::collections::BTreeMap<String, Constant>,
    /// Sizes of batches unless the policy says otherwise.
    pub defaults: Sizes,
    /// The API's own limits: defaults, too, and no policy may exceed them.
    pub limits: Sizes,
    /// How a call becomes a request.
    pub request: RequestMapping,
    /// How an answer is read.
    pub response: ResponseMapping,
}

/// A constant that a preset needs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// What it is.
    pub about: String,
    /// Its value, if it need not be given.
    #[serde(default)]
    pub default: Option<Value>,
}

/// Sizes of batches.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Members.
    #[serde(default)]
    pub max_batch: Option<u32>,
    /// Bytes of a request.
    #[serde(default)]
    pub max_batch_bytes: Option<u32>,
    /// The weight of a member, as an expression.
    #[serde(default)]
    pub weight: Option<String>,
    /// Weight.
    #[serde(default)]
    pub max_weight: Option<Weight>,
}

/// The presets and their files.
const FILES: [(&str, &str); 12] = [
    ("algolia", include_str!("presets/algolia.json")),
    ("bigquery", include_str!("presets/bigquery.json")),
    ("dynamodb", include_str!("presets/dynamodb.json")),
    ("elasticsearch", include_str!("presets/elasticsearch.json")),
    ("eventbridge", include_str!("presets/eventbridge.json")),
    ("hubspot", include_str!("presets/hubspot.json")),
    ("kinesis", include_str!("presets/kinesis.json")),
    ("openai-embeddings", include_str!("presets/openai-embeddings.json")),
    ("resend", include_str!("presets/resend.json")),
    ("salesforce", include_str!("presets/salesforce.json")),
    ("ses", include_str!("presets/ses.json")),
    ("sqs", include_str!("presets/sqs.json")),
];

/// The names of all presets.
#[must_use]
pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

impl Preset {
    /// The preset of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
        // A test reads all of them.
        serde_json::from_str(text).ok()
    }

    /// The constants that are given, and the others' defaults.
    #[must_use]
    pub fn constants(&self, given: Map<String, Value>) -> Map<String, Value> {
        let default = |(name, constant): (&String, &Constant)| Some((name.clone(), constant.default.clone()?));
        let mut constants: Map<String, Value> = self.with.iter().filter_map(default).collect();
        constants.extend(given);
        constants
    }

    /// Its size of a batch, unless the policy says otherwise.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let (defaults, limits) = (self.defaults.clone(), self.limits.clone());
        Sizes {
            max_batch: defaults.max_batch.or(limits.max_batch),
            max_batch_bytes: defaults.max_batch_bytes.or(limits.max_batch_bytes),
            weight: defaults.weight,
            max_weight: defaults.max_weight.or(limits.max_weight),
        }
    }
}
