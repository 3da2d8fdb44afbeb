//! The log, asked by kind, author, time and text.

use crate::row::{self, signed};
use crate::tx::{Owned, Tx, limit};
use kenning_core::Result;
use kenning_store::{
    EventEffect, EventFilter, EventOf, EventPage, EventPart, EventRow, EventWhat, NODE_CREATED_MARK,
};
use std::fmt::Write;

impl Tx<'_> {
    pub(crate) fn events_of(&self, filter: &EventFilter, page: EventPage) -> Result<Vec<EventRow>> {
        let columns = row::EVENT_COLUMNS;
        let order = match page.newest_first {
            true => "hlc DESC, seq DESC",
            false => "hlc, seq",
        };
        let skip = i64::try_from(page.skip).unwrap_or(i64::MAX);
        let mut params: Owned<'_> = vec![
            Box::new(self.space),
            Box::new(limit(page.limit)),
            Box::new(skip),
        ];
        let mut keys = Vec::new();
        for part in filter.parts() {
            let conditions = event_conditions(filter, &part, &mut params);
            keys.push(format!("(SELECT hlc, seq FROM events {conditions})"));
        }
        let keys = keys.join(" UNION ALL ");
        let sql = format!(
            "SELECT {columns} FROM events WHERE space = $1 AND seq = ANY (ARRAY
                (SELECT seq FROM ({keys}) AS found ORDER BY {order} LIMIT $2 OFFSET $3))
             ORDER BY {order}"
        );
        self.owned(&sql, &params, row::event)
    }

    pub(crate) fn number_of_events(&self, filter: &EventFilter) -> Result<u64> {
        let mut count = 0;
        for part in filter.parts() {
            let mut params: Owned<'_> = vec![Box::new(self.space)];
            let conditions = event_conditions(filter, &part, &mut params);
            let sql = format!("SELECT count(*) FROM events {conditions}");
            let found = self.owned(&sql, &params, |it| row::number(it, 0))?;
            count += found.first().copied().unwrap_or(0);
        }
        Ok(count)
    }

    pub(crate) fn kinds_of_events(&self) -> Result<Vec<(String, u64)>> {
        self.many(
            "SELECT kind, count(*) FROM events WHERE space = $1 GROUP BY kind ORDER BY kind",
            &[&self.space],
            |found| Ok((row::text(found, 0)?, row::number(found, 1)?)),
        )
    }
}

fn event_conditions<'a>(
    filter: &'a EventFilter,
    part: &EventPart<'a>,
    params: &mut Owned<'a>,
) -> String {
    let mut sql = "WHERE space = $1".to_owned();
    match &part.what {
        EventWhat::Any => {}
        EventWhat::Kind(kind) => {
            params.push(Box::new(kind.as_bytes()));
            sql += &format!(" AND sha256(kind) = sha256(${}::bytea)", params.len());
        }
        EventWhat::Effect {
            effect,
            without,
            except,
        } => {
            let _infallible = write!(sql, " AND {}", has_effect(*effect));
            for effect in without {
                let _infallible = write!(sql, " AND NOT ({})", has_effect(*effect));
            }
            for kind in except {
                params.push(Box::new(kind.as_bytes()));
                let _infallible = write!(sql, " AND kind <> ${}", params.len());
            }
        }
    }
    match part.whose {
        EventOf::Any => {}
        EventOf::Author(did) => {
            params.push(Box::new(did.as_bytes()));
            sql += &format!(" AND sha256(author) = sha256(${}::bytea)", params.len());
        }
        EventOf::Agent(did) => {
            params.push(Box::new(did.as_bytes()));
            let at = params.len();
            sql += &format!(
                " AND sha256(agent) = sha256(${at}::bytea) AND agent <> '' AND author <> ${at}"
            );
        }
    }
    if let Some(from) = filter.from {
        params.push(Box::new(signed(from.0)));
        sql += &format!(" AND hlc >= ${}", params.len());
    }
    if let Some(to) = filter.to {
        params.push(Box::new(signed(to.0)));
        sql += &format!(" AND hlc <= ${}", params.len());
    }
    if let Some(at) = &filter.at {
        let moments: Vec<i64> = at.iter().map(|it| signed(it.0)).collect();
        params.push(Box::new(moments));
        sql += &format!(" AND hlc = ANY(${})", params.len());
    }
    if let Some(text) = &filter.text {
        params.push(Box::new(text.to_ascii_lowercase()));
        let at = params.len();
        let has = |column: &str| {
            format!("position(${at} in lower(convert_from({column}, 'UTF8') COLLATE \"C\")) > 0")
        };
        sql += &format!(" AND ({} OR {})", has("data"), has("payload"));
    }
    sql
}

/// Spelled as in the migration that makes the index: the planner compares the terms.
fn has_effect(effect: EventEffect) -> String {
    let mark = effect.mark();
    match effect {
        EventEffect::UpdatesNode => format!(
            "position('{mark}' in replace(encode(payload, 'escape'), '{NODE_CREATED_MARK}', '')) > 0"
        ),
        _ => format!("position('{mark}' in encode(payload, 'escape')) > 0"),
    }
}
