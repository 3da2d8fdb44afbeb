//! Rows of the key-value table have a type.
//!
//! The kernel and everything above it read and write them through a `kernel::Bucket<T>`. A call of a
//! transaction's own `get`, `list`, `set` or `unset` elsewhere would be a row that nobody declared.

use super::Faults;
use crate::repository::Tree;

/// The crates that the rule is for.
const CRATES: &[&str] = &[
    "kernel",
    "query",
    "runs",
    "workflow-steps",
    "agents",
    "kami",
    "kiwi",
    "kg",
    "omi",
    "koi",
    "engine",
    "tools",
    "mcp",
    "rest",
    "cli",
];

/// Where the calls are made.
const HOME: &str = "crates/kernel/src/bucket.rs";

pub(super) fn check(tree: &Tree) -> Faults {
    let is_meant = |name: &str| {
        let mut sources = CRATES.iter().map(|it| format!("crates/{it}/src/"));
        name != HOME && sources.any(|it| name.starts_with(&it))
    };
    let files = tree.ending(".rs").filter(|it| is_meant(it.0));
    let fault = |(name, text): (&str, &str)| {
        let call = raw_call(text)?;
        Some(format!(
            "{name}: `tx.{call}(…)` is a row without a type: use a `kernel::Bucket`"
        ))
    };
    files.filter_map(fault).collect()
}

/// The first call of a transaction's own methods outside tests.
fn raw_call(text: &str) -> Option<&'static str> {
    let product = text.split("#[cfg(test)]").next().unwrap_or_default();
    // A chain of calls may begin on the line before.
    let joined: String = product.split_whitespace().collect();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    ["get", "list", "set", "unset"].into_iter().find(|method| {
        let call = format!("tx.{method}(");
        let mut found = joined.match_indices(&call);
        found.any(|(at, _)| !joined[..at].ends_with(is_name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> usize {
        check(&Tree::of(&[(name, text)])).len()
    }

    #[test]
    fn a_row_without_a_type_is_refused_outside_the_bucket_and_tests() {
        let name = "crates/kg/src/a.rs";
        assert_eq!(faults(name, "let x = tx.get(\"a\", key)?;"), 1);
        assert_eq!(faults(name, "Ok(tx\n        .list(BUCKET)?)"), 1);
        assert_eq!(faults(name, "self.tx.set(B, k, v)"), 1);
        assert_eq!(
            faults(name, "B.get(&**tx, key)?; ctx.get(1); tx.getter()"),
            0
        );
        assert_eq!(faults(name, "#[cfg(test)]\nmod tests { tx.get(B, k) }"), 0);
        assert_eq!(faults("crates/kg/tests/a.rs", "tx.get(B, k)"), 0);
        assert_eq!(faults("crates/audit/src/a.rs", "tx.get(B, k)"), 0);
        assert_eq!(faults(HOME, "tx.get(B, k)"), 0);
    }
}
