//! No door differs: each tool's examples give the same through MCP, REST and the command line.

use crate::{Client, Place, Server};
use serde_json::{Value, json};

#[test]
fn every_example_answers_alike_at_every_door() {
    let places = [Place::new(), Place::new(), Place::new()];
    for place in &places {
        std::fs::create_dir(place.vault().join("People")).unwrap();
        std::fs::write(place.vault().join("People/Bill Baue.md"), "# Bill Baue\n").unwrap();
    }
    let mut client = Client::start(&places[0], &[]);
    let server = Server::start(&places[1], &[]);
    let mut cases = 0;
    for tool in kenning_tools::TOOLS {
        for example in tool.examples() {
            let arguments: Value = serde_json::from_str(example.input).unwrap();
            let mcp = client.call(tool.name(), &arguments)["result"].clone();
            let (_, rest) = server.post(&format!("/tools/{}", tool.name()), "", example.input);
            let rest: Value = serde_json::from_str(&rest).unwrap();
            let cli = places[2].run(&["call", tool.name(), "--json", example.input]);
            let shown = format!("{} {}", tool.name(), example.title);
            if mcp["isError"] == true {
                let text = mcp["content"][0]["text"].as_str().unwrap();
                let error: Value = serde_json::from_slice(&cli.stderr).unwrap();
                for door in [&rest["error"], &error["error"]] {
                    assert!(
                        text.starts_with(door["message"].as_str().unwrap()),
                        "{shown}: {door}"
                    );
                }
            } else {
                let cli: Value = serde_json::from_slice(&cli.stdout).unwrap();
                let mcp = mcp
                    .get("structuredContent")
                    .cloned()
                    .unwrap_or_else(|| json!({ "content": mcp["content"] }));
                assert_eq!((&rest, &cli), (&mcp, &mcp), "{shown}");
            }
            cases += 1;
        }
    }
    println!("doors: {cases} examples x 3 doors");
    assert!(cases >= 3 * 2);
    assert_eq!(client.finish(), 0);
}
