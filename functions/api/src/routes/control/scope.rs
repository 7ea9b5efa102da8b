//! A scope, as requests name it.

use fanfold::control::Scope;
use fanfold::lane::Lane;
#[cfg(feature = "openapi")]
use fanfold::limits::PARTITIONS_MAX as MOST;
use fanfold::limits::{PARTITIONS_MAX, TARGET_BYTES_MAX};
use fanfold::policy::{FieldError, bad_kind};
use fanfold_http::{Code, Problem};
use serde::{Deserialize, Deserializer};

/// Everything (`all`), a kind, a target with all its partitions, or one partition of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(
    rename = "ScopeRequest",
    extend("oneOf" = [{"required": ["all"]}, {"required": ["kind"]}]),
    extend("dependentRequired" = {"target": ["kind"], "partition": ["target"]}),
))]
#[serde(deny_unknown_fields)]
pub(crate) struct ScopeBody {
    /// True for everything.
    #[cfg_attr(feature = "openapi", schemars(with = "bool", extend("const" = true)))]
    #[serde(default, deserialize_with = "given")]
    pub(crate) all: Option<bool>,
    /// A kind.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "fanfold::openapi::kind_field"))]
    #[serde(default, deserialize_with = "given")]
    pub(crate) kind: Option<String>,
    /// A target of the kind.
    #[cfg_attr(feature = "openapi", schemars(with = "String", length(max = TARGET_BYTES_MAX), extend("x-max-bytes" = TARGET_BYTES_MAX)))]
    #[serde(default, deserialize_with = "given")]
    pub(crate) target: Option<String>,
    /// A partition of the target, from 0.
    #[cfg_attr(feature = "openapi", schemars(with = "u32", range(min = 0, max = MOST - 1)))]
    #[serde(default, deserialize_with = "given_number")]
    pub(crate) partition: Option<u32>,
}

/// A field that names a part of a scope and is `null` may have been meant to name one: it is not taken for one that is left out.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn given_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    fanfold::whole::u32(deserializer).map(Some)
}

impl ScopeBody {
    /// The scope that the body names.
    ///
    /// # Errors
    /// It names none, or a field cannot be used.
    pub(crate) fn scope(self) -> Result<Scope, Problem> {
        let mut errors = Vec::new();
        let mut wrong = |field: &str, problem: String| errors.push(FieldError { field: field.to_owned(), problem });
        match (&self.all, &self.kind) {
            (Some(true), None) | (None, Some(_)) => {}
            (Some(false), _) => wrong("all", "is false, true is allowed".to_owned()),
            (Some(true), Some(_)) => {
                wrong("kind", "is given together with `all`, only one of the two is allowed".to_owned())
            }
            (None, None) => wrong("kind", "is missing, and so is `all`: one of the two is needed".to_owned()),
        }
        if let Some(problem) = self.kind.as_deref().and_then(bad_kind) {
            wrong("kind", problem);
        }
        if let Some(target) = &self.target {
            if self.kind.is_none() {
                wrong("target", "is given without `kind`, which it needs".to_owned());
            }
            if target.len() > TARGET_BYTES_MAX {
                wrong("target", format!("has {} bytes, at most {TARGET_BYTES_MAX} are allowed", target.len()));
            }
        }
        if let Some(partition) = self.partition {
            if self.target.is_none() {
                wrong("partition", "is given without `target`, which it needs".to_owned());
            }
            if partition >= PARTITIONS_MAX {
                wrong("partition", format!("is {partition}, 0 to {} is allowed", PARTITIONS_MAX - 1));
            }
        }
        if !errors.is_empty() {
            return Err(Problem::fields(Code::InvalidScope, errors));
        }
        Ok(match (self.kind, self.target, self.partition) {
            (None, ..) => Scope::All,
            (Some(kind), None, _) => Scope::Kind(kind),
            (Some(kind), Some(target), None) => Scope::Target { kind, target },
            (Some(kind), Some(target), Some(partition)) => Scope::Lane(Lane { kind, partition, target }),
        })
    }

    /// The same where only a kind or a part of it is allowed.
    ///
    /// # Errors
    /// It names everything, or none, or a field cannot be used.
    pub(crate) fn scope_of_kind(self) -> Result<Scope, Problem> {
        match self.scope()? {
            Scope::All => {
                let problem = "is not allowed here, a `kind` is needed".to_owned();
                Err(Problem::fields(Code::InvalidScope, vec![FieldError { field: "all".to_owned(), problem }]))
            }
            scope => Ok(scope),
        }
    }
}
