//! Scopes of switches and of cancellations. No I/O.

use std::fmt;

use crate::lane::Lane;

/// Everything, a kind, a target with all its partitions, or a lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Every lane, also of kinds that get their policies later.
    All,
    /// The lanes of a kind.
    Kind(String),
    /// The lanes of a target, however many partitions it has.
    Target {
        /// The kind.
        kind: String,
        /// The target.
        target: String,
    },
    /// One lane.
    Lane(Lane),
}

impl Scope {
    /// The kind, unless it is everything.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Kind(kind) | Self::Target { kind, .. } => Some(kind),
            Self::Lane(lane) => Some(&lane.kind),
        }
    }

    /// The target, if it has one.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::All | Self::Kind(_) => None,
            Self::Target { target, .. } => Some(target),
            Self::Lane(lane) => Some(&lane.target),
        }
    }

    /// The partition, if it is one lane.
    #[must_use]
    pub fn partition(&self) -> Option<u32> {
        match self {
            Self::Lane(lane) => Some(lane.partition),
            Self::All | Self::Kind(_) | Self::Target { .. } => None,
        }
    }

    /// Whether a lane is within it.
    #[must_use]
    pub fn covers(&self, lane: &Lane) -> bool {
        self.kind().is_none_or(|kind| kind == lane.kind)
            && self.target().is_none_or(|target| target == lane.target)
            && self.partition().is_none_or(|partition| partition == lane.partition)
    }

    /// The scopes that a lane is within, the widest first.
    #[must_use]
    pub fn of(lane: &Lane) -> [Self; 4] {
        let (kind, target) = (lane.kind.clone(), lane.target.clone());
        [Self::All, Self::Kind(kind.clone()), Self::Target { kind, target }, Self::Lane(lane.clone())]
    }

    /// Whether every lane of another scope is within this one.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        let same = |mine: Option<&str>, other: Option<&str>| mine.is_none() || mine == other;
        same(self.kind(), other.kind())
            && same(self.target(), other.target())
            && (self.partition().is_none() || self.partition() == other.partition())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("everything"),
            Self::Kind(kind) => write!(f, "kind `{kind}`"),
            Self::Target { kind, target } => write!(f, "target `{target}` of kind `{kind}`"),
            Self::Lane(lane) => write!(f, "lane `{lane}`"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_within_four_scopes() {
        let lane: Lane = "parcel:2:NY".parse().unwrap();
        let scopes = Scope::of(&lane);
        assert!(scopes.iter().all(|scope| scope.covers(&lane)));
        let within = |text: &str| scopes.iter().filter(|scope| scope.covers(&text.parse().unwrap())).count();
        assert_eq!(["parcel:1:NY", "parcel:2:NJ", "letter:2:NY"].map(within), [3, 2, 1]);
        for (at, scope) in scopes.iter().enumerate() {
            for (other_at, other) in scopes.iter().enumerate() {
                assert_eq!(scope.contains(other), at <= other_at, "{scope} {other}");
            }
        }
        assert!(!Scope::Kind("letter".to_owned()).contains(&scopes[3]));
    }
}
