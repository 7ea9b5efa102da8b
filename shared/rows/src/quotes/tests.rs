use csv::{QuoteStyle, ReaderBuilder, Terminator, WriterBuilder};
use proptest::prelude::*;

use super::*;

/// The rows of a text that is read in chunks.
fn rows(text: &[u8], delimiter: u8, chunk: usize) -> Vec<Ended> {
    let (mut quotes, mut ended) = (Quotes::new(delimiter), VecDeque::new());
    text.chunks(chunk).for_each(|bytes| quotes.read(bytes, &mut ended));
    ended.extend(quotes.finish());
    assert_eq!(quotes.finish(), None, "nothing is left");
    ended.into()
}

/// What is wrong with a text, with lines.
fn faults(text: &str, delimiter: u8) -> Vec<String> {
    let rows = rows(text.as_bytes(), delimiter, 1_000);
    rows.iter().filter_map(|row| row.fault).map(|fault| format!("{}: {fault}", fault.line)).collect()
}

#[test]
fn a_quote_that_is_not_closed_is_found_where_it_is_opened() {
    let not_closed = "3: field 2: a quote is opened and not closed";
    for text in
        ["id,note\n1,ok\n2,\"ok\n3,ok\n", "id,note\r\n1,ok\r\n2,\"ok\r\n3,ok", "a,b\n1,2\n3,\"", "a,b\n1,2\n3,\"\"\""]
    {
        assert_eq!(faults(text, b','), [not_closed], "{text}");
    }
    // The row begins with another line.
    assert_eq!(faults("\"a\nb\",\"c\n", b','), ["2: field 2: a quote is opened and not closed"]);
}

#[test]
fn text_behind_a_closing_quote_is_found() {
    let text_follows = "2: field 2: text follows the closing quote";
    for text in ["a;b\n1;\"a\"b\n2;c\n", "a;b\r\n1;\"a\" \r\n", "a;b\n1;\"\"a", "a;b\n1;\"a\"b;\"c\"d\n2;\"x\"\n"] {
        assert_eq!(faults(text, b';'), [text_follows], "{text}");
    }
    assert_eq!(faults("\u{feff}\"a\"b,c\r1,2\r", b','), ["1: field 1: text follows the closing quote"]);
    // Two stray quotes of a middle column, and what is between them.
    let merged = |rows: usize| format!("a,b,c\n1,\"x,y\n{}2,\"x,y\n3,x,y\n", "0,x,y\n".repeat(rows));
    let below = |rows| faults(&merged(rows), b',');
    assert_eq!(below(0), ["2: field 2: text follows the closing quote, which is in the next line"]);
    assert_eq!(below(300), ["2: field 2: text follows the closing quote, which is 301 lines below"]);
}

#[test]
fn good_quotes_and_those_within_a_plain_field_are_no_faults() {
    for text in [
        "",
        "\u{feff}\"a\",\"b\"\r\n\"x\r\n\"\"y\"\"\",\"\"\r\n",
        "a,b\n5\" pipe, \"x\" \n\n,\"\"",
        "\"a\",b\r\"1\",2\r",
        "a;\"b\"\n",
    ] {
        assert_eq!(faults(text, b','), [""; 0], "{text}");
    }
}

#[test]
fn rows_have_the_lines_in_which_they_begin() {
    let lines = |text: &str| rows(text.as_bytes(), b',', 1_000).iter().map(|row| row.line).collect::<Vec<_>>();
    assert_eq!(lines("\u{feff}a,b\r\n1,\"x\r\ny\"\r\n\r\n2,3\r\n"), [1, 2, 5]);
    assert_eq!(lines("a\n1\n\n\n2"), [1, 2, 5]);
    assert_eq!(lines("\n\n"), [0; 0]);
    let mut ended = VecDeque::new();
    let mut quotes = Quotes::new(b',').from_line(7);
    quotes.read(b"\n\r\n1,2\n", &mut ended);
    assert_eq!(ended, [Ended { line: 9, fault: None }]);
}

#[test]
fn a_mark_in_the_middle_of_a_file_is_text() {
    let (mut ended, mut quotes) = (VecDeque::new(), Quotes::new(b',').from_line(7));
    quotes.read("\u{feff}\"a\"b,c\n".as_bytes(), &mut ended);
    assert_eq!(ended, [Ended { line: 7, fault: None }]);
}

#[test]
fn a_carriage_return_in_a_row_of_an_object_is_text() {
    let fault = |row: &str| of_row(row.as_bytes(), b',').map(|fault| fault.to_string());
    assert_eq!(fault("a\rb,\"c\"").as_deref(), None);
    assert_eq!(fault("\"a\"\rb,c").as_deref(), Some("field 1: text follows the closing quote"));
    assert_eq!(fault("\u{feff}\"a,b").as_deref(), None, "the mark is the first byte of the field");
}

#[test]
fn quotes_without_an_end_are_given_up() {
    let (mut quotes, mut ended, chunk) = (Quotes::new(b','), VecDeque::new(), vec![b'x'; 1_024 * 1_024]);
    quotes.read(b"a\n\"", &mut ended);
    for _ in 0..64 {
        quotes.read(&chunk, &mut ended);
        assert!(!quotes.is_too_long());
    }
    quotes.read(b"x", &mut ended);
    assert!(quotes.is_too_long());
    let fault = quotes.finish().unwrap().fault.unwrap();
    assert_eq!(fault.to_string(), "field 1: a quote is opened and not closed within 67108864 bytes");
}

proptest! {
    /// As many rows as the reader sees, whatever the quotes and however the bytes come.
    #[test]
    fn rows_end_where_the_reader_ends_them(text in "[a,\"\r\n]{0,40}", chunk in 1_usize..8) {
        let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let found = rows(text.as_bytes(), b',', chunk);
        prop_assert_eq!(found.len(), reader.byte_records().count());
        prop_assert_eq!(found, rows(text.as_bytes(), b',', 1_000));
    }

    /// What a program writes has no faults.
    #[test]
    fn what_is_quoted_well_has_no_fault(
        fields in prop::collection::vec(("[a,\"\r\n]{0,6}", "[a,\"\r\n]{0,6}"), 0..9), always: bool,
    ) {
        let style = if always { QuoteStyle::Always } else { QuoteStyle::Necessary };
        let mut writer =
            WriterBuilder::new().quote_style(style).terminator(Terminator::CRLF).from_writer(Vec::new());
        for (one, two) in &fields {
            writer.write_record([one, two]).unwrap();
        }
        let text = writer.into_inner().unwrap();
        let found = rows(&text, b',', 1_000);
        prop_assert_eq!(found.len(), fields.len());
        prop_assert!(found.iter().all(|row| row.fault.is_none()), "{:?}", String::from_utf8_lossy(&text));
    }
}
