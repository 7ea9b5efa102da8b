//! When the fan-outs of a list were opened.

use fanfold::limits::LISTED_MILLIS_MAX;
use fanfold_http::QueryParameter;

/// `?opened_after=…`
pub(super) struct OpenedAfter;

/// `?opened_before=…`
pub(super) struct OpenedBefore;

/// The time, if it is written as numbers are.
fn time(text: &str) -> Option<u64> {
    text.parse().ok().filter(|at: &u64| *at <= LISTED_MILLIS_MAX && at.to_string() == text)
}

fn allowed() -> String {
    format!("milliseconds since 1970, at most {LISTED_MILLIS_MAX},")
}

#[cfg(feature = "openapi")]
fn schema() -> serde_json::Value {
    serde_json::json!({"type": "integer", "minimum": 0, "maximum": LISTED_MILLIS_MAX})
}

macro_rules! time_parameter {
    ($parameter:ident, $name:literal, $about:literal) => {
        impl QueryParameter for $parameter {
            const NAME: &str = $name;
            const ABOUT: &str = $about;
            type Value = u64;

            fn read(text: &str) -> Option<u64> {
                time(text)
            }

            fn allowed() -> String {
                allowed()
            }

            #[cfg(feature = "openapi")]
            fn schema() -> serde_json::Value {
                schema()
            }
        }
    };
}

time_parameter!(OpenedAfter, "opened_after", "Only fan-outs opened later than this, in milliseconds since 1970.");
time_parameter!(OpenedBefore, "opened_before", "Only fan-outs opened earlier than this, in milliseconds since 1970.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_form() {
        assert_eq!((OpenedAfter::read("0"), OpenedBefore::read("17")), (Some(0), Some(17)));
        for text in ["", "01", "+1", "-1", "1.0", "10000000000000"] {
            assert_eq!(OpenedAfter::read(text), None, "{text}");
        }
    }
}
