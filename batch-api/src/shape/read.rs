//! Reading requests by the template that writes them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fanfold::mapping::{BodyFormat, MEMBERS};
use serde_json::{Map, Value, json};

use super::{SentCall, SentMember};

/// Reads a request.
///
/// # Errors
/// It is none that the template could have written: what is wrong, for people.
pub(super) fn call(template: &Value, format: BodyFormat, body: &[u8]) -> Result<SentCall, String> {
    let no_json = |error: serde_json::Error| format!("the request is not JSON: {error}");
    let body = match format {
        BodyFormat::Json => serde_json::from_slice(body).map_err(no_json)?,
        BodyFormat::Ndjson => {
            let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
            let lines: Result<Vec<Value>, _> = lines.map(serde_json::from_slice).collect();
            Value::Array(lines.map_err(no_json)?)
        }
    };
    let mut reader = Reader { call: SentCall { members: Vec::new(), with: Map::new() }, within: false };
    reader.value(template, &body, "")?;
    Ok(reader.call)
}

struct Reader {
    call: SentCall,
    /// Whether what is read belongs to the last member.
    within: bool,
}

impl Reader {
    /// Reads a value. `path`: where it is in the request.
    fn value(&mut self, template: &Value, value: &Value, path: &str) -> Result<(), String> {
        match template {
            Value::Object(fields) if fields.contains_key(MEMBERS) => {
                self.members(fields.get(MEMBERS).unwrap_or(&Value::Null), value, path)
            }
            Value::Object(fields) => fields.iter().try_for_each(|(name, template)| {
                let (name, optional) = name.strip_suffix('?').map_or((name.as_str(), false), |name| (name, true));
                let Value::Object(values) = value else { return Err(not(path, value, "an object")) };
                let found = match name.strip_prefix("${with.").and_then(|name| name.strip_suffix('}')) {
                    // What the only field is called is up to the policy.
                    Some(constant) => values.iter().next().map(|(name, value)| {
                        self.call.with.insert(constant.to_owned(), name.clone().into());
                        (name.as_str(), value)
                    }),
                    None => values.get(name).map(|value| (name, value)),
                };
                match found {
                    Some((name, value)) => self.value(template, value, &format!("{path}/{name}")),
                    None if optional => Ok(()),
                    None => Err(format!("the request has no `{path}/{name}`")),
                }
            }),
            Value::Array(templates) => {
                let values = value.as_array().filter(|values| values.len() == templates.len());
                let values = values.ok_or_else(|| not(path, value, &format!("a list of {}", templates.len())))?;
                let mut both = templates.iter().zip(values).enumerate();
                both.try_for_each(|(at, (template, value))| self.value(template, value, &format!("{path}/{at}")))
            }
            Value::String(text) => match text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
                Some(term) => self.term(term, value).ok_or_else(|| not(path, value, &format!("`{text}`"))),
                None if text.contains("${") || value == template => Ok(()),
                None => Err(not(path, value, &template.to_string())),
            },
            plain if value == plain => Ok(()),
            plain => Err(not(path, value, &plain.to_string())),
        }
    }

    fn members(&mut self, template: &Value, value: &Value, path: &str) -> Result<(), String> {
        let each = template.as_array().map_or(std::slice::from_ref(template), Vec::as_slice);
        let values = value.as_array().filter(|values| !values.is_empty() && values.len() % each.len().max(1) == 0);
        let values =
            values.ok_or_else(|| not(path, value, &format!("a list with {} values per member", each.len())))?;
        for (at, values) in values.chunks(each.len().max(1)).enumerate() {
            self.call.members.push(SentMember::default());
            self.within = true;
            for (template, value) in each.iter().zip(values) {
                self.value(template, value, &format!("{path}/{at}"))?;
            }
        }
        self.within = false;
        Ok(())
    }

    /// Takes what a term was written as. None: the term does not give such a value.
    fn term(&mut self, term: &str, value: &Value) -> Option<()> {
        let inner = |name: &str| term.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
        if let Some(inner) = inner("base64") {
            let bytes = STANDARD.decode(value.as_str()?).ok()?;
            return self.term(inner, &String::from_utf8(bytes).ok()?.into());
        }
        if let Some(inner) = inner("json") {
            return self.term(inner, &serde_json::from_str(value.as_str()?).ok()?);
        }
        if let Some(constant) = term.strip_prefix("with.") {
            self.call.with.insert(constant.to_owned(), value.clone());
            return Some(());
        }
        let member = self.call.members.last_mut().filter(|_| self.within)?;
        match term {
            "id" => member.id = Some(value.as_str()?.to_owned()),
            "index" | "string(index)" => member.tag = Some(value.clone()),
            "content" => member.content = value.clone(),
            _ => {
                let mut at = &mut member.content;
                for name in term.strip_prefix("content.")?.split('.') {
                    if !at.is_object() {
                        *at = json!({});
                    }
                    at = at.as_object_mut()?.entry(name).or_insert(Value::Null);
                }
                *at = value.clone();
            }
        }
        Some(())
    }
}

fn not(path: &str, value: &Value, expected: &str) -> String {
    let shown = fanfold::text::beginning(value.to_string().as_bytes(), 100);
    let path = if path.is_empty() { "/" } else { path };
    format!("`{path}` is {shown}, and {expected} is expected")
}
