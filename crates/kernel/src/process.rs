//! The memory of this process, as the operating system reports it.

use kenning_vault::Dir;
use std::path::Path;

/// More than the report ever has.
const STATUS_BYTES_MAX: u64 = 64 * 1024;

/// The memory of this process, in bytes; zeros if the operating system does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Resident now.
    pub resident: u64,
    /// Reserved for data.
    pub data: u64,
    /// Of the resident memory, what is its own.
    pub anonymous: u64,
    /// Of the resident memory, what is backed by files.
    pub file: u64,
    /// Of the resident memory, what is shared.
    pub shared: u64,
    /// The memory of the machine.
    pub machine: u64,
}

impl ProcessMemory {
    /// As it is now.
    pub(crate) fn now() -> Self {
        let (status, machine) = (read("/proc/self", "status"), read("/proc", "meminfo"));
        Self {
            resident: field(&status, "VmRSS"),
            data: field(&status, "VmData"),
            anonymous: field(&status, "RssAnon"),
            file: field(&status, "RssFile"),
            shared: field(&status, "RssShmem"),
            machine: field(&machine, "MemTotal"),
        }
    }

    /// The share of the machine's memory that this process holds, from 0 to 1.
    pub fn share(&self) -> f64 {
        if self.machine == 0 {
            return 0.0;
        }
        self.resident as f64 / self.machine as f64
    }
}

fn read(dir: &str, name: &str) -> String {
    let bytes = Dir::open(Path::new(dir)).and_then(|it| it.read(name, STATUS_BYTES_MAX));
    bytes
        .map(|it| String::from_utf8_lossy(&it).into_owned())
        .unwrap_or_default()
}

/// `VmRSS:     5124 kB`
fn field(text: &str, name: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_holds_memory() {
        let memory = ProcessMemory::now();
        assert!(
            memory.resident > 0 && memory.machine > memory.resident,
            "{memory:?}"
        );
    }
}
