//! The contract of Kiwi: every request of its text is sent to the running program by `curl`, as it
//! stands there, and every answer is compared with the document key by key.
//!
//! Only the port and the home of the document's user are replaced. Requests, answers, schemas, formats
//! of items, errors and statuses are all read from the text, so that a key that is missing, renamed or
//! of another type fails here; what a request does on disk, in the registry and in the log is checked
//! under its heading.

use crate::{Client, Place, Server};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The contract without its prose.
const CONTRACT: &str = include_str!("../contracts/kiwi.md");

/// The home of the document's user.
const HOME: &str = "/home/user";

/// A fenced block, with where it stands.
#[derive(Clone, Debug)]
struct Block {
    /// The heading of the chapter.
    chapter: String,
    /// The nearest heading.
    heading: String,
    /// The bold words right above it, without their colon.
    label: String,
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let (mut chapter, mut heading, mut label) = (String::new(), String::new(), String::new());
    let (mut found, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for line in CONTRACT.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block {
                    chapter: chapter.clone(),
                    heading: heading.clone(),
                    label: std::mem::take(&mut label),
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => block.text += &format!("{line}\n"),
            (None, None) if line.starts_with('#') => {
                line.trim_start_matches(['#', ' ']).clone_into(&mut heading);
                if line.starts_with("## ") {
                    heading.clone_into(&mut chapter);
                }
                label.clear();
            }
            (None, None) => {
                if let Some(words) = line.strip_prefix("**") {
                    words.trim_end_matches(":**").clone_into(&mut label);
                }
            }
        }
    }
    found
}

/// The block of a language in a chapter, under a heading or a label that begins so.
fn block(chapter: &str, beneath: &str, language: &str) -> String {
    let is_it = |it: &Block| {
        it.chapter.contains(chapter)
            && it.language == language
            && (it.heading == beneath || it.label.starts_with(beneath))
    };
    let found = blocks().into_iter().find(is_it);
    let found = found.unwrap_or_else(|| panic!("no {language} for {beneath} in {chapter}"));
    found.text
}

fn json_block(chapter: &str, beneath: &str) -> Value {
    serde_json::from_str(&block(chapter, beneath, "json")).unwrap()
}

/// The cells of the first table under a heading, without its head.
fn table(heading: &str) -> Vec<Vec<String>> {
    let lines = CONTRACT.lines().skip_while(|line| {
        line.trim_start_matches(['#', ' ']) != heading || !line.starts_with('#')
    });
    let rows = lines
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|it| it.trim().replace('`', "")).collect()
    };
    rows.skip(2).map(cells).collect()
}

/// A request of the document, with the answer that it shows.
struct Request {
    heading: String,
    chapter: String,
    script: String,
    response: Option<Value>,
}

fn requests() -> Vec<Request> {
    let blocks = blocks();
    let mut found = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        if block.language != "bash" {
            continue;
        }
        assert!(block.text.contains("curl -X POST"), "{block:?}");
        let next = blocks.get(at + 1).filter(|it| it.label == "Response");
        let response = next.map(|it| serde_json::from_str(&it.text).unwrap());
        found.push(Request {
            heading: block.heading.clone(),
            chapter: block.chapter.clone(),
            script: block.text.clone(),
            response,
        });
    }
    assert_eq!(found.len(), CONTRACT.matches("curl -X POST").count());
    found
}

/// What differs from an answer of the document: keys that are missing, values of another type, and
/// other values, except under keys that may vary.
pub(crate) fn differences(
    expected: &Value,
    actual: &Value,
    varies: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    fn look(
        expected: &Value,
        actual: Option<&Value>,
        at: &str,
        varies: &dyn Fn(&str) -> bool,
        found: &mut Vec<String>,
    ) {
        let Some(actual) = actual else {
            return found.push(format!("`{at}` is missing"));
        };
        match (expected, actual) {
            (Value::Object(fields), Value::Object(_)) => {
                for (name, value) in fields {
                    let at = format!("{at}.{name}");
                    look(value, actual.get(name), &at, varies, found);
                }
            }
            (Value::Array(values), Value::Array(actual)) => {
                if values.len() != actual.len() && !varies(at) {
                    found.push(format!("`{at}`: {} for {}", actual.len(), values.len()));
                }
                // A list that varies has elements like those of the document.
                let like = |i: usize| values.get(i).or(values.last().filter(|_| varies(at)));
                for (i, actual) in actual.iter().enumerate() {
                    if let Some(value) = like(i) {
                        look(value, Some(actual), &format!("{at}[]"), varies, found);
                    }
                }
            }
            _ if std::mem::discriminant(expected) != std::mem::discriminant(actual) => {
                found.push(format!("`{at}`: {actual} is not of the type of {expected}"));
            }
            _ if expected != actual && !varies(at) => {
                found.push(format!("`{at}`: {actual} for {expected}"));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    look(expected, Some(actual), "", varies, &mut found);
    found
}

/// What the document shows of another machine: the name for people, a score, where a file lies and how
/// large it is, which registry there is, and the text of a directive.
fn is_of_a_machine(at: &str) -> bool {
    const VARY: [&str; 7] = [
        ".results[].name",
        ".results[].quality_score",
        ".path",
        ".size_bytes",
        ".registry",
        ".url",
        ".content",
    ];
    VARY.contains(&at)
}

#[test]
fn an_answer_that_differs_from_the_document_is_noticed() {
    let document = json!({ "status": "loaded", "size_bytes": 1, "results": [{ "id": "a" }] });
    for (actual, n) in [
        (document.clone(), 0),
        (
            json!({ "status": "loaded", "size_bytes": 2, "results": [{ "id": "a" }], "more": 1 }),
            0,
        ),
        (
            json!({ "state": "loaded", "size_bytes": 1, "results": [{ "id": "a" }] }),
            1,
        ),
        (
            json!({ "status": "ok", "size_bytes": 1, "results": [{ "id": "a" }] }),
            1,
        ),
        (
            json!({ "status": "loaded", "size_bytes": "1", "results": [{ "id": "a" }] }),
            1,
        ),
        (
            json!({ "status": "loaded", "size_bytes": 1, "results": [] }),
            1,
        ),
        (
            json!({ "status": "loaded", "size_bytes": 1, "results": [{ "name": "a" }] }),
            1,
        ),
        (json!("loaded"), 1),
    ] {
        let found = differences(&document, &actual, &is_of_a_machine);
        assert_eq!(found.len(), n, "{actual}: {found:?}");
    }
}

/// The document's world: its user's home with two projects, and somebody who published.
struct World {
    server: Server,
    root: PathBuf,
    place: Place,
}

impl World {
    fn new() -> Self {
        let place = Place::new();
        let root = place.0.path().canonicalize().unwrap();
        for project in ["myapp", "myproject", "author"] {
            fs::create_dir_all(root.join("home/user").join(project)).unwrap();
        }
        // What `curl` prints: the body, then the status in a line of its own.
        let settings = "silent\nshow-error\nwrite-out = \"\\n%{http_code}\"\n";
        fs::write(root.join(".curlrc"), settings).unwrap();
        // The document's requests sign over HTTP, which the operator has to allow.
        crate::allow_agents_to_sign(&place);
        let server = Server::start(
            &place,
            &[
                "--project",
                &root.join("home/user/myapp").to_string_lossy(),
                "--allow-root",
                &root.join("home/user").to_string_lossy(),
                // The document's requests carry no token.
                "--no-token",
            ],
        );
        let world = Self {
            server,
            root,
            place,
        };
        world.prepare();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A script of the document, by a shell that has nothing of this machine but its programs.
    fn curl(&self, script: &str) -> (u16, Value) {
        let script = script
            .replace(
                "localhost:3000/tools",
                &format!("localhost:{}/tools", self.server.port),
            )
            .replace(HOME, &self.path("home/user").to_string_lossy());
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", &self.root)
            .output()
            .expect("bash");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "is curl installed? {script}: {err}"
        );
        let said = String::from_utf8(output.stdout).unwrap();
        let (body, status) = said.rsplit_once('\n').unwrap();
        (
            status.parse().unwrap(),
            serde_json::from_str(body).unwrap_or_else(|_| panic!("not JSON: {body}")),
        )
    }

    fn post(&self, tool: &str, body: &Value) -> (u16, Value) {
        let (status, body) = self
            .server
            .post(&format!("/tools/{tool}"), "", &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }

    /// An action of the author or of the user, that succeeds.
    fn execute(&self, item_type: &str, action: &str, id: &str, project: Option<&str>) -> Value {
        self.execute_with(item_type, action, id, project, &json!({}))
    }

    fn execute_with(
        &self,
        item_type: &str,
        action: &str,
        id: &str,
        project: Option<&str>,
        parameters: &Value,
    ) -> Value {
        let mut body = json!({
            "item_type": item_type, "action": action, "item_id": id, "parameters": parameters,
        });
        if let Some(project) = project {
            body["project_path"] = self.path(project).to_string_lossy().into();
        }
        let (status, answer) = self.post("execute", &body);
        assert_eq!(status, 200, "{body}: {answer}");
        answer
    }

    fn search(&self, item_type: &str, query: &str, source: &str) -> Vec<Value> {
        let body = json!({ "item_type": item_type, "query": query, "source": source });
        let (status, answer) = self.post("search", &body);
        assert_eq!(status, 200, "{answer}");
        answer["results"].as_array().unwrap().clone()
    }

    /// The versions of an id that a search of the registry shows.
    fn in_registry(&self, item_type: &str, id: &str) -> Vec<String> {
        let found = self.search(item_type, id, "registry");
        let exact = found.iter().filter(|it| it["id"] == id);
        exact
            .map(|it| it["version"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The log, oldest first.
    fn events(&self) -> Vec<Value> {
        let lines = self.place.good(&["audit", "export"]);
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// What the document presumes, in the formats that it gives.
    fn prepare(&self) {
        let author = Some("home/user/author");
        let shown = &requests()[0].response.clone().unwrap()["results"];
        for row in shown.as_array().unwrap() {
            let text = |name: &str| row[name].as_str().unwrap();
            let (id, version, category) = (text("id"), text("version"), text("category"));
            let directive = block("Item Type Details", "directive", "yaml")
                .replace("directive_name", id)
                .replace("1.0.0", version)
                .replace("category: setup", &format!("category: {category}"))
                .replace("What this directive does", text("description"));
            let directive = match id {
                "oauth_setup" => directive.replace("# Directive Content\n", &run_content()),
                _ => directive,
            };
            let name = format!("home/user/author/.ai/directives/{category}/{id}.md");
            self.write(&name, &directive);
            self.execute("directive", "create", id, author);
            self.execute("directive", "publish", id, author);
        }
        let manifest = block("Item Type Details", "tool", "yaml");
        for (project, id, does) in [
            ("author", "google_maps_scraper", "Finds places on a map"),
            (
                "myapp",
                "page_scraper",
                "Scrapes data from pages of the web",
            ),
        ] {
            let at = format!("home/user/{project}/.ai/tools/scraping/{id}");
            let manifest = manifest.replace("my_tool", id);
            let manifest = manifest.replace("What this tool does", does);
            self.write(&format!("{at}/manifest.yaml"), &manifest);
            let source = block("Item Type Details", "tool", "python");
            self.write(&format!("{at}/main.py"), &source);
        }
        self.execute("tool", "sign", "google_maps_scraper", author);
        self.execute("tool", "publish", "google_maps_scraper", author);
        for version in ["1.4.0", "1.5.0", "1.6.0"] {
            let name =
                "home/user/author/.ai/knowledge/email-infrastructure/001-email-deliverability.md";
            self.write(name, &entry("001-email-deliverability", version));
            self.execute("knowledge", "sign", "001-email-deliverability", author);
            self.execute("knowledge", "publish", "001-email-deliverability", author);
        }
        for id in ["001-old-entry", "002-smtp-config"] {
            let name = format!(".knowledge-kiwi/email-infrastructure/{id}.md");
            self.write(&name, &entry(id, "1.0.0"));
            self.execute("knowledge", "create", id, None);
        }
        let new = entry("003-new-pattern", "1.0.0").replace("email-infrastructure", "patterns");
        self.write(
            "home/user/myproject/.ai/knowledge/patterns/003-new-pattern.md",
            &new,
        );
        let directive = block("Item Type Details", "directive", "yaml");
        self.write(
            "home/user/myproject/.ai/directives/setup/my_directive.md",
            &directive.replace("directive_name", "my_directive"),
        );
        let own = Some("home/user/myproject");
        self.execute("directive", "create", "my_directive", own);
    }
}

/// A knowledge entry in the format of the document, which shows none with a version.
fn entry(id: &str, version: &str) -> String {
    block("Item Type Details", "knowledge", "yaml")
        .replace("001-email-deliverability", id)
        .replacen("tags:", &format!("version: {version}\ntags:"), 1)
}

/// The text of the directive that the document runs.
fn run_content() -> String {
    let all = requests();
    let run = all.iter().find(|it| it.heading == "Run a Directive");
    let response = run.unwrap().response.as_ref().unwrap();
    response["content"].as_str().unwrap().to_owned()
}

/// An answer for which the document shows no example is like its chapter's `Returns`.
fn compare_with_returns(request: &Request, answer: &Value) -> Vec<String> {
    if request.chapter.contains("help") {
        return differences(&json_block("help", "Returns"), answer, &|_| true);
    }
    let mut shown = json_block(&request.chapter, "Success");
    if request.chapter.contains("execute") {
        // `result` is what varies by action; the words of `status` are listed in one text.
        shown.as_object_mut().unwrap().remove("result").unwrap();
        let words = table("Status Responses");
        let status = answer["status"].as_str().unwrap_or_default();
        assert!(words.iter().any(|it| it[0] == status), "{answer}");
    }
    let is_load = request.chapter.contains("load");
    let mut found = differences(&shown, answer, &|at| !(is_load && at == ".status"));
    if shown.get("status").is_some() {
        let standard = json!({ "status": "", "name": "", "timestamp": "" });
        found.extend(differences(&standard, answer, &|_| true));
    }
    found
}

#[test]
fn every_request_of_the_document_is_answered_as_it_shows() {
    let world = World::new();
    for request in requests() {
        let before = world.events().len();
        let (status, answer) = world.curl(&request.script);
        assert_eq!(status, 200, "{}: {answer}", request.heading);
        let found = match &request.response {
            Some(response) => differences(response, &answer, &is_of_a_machine),
            None => compare_with_returns(&request, &answer),
        };
        assert!(
            found.is_empty(),
            "{}: {found:#?}\n{answer}",
            request.heading
        );
        let mut events = world.events().split_off(before);
        events.retain(|it| !is_of_the_index(it));
        check_effects(&world, &request.heading, &answer, &events);
    }
    let report = world.place.good(&["audit", "verify", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["clean"], true, "{report}");
}

/// Whether an event says that a node follows its file, whoever changed that, or that an entry was read,
/// which is written some moments after it was.
fn is_of_the_index(event: &Value) -> bool {
    let is_reading = event["kind"] == "ItemRun" && event["data"]["type"] == "knowledge";
    is_reading
        || ["ItemAdded", "ItemChanged", "ItemRemoved"].contains(&event["kind"].as_str().unwrap())
}

/// What a request left on disk, in the registry and in the log.
fn check_effects(world: &World, heading: &str, answer: &Value, events: &[Value]) {
    let logged = |kind: &str, data: Value| {
        assert_eq!(events.len(), 1, "{heading}: {events:#?}");
        assert_eq!(events[0]["kind"], kind, "{heading}");
        let found = differences(&data, &events[0]["data"], &|_| false);
        assert!(found.is_empty(), "{heading}: {found:?}");
    };
    let read = |name: &str| fs::read_to_string(world.path(name)).unwrap();
    let size = |name: &str| fs::metadata(world.path(name)).unwrap().len();
    let path = |name: &str| Value::from(world.path(name).to_string_lossy());
    match heading {
        "Search Directives in Registry" => assert!(events.is_empty(), "{events:?}"),
        "Search Tools Locally" => {
            assert_eq!(answer["results"][0]["id"], "page_scraper");
            assert_eq!(answer["results"][0]["source"], "local");
            assert!(events.is_empty(), "{events:?}");
        }
        "Search Knowledge Everywhere" => {
            let found = answer["results"].as_array().unwrap();
            for (id, source) in [
                ("001-email-deliverability", "registry"),
                ("002-smtp-config", "local"),
            ] {
                let is_it = |it: &&Value| it["id"] == id && it["source"] == source;
                assert_eq!(found.iter().filter(is_it).count(), 1, "{id}: {answer}");
            }
            assert!(events.is_empty(), "{events:?}");
        }
        "Load Directive to Project" => {
            let name = ".ai/directives/authentication/oauth_setup.md";
            let here = format!("home/user/myapp/{name}");
            assert_eq!(answer["path"], path(&here));
            assert_eq!(answer["size_bytes"], size(&here));
            assert_eq!(read(&here), read(&format!("home/user/author/{name}")));
            let data = json!({
                "type": "directive", "id": "oauth_setup", "version": "2.1.0", "from": "registry",
            });
            logged("ItemLoaded", data);
        }
        "Load Tool to User Space" => {
            let here = ".ai/tools/scraping/google_maps_scraper";
            assert_eq!(answer["path"], path(here));
            let (manifest, source) = (format!("{here}/manifest.yaml"), format!("{here}/main.py"));
            assert_eq!(answer["size_bytes"], size(&manifest) + size(&source));
            let from = "home/user/author/.ai/tools/scraping/google_maps_scraper/main.py";
            assert_eq!(read(&source), read(from));
            logged("ItemLoaded", json!({ "type": "tool", "version": "1.0.0" }));
        }
        "Load Specific Version" => {
            let here = ".knowledge-kiwi/email-infrastructure/001-email-deliverability.md";
            assert_eq!(answer["path"], path(here));
            assert!(read(here).contains("version: 1.5.0"), "not the newest");
            let data = json!({ "id": "001-email-deliverability", "version": "1.5.0" });
            logged("ItemLoaded", data);
        }
        "Run a Directive" => {
            let content = answer["content"].as_str().unwrap();
            assert!(content.contains(&run_content()), "{content}");
            let data = json!({
                "type": "directive", "id": "oauth_setup", "success": true,
                "runId": answer["run_id"],
            });
            logged("ItemRun", data);
        }
        "Publish Directive to Registry" => {
            assert_eq!(world.in_registry("directive", "my_directive"), ["1.0.0"]);
            logged(
                "ItemPublished",
                json!({ "id": "my_directive", "version": "1.0.0" }),
            );
        }
        "Delete with Confirmation" => {
            let gone = ".knowledge-kiwi/email-infrastructure/001-old-entry.md";
            assert!(!world.path(gone).exists());
            let found = world.search("knowledge", "001-old-entry", "local");
            assert!(found.iter().all(|it| it["id"] != "001-old-entry"));
            logged(
                "ItemDeleted",
                json!({ "id": "001-old-entry", "path": path(gone) }),
            );
        }
        "Create Knowledge Entry" => {
            let here = "home/user/myproject/.ai/knowledge/patterns/003-new-pattern.md";
            let text = read(here);
            // After the frontmatter, which stays what the contract shows: the head of the file.
            let mut after = text.lines().skip_while(|it| !it.starts_with("<!--"));
            let signature = after.next().unwrap();
            assert!(text.starts_with("---\n"), "{text}");
            assert!(signature.starts_with("<!-- kenning:signed:"), "{signature}");
            let hash = answer["signature"]["hash"].as_str().unwrap();
            assert!(signature.contains(hash), "{signature}");
            let own = Some("home/user/myproject");
            // Dry, because a run is logged, and that after its answer.
            let dry = json!({ "dry_run": true });
            world.execute_with("knowledge", "run", "003-new-pattern", own, &dry);
            logged(
                "ItemSigned",
                json!({ "id": "003-new-pattern", "sha256": hash }),
            );
        }
        "Link Knowledge Entries" => {
            let data = json!({ "to": "002-smtp-config", "relationship": "references" });
            logged("ItemLinked", data);
            let edge = &events[0]["changes"][0];
            assert_eq!(
                (&edge["put"], &edge["rel"]),
                (&json!("edge"), &json!("references"))
            );
        }
        "General Help" => assert_eq!(answer["topic"], "overview"),
        "Help for search Tool" => assert_eq!(answer["topic"], "search"),
        "Help for Directives" => assert_eq!(answer["topic"], "directive"),
        other => panic!("nothing is known of what `{other}` does"),
    }
}

#[test]
fn errors_have_the_codes_and_the_keys_of_the_document() {
    let world = World::new();
    let project = world.path("home/user/myproject");
    let run = |id: &str| json!({ "item_type": "directive", "action": "run", "item_id": id });
    let mut tried = 0;
    for row in table("Error Codes") {
        let code: u16 = row[0].parse().unwrap();
        let cases = match code {
            400 => vec![
                ("search", json!({ "item_type": "directive" })),
                (
                    "load",
                    json!({ "item_type": "directive", "item_id": "oauth_setup" }),
                ),
                (
                    "execute",
                    json!({ "item_type": "directive", "action": "run" }),
                ),
            ],
            404 => vec![
                (
                    "load",
                    json!({ "item_type": "directive", "item_id": "none", "destination": "user" }),
                ),
                ("execute", run("none")),
                (
                    "execute",
                    json!({
                        "item_type": "knowledge", "action": "link", "item_id": "002-smtp-config",
                        "parameters": { "target_id": "none", "relationship_type": "references" },
                    }),
                ),
            ],
            422 => vec![
                ("search", json!({ "item_type": "skill", "query": "x" })),
                (
                    "search",
                    json!({ "item_type": "tool", "query": "x", "limit": 0 }),
                ),
                (
                    "search",
                    json!({ "item_type": "tool", "query": "x", "limit": 101 }),
                ),
                ("load", json!({ "item_type": "skill", "item_id": "x" })),
                (
                    "execute",
                    json!({ "item_type": "directive", "action": "dance", "item_id": "x" }),
                ),
                (
                    "execute",
                    json!({
                        "item_type": "directive", "action": "publish", "item_id": "my_directive",
                        "parameters": { "version": "9.0.0" }, "project_path": project,
                    }),
                ),
                (
                    "execute",
                    json!({
                        "item_type": "knowledge", "action": "delete",
                        "item_id": "002-smtp-config",
                    }),
                ),
            ],
            // An unexpected exception is a fault of the program: no request leads to one.
            500 => Vec::new(),
            other => panic!("the document has a new code {other}"),
        };
        for (tool, body) in cases {
            let (status, answer) = world.post(tool, &body);
            assert_eq!(status, code, "{tool} {body}: {answer}");
            assert!(
                answer["error"].is_string() && answer["message"].is_string(),
                "{answer}"
            );
            for given in ["item_type", "action", "item_id"] {
                let given = body.get(given).map(|it| (given, it));
                assert!(given.is_none_or(|it| answer[it.0] == *it.1), "{answer}");
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 13);
    for (tool, body, same) in [
        (
            "search",
            json!({ "item_type": "skill", "query": "x" }),
            ".supported_types",
        ),
        (
            "load",
            json!({ "item_type": "directive", "item_id": "none", "destination": "user" }),
            ".error",
        ),
        ("execute", run("none"), ".message"),
    ] {
        let (_, answer) = world.post(tool, &body);
        let found = differences(&json_block(tool, "Error"), &answer, &|at| at != same);
        assert!(found.is_empty(), "{tool}: {found:?}\n{answer}");
    }
}

#[test]
fn a_file_that_was_changed_is_neither_run_nor_published() {
    let world = World::new();
    let own = world.path("home/user/myproject");
    let file = own.join(".ai/directives/setup/my_directive.md");
    let signed = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        signed.replace("What this directive", "What that directive"),
    )
    .unwrap();
    for action in ["run", "publish"] {
        let body = json!({
            "item_type": "directive", "action": action, "item_id": "my_directive",
            "project_path": own,
        });
        let (status, answer) = world.post("execute", &body);
        assert_eq!(status, 422, "{action}: {answer}");
        assert_eq!(answer["status"], "modified", "{answer}");
        assert_ne!(answer["computed"], answer["stored"], "{answer}");
    }
    assert!(world.in_registry("directive", "my_directive").is_empty());
    fs::write(&file, signed).unwrap();
    world.execute(
        "directive",
        "run",
        "my_directive",
        Some("home/user/myproject"),
    );
}

#[test]
fn a_dry_run_of_any_action_leaves_no_file_and_no_event() {
    let world = World::new();
    let own = Some("home/user/myproject");
    let dry = |more: Value| {
        let mut all = json!({ "dry_run": true });
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all
    };
    let files = || {
        let mut found = vec![
            world.path("home/user/myproject/.ai"),
            world.path(".knowledge-kiwi"),
        ];
        let mut all = Vec::new();
        while let Some(path) = found.pop() {
            match fs::read_dir(&path) {
                Ok(entries) => found.extend(entries.map(|it| it.unwrap().path())),
                Err(_) => all.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
        all.sort();
        all
    };
    // Whatever is indexed on the way is indexed before.
    world.search("knowledge", "anything", "all");
    let (before, n_events) = (files(), world.events().len());
    for (item_type, action, id, project, more) in [
        ("directive", "run", "my_directive", own, json!({})),
        ("directive", "publish", "my_directive", own, json!({})),
        ("directive", "sign", "my_directive", own, json!({})),
        ("knowledge", "create", "003-new-pattern", own, json!({})),
        ("knowledge", "update", "002-smtp-config", None, json!({})),
        ("knowledge", "run", "002-smtp-config", None, json!({})),
        (
            "knowledge",
            "delete",
            "001-old-entry",
            None,
            json!({ "confirm": true }),
        ),
        (
            "knowledge",
            "link",
            "001-old-entry",
            None,
            json!({ "target_id": "002-smtp-config", "relationship_type": "related" }),
        ),
    ] {
        let answer = world.execute_with(item_type, action, id, project, &dry(more));
        assert_eq!(answer["status"], "validation_passed", "{action}: {answer}");
        assert_eq!(files(), before, "{action}");
        let mut events = world.events().split_off(n_events);
        events.retain(|it| !is_of_the_index(it));
        assert!(events.is_empty(), "{action}: {events:?}");
    }
    assert!(world.in_registry("directive", "my_directive").is_empty());
}

#[test]
fn the_four_tools_are_listed_with_the_documents_schemas() {
    let place = Place::new();
    let mut client = Client::start(&place, &["--toolsets", "kiwi"]);
    let listed = client.request("tools/list", &json!({}));
    let listed = listed["result"]["tools"].as_array().unwrap();
    let rows = table("Tools Overview");
    assert_eq!(listed.len(), rows.len());
    for (tool, row) in listed.iter().zip(rows) {
        let shown = json_block(row[0].trim_matches('*'), "Schema");
        assert_eq!(tool["name"], shown["name"]);
        let said = tool["description"].as_str().unwrap();
        assert!(
            said.starts_with(shown["description"].as_str().unwrap()),
            "{said}"
        );
        let (schema, shown) = (&tool["inputSchema"], &shown["inputSchema"]);
        let required = |schema: &Value| schema.get("required").cloned().unwrap_or(json!([]));
        assert_eq!(required(schema), required(shown), "{}", tool["name"]);
        for (name, shown) in shown["properties"].as_object().unwrap() {
            let field = &schema["properties"][name];
            let types = &field["type"];
            let is_type = *types == shown["type"]
                || types
                    .as_array()
                    .is_some_and(|it| it.contains(&shown["type"]));
            let words = |it: &Value| it["enum"].as_array().cloned().unwrap_or_default();
            let mut expected = words(shown).into_iter();
            assert!(is_type, "{name}: {field} for {shown}");
            assert!(
                expected.all(|it| words(field).contains(&it)),
                "{name}: {field}"
            );
            assert_eq!(field["description"], shown["description"], "{name}");
            if let Some(default) = shown.get("default") {
                assert_eq!(&field["default"], default, "{name}");
            }
        }
    }
    let refused = client.call("search", &json!({ "item_type": "skill", "query": "x" }));
    assert_eq!(refused["result"]["isError"], true);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    let body: Value = serde_json::from_str(text).unwrap();
    let found = differences(&json_block("search", "Error"), &body, &|at| at == ".error");
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(client.finish(), 0);
}
