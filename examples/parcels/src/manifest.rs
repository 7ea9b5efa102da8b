//! Manifests: which orders ride on a truck.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::order::Order;

const COLUMNS: [&str; 7] = ["truck", "order", "zip_code", "city", "state", "depot", "weight_kg"];

/// One file to be written: the orders of one fan-out on one truck.
#[derive(Debug, PartialEq)]
pub(crate) struct Manifest {
    /// Both are safe as parts of a path.
    pub(crate) fanout: String,
    pub(crate) truck: String,
    pub(crate) text: String,
}

/// The text of a manifest, as CSV with a heading.
pub(crate) fn text<'a>(truck: &str, orders: impl IntoIterator<Item = &'a Order>) -> io::Result<String> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record(COLUMNS)?;
    for order in orders {
        rows.write_record([
            truck,
            &order.name,
            &order.zip_code,
            &order.city,
            &order.state,
            &order.depot,
            &order.weight_text,
        ])?;
    }
    let bytes = rows.into_inner().map_err(csv::IntoInnerError::into_error)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

impl Manifest {
    /// Writes the manifest beside its final place and renames it, so that a reader sees all of it or nothing, and a
    /// repeated call replaces it by the same text.
    pub(crate) fn write(&self, root: &Path) -> io::Result<PathBuf> {
        // Two calls with one key may be written at the same time, each to a file of its own.
        static WRITES: AtomicU64 = AtomicU64::new(0);
        let write = WRITES.fetch_add(1, Ordering::Relaxed);
        let folder = root.join(&self.fanout);
        std::fs::create_dir_all(&folder)?;
        let temporary = folder.join(format!(".{}.{}-{write}.tmp", self.truck, std::process::id()));
        let place = folder.join(format!("{}.csv", self.truck));
        let written = std::fs::write(&temporary, &self.text).and_then(|()| std::fs::rename(&temporary, &place));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written.map(|()| place)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn order(name: &str, city: &str) -> Order {
        Order {
            name: name.to_owned(),
            zip_code: "00501".to_owned(),
            city: city.to_owned(),
            state: "NY".to_owned(),
            depot: "005".to_owned(),
            weight_text: "4.10".to_owned(),
            weight_kg: 4.1,
        }
    }

    #[test]
    fn rows_keep_leading_zeros_and_quote_what_needs_it() {
        let orders = [order("ORD-000001", "Holtsville"), order("ORD-000002", "Here, \"there\"")];
        assert_eq!(
            text("truck-1", &orders).unwrap(),
            "truck,order,zip_code,city,state,depot,weight_kg\n\
             truck-1,ORD-000001,00501,Holtsville,NY,005,4.10\n\
             truck-1,ORD-000002,00501,\"Here, \"\"there\"\"\",NY,005,4.10\n"
        );
    }

    #[test]
    fn a_manifest_written_twice_is_there_once() {
        let root = tempfile::tempdir().unwrap();
        let manifest = Manifest { fanout: "f1".to_owned(), truck: "t1".to_owned(), text: "a\n".to_owned() };
        let place = manifest.write(root.path()).unwrap();
        assert_eq!(manifest.write(root.path()).unwrap(), place);
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "a\n");
        assert_eq!(std::fs::read_dir(root.path().join("f1")).unwrap().count(), 1);
    }
}
