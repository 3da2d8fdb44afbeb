//! Good components that try what a tool can reach, and tell.

use crate::{Tool, encode};
use anyhow::Result;

/// Answers with its input.
pub fn echo() -> Result<Vec<u8>> {
    Tool::new("(call $ok (local.get $ptr) (local.get $len))").build()
}

/// The same, with `run` at the root.
pub fn flat_echo() -> Result<Vec<u8>> {
    let tool = Tool::new("(call $ok (local.get $ptr) (local.get $len))");
    tool.flat().build()
}

/// Answers with its input as its own failure.
pub fn refuse() -> Result<Vec<u8>> {
    Tool::new("(call $err (local.get $ptr) (local.get $len))").build()
}

/// Counts as long as it is let.
pub fn busy() -> Result<Vec<u8>> {
    Tool::new("(loop $on (br $on)) (unreachable)").build()
}

/// Waits for an hour.
pub fn sleepy() -> Result<Vec<u8>> {
    let imports = r#"
      (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))
      (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#;
    let body = "(call $block (call $after (i64.const 3600000000000))) (call $ok (local.get $ptr) (local.get $len))";
    Tool::new(body).imports(imports).build()
}

/// Waits as many milliseconds as its input has bytes, then answers with it.
pub fn patient() -> Result<Vec<u8>> {
    let imports = r#"
      (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))
      (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#;
    let body = "(call $block (call $after (i64.mul (i64.extend_i32_u (local.get $len)) (i64.const 1000000))))
                (call $ok (local.get $ptr) (local.get $len))";
    Tool::new(body).imports(imports).build()
}

/// Logs its input as a warning and answers with it.
pub fn log() -> Result<Vec<u8>> {
    let imports = r#"(import "kami:tool/host@0.1.0" "log" (func $log (param i32 i32 i32)))"#;
    let body = "(call $log (i32.const 3) (local.get $ptr) (local.get $len)) (call $ok (local.get $ptr) (local.get $len))";
    Tool::new(body).imports(imports).build()
}

const PRINT: &str = r#"
  (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
  (import "wasi:cli/stderr@0.2.0" "get-stderr" (func $stderr (result i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush" (func $print (param i32 i32 i32 i32)))"#;

/// Prints its input to standard output and to standard error, and answers with it.
pub fn print() -> Result<Vec<u8>> {
    let body = "(call $print (call $stdout) (local.get $ptr) (local.get $len) (i32.const 64))
                (call $print (call $stderr) (local.get $ptr) (local.get $len) (i32.const 64))
                (call $ok (local.get $ptr) (local.get $len))";
    Tool::new(body).imports(PRINT).build()
}

/// Prints its input to standard error and panics, as Rust does.
pub fn panic() -> Result<Vec<u8>> {
    let body = "(call $print (call $stderr) (local.get $ptr) (local.get $len) (i32.const 64)) (unreachable)";
    Tool::new(body).imports(PRINT).build()
}

/// A program: prints its standard input and a line's end. An input of two bytes it refuses on standard error;
/// after one that begins with `[` it exits instead of returning.
pub fn command() -> Result<Vec<u8>> {
    let core = format!(
        r#"(module {PRINT}
          (import "wasi:cli/stdin@0.2.0" "get-stdin" (func $stdin (result i32)))
          (import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i32)))
          (import "wasi:io/streams@0.2.0" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))
          (memory (export "memory") 2) {}
          (data (i32.const 128) "no message\n")
          (func (export "wasi:cli/run@0.2.0#run") (result i32) (local $ptr i32) (local $len i32)
            (call $read (call $stdin) (i64.const 65536) (i32.const 64))
            (if (i32.load8_u (i32.const 64)) (then (return (i32.const 1))))
            (local.set $ptr (i32.load (i32.const 68)))
            (local.set $len (i32.load (i32.const 72)))
            (if (i32.eq (local.get $len) (i32.const 2))
              (then (call $print (call $stderr) (i32.const 128) (i32.const 11) (i32.const 64))
                    (return (i32.const 1))))
            (call $print (call $stdout) (local.get $ptr) (local.get $len) (i32.const 64))
            (call $print (call $stdout) (i32.const 138) (i32.const 1) (i32.const 64))
            (if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const 91)) (then (call $exit (i32.const 0))))
            (i32.const 0)))"#,
        crate::PRELUDE
    );
    encode(&core, crate::WIT, "command")
}

/// Answers with its environment, as `name=value;` for each.
pub fn environment() -> Result<Vec<u8>> {
    let imports =
        r#"(import "wasi:cli/environment@0.2.0" "get-environment" (func $env (param i32)))"#;
    let more = r#"
      (global $out (mut i32) (i32.const 4096))
      (func $put (param $ptr i32) (param $len i32)
        (memory.copy (global.get $out) (local.get $ptr) (local.get $len))
        (global.set $out (i32.add (global.get $out) (local.get $len))))
      (data (i32.const 80) "=;")"#;
    let body = "
      (call $env (i32.const 64))
      (local.set $n (i32.load (i32.const 64)))
      (local.set $m (i32.load (i32.const 68)))
      (block $end
        (loop $next
          (br_if $end (i32.eqz (local.get $m)))
          (call $put (i32.load (local.get $n)) (i32.load offset=4 (local.get $n)))
          (call $put (i32.const 80) (i32.const 1))
          (call $put (i32.load offset=8 (local.get $n)) (i32.load offset=12 (local.get $n)))
          (call $put (i32.const 81) (i32.const 1))
          (local.set $n (i32.add (local.get $n) (i32.const 16)))
          (local.set $m (i32.sub (local.get $m) (i32.const 1)))
          (br $next)))
      (call $ok (i32.const 4096) (i32.sub (global.get $out) (i32.const 4096)))";
    Tool::new(body).imports(imports).more(more).build()
}

/// Does to a file what the first letter of its input says; the rest is the file's name:
/// `r`ead, `w`rite the name into it, write a `b`ig one of 1 MiB, write a big one or `p`anic, `s`tream
/// 4 MiB into it, `a`ppend its name by a stream, `t` sets its size to 1 TiB, `m`ake a directory, make a
/// soft `l`ink or a `h`ard link to `/etc/passwd`, `u`nlink, `f`ill the directory with files named
/// `0name`, `1name` and so on.
/// Without a directory it answers `none`. A failure is one character: `0` and the error's number.
pub fn files() -> Result<Vec<u8>> {
    let imports = r#"
      (import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $dirs (param i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.open-at" (func $open (param i32 i32 i32 i32 i32 i32 i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.read" (func $read (param i32 i64 i64 i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.write" (func $write (param i32 i32 i32 i64 i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.set-size" (func $size (param i32 i64 i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.create-directory-at" (func $mkdir (param i32 i32 i32 i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.symlink-at" (func $symlink (param i32 i32 i32 i32 i32 i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.link-at" (func $link (param i32 i32 i32 i32 i32 i32 i32 i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.unlink-file-at" (func $unlink (param i32 i32 i32 i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.write-via-stream" (func $stream (param i32 i64 i32)))
      (import "wasi:filesystem/types@0.2.0" "[method]descriptor.append-via-stream" (func $append (param i32 i32)))
      (import "wasi:filesystem/types@0.2.0" "[resource-drop]descriptor" (func $close (param i32)))
      (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush" (func $print (param i32 i32 i32 i32)))"#;
    let more = r#"
      (data (i32.const 128) "none/etc/passwdstream")
      (func $fail (param $code i32) (result i32)
        (i32.store8 (i32.const 160) (i32.add (i32.const 48) (local.get $code)))
        (call $err (i32.const 160) (i32.const 1)))
      (func $done (param $at i32) (result i32)
        (if (result i32) (i32.load8_u (local.get $at))
          (then (call $fail (i32.load8_u offset=1 (local.get $at))))
          (else (call $ok (i32.const 128) (i32.const 0)))))"#;
    let body = "
      (local $dir i32) (local $file i32) (local $op i32) (local $count i32)
      (call $dirs (i32.const 64))
      (if (i32.eqz (i32.load (i32.const 68))) (then (return (call $ok (i32.const 128) (i32.const 4)))))
      (local.set $dir (i32.load (i32.load (i32.const 64))))
      (local.set $op (i32.load8_u (local.get $ptr)))
      (local.set $ptr (i32.add (local.get $ptr) (i32.const 1)))
      (local.set $len (i32.sub (local.get $len) (i32.const 1)))
      (if (i32.eq (local.get $op) (i32.const 109))
        (then (call $mkdir (local.get $dir) (local.get $ptr) (local.get $len) (i32.const 64))
              (return (call $done (i32.const 64)))))
      (if (i32.eq (local.get $op) (i32.const 108))
        (then (call $symlink (local.get $dir) (i32.const 132) (i32.const 11) (local.get $ptr) (local.get $len) (i32.const 64))
              (return (call $done (i32.const 64)))))
      (if (i32.eq (local.get $op) (i32.const 104))
        (then (call $link (local.get $dir) (i32.const 0) (local.get $ptr) (local.get $len) (local.get $dir) (i32.const 132) (i32.const 11) (i32.const 64))
              (return (call $done (i32.const 64)))))
      (if (i32.eq (local.get $op) (i32.const 117))
        (then (call $unlink (local.get $dir) (local.get $ptr) (local.get $len) (i32.const 64))
              (return (call $done (i32.const 64)))))
      (if (i32.eq (local.get $op) (i32.const 102))
        (then
          (local.set $n (call $alloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 65536)))
          (memory.copy (i32.add (local.get $n) (i32.const 1)) (local.get $ptr) (local.get $len))
          (loop $next
            (i32.store8 (local.get $n) (i32.add (i32.const 48) (local.get $count)))
            (call $open (local.get $dir) (i32.const 0) (local.get $n) (i32.add (local.get $len) (i32.const 1)) (i32.const 1) (i32.const 2) (i32.const 64))
            (if (i32.load8_u (i32.const 64)) (then (return (call $fail (i32.load8_u (i32.const 68))))))
            (call $close (i32.load (i32.const 68)))
            (local.set $count (i32.add (local.get $count) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $count) (i32.const 60))))
          (return (call $ok (i32.const 128) (i32.const 0)))))
      (if (i32.eq (local.get $op) (i32.const 114))
        (then
          (call $open (local.get $dir) (i32.const 1) (local.get $ptr) (local.get $len) (i32.const 0) (i32.const 1) (i32.const 64))
          (if (i32.load8_u (i32.const 64)) (then (return (call $fail (i32.load8_u (i32.const 68))))))
          (call $read (i32.load (i32.const 68)) (i64.const 65536) (i64.const 0) (i32.const 64))
          (if (i32.load8_u (i32.const 64)) (then (return (call $fail (i32.load8_u (i32.const 68))))))
          (return (call $ok (i32.load (i32.const 68)) (i32.load (i32.const 72))))))
      (call $open (local.get $dir) (i32.const 1) (local.get $ptr) (local.get $len) (i32.const 1) (i32.const 2) (i32.const 64))
      (if (i32.load8_u (i32.const 64)) (then (return (call $fail (i32.load8_u (i32.const 68))))))
      (local.set $file (i32.load (i32.const 68)))
      (if (i32.eq (local.get $op) (i32.const 116))
        (then (call $size (local.get $file) (i64.const 1099511627776) (i32.const 64))
              (return (call $done (i32.const 64)))))
      (if (i32.eq (local.get $op) (i32.const 97))
        (then
          (call $append (local.get $file) (i32.const 64))
          (if (i32.load8_u (i32.const 64)) (then (return (call $fail (i32.load8_u (i32.const 68))))))
          (call $print (i32.load (i32.const 68)) (local.get $ptr) (local.get $len) (i32.const 64))
          (if (i32.load8_u (i32.const 64)) (then (return (call $err (i32.const 143) (i32.const 6)))))
          (return (call $ok (i32.const 128) (i32.const 0)))))
      (if (i32.eq (local.get $op) (i32.const 115))
        (then
          (call $stream (local.get $file) (i64.const 0) (i32.const 64))
          (if (i32.load8_u (i32.const 64)) (then (return (call $fail (i32.load8_u (i32.const 68))))))
          (local.set $n (i32.load (i32.const 68)))
          (loop $next
            (call $print (local.get $n) (i32.const 4096) (i32.const 4096) (i32.const 64))
            (if (i32.load8_u (i32.const 64)) (then (return (call $err (i32.const 143) (i32.const 6)))))
            (local.set $count (i32.add (local.get $count) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $count) (i32.const 1024))))
          (return (call $ok (i32.const 128) (i32.const 0)))))
      (if (i32.or (i32.eq (local.get $op) (i32.const 98)) (i32.eq (local.get $op) (i32.const 112)))
        (then
          (local.set $len (i32.const 1048576))
          (local.set $ptr (call $alloc (i32.const 0) (i32.const 0) (i32.const 1) (local.get $len)))))
      (call $write (local.get $file) (local.get $ptr) (local.get $len) (i64.const 0) (i32.const 64))
      (if (i32.and (i32.load8_u (i32.const 64)) (i32.eq (local.get $op) (i32.const 112))) (then (unreachable)))
      (if (i32.load8_u (i32.const 64)) (then (return (call $fail (i32.load8_u (i32.const 72))))))
      (call $ok (i32.const 128) (i32.const 0))";
    Tool::new(body).imports(imports).more(more).build()
}

/// Asks over HTTP. The input is a digit for the scheme (`0` http, `1` https), a digit for the method
/// (`0` get, `1` head, `2` post and so on in WASI's order), then authority and path. The answer is the
/// status and the body; a failure is one character: `0` and the error's number.
pub fn http() -> Result<Vec<u8>> {
    let imports = r#"
      (import "wasi:http/types@0.2.0" "[constructor]fields" (func $fields (result i32)))
      (import "wasi:http/types@0.2.0" "[constructor]outgoing-request" (func $request (param i32) (result i32)))
      (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-method" (func $method (param i32 i32 i32 i32) (result i32)))
      (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-scheme" (func $scheme (param i32 i32 i32 i32 i32) (result i32)))
      (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-authority" (func $authority (param i32 i32 i32 i32) (result i32)))
      (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-path-with-query" (func $path (param i32 i32 i32 i32) (result i32)))
      (import "wasi:http/outgoing-handler@0.2.0" "handle" (func $handle (param i32 i32 i32 i32)))
      (import "wasi:http/types@0.2.0" "[method]future-incoming-response.subscribe" (func $subscribe (param i32) (result i32)))
      (import "wasi:http/types@0.2.0" "[method]future-incoming-response.get" (func $get (param i32 i32)))
      (import "wasi:http/types@0.2.0" "[method]incoming-response.status" (func $status (param i32) (result i32)))
      (import "wasi:http/types@0.2.0" "[method]incoming-response.consume" (func $consume (param i32 i32)))
      (import "wasi:http/types@0.2.0" "[method]incoming-body.stream" (func $stream (param i32 i32)))
      (import "wasi:io/streams@0.2.0" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))
      (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#;
    let more = r#"
      (func $fail (param $code i32) (result i32)
        (i32.store8 (i32.const 160) (i32.add (i32.const 48) (local.get $code)))
        (call $err (i32.const 160) (i32.const 1)))"#;
    let body = "
      (local $r i32) (local $future i32) (local $out i32) (local $status i32)
      (local.set $r (call $request (call $fields)))
      (drop (call $scheme (local.get $r) (i32.const 1) (i32.sub (i32.load8_u (local.get $ptr)) (i32.const 48)) (i32.const 0) (i32.const 0)))
      (drop (call $method (local.get $r) (i32.sub (i32.load8_u offset=1 (local.get $ptr)) (i32.const 48)) (i32.const 0) (i32.const 0)))
      (local.set $ptr (i32.add (local.get $ptr) (i32.const 2)))
      (local.set $len (i32.sub (local.get $len) (i32.const 2)))
      (block $found
        (loop $next
          (br_if $found (i32.eq (local.get $n) (local.get $len)))
          (br_if $found (i32.eq (i32.load8_u (i32.add (local.get $ptr) (local.get $n))) (i32.const 47)))
          (local.set $n (i32.add (local.get $n) (i32.const 1)))
          (br $next)))
      (if (call $authority (local.get $r) (i32.const 1) (local.get $ptr) (local.get $n)) (then (return (call $fail (i32.const 76)))))
      (if (i32.lt_u (local.get $n) (local.get $len))
        (then (drop (call $path (local.get $r) (i32.const 1) (i32.add (local.get $ptr) (local.get $n)) (i32.sub (local.get $len) (local.get $n))))))
      (call $handle (local.get $r) (i32.const 0) (i32.const 0) (i32.const 64))
      (if (i32.load8_u (i32.const 64)) (then (return (call $fail (i32.load8_u (i32.const 72))))))
      (local.set $future (i32.load (i32.const 72)))
      (call $block (call $subscribe (local.get $future)))
      (call $get (local.get $future) (i32.const 64))
      (if (i32.load8_u (i32.const 80)) (then (return (call $fail (i32.load8_u (i32.const 88))))))
      (local.set $r (i32.load (i32.const 88)))
      (local.set $status (call $status (local.get $r)))
      (local.set $out (i32.const 4096))
      (i32.store8 (i32.const 4096) (i32.add (i32.const 48) (i32.div_u (local.get $status) (i32.const 100))))
      (i32.store8 (i32.const 4097) (i32.add (i32.const 48) (i32.rem_u (i32.div_u (local.get $status) (i32.const 10)) (i32.const 10))))
      (i32.store8 (i32.const 4098) (i32.add (i32.const 48) (i32.rem_u (local.get $status) (i32.const 10))))
      (i32.store8 (i32.const 4099) (i32.const 32))
      (local.set $out (i32.const 4100))
      (call $consume (local.get $r) (i32.const 64))
      (call $stream (i32.load (i32.const 68)) (i32.const 64))
      (local.set $r (i32.load (i32.const 68)))
      (block $end
        (loop $next
          (call $read (local.get $r) (i64.const 1024) (i32.const 64))
          (br_if $end (i32.load8_u (i32.const 64)))
          (br_if $end (i32.gt_u (local.get $out) (i32.const 32768)))
          (memory.copy (local.get $out) (i32.load (i32.const 68)) (i32.load (i32.const 72)))
          (local.set $out (i32.add (local.get $out) (i32.load (i32.const 72))))
          (br $next)))
      (call $ok (i32.const 4096) (i32.sub (local.get $out) (i32.const 4096)))";
    Tool::new(body).imports(imports).more(more).build()
}

/// Makes three hundred lists of headers of about 50 KB and answers with its input. What becomes of each
/// list is the first letter of the input: it is `k`ept, `d`ropped, or becomes a `r`equest that is kept.
/// With `c` one list is cloned instead, and a value is added to each clone.
pub fn headers() -> Result<Vec<u8>> {
    let imports = r#"
      (import "wasi:http/types@0.2.0" "[constructor]fields" (func $fields (result i32)))
      (import "wasi:http/types@0.2.0" "[method]fields.append" (func $append (param i32 i32 i32 i32 i32 i32)))
      (import "wasi:http/types@0.2.0" "[method]fields.clone" (func $clone (param i32) (result i32)))
      (import "wasi:http/types@0.2.0" "[resource-drop]fields" (func $drop (param i32)))
      (import "wasi:http/types@0.2.0" "[constructor]outgoing-request" (func $request (param i32) (result i32)))"#;
    let more = r#"
      (data (i32.const 128) "x-name")
      (func $full (result i32) (local $it i32) (local $n i32)
        (local.set $it (call $fields))
        (loop $next
          (call $append (local.get $it) (i32.const 128) (i32.const 6) (i32.const 4096) (i32.const 1000) (i32.const 64))
          (local.set $n (i32.add (local.get $n) (i32.const 1)))
          (br_if $next (i32.lt_u (local.get $n) (i32.const 50))))
        (local.get $it))"#;
    let body = "
      (local $op i32) (local $first i32) (local $it i32)
      (memory.fill (i32.const 4096) (i32.const 97) (i32.const 1000))
      (local.set $op (i32.load8_u (local.get $ptr)))
      (local.set $first (call $full))
      (loop $next
        (if (i32.eq (local.get $op) (i32.const 99))
          (then
            (local.set $it (call $clone (local.get $first)))
            (call $append (local.get $it) (i32.const 128) (i32.const 6) (i32.const 4096) (i32.const 10) (i32.const 64)))
          (else (local.set $it (call $full))))
        (if (i32.eq (local.get $op) (i32.const 100)) (then (call $drop (local.get $it))))
        (if (i32.eq (local.get $op) (i32.const 114)) (then (drop (call $request (local.get $it)))))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $n) (i32.const 300))))
      (call $ok (local.get $ptr) (local.get $len))";
    Tool::new(body).imports(imports).more(more).build()
}

/// Takes as many megabytes of memory as its input has bytes, then waits until it is ended.
pub fn hog() -> Result<Vec<u8>> {
    let imports = r#"
      (import "kami:tool/host@0.1.0" "log" (func $log (param i32 i32 i32)))
      (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))
      (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#;
    let body = "
      (drop (memory.grow (i32.mul (local.get $len) (i32.const 16))))
      (call $log (i32.const 2) (local.get $ptr) (i32.const 1))
      (call $block (call $after (i64.const 3600000000000)))
      (call $ok (local.get $ptr) (local.get $len))";
    Tool::new(body).imports(imports).build()
}

/// Asks for a socket (`t`) or for the address of `example.com` (`n`); fails with the error's number.
pub fn sockets() -> Result<Vec<u8>> {
    let imports = r#"
      (import "wasi:sockets/tcp-create-socket@0.2.0" "create-tcp-socket" (func $tcp (param i32 i32)))
      (import "wasi:sockets/instance-network@0.2.0" "instance-network" (func $network (result i32)))
      (import "wasi:sockets/ip-name-lookup@0.2.0" "resolve-addresses" (func $resolve (param i32 i32 i32 i32)))"#;
    let more = r#"(data (i32.const 128) "example.com")"#;
    let body = "
      (if (i32.eq (i32.load8_u (local.get $ptr)) (i32.const 116))
        (then (call $tcp (i32.const 0) (i32.const 64)))
        (else (call $resolve (call $network) (i32.const 128) (i32.const 11) (i32.const 64))))
      (if (i32.eqz (i32.load8_u (i32.const 64))) (then (return (call $ok (i32.const 128) (i32.const 0)))))
      (i32.store8 (i32.const 160) (i32.add (i32.const 48) (i32.load8_u (i32.const 68))))
      (call $err (i32.const 160) (i32.const 1))";
    Tool::new(body).imports(imports).more(more).build()
}

/// A component that is no tool but has functions of many types.
pub fn generic() -> Result<Vec<u8>> {
    let wit = "
      package test:shop;
      interface shop {
        enum color { red, green }
        flags size { small, large }
        record item { name: string, price: f64, colors: list<color>, note: option<string> }
        variant wish { nothing, some(u32) }
        total: func(a: u32, b: u32) -> u32;
        swap: func(pair: tuple<s8, bool>) -> tuple<bool, s8>;
        same: func(item: item) -> item;
        wished: func(wish: wish, size: size) -> result<u32, string>;
      }
      world shops { export shop; export half: func(n: s64) -> s64; }";
    let core = format!(
        r#"(module (memory (export "memory") 2) {}
          (func (export "test:shop/shop#total") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
          (func (export "test:shop/shop#swap") (param i32 i32) (result i32)
            (i32.store8 (i32.const 64) (local.get 1)) (i32.store8 (i32.const 65) (local.get 0)) (i32.const 64))
          (func (export "test:shop/shop#same") (param i32 i32 f64 i32 i32 i32 i32 i32) (result i32)
            (i32.store (i32.const 64) (local.get 0)) (i32.store (i32.const 68) (local.get 1))
            (f64.store (i32.const 72) (local.get 2))
            (i32.store (i32.const 80) (local.get 3)) (i32.store (i32.const 84) (local.get 4))
            (i32.store8 (i32.const 88) (local.get 5))
            (i32.store (i32.const 92) (local.get 6)) (i32.store (i32.const 96) (local.get 7))
            (i32.const 64))
          (data (i32.const 128) "nothing is wished")
          (func (export "test:shop/shop#wished") (param $case i32) (param $n i32) (param $size i32) (result i32)
            (if (local.get $case)
              (then (i32.store8 (i32.const 64) (i32.const 0)) (i32.store (i32.const 68) (i32.mul (local.get $n) (local.get $size))))
              (else (i32.store8 (i32.const 64) (i32.const 1)) (i32.store (i32.const 68) (i32.const 128)) (i32.store (i32.const 72) (i32.const 17))))
            (i32.const 64))
          (func (export "half") (param i64) (result i64) (i64.div_s (local.get 0) (i64.const 2))))"#,
        crate::PRELUDE
    );
    encode(&core, wit, "shops")
}
