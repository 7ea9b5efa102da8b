//! Shared parts of Fanfold's HTTP routes: problem documents (RFC 9457), extractors that answer with them, and fallbacks.

mod after;
mod code;
mod error;
mod fallback;
mod json;
mod key;
#[cfg(feature = "openapi")]
pub mod openapi;
mod parameter;
mod path;
mod problem;
mod query_text;

pub use after::After;
pub use code::Code;
pub use fallback::with_fallbacks;
pub use json::{Json, JsonOrLines, Lines, WantsLines};
pub use key::IdempotencyKey;
pub use parameter::{Choice, Parameter, QueryParameter};
pub use path::{Kind, Path, PathSegment};
pub use problem::Problem;
pub use query_text::{decoded, encoded};
