//! Reads expressions, in the one way in which Fanfold writes them.

use super::path::Path;

/// What is left of an expression.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Text<'_> {
    pub(super) fn take(&mut self, words: &str) -> bool {
        let rest = self.0.strip_prefix(words);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// The same as [`Self::take`], for what must be there.
    pub(super) fn skip(&mut self, words: &str) -> Option<()> {
        self.take(words).then_some(())
    }

    pub(super) fn path(&mut self) -> Option<Path> {
        let mut path = vec![self.name()?];
        while self.take(".") {
            path.push(self.name()?);
        }
        Some(path)
    }

    fn name(&mut self) -> Option<String> {
        self.word(usize::from(self.0.starts_with('#')))
    }

    /// `:name`
    pub(super) fn value(&mut self) -> Option<String> {
        self.0.starts_with(':').then(|| self.word(1)).flatten()
    }

    /// So many characters, and a word.
    fn word(&mut self, before: usize) -> Option<String> {
        let rest = &self.0[before..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, rest) = self.0.split_at(before + end);
        self.0 = rest;
        (end > 0).then(|| word.to_owned())
    }
}
