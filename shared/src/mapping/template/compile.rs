//! Reading templates. Every fault is named by its place in the template: `body.Entries[0].Id`.

use serde_json::{Map, Value};

use super::{Field, MEMBERS, Node, OF_BATCH, OF_CALL, OF_MEMBER, Piece, Template, Text};
use crate::limits::{MAPPING_DEPTH_MAX, MAPPING_TERMS_MAX};
use crate::mapping::term::{Term, Variable};

/// Where faults are named: a field, and what is wrong with it.
pub(crate) type Report<'a> = &'a mut dyn FnMut(&str, String);

/// Compiles templates, and counts their terms.
pub(crate) struct Compiler<'a> {
    report: Report<'a>,
    terms: usize,
    members: usize,
    reads_contents: bool,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(report: Report<'a>) -> Self {
        Self { report, terms: 0, members: 0, reads_contents: false }
    }

    /// Reads the template of a body, whose field is `path`.
    pub(crate) fn body(&mut self, path: &str, template: &Value) -> Template {
        let root = self.node(path, template, 0, false);
        if self.members == 0 {
            (self.report)(path, format!("has no `{MEMBERS}`, so no member would be in the request"));
        }
        Template { root, reads_contents: self.reads_contents }
    }

    /// Reads a text with terms in it.
    pub(crate) fn text(&mut self, path: &str, text: &str, allowed: &[Variable]) -> Text {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, after) = (&rest[..at], &rest[at + 2..]);
            if let Some(before) = before.strip_suffix('$') {
                pieces.push(Piece::Plain(format!("{before}${{")));
                rest = after;
                continue;
            }
            pieces.push(Piece::Plain(before.to_owned()));
            let Some(end) = closing(after) else {
                (self.report)(
                    path,
                    format!("is `{text}`, without the `}}` of its `${{`; `$${{` stands for `${{` itself"),
                );
                return Text(pieces);
            };
            if let Some(term) = self.term(path, &after[..end], allowed) {
                pieces.push(Piece::Term(term));
            }
            rest = &after[end + 1..];
        }
        pieces.push(Piece::Plain(rest.to_owned()));
        pieces.retain(|piece| !matches!(piece, Piece::Plain(text) if text.is_empty()));
        Text(pieces)
    }

    /// Reads a text of a header or of the query.
    pub(crate) fn call_text(&mut self, path: &str, text: &str) -> Text {
        let text = self.text(path, text, &OF_CALL);
        if let Err(problem) = text.secrets() {
            (self.report)(path, problem);
        }
        text
    }

    /// Reads a term.
    pub(crate) fn term(&mut self, path: &str, source: &str, allowed: &[Variable]) -> Option<Term> {
        self.terms += 1;
        if self.terms == MAPPING_TERMS_MAX + 1 {
            (self.report)(
                path,
                format!("is expression {} of the mapping, at most {MAPPING_TERMS_MAX} are allowed", self.terms),
            );
        }
        if self.terms > MAPPING_TERMS_MAX {
            return None;
        }
        Term::read(source, allowed).map_err(|problem| (self.report)(path, problem)).ok()
    }

    fn node(&mut self, path: &str, value: &Value, depth: usize, member: bool) -> Node {
        if depth > MAPPING_DEPTH_MAX {
            (self.report)(
                path,
                format!("is nested more than {MAPPING_DEPTH_MAX} deep, at most {MAPPING_DEPTH_MAX} levels are allowed"),
            );
            return Node::Plain(Value::Null);
        }
        match value {
            Value::String(text) => self.text_node(path, text, member),
            Value::Array(values) => {
                let each = |(at, value): (usize, &Value)| self.node(&format!("{path}[{at}]"), value, depth + 1, member);
                plain(Node::List(values.iter().enumerate().map(each).collect()))
            }
            Value::Object(fields) if fields.contains_key(MEMBERS) => self.members(path, fields, depth, member),
            Value::Object(fields) => self.object(path, fields, depth, member),
            other => Node::Plain(other.clone()),
        }
    }

    fn text_node(&mut self, path: &str, text: &str, member: bool) -> Node {
        let allowed: &[Variable] = if member { &OF_MEMBER } else { &OF_BATCH };
        let Text(mut pieces) = self.text(path, text, allowed);
        match pieces.pop() {
            Some(Piece::Term(term)) if pieces.is_empty() => {
                self.reads_contents |= term.reads_content() && term.source().trim() != Variable::Content.name();
                Node::Value(term)
            }
            Some(Piece::Plain(text)) if pieces.is_empty() => Node::Plain(text.into()),
            last => {
                pieces.extend(last);
                self.reads_contents |= reads_content(&pieces);
                plain(Node::Text(Text(pieces)))
            }
        }
    }

    fn members(&mut self, path: &str, fields: &Map<String, Value>, depth: usize, member: bool) -> Node {
        self.members += 1;
        if member {
            (self.report)(path, format!("has `{MEMBERS}` within `{MEMBERS}`"));
        }
        if fields.len() > 1 {
            (self.report)(
                path,
                format!("has `{MEMBERS}` beside other fields; it stands for a list, and is the only field"),
            );
        }
        let path = format!("{path}.{MEMBERS}");
        match fields.get(MEMBERS) {
            // Several values per member.
            Some(Value::Array(values)) => {
                let each = |(at, value): (usize, &Value)| self.node(&format!("{path}[{at}]"), value, depth + 1, true);
                Node::Members(values.iter().enumerate().map(each).collect())
            }
            other => Node::Members(vec![self.node(&path, other.unwrap_or(&Value::Null), depth + 1, true)]),
        }
    }

    fn object(&mut self, path: &str, fields: &Map<String, Value>, depth: usize, member: bool) -> Node {
        let allowed: &[Variable] = if member { &OF_MEMBER } else { &OF_BATCH };
        let mut all = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            let path = format!("{path}.{name}");
            let (name, optional) = name.strip_suffix('?').map_or((name.as_str(), false), |name| (name, true));
            let name = self.text(&path, name, allowed);
            self.reads_contents |= reads_content(&name.0);
            all.push(Field { name, optional, value: self.node(&path, value, depth + 1, member) });
        }
        plain(Node::Object(all))
    }
}

fn reads_content(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| matches!(piece, Piece::Term(term) if term.reads_content()))
}

/// Where the term ends that a text begins with: at the first `}` that is not within quotes. (Terms have no braces.)
fn closing(text: &str) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
    text.char_indices().find_map(|(at, letter)| {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '}') => return Some(at),
            _ => {}
        }
        None
    })
}

/// Joins what needs no evaluation.
fn plain(node: Node) -> Node {
    match node {
        Node::List(nodes) if nodes.iter().all(|node| matches!(node, Node::Plain(_))) => {
            let value = |node| if let Node::Plain(value) = node { value } else { Value::Null };
            Node::Plain(Value::Array(nodes.into_iter().map(value).collect()))
        }
        Node::Text(Text(pieces)) if pieces.iter().all(|piece| matches!(piece, Piece::Plain(_))) => {
            let text = |piece: &Piece| if let Piece::Plain(text) = piece { text.clone() } else { String::new() };
            Node::Plain(pieces.iter().map(text).collect::<String>().into())
        }
        other => other,
    }
}
