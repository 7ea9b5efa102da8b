//! How the rows of a file are dealt out in pages, which the partitions of its producer take in turn. It follows from the rows alone,
//! so it is the same in every process that runs the file.

use fanfold::producing::RunRows;
use fanfold::tracking::page_groups;
use std::collections::HashMap;
use uuid::Uuid;

use crate::rows::{Begin, Row};

/// Rows of a page at most: the more tasks of a lane are registered at once, the fewer bundles they take, and bundles are what is written
/// beside the tasks themselves.
const PAGE_ROWS: u32 = 25_000;

/// Bytes of contents in a page, give or take a row.
const PAGE_BYTES: u64 = 8 * 1_024 * 1_024;

/// Partitions of a file: while the page of one is stored, that of the other is read.
const PARTITIONS: u32 = 2;

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Where its first row begins.
    pub(crate) begin: Begin,
    /// Rows before it.
    pub(crate) before: u64,
    /// Its rows.
    pub(crate) rows: u32,
    bytes: u64,
}

/// The pages of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pages(Vec<Page>);

impl Pages {
    /// Adds the next row, whose content has so many bytes as JSON.
    pub(crate) fn add(&mut self, row: &Row, bytes: usize) {
        let bytes = bytes as u64;
        match self.0.last_mut() {
            Some(page) if page.rows < PAGE_ROWS && page.bytes < PAGE_BYTES => {
                page.rows += 1;
                page.bytes += bytes;
            }
            last => {
                let before = last.map_or(0, |page| page.before + u64::from(page.rows));
                self.0.push(Page { begin: row.begin, before, rows: 1, bytes });
            }
        }
    }

    /// The source of these rows.
    pub(crate) fn source(kind: &str, fingerprint: Uuid) -> RunRows {
        RunRows { kind: kind.to_owned(), fingerprint, page_rows: PAGE_ROWS, page_bytes: PAGE_BYTES }
    }

    /// In how many partitions they are read.
    pub(crate) fn partitions(&self) -> u32 {
        // No more than two, so it fits.
        PARTITIONS.min(self.0.len() as u32).max(1)
    }

    /// A page by its number.
    pub(crate) fn get(&self, number: usize) -> Option<Page> {
        self.0.get(number).copied()
    }

    /// The first page of a partition.
    pub(crate) fn first(&self, partition: u32) -> Option<usize> {
        Some(partition as usize).filter(|page| *page < self.0.len())
    }

    /// The page that the same partition takes after this one.
    pub(crate) fn after(&self, page: usize) -> Option<usize> {
        Some(page + self.partitions() as usize).filter(|page| *page < self.0.len())
    }

    /// How many rows are before the first item of each of the fan-out's groups.
    pub(crate) fn rows_before_groups(&self, fanout: Uuid) -> HashMap<Uuid, u64> {
        let of = self.partitions();
        let mut starts = HashMap::new();
        for (number, page) in (0_u64..).zip(&self.0) {
            // It is smaller than `of`.
            let partition = (number % u64::from(of)) as u32;
            let mut before = page.before;
            for group in page_groups(fanout, partition, number / u64::from(of), page.rows) {
                starts.insert(group.id, before);
                before += u64::from(group.upto);
            }
        }
        starts
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pages(sizes: impl IntoIterator<Item = usize>) -> Pages {
        let mut pages = Pages::default();
        for (n, bytes) in (0_u64..).zip(sizes) {
            pages.add(&Row { line: n + 2, begin: Begin { byte: 10 * n, line: n + 2 }, content: json!(n) }, bytes);
        }
        pages
    }

    #[test]
    fn rows_are_dealt_out_in_turn() {
        let pages = pages(vec![1; 2 * PAGE_ROWS as usize + 7]);
        let page = |number: usize| pages.get(number).map(|page| (page.begin.byte, page.before, page.rows));
        let rows = u64::from(PAGE_ROWS);
        assert_eq!(page(0), Some((0, 0, PAGE_ROWS)));
        assert_eq!(page(1), Some((10 * rows, rows, PAGE_ROWS)));
        assert_eq!(page(2), Some((20 * rows, 2 * rows, 7)));
        assert_eq!(page(3), None);
        assert_eq!((pages.partitions(), pages.first(0), pages.first(1)), (2, Some(0), Some(1)));
        assert_eq!((pages.after(0), pages.after(1)), (Some(2), None));
    }

    #[test]
    fn a_page_has_as_many_bytes_as_fit() {
        let half = PAGE_BYTES as usize / 2;
        let pages = pages([half, half, 1, half, half, 1]);
        let rows: Vec<u32> = pages.0.iter().map(|page| page.rows).collect();
        assert_eq!(rows, [2, 3, 1]);
    }

    #[test]
    fn a_file_of_one_page_or_none_has_one_partition() {
        assert_eq!((pages([]).partitions(), pages([]).first(0)), (1, None));
        assert_eq!((pages([1; 9]).partitions(), pages([1; 9]).after(0)), (1, None));
    }

    #[test]
    fn rows_are_known_by_the_groups_of_their_items() {
        let pages = pages(vec![1; 2 * PAGE_ROWS as usize + 7]);
        let fanout = Uuid::from_u128(7);
        let starts = pages.rows_before_groups(fanout);
        let groups = page_groups(fanout, 0, 1, 7);
        assert_eq!((groups.len(), starts[&groups[0].id]), (1, 2 * u64::from(PAGE_ROWS)));
        let second = page_groups(fanout, 1, 0, PAGE_ROWS);
        assert_eq!(starts[&second[1].id], u64::from(PAGE_ROWS + second[0].upto));
    }
}
