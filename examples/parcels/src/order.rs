//! One order, read from a member's content.

use serde_json::{Map, Value};

/// The columns of an order that matter to a truck.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) name: String,
    pub(crate) zip_code: String,
    pub(crate) city: String,
    pub(crate) state: String,
    pub(crate) depot: String,
    /// As it was written, so that the manifest shows the number the customer gave.
    pub(crate) weight_text: String,
    pub(crate) weight_kg: f64,
}

/// What is wrong with an order's content.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum OrderError {
    #[error("the content is not an object with the order's columns")]
    NotAnObject,
    #[error("the column `{0}` is missing")]
    Missing(&'static str),
    #[error("the column `{0}` is not a text")]
    NotText(&'static str),
    #[error("the column `{0}` is empty")]
    Empty(&'static str),
    #[error("the column `weight_kg` is `{0}`, which is not a weight in kilograms, above 0")]
    NotAWeight(String),
}

impl Order {
    /// Reads the columns it needs and leaves the others alone.
    pub(crate) fn read(content: &Value) -> Result<Self, OrderError> {
        let columns = content.as_object().ok_or(OrderError::NotAnObject)?;
        let weight_text = match columns.get("weight_kg") {
            // A producer that is not a CSV file may well send a number.
            Some(Value::Number(number)) => number.to_string(),
            _ => text(columns, "weight_kg")?,
        };
        let weight_kg = match weight_text.trim().parse::<f64>() {
            Ok(weight) if weight.is_finite() && weight > 0.0 => weight,
            _ => return Err(OrderError::NotAWeight(weight_text)),
        };
        Ok(Self {
            name: text(columns, "order")?,
            zip_code: text(columns, "zip_code")?,
            city: text(columns, "city")?,
            state: text(columns, "state")?,
            depot: text(columns, "depot")?,
            weight_text,
            weight_kg,
        })
    }
}

fn text(columns: &Map<String, Value>, column: &'static str) -> Result<String, OrderError> {
    match columns.get(column) {
        None | Some(Value::Null) => Err(OrderError::Missing(column)),
        Some(Value::String(text)) if text.trim().is_empty() => Err(OrderError::Empty(column)),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(OrderError::NotText(column)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn content() -> Value {
        json!({"order": "ORD-000007", "depot": "117", "state": "NY", "zip_code": "11742", "city": "Holtsville",
               "county": "Suffolk", "latitude": "40.9", "longitude": "-72.6", "weight_kg": "4.10"})
    }

    #[test]
    fn a_row_is_read_and_the_weight_kept_as_written() {
        let order = Order::read(&content()).unwrap();
        assert_eq!((order.name.as_str(), order.depot.as_str()), ("ORD-000007", "117"));
        assert_eq!((order.weight_text.as_str(), order.weight_kg), ("4.10", 4.1));
    }

    #[test]
    fn a_weight_may_be_a_number() {
        let mut content = content();
        content["weight_kg"] = json!(2.5);
        assert_eq!(Order::read(&content).unwrap().weight_text, "2.5");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for column in ["order", "depot", "state", "zip_code", "city", "weight_kg"] {
            let mut missing = content();
            missing.as_object_mut().unwrap().remove(column);
            assert_eq!(Order::read(&missing), Err(OrderError::Missing(column)));
            let mut empty = content();
            empty[column] = json!(" ");
            assert_eq!(Order::read(&empty), Err(OrderError::Empty(column)));
            let mut list = content();
            list[column] = json!([1]);
            assert_eq!(Order::read(&list), Err(OrderError::NotText(column)));
        }
        for weight in ["heavy", "-1", "0", "NaN", "inf"] {
            let mut wrong = content();
            wrong["weight_kg"] = json!(weight);
            assert_eq!(Order::read(&wrong), Err(OrderError::NotAWeight(weight.to_owned())));
        }
        assert_eq!(Order::read(&json!("ORD-000007")), Err(OrderError::NotAnObject));
    }
}
