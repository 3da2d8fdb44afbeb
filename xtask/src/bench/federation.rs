//! An empty node of KOI-net fetches everything that another provides, and takes it into its graph; beside it, two
//! nodes of the reference implementation do the same.
//!
//! Our nodes are on SQLite in one process: what is measured are messages, signatures and rows, and no network. Those
//! of the reference are two processes that speak HTTP, and fetch fewer bundles: what one costs them does not depend
//! on how many there are.

use crate::options::Options;
use anyhow::{Result, ensure};
use base64::Engine as _;
use kenning_core::Error;
use kenning_engine::koi::{
    Carried, Carrier, Connect, Destination, EntityImport, FederationSetup, Koi,
};
use kenning_testing::Fixture;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

/// What precedes the secret in a key file.
const PKCS8: &str = "308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420";

/// Carries messages in memory, and counts their bytes.
#[derive(Default)]
struct Memory {
    nodes: RefCell<Vec<(String, Arc<Koi>)>>,
    n_bytes: Cell<usize>,
    n_messages: Cell<usize>,
}

impl Carrier for Memory {
    fn carry(
        &self,
        to: &Destination,
        path: &str,
        body: Option<&str>,
    ) -> kenning_core::Result<Carried> {
        let nodes = self.nodes.borrow();
        let node = nodes
            .iter()
            .find(|it| it.0 == to.base_url)
            .map(|it| it.1.clone());
        drop(nodes);
        let (Some(node), Some(body)) = (node, body) else {
            return Err(Error::unavailable("nobody answers"));
        };
        let answered = node.answer_federation(self, path, body.as_bytes(), false);
        self.n_bytes
            .set(self.n_bytes.get() + body.len() + answered.body.len());
        self.n_messages.set(self.n_messages.get() + 1);
        Ok(Carried {
            status: answered.status,
            body: answered.body.into_bytes(),
        })
    }
}

fn node(memory: &Memory, name: &str, secret: u8) -> Result<(Fixture, String, String)> {
    let fixture = Fixture::without_vault(Default::default());
    let der = kenning_text::hex::decode(&format!("{PKCS8}{}", format!("{secret:02x}").repeat(32)));
    let der = base64::engine::general_purpose::STANDARD.encode(der.unwrap_or_default());
    let url = format!("http://{name}.test/koi-net");
    let koi = fixture.board.engine().koi().clone();
    let identity = koi.set_up_federation(
        &fixture.owner(),
        FederationSetup {
            name: Some(name.to_owned()),
            base_url: Some(url.clone()),
            provides: Some(vec!["Practice".to_owned()]),
            strict: None,
            key_pem: Some(format!(
                "-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"
            )),
        },
    )?;
    memory.nodes.borrow_mut().push((url.clone(), koi));
    Ok((fixture, url, identity.rid))
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["bundles", "reference"])?;
    let n_bundles: usize = options.value("bundles", 100_000)?;
    let n_reference: usize = options.value("reference", 500)?;
    let memory = Memory::default();
    let (full, full_url, full_rid) = node(&memory, "full", 1)?;
    let (empty, empty_url, empty_rid) = node(&memory, "empty", 2)?;
    let rows: Vec<Value> = (0..n_bundles)
        .map(|n| {
            let name = format!("Practice {n} of the {} river", n * 7_919 % 1_000_003);
            json!({ "name": name, "type": "Practice", "description": super::fixture::words(n as u64, 120) })
        })
        .collect();
    let import = EntityImport {
        name: "bench".to_owned(),
        exports: vec![json!({ "entities": rows })],
    };
    let (there, here) = (full.board.engine().koi(), empty.board.engine().koi());
    there.import_entities(&full.owner(), &import)?;
    let connect = |url: &str, rid: &str| Connect {
        url: url.to_owned(),
        rid: Some(rid.to_owned()),
        ..Connect::default()
    };
    let before = Instant::now();
    there.connect_node(&full.owner(), &memory, connect(&empty_url, &empty_rid))?;
    there.federate_now(&full.owner(), &memory)?;
    println!(
        "federation: {n_bundles} bundles made ready in {:.1} s",
        before.elapsed().as_secs_f64()
    );
    memory.n_bytes.set(0);
    memory.n_messages.set(0);
    let before = Instant::now();
    here.connect_node(&empty.owner(), &memory, connect(&full_url, &full_rid))?;
    let fetched = before.elapsed().as_secs_f64();
    let n_bytes = memory.n_bytes.get() / n_bundles.max(1);
    println!(
        "federation: fetched by an empty node in {fetched:.1} s, {:.0} bundles/s, {n_bytes} bytes a bundle, {} messages",
        n_bundles as f64 / fetched,
        memory.n_messages.get()
    );
    let before = Instant::now();
    here.federate_now(&empty.owner(), &memory)?;
    let taken = before.elapsed().as_secs_f64();
    let n_known = here.federation_status(&empty.owner())?.peers[0].n_known;
    println!(
        "federation: taken into the graph in {taken:.1} s, {:.0} bundles/s",
        n_bundles as f64 / taken
    );
    ensure!(
        n_known == n_bundles,
        "{n_known} of {n_bundles} bundles arrived"
    );
    println!(
        "federation: {:.0} bundles/s from the first question to the graph",
        n_bundles as f64 / (fetched + taken)
    );
    reference(n_bundles, n_reference)
}

/// The same by the reference implementation, if `.ci/koi-net` installed it.
fn reference(n_ours: usize, n_bundles: usize) -> Result<()> {
    let python = Path::new("target/koi-net/venv/bin/python");
    if n_bundles == 0 || !python.exists() {
        println!("federation: the reference was not measured; `.ci/koi-net` installs it");
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    let ran = Command::new(python)
        .arg("testing/koi-net/bench.py")
        .args([place.path().as_os_str(), n_bundles.to_string().as_ref()])
        .output()?;
    ensure!(
        ran.status.success(),
        "the reference failed: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let measured: Value = serde_json::from_slice(&ran.stdout)?;
    let (seconds, n_bytes) = (measured["seconds"].as_f64(), measured["bytes"].as_f64());
    let (seconds, n_bytes) = (seconds.unwrap_or_default(), n_bytes.unwrap_or_default());
    println!(
        "federation: koi-net 2.1.2 fetched {n_bundles} in {seconds:.1} s, {:.1} bundles/s, {:.0} bytes a bundle with HTTP's headers; {n_ours} would take it {:.0} s",
        n_bundles as f64 / seconds,
        n_bytes / n_bundles as f64,
        seconds / n_bundles as f64 * n_ours as f64
    );
    Ok(())
}
