//! What batch APIs returned for members that succeeded: cut into records, which a list in the batch's record names.
//!
//! Each attempt writes records of its own, named by its number. Of two workers with one batch no two have attempts of one number
//! that both make calls, so a record is never written over with something else; and it counts only once the batch's list names it.
//!
//! The packed list is the bytes of all results (u32), then a run of `attempt (u32) first slot (u16) last slot (u16)`; a record is a
//! run of `slot (u16) sort (u8) length (u32)` and the text, compressed. All numbers are big-endian.

mod record;

use crate::limits::{
    RESULT_BYTES_MAX, RESULT_DEPTH_MAX, RESULT_RECORDS_MAX, RESULTS_PER_BATCH_BYTES_MAX, RESULTS_PER_RECORD_BYTES_MAX,
};

pub use self::record::{ResultRecord, ResultsError, unpack};

/// Bytes before the records in a packed list.
const HEAD_BYTES: usize = 4;

/// Bytes of a record's name in a packed list.
const NAME_BYTES: usize = 8;

/// What is known of the result of a member that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The result, as JSON.
    Result(String),
    /// It was too large; the text says what is allowed.
    LeftOut(String),
}

/// Names a record of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordName {
    /// The slot of its first result.
    pub first: u16,
    /// The slot of its last one.
    pub last: u16,
    /// The attempt that it is of.
    pub attempt: u32,
}

impl RecordName {
    fn covers(self, slot: usize) -> bool {
        (usize::from(self.first)..=usize::from(self.last)).contains(&slot)
    }
}

/// The records that hold a batch's results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultList {
    bytes: usize,
    records: Vec<RecordName>,
}

impl ResultList {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether it takes no more records: results may be missing.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.records.len() >= RESULT_RECORDS_MAX
    }

    /// All records.
    pub fn records(&self) -> impl Iterator<Item = RecordName> + '_ {
        self.records.iter().copied()
    }

    /// The records that may hold the result of a slot.
    pub fn records_of(&self, slot: usize) -> impl Iterator<Item = RecordName> + '_ {
        self.records().filter(move |record| record.covers(slot))
    }

    /// The list with what an attempt brought, and the records that are to be written before it. Too large a result is left out,
    /// with a note in its place.
    #[must_use]
    pub fn with(&self, attempt: u32, mut results: Vec<(usize, String)>) -> (Self, Vec<ResultRecord>) {
        results.sort_by_key(|(slot, _)| *slot);
        let mut list = self.clone();
        let mut records: Vec<(usize, Vec<(u16, Kept)>)> = Vec::new();
        for (slot, json) in results {
            let Ok(slot) = u16::try_from(slot) else { continue };
            let kept = list.keep(json);
            let bytes = kept.text().len();
            match records.last_mut() {
                Some((so_far, record)) if *so_far + bytes <= RESULTS_PER_RECORD_BYTES_MAX => {
                    *so_far += bytes;
                    record.push((slot, kept));
                }
                _ => records.push((bytes, vec![(slot, kept)])),
            }
        }
        let room = RESULT_RECORDS_MAX.saturating_sub(list.records.len());
        let records: Vec<ResultRecord> =
            records.into_iter().take(room).filter_map(|(_, results)| ResultRecord::new(attempt, results)).collect();
        list.records.extend(records.iter().map(|record| record.name));
        (list, records)
    }

    /// What is kept of a result.
    fn keep(&mut self, json: String) -> Kept {
        let bytes = json.len();
        let advice = "return less, such as where it is stored";
        if bytes > RESULT_BYTES_MAX {
            let problem =
                format!("the result has {bytes} bytes as JSON, at most {RESULT_BYTES_MAX} are kept: {advice}");
            return Kept::LeftOut(problem);
        }
        if depth(&json) > RESULT_DEPTH_MAX {
            let problem =
                format!("the result is nested deeper than the {RESULT_DEPTH_MAX} levels that are kept: {advice}");
            return Kept::LeftOut(problem);
        }
        if self.bytes + bytes > RESULTS_PER_BATCH_BYTES_MAX {
            return Kept::LeftOut(format!(
                "the results of its batch have more than {RESULTS_PER_BATCH_BYTES_MAX} bytes as JSON, which is as much as is \
                 kept: {advice}, or set a smaller `max_batch`"
            ));
        }
        self.bytes += bytes;
        Kept::Result(json)
    }

    /// The packed form.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let mut packed = u32::try_from(self.bytes).unwrap_or(u32::MAX).to_be_bytes().to_vec();
        for RecordName { first, last, attempt } in &self.records {
            packed.extend_from_slice(&attempt.to_be_bytes());
            packed.extend_from_slice(&first.to_be_bytes());
            packed.extend_from_slice(&last.to_be_bytes());
        }
        packed
    }

    /// Reads the packed form; no bytes are an empty list.
    ///
    /// # Errors
    /// The bytes are not one.
    pub fn unpack(packed: &[u8]) -> Result<Self, ResultsError> {
        let Some((head, names)) = packed.split_at_checked(HEAD_BYTES) else {
            return if packed.is_empty() { Ok(Self::default()) } else { Err(ResultsError(0)) };
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        let small = |bytes: &[u8]| u16::try_from(number(bytes)).unwrap_or(u16::MAX);
        let name = |(at, bytes): (usize, &[u8])| match bytes.len() {
            NAME_BYTES => {
                Ok(RecordName { attempt: number(&bytes[..4]), first: small(&bytes[4..6]), last: small(&bytes[6..]) })
            }
            _ => Err(ResultsError(HEAD_BYTES + at * NAME_BYTES)),
        };
        let records = names.chunks(NAME_BYTES).enumerate().map(name).collect::<Result<_, _>>()?;
        Ok(Self { bytes: number(head) as usize, records })
    }
}

/// How deep JSON is nested.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

impl Kept {
    /// The result or the note.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Result(text) | Self::LeftOut(text) => text,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(bytes: usize) -> String {
        format!("\"{}\"", "x".repeat(bytes - 2))
    }

    /// What a list and records say of a slot.
    fn found(list: &ResultList, records: &[ResultRecord], slot: usize) -> Vec<Kept> {
        let named: Vec<RecordName> = list.records_of(slot).collect();
        let records = records.iter().filter(|record| named.contains(&record.name));
        records
            .flat_map(|record| &record.results)
            .filter(|(at, _)| usize::from(*at) == slot)
            .map(|(_, kept)| kept.clone())
            .collect()
    }

    #[test]
    fn results_are_cut_into_records_that_fit_an_item() {
        let results = (0..10).map(|slot| (slot, of(100_000))).collect();
        let (list, records) = ResultList::default().with(1, results);
        assert_eq!(records.len(), 4, "three fit a record");
        assert!((0..10).all(|slot| found(&list, &records, slot) == [Kept::Result(of(100_000))]));
        let (list, records) = list.with(2, vec![(11, of(5)), (10, of(4))]);
        assert_eq!((records.len(), list.records().count()), (1, 5));
        assert_eq!(records[0].name, RecordName { attempt: 2, first: 10, last: 11 });
    }

    #[test]
    fn what_is_too_large_is_left_out_with_advice() {
        let results = vec![(0, of(RESULT_BYTES_MAX + 1)), (1, of(RESULT_BYTES_MAX)), (2, of(9))];
        let (list, records) = ResultList::default().with(1, results);
        let [Kept::LeftOut(note)] = &found(&list, &records, 0)[..] else { panic!("{records:?}") };
        assert_eq!(
            note,
            "the result has 262145 bytes as JSON, at most 262144 are kept: return less, such as where it is stored"
        );
        assert_eq!(found(&list, &records, 1), [Kept::Result(of(RESULT_BYTES_MAX))]);
        let many = (0..70).map(|slot| (slot, of(RESULT_BYTES_MAX))).collect();
        let (list, records) = ResultList::default().with(1, many);
        assert!(matches!(&found(&list, &records, 63)[..], [Kept::Result(_)]));
        let [Kept::LeftOut(note)] = &found(&list, &records, 64)[..] else { panic!("{list:?}") };
        assert!(note.contains("more than 16777216 bytes") && note.contains("`max_batch`"), "{note}");
        let (list, records) = list.with(2, vec![(70, of(9))]);
        assert!(matches!(&found(&list, &records, 70)[..], [Kept::LeftOut(_)]), "it counts what was kept before");
    }

    #[test]
    fn what_is_nested_too_deep_is_left_out() {
        for (json, levels) in
            [("7", 0), ("[]", 1), (r#"{"a": [{}], "b": []}"#, 3), (r#""[[\"[[""#, 0), (r#"["\\", []]"#, 2)]
        {
            assert_eq!(depth(json), levels, "{json}");
        }
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let results = vec![(0, deep(RESULT_DEPTH_MAX)), (1, deep(RESULT_DEPTH_MAX + 1))];
        let (list, records) = ResultList::default().with(1, results);
        assert_eq!(found(&list, &records, 0), [Kept::Result(deep(RESULT_DEPTH_MAX))]);
        assert!(matches!(&found(&list, &records, 1)[..], [Kept::LeftOut(note)] if note.contains("100 levels")));
    }

    #[test]
    fn a_list_takes_so_many_records_and_no_more() {
        let mut list = ResultList::default();
        for attempt in 0..u32::try_from(RESULT_RECORDS_MAX).unwrap() + 2 {
            list = list.with(attempt, vec![(1, of(3))]).0;
        }
        assert!(list.is_full() && list.records().count() == RESULT_RECORDS_MAX);
        assert!(list.pack().len() < 17 * 1_024);
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(list in any_results()) {
            prop_assert_eq!(ResultList::unpack(&list.pack()).unwrap(), list);
        }

        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = ResultList::unpack(&bytes);
            let _ = record::unpack(&bytes);
        }
    }

    pub(crate) fn any_results() -> impl Strategy<Value = ResultList> {
        let name = any::<(u32, u16, u16)>().prop_map(|(attempt, first, last)| RecordName { first, last, attempt });
        let names = prop::collection::vec(name, 1..9);
        (any::<u32>(), names).prop_map(|(bytes, records)| ResultList { bytes: bytes as usize, records })
    }
}
