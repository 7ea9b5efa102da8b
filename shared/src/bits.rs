//! Bitfields: one bit per item, least significant bit first (item `i` is bit `i % 8` of byte `i / 8`).

/// A set of small indices, packed one bit each. Trailing bytes that are absent read as zero.
#[derive(Clone, Debug, Default)]
pub struct Bits(Vec<u8>);

impl PartialEq for Bits {
    /// Whether the same bits are set, however many bytes there are.
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Bits {}

impl Bits {
    /// The first `size` bits set, the padding of the last byte clear.
    #[must_use]
    pub fn ones(size: usize) -> Self {
        let mut bytes = vec![0xff; size.div_ceil(8)];
        if !size.is_multiple_of(8)
            && let Some(last) = bytes.last_mut()
        {
            *last = (1 << (size % 8)) - 1;
        }
        Self(bytes)
    }

    /// Takes packed bytes as they are stored.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The packed bytes, as they are stored.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether bit `index` is set.
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        self.0.get(index / 8).is_some_and(|byte| byte & (1 << (index % 8)) != 0)
    }

    /// Sets bit `index`, growing as needed.
    pub fn set(&mut self, index: usize) {
        let byte = index / 8;
        if byte >= self.0.len() {
            self.0.resize(byte + 1, 0);
        }
        self.0[byte] |= 1 << (index % 8);
    }

    /// Sets all bits from `first` to `last`, growing as needed.
    pub(crate) fn set_all(&mut self, first: usize, last: usize) {
        if last / 8 >= self.0.len() {
            self.0.resize(last / 8 + 1, 0);
        }
        for (at, byte) in self.0.iter_mut().enumerate().take(last / 8 + 1).skip(first / 8) {
            let from = 0xff_u8 << first.saturating_sub(at * 8);
            *byte |= from & (0xff >> (7 - (last - at * 8).min(7)));
        }
    }

    /// How many bits are set.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }

    /// Whether no bit is set.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|byte| *byte == 0)
    }

    /// The highest set bit.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        let byte = self.0.iter().rposition(|byte| *byte != 0)?;
        Some(byte * 8 + 7 - self.0[byte].leading_zeros() as usize)
    }

    /// The set bits, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(at, byte)| (0..8).filter(move |bit| byte & (1 << bit) != 0).map(move |bit| at * 8 + bit))
    }

    /// Runs of set bits, each from its first to its last, ascending.
    pub fn runs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let mut bits = self.iter().peekable();
        std::iter::from_fn(move || {
            let first = bits.next()?;
            let mut last = first;
            while bits.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            Some((first, last))
        })
    }

    /// Bits in both. The result is as long as `self`.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// Bits of `self` that are not in `other`. The result is as long as `self`, so a stored field keeps its length.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    /// Adds every bit of `other`, growing as needed.
    pub fn merge(&mut self, other: &Self) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    fn zip(&self, other: &Self, combine: impl Fn(u8, u8) -> u8) -> Self {
        let both = self.0.len().min(other.0.len());
        let (mine, rest) = self.0.split_at(both);
        let mut bytes = Vec::with_capacity(self.0.len());
        bytes.extend(mine.iter().zip(&other.0[..both]).map(|(a, b)| combine(*a, *b)));
        bytes.extend(rest.iter().map(|a| combine(*a, 0)));
        Self(bytes)
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut bits = Self::default();
        indices.into_iter().for_each(|index| bits.set(index));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ones_sets_no_padding() {
        for size in [0, 1, 7, 8, 9, 63, 64, 7_168] {
            let bits = Bits::ones(size);
            assert_eq!(bits.count(), size as u64);
            assert_eq!(bits.last(), size.checked_sub(1));
            assert!(!bits.get(size));
        }
    }

    fn indices() -> impl Strategy<Value = BTreeSet<usize>> {
        prop::collection::btree_set(0_usize..7_168, 0..200)
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(a in indices(), b in indices()) {
            let (x, y): (Bits, Bits) = (a.iter().copied().collect(), b.iter().copied().collect());
            prop_assert_eq!(x.iter().collect::<BTreeSet<_>>(), a.clone());
            prop_assert_eq!(x.count(), a.len() as u64);
            prop_assert_eq!(x.last(), a.last().copied());
            prop_assert_eq!(x.is_zero(), a.is_empty());
            prop_assert_eq!(x.and(&y).iter().collect::<BTreeSet<_>>(), &a & &b);
            prop_assert_eq!(x.minus(&y).iter().collect::<BTreeSet<_>>(), &a - &b);
            let mut both = x.clone();
            both.merge(&y);
            prop_assert_eq!(both.iter().collect::<BTreeSet<_>>(), &a | &b);
            prop_assert_eq!(Bits::from_bytes(x.as_bytes().to_vec()), x);
        }

        #[test]
        fn runs_are_what_is_set(runs in prop::collection::vec((0_usize..7_168, 0_usize..300), 0..9)) {
            let (mut bits, mut set) = (Bits::default(), BTreeSet::new());
            for (first, more) in runs {
                bits.set_all(first, first + more);
                set.extend(first..=first + more);
            }
            prop_assert_eq!(bits.iter().collect::<BTreeSet<_>>(), set.clone());
            prop_assert_eq!(bits.runs().flat_map(|(first, last)| first..=last).collect::<BTreeSet<_>>(), set);
            let ends: Vec<(usize, usize)> = bits.runs().collect();
            prop_assert!(ends.windows(2).all(|two| two[0].1 + 1 < two[1].0));
        }

        #[test]
        fn acks_in_any_order_and_number_end_the_same(
            size in 1_usize..500,
            acks in prop::collection::vec(prop::collection::btree_set(0_usize..500, 0..60), 1..20),
            order in any::<u64>(),
        ) {
            let clear = |mut masks: Vec<&BTreeSet<usize>>, seed: u64| {
                fastrand::Rng::with_seed(seed).shuffle(&mut masks);
                masks.iter().fold((Bits::ones(size), 0), |(pending, cleared), mask| {
                    let mask: Bits = mask.iter().copied().collect();
                    let newly = pending.and(&mask).count();
                    (pending.minus(&mask), cleared + newly)
                })
            };
            let once = clear(acks.iter().collect(), 0);
            let repeated = clear(acks.iter().chain(acks.iter()).collect(), order);
            prop_assert_eq!(&once, &repeated);
            prop_assert_eq!(once.0.count() + once.1, size as u64);
        }
    }
}
