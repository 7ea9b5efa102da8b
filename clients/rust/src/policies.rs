//! Policies.

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::client::Fanfold;
use crate::error::ClientError;

impl Fanfold {
    /// All policies, by kind.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn policies(&self) -> Result<Vec<Value>, ClientError> {
        let answer: Policies = self.http.call(Method::GET, "/policies", None, None).await?;
        Ok(answer.policies)
    }

    /// The policy of a kind, with its defaults.
    ///
    /// # Errors
    /// The kind has none (404, `unknown_policy`); see [`ClientError`].
    pub async fn policy(&self, kind: &str) -> Result<Value, ClientError> {
        self.http.call(Method::GET, &path(kind), None, None).await
    }

    /// Stores the policy of a kind in place of its earlier one. Returns it as it is stored.
    ///
    /// # Errors
    /// It cannot be used (422); see [`ClientError`].
    pub async fn put_policy(&self, kind: &str, policy: &Value) -> Result<Value, ClientError> {
        self.http.call(Method::PUT, &path(kind), Some(policy), None).await
    }

    /// Deletes the policy of a kind, and returns it. `force`: even if tasks of the kind wait; they are handled when the
    /// kind has a policy again. The client repeats a request without an answer: 404 may then mean that it had been
    /// carried out.
    ///
    /// # Errors
    /// The kind has none (404, `unknown_policy`), or tasks of the kind wait (409, `policy_in_use`); see [`ClientError`].
    pub async fn delete_policy(&self, kind: &str, force: bool) -> Result<Value, ClientError> {
        let query = if force { "?force=true" } else { "" };
        self.http.call(Method::DELETE, &format!("{}{query}", path(kind)), None, None).await
    }
}

/// No character of a kind needs escaping.
fn path(kind: &str) -> String {
    format!("/policies/{kind}")
}

#[derive(Deserialize)]
struct Policies {
    policies: Vec<Value>,
}
