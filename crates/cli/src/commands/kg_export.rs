//! `kenning kg export`: the graph in the forms of other programs, and as a picture.
use crate::{Host, Settings};
use clap::{ArgMatches, Command};
use kenning_core::Result;

pub(crate) fn command() -> Command {
    Command::new("export")
}

pub(super) fn run(_: &dyn Host, _: &Settings, _: &ArgMatches) -> Result<u8> {
    Ok(0)
}
