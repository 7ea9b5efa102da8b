//! One change of one item: what it sets, adds and removes, and on what condition.

mod send;

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;

use super::{Item, Table};

/// A change of one item. Every attribute is named by a placeholder, so that none can be a reserved word of DynamoDB. In
/// conditions that are written out, `#name` stands for the attribute of that name.
#[derive(Debug)]
#[must_use = "a change is nothing until it is sent"]
pub(crate) struct Change<'a> {
    table: &'a Table,
    key: (&'static str, String),
    /// By `SET`, `REMOVE`, `ADD`, `DELETE`.
    clauses: BTreeMap<&'static str, Vec<String>>,
    conditions: Vec<String>,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Table {
    /// Begins a change of one item.
    pub(crate) fn change(&self, key: &'static str, id: impl ToString) -> Change<'_> {
        Change {
            table: self,
            key: (key, id.to_string()),
            clauses: BTreeMap::new(),
            conditions: Vec::new(),
            names: HashMap::new(),
            values: HashMap::new(),
        }
    }
}

impl<'a> Change<'a> {
    /// Sets an attribute, or an element of a map (`map.#name`, see [`Self::name`]).
    pub(crate) fn set(mut self, attribute: &str, value: AttributeValue) -> Self {
        let value = self.value(attribute, value);
        self.clause("SET", attribute, &format!(" = {value}"))
    }

    /// Sets an attribute, if there is a value.
    pub(crate) fn set_some(self, attribute: &str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.set(attribute, value),
            None => self,
        }
    }

    /// Sets attributes that have a value, and removes the others.
    pub(crate) fn put(self, attributes: impl IntoIterator<Item = (&'static str, Option<AttributeValue>)>) -> Self {
        attributes.into_iter().fold(self, |change, (attribute, value)| match value {
            Some(value) => change.set(attribute, value),
            None => change.remove([attribute]),
        })
    }

    /// Sets an attribute, unless it is set already.
    pub(crate) fn set_first(mut self, attribute: &str, value: AttributeValue) -> Self {
        let (path, value) = (self.path(attribute), self.value(attribute, value));
        self.clause("SET", attribute, &format!(" = if_not_exists({path}, {value})"))
    }

    /// Sets an attribute to another one's value.
    pub(crate) fn copy(mut self, attribute: &str, from: &str) -> Self {
        let from = self.path(from);
        self.clause("SET", attribute, &format!(" = {from}"))
    }

    /// Sets what is in `after` and not the same in `before`, and removes what is only in `before`.
    pub(crate) fn differences(mut self, before: &Item, after: &Item) -> Self {
        let mut attributes: Vec<&String> = after.keys().chain(before.keys()).collect();
        attributes.sort_unstable();
        attributes.dedup();
        for attribute in attributes {
            self = match (before.get(attribute), after.get(attribute)) {
                (before, Some(after)) if before != Some(after) => self.set(attribute, after.clone()),
                (Some(_), None) => self.remove([attribute.as_str()]),
                _ => self,
            };
        }
        self
    }

    /// Removes attributes.
    pub(crate) fn remove<'n>(self, attributes: impl IntoIterator<Item = &'n str>) -> Self {
        attributes.into_iter().fold(self, |change, attribute| change.clause("REMOVE", attribute, ""))
    }

    /// Adds to a number, or elements to a set; either may be absent.
    pub(crate) fn add(mut self, attribute: &str, value: AttributeValue) -> Self {
        let value = self.value(attribute, value);
        self.clause("ADD", attribute, &format!(" {value}"))
    }

    /// Adds elements to a set, if there are any.
    pub(crate) fn add_some(self, attribute: &str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.add(attribute, value),
            None => self,
        }
    }

    /// Subtracts from a number, which is there.
    pub(crate) fn subtract(mut self, attribute: &str, value: AttributeValue) -> Self {
        let (path, value) = (self.path(attribute), self.value(attribute, value));
        self.clause("SET", attribute, &format!(" = {path} - {value}"))
    }

    /// Takes elements out of a set.
    pub(crate) fn delete(mut self, attribute: &str, value: AttributeValue) -> Self {
        let value = self.value(attribute, value);
        self.clause("DELETE", attribute, &format!(" {value}"))
    }

    /// On condition that an attribute is this.
    pub(crate) fn when_is(mut self, attribute: &str, value: AttributeValue) -> Self {
        let (path, value) = (self.path(attribute), self.value(attribute, value));
        self.conditions.push(format!("{path} = {value}"));
        self
    }

    /// On condition that an attribute is this, or absent.
    pub(crate) fn when_same(self, attribute: &str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.when_is(attribute, value),
            None => self.when_absent(attribute),
        }
    }

    /// On condition that an attribute is there.
    pub(crate) fn when_present(mut self, attribute: &str) -> Self {
        let path = self.path(attribute);
        self.conditions.push(format!("attribute_exists({path})"));
        self
    }

    /// On condition that an attribute is not there.
    pub(crate) fn when_absent(mut self, attribute: &str) -> Self {
        let path = self.path(attribute);
        self.conditions.push(format!("attribute_not_exists({path})"));
        self
    }

    /// On a condition that is written out, with these values. No attribute that is set before may have the name of one.
    pub(crate) fn when(
        mut self,
        condition: &str,
        values: impl IntoIterator<Item = (&'static str, AttributeValue)>,
    ) -> Self {
        for name in condition.split('#').skip(1) {
            let name = &name[..name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len())];
            self.names.entry(format!("#{name}")).or_insert_with(|| name.to_owned());
        }
        for (name, value) in values {
            let before = self.values.insert(name.to_owned(), value);
            assert!(before.is_none(), "{name} stands for two values");
        }
        self.conditions.push(format!("({condition})"));
        self
    }

    /// Lets `#placeholder` stand for an attribute, or an element of a map, whose name is not known beforehand.
    pub(crate) fn name(mut self, placeholder: impl Into<String>, name: impl ToString) -> Self {
        self.names.insert(placeholder.into(), name.to_string());
        self
    }

    fn expressions(&self) -> (Option<String>, Option<String>) {
        let clauses: Vec<String> =
            self.clauses.iter().map(|(clause, parts)| format!("{clause} {}", parts.join(", "))).collect();
        let some = |text: String| (!text.is_empty()).then_some(text);
        (some(clauses.join(" ")), some(self.conditions.join(" AND ")))
    }

    fn clause(mut self, clause: &'static str, attribute: &str, rest: &str) -> Self {
        let path = self.path(attribute);
        self.clauses.entry(clause).or_default().push(format!("{path}{rest}"));
        self
    }

    /// The placeholders of a path, whose parts are names of attributes or placeholders themselves.
    fn path(&mut self, path: &str) -> String {
        let parts = path.split('.').map(|part| match part.strip_prefix('#') {
            Some(_) => part.to_owned(),
            None => {
                let placeholder = format!("#{part}");
                self.names.insert(placeholder.clone(), part.to_owned());
                placeholder
            }
        });
        parts.collect::<Vec<_>>().join(".")
    }

    /// The placeholder of a value: the name of its attribute, so that a request can be read.
    fn value(&mut self, attribute: &str, value: AttributeValue) -> String {
        let name = format!(":{}", attribute.replace(['.', '#'], "_"));
        let mut placeholder = name.clone();
        let mut n = 1;
        while self.values.contains_key(&placeholder) {
            n += 1;
            placeholder = format!("{name}{n}");
        }
        self.values.insert(placeholder.clone(), value);
        placeholder
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::aws::attributes::{number, text};
    use crate::clock::World;

    fn table() -> Table {
        let behavior = aws_sdk_dynamodb::config::BehaviorVersion::latest();
        let config = aws_sdk_dynamodb::Config::builder().behavior_version(behavior).build();
        Table::new(aws_sdk_dynamodb::Client::from_conf(config), "batches", World::system())
    }

    #[test]
    fn clauses_and_conditions_are_joined() {
        let table = table();
        let change = table
            .change("id", 7)
            .set("status", text("done"))
            .set_some("error", None)
            .add("tries", number(1_u32))
            .remove(["lease", "places.#me"])
            .name("#me", "x")
            .when_is("status", text("running"))
            .when("#ttl < :now OR attribute_not_exists(due)", [(":now", number(9_u32))]);
        let (update, condition) = change.expressions();
        assert_eq!(update.unwrap(), "ADD #tries :tries REMOVE #lease, #places.#me SET #status = :status");
        let wanted = "#status = :status2 AND (#ttl < :now OR attribute_not_exists(due))";
        assert_eq!(condition.unwrap(), wanted);
        let mut names: Vec<(&str, &str)> = change.names.iter().map(|(name, of)| (name.as_str(), of.as_str())).collect();
        names.sort_unstable();
        let wanted = [
            ("#lease", "lease"),
            ("#me", "x"),
            ("#places", "places"),
            ("#status", "status"),
            ("#tries", "tries"),
            ("#ttl", "ttl"),
        ];
        assert_eq!(names, wanted);
        assert_eq!(change.values.len(), 4);
    }

    #[test]
    fn only_differences_are_written() {
        let item = |pairs: &[(&str, u32)]| pairs.iter().map(|(name, n)| ((*name).to_owned(), number(*n))).collect();
        let (table, before, after): (Table, Item, Item) =
            (table(), item(&[("a", 1), ("b", 2), ("c", 3)]), item(&[("a", 1), ("b", 4), ("d", 5)]));
        let change = table.change("id", 7).differences(&before, &after);
        assert_eq!(change.expressions().0.unwrap(), "REMOVE #c SET #b = :b, #d = :d");
        assert_eq!(table.change("id", 7).differences(&before, &before).expressions(), (None, None));
    }
}
