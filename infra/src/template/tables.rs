//! Tables of a template.

use super::TemplateError;
use super::field::Field;

/// A DynamoDB table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableResource {
    /// Its logical id, and its name in the embedded DynamoDB.
    pub name: String,
    /// Its primary key.
    pub key: Key,
    /// Its global secondary indexes, by name.
    pub indexes: Vec<Index>,
    /// The type of every key attribute (`S`, `N` or `B`), by name.
    pub attributes: Vec<(String, String)>,
    /// The attribute with the time at which an item expires.
    pub ttl: Option<String>,
}

/// A global secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: Key,
    /// What it holds beside keys.
    pub projection: Projection,
}

/// A key of a table or index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The partition key.
    pub hash: String,
    /// The sort key.
    pub range: Option<String>,
}

/// What an index holds beside keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    /// Every attribute.
    All,
    /// Nothing.
    KeysOnly,
    /// These attributes.
    Include(Vec<String>),
}

impl TableResource {
    pub(super) fn read(name: &str, properties: &Field<'_>) -> Result<Self, TemplateError> {
        if let Some(indexes) = properties.get("LocalSecondaryIndexes")? {
            return Err(indexes.wrong("the local runner does not know local secondary indexes"));
        }
        let mut attributes = Vec::new();
        for attribute in properties.require("AttributeDefinitions")?.items()? {
            attributes.push((attribute.require("AttributeName")?.text()?, attribute.require("AttributeType")?.text()?));
        }
        attributes.sort();
        let mut indexes = Vec::new();
        if let Some(list) = properties.get("GlobalSecondaryIndexes")? {
            for index in list.items()? {
                indexes.push(Index {
                    name: index.require("IndexName")?.text()?,
                    key: Key::read(&index.require("KeySchema")?)?,
                    projection: Projection::read(&index.require("Projection")?)?,
                });
            }
        }
        indexes.sort_by(|a, b| a.name.cmp(&b.name));
        let key = Key::read(&properties.require("KeySchema")?)?;
        Ok(Self { name: name.to_owned(), key, indexes, attributes, ttl: read_ttl(properties)? })
    }
}

impl Key {
    fn read(schema: &Field<'_>) -> Result<Self, TemplateError> {
        let (mut hash, mut range) = (None, None);
        for element in schema.items()? {
            let name = element.require("AttributeName")?.text()?;
            let kind = element.require("KeyType")?;
            match kind.text()?.as_str() {
                "HASH" => hash = Some(name),
                "RANGE" => range = Some(name),
                _ => return Err(kind.wrong("must be HASH or RANGE")),
            }
        }
        let hash = hash.ok_or_else(|| schema.wrong("must have a HASH key"))?;
        Ok(Self { hash, range })
    }
}

impl Projection {
    fn read(projection: &Field<'_>) -> Result<Self, TemplateError> {
        let kind = projection.require("ProjectionType")?;
        match kind.text()?.as_str() {
            "ALL" => Ok(Self::All),
            "KEYS_ONLY" => Ok(Self::KeysOnly),
            "INCLUDE" => {
                let names = projection.require("NonKeyAttributes")?.items()?;
                let mut names = names.iter().map(Field::text).collect::<Result<Vec<_>, _>>()?;
                names.sort();
                Ok(Self::Include(names))
            }
            _ => Err(kind.wrong("must be ALL, KEYS_ONLY or INCLUDE")),
        }
    }
}

fn read_ttl(properties: &Field<'_>) -> Result<Option<String>, TemplateError> {
    let Some(ttl) = properties.get("TimeToLiveSpecification")? else {
        return Ok(None);
    };
    if !ttl.require("Enabled")?.boolean()? {
        return Ok(None);
    }
    ttl.require("AttributeName")?.text().map(Some)
}
