#!/usr/bin/env python3
"""Two nodes of the reference implementation (koi-net 2.1.2), a full and a partial one, and one of ours: they
shake hands, subscribe to each other, exchange NEW, UPDATE and FORGET both ways, and catch up after each was
down. Ours is killed in the middle of 200 deliveries; nothing is lost and nothing is there twice.

  federate.py KENNING WORK_DIRECTORY
"""
import base64, datetime, hashlib, json, os, signal, socket, subprocess, sys, time, urllib.error, urllib.request
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

KENNING, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
HERE = os.path.dirname(os.path.abspath(__file__))
PRACTICE = "orn:koi-net.practice"
dumps = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
sha = lambda text: hashlib.sha256(text.encode()).hexdigest()
processes = []


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
        time.sleep(0.2)
    raise SystemExit(f"FAIL: {what}")


class Reference:
    """A node of the reference implementation, which a person would drive."""

    def __init__(self, name, extra):
        self.place, self.port, self.extra = os.path.join(WORK, name), port(), extra
        self.start()

    def start(self):
        os.makedirs(self.place, exist_ok=True)
        environment = {**os.environ, "PRIV_KEY_PASSWORD": "test"}
        command = [sys.executable, os.path.join(HERE, "reference_node.py"), self.place, str(self.port), *self.extra]
        log = open(self.place + ".log", "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                        text=True, env=environment)
        processes.append(self.process)
        hello = json.loads(self.process.stdout.readline())
        self.rid, self.url = hello["rid"], hello["url"]

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def put(self, rid, contents):
        self.say(f"put {rid} {json.dumps(contents)}")

    def forget(self, rid):
        self.say(f"forget {rid}")

    def names(self):
        """What it has of ours, by name."""
        rids = [it for it in self.say("list") if it.startswith(PRACTICE + ":")]
        shown = [self.say(f"show {it}") for it in rids]
        return sorted(it["contents"].get("name", "") for it in shown if it)

    def stop(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.flush()
        self.process.wait(20)


class Partial:
    """A node that cannot be called: it asks. It is written here, because the reference offers it no commands."""

    def __init__(self, name):
        self.key = ec.generate_private_key(ec.SECP256R1())
        der = self.key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.public = base64.b64encode(der).decode()
        self.rid = f"orn:koi-net.node:{name}+{sha(self.public)}"
        self.profile = {"@context": "orn:koi-net.context:koi-net.node", "node_type": "PARTIAL",
                        "provides": {"event": [], "state": []}, "public_key": self.public}

    def bundle(self, rid, contents):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        canonical = json.dumps(contents, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return {"manifest": {"rid": rid, "timestamp": now, "sha256_hash": sha(canonical)}, "contents": contents}

    def post(self, url, payload, target):
        body = {"payload": payload, "source_node": self.rid, "target_node": target}
        r, s = decode_dss_signature(self.key.sign(dumps(body).encode(), ec.ECDSA(hashes.SHA256())))
        body["signature"] = base64.b64encode(r.to_bytes(32, "big") + s.to_bytes(32, "big")).decode()
        return post(url, body)

    def tell(self, node, *events):
        payload = {"type": "events_payload", "events": list(events)}
        return self.post(node.url + "/events/broadcast", payload, node.rid)

    def introduce(self, node):
        forget = {"rid": self.rid, "event_type": "FORGET"}
        new = {"rid": self.rid, "event_type": "NEW", **self.bundle(self.rid, self.profile)}
        return self.tell(node, forget, new)

    def subscribe(self, node, types):
        rid = "orn:koi-net.edge:" + sha(node.rid + self.rid)
        edge = {"@context": "orn:koi-net.context:koi-net.edge", "source": node.rid, "target": self.rid,
                "edge_type": "POLL", "status": "PROPOSED", "rid_types": types}
        return self.tell(node, {"rid": rid, "event_type": "NEW", **self.bundle(rid, edge)})

    def poll(self, node):
        status, answer = self.post(node.url + "/events/poll", {"type": "poll_events", "limit": 0}, node.rid)
        assert status == 200, answer
        return answer["payload"]["events"]


def post(url, body):
    data = body if isinstance(body, bytes) else dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


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

    def note(self, name, text="---\n\"@type\": bkc:Practice\n---\n"):
        path = os.path.join(self.place, "vault", "Practices", name + ".md")
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)

    def forget(self, name):
        os.remove(os.path.join(self.place, "vault", "Practices", name + ".md"))

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as answer:
            return json.loads(answer.read())

    def names(self):
        found = self.get("/entities?type_filter=Practice&limit=1000")
        rows = found["entities"] if isinstance(found, dict) else found
        return sorted(it.get("name") or it.get("entity_text") for it in rows)

    def peer(self, rid):
        peers = self.get("/koi-net/health")["peers"]
        return next((it for it in peers if it["node_rid"] == rid), None)


def subscribes(ours, full):
    end = time.time() + 8
    while time.time() < end:
        edges = ours.get("/koi-net/edges")["edges"]
        if any(it["target"] == full.rid and PRACTICE in it["rid_types"] and it["status"] == "APPROVED" for it in edges):
            return True
        time.sleep(0.2)
    return False


def main():
    full = Reference("reference", [PRACTICE])
    ours = Kenning()
    print("ours      ", ours.rid)
    print("reference ", full.rid)
    ours.run("federation", "connect", full.url, "--rid", full.rid)
    wait("both subscribe to each other", lambda: sum(
        it["status"] == "APPROVED" for it in ours.get("/koi-net/edges")["edges"]) == 2)
    # The reference proposes one edge twice, for its own types and for those it is interested in, and the later one
    # replaces the earlier one before that is sent, or not. After a restart it asks for what it is interested in.
    for _ in range(5):
        if subscribes(ours, full):
            break
        full.stop()
        full.start()
    wait("the reference subscribes to practices", lambda: subscribes(ours, full))
    print("handshake and edges both ways")

    full.put(PRACTICE + ":herring", {"name": "Herring", "n": 1, "note": None, "f": 1.5})
    wait("NEW from the reference", lambda: "Herring" in ours.names())
    full.put(PRACTICE + ":herring", {"name": "Herring Count", "n": 2})
    wait("UPDATE from the reference", lambda: "Herring Count" in ours.names() and "Herring" not in ours.names())
    full.forget(PRACTICE + ":herring")
    wait("FORGET from the reference", lambda: "Herring Count" not in ours.names())
    print("NEW, UPDATE and FORGET from the reference")

    ours.note("Camas Garden")
    wait("NEW from ours", lambda: "Camas Garden" in full.names())
    ours.note("Camas Garden", "---\n\"@type\": bkc:Practice\ndescription: Bulbs in spring\n---\n")
    described = lambda: [it for it in full.say("list") if it.startswith(PRACTICE + ":camas")]
    wait("UPDATE from ours", lambda: any(
        "spring" in full.say(f"show {it}")["contents"].get("description", "") for it in described()))
    ours.forget("Camas Garden")
    wait("FORGET from ours", lambda: "Camas Garden" not in full.names())
    print("NEW, UPDATE and FORGET from ours")

    partial = Partial("pollster")
    assert partial.introduce(ours) == (200, None)
    ours.run("federation", "approve", "pollster")
    partial.subscribe(ours, [PRACTICE])
    ours.note("Eelgrass Survey")
    seen = []
    wait("a partial node polls", lambda: seen.extend(partial.poll(ours)) or
         any(it["rid"].startswith(PRACTICE) for it in seen))
    assert seen[0]["rid"] == ours.rid, seen[0]
    assert partial.poll(ours) == []
    print("a partial node was told who answers, and got its events once")

    ours.stop()
    full.put(PRACTICE + ":salmon", {"name": "Salmon Watch"})
    ours.start()
    wait("ours catches up", lambda: "Salmon Watch" in ours.names())
    full.stop()
    ours.note("Kelp Restoration")
    time.sleep(3)
    full.start()
    wait("the reference gets what it missed", lambda: "Kelp Restoration" in full.names(), 120)
    print("both caught up after they were down")

    expected = sorted(f"Practice number {n}" for n in range(200))
    for name in expected:
        ours.note(name)
    kills = 0
    while kills < 5:
        # In the middle of it, however fast this machine is.
        wait("something was delivered", lambda: len(full.names()) > 10 + 30 * kills or kills, 90)
        ours.stop(signal.SIGKILL)
        kills += 1
        ours.start()
    def has_all():
        names = [it for it in full.names() if it.startswith("Practice number")]
        return names == expected
    wait("all 200 are there, each once", has_all, 180)
    wait("nothing waits any more", lambda: ours.peer(full.rid)["queued"] == 0, 60)
    print(f"200 deliveries with {kills} kills: nothing lost, nothing twice")

    assert post(ours.url + "/events/poll", {"type": "poll_events", "limit": 0})[0] in (200, 422)
    stranger = Partial("stranger")
    status, answer = stranger.post(ours.url + "/events/poll", {"type": "poll_events", "limit": 0}, ours.rid)
    assert (status, answer) == (400, {"type": "error_response", "error": "unknown_node"}), answer
    stranger.introduce(ours)
    status, answer = stranger.post(ours.url + "/rids/fetch", {"type": "fetch_rids", "rid_types": []}, ours.rid)
    assert answer["payload"]["rids"] == [ours.rid], answer
    print("a stranger learns who we are, and nothing else")
    verified = ours.run("audit", "verify")
    print("ALL OK")


try:
    main()
finally:
    for process in processes:
        if process.poll() is None:
            process.kill()
