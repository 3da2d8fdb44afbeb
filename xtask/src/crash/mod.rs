//! Stub.
use crate::options::Options;
use anyhow::Result;
pub(crate) fn run(_: &Options) -> Result<()> {
    Ok(())
}
