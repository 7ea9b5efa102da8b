//! Where a reader of the table of batches stands.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::ids::parse_uuid;

/// The record that a reader of the table has read last: a batch (`<batch>`), or results of one (`<batch>:<attempt>:<slot>`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordCursor(String);

impl From<Uuid> for RecordCursor {
    fn from(batch: Uuid) -> Self {
        Self(batch.to_string())
    }
}

impl fmt::Display for RecordCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RecordCursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (batch, results) = text.split_once(':').map_or((text, None), |(batch, results)| (batch, Some(results)));
        parse_uuid(batch, "a batch").map_err(|error| error.to_string())?;
        let digits =
            |part: &str, most| (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let known = results.is_none_or(|results| {
            results.split_once(':').is_some_and(|(attempt, slot)| digits(attempt, 10) && digits(slot, 5))
        });
        if known { Ok(Self(text.to_owned())) } else { Err(format!("`{text}` is not a record of results")) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_batch_or_results_of_one() {
        let batch = Uuid::from_u128(7);
        for right in [batch.to_string(), format!("{batch}:1:0"), format!("{batch}:4294967295:65535")] {
            assert_eq!(right.parse::<RecordCursor>().unwrap().to_string(), right);
        }
        for wrong in ["", "7", ":1:0"]
            .map(str::to_owned)
            .into_iter()
            .chain(["", ":", "1", "1:", "x:1", "1:1:1", "-1:0", "1:000000"].map(|results| format!("{batch}:{results}")))
        {
            assert!(wrong.parse::<RecordCursor>().is_err(), "{wrong}");
        }
    }
}
