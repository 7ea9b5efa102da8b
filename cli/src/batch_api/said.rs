//! What a program last said: the end of its output, to be shown if it fails.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Lines that are kept.
const LINES: usize = 20;
/// Bytes of a line that are kept.
const LINE_BYTES: usize = 500;

/// The last lines of a program's output. Clones are the same lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<Mutex<VecDeque<String>>>);

impl Said {
    /// Reads a stream to its end. Its bytes need not be text, and its lines need not end.
    pub(crate) async fn listen(self, stream: impl AsyncRead + Unpin) {
        let mut stream = BufReader::new(stream);
        // The last line kept has not ended yet.
        let mut open = false;
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
                self.keep(line, open);
                open = !ends;
            }
            let count = read.len();
            stream.consume(count);
        }
    }

    /// Keeps a line, in the place of the last one if that was only its beginning.
    fn keep(&self, line: String, instead: bool) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if instead || lines.len() == LINES {
            if instead {
                lines.pop_back()
            } else {
                lines.pop_front()
            };
        }
        lines.push_back(line);
    }

    /// The last line that is not empty.
    pub(crate) fn last(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().rev().find(|line| !line.trim().is_empty()).cloned()
    }
}

/// The lines, one below the other.
impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.write_str(&Vec::from(lines.clone()).join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn said(output: &[u8]) -> Said {
        let said = Said::default();
        said.clone().listen(output).await;
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
        let long = said_long().await;
        assert_eq!(long.to_string().len(), LINE_BYTES + "\nnext".len());
    }

    async fn said_long() -> Said {
        said(&[vec![b'x'; 1_000_000], b"\nnext".to_vec()].concat()).await
    }
}
