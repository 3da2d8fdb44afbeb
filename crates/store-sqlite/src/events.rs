//! The log, asked by kind, author, time and text.

use crate::row;
use crate::tx::{Params, Tx, refs};
use kenning_core::Result;
use kenning_store::{
    EventEffect, EventFilter, EventOf, EventPage, EventPart, EventRow, EventWhat, NODE_CREATED_MARK,
};
use std::fmt::Write;

impl Tx<'_> {
    pub(crate) fn events_of(&self, filter: &EventFilter, page: EventPage) -> Result<Vec<EventRow>> {
        let columns = row::EVENT_COLUMNS;
        // The plus signs keep the planner from walking the whole log in the order of time to find the
        // few rows of the page.
        let (order, order_of_page) = match page.newest_first {
            true => ("hlc DESC, seq DESC", "+hlc DESC, +seq DESC"),
            false => ("hlc, seq", "+hlc, +seq"),
        };
        // An index alone says which; only those rows are read. Parts are merged as they are read.
        let mut params: Params<'_> = vec![Box::new(self.space())];
        let mut keys = Vec::new();
        for part in filter.parts() {
            let (conditions, more) = self.conditions(filter, &part);
            keys.push(format!("SELECT hlc, seq FROM events {conditions}"));
            params.extend(more);
        }
        let keys = keys.join(" UNION ALL ");
        params.push(Box::new(i64::try_from(page.limit).unwrap_or(i64::MAX)));
        params.push(Box::new(i64::try_from(page.skip).unwrap_or(i64::MAX)));
        let sql = format!(
            "SELECT {columns} FROM events WHERE space = ? AND seq IN
                (SELECT seq FROM ({keys} ORDER BY {order} LIMIT ? OFFSET ?))
             ORDER BY {order_of_page}"
        );
        self.many(&sql, &refs(&params), row::event)
    }

    pub(crate) fn number_of_events(&self, filter: &EventFilter) -> Result<u64> {
        let mut count = 0;
        for part in filter.parts() {
            let (sql, params) = self.conditions(filter, &part);
            let sql = format!("SELECT count(*) FROM events {sql}");
            let found = self.one(&sql, &refs(&params), |it| row::number(it, 0))?;
            count += found.unwrap_or(0);
        }
        Ok(count)
    }

    pub(crate) fn kinds_of_events(&self) -> Result<Vec<(String, u64)>> {
        self.many(
            "SELECT kind, count(*) FROM events WHERE space = ? GROUP BY kind ORDER BY kind",
            &[&self.space()],
            |found| Ok((found.get(0)?, row::number(found, 1)?)),
        )
    }

    /// Names the index to use by hiding the other columns from the planner, which has no statistics: a
    /// kind says most, then an author, then an effect, then the times.
    fn conditions<'a>(
        &'a self,
        filter: &'a EventFilter,
        part: &EventPart<'a>,
    ) -> (String, Params<'a>) {
        let mut params: Params<'a> = vec![Box::new(self.space())];
        let mut sql = "WHERE space = ?".to_owned();
        let mut hide = "";
        match &part.what {
            EventWhat::Any => {}
            EventWhat::Kind(kind) => {
                sql += " AND kind = ?";
                params.push(Box::new(*kind));
                hide = "+";
            }
            EventWhat::Effect {
                effect,
                without,
                except,
            } => {
                let has = has_effect(*effect);
                sql = match part.whose {
                    EventOf::Any => format!("INDEXED BY {} {sql} AND {has}", index_of(*effect)),
                    EventOf::Author(_) | EventOf::Agent(_) => format!("{sql} AND +({has})"),
                };
                for effect in without {
                    let _infallible = write!(sql, " AND NOT ({})", has_effect(*effect));
                }
                for kind in except {
                    sql += " AND +kind <> ?";
                    params.push(Box::new(*kind));
                }
            }
        }
        match part.whose {
            EventOf::Any => {}
            EventOf::Author(did) => {
                sql += &format!(" AND {hide}author = ?");
                params.push(Box::new(did));
            }
            EventOf::Agent(did) => {
                sql += &format!(" AND {hide}agent = ? AND agent <> '' AND +author <> ?");
                params.push(Box::new(did));
                params.push(Box::new(did));
            }
        }
        if let Some(from) = filter.from {
            sql += " AND hlc >= ?";
            params.push(Box::new(row::signed(from.0)));
        }
        if let Some(to) = filter.to {
            sql += " AND hlc <= ?";
            params.push(Box::new(row::signed(to.0)));
        }
        if let Some(at) = &filter.at {
            let moments: Vec<String> = at.iter().map(|it| row::signed(it.0).to_string()).collect();
            sql += " AND hlc IN (SELECT value FROM json_each(?))";
            params.push(Box::new(format!("[{}]", moments.join(","))));
        }
        if let Some(text) = &filter.text {
            let text = text.to_ascii_lowercase();
            sql += " AND (instr(lower(CAST(data AS TEXT)), ?) > 0
                OR instr(lower(CAST(payload AS TEXT)), ?) > 0)";
            params.push(Box::new(text.clone()));
            params.push(Box::new(text));
        }
        (sql, params)
    }
}

/// Spelled as in the migration that makes the index: the planner compares the terms.
fn has_effect(effect: EventEffect) -> String {
    let mark = effect.mark();
    match effect {
        EventEffect::UpdatesNode => format!(
            "instr(replace(CAST(payload AS TEXT), '{NODE_CREATED_MARK}', ''), '{mark}') > 0"
        ),
        _ => format!("instr(CAST(payload AS TEXT), '{mark}') > 0"),
    }
}

fn index_of(effect: EventEffect) -> &'static str {
    match effect {
        EventEffect::CreatesNode => "events_creating_nodes",
        EventEffect::UpdatesNode => "events_updating_nodes",
        EventEffect::RemovesNode => "events_removing_nodes",
        EventEffect::PutsEdge => "events_putting_edges",
        EventEffect::EndsEdge => "events_ending_edges",
    }
}
