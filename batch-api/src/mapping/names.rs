//! To which member an item belongs.

use std::collections::HashMap;

use fanfold::limits::ENTRY_BYTES_MAX;
use fanfold::mapping::{Bindings, CompiledResponse, Match, Term, Variable};
use fanfold::text::beginning;
use fanfold::whole::FLOAT_WHOLE_MAX;
use serde_json::{Number, Value};

use crate::Call;

/// The members of a request, by what items name them with.
pub(super) enum Names {
    /// By their order.
    Order,
    /// By their positions.
    Positions(usize),
    /// By these texts. None: several members have it.
    Texts(HashMap<String, Option<usize>>),
}

impl Names {
    /// The names of the members that were sent.
    ///
    /// # Errors
    /// A member has no name.
    pub(super) fn of(
        response: &CompiledResponse,
        call: &Call,
        sent: &[usize],
        bindings: &Bindings<'_>,
    ) -> Result<Self, String> {
        match (response.matching, &response.member) {
            (Match::Exceptions, _) => return Ok(Self::Positions(sent.len())),
            (Match::Id | Match::Echo, Some(term)) => {
                let mut names = HashMap::with_capacity(sent.len());
                for (index, at) in sent.iter().enumerate() {
                    let name = name_of_member(term, call, *at, index, bindings)?;
                    names.entry(name).and_modify(|taken| *taken = None).or_insert(Some(index));
                }
                return Ok(Self::Texts(names));
            }
            _ => {}
        }
        Ok(Self::Order)
    }

    /// The position in the request of the member that an item names. `order`: the item's place among all items.
    ///
    /// # Errors
    /// It names none. The text continues from "its item …".
    pub(super) fn member(&self, term: Option<&Term>, item: &Bindings<'_>, order: usize) -> Result<usize, String> {
        let value = match (self, term) {
            (Self::Order, _) | (_, None) => return Ok(order),
            (_, Some(term)) => term.value(item).map_err(|error| format!("names no member: {error}"))?,
        };
        let shown = || beginning(value.to_string().as_bytes(), ENTRY_BYTES_MAX);
        match self {
            Self::Positions(members) => {
                let position = value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
                let position = position.and_then(|position| usize::try_from(position).ok());
                position.filter(|position| position < members).ok_or_else(|| {
                    format!("names the position {}, and there are {members} members, from 0 on", shown())
                })
            }
            Self::Texts(names) => match names.get(&text(&value)) {
                Some(Some(index)) => Ok(*index),
                Some(None) => Err(format!("names {}, which several members have", shown())),
                None => Err(format!("names {}, which no member has", shown())),
            },
            Self::Order => Ok(order),
        }
    }
}

/// The name of a member.
///
/// # Errors
/// The expression gives none.
pub(super) fn name_of_member(
    term: &Term,
    call: &Call,
    at: usize,
    index: usize,
    bindings: &Bindings<'_>,
) -> Result<String, String> {
    let Some(member) = call.members.get(at) else { return Ok(String::new()) };
    let (id, index) = (Value::String(member.id.to_string()), Value::from(index));
    let content = if term.reads_content() { serde_json::from_str(member.content.get()) } else { Ok(Value::Null) };
    let content = content.map_err(|error| error.to_string())?;
    let bindings = bindings.with(Variable::Id, &id).with(Variable::Index, &index).with(Variable::Content, &content);
    let bindings = bindings.with_raw(member.content.get());
    let value = term.value(&bindings).map_err(|error| format!("`batch_api.response.member`: {error}"))?;
    Ok(text(&value))
}

/// What names are compared by: a number and the same number as a text are one name, and so are 1 and 1.0. Fields of objects are in
/// the order of their names.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => plain(other).to_string(),
    }
}

/// The same value with whole numbers as such: an API may give back 1.0 for 1, or 1e3 for 1000.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(number).map_or_else(|| number.clone(), Number::from)),
        Value::Array(values) => values.iter().map(plain).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

/// The whole number that a float is, if it is one that a float holds exactly.
#[allow(clippy::cast_possible_truncation, reason = "it is a whole number of at most 53 bits")]
fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    (float.abs() <= FLOAT_WHOLE_MAX).then_some(float as i64)
}
