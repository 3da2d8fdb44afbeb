//! `kenning kg export`: the graph in the formats of other programs, and as an HTML page.

use crate::{Host, Settings, output, owner};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use kenning_core::{Error, Result};
use kenning_engine::kg::ExportFormat;
use std::path::Path;

/// The command line of it.
pub(crate) fn command() -> Command {
    Command::new("export")
        .about("Write the graph as GraphML, DOT, JSON, JSON Canvas, or as a page to look at")
        .arg(
            Arg::new("format")
                .long("format")
                .value_parser(PossibleValuesParser::new(
                    ExportFormat::ALL.map(ExportFormat::as_str),
                ))
                .default_value("html")
                .help("The form"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .default_value("-")
                .help("Where to; `-` is standard output"),
        )
}

/// Writes the graph.
pub(super) fn run(host: &dyn Host, settings: &Settings, matches: &ArgMatches) -> Result<u8> {
    let Some(("export", matches)) = matches.subcommand() else {
        return Ok(2);
    };
    let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let wanted = text("format");
    let format = ExportFormat::ALL
        .into_iter()
        .find(|it| it.as_str() == wanted);
    let format = format.ok_or_else(|| Error::invalid(format!("unknown format `{wanted}`")))?;
    let graph = host
        .open(settings)?
        .kg()
        .export_graph(&owner(settings), format)?;
    let to = text("output");
    if to == "-" {
        output::print(&graph);
        return Ok(0);
    }
    let (dir, name) = kenning_vault::split(Path::new(&to))?;
    dir.write(&name, graph.as_bytes())?;
    output::say(&format!("✓ {to}: {} bytes of {wanted}", graph.len()));
    Ok(0)
}
