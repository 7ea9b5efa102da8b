//! Reads of many items, page by page.

use std::ops::ControlFlow;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;

use super::attributes::text;
use super::{Item, StoreError, Table};
use crate::limits::{ITEMS_PER_PAGE_MAX, LITTLE_MAX};

/// A section of an index.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The index.
    pub(crate) index: &'static str,
    /// Its partition key, and the value of it.
    pub(crate) partition: (&'static str, AttributeValue),
    /// The name of the sort key, and the values to read.
    pub(crate) range: Option<(&'static str, Range)>,
    /// Descending.
    pub(crate) backward: bool,
    /// At most so many items.
    pub(crate) limit: usize,
}

/// Values of a sort key.
#[derive(Clone, Debug)]
pub(crate) enum Range {
    /// Above this one.
    After(AttributeValue),
    /// This one, and below.
    UpTo(AttributeValue),
    /// Both of them, and values between them. DynamoDB requires the first to be the smaller one.
    Between(AttributeValue, AttributeValue),
}

impl Section {
    /// One partition of an index that is named after its partition key, which is a text.
    pub(crate) fn all(index: &'static str, partition: impl ToString) -> Self {
        Self::keyed(index, index, text(partition))
    }

    /// One partition of an index.
    pub(crate) fn keyed(index: &'static str, key: &'static str, partition: AttributeValue) -> Self {
        Self { index, partition: (key, partition), range: None, backward: false, limit: usize::MAX }
    }
}

/// A segment of a scan, so that several can scan at once.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Which, from 0.
    pub number: i32,
    /// Of how many.
    pub of: i32,
}

impl Segment {
    /// Everything.
    pub const ALL: Self = Self { number: 0, of: 1 };
}

/// How much there is in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Nothing.
    Empty,
    /// Less than [`LITTLE_MAX`] items.
    Little,
    /// More.
    Much,
}

/// The result of a search through an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked<T> {
    /// It was found.
    Found(T),
    /// It is not there.
    ThroughAll,
    /// There were too many pages.
    TooMany,
}

impl Table {
    /// The items of a section of an index, in its order, as the index shows them: it may lag behind.
    pub(crate) async fn query(&self, section: Section) -> Result<Vec<Item>, StoreError> {
        let (mut items, mut next) = self.page(&section, ITEMS_PER_PAGE_MAX, None).await?;
        while items.len() < section.limit && next.is_some() {
            let (more, after) = self.page(&section, ITEMS_PER_PAGE_MAX, next).await?;
            items.extend(more);
            next = after;
        }
        items.truncate(section.limit);
        Ok(items)
    }

    /// A page of them, of at most `size` items, and where the next one begins.
    pub(crate) async fn page(
        &self,
        section: &Section,
        size: usize,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let query = self.section(section, size).set_exclusive_start_key(start);
        let answer = self.patiently(move || query.clone().send()).await;
        let answer = answer.map_err(|error| StoreError::service("Query", &self.name, error))?;
        Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
    }

    /// A page of a whole index, in no order, of at most `size` items, and where the next one begins.
    pub(crate) async fn scan_page(
        &self,
        index: &'static str,
        size: usize,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let scan = self.client.scan().table_name(&self.name).index_name(index);
        self.scanned(scan.limit(i32::try_from(size).unwrap_or(i32::MAX)), start).await
    }

    /// A page of the table: those of at most `size` items that have an attribute, and where the next page begins.
    pub(crate) async fn scan_with(
        &self,
        attribute: &'static str,
        size: usize,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let scan = self.client.scan().table_name(&self.name).filter_expression("attribute_exists(#has)");
        let scan = scan.expression_attribute_names("#has", attribute);
        self.scanned(scan.limit(i32::try_from(size).unwrap_or(i32::MAX)), start).await
    }

    /// What a scan finds from `start` on in one request, and where the next one begins.
    async fn scanned(
        &self,
        scan: ScanFluentBuilder,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let scan = scan.set_exclusive_start_key(start);
        let answer = self.patiently(move || scan.clone().send()).await;
        let answer = answer.map_err(|error| StoreError::service("Scan", &self.name, error))?;
        Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
    }

    /// Asks for pages of at most `size` items.
    fn section(&self, section: &Section, size: usize) -> QueryFluentBuilder {
        let query = self
            .client
            .query()
            .table_name(&self.name)
            .index_name(section.index)
            .expression_attribute_names("#key", section.partition.0)
            .expression_attribute_values(":key", section.partition.1.clone())
            .set_scan_index_forward(section.backward.then_some(false))
            .limit(i32::try_from(section.limit.min(size)).unwrap_or(i32::MAX));
        let Some((sort, range)) = &section.range else { return query.key_condition_expression("#key = :key") };
        let query = query.expression_attribute_names("#sort", *sort);
        match range {
            Range::After(after) => query
                .key_condition_expression("#key = :key AND #sort > :after")
                .expression_attribute_values(":after", after.clone()),
            Range::UpTo(until) => query
                .key_condition_expression("#key = :key AND #sort <= :until")
                .expression_attribute_values(":until", until.clone()),
            Range::Between(low, high) => query
                .key_condition_expression("#key = :key AND #sort BETWEEN :low AND :high")
                .expression_attribute_values(":low", low.clone())
                .expression_attribute_values(":high", high.clone()),
        }
    }

    /// Hands items of the table, or of an index (which may lag behind), to `visit` until it breaks off. Reads at most `pages`
    /// pages.
    pub(crate) async fn look_through<B>(
        &self,
        index: Option<&'static str>,
        pages: usize,
        mut visit: impl FnMut(Item) -> Result<ControlFlow<B>, StoreError>,
    ) -> Result<Looked<B>, StoreError> {
        let scan = self.client.scan().table_name(&self.name).set_index_name(index.map(str::to_owned));
        let mut start = None;
        for _ in 0..pages {
            let (items, next) = self.scanned(scan.clone(), start).await?;
            for item in items {
                if let ControlFlow::Break(found) = visit(item)? {
                    return Ok(Looked::Found(found));
                }
            }
            if next.is_none() {
                return Ok(Looked::ThroughAll);
            }
            start = next;
        }
        Ok(Looked::TooMany)
    }

    /// How much an index has, as it shows it: it may lag behind.
    pub(crate) async fn extent(&self, index: &'static str) -> Result<Extent, StoreError> {
        let (items, next) = self.scan_page(index, LITTLE_MAX, None).await?;
        Ok(match next {
            Some(_) => Extent::Much,
            None if items.is_empty() => Extent::Empty,
            None => Extent::Little,
        })
    }

    /// Hands `visit` every item of a share of the table, as it is now, or of an index, which may lag behind.
    pub(crate) async fn scan(
        &self,
        index: Option<&'static str>,
        segment: Segment,
        mut visit: impl FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let scan = self.client.scan().table_name(&self.name).set_index_name(index.map(str::to_owned));
        // An index has no consistent read.
        let scan = scan.set_consistent_read(index.is_none().then_some(true));
        let scan = scan.segment(segment.number).total_segments(segment.of);
        let mut start = None;
        loop {
            let (items, next) = self.scanned(scan.clone(), start).await?;
            items.into_iter().try_for_each(&mut visit)?;
            if next.is_none() {
                return Ok(());
            }
            start = next;
        }
    }
}
