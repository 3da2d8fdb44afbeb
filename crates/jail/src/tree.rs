//! Reads the process tree from `/proc`.

#![expect(
    clippy::disallowed_methods,
    reason = "names beneath `/proc`, made of numbers; nobody else's"
)]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// The resources of all processes beneath one, together.
#[derive(Default)]
pub(crate) struct Weight {
    /// Threads, of which each process has at least one.
    pub tasks: u64,
    /// Memory that is not a file's. What processes share counts for each.
    pub bytes: u64,
    /// Processor time, with that of children that are gone.
    pub cpu: Duration,
}

/// Every process beneath `root`, parents first.
pub(crate) fn beneath(root: u32) -> Vec<u32> {
    if !fs::exists(format!("/proc/{root}/task/{root}/children")).unwrap_or(false) {
        return beneath_by_parents(root);
    }
    let mut found = children(root);
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        // A process can get another parent in between; none is counted twice.
        for child in children(pid) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// Children belong to threads.
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in numbers(&format!("/proc/{pid}/task")) {
        let list = fs::read_to_string(format!("/proc/{pid}/task/{task}/children"));
        let list = list.unwrap_or_default();
        found.extend(
            list.split_whitespace()
                .filter_map(|it| it.parse::<u32>().ok()),
        );
    }
    found
}

/// For kernels without `/proc/PID/task/TID/children`.
fn beneath_by_parents(root: u32) -> Vec<u32> {
    let all = numbers("/proc");
    let pairs: Vec<(u32, u32)> = all
        .filter_map(|pid| Some((pid, u32::try_from(*stat(pid)?.get(1)?).ok()?)))
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let of = pairs
            .iter()
            .filter(|pair| pair.1 == parent && pair.0 != root);
        found.extend(of.map(|it| it.0));
        next += 1;
    }
    found.split_off(1)
}

/// The resources of the processes beneath `root`.
pub(crate) fn weigh(root: u32) -> Weight {
    let mut weight = Weight::default();
    let tick = 1_000 / rustix::param::clock_ticks_per_second().max(1);
    for pid in beneath(root) {
        let Some(stat) = stat(pid) else { continue };
        // User and system time, of the process and of its children that are gone.
        let ticks: u64 = stat.iter().skip(11).take(4).sum();
        weight.cpu += Duration::from_millis(ticks * tick);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        weight.tasks += field(&status, "Threads:").max(1);
        weight.bytes += (field(&status, "RssAnon:") + field(&status, "RssShmem:")) * 1024;
    }
    weight
}

/// How many threads a user has.
pub(crate) fn tasks_of(user: u32) -> u64 {
    let of_user = numbers("/proc")
        .filter(|pid| fs::metadata(format!("/proc/{pid}")).is_ok_and(|it| it.uid() == user));
    let tasks = of_user.map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        field(&status, "Threads:").max(1)
    });
    tasks.sum()
}

/// How many threads this process has.
pub(crate) fn own_threads() -> usize {
    numbers("/proc/self/task").count()
}

/// The open descriptors of this process above the standard three.
pub(crate) fn own_descriptors() -> Vec<i32> {
    let all = numbers("/proc/self/fd").filter_map(|it| i32::try_from(it).ok());
    all.filter(|it| *it > 2).collect()
}

/// The fields of `/proc/PID/stat` after the name, the state (which is no number) as 0.
fn stat(pid: u32) -> Option<Vec<u64>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, parentheses too.
    let (_, fields) = text.rsplit_once(')')?;
    let fields = fields.split_whitespace();
    Some(fields.map(|it| it.parse().unwrap_or(0)).collect())
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|it| it.strip_prefix(name));
    let number = line.and_then(|it| it.split_whitespace().next());
    number.and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// The entries of a directory of the kernel that are numbers.
pub(crate) fn numbers(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|it| it.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn both_ways_find_a_grandchild() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 600 & echo; read x; kill $!"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut byte).unwrap();
        for found in [beneath(shell.id()), beneath_by_parents(shell.id())] {
            assert_eq!(found.len(), 1);
        }
        assert!(weigh(shell.id()).tasks == 1 && weigh(std::process::id()).bytes > 0);
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
