//! Agents that look at documents, code and memories, and report.
//!
//! `registry` keeps who was spawned and what became of it, in rows of the store; `queue` decides whose turn it
//! is in this process, and the holder in an agent's row which process; `run` carries out one `task` within its time, and keeps its report as a node. What an agent does is in
//! `work`: one file each, over what `material` reads. With a language model `thinking` lets it plan and look
//! further; without one the same findings are reported, and no token is used.
//!
//! An agent writes nothing but its report. It may call tools that only read, and no others, whatever a
//! model asks for.

mod code;
mod kinds;
mod material;
mod queue;
mod registry;
mod report;
mod run;
mod task;
mod thinking;
mod work;

pub use kinds::{AgentKind, AgentStatus, Priority};
pub use registry::{AgentCount, AgentHealth, AgentRow, AgentsListed};
pub use report::Artifact;
pub use run::{Spawn, Spawned};
pub use thinking::Toolbox;

use kenning_kernel::Kernel;
use kenning_kg::Kg;
use kenning_koi::Koi;
use kenning_runs::Runs;
use std::sync::Arc;

/// Spawns agents and keeps what they reported.
pub struct Agents {
    kernel: Arc<Kernel>,
    kg: Arc<Kg>,
    koi: Arc<Koi>,
    runs: Arc<Runs>,
    queue: queue::Queue,
}

impl Agents {
    /// Over a kernel and the crates that agents look into.
    pub fn new(kernel: Arc<Kernel>, kg: Arc<Kg>, koi: Arc<Koi>, runs: Arc<Runs>) -> Self {
        Self {
            kernel,
            kg,
            koi,
            runs,
            queue: queue::Queue::default(),
        }
    }
}
