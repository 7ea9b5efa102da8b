//! Where the fields of a YAML document stand.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_saphyr::Spanned;

use crate::job::yaml;

/// Line and column, from 1.
type LineColumn = (u64, u64);

/// The fields of a document, by their dotted paths, and where their values begin.
#[derive(Debug, Default)]
pub(super) struct Fields(BTreeMap<String, LineColumn>);

impl Fields {
    /// The fields of a document; none, if it cannot be read.
    pub(super) fn of(text: &str) -> Self {
        let tree = serde_saphyr::from_str_with_options::<Tree>(text, yaml::options());
        let mut fields = Self::default();
        if let Ok(tree) = tree {
            fields.add("", &tree);
        }
        fields
    }

    fn add(&mut self, path: &str, tree: &Tree) {
        for (name, inner) in &tree.0 {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.0.insert(path.clone(), (inner.referenced.line(), inner.referenced.column()));
            self.add(&path, &inner.value);
        }
    }

    /// The place of a field, or else of the field that it would be in, if there is one.
    pub(super) fn place(&self, field: &str) -> Option<LineColumn> {
        let mut field = field;
        loop {
            if let Some(place) = self.0.get(field) {
                return Some(*place);
            }
            (field, _) = field.rsplit_once('.')?;
        }
    }
}

/// The fields of a value, if it is a map.
#[derive(Debug, Default)]
struct Tree(Vec<(String, Spanned<Tree>)>);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Fork)
    }
}

struct Fork;

/// A scalar has no fields.
macro_rules! scalars {
    ($($method:ident: $type:ty),*) => {$(
        fn $method<E: de::Error>(self, _: $type) -> Result<Tree, E> {
            Ok(Tree::default())
        }
    )*};
}

impl<'de> Visitor<'de> for Fork {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    scalars! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

    fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::default())
    }

    fn visit_none<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Tree::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            fields.push((name, map.next_value()?));
        }
        Ok(Tree(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_where_they_stand() {
        let text =
            "kind: row\n# a comment\ntarget: 'a'\nbatch_api:\n  url: x\n  timeout: 1s\nbackoff: {base: 1s, max: 2s}\n";
        let fields = Fields::of(text);
        for (field, place) in [
            ("kind", Some((1, 7))),
            ("target", Some((3, 9))),
            ("batch_api.timeout", Some((6, 12))),
            ("backoff.max", Some((7, 26))),
            ("batch_api.command", fields.place("batch_api")),
            ("max_weight", None),
        ] {
            assert_eq!(fields.place(field), place, "{field}");
        }
        assert!(fields.place("batch_api").is_some());
        let json = Fields::of("{\n  \"kind\": \"row\",\n  \"batch_api\": {\"url\": \"x\"}\n}");
        assert_eq!(json.place("batch_api.url"), Some((3, 24)));
        assert!(Fields::of("[").0.is_empty() && Fields::of("x").0.is_empty());
    }
}
