//! What the steps in this process ask the tables without the SDK.

use aws_sdk_dynamodb::types::AttributeValue;
use fanfold::aws::{Embedded, EmbeddedUpdate, Item, Write};

use super::connector::Services;
use super::direct::{reads, value, writes};
use super::statements;
use crate::usage::Units;

impl Embedded for Services {
    fn get(&self, table: &str, key: (&str, &str), consistent: bool) -> Option<Option<Item>> {
        let (found, units) = reads::get(self.dynamodb.database(), table, value::key(key), consistent)?;
        let item = match found {
            Some(stored) => Some(stored.item()?),
            None => None,
        };
        self.meter.dynamodb("GetItem", Units::read(units));
        Some(item)
    }

    fn get_many(
        &self,
        table: &str,
        key: &str,
        values: &[&String],
        attributes: &[&str],
        consistent: bool,
    ) -> Option<Vec<Item>> {
        let keys = values.iter().map(|value| value::key((key, value))).collect();
        let names = attributes.iter().map(|name| (*name).to_owned()).collect();
        let names = Some(names).filter(|_| !attributes.is_empty());
        let (found, units) = reads::get_many(self.dynamodb.database(), table, keys, names, consistent)?;
        let items = found.into_iter().map(reads::Found::item).collect::<Option<Vec<Item>>>()?;
        self.meter.dynamodb("BatchGetItem", Units::read(units));
        Some(items)
    }

    fn put(&self, table: &str, item: &Item, condition: &str) -> Option<Write> {
        let (fate, units) = writes::put(self.dynamodb.database(), table, value::of_item(item)?, Some(condition))?;
        self.meter.dynamodb("PutItem", Units::write(units));
        Some(written(fate).map(drop))
    }

    fn update(&self, update: &EmbeddedUpdate<'_>) -> Option<Write<Option<Item>>> {
        let (fate, units) = writes::update(
            self.dynamodb.database(),
            writes::Update {
                table: update.table,
                key: value::key(update.key),
                update: update.update,
                condition: update.condition,
                names: update.names,
                values: value::of_item(update.values)?,
            },
        )?;
        self.meter.dynamodb("UpdateItem", Units::write(units));
        Some(written(fate).map(|new| update.wants_new.then(|| value::sdk_item(new))))
    }

    fn execute(&self, statement: &str, rows: &[&[AttributeValue]]) -> Option<Vec<Write>> {
        let (fates, units) = statements::execute(self.dynamodb.database(), statement, rows)?;
        self.meter.dynamodb("BatchExecuteStatement", Units::write(units));
        Some(fates)
    }
}

fn written(fate: writes::Fate) -> Write<dynoxide::types::Item> {
    match fate {
        writes::Fate::Written { item, .. } => Write::Done(item),
        writes::Fate::Refused(item) => Write::Refused(item.map(value::sdk_item)),
    }
}
