//! Which fan-outs a command is about, as `fanfold list` finds them.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fanfold_client::{ListFanouts, State};

use super::moment::moment;

/// All states.
const STATES: [State; 6] =
    [State::Open, State::Sealed, State::Completed, State::Failed, State::Cancelled, State::Expired];

/// The states that a fan-out ends in.
pub(super) const ENDED: [State; 4] = [State::Completed, State::Failed, State::Cancelled, State::Expired];

/// The largest page of the API.
pub(super) const PAGE_MAX: u32 = 100;

/// A filter that the API applies.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Filter {
    /// Only fan-outs in one of these states, separated by commas.
    #[arg(long, value_name = "STATES", value_delimiter = ',', value_parser = states())]
    pub(super) state: Vec<State>,
    /// Only fan-outs with exactly this user key.
    #[arg(long, value_name = "KEY")]
    user_key: Option<String>,
    /// Only fan-outs whose user keys begin with this, sorted by user key.
    #[arg(long, value_name = "PREFIX", conflicts_with = "user_key")]
    user_key_prefix: Option<String>,
    /// Only fan-outs opened after this: `2h` (ago), `2026-11-23` (UTC), `2026-11-23T21:00:00Z`, or milliseconds
    /// since 1970.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    opened_after: Option<u64>,
    /// Only fan-outs opened before this.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    opened_before: Option<u64>,
}

fn states() -> impl TypedValueParser<Value = State> {
    let named = |name: String| STATES.into_iter().find(|state| state.name() == name).unwrap_or(State::Unknown);
    PossibleValuesParser::new(STATES.map(State::name)).map(named)
}

impl Filter {
    /// Whether every fan-out passes.
    pub(super) fn is_empty(&self) -> bool {
        let Self { state, user_key, user_key_prefix, opened_after, opened_before } = self;
        let prefix = user_key_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty());
        state.is_empty() && user_key.is_none() && !prefix && opened_after.is_none() && opened_before.is_none()
    }

    /// Whether many fan-outs may be read for one that passes.
    pub(super) fn is_sparse(&self) -> bool {
        !self.is_empty() && self.user_key.is_none() || !self.state.is_empty()
    }

    /// The list of those that pass.
    pub(super) fn list(self, oldest_first: bool, page: u32) -> ListFanouts {
        let Self { state, user_key, user_key_prefix, opened_after, opened_before } = self;
        ListFanouts {
            states: state,
            user_key,
            user_key_prefix,
            opened_after,
            opened_before,
            oldest_first,
            page: Some(page),
        }
    }
}
