//! Conditions.

use std::cmp::Ordering;
use std::collections::HashMap;

use dynoxide::types::{AttributeValue, Item};

use super::path::{Names, Path, get, resolve};
use super::text::Text;

/// A condition on an item.
#[derive(Debug)]
pub(super) enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Exists(Path),
    Absent(Path),
    Contains(Path, String),
    Compare(Operand, Holds, Operand),
}

/// Whether a comparison holds for how its sides compare.
type Holds = fn(Ordering) -> bool;

#[derive(Debug)]
pub(super) enum Operand {
    Path(Path),
    Size(Path),
    Value(String),
}

/// What a condition is about.
pub(super) struct Subject<'a> {
    pub(super) item: &'a Item,
    pub(super) names: &'a Names,
    pub(super) values: &'a HashMap<String, AttributeValue>,
}

impl Condition {
    /// The condition that a text says; none if it has any other form.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut text = Text(text);
        let condition = any(&mut text)?;
        text.0.is_empty().then_some(condition)
    }

    /// Visits its paths and names of values.
    pub(super) fn visit<'a>(&'a self, path: &mut dyn FnMut(&'a Path), value: &mut dyn FnMut(&'a String)) {
        match self {
            Self::Any(all) | Self::All(all) => all.iter().for_each(|one| one.visit(path, value)),
            Self::Exists(of) | Self::Absent(of) => path(of),
            Self::Contains(of, element) => {
                path(of);
                value(element);
            }
            Self::Compare(left, _, right) => {
                for operand in [left, right] {
                    match operand {
                        Operand::Path(of) | Operand::Size(of) => path(of),
                        Operand::Value(name) => value(name),
                    }
                }
            }
        }
    }

    /// Whether it holds; none if the engine has to decide.
    pub(super) fn holds(&self, subject: &Subject<'_>) -> Option<bool> {
        match self {
            Self::Any(all) => first(all, subject, true),
            Self::All(all) => first(all, subject, false),
            Self::Exists(path) => Some(subject.get(path)?.is_some()),
            Self::Absent(path) => Some(subject.get(path)?.is_none()),
            Self::Contains(path, element) => match (subject.get(path)?, subject.values.get(element)?) {
                (None, _) => Some(false),
                (Some(AttributeValue::SS(set)), AttributeValue::S(element)) => Some(set.contains(element)),
                (Some(AttributeValue::BS(set)), AttributeValue::B(element)) => Some(set.contains(element)),
                _ => None,
            },
            Self::Compare(left, holds, right) => {
                let (Some(left), Some(right)) = (subject.operand(left)?, subject.operand(right)?) else {
                    return Some(false);
                };
                Some(holds(left.compare(&right)?))
            }
        }
    }
}

/// Looks for the first of many that decides: one that comes to `decides`.
fn first(all: &[Condition], subject: &Subject<'_>, decides: bool) -> Option<bool> {
    for one in all {
        if one.holds(subject)? == decides {
            return Some(decides);
        }
    }
    Some(!decides)
}

/// What is compared.
enum Compared<'a> {
    Value(&'a AttributeValue),
    Size(usize),
}

impl Subject<'_> {
    /// What is at a path of a plan; nothing at all if a name of it stands for nothing.
    fn get(&self, path: &Path) -> Option<Option<&AttributeValue>> {
        Some(get(self.item, &resolve(path, self.names)?))
    }

    fn operand(&self, operand: &Operand) -> Option<Option<Compared<'_>>> {
        Some(match operand {
            Operand::Value(name) => Some(Compared::Value(self.values.get(name)?)),
            Operand::Path(path) => self.get(path)?.map(Compared::Value),
            Operand::Size(path) => match self.get(path)? {
                None => None,
                Some(AttributeValue::BS(set)) => Some(Compared::Size(set.len())),
                Some(AttributeValue::SS(set)) => Some(Compared::Size(set.len())),
                Some(AttributeValue::M(map)) => Some(Compared::Size(map.len())),
                Some(_) => return None,
            },
        })
    }
}

impl Compared<'_> {
    /// Which is larger. Numbers are compared if they are whole, other values than strings and bytes not at all.
    fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Value(AttributeValue::S(left)), Self::Value(AttributeValue::S(right))) => Some(left.cmp(right)),
            (Self::Value(AttributeValue::B(left)), Self::Value(AttributeValue::B(right))) => Some(left.cmp(right)),
            _ => Some(self.whole()?.cmp(&other.whole()?)),
        }
    }

    fn whole(&self) -> Option<i128> {
        match self {
            Self::Value(value) => whole(value),
            Self::Size(size) => i128::try_from(*size).ok(),
        }
    }
}

/// A whole number.
pub(super) fn whole(value: &AttributeValue) -> Option<i128> {
    match value {
        AttributeValue::N(number) => number.parse().ok(),
        _ => None,
    }
}

fn any(text: &mut Text<'_>) -> Option<Condition> {
    let mut all = vec![every(text)?];
    while text.take(" OR ") {
        all.push(every(text)?);
    }
    Some(Condition::Any(all))
}

fn every(text: &mut Text<'_>) -> Option<Condition> {
    let mut all = vec![one(text)?];
    while text.take(" AND ") {
        all.push(one(text)?);
    }
    Some(Condition::All(all))
}

fn one(text: &mut Text<'_>) -> Option<Condition> {
    let condition = if text.take("(") {
        any(text)?
    } else if text.take("attribute_exists(") {
        Condition::Exists(text.path()?)
    } else if text.take("attribute_not_exists(") {
        Condition::Absent(text.path()?)
    } else if text.take("contains(") {
        let path = text.path()?;
        text.skip(", ")?;
        Condition::Contains(path, text.value()?)
    } else {
        let left = operand(text)?;
        let holds = comparison(text)?;
        return Some(Condition::Compare(left, holds, operand(text)?));
    };
    text.skip(")")?;
    Some(condition)
}

fn operand(text: &mut Text<'_>) -> Option<Operand> {
    if text.take("size(") {
        let path = text.path()?;
        text.skip(")")?;
        return Some(Operand::Size(path));
    }
    match text.value() {
        Some(value) => Some(Operand::Value(value)),
        None => text.path().map(Operand::Path),
    }
}

fn comparison(text: &mut Text<'_>) -> Option<Holds> {
    let all: [(&str, Holds); 5] = [
        (" = ", Ordering::is_eq),
        (" < ", Ordering::is_lt),
        (" <= ", Ordering::is_le),
        (" > ", Ordering::is_gt),
        (" >= ", Ordering::is_ge),
    ];
    all.into_iter().find_map(|(sign, holds)| text.take(sign).then_some(holds))
}
