//! The two forms of statement that are run many at a time.

/// What a statement does with its parameters, which stand for all of its values.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// `INSERT INTO "table" VALUE {'attribute': ?, …}`
    Insert { table: String, attributes: Vec<String> },
    /// `UPDATE "table" SET "attribute" = ? … REMOVE "attribute" … WHERE "attribute" = ? AND …`
    Update { table: String, set: Vec<String>, remove: Vec<String>, conditions: Vec<String> },
}

impl Plan {
    /// The plan of a statement; none if it has any other form.
    pub(super) fn of(statement: &str) -> Option<Self> {
        let mut text = Text(statement);
        if text.take("INSERT INTO ") {
            let table = text.name('"')?;
            let mut attributes = Vec::new();
            if !text.take(" VALUE {") {
                return None;
            }
            loop {
                attributes.push(text.name('\'')?);
                if !text.take(": ?") {
                    return None;
                }
                if !text.take(", ") {
                    break;
                }
            }
            return (text.take("}") && text.0.is_empty()).then_some(Self::Insert { table, attributes });
        }
        if !text.take("UPDATE ") {
            return None;
        }
        let table = text.name('"')?;
        let (mut set, mut remove, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        while text.take(" SET ") {
            set.push(text.equals()?);
        }
        while text.take(" REMOVE ") {
            remove.push(text.name('"')?);
        }
        if !text.take(" WHERE ") {
            return None;
        }
        loop {
            conditions.push(text.equals()?);
            if !text.take(" AND ") {
                break;
            }
        }
        (text.0.is_empty() && !set.is_empty()).then_some(Self::Update { table, set, remove, conditions })
    }

    pub(super) fn table(&self) -> &str {
        match self {
            Self::Insert { table, .. } | Self::Update { table, .. } => table,
        }
    }

    /// How many parameters it takes.
    pub(super) fn parameters(&self) -> usize {
        match self {
            Self::Insert { attributes, .. } => attributes.len(),
            Self::Update { set, conditions, .. } => set.len() + conditions.len(),
        }
    }
}

/// What is left of a statement.
struct Text<'a>(&'a str);

impl Text<'_> {
    fn take(&mut self, words: &str) -> bool {
        let rest = self.0.strip_prefix(words);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// A name in quotes, if it is no path and has nothing to be escaped.
    fn name(&mut self, quote: char) -> Option<String> {
        let (name, rest) = self.0.strip_prefix(quote)?.split_once(quote)?;
        self.0 = rest;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned())
    }

    fn equals(&mut self) -> Option<String> {
        let name = self.name('"')?;
        self.take(" = ?").then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
        names.map(str::to_owned).into()
    }

    #[test]
    fn a_plan_is_what_the_statement_says() {
        assert_eq!(
            Plan::of(r#"INSERT INTO "tasks" VALUE {'id': ?, 'lane': ?}"#),
            Some(Plan::Insert { table: "tasks".to_owned(), attributes: names(["id", "lane"]) })
        );
        assert_eq!(
            Plan::of(r#"UPDATE "tasks" SET "a" = ? SET "b" = ? REMOVE "c" WHERE "id" = ? AND "d" = ?"#),
            Some(Plan::Update {
                table: "tasks".to_owned(),
                set: names(["a", "b"]),
                remove: names(["c"]),
                conditions: names(["id", "d"]),
            })
        );
    }

    #[test]
    fn any_other_form_has_no_plan() {
        for statement in [
            "",
            r#"SELECT * FROM "tasks" WHERE "id" = ?"#,
            r#"DELETE FROM "tasks" WHERE "id" = ?"#,
            r#"INSERT INTO "tasks" VALUE {'id': 'x'}"#,
            r#"INSERT INTO "tasks" VALUE {'id': ?} IF NOT EXISTS"#,
            r#"INSERT INTO "tasks" VALUE {'a.b': ?}"#,
            r#"INSERT INTO "ta""sks" VALUE {'id': ?}"#,
            r#"UPDATE "tasks" SET "a" = "a" + ? WHERE "id" = ?"#,
            r#"UPDATE "tasks" SET "a" = ? WHERE "id" = ? OR "id" = ?"#,
            r#"UPDATE "tasks" SET "a" = ? WHERE "id" = ? RETURNING ALL OLD *"#,
            r#"UPDATE "tasks" REMOVE "a" WHERE "id" = ?"#,
            r#"UPDATE "tasks" SET "a"[0] = ? WHERE "id" = ?"#,
        ] {
            assert_eq!(Plan::of(statement), None, "{statement}");
        }
    }
}
