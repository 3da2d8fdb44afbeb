#!/usr/bin/env python3
"""Nodes of the reference implementation (koi-net 2.1.2: a full one, a partial one and a coordinator) and one of
ours: they shake hands, subscribe to each other, exchange NEW, UPDATE and FORGET both ways, and catch up after each
was down. Ours is killed in the middle of 200 deliveries; nothing is lost and nothing is there twice.

  federate.py KENNING WORK_DIRECTORY
"""
import json, os, signal, socket, subprocess, sys, time, urllib.error, urllib.request

KENNING, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
HERE = os.path.dirname(os.path.abspath(__file__))
PRACTICE = "orn:koi-net.practice"
started = time.time()
processes = []


def say(text):
    print(f"{time.time() - started:6.1f} s  {text}", flush=True)


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait(what, ask, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        found = ask()
        if found:
            return found
        time.sleep(0.1)
    raise SystemExit(f"FAIL: {what}")


class Reference:
    """A node of the reference implementation, driven by lines of its standard input."""

    def __init__(self, kind, name, contact="-", types=(PRACTICE,)):
        self.kind, self.place, self.port = kind, os.path.join(WORK, name), port()
        self.contact, self.types = contact, list(types)
        self.start()

    def start(self):
        environment = {**os.environ, "PRIV_KEY_PASSWORD": "test"}
        command = [sys.executable, os.path.join(HERE, "reference_node.py"), self.kind, self.place, str(self.port),
                   self.contact, *self.types]
        log = open(self.place + ".log", "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                        text=True, env=environment)
        processes.append(self.process)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"FAIL: the reference node {self.kind} does not start")
        hello = json.loads(line)
        self.rid, self.url = hello["rid"], hello["url"]

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def put(self, name, contents):
        self.ask(f"put {PRACTICE}:{name} {json.dumps(contents)}")

    def forget(self, name):
        self.ask(f"forget {PRACTICE}:{name}")

    def practices(self):
        rids = [it for it in self.ask("list") if it.startswith(PRACTICE + ":")]
        return [it["contents"] for it in (self.ask(f"show {rid}") for rid in rids) if it]

    def names(self):
        return sorted(it.get("name", "") for it in self.practices())

    def edge(self, rid):
        shown = self.ask(f"show {rid}")
        return shown and shown["contents"]

    def stop(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.flush()
        self.process.wait(30)


class Kenning:
    def __init__(self):
        self.place, self.port = os.path.join(WORK, "kenning"), port()
        self.url = f"http://127.0.0.1:{self.port}/koi-net"
        os.makedirs(os.path.join(self.place, "vault", "Practices"), exist_ok=True)
        self.rid = self.run("federation", "init", "--name", "kenning", "--base-url", self.url,
                            "--provides", "Practice").strip()
        self.start()

    def run(self, *arguments):
        command = [KENNING, "--data", self.place + "/data", "--vault", self.place + "/vault", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.place)
        if done.returncode:
            raise SystemExit(f"FAIL: {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def start(self):
        log = open(self.place + ".log", "ab")
        command = [KENNING, "--data", self.place + "/data", "--vault", self.place + "/vault", "serve",
                   "--listen", f"127.0.0.1:{self.port}", "--no-token"]
        self.process = subprocess.Popen(command, stderr=log, cwd=self.place)
        processes.append(self.process)
        wait("our node listens", self.listens)

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(30)

    def note(self, name, description=""):
        path = os.path.join(self.place, "vault", "Practices", name + ".md")
        with open(path + ".new", "w") as file:
            file.write(f"---\n\"@type\": bkc:Practice\ndescription: {description}\n---\n")
        os.rename(path + ".new", path)

    def remove(self, name):
        os.remove(os.path.join(self.place, "vault", "Practices", name + ".md"))

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return json.loads(answer.read())

    def names(self):
        found = self.get("/entities?type_filter=Practice&limit=1000")
        rows = found["entities"] if isinstance(found, dict) else found
        return sorted(it.get("name") or it.get("entity_text") for it in rows)

    def peer(self, node):
        peers = self.get("/koi-net/health")["peers"]
        return next((it for it in peers if it["node_rid"] == node.rid), None)

    def edge(self, source, target):
        """The types of an approved subscription; none if there is none."""
        for it in self.get("/koi-net/edges")["edges"]:
            if (it["source"], it["target"], it["status"]) == (source, target, "APPROVED"):
                return set(it["rid_types"]), it["edge_rid"]
        return set(), None


def agree(ours, node, at_least=PRACTICE):
    """Waits until each subscribes to the other, and both sides say so in the same words."""
    wait(f"we subscribe to {node.kind}", lambda: at_least in ours.edge(node.rid, ours.rid)[0])
    wait(f"{node.kind} subscribes to us", lambda: at_least in ours.edge(ours.rid, node.rid)[0])
    for source, target in [(node.rid, ours.rid), (ours.rid, node.rid)]:
        def is_same():
            types, rid = ours.edge(source, target)
            theirs = node.edge(rid)
            return theirs and theirs["status"] == "APPROVED" and set(theirs["rid_types"]) == types
        wait(f"{node.kind} has the edge that we have", is_same)


def exchange(ours, node):
    """NEW, UPDATE and FORGET, both ways."""
    kind = node.kind
    node.put(f"{kind}-herring", {"name": f"Herring of {kind}", "n": 1, "note": None, "f": 1.5})
    wait(f"NEW from {kind}", lambda: f"Herring of {kind}" in ours.names())
    node.put(f"{kind}-herring", {"name": f"Herring count of {kind}", "n": 2})
    wait(f"UPDATE from {kind}", lambda: f"Herring count of {kind}" in ours.names()
         and f"Herring of {kind}" not in ours.names())
    node.forget(f"{kind}-herring")
    wait(f"FORGET from {kind}", lambda: f"Herring count of {kind}" not in ours.names())
    ours.note(f"Camas for {kind}")
    wait(f"NEW to {kind}", lambda: f"Camas for {kind}" in node.names())
    ours.note(f"Camas for {kind}", "Bulbs in spring")
    wait(f"UPDATE to {kind}", lambda: any("spring" in it.get("description", "") for it in node.practices()))
    ours.remove(f"Camas for {kind}")
    wait(f"FORGET to {kind}", lambda: f"Camas for {kind}" not in node.names())
    say(f"{kind}: NEW, UPDATE and FORGET both ways")


def main():
    ours = Kenning()
    full = Reference("full", "full")
    ours.run("federation", "connect", full.url, "--rid", full.rid)
    agree(ours, full)
    say("full: handshake, and edges both ways")
    partial = Reference("partial", "partial", f"{ours.rid} {ours.url}")
    wait("the partial node introduces itself", lambda: ours.peer(partial))
    ours.run("federation", "approve", "partial")
    agree(ours, partial)
    say("partial: handshake, and edges both ways")
    coordinator = Reference("coordinator", "coordinator")
    ours.run("federation", "connect", coordinator.url, "--rid", coordinator.rid)
    # It proposes one edge twice and withdraws it in between, in either order.
    agree(ours, coordinator)
    say("coordinator: handshake, and edges both ways")
    coordinator.stop()
    ours.run("federation", "disconnect", "coordinator")

    exchange(ours, full)
    exchange(ours, partial)

    ours.stop()
    full.put("salmon", {"name": "Salmon Watch"})
    partial.put("otter", {"name": "Otter Watch"})
    ours.start()
    wait("ours catches up with the full node", lambda: "Salmon Watch" in ours.names())
    # A node of the reference forgets whom it could not reach four times, and what it said meanwhile is lost.
    agree(ours, partial)
    partial.put("otter", {"name": "Otter Watch", "again": True})
    wait("ours hears of it from the partial node", lambda: "Otter Watch" in ours.names())
    full.stop()
    partial.stop()
    ours.note("Kelp Restoration")
    wait("it waits for both", lambda: ours.peer(full)["queued"] > 0 and ours.peer(partial)["queued"] > 0)
    full.start()
    partial.start()
    wait("the full node gets what it missed", lambda: "Kelp Restoration" in full.names(), 120)
    wait("the partial node too", lambda: "Kelp Restoration" in partial.names(), 120)
    say("each caught up after it was down")

    expected = sorted(f"Practice number {n}" for n in range(200))
    for name in expected:
        ours.note(name)
    numbered = lambda node: [it for it in node.names() if it.startswith("Practice number")]
    for _ in range(2):
        # In the middle of it, however fast this machine is.
        seen = len(numbered(full))
        wait("something more was delivered", lambda: len(numbered(full)) > seen or seen == 200, 90)
        ours.stop(signal.SIGKILL)
        ours.start()
    wait("all 200 are at the full node, each once", lambda: numbered(full) == expected, 180)
    wait("and at the partial node", lambda: numbered(partial) == expected, 180)
    wait("nothing waits any more", lambda: ours.peer(full)["queued"] == 0 and ours.peer(partial)["queued"] == 0)
    say("200 deliveries to each with 2 kills: nothing lost, nothing twice")
    for node in (full, partial):
        peer = ours.peer(node)
        assert peer["state"] == "active" and not peer["cut_off"] and peer["dead_letters"] == 0, peer
    ours.run("audit", "verify")
    say("ALL OK")


try:
    main()
finally:
    for process in processes:
        if process.poll() is None:
            process.kill()
