//! What an update does to an item.

use std::collections::HashMap;

use dynoxide::types::{AttributeValue, Item};

use super::condition::{Subject, whole};
use super::path::{Path, get, holder, resolve};
use super::text::Text;

/// One thing that an update does.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) path: Path,
    does: Does,
}

#[derive(Debug)]
enum Does {
    Set(Source),
    Remove,
    Add(String),
    Delete(String),
}

/// Where a value that is set comes from.
#[derive(Debug)]
enum Source {
    Value(String),
    Copy(Path),
    /// What is there, or else a value.
    First(Path, String),
    Minus(Path, String),
}

/// What is done to an attribute, when all values are known.
enum Write<'a> {
    Set(AttributeValue),
    Remove,
    Add(&'a AttributeValue),
    Delete(&'a AttributeValue),
}

/// The actions that a text says; none if it has any other form.
pub(super) fn actions(text: &str) -> Option<Vec<Action>> {
    let (mut text, mut actions) = (Text(text), Vec::new());
    loop {
        let clause = ["SET ", "REMOVE ", "ADD ", "DELETE "].into_iter().find(|clause| text.take(clause))?;
        loop {
            let path = text.path()?;
            let does = match clause {
                "SET " => {
                    text.skip(" = ")?;
                    Does::Set(source(&mut text)?)
                }
                "REMOVE " => Does::Remove,
                _ => {
                    text.skip(" ")?;
                    let value = text.value()?;
                    if clause == "ADD " { Does::Add(value) } else { Does::Delete(value) }
                }
            };
            actions.push(Action { path, does });
            if !text.take(", ") {
                break;
            }
        }
        if text.0.is_empty() {
            return Some(actions);
        }
        text.skip(" ")?;
    }
}

fn source(text: &mut Text<'_>) -> Option<Source> {
    if let Some(value) = text.value() {
        return Some(Source::Value(value));
    }
    if text.take("if_not_exists(") {
        let path = text.path()?;
        text.skip(", ")?;
        let value = text.value()?;
        text.skip(")")?;
        return Some(Source::First(path, value));
    }
    let path = text.path()?;
    Some(match text.take(" - ") {
        true => Source::Minus(path, text.value()?),
        false => Source::Copy(path),
    })
}

impl Action {
    /// Visits its paths and names of values.
    pub(super) fn visit<'a>(&'a self, path: &mut dyn FnMut(&'a Path), value: &mut dyn FnMut(&'a String)) {
        path(&self.path);
        match &self.does {
            Does::Set(Source::Copy(from)) => path(from),
            Does::Set(Source::First(from, name) | Source::Minus(from, name)) => {
                path(from);
                value(name);
            }
            Does::Set(Source::Value(name)) | Does::Add(name) | Does::Delete(name) => value(name),
            Does::Remove => {}
        }
    }

    fn write<'a>(&self, subject: &Subject<'a>) -> Option<Write<'a>> {
        let value = |name: &String| subject.values.get(name);
        let at = |path: &Path| Some(get(subject.item, &resolve(path, subject.names)?));
        Some(match &self.does {
            Does::Set(source) => Write::Set(match source {
                Source::Value(name) => value(name)?.clone(),
                Source::Copy(from) => at(from)??.clone(),
                Source::First(from, name) => at(from)?.or(value(name)).cloned()?,
                Source::Minus(from, name) => AttributeValue::N((whole(at(from)??)? - whole(value(name)?)?).to_string()),
            }),
            Does::Remove => Write::Remove,
            Does::Add(name) => Write::Add(value(name)?),
            Does::Delete(name) => Write::Delete(value(name)?),
        })
    }
}

/// The item as actions leave it; none if the engine has to decide.
pub(super) fn apply(actions: &[Action], subject: &Subject<'_>, key: &str) -> Option<Item> {
    let mut new = subject.item.clone();
    let paths: Vec<Vec<&str>> =
        actions.iter().map(|action| resolve(&action.path, subject.names)).collect::<Option<_>>()?;
    let overlap = |a: &[&str], b: &[&str]| a.iter().zip(b).all(|(a, b)| a == b);
    let clear =
        |(n, path): (usize, &Vec<&str>)| path[0] != key && paths[..n].iter().all(|before| !overlap(before, path));
    if !paths.iter().enumerate().all(clear) {
        return None;
    }
    for (action, path) in actions.iter().zip(&paths) {
        let (holder, name) = holder(&mut new, path)?;
        match action.write(subject)? {
            Write::Set(value) => drop(holder.insert(name.to_owned(), value)),
            Write::Remove => drop(holder.remove(name)),
            Write::Add(value) => add(holder, name, value)?,
            Write::Delete(value) => delete(holder, name, value)?,
        }
    }
    Some(new)
}

fn add(holder: &mut HashMap<String, AttributeValue>, name: &str, value: &AttributeValue) -> Option<()> {
    use AttributeValue::{BS, N, SS};
    match (holder.get_mut(name), value) {
        (None, N(_) | SS(_) | BS(_)) => drop(holder.insert(name.to_owned(), value.clone())),
        (Some(there), N(_)) => *there = N((whole(there)? + whole(value)?).to_string()),
        (Some(SS(there)), SS(more)) => unite(there, more),
        (Some(BS(there)), BS(more)) => unite(there, more),
        _ => return None,
    }
    Some(())
}

fn delete(holder: &mut HashMap<String, AttributeValue>, name: &str, value: &AttributeValue) -> Option<()> {
    use AttributeValue::{BS, SS};
    let is_empty = match (holder.get_mut(name), value) {
        (None, SS(_) | BS(_)) => false,
        (Some(SS(there)), SS(less)) => without(there, less),
        (Some(BS(there)), BS(less)) => without(there, less),
        _ => return None,
    };
    if is_empty {
        holder.remove(name);
    }
    Some(())
}

/// Adds the elements of a set to another, which stays in its order.
fn unite<T: Ord + Clone>(set: &mut Vec<T>, more: &[T]) {
    set.extend_from_slice(more);
    set.sort_unstable();
    set.dedup();
}

/// Takes elements out of a set. Returns whether none is left.
fn without<T: PartialEq>(set: &mut Vec<T>, less: &[T]) -> bool {
    set.retain(|element| !less.contains(element));
    set.is_empty()
}
