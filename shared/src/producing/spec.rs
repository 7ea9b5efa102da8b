//! A fan-out's producer: where its rows come from, in how many partitions, and which rows are tolerated.

use serde::{Deserialize, Serialize};

use super::Source;
#[cfg(feature = "openapi")]
use crate::limits::EXPRESSION_BYTES_MAX;
use crate::limits::PRODUCER_PARTITIONS_MAX;
use crate::policy::{Expression, FieldError, PolicyError};
use crate::store::fanouts::Tolerance;

/// A source of a fan-out's tasks, read page by page in disjoint partitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Producer {
    /// Where the rows come from.
    pub source: Source,
    /// How many partitions are read in parallel. Each row belongs to one of them. The number is fixed for the fan-out's life.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = PRODUCER_PARTITIONS_MAX)))]
    #[serde(default = "one", deserialize_with = "crate::whole::u32")]
    pub partitions: u32,
    /// CEL expression over `kind` and `content` that decides the partition of a row. By default the `key` of its kind's policy.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How many rows of a partition may be unacceptable: a number, or a percentage of its rows as text such as `1%`. They are left out and
    /// counted, and the first are shown. By default none.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::tolerance"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerated_bad_rows: Option<Tolerance>,
}

fn one() -> u32 {
    1
}

impl Producer {
    /// Names what is wrong with it.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn check(&self) -> Result<(), PolicyError> {
        let mut errors = Vec::new();
        let mut add = |field: &str, problem: String| {
            errors.push(FieldError { field: format!("producer.{field}"), problem });
        };
        if !(1..=PRODUCER_PARTITIONS_MAX).contains(&self.partitions) {
            add("partitions", format!("is {}, 1 to {PRODUCER_PARTITIONS_MAX} is allowed", self.partitions));
        }
        if let Some(Err(error)) = self.key.as_deref().map(Expression::compile) {
            add("key", error.to_string());
        }
        if self.key.is_some() && self.source.gives_own_rows() {
            let problem = "is not allowed: rows of an object belong to partitions by their place in it, not by a key";
            add("key", problem.to_owned());
        }
        self.source.check("producer.source", &mut errors);
        if errors.is_empty() { Ok(()) } else { Err(PolicyError(errors)) }
    }

    /// The field that a request may not have. `local`: files and programs of this machine may be named, as on a local stack that
    /// others cannot reach.
    #[must_use]
    pub fn refused(&self, local: bool) -> Option<FieldError> {
        let (field, why) = self.source.refused(local)?;
        let problem = format!("{why}; `url`, `lambda` and `s3` are allowed here");
        Some(FieldError { field: format!("producer.source.{field}"), problem })
    }

    /// Whether a page must be written down before it is used, because it might be another one when it is read again. Not if the
    /// source gives the same rows for the same cursor, they are all this partition's, and none may be left out: then a page is all
    /// of its rows, or an error before its items are added. All of that is fixed with the fan-out. Which rows are bad, or whose a
    /// key's share is, depends on policies, which may change between two reads, so nothing of a page that is not kept may follow
    /// from it.
    #[must_use]
    pub fn keeps_pages(&self) -> bool {
        !(self.source.is_fixed() && self.source.gives_own_rows() && self.tolerated_bad_rows.is_none())
    }

    /// Whether the keys of policies decide which partition a row belongs to. They may change at any moment, but for one fan-out rows
    /// must be shared out in one way.
    #[must_use]
    pub fn shares_by_policies(&self) -> bool {
        self.partitions > 1 && self.key.is_none() && !self.source.gives_own_rows()
    }

    /// Whether `bad` of `rows` rows are more than tolerated. A share is judged once there are enough rows; `last`: no more
    /// come.
    #[must_use]
    pub fn too_many_bad(&self, bad: u64, rows: u64, last: bool) -> bool {
        match self.tolerated_bad_rows {
            None => bad > 0,
            Some(Tolerance::Percentage(_)) if !last && rows < crate::limits::BAD_PERCENTAGE_FROM => false,
            Some(tolerance) => tolerance.exceeded(bad, rows),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json::shape;

    fn producer(changes: &Value) -> Producer {
        let mut producer = json!({"source": {"url": "https://example.com/rows"}, "partitions": 4});
        for (field, value) in changes.as_object().unwrap() {
            producer[field] = value.clone();
        }
        shape(producer).unwrap()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        assert_eq!(producer(&json!({})).check(), Ok(()));
        assert_eq!(producer(&json!({"partitions": PRODUCER_PARTITIONS_MAX, "key": "content.id"})).check(), Ok(()));
        for (changes, field) in [
            (json!({"partitions": 0}), "producer.partitions"),
            (json!({"partitions": PRODUCER_PARTITIONS_MAX + 1}), "producer.partitions"),
            (json!({"key": "content."}), "producer.key"),
            (json!({"source": {"url": "http://example.com/"}}), "producer.source.url"),
            (json!({"source": {"lambda": "no function"}}), "producer.source.lambda"),
            (json!({"source": {"s3": {"bucket": "rows", "key": "a.ndjson"}}, "key": "content.id"}), "producer.key"),
        ] {
            let PolicyError(errors) = producer(&changes).check().unwrap_err();
            assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), [field]);
        }
        for changes in [
            json!({"source": {}}),
            json!({"source": {"file": "x"}}),
            json!({"source": {"queue": "x"}}),
            json!({"rows": 1}),
        ] {
            let mut value = json!({"source": {"url": "https://example.com/"}});
            value.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            assert!(shape::<Producer>(value).is_err(), "{changes}");
        }
    }

    #[test]
    fn a_page_is_kept_unless_it_can_be_only_one() {
        let s3 = json!({"source": {"s3": {"bucket": "rows", "key": "a.ndjson"}}});
        for (changes, kept) in [
            (json!({}), true),
            (json!({"source": {"lambda": "rows"}}), true),
            (json!({"source": {"command": ["./rows"]}}), true),
            (s3.clone(), false),
            (json!({"source": {"file": {"path": "a.ndjson"}}}), false),
            (json!({"source": {"reissue": {"fanout": uuid::Uuid::nil()}}}), true),
            (json!({"source": s3["source"], "tolerated_bad_rows": 1}), true),
            (json!({"source": s3["source"], "tolerated_bad_rows": 0}), true),
        ] {
            assert_eq!(producer(&changes).keeps_pages(), kept, "{changes}");
        }
    }

    #[test]
    fn what_only_this_machine_has_is_refused_elsewhere() {
        let rows = json!({"rows": {"kind": "mail", "fingerprint": uuid::Uuid::nil(), "page_rows": 2, "page_bytes": 3}});
        for (source, local, field) in [
            (json!({"file": {"path": "a.ndjson"}}), false, Some("producer.source.file")),
            (json!({"command": ["./rows"]}), false, Some("producer.source.command")),
            (json!({"command": ["./rows"]}), true, None),
            (rows.clone(), false, Some("producer.source.rows")),
            (rows, true, Some("producer.source.rows")),
            (json!({"reissue": {"fanout": uuid::Uuid::nil()}}), true, Some("producer.source.reissue")),
            (json!({"lambda": "rows"}), false, None),
        ] {
            let refused = producer(&json!({"source": source})).refused(local);
            assert_eq!(refused.map(|error| error.field).as_deref(), field, "{source}");
        }
    }

    #[test]
    fn no_bad_row_is_tolerated_unless_it_is_said() {
        let none = producer(&json!({}));
        assert!(none.too_many_bad(1, 1_000_000, false) && !none.too_many_bad(0, 1, true));
        let two = producer(&json!({"tolerated_bad_rows": 2}));
        assert!(two.too_many_bad(3, 1_000_000, false) && !two.too_many_bad(2, 2, true));
        let share = producer(&json!({"tolerated_bad_rows": "1%"}));
        assert!(!share.too_many_bad(9, 10, false), "too few rows to judge by");
        assert!(share.too_many_bad(9, 10, true) && share.too_many_bad(11, 1_000, false));
        assert!(!share.too_many_bad(10, 1_000, false));
    }
}
