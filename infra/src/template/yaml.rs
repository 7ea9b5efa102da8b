//! YAML with CloudFormation's short tags, read as the JSON it stands for: `!Ref X` is `{"Ref": "X"}`, `!Sub X` is
//! `{"Fn::Sub": "X"}`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Tagged;

use super::TemplateError;

/// Reads a whole template.
pub(super) fn parse(text: &str) -> Result<Value, TemplateError> {
    // Otherwise a resource with the logical id `On` could not be referred to.
    let options = serde_saphyr::options! { strict_booleans: true };
    let node = serde_saphyr::from_str_with_options(text, options);
    node.map(|Node(value)| value).map_err(|error| TemplateError::Yaml(error.to_string()))
}

/// A value whose tag, if it has one, was turned into the long form.
struct Node(Value);

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Tagged(Plain(value), tag) = Tagged::deserialize(deserializer)?;
        let Some(name) = tag.as_deref().and_then(|tag| tag.strip_prefix('!')) else {
            return Ok(Self(value));
        };
        let key = match name {
            "Ref" | "Condition" => name.to_owned(),
            _ => format!("Fn::{name}"),
        };
        Ok(Self(Value::Object(Map::from_iter([(key, value)]))))
    }
}

/// A value without its tag; what it holds may have tags.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor).map(Self)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Node::deserialize(deserializer).map(|node| node.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Node(value)) = items.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Node(value))) = entries.next_entry::<String, Node>()? {
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    #[test]
    fn short_tags_are_read_as_their_long_form() {
        let text = "
a: !Ref Table
b: !GetAtt Queue.Arn
c: !Sub '${AWS::StackName}-x'
d: !If [IsProd, !Ref Big, 1]
e: !Join ['-', [a, !Ref B]]
f: {Fn::Sub: plain}
g: !Sub ['${x}', {x: !Ref Y}]
h: !Equals
  - !Ref Stage
  - prod
";
        let expected = json!({
            "a": {"Ref": "Table"},
            "b": {"Fn::GetAtt": "Queue.Arn"},
            "c": {"Fn::Sub": "${AWS::StackName}-x"},
            "d": {"Fn::If": ["IsProd", {"Ref": "Big"}, 1]},
            "e": {"Fn::Join": ["-", ["a", {"Ref": "B"}]]},
            "f": {"Fn::Sub": "plain"},
            "g": {"Fn::Sub": ["${x}", {"x": {"Ref": "Y"}}]},
            "h": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]},
        });
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn scalars_keep_their_types() {
        let text = "a: 1\nb: true\nc: 2010-09-09\nd: '12'\ne: 1.5\nf:\ng: !Ref 12\n";
        let expected = json!({"a": 1, "b": true, "c": "2010-09-09", "d": "12", "e": 1.5, "f": null, "g": {"Ref": 12}});
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn an_error_names_the_line() {
        let error = parse("a: 1\nb: [1, 2\nc: 3\n").unwrap_err().to_string();
        assert!(error.contains("line 3") || error.contains("line 2"), "{error}");
    }
}
