//! What of a fan-out is reported.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::limits::PROGRESS_PERCENTAGES_MAX;
use crate::store::fanouts::ReportedEnd;

/// More than no items, and less than all.
const PERCENTAGE: &str = "^(00?\\.(0[1-9]|[1-9][0-9]?)|(0?[1-9]|[1-9][0-9])(\\.[0-9]{1,2})?)%$";

/// Ends of a fan-out that are reported.
pub(crate) fn ends(_: &mut SchemaGenerator) -> Schema {
    let names = ReportedEnd::ALL.map(ReportedEnd::as_str);
    json_schema!({"type": ["array", "null"], "items": {"type": "string", "enum": names}})
}

/// Percentages of a fan-out's items at which its progress is reported.
pub(crate) fn progress_percentages(_: &mut SchemaGenerator) -> Schema {
    let percentage = json_schema!({"type": "string", "pattern": PERCENTAGE, "examples": ["25%", "99.5%"]});
    json_schema!({"type": ["array", "null"], "maxItems": PROGRESS_PERCENTAGES_MAX, "items": percentage})
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use proptest::string::string_regex;
    use regex_lite::Regex;

    use super::*;
    use crate::store::fanouts::ProgressPercentage;

    proptest! {
        #[test]
        fn what_a_percentage_may_be_is_read(text in string_regex(&PERCENTAGE.replace(['^', '$'], "")).unwrap()) {
            let read = serde_json::from_value::<ProgressPercentage>(text.clone().into());
            prop_assert!(read.is_ok(), "{}", text);
        }

        #[test]
        fn what_is_read_may_be_a_percentage(text in "[0-9]{0,3}(\\.[0-9]{0,3})?%?") {
            let read = serde_json::from_value::<ProgressPercentage>(text.clone().into());
            prop_assert_eq!(Regex::new(PERCENTAGE).unwrap().is_match(&text), read.is_ok(), "{}", text);
        }
    }
}
