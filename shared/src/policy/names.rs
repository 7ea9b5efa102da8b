//! Whether an expression uses only names that exist. CEL looks names up when it evaluates: without this check, a policy with a
//! misspelt name would be accepted, and every task of its kind refused.

use std::fmt;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr};

use super::tree::parts;

/// What an expression may refer to.
const VARIABLES: [&str; 2] = ["kind", "content"];

/// Functions that are called by themselves, `size(x)`, with how many arguments each takes.
const FUNCTIONS: [(&str, &[usize]); 14] = [
    ("bool", &[1]),
    ("bytes", &[1]),
    ("double", &[1]),
    ("dyn", &[1]),
    ("int", &[1]),
    ("matches", &[2]),
    ("optional.none", &[0]),
    ("optional.of", &[1]),
    ("optional.ofNonZeroValue", &[1]),
    ("size", &[1]),
    ("string", &[1]),
    ("strings.quote", &[1]),
    ("type", &[1]),
    ("uint", &[1]),
];

/// Functions of a value, `x.size()`, with how many arguments each takes.
const METHODS: [(&str, &[usize]); 21] = [
    ("charAt", &[1]),
    ("contains", &[1]),
    ("endsWith", &[1]),
    ("format", &[1]),
    ("hasValue", &[0]),
    ("indexOf", &[1, 2]),
    ("join", &[0, 1]),
    ("lastIndexOf", &[1, 2]),
    ("lowerAscii", &[0]),
    ("matches", &[1]),
    ("or", &[1]),
    ("orValue", &[1]),
    ("replace", &[2, 3]),
    ("reverse", &[0]),
    ("size", &[0]),
    ("split", &[1, 2]),
    ("startsWith", &[1]),
    ("substring", &[1, 2]),
    ("trim", &[0]),
    ("upperAscii", &[0]),
    ("value", &[0]),
];

/// A name in an expression that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// A variable.
    Variable(String),
    /// A function; whether it is called as one of a value.
    Function { name: String, method: bool },
    /// A function that exists, but not with this number of arguments.
    Arguments { name: String, given: usize, allowed: &'static [usize] },
    /// A type of a literal value.
    Type(String),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "refers to `{name}`; a task has `kind` and `content`"),
            Self::Function { name, method: true } if find(&FUNCTIONS, name).is_some() => {
                write!(f, "calls `{name}` of a value, but it is called by itself: `{name}(…)`")
            }
            Self::Function { name, method: false } if find(&METHODS, name).is_some() => {
                write!(f, "calls `{name}` by itself, but it is called of a value: `content.field.{name}(…)`")
            }
            Self::Function { name, method: true } => {
                write!(f, "calls `{name}`, which no value has; values have {}", Names(&METHODS))
            }
            Self::Function { name, method: false } => {
                write!(f, "calls `{name}`, which does not exist; there are has, {}", Names(&FUNCTIONS))
            }
            Self::Arguments { name, given, allowed } => {
                let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "calls `{name}` with {given} arguments, {} allowed",
                    match allowed.as_slice() {
                        [one] if one == "1" => "1 is".to_owned(),
                        _ => format!("{} are", allowed.join(" or ")),
                    }
                )
            }
            Self::Type(name) => write!(f, "makes a value of the type `{name}`, which does not exist"),
        }
    }
}

/// The names of functions as errors list them.
struct Names(&'static [(&'static str, &'static [usize])]);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (name, _)) in self.0.iter().enumerate() {
            write!(f, "{}{name}", if n > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

fn find(functions: &[(&str, &'static [usize])], name: &str) -> Option<&'static [usize]> {
    functions.iter().find(|(known, _)| *known == name).map(|(_, allowed)| *allowed)
}

/// Looks for names that do not exist.
pub(super) fn check(expression: &IdedExpr) -> Result<(), Unknown> {
    match &expression.expr {
        Expr::Ident(name) if !VARIABLES.contains(&name.as_str()) => return Err(Unknown::Variable(name.clone())),
        Expr::Struct(fields) => return Err(Unknown::Type(fields.type_name.clone())),
        Expr::Call(call) => {
            if let Some(name) = qualified(call) {
                arguments(&FUNCTIONS, &name, call, false)?;
                return call.args.iter().try_for_each(check);
            }
            if !is_operator(&call.func_name) {
                let method = call.target.is_some();
                arguments(if method { &METHODS } else { &FUNCTIONS }, &call.func_name, call, method)?;
            }
        }
        _ => {}
    }
    parts(expression).into_iter().try_for_each(check)
}

fn arguments(functions: &[(&str, &'static [usize])], name: &str, call: &CallExpr, method: bool) -> Result<(), Unknown> {
    let Some(allowed) = find(functions, name) else {
        return Err(Unknown::Function { name: name.to_owned(), method });
    };
    let given = call.args.len();
    if allowed.contains(&given) { Ok(()) } else { Err(Unknown::Arguments { name: name.to_owned(), given, allowed }) }
}

/// The name of a function with a dot in it, which is parsed like a function of a value: `strings.quote(x)`.
fn qualified(call: &CallExpr) -> Option<String> {
    let Expr::Ident(first) = &call.target.as_ref()?.expr else { return None };
    let name = format!("{first}.{}", call.func_name);
    find(&FUNCTIONS, &name).map(|_| name)
}

/// Operators are calls, too: `_+_`, `!_`, `@in`. No name of a function has such a character.
fn is_operator(name: &str) -> bool {
    !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::policy::{Expression, Subject};
    use serde_json::json;

    fn compile(source: &str) -> Result<(), String> {
        Expression::compile(source).map(drop).map_err(|error| error.to_string())
    }

    /// Whether CEL itself has a function for these values: it says so before it looks at the values.
    fn known(env: &Arc<cel::Env>, source: &str) -> bool {
        let outcome = env.compile(source).unwrap().execute(&cel::Context::with_env(Arc::clone(env)));
        !matches!(
            outcome,
            Err(cel::ExecutionError::UndeclaredReference(_) | cel::ExecutionError::NoSuchOverload { .. })
        )
    }

    /// Whether some values are taken as so many arguments.
    fn taken(env: &Arc<cel::Env>, call: &dyn Fn(&str) -> String, arguments: usize) -> bool {
        // The functions there are take a text or a number after the first.
        let values = |n| if n == 0 { vec!["'a'", "1", "['a']", "optional.of(1)"] } else { vec!["'a'", "1"] };
        let mut lists = vec![String::new()];
        for n in 0..arguments {
            let comma = if n > 0 { ", " } else { "" };
            let longer = |list: &String| -> Vec<String> {
                values(n).iter().map(|value| format!("{list}{comma}{value}")).collect()
            };
            lists = lists.iter().flat_map(longer).collect();
        }
        lists.iter().any(|list| known(env, &call(list)))
    }

    #[test]
    fn the_functions_are_those_of_cel_with_as_many_arguments() {
        let mut env = cel::Env::stdlib();
        env.add_extension(cel::extensions::strings).unwrap();
        env.add_extension(crate::policy::matches::extension).unwrap();
        let env = Arc::new(env);
        for (name, allowed) in FUNCTIONS {
            for given in 0..=3 {
                assert_eq!(
                    taken(&env, &|list| format!("{name}({list})"), given),
                    allowed.contains(&given),
                    "{name}/{given}"
                );
            }
        }
        let targets = ["'a'", "['a']", "optional.of(1)"];
        for (name, allowed) in METHODS {
            for given in 0..=3 {
                let taken = targets.iter().any(|target| taken(&env, &|list| format!("{target}.{name}({list})"), given));
                assert_eq!(taken, allowed.contains(&given), "{name}/{given}");
            }
        }
    }

    #[test]
    fn what_does_not_exist_is_named_with_what_does() {
        for (source, problem) in [
            ("content.a.lowercase()", "calls `lowercase`, which no value has; values have charAt, "),
            ("lower(content.a)", "calls `lower`, which does not exist; there are has, bool, "),
            ("lowerAscii(content.a)", "it is called of a value: `content.field.lowerAscii(…)`"),
            ("content.a.string()", "it is called by itself: `string(…)`"),
            ("content.a.substring()", "calls `substring` with 0 arguments, 1 or 2 are allowed"),
            ("size(content.a, 1)", "calls `size` with 2 arguments, 1 is allowed"),
            ("[{'a': content.b.frob()}][0].a", "calls `frob`"),
            ("true ? kind : frob(kind)", "calls `frob`"),
            ("kind + order.id", "refers to `order`; a task has `kind` and `content`"),
            ("math.abs(content.n)", "calls `abs`, which no value has"),
            ("strings.quoted(content.n)", "calls `quoted`"),
            ("strings.quote()", "calls `strings.quote` with 0 arguments, 1 is allowed"),
            ("Order{id: content.a}", "makes a value of the type `Order`, which does not exist"),
            ("timestamp(content.at)", "calls `timestamp`, which does not exist"),
            ("__proto__", "refers to `__proto__`"),
        ] {
            let error = compile(source).unwrap_err();
            assert!(error.contains(problem), "{source}: {error}");
        }
    }

    #[test]
    fn what_exists_is_taken() {
        let content = json!({"a": "Ab", "n": 7, "l": ["x"], "m": {"z": 1}});
        for (source, value) in [
            ("has(content.a) && !has(content.b) ? content.a : 'none'", "Ab"),
            ("strings.quote(content.a)", "\"Ab\""),
            ("content.?b.orValue('none')", "none"),
            ("optional.of(content.n).value()", "7"),
            ("string(content.n % 2u) + content.l[0]", "1x"),
            ("'z' in content.m ? size(content.l) : 0", "1"),
            ("content.a.lowerAscii().substring(0, 1)", "a"),
        ] {
            let text = Expression::compile(source).unwrap().evaluate(&Subject::new("parcel", &content).unwrap());
            assert_eq!(text.as_deref(), Ok(value), "{source}");
        }
    }
}
