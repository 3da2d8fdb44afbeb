//! A server with the fixtures of the conformance suite, on loopback.
//!
//! `conformance_server [PORT]` serves `/mcp`; port 0, the default, lets the system choose. It prints
//! the URL on one line. `conformance_server stdio` serves the standard streams instead. `RUST_LOG`
//! chooses what is logged to standard error.

#![expect(clippy::print_stdout, reason = "a command says where it listens")]

use kenning_core::Space;
use kenning_engine::{Engine, Principal};
use kenning_mcp::{Server, http, stdio};
use kenning_tools::{Board, Selection};
use std::error::Error;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Standard output belongs to the messages.
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let selection = Selection {
        toolsets: vec!["conformance".to_owned()],
        ..Selection::default()
    };
    let board = Board::new(Arc::new(Engine::default()), selection)?;
    let server = Server::new(board, Principal::owner(Space::default()));
    let argument = std::env::args().nth(1).unwrap_or_else(|| "0".to_owned());
    if argument == "stdio" {
        return Ok(stdio::serve_process(server, Default::default()).await?);
    }

    let options = http::Options {
        allowed_hosts: ["localhost", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec(),
        allowed_origins: ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"]
            .map(str::to_owned)
            .to_vec(),
        ..http::Options::default()
    };
    let service = http::service(server, options);
    let app = axum::Router::new().route_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", argument.parse()?)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
