//! The backend of the store while the program is killed.

use super::binary::Place;
use crate::options::Options;
use anyhow::{Context as _, Result, bail};
use kenning_testing_postgres::{Server, Version, own};
use std::time::{Duration, Instant};

/// How long the database may take to notice that a program has died.
const SETTLE_MAX: Duration = Duration::from_secs(20);

pub(super) enum Backend {
    Sqlite,
    Postgres(Box<Server>),
}

impl Backend {
    pub(super) fn find(options: &Options) -> Result<Self> {
        match options.text("backend").unwrap_or("sqlite") {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres(Box::new(own(Version::V18)))),
            other => bail!("`--backend {other}`: sqlite or postgres"),
        }
    }

    /// Kills come within this time after the first write. A write to a database takes longer, and what
    /// is killed before the first is done shows little.
    pub(super) fn kill_within_us(&self) -> u64 {
        match self {
            Self::Sqlite => 120_000,
            Self::Postgres(_) => 400_000,
        }
    }

    /// An empty store.
    pub(super) fn place(&self) -> Result<Place> {
        let place = Place::fresh()?;
        Ok(match self {
            Self::Sqlite => place,
            Self::Postgres(server) => place.with_database(&server.database()),
        })
    }

    /// Waits until nothing that a dead program asked for goes on: its last commit may still be
    /// under way in the database, and what is looked at must stand still.
    pub(super) fn settle(&self, place: &Place) -> Result<()> {
        match self {
            Self::Sqlite => Ok(()),
            Self::Postgres(server) => {
                let url = place.database().context("a place without its database")?;
                settle(server, url)
            }
        }
    }
}

/// The same for one database.
pub(super) fn settle(server: &Server, url: &str) -> Result<()> {
    let began = Instant::now();
    let ask = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()
                 AND backend_type = 'client backend'";
    while server.sql(url, ask) != "0" {
        if began.elapsed() > SETTLE_MAX {
            bail!("the database still has connections of a dead program");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
