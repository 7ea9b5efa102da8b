//! CEL's `matches`, over a small engine: the one that the crate `cel` would bring makes up a tenth of a function's size.

use cel::common::types::{CelBool, CelString};
use cel::{DeclarationError, Env, ExecutionError};
use regex_lite::Regex;

/// Adds `text.matches(pattern)` and `matches(text, pattern)`.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>, id = "matches")?;
    cel::add_member_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>)
}

fn matches(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let regex = Regex::new(pattern.inner()).map_err(|error| {
        ExecutionError::function_error("matches", format!("`{}` is not a pattern: {error}", pattern.inner()))
    })?;
    Ok(CelBool::from(regex.is_match(text.inner())))
}
