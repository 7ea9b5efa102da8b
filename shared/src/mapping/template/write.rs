//! Writing requests from templates.

use std::collections::BTreeSet;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Node, Piece, Template, Text};
use crate::limits::RENDER_PASSES_MAX;
use crate::mapping::BodyFormat;
use crate::mapping::term::{Bindings, Term, TermError, Variable};

/// A member as a template sees it.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The task's id.
    pub id: Value,
    /// Its content, as it was registered.
    pub content: &'a RawValue,
}

/// What a template is written with.
#[derive(Clone, Copy, Debug)]
pub struct Render<'a> {
    /// The variables of the batch.
    pub batch: Bindings<'a>,
    /// The members.
    pub members: &'a [Member<'a>],
    /// How values are joined.
    pub format: BodyFormat,
    /// The most bytes.
    pub most: usize,
}

/// A request's body.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The body.
    pub body: Vec<u8>,
    /// The positions of the members that are in it, in order.
    pub sent: Vec<usize>,
    /// Members that are not: their position and what is wrong.
    pub unfit: Vec<(usize, String)>,
}

/// A body cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// It has more bytes than is allowed.
    #[error("the request has more than {0} bytes")]
    TooLarge(usize),
    /// What belongs to no member cannot be written.
    #[error("the template {0}")]
    Template(String),
}

/// Why a part cannot be written.
enum Unwritten {
    TooLarge,
    /// It has no value.
    Term(String),
}

impl From<TermError> for Unwritten {
    fn from(error: TermError) -> Self {
        Self::Term(error.to_string())
    }
}

impl Template {
    /// Writes a body. Members that cannot be written are left out.
    ///
    /// # Errors
    /// The body is too large, or what belongs to no member cannot be written.
    pub fn render(&self, render: &Render<'_>) -> Result<Rendered, RenderError> {
        let read = |member: &Member<'_>| -> Result<Value, String> {
            let content =
                if self.reads_contents { serde_json::from_str(member.content.get()) } else { Ok(Value::Null) };
            content.map_err(|error| format!("the content cannot be read: {error}"))
        };
        let contents: Vec<Result<Value, String>> = render.members.iter().map(read).collect();
        let mut unfit: Vec<(usize, String)> = Vec::new();
        for _ in 0..RENDER_PASSES_MAX {
            let left_out: BTreeSet<usize> = unfit.iter().map(|(at, _)| *at).collect();
            let sent: Vec<usize> = (0..render.members.len()).filter(|at| !left_out.contains(at)).collect();
            let mut writer = Writer { render, contents: &contents, sent: &sent, unfit: Vec::new(), out: Vec::new() };
            match writer.body(&self.root) {
                Err(Unwritten::TooLarge) => return Err(RenderError::TooLarge(render.most)),
                Err(Unwritten::Term(problem)) => return Err(RenderError::Template(problem)),
                Ok(()) if writer.unfit.is_empty() => {
                    let body = writer.out;
                    return Ok(Rendered { body, sent, unfit });
                }
                Ok(()) => {}
            }
            for (at, problem) in writer.unfit {
                if !unfit.iter().any(|(known, _)| *known == at) {
                    unfit.push((at, problem));
                }
            }
        }
        Err(RenderError::Template("is about other positions whenever a member is left out".to_owned()))
    }
}

impl Text {
    /// The secrets that its terms name.
    ///
    /// # Errors
    /// A term refers to `secret` without a name.
    pub fn secrets(&self) -> Result<Vec<&str>, String> {
        let mut names = Vec::new();
        for piece in &self.0 {
            if let Piece::Term(term) = piece {
                names.extend(term.secrets()?);
            }
        }
        Ok(names)
    }

    /// Joins its pieces.
    ///
    /// # Errors
    /// A term in it has no value that can be a part of a text.
    pub fn join(&self, bindings: &Bindings<'_>) -> Result<String, TermError> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Plain(plain) => text.push_str(plain),
                Piece::Term(term) => text.push_str(&term.text(bindings)?),
            }
        }
        Ok(text)
    }
}

struct Writer<'a> {
    render: &'a Render<'a>,
    contents: &'a [Result<Value, String>],
    sent: &'a [usize],
    unfit: Vec<(usize, String)>,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn body(&mut self, root: &Node) -> Result<(), Unwritten> {
        let batch = self.render.batch;
        if self.render.format == BodyFormat::Json {
            return self.node(root, &batch);
        }
        // One value per line.
        match root {
            Node::List(nodes) => nodes.iter().try_for_each(|node| match node {
                Node::Members(each) => self.members(each, b"\n", true),
                node => self.node(node, &batch).and_then(|()| self.put(b"\n")),
            }),
            Node::Members(each) => self.members(each, b"\n", true),
            node => self.node(node, &batch).and_then(|()| self.put(b"\n")),
        }
    }

    fn node(&mut self, node: &Node, bindings: &Bindings<'_>) -> Result<(), Unwritten> {
        match node {
            Node::Plain(value) => self.value(value),
            Node::Value(term) => self.term(term, bindings),
            Node::Text(text) => self.value(&Value::String(text.join(bindings)?)),
            Node::List(nodes) => {
                self.put(b"[")?;
                let mut first = true;
                for node in nodes {
                    match node {
                        // A list of the members within a list is a part of it.
                        Node::Members(each) if self.sent.is_empty() || each.is_empty() => continue,
                        Node::Members(each) => {
                            self.comma(&mut first)?;
                            self.members(each, b",", false)?;
                        }
                        node => {
                            self.comma(&mut first)?;
                            self.node(node, bindings)?;
                        }
                    }
                }
                self.put(b"]")
            }
            Node::Members(each) => {
                self.put(b"[")?;
                self.members(each, b",", false)?;
                self.put(b"]")
            }
            Node::Object(fields) => {
                self.put(b"{")?;
                let mut first = true;
                for field in fields {
                    if field.optional && is_absent(&field.value, bindings) {
                        continue;
                    }
                    self.comma(&mut first)?;
                    self.value(&Value::String(field.name.join(bindings)?))?;
                    self.put(b":")?;
                    self.node(&field.value, bindings)?;
                }
                self.put(b"}")
            }
        }
    }

    /// Writes the values of all members. `ends`: the separator also follows the last one.
    fn members(&mut self, each: &[Node], separator: &[u8], ends: bool) -> Result<(), Unwritten> {
        let (render, contents, sent) = (self.render, self.contents, self.sent);
        let mut first = true;
        for (index, at) in sent.iter().enumerate() {
            let Some((member, content)) = render.members.get(*at).zip(contents.get(*at)) else { continue };
            let before = self.out.len();
            let index = Value::from(index);
            let content = match content {
                Ok(content) => content,
                Err(problem) => {
                    self.unfit.push((*at, problem.clone()));
                    continue;
                }
            };
            let bindings = render.batch.with(Variable::Id, &member.id).with(Variable::Index, &index);
            let bindings = bindings.with(Variable::Content, content).with_raw(member.content.get());
            let mut write = || -> Result<(), Unwritten> {
                for node in each {
                    if !ends && !std::mem::take(&mut first) {
                        self.put(separator)?;
                    }
                    self.node(node, &bindings)?;
                    if ends {
                        self.put(separator)?;
                    }
                }
                Ok(())
            };
            match write() {
                Ok(()) => {}
                Err(Unwritten::TooLarge) => return Err(Unwritten::TooLarge),
                Err(Unwritten::Term(problem)) => {
                    self.out.truncate(before);
                    self.unfit.push((*at, problem));
                }
            }
        }
        Ok(())
    }

    fn term(&mut self, term: &Term, bindings: &Bindings<'_>) -> Result<(), Unwritten> {
        match term.raw(bindings) {
            // A line of NDJSON has no line break in it.
            // Within texts, JSON has line breaks only as `\n`: others are white space.
            Some(raw) if self.render.format == BodyFormat::Ndjson => {
                self.put(raw.replace(['\n', '\r'], " ").as_bytes())
            }
            Some(raw) => self.put(raw.as_bytes()),
            None => {
                let value = term.value(bindings)?;
                self.value(&value)
            }
        }
    }

    fn value(&mut self, value: &Value) -> Result<(), Unwritten> {
        // Writing to memory does not fail.
        serde_json::to_writer(&mut self.out, value).map_err(|error| Unwritten::Term(error.to_string()))?;
        self.put(b"")
    }

    fn comma(&mut self, first: &mut bool) -> Result<(), Unwritten> {
        if std::mem::take(first) { Ok(()) } else { self.put(b",") }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Unwritten> {
        self.out.extend_from_slice(bytes);
        if self.out.len() > self.render.most { Err(Unwritten::TooLarge) } else { Ok(()) }
    }
}

/// Whether a value is null, or refers to something that is not there.
fn is_absent(node: &Node, bindings: &Bindings<'_>) -> bool {
    match node {
        Node::Value(term) => term.raw(bindings).is_none() && term.value(bindings).map_or(true, |value| value.is_null()),
        Node::Text(text) => text.join(bindings).is_err(),
        _ => false,
    }
}
