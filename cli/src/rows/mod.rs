//! The tasks of a file, one by one.

mod csv;
mod ndjson;
mod watched;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(crate) use fanfold_rows::ndjson::is_spread;
use fanfold_rows::without_mark;
use serde_json::Value;

use crate::failure::Failure;
use crate::fault::Fault;
use crate::job::extension;

/// Extensions of files of tasks.
pub(crate) const FORMATS: [&str; 3] = ["csv", "ndjson", "jsonl"];

/// Bytes of a file that are looked at to see what it is.
const BEGIN_BYTES: u64 = 64 * 1_024;

/// A file of tasks.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// The file.
    pub(crate) file: PathBuf,
    format: Format,
    limit: usize,
}

/// How tasks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A row per task; the first line names the columns.
    Csv,
    /// A JSON value per line.
    Ndjson,
}

impl Format {
    /// The format of a file, by its extension.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        match extension(file).as_deref() {
            Some("csv") => Some(Self::Csv),
            Some("ndjson" | "jsonl") => Some(Self::Ndjson),
            _ => None,
        }
    }
}

/// A task as the file has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Its line; the first of several for a CSV row with line breaks in it.
    pub(crate) line: u64,
    /// Where it begins, to resume from there.
    pub(crate) begin: Begin,
    /// The object or row.
    pub(crate) content: Value,
}

/// A place in a file from which on rows can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// Bytes before it.
    pub(crate) byte: u64,
    /// The number of the line that begins there.
    pub(crate) line: u64,
}

impl Begin {
    /// The beginning of a file.
    const FIRST: Self = Self { byte: 0, line: 1 };
}

/// What changes when a file does: its size, and when it was last changed.
pub(crate) type Version = (u64, Option<SystemTime>);

/// The tasks of a file.
pub(crate) type Rows = Box<dyn Iterator<Item = Result<Row, Fault>> + Send>;

impl Input {
    pub(crate) fn new(file: PathBuf, limit: Option<u64>) -> Result<Self, Failure> {
        let Some(format) = Format::of(&file) else {
            let advice = advice(&file).map(|advice| format!(". {advice}")).unwrap_or_default();
            let problem = format!("is neither *.csv nor *.ndjson nor *.jsonl{advice}");
            return Err(Fault::new(file.display(), problem).into());
        };
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(Self { file, format, limit })
    }

    /// Reads the tasks from the beginning. After a fault there may be more.
    pub(crate) fn rows(&self) -> Result<Rows, Failure> {
        let rows = match self.format {
            Format::Csv => csv::rows(&self.file, None)?,
            Format::Ndjson => ndjson::rows(&self.file, Begin::FIRST)?,
        };
        Ok(Box::new(rows.take(self.limit)))
    }

    /// Reads the tasks from one of them on, without a limit.
    pub(crate) fn rows_from(&self, begin: Begin) -> Result<Rows, Failure> {
        match self.format {
            Format::Csv => csv::rows(&self.file, Some(begin)),
            Format::Ndjson => ndjson::rows(&self.file, begin),
        }
    }

    /// The file's version.
    pub(crate) fn version(&self) -> Result<Version, Failure> {
        let about = std::fs::metadata(&self.file).map_err(|error| Fault::new(self.file.display(), error))?;
        Ok((about.len(), about.modified().ok()))
    }

    /// Refuses a file of another version.
    pub(crate) fn check_version(&self, version: Version) -> Result<(), Failure> {
        match self.version()? == version {
            true => Ok(()),
            false => Err(Fault::new(self.file.display(), "was changed while it was read").into()),
        }
    }

    /// What had to be guessed about the file, for people.
    pub(crate) fn guess(&self) -> Option<String> {
        match self.format {
            Format::Csv => csv::guess(&self.file),
            Format::Ndjson => None,
        }
    }

    /// The columns of a CSV file.
    pub(crate) fn columns(&self) -> Option<Vec<String>> {
        match self.format {
            Format::Csv => csv::columns(&self.file).ok(),
            Format::Ndjson => None,
        }
    }
}

/// Reads tasks from an input that can be read only once; `name` names it in faults.
pub(crate) fn stream(name: &Path, format: Format, input: Box<dyn Read + Send>) -> Result<Rows, Failure> {
    match format {
        Format::Csv => csv::stream(name, input),
        Format::Ndjson => {
            let advice =
                "One JSON value per line is expected; convert a value with `jq -c .`, and a list with `jq -c '.[]'`"
                    .to_owned();
            Ok(ndjson::stream(name, BufReader::new(input), Begin::FIRST, advice))
        }
    }
}

/// How a file can be made one of tasks, if it looks like one.
pub(crate) fn advice(file: &Path) -> Option<String> {
    let shown = file.display();
    match extension(file)?.as_str() {
        "json" => Some(other_json(file)),
        "gz" if Format::of(&file.with_extension("")).is_some() => Some(format!("Decompress it: gunzip -k {shown}")),
        "tsv" => Some(format!("Rename it: mv {shown} {}", file.with_extension("csv").display())),
        _ => None,
    }
}

/// How NDJSON is made of a file of JSON.
pub(crate) fn other_json(file: &Path) -> String {
    let filter = if begins_as_array(file) { "-c '.[]'" } else { "-c ." };
    let (old, new) = (file.with_extension("json"), file.with_extension("ndjson"));
    let (old, new) = (old.display(), new.display());
    let rename = if extension(file).as_deref() == Some("json") {
        String::new()
    } else {
        format!("mv {} {old} && ", file.display())
    };
    format!("One JSON value per line is expected; convert the file with jq: {rename}jq {filter} {old} > {new}")
}

/// Whether the first thing in a file is a bracket.
fn begins_as_array(file: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(file).and_then(|file| file.take(BEGIN_BYTES).read_to_end(&mut begin));
    read.is_ok() && without_mark(&begin).trim_ascii_start().starts_with(b"[")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Rows from each one on are the same as from the beginning, with the same lines.
    #[test]
    fn rows_can_be_read_from_each_of_them_on() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, rows) in [
            ("a.csv", "\u{feff}a;b\r\n1;\"x\r\ny\"\r\n\r\n2;\"\"\"\"\r\n3;\u{e4}\r\n", 3),
            ("b.csv", "a,b\n1,\"x\n\n\"\n\n\n2,\n3,y", 3),
            ("c.ndjson", "\u{feff}{\"a\": 1}\r\n\r\n \n[2]\n\"\u{e4}\"", 3),
            ("d.jsonl", "\n1\n2\n", 2),
            ("e.csv", "a\n", 0),
            ("f.csv", "a,b\n1,2\n\u{feff}3,4\n", 2),
            ("g.csv", "a,b\n\u{feff}\"1\"x,2\n\n\u{feff}\"3\"x,4\n\u{feff}\"5\"x,6", 3),
            ("h.csv", "a\r\n1\r\n\u{feff}2\r\n", 2),
        ] {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            let input = Input::new(file, None).unwrap();
            let all: Vec<Row> = input.rows().unwrap().map(Result::unwrap).collect();
            assert_eq!(all.len(), rows, "{name}");
            for (at, row) in all.iter().enumerate() {
                let rest: Vec<Row> = input.rows_from(row.begin).unwrap().map(Result::unwrap).collect();
                assert_eq!(rest, all[at..], "{name} from row {at} on");
            }
            let limited = Input::new(input.file.clone(), Some(1)).unwrap();
            assert_eq!(limited.rows().unwrap().count(), rows.min(1));
        }
    }

    /// What a file of CSV has: the lines of its rows, and what is wrong with the others.
    fn lines(text: &str) -> Vec<Result<u64, String>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.csv");
        std::fs::write(&file, text).unwrap();
        let shown = |fault: Fault| fault.to_string().rsplit('/').next().unwrap_or_default().to_owned();
        let rows = Input::new(file, None).unwrap().rows().unwrap();
        rows.map(|row| row.map(|row| row.line).map_err(shown)).collect()
    }

    #[test]
    fn rows_of_csv_have_the_lines_in_which_they_begin() {
        assert_eq!(lines("a;b\r\n1;\"x\r\ny\"\r\n\r\n2;3\r\n4;5\r\n"), [Ok(2), Ok(5), Ok(6)]);
        let ragged = Err("r.csv:4: has 1 field, but the first line names 2 columns".to_owned());
        assert_eq!(lines("a,b\r\n1,2\r\n\r\n3\r\n4,5"), [Ok(2), ragged, Ok(5)]);
    }

    #[test]
    fn rows_of_csv_with_wrong_quotes_are_faults() {
        let wrong = |text: &str| Err(text.to_owned());
        assert_eq!(
            lines("id,note\n1,ok\n2,\"ok\n3,ok\n"),
            [Ok(2), wrong("r.csv:3: field 2: a quote is opened and not closed")]
        );
        assert_eq!(
            lines("id,note\r\n1,\"a\"b\r\n2,\"x\r\n3,\"y\r\n4,\"ok\"\r\n"),
            [
                wrong("r.csv:2: field 2: text follows the closing quote"),
                wrong("r.csv:3: field 2: text follows the closing quote, which is in the next line"),
                Ok(5),
            ]
        );
        // It has too few fields, too, but that is not what is wrong with it.
        assert_eq!(lines("id,note\n\"1,ok\n2,ok\n"), [wrong("r.csv:2: field 1: a quote is opened and not closed")]);
        // More rows than are read at once.
        let many = "id,note\n".to_owned() + &"1,\"ok\"\n".repeat(20_000);
        assert!(lines(&many).iter().zip(2..).all(|(row, line)| *row == Ok(line)));
        let last = lines(&(many + "2,\"a\"b")).pop().unwrap();
        assert_eq!(last, wrong("r.csv:20002: field 2: text follows the closing quote"));
    }

    #[test]
    fn a_first_line_with_wrong_quotes_is_a_fault() {
        let read = |text: &'static str| stream(Path::new("r.csv"), Format::Csv, Box::new(text.as_bytes()));
        let refused = |text: &'static str| read(text).err().unwrap().to_string();
        assert_eq!(refused("id,\"note\n1,ok\n"), "r.csv:1: field 2: a quote is opened and not closed");
        assert_eq!(refused("\u{feff}\"id\"x,note\n"), "r.csv:1: field 1: text follows the closing quote");
        let rows: Vec<Result<Row, Fault>> = read("\u{feff}\"id\",note\n1,ok\n2,\"ok").unwrap().collect();
        assert_eq!(rows[0].as_ref().unwrap().content, serde_json::json!({"id": "1", "note": "ok"}));
        let last = rows[1].as_ref().unwrap_err().to_string();
        assert_eq!(last, "r.csv:3: field 2: a quote is opened and not closed");
    }
}
