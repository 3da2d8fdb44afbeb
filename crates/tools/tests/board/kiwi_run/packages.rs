//! Packages that Python tools depend on.

use super::*;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

const WHEEL: &str = "greeting-1.0.0-py3-none-any.whl";

/// A directory with one package, readable by whoever the jail makes of us.
fn wheels(bench: &Bench) -> PathBuf {
    let dir = bench.fixture.root.path().join("wheels");
    fs::create_dir(&dir).unwrap();
    open(&dir, 0o755);
    let path = dir.join(WHEEL);
    let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    let info = "greeting-1.0.0.dist-info";
    for (name, text) in [
        (
            "greeting.py".to_owned(),
            "WORD = 'hi from a package'\n".to_owned(),
        ),
        (
            format!("{info}/METADATA"),
            "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0.0\n".to_owned(),
        ),
        (
            format!("{info}/WHEEL"),
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
                .to_owned(),
        ),
        (
            format!("{info}/RECORD"),
            format!("greeting.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"),
        ),
    ] {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        zip.start_file(name, options).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
    open(&path, 0o644);
    dir
}

const GREET: &str = "import greeting, sys\nprint(greeting.WORD)\nprint(sys.prefix)";

#[test]
fn packages_are_installed_once_and_only_where_that_is_allowed() {
    let bench = Bench::new();
    bench.made("greet", "dependencies: [greeting==1.0.0]", "main.py", GREET);
    let refused = bench.failed("greet", json!({}));
    let hint = refused["hint"].as_str().unwrap();
    assert!(hint.contains("allow_install = true"), "{refused:#}");
    let dir = wheels(&bench).display().to_string();
    let policy = format!("allow_install = true\n[install]\nfind_links = {dir:?}\n");
    bench.policy(&policy);
    let done = bench.ran("greet", json!({}));
    let said = done["data"]["stdout"].as_str().unwrap();
    let prefix = said.strip_prefix("hi from a package\n").unwrap().trim();
    // Nothing is left to install from, so what runs now is what was installed.
    fs::remove_file(Path::new(&dir).join(WHEEL)).unwrap();
    assert_eq!(bench.ran("greet", json!({}))["data"]["stdout"], said);
    bench.made(
        "other",
        "dependencies: [nothing-of-the-kind]",
        "main.py",
        "",
    );
    let failed = bench.failed("other", json!({}));
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("could not be installed"), "{error}");
    bench.forget(prefix);
}

#[test]
fn an_environment_of_the_project_is_used_as_it_is() {
    let bench = Bench::new();
    let venv = bench.path(".venv");
    fs::create_dir_all(venv.join("bin")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/python3", venv.join("bin/python3")).unwrap();
    fs::write(venv.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    bench.made(
        "greet",
        "dependencies: [whatever]",
        "main.py",
        "import sys\nprint(sys.prefix)",
    );
    let done = bench.ran("greet", json!({}));
    let prefix = format!("{}\n", venv.canonicalize().unwrap().display());
    assert_eq!(done["data"]["stdout"], prefix);
}

/// An index with one package.
fn index(wheel: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(&stream).lines();
            let asked = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|it| !it.unwrap().is_empty()) {}
            let page = format!("<a href=\"/{WHEEL}\">{WHEEL}</a>").into_bytes();
            let (status, kind, body) = match asked.split(' ').nth(1).unwrap() {
                "/simple/greeting/" => (200, "text/html", page),
                path if path.ends_with(".whl") => (200, "application/zip", wheel.clone()),
                _ => (404, "text/plain", Vec::new()),
            };
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&body).unwrap();
        }
    });
    port
}

#[test]
fn packages_come_from_the_index_that_the_policy_names() {
    let bench = Bench::new();
    let wheel = fs::read(wheels(&bench).join(WHEEL)).unwrap();
    let port = index(wheel);
    bench.policy(&format!(
        "allow_install = true\n[install]\nindex_url = \"http://127.0.0.1:{port}/simple/\"\n"
    ));
    bench.made("greet", "dependencies: [greeting]", "main.py", GREET);
    let done = bench.ran("greet", json!({}));
    let said = done["data"]["stdout"].as_str().unwrap();
    let prefix = said.strip_prefix("hi from a package\n").unwrap().trim();
    bench.forget(prefix);
}

impl Bench {
    /// Where tests run as root, environments are outside the temporary directory.
    fn forget(&self, prefix: &str) {
        if !Path::new(prefix).starts_with(self.fixture.root.path()) {
            fs::remove_dir_all(Path::new(prefix).parent().unwrap()).unwrap();
        }
    }
}
