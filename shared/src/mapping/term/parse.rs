//! Reads a term into its tree. How deep it recurses is bounded by the brackets and operators that a term may have.

use serde_json::Value;

use super::Variable;
use super::node::{Function, Node, Operator};
use super::tokens::{Token, split};

/// Operators by their strength, the weakest first.
const OPERATORS: [&[(&str, Operator)]; 5] = [
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<", Operator::Less),
        ("<=", Operator::AtMost),
        (">", Operator::More),
        (">=", Operator::AtLeast),
        ("in", Operator::In),
    ],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[("*", Operator::Times), ("/", Operator::Over), ("%", Operator::Rest)],
];

/// Functions that are called by themselves, with their arguments.
const FUNCTIONS: [(&str, Function); 6] = [
    ("size", Function::Size),
    ("string", Function::String),
    ("int", Function::Int),
    ("double", Function::Double),
    ("json", Function::Json),
    ("base64", Function::Base64),
];

/// Functions of a value, with the numbers of arguments that each may have.
const METHODS: [(&str, Function, &[usize]); 10] = [
    ("size", Function::Size, &[0]),
    ("contains", Function::Contains, &[1]),
    ("startsWith", Function::StartsWith, &[1]),
    ("endsWith", Function::EndsWith, &[1]),
    ("lowerAscii", Function::LowerAscii, &[0]),
    ("upperAscii", Function::UpperAscii, &[0]),
    ("trim", Function::Trim, &[0]),
    ("substring", Function::Substring, &[1, 2]),
    ("orValue", Function::OrValue, &[1]),
    ("hasValue", Function::HasValue, &[0]),
];

/// Reads a term.
pub(super) fn read(source: &str, allowed: &[Variable]) -> Result<Node, String> {
    let mut parser = Parser { tokens: split(source)?, at: 0, allowed };
    let node = parser.choice()?;
    match parser.next() {
        None => Ok(node),
        Some(token) => Err(format!("has {} where it should end", shown(&token))),
    }
}

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    allowed: &'a [Variable],
}

impl Parser<'_> {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    /// Goes past a sign, if it is the next word.
    fn take(&mut self, sign: &str) -> bool {
        let found = match self.tokens.get(self.at) {
            Some(Token::Sign(found)) => *found == sign,
            Some(Token::Name(name)) => name == "in" && sign == "in",
            _ => false,
        };
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.take(sign) {
            return Ok(());
        }
        let found = self.next().map_or_else(|| "its end".to_owned(), |token| shown(&token));
        Err(format!("has {found} where `{sign}` is expected"))
    }

    fn choice(&mut self) -> Result<Node, String> {
        let asked = self.binary(0)?;
        if !self.take("?") {
            return Ok(asked);
        }
        let yes = self.binary(0)?;
        self.expect(":")?;
        Ok(Node::Choice(Box::new(asked), Box::new(yes), Box::new(self.choice()?)))
    }

    fn binary(&mut self, strength: usize) -> Result<Node, String> {
        let Some(operators) = OPERATORS.get(strength) else { return self.unary() };
        let mut left = self.binary(strength + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.take(sign)) {
            left = Node::Binary(*operator, Box::new(left), Box::new(self.binary(strength + 1)?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, String> {
        if self.take("!") {
            return Ok(Node::Not(Box::new(self.unary()?)));
        }
        if self.take("-") {
            return Ok(Node::Negative(Box::new(self.unary()?)));
        }
        let mut node = self.primary()?;
        loop {
            let optional = self.take(".?");
            if optional || self.take(".") {
                let Some(Token::Name(name)) = self.next() else { return Err("has no name after a dot".to_owned()) };
                node =
                    if !optional && self.take("(") { self.method(node, &name)? } else { field(node, name, optional) };
                continue;
            }
            let optional = self.take("[?");
            if !optional && !self.take("[") {
                return Ok(node);
            }
            let at = Box::new(self.choice()?);
            self.expect("]")?;
            node = Node::Element { of: Box::new(node), at, optional };
        }
    }

    fn primary(&mut self) -> Result<Node, String> {
        match self.next() {
            Some(Token::Text(text)) => Ok(Node::Literal(text.into())),
            Some(Token::Whole(number)) => Ok(Node::Literal(number.into())),
            Some(Token::Fraction(number)) => Ok(Node::Literal(number.into())),
            Some(Token::Sign("(")) => {
                let node = self.choice()?;
                self.expect(")").map(|()| node)
            }
            Some(Token::Sign("[")) => self.list("]").map(Node::List),
            Some(Token::Name(name)) => self.named(name),
            Some(token) => Err(format!("has {} where a value is expected", shown(&token))),
            None => Err("ends where a value is expected".to_owned()),
        }
    }

    fn named(&mut self, name: String) -> Result<Node, String> {
        match name.as_str() {
            "true" => return Ok(Node::Literal(true.into())),
            "false" => return Ok(Node::Literal(false.into())),
            "null" => return Ok(Node::Literal(Value::Null)),
            _ => {}
        }
        if self.take("(") {
            return self.function(&name);
        }
        let found = self.allowed.iter().find(|variable| variable.name() == name);
        let names =
            || self.allowed.iter().map(|variable| format!("`{}`", variable.name())).collect::<Vec<_>>().join(", ");
        found
            .map(|variable| Node::Variable(*variable))
            .ok_or_else(|| format!("refers to `{name}`; here there are {}", names()))
    }

    fn function(&mut self, name: &str) -> Result<Node, String> {
        if name == "has" {
            let inner = self.choice()?;
            self.expect(")")?;
            return match inner {
                Node::Field { of, name, optional: false } => Ok(Node::Has { of, name }),
                _ => Err("calls `has` of no field; `has(item.error)` is one".to_owned()),
            };
        }
        let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
            return Err(format!("calls `{name}`, which does not exist; there are has, {}", known.join(", ")));
        };
        let arguments = self.list(")")?;
        match arguments.len() {
            1 => Ok(Node::Call(*function, arguments)),
            given => Err(format!("calls `{name}` with {given} arguments, 1 is allowed")),
        }
    }

    fn method(&mut self, of: Node, name: &str) -> Result<Node, String> {
        let Some((_, function, allowed)) = METHODS.iter().find(|(known, _, _)| *known == name) else {
            let known: Vec<&str> = METHODS.iter().map(|(name, _, _)| *name).collect();
            return Err(format!("calls `{name}`, which no value has; values have {}", known.join(", ")));
        };
        let mut arguments = self.list(")")?;
        if !allowed.contains(&arguments.len()) {
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            return Err(format!(
                "calls `{name}` with {} arguments, {} are allowed",
                arguments.len(),
                allowed.join(" or ")
            ));
        }
        arguments.insert(0, of);
        Ok(Node::Call(*function, arguments))
    }

    /// Values between commas, up to the closing bracket.
    fn list(&mut self, closing: &str) -> Result<Vec<Node>, String> {
        let mut values = Vec::new();
        while !self.take(closing) {
            values.push(self.choice()?);
            if !self.take(",") {
                self.expect(closing)?;
                break;
            }
        }
        Ok(values)
    }
}

fn field(of: Node, name: String, optional: bool) -> Node {
    Node::Field { of: Box::new(of), name, optional }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("`{name}`"),
        Token::Text(text) => format!("the text '{text}'"),
        Token::Whole(number) => format!("the number {number}"),
        Token::Fraction(number) => format!("the number {number}"),
        Token::Sign(sign) => format!("`{sign}`"),
    }
}
