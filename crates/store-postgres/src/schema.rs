//! Checks that the schema holds our tables and nothing else.

use crate::connect::Connection;
use crate::{error, migrate};
use kenning_core::Result;

/// Everything in the schema but extensions: kind and name. Indexes are left out, because they cannot change
/// what is written, and so is what PostgreSQL creates for itself.
const OBJECTS: &str = "
    WITH here AS (SELECT oid, relname, relkind FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace)
    SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'view' WHEN 'S' THEN 'sequence'
        ELSE 'table' END, relname::text FROM here
        WHERE relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND NOT EXISTS (SELECT FROM pg_depend d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = here.oid AND d.deptype = 'e')
    UNION ALL SELECT 'trigger', tgname || ' of ' || relname
        FROM pg_trigger JOIN here ON here.oid = tgrelid WHERE NOT tgisinternal
    UNION ALL SELECT 'rule', rulename || ' of ' || relname
        FROM pg_rewrite JOIN here ON here.oid = ev_class WHERE rulename <> '_RETURN'
    UNION ALL SELECT 'policy', polname || ' of ' || relname
        FROM pg_policy JOIN here ON here.oid = polrelid
    UNION ALL SELECT 'function', proname::text FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND NOT EXISTS (SELECT FROM pg_depend d
            WHERE d.classid = 'pg_proc'::regclass AND d.objid = pg_proc.oid AND d.deptype = 'e')
    ORDER BY 1, 2";

/// Objects that no migration made, and tables that are missing.
pub(crate) fn faults(connection: &Connection) -> Result<Vec<String>> {
    let mut expected = migrate::tables();
    let mut faults = Vec::new();
    for row in connection.query(OBJECTS, &[])? {
        let text = |n: usize| row.try_get::<_, String>(n).map_err(error::from_postgres);
        let (kind, name) = (text(0)?, text(1)?);
        if kind != "table" || !expected.remove(name.as_str()) {
            faults.push(format!(
                "the {kind} `{name}` does not belong to this program"
            ));
        }
    }
    for name in expected {
        faults.push(format!("the table `{name}` is missing"));
    }
    Ok(faults)
}
