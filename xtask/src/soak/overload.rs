//! More than can be done: more callers than may work and wait in line together.
//!
//! First a few callers show what can be done at best and how long a call takes. Then all call at once.
//! Calls that are not served must be refused at once (`limited`, 429), throughput must not drop, health
//! checks must still be answered, and when the crowd stops, the server must soon recover: calls that still
//! wait in the queue then are part of that time.
//!
//! Clients, server and whatever else runs share the processors. So all callers first ask a bare server in this
//! process, which does nothing but refuse, with new connections at the same moment, and those that were refused
//! ask it again each time: what that takes is the machine's share, and a refusal may take so much more. The server
//! also tells how long it took itself, from the head of a request to the refusal (`kenning_limited_seconds` of
//! `/metrics`), which is what it can be held to on a machine of any load.

use super::clients::Http;
use super::{load_average, serve};
use crate::bench::meter::{ms, percentile};
use crate::crash::binary::{Binary, Place};
use crate::options::Options;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Callers that show what can be done.
const FEW: usize = 8;
/// Callers at once: four in five may work or wait, the others must be refused.
const MANY: usize = 700;
/// The pause after a refusal, which asks for it.
const COMES_BACK: Duration = Duration::from_secs(1);
/// What a refusal may take beyond what the bare server takes …
const LIMITED_MAX: Duration = Duration::from_millis(50);
/// … what it may take by the server's own clock …
const OWN_MAX: Duration = Duration::from_millis(50);
/// … how much of the best must still be done …
const SHARE_MIN: f64 = 0.8;
/// … and how soon all is as it was.
const RECOVERY_MAX: Duration = Duration::from_secs(1);

/// The time after which the server counts as not recovered.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a crowd was answered.
#[derive(Default)]
struct Answers {
    /// When the last call was begun.
    ended: Option<Instant>,
    /// When a call that came after was answered as quickly as before.
    recovered: Option<Instant>,
    good: Vec<Duration>,
    limited: Vec<Duration>,
    /// Those of them that came with a new connection, all at the same moment.
    limited_first: Vec<Duration>,
    /// Refusals of the bare server.
    bare: Vec<Duration>,
    wrong: Vec<String>,
}

impl Answers {
    fn ask_bare(&mut self, bare: &mut Http) {
        let began = Instant::now();
        match bare.ask("GET", "/", "") {
            Ok(_) => self.bare.push(began.elapsed()),
            Err(why) => self.wrong.push(format!("the bare server: {why:#}")),
        }
    }
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["seconds", "binary"])?;
    let time = Duration::from_secs(options.value("seconds", 10)?);
    let binary = Binary::find(options, false)?;
    let place = Place::fresh()?;
    let (server, http) = serve(&binary, &place)?;
    fill(&http)?;

    let bare = serve_bare()?;
    let mut best = crowd(&http, &bare, FEW, time, Duration::MAX)?;
    let best_rate = best.good.len() as f64 / time.as_secs_f64();
    // As it was: a call takes what it took, with room for a busy machine.
    let usual = percentile(&mut best.good, 0.5) * 3 + Duration::from_millis(5);
    let watcher = watch(&http, time);
    let mut all = crowd(&http, &bare, MANY, time, usual)?;
    let ended = all.ended.context("the crowd never ended")?;
    let recovered = all.recovered.context("it does not recover")?;
    let mut watched = watcher
        .join()
        .map_err(|_| anyhow::anyhow!("the watcher died"))??;
    let recovery = recovered.duration_since(ended);
    let own_99 = own_p99(&http)?;
    server.stop()?;

    let rate = all.good.len() as f64 / time.as_secs_f64();
    let n_limited = all.limited.len();
    let (limited_50, limited_99) = (
        percentile(&mut all.limited, 0.5),
        percentile(&mut all.limited, 0.99),
    );
    let (bare_50, bare_99) = (
        percentile(&mut all.bare, 0.5),
        percentile(&mut all.bare, 0.99),
    );
    let (good_50, good_99) = (
        percentile(&mut all.good, 0.5),
        percentile(&mut all.good, 0.99),
    );
    all.wrong
        .iter()
        .take(5)
        .for_each(|it| println!("a wrong answer: {it}"));
    println!(
        "overload: {MANY} callers, {:.0} calls/s done of {best_rate:.0} at best ({:.2} x), {n_limited} limited after \
         {:.0} ms (p99 {:.0} ms, of {} new connections {:.0} ms; a bare server {:.0} ms, p99 {:.0} ms; by the server's clock p99 at most {:.0} ms), served calls {:.0} ms (p99 {:.0} ms), health p99 {:.0} ms, {} wrong answers, \
         as before after {:.0} ms, load average {}",
        rate,
        rate / best_rate,
        ms(limited_50),
        ms(limited_99),
        all.limited_first.len(),
        ms(percentile(&mut all.limited_first, 0.99)),
        ms(bare_50),
        ms(bare_99),
        ms(own_99),
        ms(good_50),
        ms(good_99),
        ms(percentile(&mut watched, 0.99)),
        all.wrong.len(),
        ms(recovery),
        load_average()
    );
    ensure!(
        all.wrong.is_empty() && best.wrong.is_empty(),
        "wrong answers"
    );
    ensure!(
        best.limited.is_empty(),
        "callers were refused that could be served"
    );
    ensure!(n_limited > 0, "nobody was refused: that was no overload");
    ensure!(
        limited_99 <= LIMITED_MAX + bare_99,
        "a refusal takes {:.0} ms, and {:.0} ms on a bare server",
        ms(limited_99),
        ms(bare_99)
    );
    ensure!(
        own_99 <= OWN_MAX,
        "the server takes {:.0} ms to refuse",
        ms(own_99)
    );
    ensure!(rate >= best_rate * SHARE_MIN, "less is done under load");
    ensure!(
        recovery <= RECOVERY_MAX,
        "it takes {:.0} ms to recover",
        ms(recovery)
    );
    Ok(())
}

/// The least bound that 99 of 100 refusals kept, by the server's own clock.
fn own_p99(http: &Http) -> Result<Duration> {
    let (status, text) = http.clone().ask("GET", "/metrics", "")?;
    ensure!(status == 200, "the metrics were answered with {status}");
    let buckets = text.lines().filter_map(|line| {
        let line = line.strip_prefix("kenning_limited_seconds_bucket{le=\"")?;
        let (bound, count) = line.split_once("\"} ")?;
        // What is beyond the last bound has none.
        let bound = bound.parse::<f64>().ok().filter(|it| it.is_finite());
        let bound = bound.map_or(Duration::MAX, Duration::from_secs_f64);
        Some((bound, count.parse::<f64>().ok()?))
    });
    let buckets: Vec<(Duration, f64)> = buckets.collect();
    let all = buckets.last().context("the server counts no refusals")?.1;
    ensure!(all > 0.0, "the server counted no refusal");
    let found = buckets.iter().find(|it| it.1 >= all * 0.99);
    Ok(found.context("no bucket holds them")?.0)
}

/// Something to search in.
fn fill(http: &Http) -> Result<()> {
    let mut http = http.clone();
    for n in 0..200 {
        let note = json!({ "path": format!("n{n}.md"), "content": format!("# Note {n}\n\nabout thing {}\n", n % 9) });
        let (status, body) = http.ask("POST", "/tools/vault_write_note", &note.to_string())?;
        ensure!(status == 200, "a note was answered with {status}: {body}");
    }
    Ok(())
}

fn search(http: &mut Http, n: usize) -> Result<u16> {
    let query = json!({ "query": format!("thing {}", n % 9) });
    Ok(http.ask("POST", "/tools/koi_search", &query.to_string())?.0)
}

/// Starts a server that refuses whatever it is asked.
fn serve_bare() -> Result<Http> {
    // The standard library's listener lets 128 connections wait, and the 129th tries again after a second.
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
    socket.listen(4_096)?;
    let listener = TcpListener::from(socket);
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let builder = std::thread::Builder::new().stack_size(256 * 1024);
            // A client that has left ends its thread.
            drop(builder.spawn(move || refuse_all(stream).ok()));
        }
    });
    Ok(Http::new(&address, None))
}

fn refuse_all(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = BufReader::new(stream.try_clone()?);
    let mut write = stream;
    let mut line = String::new();
    while read.read_line(&mut line)? > 0 {
        // The end of a request without a body.
        if line == "\r\n" {
            write.write_all(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n")?;
        }
        line.clear();
    }
    Ok(())
}

/// So many callers, each as fast as it is answered; then one more, until it is answered in the usual time.
fn crowd(
    http: &Http,
    bare: &Http,
    n_callers: usize,
    time: Duration,
    usual: Duration,
) -> Result<Answers> {
    let stop = Arc::new(AtomicBool::new(false));
    // Everybody, and this thread.
    let together = Arc::new(Barrier::new(n_callers + 1));
    let mut callers = Vec::new();
    for caller in 0..n_callers {
        let (stop, together) = (Arc::clone(&stop), Arc::clone(&together));
        let (mut http, mut bare) = (http.clone(), bare.clone());
        let builder = std::thread::Builder::new().stack_size(256 * 1024);
        callers.push(builder.spawn(move || {
            let mut answers = Answers::default();
            let mut is_first = true;
            together.wait();
            answers.ask_bare(&mut bare);
            together.wait();
            while !stop.load(Ordering::Relaxed) {
                let began = Instant::now();
                match search(&mut http, caller) {
                    Ok(200) => answers.good.push(began.elapsed()),
                    Ok(429) => {
                        answers.limited.push(began.elapsed());
                        if is_first {
                            answers.limited_first.push(began.elapsed());
                        }
                        // Refused callers pause, or the crowd would only measure itself.
                        std::thread::sleep(COMES_BACK);
                        answers.ask_bare(&mut bare);
                    }
                    Ok(status) => answers.wrong.push(format!("{status}")),
                    Err(why) => answers.wrong.push(format!("{why:#}")),
                }
                is_first = false;
            }
            answers
        })?);
    }
    // First the bare server, then ours.
    together.wait();
    together.wait();
    std::thread::sleep(time);
    stop.store(true, Ordering::Relaxed);
    let mut all = Answers {
        ended: Some(Instant::now()),
        ..Answers::default()
    };
    let mut alone = http.clone();
    let until = Instant::now() + PATIENCE;
    while all.recovered.is_none() && Instant::now() < until {
        let began = Instant::now();
        let answer = search(&mut alone, 0);
        if answer.is_ok_and(|it| it == 200) && began.elapsed() <= usual {
            all.recovered = Some(Instant::now());
        }
    }
    for caller in callers {
        let answers = caller
            .join()
            .map_err(|_| anyhow::anyhow!("a caller died"))?;
        all.good.extend(answers.good);
        all.limited.extend(answers.limited);
        all.limited_first.extend(answers.limited_first);
        all.bare.extend(answers.bare);
        all.wrong.extend(answers.wrong);
    }
    Ok(all)
}

/// Checks the server's health all the while.
fn watch(http: &Http, time: Duration) -> std::thread::JoinHandle<Result<Vec<Duration>>> {
    let mut http = http.clone();
    std::thread::spawn(move || {
        let began = Instant::now();
        let mut took = Vec::new();
        while began.elapsed() < time {
            let asked = Instant::now();
            let (status, _) = http.ask("GET", "/healthz", "")?;
            ensure!(status == 200, "health was answered with {status}");
            took.push(asked.elapsed());
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(took)
    })
}
