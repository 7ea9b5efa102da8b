//! The documents of a file.

use crate::job::yaml;

/// A document of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Document {
    /// Its first line that is not empty.
    pub(super) line: usize,
    /// Its text, after as many empty lines as there are lines before it in the file, so that faults have the line numbers of
    /// the file.
    pub(super) text: String,
}

/// The documents that are not empty. In YAML a line that begins with `---` begins another document, and `...` ends one,
/// wherever it is: no text may have such a line.
pub(super) fn split(text: &str) -> Vec<Document> {
    let mut texts = vec![String::new()];
    for (number, line) in text.trim_start_matches('\u{feff}').split_inclusive('\n').enumerate() {
        let (separates, rest) = match (line.strip_prefix("---"), line.strip_prefix("...")) {
            (Some(rest), _) | (_, Some(rest)) if rest.trim_start() != rest || rest.is_empty() => (true, rest),
            _ => (false, line),
        };
        if separates {
            // What follows the dashes on their line belongs to the document, and keeps its column.
            texts.push("\n".repeat(number) + "   ");
        }
        if let Some(text) = texts.last_mut() {
            text.push_str(rest);
        }
    }
    let document = |text: String| {
        let is_content = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
        let line = text.lines().position(is_content)? + 1;
        Some(Document { line, text })
    };
    texts.into_iter().filter(|text| !yaml::is_empty(text)).filter_map(document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(usize, String)> {
        split(text).into_iter().map(|it| (it.line, it.text.trim().to_owned())).collect()
    }

    #[test]
    fn documents_keep_their_lines() {
        let owned =
            |parts: &[(usize, &str)]| parts.iter().map(|(line, text)| (*line, (*text).to_owned())).collect::<Vec<_>>();
        assert_eq!(parts("a: 1\n"), owned(&[(1, "a: 1")]));
        assert_eq!(parts("---\na: 1\n---\n\nb: 2\n"), owned(&[(2, "a: 1"), (5, "b: 2")]));
        assert_eq!(parts("a: 1\n--- {b: 2}\n...\n# nothing\n"), owned(&[(1, "a: 1"), (2, "{b: 2}")]));
        assert_eq!(parts("a: 1\r\n---\r\nb: 2"), owned(&[(1, "a: 1"), (3, "b: 2")]));
        assert_eq!(parts("a: ---\nb: ----\n----x: 1\n"), owned(&[(1, "a: ---\nb: ----\n----x: 1")]));
        assert_eq!(parts("\n# nothing\n---\n...\n---\n"), owned(&[]));
        for document in split("a: 1\n---\nb: 2\n--- {c: 3}\n") {
            let line = document.text.lines().nth(document.line - 1).unwrap_or_default();
            assert!(line.contains(": "), "{document:?}");
        }
    }
}
