//! Fields that need not be written.

/// Whether a field has the value that it has when it is absent; for `#[serde(default, skip_serializing_if)]`.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
