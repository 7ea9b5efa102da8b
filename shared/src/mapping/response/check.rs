//! What does not fit together in a response mapping.

use super::{Match, Pointers, ResponseMapping};
use crate::limits::{LISTS_MAX, MAPPING_BYTES_MAX};
use crate::mapping::template::Report;

impl ResponseMapping {
    /// Reports what does not fit together. `path`: the field that holds it.
    pub(super) fn check(&self, path: &str, report: Report<'_>) {
        let mut report = |field: &str, problem: &str| report(&format!("{path}.{field}"), problem.to_owned());
        let Some(matching) = self.matching else {
            return report("match", "is missing, one of index, exceptions, id, echo, none is needed");
        };
        let of_items = [
            ("items", self.items.is_some()),
            ("ok", self.ok.is_some()),
            ("retry", self.retry.is_some()),
            ("error", self.error.is_some()),
            ("code", self.code.is_some()),
            ("retry_after", self.retry_after.is_some()),
            ("result", self.result.is_some()),
        ];
        if matching == Match::None {
            for (field, _) in of_items.iter().filter(|(_, given)| *given) {
                report(field, "is about items, and with `match: none` an answer has none");
            }
        } else if self.items.is_none() {
            report(
                "items",
                "is missing, the JSON Pointer to a list is needed, such as `/items`; `\"\"` is the whole answer",
            );
        }
        for (field, given, needed) in [
            ("index", self.index.is_some(), matching == Match::Exceptions),
            ("id", self.id.is_some(), matching == Match::Id),
            ("echo", self.echo.is_some(), matching == Match::Echo),
        ] {
            match (given, needed) {
                (false, true) => {
                    report(field, "is missing: an expression is needed that names the member of an `item`")
                }
                (true, false) => report(field, "does not belong to this `match`"),
                _ => {}
            }
        }
        if self.member.is_some() && !matches!(matching, Match::Id | Match::Echo) {
            report("member", "does not belong to this `match`; it is for `id` and `echo`");
        }
        if self.ok.is_none() && matches!(matching, Match::Index | Match::Id) {
            report("ok", "is missing: an expression is needed that is true if the member of an `item` succeeded");
        }
        self.check_lists(matching, &mut report);
    }

    fn check_lists(&self, matching: Match, report: &mut dyn FnMut(&str, &str)) {
        let pointers = self.items.as_ref().map_or(&[][..], Pointers::all);
        if pointers.len() > LISTS_MAX || self.items.is_some() && pointers.is_empty() {
            report("items", &format!("names {} lists, 1 to {LISTS_MAX} are allowed", pointers.len()));
        }
        if matching == Match::Index && pointers.len() > 1 {
            report("items", "names several lists; with `match: index` there is one");
        }
        if let Some(wrong) = pointers.iter().find(|pointer| !pointer.is_empty() && !pointer.starts_with('/')) {
            report("items", &format!("is `{wrong}`, a JSON Pointer begins with `/`"));
        }
        if let Some(wrong) = self.statuses.iter().find(|status| !(300..=599).contains(*status)) {
            report("statuses", &format!("has {wrong}, 300 to 599 are allowed (2xx are read in any case)"));
        }
        if serde_json::to_vec(self).map_or(usize::MAX, |json| json.len()) > MAPPING_BYTES_MAX {
            report(
                "match",
                &format!("stands in a mapping of more than {MAPPING_BYTES_MAX} bytes as JSON, which is not allowed"),
            );
        }
    }
}
