//! Serves the fixtures over HTTP, for the conformance suite: `.ci/conformance` runs both.
//!
//! It knows nothing of the suite itself.
//! Invariant: it listens on loopback only, and ends with its input.

use anyhow::Result;
use axum::Router;
use kenning_core::Space;
use kenning_engine::Principal;
use kenning_mcp::{Server, http};
use kenning_rest::{Guard, Hosts};
use kenning_testing::Fixture;
use kenning_testing_mcp::WithFixtures;
use std::io::Write;

/// Calls a minute: the suite is one caller, and in a hurry.
const CALLS_PER_MINUTE: u32 = 100_000;

fn main() -> Result<()> {
    // Opened and dropped outside of the runtime, on whose threads the engine must not wait.
    let fixture = Fixture::new();
    let runtime = tokio::runtime::Runtime::new()?;
    let served = runtime.block_on(serve(&fixture));
    runtime.shutdown_background();
    served
}

/// Serves on any free port of this machine until the standard input ends; the address is the one line of
/// the output.
async fn serve(fixture: &Fixture) -> Result<()> {
    let listener = kenning_rest::bind(([127, 0, 0, 1], 0).into()).await?;
    let address = listener.local_addr()?;
    let server = Server::new(fixture.board.clone(), Principal::owner(Space::default()));
    let options = http::Options {
        // The suite wants to be asked something back.
        sessions: true,
        ..http::Options::default()
    };
    let mcp = http::service(WithFixtures::new(server), options);
    let engine = fixture.board.engine().clone();
    let guard = Guard::new(engine, Hosts::default(), false, None, CALLS_PER_MINUTE);
    let extra = Router::new().route_service("/mcp", mcp);
    let router = kenning_rest::router(fixture.board.clone(), guard, extra);
    writeln!(std::io::stdout(), "listening on http://{address}")?;
    let ended = async {
        let read = tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await;
        // An input that cannot be read has ended as well.
        drop(read);
    };
    kenning_rest::serve(listener, router, ended).await;
    Ok(())
}
