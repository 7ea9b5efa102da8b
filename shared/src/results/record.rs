//! One record of results, as it is stored.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::{Kept, RecordName};
use crate::limits::RESULTS_PER_RECORD_BYTES_MAX;

/// Bytes before each text.
const ENTRY_BYTES: usize = 7;

/// The sort of an entry that holds a note in place of its result.
const LEFT_OUT: u8 = 1;

/// Bytes are no packed results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not packed results (at byte {0})")]
pub struct ResultsError(pub(super) usize);

/// A record of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRecord {
    /// Its name.
    pub name: RecordName,
    /// Slots in order, and what is known of their results.
    pub results: Vec<(u16, Kept)>,
}

impl ResultRecord {
    /// A record of these results, if there are any.
    #[must_use]
    pub fn new(attempt: u32, results: Vec<(u16, Kept)>) -> Option<Self> {
        let (first, last) = (results.first()?.0, results.last()?.0);
        Some(Self { name: RecordName { first, last, attempt }, results })
    }

    /// The results packed and compressed.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        for (slot, kept) in &self.results {
            let text = kept.text().as_bytes();
            let sort = if matches!(kept, Kept::LeftOut(_)) { LEFT_OUT } else { 0 };
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            // Writing to memory does not fail.
            let _ = encoder.write_all(&slot.to_be_bytes());
            let _ = encoder.write_all(&[sort]);
            let _ = encoder.write_all(&length.to_be_bytes());
            let _ = encoder.write_all(text);
        }
        encoder.finish().unwrap_or_default()
    }
}

/// The results in a packed record.
///
/// # Errors
/// The bytes are not one.
pub fn unpack(packed: &[u8]) -> Result<Vec<(u16, Kept)>, ResultsError> {
    let mut bytes = Vec::new();
    // Beside the texts each of 65,536 slots may have its head.
    let most = (RESULTS_PER_RECORD_BYTES_MAX + ENTRY_BYTES * (usize::from(u16::MAX) + 1)) as u64;
    DeflateDecoder::new(packed).take(most).read_to_end(&mut bytes).map_err(|_| ResultsError(0))?;
    let mut results = Vec::new();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let [slot_high, slot_low, sort, length @ ..] = rest.get(..ENTRY_BYTES).ok_or(ResultsError(at))? else {
            return Err(ResultsError(at));
        };
        let length = length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
        let text = rest.get(ENTRY_BYTES..ENTRY_BYTES.saturating_add(length)).ok_or(ResultsError(at))?;
        let text = String::from_utf8(text.to_vec()).map_err(|_| ResultsError(at))?;
        let kept = if *sort == LEFT_OUT { Kept::LeftOut(text) } else { Kept::Result(text) };
        results.push((u16::from_be_bytes([*slot_high, *slot_low]), kept));
        rest = rest.get(ENTRY_BYTES + length..).unwrap_or_default();
    }
    Ok(results)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_and_compressed() {
        let kept = |slot: u16| (slot, Kept::Result(format!("{{\"label\":\"https://labels.example.com/{slot}\"}}")));
        let mut results: Vec<(u16, Kept)> = (0..1_000).map(kept).collect();
        results.push((9_999, Kept::LeftOut("too large".to_owned())));
        let record = ResultRecord::new(7, results.clone()).unwrap();
        let packed = record.pack();
        assert_eq!(unpack(&packed).unwrap(), results);
        assert!(packed.len() < 10_000, "{} bytes", packed.len());
        assert_eq!(record.name, RecordName { first: 0, last: 9_999, attempt: 7 });
        assert_eq!(ResultRecord::new(7, Vec::new()), None);
    }
}
