//! The parts of a batch that are called one after the other, once a call for several members failed as a whole. Each is halved
//! until the member that spoils the calls stands alone.
//!
//! The rules: a part with several members that fails is replaced by its halves. If the first half works, the second is taken to
//! have the member that fails, so it is halved without a call. (Not if the part was too large: then both halves may work.) A
//! member alone is called again as often as a batch would be.
//!
//! The packed form is a run of `from (u16) to (u16) form (u8) calls (u16) due (u48)`, big-endian.

use crate::clock::Timestamp;

/// Bytes of a part.
const PART_BYTES: usize = 13;

/// How far apart the times may be of members that share an entry: pauses before calls are random, and some are asked for.
const SHARED_WAIT_MILLIS: u64 = 60_000;

/// The parts still to be called. None: the batch was not split, and all its members are called together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts(Vec<Part>);

/// A part: the members without an outcome in a range of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    from: usize,
    /// The slot after its last one.
    to: usize,
    form: Form,
    /// Its calls that ended and count.
    calls: u32,
    /// When it may be called: zero, if it has not been.
    due: Timestamp,
}

/// How the members of a part are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Together.
    Together,
    /// Together. The part before it is its first half: one of the two has a member that fails.
    Second,
    /// Each alone: so many parts in one entry.
    Alone,
}

/// What a call shows of the members that it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Calls for them work: each member has an outcome, or is to be called again.
    Works,
    /// A call for them fails as a whole.
    Fails,
    /// The same, perhaps only because they are too many.
    TooLarge,
    /// Nothing.
    Nothing,
}

/// Bytes are not packed parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a list of parts of {PART_BYTES} bytes each (at byte {0})")]
pub struct PartsError(usize);

impl Shows {
    /// Whether a call fails as a whole.
    #[must_use]
    pub fn fails(self) -> bool {
        matches!(self, Self::Fails | Self::TooLarge)
    }

    /// How the second half of a part is called of which a call shows this.
    fn second(self) -> Form {
        if self == Self::TooLarge { Form::Together } else { Form::Second }
    }
}

impl Part {
    /// Its members among the open slots, which are in order.
    fn members<'a>(&self, open: &'a [usize]) -> &'a [usize] {
        let at = |slot: usize| open.partition_point(|other| *other < slot);
        open.get(at(self.from)..at(self.to)).unwrap_or_default()
    }

    /// Its halves, due when it is; `second`: how the second one is called. A part with one member, or none, stays as it is.
    fn halves(self, open: &[usize], second: Form) -> Vec<Self> {
        let members = self.members(open);
        match members.len() {
            0 | 1 => vec![Self { form: Form::Alone, ..self }],
            2 => vec![Self { form: Form::Alone, ..self }],
            many => {
                let middle = members[many / 2];
                let first = if many / 2 == 1 { Form::Alone } else { Form::Together };
                vec![Self { to: middle, form: first, ..self }, Self { from: middle, form: second, ..self }]
            }
        }
    }
}

impl Parts {
    /// A batch that was not split is split into the halves of its open slots, after a call that failed.
    #[must_use]
    pub fn split(open: &[usize], shows: Shows) -> Self {
        let (Some(from), Some(last)) = (open.first(), open.last()) else { return Self::default() };
        let (from, to) = (*from, *last + 1);
        let all = Part { from, to, form: Form::Together, calls: 0, due: Timestamp::default() };
        Self(all.halves(open, shows.second()))
    }

    /// Whether the batch was not split.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Which part is called next: of those that have waited for long enough, or are to wait least, the first.
    fn position(&self, open: &[usize]) -> Option<usize> {
        let parts = self.0.iter().enumerate().filter(|(_, part)| !part.members(open).is_empty());
        parts.min_by_key(|(at, part)| (part.due, *at)).map(|(at, _)| at)
    }

    /// The slots of the next call, of the open ones; and how often that part was called.
    #[must_use]
    pub fn next(&self, open: &[usize]) -> (Vec<usize>, u32) {
        let Some(part) = self.position(open).map(|at| self.0[at]) else { return (open.to_vec(), 0) };
        let members = part.members(open);
        let together = if part.form == Form::Alone { 1 } else { members.len() };
        (members.iter().copied().take(together).collect(), part.calls)
    }

    /// When the next part may be called; zero: at once.
    #[must_use]
    pub fn due(&self, open: &[usize]) -> Timestamp {
        self.position(open).map_or_else(Timestamp::default, |at| self.0[at].due)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self, open: &[usize]) -> usize {
        let count = |part: &Part| match (part.form, part.members(open).len()) {
            (Form::Alone, members) => members,
            (_, members) => members.min(1),
        };
        self.0.iter().map(count).sum()
    }

    /// The parts after a call for the next one. `several`: it was for several members; outcomes of some may have come since.
    /// `before`: the slots that were open at the call. `open`: those that are still open. What is to be called again, and not
    /// halved, is due then.
    #[must_use]
    pub fn after(mut self, shows: Shows, several: bool, before: &[usize], open: &[usize], due: Timestamp) -> Self {
        let Some(at) = self.position(before) else { return self };
        let part = self.take(at, before);
        let form = if part.form == Form::Alone { Form::Alone } else { Form::Together };
        let again = Part { form, calls: part.calls + 1, due, ..part };
        let fresh = Part { calls: 0, due: Timestamp::default(), ..part };
        self.plan_second(at, shows, open);
        match (shows, part.members(open).len()) {
            (_, 0) => {}
            (Shows::Fails | Shows::TooLarge, _) if several => {
                drop(self.0.splice(at..at, fresh.halves(open, shows.second())));
            }
            (Shows::Nothing, _) => self.0.insert(at, Part { due: part.due, ..again }),
            (Shows::Works | Shows::Fails | Shows::TooLarge, _) => self.push(again, open),
        }
        self.0.retain(|part| !part.members(open).is_empty());
        self
    }

    /// The same, where the parts of these slots, which are in order, are not called before this time. A member that is called
    /// alone is a part.
    #[must_use]
    pub fn held(self, slots: &[usize], until: Timestamp) -> Self {
        let held = |part: Part| Part { due: part.due.max(until), ..part };
        let cut = |part: Part| match part.members(slots) {
            [] => vec![part],
            _ if part.form != Form::Alone => vec![held(part)],
            alone => {
                let (mut entries, mut from) = (Vec::new(), part.from);
                for slot in alone {
                    entries.push(Part { from, to: *slot, ..part });
                    entries.push(held(Part { from: *slot, to: slot + 1, ..part }));
                    from = slot + 1;
                }
                entries.push(Part { from, ..part });
                entries.retain(|entry| entry.from < entry.to);
                entries
            }
        };
        Self(self.0.into_iter().flat_map(cut).collect())
    }

    /// Takes the part that was called out of the list.
    fn take(&mut self, at: usize, before: &[usize]) -> Part {
        let part = self.0[at];
        match part.members(before) {
            [first, _, ..] if part.form == Form::Alone => {
                self.0[at].from = first + 1;
                Part { from: *first, to: first + 1, ..part }
            }
            _ => self.0.remove(at),
        }
    }

    /// After the call of a first half: the second half, which is at this place, is halved if the first half worked.
    /// Otherwise it is called itself, as it may work.
    fn plan_second(&mut self, at: usize, shows: Shows, open: &[usize]) {
        let Some(second) = self.0.get(at).copied().filter(|next| next.form == Form::Second) else { return };
        match shows {
            Shows::Works => drop(self.0.splice(at..=at, second.halves(open, Form::Second))),
            Shows::Fails | Shows::TooLarge | Shows::Nothing => self.0[at].form = Form::Together,
        }
    }

    /// Adds a part that waits. Members that are called alone share an entry where they can, which waits for the last of them.
    fn push(&mut self, part: Part, open: &[usize]) {
        if let Some(last) = self.0.last_mut().filter(|last| last.form == Form::Alone && part.form == Form::Alone) {
            let between = Part { from: last.to, to: part.from, ..part };
            let alike = last.calls == part.calls && last.due.0.abs_diff(part.due.0) <= SHARED_WAIT_MILLIS;
            if alike && last.to <= part.from && between.members(open).is_empty() {
                (last.to, last.due) = (part.to, last.due.max(part.due));
                return;
            }
        }
        self.0.push(part);
    }

    /// The packed form.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let number = |number: usize| u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes();
        let mut bytes = Vec::with_capacity(self.0.len() * PART_BYTES);
        for Part { from, to, form, calls, due } in &self.0 {
            bytes.extend_from_slice(&number(*from));
            bytes.extend_from_slice(&number(*to));
            bytes.push(*form as u8);
            bytes.extend_from_slice(&number(*calls as usize));
            bytes.extend_from_slice(&due.0.to_be_bytes()[2..]);
        }
        bytes
    }

    /// Reads the packed form.
    ///
    /// # Errors
    /// The bytes are not one.
    pub fn unpack(bytes: &[u8]) -> Result<Self, PartsError> {
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let part = |(at, bytes): (usize, &[u8])| {
            let form = match bytes.get(4) {
                Some(0) => Form::Together,
                Some(1) => Form::Second,
                Some(2) => Form::Alone,
                _ => return Err(PartsError(at * PART_BYTES)),
            };
            let field = |from: usize, to: usize| bytes.get(from..to).map(number).ok_or(PartsError(at * PART_BYTES));
            let small = |from, to| field(from, to).map(|number| usize::try_from(number).unwrap_or(usize::MAX));
            let calls = u32::try_from(field(5, 7)?).unwrap_or(u32::MAX);
            Ok(Part { from: small(0, 2)?, to: small(2, 4)?, form, calls, due: Timestamp(field(7, 13)?) })
        };
        bytes.chunks(PART_BYTES).enumerate().map(part).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
pub(crate) mod tests;
