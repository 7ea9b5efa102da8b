//! The expressions of a request, parsed once per text.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use dynoxide::types::AttributeValue;
use serde::Deserialize;

use super::condition::Condition;
use super::path::{Names, Path};
use super::update::{Action, actions};

/// The expressions of a request, as it brings them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Expressions<'a> {
    #[serde(borrow)]
    update_expression: Option<Cow<'a, str>>,
    #[serde(borrow)]
    condition_expression: Option<Cow<'a, str>>,
}

impl<'a> Expressions<'a> {
    pub(super) fn new(update: Option<&'a str>, condition: Option<&'a str>) -> Self {
        Self { update_expression: update.map(Cow::Borrowed), condition_expression: condition.map(Cow::Borrowed) }
    }

    /// Those of a request; none if it has none.
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(body).ok().filter(|read| !read.are_none())
    }

    pub(super) fn are_none(&self) -> bool {
        self.update_expression.is_none() && self.condition_expression.is_none()
    }

    /// Both, to be found by.
    pub(super) fn text(&self) -> String {
        let text = |text: &Option<Cow<'a, str>>| text.as_deref().unwrap_or_default().to_owned();
        text(&self.update_expression) + "\n" + &text(&self.condition_expression)
    }
}

/// What expressions say.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) update: Vec<Action>,
    pub(super) condition: Option<Condition>,
    /// The names that stand for others.
    names: BTreeSet<String>,
    values: BTreeSet<String>,
}

impl Plan {
    /// The plan of expressions; none if they have any unusual form.
    pub(super) fn of(expressions: Expressions<'_>) -> Option<Self> {
        let update = match &expressions.update_expression {
            Some(text) => actions(text)?,
            None => Vec::new(),
        };
        let condition = match &expressions.condition_expression {
            Some(text) => Some(Condition::of(text)?),
            None => None,
        };
        let (mut names, mut values) = (BTreeSet::new(), BTreeSet::new());
        let mut path = |path: &Path| names.extend(path.iter().filter(|part| part.starts_with('#')).cloned());
        let mut value = |name: &String| {
            values.insert(name.clone());
        };
        update.iter().for_each(|action| action.visit(&mut path, &mut value));
        if let Some(condition) = &condition {
            condition.visit(&mut path, &mut value);
        }
        Some(Self { update, condition, names, values })
    }

    /// Whether these are the names and values that it needs, and no others.
    pub(super) fn fits(&self, names: &Names, values: &HashMap<String, AttributeValue>) -> bool {
        self.names.iter().eq(names.keys().collect::<BTreeSet<_>>())
            && self.values.iter().eq(values.keys().collect::<BTreeSet<_>>())
            && names.values().all(|name| !name.is_empty())
    }
}
