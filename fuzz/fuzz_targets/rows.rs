//! Rows of objects: whatever comes, partitions that each read a part of it take the rows that one reader of the whole takes.
#![no_main]

use fanfold::producing::Position;
use fanfold_rows::csv::Columns;
use fanfold_rows::{Form, Limits, Part, PartError, split};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const LIMITS: Limits = Limits { rows: 3, bytes: 50, beside: 1 };

type Row = (u64, Result<Value, String>);

/// The rows of one partition, which sees the rest of the object at once.
fn rows(text: &[u8], form: &Form, from: usize, (number, of): (u32, u32)) -> Result<Vec<Row>, PartError> {
    let (start, end) = split(text.len() as u64, number, of);
    let start = usize::try_from(start).expect("it is within the text");
    let mut within = start > from;
    let (mut next, mut rows) = (Some(start.max(from)), Vec::new());
    while let Some(at) = next {
        let first = at - usize::from(within);
        let part =
            Part { bytes: &text[first..], at: first as u64, line: None, within, last: true, end, divided: of > 1 };
        let taken = part.take(form, LIMITS)?;
        rows.extend(taken.rows.into_iter().map(|(Position { byte, .. }, row)| (byte, row)));
        within = false;
        next = taken.next.map(|(at, _)| usize::try_from(at).expect("it is within the text"));
        assert!(next.is_none_or(|next| next > at || rows.is_empty()), "it goes on");
    }
    Ok(rows)
}

fn compare(text: &[u8], form: &Form, from: usize) {
    let whole = rows(text, form, from, (0, 1)).expect("the whole ends with its text");
    assert!(whole.windows(2).all(|two| two[0].0 < two[1].0), "in order, and none twice");
    for of in [2, 3, 7] {
        let parts: Result<Vec<Vec<Row>>, PartError> =
            (0..of).map(|number| rows(text, form, from, (number, of))).collect();
        match parts {
            Ok(parts) => assert_eq!(parts.concat(), whole, "in {of} parts"),
            Err(error) => assert!(matches!(error, PartError::SeveralLines(_)), "{error}"),
        }
    }
}

fuzz_target!(|text: &[u8]| {
    compare(text, &Form::Ndjson, 0);
    if let Ok((columns, begin)) = Columns::read(text, true) {
        compare(text, &Form::Csv(columns), begin);
    }
});
