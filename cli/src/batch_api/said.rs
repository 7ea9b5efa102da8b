//! The end of a program's output, to be shown if it fails.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Lines that are kept.
const LINES: usize = 20;
/// Bytes of a line that are kept.
const LINE_BYTES: usize = 500;

/// The last lines of a program's output. Clones are the same lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    ended: VecDeque<String>,
    /// The line of each stream that has not ended yet.
    open: [String; 2],
}

/// The stream that a program writes to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Output = 0,
    Errors = 1,
}

impl Said {
    /// Reads a stream to its end. Its bytes need not be text, and its lines need not end.
    pub(crate) async fn listen(self, which: Stream, stream: impl AsyncRead + Unpin) {
        let mut stream = BufReader::new(stream);
        let mut bytes = Vec::new();
        loop {
            let Ok(read) = stream.fill_buf().await else { return };
            if read.is_empty() {
                return;
            }
            for part in read.split_inclusive(|byte| *byte == b'\n') {
                let room = LINE_BYTES.saturating_sub(bytes.len());
                bytes.extend(part.iter().copied().filter(|byte| !b"\r\n".contains(byte)).take(room));
                let line = String::from_utf8_lossy(&bytes).into_owned();
                let ends = part.ends_with(b"\n");
                if ends {
                    tracing::info!(target: "batch_api", "{line}");
                    bytes.clear();
                }
                self.keep(which, line, ends);
            }
            let count = read.len();
            stream.consume(count);
        }
    }

    fn keep(&self, which: Stream, line: String, ends: bool) {
        let mut lines = self.lines();
        let open = &mut lines.open[which as usize];
        if !ends {
            *open = line;
            return;
        }
        open.clear();
        if lines.ended.len() == LINES {
            lines.ended.pop_front();
        }
        lines.ended.push_back(line);
    }

    /// The last line that is not empty.
    pub(crate) fn last(&self) -> Option<String> {
        let lines = self.lines();
        lines
            .ended
            .iter()
            .chain(&lines.open)
            .rev()
            .map(|line| line.trim())
            .find(|line| !line.is_empty())
            .map(str::to_owned)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines, one below the other.
impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines();
        let open = lines.open.iter().filter(|line| !line.is_empty());
        let all: Vec<&str> = lines.ended.iter().chain(open).map(String::as_str).collect();
        f.write_str(&all.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn said(output: &[u8]) -> Said {
        let said = Said::default();
        said.clone().listen(Stream::Output, output).await;
        said
    }

    #[tokio::test]
    async fn the_last_lines_are_kept() {
        let text: String = (0..100).map(|n| format!("line {n}\r\n")).collect();
        let said = said(text.as_bytes()).await;
        assert_eq!(said.to_string().lines().count(), LINES);
        assert_eq!(said.last().as_deref(), Some("line 99"));
    }

    #[tokio::test]
    async fn bytes_need_not_be_text_nor_lines_end() {
        let said = said(b"one\n\xff\xfe\n\nready> ").await;
        assert_eq!(said.to_string(), "one\n\u{fffd}\u{fffd}\n\nready> ");
        let long = super::tests::said(&[vec![b'x'; 1_000_000], b"\nnext".to_vec()].concat()).await;
        assert_eq!(long.to_string().len(), LINE_BYTES + "\nnext".len());
    }

    #[tokio::test]
    async fn streams_do_not_cut_each_other_off() {
        let said = Said::default();
        said.keep(Stream::Output, "half a".to_owned(), false);
        said.keep(Stream::Errors, "no licence".to_owned(), true);
        said.keep(Stream::Output, "half a line".to_owned(), false);
        assert_eq!(said.to_string(), "no licence\nhalf a line");
    }
}
