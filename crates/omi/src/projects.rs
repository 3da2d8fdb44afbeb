//! What belongs to which project: listed, assigned, merged.

use crate::context::Place;
use crate::{Memory, Omi};
use kenning_audit::{Draft, Tx};
use kenning_core::{Error, Kind, NodeId, Result};
use kenning_kernel::projects::{self, Known};
use kenning_kernel::{Caller, Scope};
use kenning_memory::{daily, now};
use kenning_store::{NodeFilter, When};
use serde_json::json;

/// Memories that one transaction moves.
const BATCH: usize = 500;

/// A project and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectView {
    /// Its id; empty for what is global.
    pub id: String,
    /// Its name, its remote, and where it was seen.
    pub known: Known,
    /// How many memories it has.
    pub memories: u64,
    /// Whether it has a NOW.md.
    pub has_now: bool,
    /// How many daily logs it has.
    pub daily_logs: usize,
    /// Whether the caller works in it.
    pub is_current: bool,
}

/// Which memories get another project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// The project they are in; empty for what is global.
    pub from: String,
    /// The project they get; empty to make them global.
    pub to: String,
    /// Only these, by their ids.
    pub ids: Vec<String>,
    /// Only those with all of these tags.
    pub tags: Vec<String>,
    /// Only those of this session.
    pub session: Option<String>,
    /// Only those stored at this time or later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Only those stored before this time.
    pub before_ms: Option<u64>,
}

impl Assignment {
    fn wants(&self, memory: &Memory) -> bool {
        (self.ids.is_empty() || self.ids.contains(&memory.id))
            && self.tags.iter().all(|it| memory.tags.contains(it))
            && self
                .session
                .as_ref()
                .is_none_or(|it| memory.session_id.as_ref() == Some(it))
            && self.since_ms.is_none_or(|it| memory.created_ms >= it)
            && self.before_ms.is_none_or(|it| memory.created_ms < it)
    }
}

impl Omi {
    /// Every project with its contents, what is global first.
    pub fn projects(&self, caller: &Caller) -> Result<Vec<ProjectView>> {
        caller.principal.require(Scope::Read)?;
        let current = self.kernel.project_of(caller)?;
        let mut all = vec![(String::new(), Known::default())];
        all.extend(self.kernel.projects(caller)?);
        let dir = match self.kernel.omi().is_named() {
            true => self.context_to_read(caller)?,
            false => None,
        };
        let mut views = Vec::new();
        for (id, known) in all {
            let place = Place::of(&id);
            let filter = of_project(&id);
            let space = &caller.principal.space;
            let memories = self
                .kernel
                .log()
                .read(space, |tx| tx.count_nodes(&filter))?;
            let (mut has_now, mut daily_logs) = (false, 0);
            if let Some(dir) = &dir {
                has_now = dir.exists(&place.name(now::FILE))?;
                let logs = dir.list(&place.name(daily::FOLDER)).unwrap_or_default();
                let logs = logs.iter().filter(|it| daily::day_of(&it.name).is_some());
                daily_logs = logs.count();
            }
            views.push(ProjectView {
                is_current: id == current,
                id,
                known,
                memories,
                has_now,
                daily_logs,
            });
        }
        Ok(views)
    }

    /// Gives memories another project, and returns how many.
    pub fn assign_memories(&self, caller: &Caller, assignment: &Assignment) -> Result<usize> {
        self.kernel.may_write(caller)?;
        if assignment.from == assignment.to {
            return Err(Error::invalid("the memories are in that project already")
                .hint("name another one, or `global`"));
        }
        if self.kernel.project_of(caller)? == assignment.to {
            // The first that it gets may be from before it was known.
            self.remember_project(caller)?;
        }
        let ids = self.kernel.log().read(&caller.principal.space, |tx| {
            let nodes = tx.nodes(&of_project(&assignment.from), When::Now, None, usize::MAX)?;
            let wanted = nodes.iter().filter(|it| assignment.wants(&Memory::of(it)));
            Ok(wanted.map(|it| it.id).collect::<Vec<NodeId>>())
        })?;
        let mut n_moved = 0;
        for some in ids.chunks(BATCH) {
            caller.check()?;
            let (some, from, to) = (
                some.to_vec(),
                assignment.from.clone(),
                assignment.to.clone(),
            );
            n_moved += self
                .kernel
                .log()
                .write_long(&caller.principal.space, move |tx| {
                    move_all(tx, &some, &from, &to)
                })?;
        }
        Ok(n_moved)
    }

    /// Makes one project a part of another: its memories, its daily logs, and its NOW.md if the other has none.
    /// From then on whoever works in the one works in the other. Returns how many memories were moved.
    pub fn merge_projects(&self, caller: &Caller, from: &str, into: &str) -> Result<usize> {
        self.kernel.may_write(caller)?;
        let assignment = Assignment {
            from: from.to_owned(),
            to: into.to_owned(),
            ..Assignment::default()
        };
        let n_moved = self.assign_memories(caller, &assignment)?;
        if self.kernel.omi().is_named() {
            self.copy_context(caller, &Place::of(from), &Place::of(into))?;
        }
        let (from, into) = (from.to_owned(), into.to_owned());
        self.kernel
            .log()
            .write(&caller.principal.space, move |tx| {
                projects::merge(tx, &from, &into)?;
                let data = json!({ "project": from, "into": into });
                tx.record("ProjectsMerged", data).map(drop)
            })?;
        Ok(n_moved)
    }

    fn copy_context(&self, caller: &Caller, from: &Place, into: &Place) -> Result<()> {
        let Some(dir) = self.context_to_read(caller)? else {
            return Ok(());
        };
        let logs = dir.list(&from.name(daily::FOLDER)).unwrap_or_default();
        let days = logs.iter().filter_map(|it| daily::day_of(&it.name));
        let mut names: Vec<String> = days.map(daily::file_name).collect();
        names.push(now::FILE.to_owned());
        for name in names {
            let Some(text) = self.context_text(&dir, &from.name(&name))? else {
                continue;
            };
            let target = into.name(&name);
            if self.has_imported_file(caller, &target)? {
                self.add_imported_file(caller, &target, &text)?;
            } else {
                self.write_imported_file(caller, &target, &text)?;
            }
        }
        Ok(())
    }
}

fn of_project(id: &str) -> NodeFilter {
    NodeFilter {
        kinds: vec![Kind::Memory],
        project: Some(id.to_owned()),
        ..NodeFilter::default()
    }
}

fn move_all(tx: &mut Tx<'_>, ids: &[NodeId], from: &str, to: &str) -> Result<usize> {
    let mut n_moved = 0;
    for id in ids {
        // Somebody else may have moved or removed it meanwhile.
        let node = tx.node(*id, When::Now)?.filter(|it| it.project == from);
        let Some(node) = node else { continue };
        let taken = tx.node_by_key(to, Kind::Memory, &node.key, When::Now)?;
        let key = match taken {
            None => node.key,
            // The same memory is there already; recall shows one of them.
            Some(_) => format!("{}:{}", node.key, tx.next_seq()),
        };
        tx.move_node(
            *id,
            Draft {
                kind: Kind::Memory,
                project: to.to_owned(),
                key,
                title: node.title,
                body: node.body,
                props: node.props,
            },
        )?;
        n_moved += 1;
    }
    if n_moved > 0 {
        let data = json!({ "project": to, "from": from, "memories": n_moved });
        tx.record("MemoriesAssigned", data)?;
    }
    Ok(n_moved)
}
