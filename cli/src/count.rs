//! Counts as people read them.

use indicatif::HumanCount;

/// A count with its noun: `1 task`, `2,000 tasks`.
pub(crate) fn count(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", HumanCount(count), if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_is_not_many() {
        assert_eq!([0, 1, 2_000].map(|n| count(n, "task", "tasks")), ["0 tasks", "1 task", "2,000 tasks"]);
    }
}
