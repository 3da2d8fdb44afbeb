//! Explains a limit that a run reached: where it was set and what to change.

use kenning_sandbox::manifest::{Manifest, Security, TOOL_MEMORY_MB_MAX};
use kenning_sandbox::{Failure, Limits};

/// Where the limits of a run were set.
#[derive(Clone, Copy)]
pub(super) enum LimitSource<'a> {
    /// By options of `kami run`, or their defaults.
    Options,
    /// By the manifest of an installed tool, under the operator's policy.
    Manifest(&'a Manifest),
    /// Fixed: the caller cannot change them.
    Fixed,
}

/// How much fuel a call needs, as far as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// This much.
    Exactly(u64),
    /// It did not end with this much.
    MoreThan(u64),
    /// It was not measured.
    Unknown,
}

/// A limit with its two names, the granted and the requested value, and a value that might be enough.
struct Reached {
    field: &'static str,
    option: &'static str,
    granted: u64,
    asked: Option<u64>,
    enough: u64,
}

/// The failure in terms that its reader can act on.
pub(super) fn explain(
    failure: &Failure,
    limits: &Limits,
    source: LimitSource<'_>,
    needed: Needed,
) -> String {
    let asked = |of: fn(&Security) -> u64| match source {
        LimitSource::Manifest(manifest) => Some(of(&manifest.security)),
        LimitSource::Options | LimitSource::Fixed => None,
    };
    let reached = match failure {
        Failure::FuelExhausted { suggested, .. } => Reached {
            field: "max_fuel",
            option: "--fuel",
            granted: limits.max_fuel,
            asked: asked(|it| it.max_fuel),
            enough: match needed {
                Needed::Exactly(fuel) => fuel,
                Needed::MoreThan(fuel) => fuel.saturating_mul(4),
                Needed::Unknown => *suggested,
            },
        },
        // No tool has more than that.
        Failure::MemoryGrow { limit_mb } if *limit_mb >= TOOL_MEMORY_MB_MAX => {
            return failure.to_string();
        }
        Failure::MemoryGrow { limit_mb } => Reached {
            field: "max_memory_mb",
            option: "--max-memory-mb",
            granted: limits.max_memory_mb.into(),
            asked: asked(|it| it.max_memory_mb.into()),
            enough: u64::from(limit_mb.saturating_mul(2).min(TOOL_MEMORY_MB_MAX)),
        },
        // A shorter time is how long the caller waits, not a limit of the tool.
        Failure::TimedOut { limit_ms } if *limit_ms >= limits.max_execution_ms => Reached {
            field: "max_execution_ms",
            option: "--timeout-ms",
            granted: limits.max_execution_ms,
            asked: asked(|it| it.max_execution_ms),
            enough: limit_ms.saturating_mul(2),
        },
        other => return other.to_string(),
    };
    let what = match (failure, needed) {
        (Failure::FuelExhausted { limit, .. }, Needed::Exactly(fuel)) => {
            format!("fuel exhausted: the call takes {fuel} and has {limit}")
        }
        (Failure::FuelExhausted { limit, .. }, Needed::MoreThan(fuel)) => {
            format!("fuel exhausted: the call takes more than {fuel} and has {limit}")
        }
        _ => failure.to_string(),
    };
    format!("{what}; {}", reached.remedy(source))
}

impl Reached {
    fn remedy(&self, source: LimitSource<'_>) -> String {
        let Self {
            field,
            option,
            granted,
            enough,
            ..
        } = self;
        match source {
            LimitSource::Options => format!("try `{option} {enough}`"),
            LimitSource::Fixed => {
                format!("install the component, with `{field} = {enough}` in its manifest")
            }
            LimitSource::Manifest(manifest) => {
                let id = &manifest.id;
                let asked = self.asked.unwrap_or(*granted);
                if asked <= *granted {
                    return format!(
                        "try `{field} = {enough}` in `tool.toml`, then `kami update {id}`"
                    );
                }
                let policy = format!(
                    "the policy lowers `{field}` from {asked} to {granted}: \
                     try `{field} = {enough}` under `[tools.\"{id}\"]` in `policy.toml`"
                );
                match *enough > asked {
                    true => format!("{policy}, and in `tool.toml`"),
                    false => policy,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(fuel: u64) -> Manifest {
        let text = format!(
            "[tool]\nid = \"a.b\"\nname = \"b\"\nversion = \"1.0.0\"\nwasm = \"b.wasm\"\n[mcp]\ndescription = \"d\"\n[security]\nmax_fuel = {fuel}\n"
        );
        Manifest::parse(&text).unwrap()
    }

    fn fuel(limit: u64) -> (Failure, Limits) {
        let failure = Failure::FuelExhausted {
            used: limit,
            limit,
            suggested: limit * 4,
        };
        let limits = Limits {
            max_fuel: limit,
            ..Limits::default()
        };
        (failure, limits)
    }

    #[test]
    fn a_limit_is_told_with_the_name_that_it_has_where_it_was_set() {
        let (failure, limits) = fuel(100);
        let tell = |source, needed| explain(&failure, &limits, source, needed);
        assert_eq!(
            tell(LimitSource::Options, Needed::Exactly(321)),
            "fuel exhausted: the call takes 321 and has 100; try `--fuel 321`"
        );
        assert_eq!(
            tell(LimitSource::Options, Needed::MoreThan(1_000)),
            "fuel exhausted: the call takes more than 1000 and has 100; try `--fuel 4000`"
        );
        let (own, low, high) = (manifest(100), manifest(200), manifest(1_000));
        let from = LimitSource::Manifest;
        assert_eq!(
            tell(from(&own), Needed::Unknown),
            "fuel exhausted: used 100 of 100; try `max_fuel = 400` in `tool.toml`, then `kami update a.b`"
        );
        assert_eq!(
            tell(from(&high), Needed::Exactly(321)),
            "fuel exhausted: the call takes 321 and has 100; the policy lowers `max_fuel` from 1000 to 100: \
             try `max_fuel = 321` under `[tools.\"a.b\"]` in `policy.toml`"
        );
        let both = tell(from(&low), Needed::Exactly(321));
        assert!(
            both.ends_with("in `policy.toml`, and in `tool.toml`"),
            "{both}"
        );
        let fixed = tell(LimitSource::Fixed, Needed::Unknown);
        assert!(
            fixed.ends_with("with `max_fuel = 400` in its manifest"),
            "{fixed}"
        );
    }

    #[test]
    fn memory_and_time_are_told_likewise_and_the_callers_own_patience_is_not() {
        let limits = Limits::default();
        let tell = |failure| explain(&failure, &limits, LimitSource::Options, Needed::Unknown);
        let memory = Failure::MemoryGrow {
            limit_mb: limits.max_memory_mb,
        };
        assert!(tell(memory).ends_with("; try `--max-memory-mb 128`"));
        let most = Failure::MemoryGrow {
            limit_mb: TOOL_MEMORY_MB_MAX,
        };
        assert!(tell(most).ends_with("which is the most that a tool can have"));
        let time = |limit_ms| Failure::TimedOut { limit_ms };
        assert_eq!(
            tell(time(limits.max_execution_ms)),
            "execution timed out after 5000 ms; try `--timeout-ms 10000`"
        );
        assert_eq!(tell(time(20)), "execution timed out after 20 ms");
        assert_eq!(tell(Failure::Cancelled), "the call was cancelled");
    }
}
