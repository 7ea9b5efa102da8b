//! What tasks take of a batch, as it is stored: with a task, or with the slots of a bundle.

use super::{ID, STATUS, reader};
use crate::aws::attributes::{Reader, binary, item};
use crate::aws::{Item, StoreError};
use crate::grouping::{Columns, Load, Loads};
use crate::ids::TaskId;

/// Columns of what tasks take of a batch: of a task, or of a bundle's slots.
const BYTES: &str = "bytes";
const WEIGHTS: &str = "weights";
const DISTINCT: &str = "distinct";
/// Seldom there, so its length counts where records are cut.
pub(crate) const FLUSHES: &str = "flushes";
/// Seldom there, too.
pub(crate) const AT_MOST: &str = "at_most";

/// The attributes of loads.
pub(in crate::store::tasks) const OF_LOADS: [&str; 7] = [ID, STATUS, BYTES, WEIGHTS, DISTINCT, FLUSHES, AT_MOST];
/// The columns of loads.
pub(in crate::store::tasks) fn encode_loads(loads: &Loads) -> Item {
    let Columns { bytes, weights, distinct, flushes, at_most } = loads.columns();
    let column = |column: Vec<u8>| (!column.is_empty()).then(|| binary(&column));
    item([
        (BYTES, column(bytes)),
        (WEIGHTS, column(weights)),
        (DISTINCT, column(distinct)),
        (FLUSHES, column(flushes)),
        (AT_MOST, column(at_most)),
    ])
}

/// Reads the columns of loads.
pub(in crate::store::tasks) fn decode_loads(reader: &Reader<'_>) -> Result<Loads, StoreError> {
    let column = |name| reader.bytes(name).map(<[u8]>::to_vec);
    let columns = Columns {
        bytes: column(BYTES)?,
        weights: column(WEIGHTS)?,
        distinct: column(DISTINCT)?,
        flushes: column(FLUSHES)?,
        at_most: column(AT_MOST)?,
    };
    Loads::of(&columns).map_err(|error| reader.corrupt(BYTES, error))
}

/// What a task takes of a batch, with its id. It flushes only as long as no batch has claimed it.
pub(in crate::store::tasks) fn decode_load(item: &Item) -> Result<(TaskId, Load), StoreError> {
    let reader = reader(item);
    let waits = matches!(reader.text(STATUS)?, "created" | "bundled");
    let load = decode_loads(&reader)?.get(0);
    Ok((reader.parsed(ID)?, Load { flushes: load.flushes && waits, ..load }))
}
