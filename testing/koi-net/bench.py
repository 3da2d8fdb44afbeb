#!/usr/bin/env python3
"""An empty node of the reference implementation (koi-net 2.1.2) fetches everything that another provides.

  bench.py WORK_DIRECTORY N

Prints one JSON line {"bundles":..., "seconds":..., "bytes":...}; the bytes are those of the connections, with
HTTP's headers.
"""
import json, os, socket, subprocess, sys, threading, time

WORK, N = os.path.abspath(sys.argv[1]), int(sys.argv[2])
HERE = os.path.dirname(os.path.abspath(__file__))
PRACTICE = "orn:koi-net.practice"
n_bytes = 0
processes = []


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def relay(source, sink):
    global n_bytes
    try:
        while data := source.recv(65536):
            n_bytes += len(data)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def count(listener, to):
    while True:
        inside, _ = listener.accept()
        outside = socket.create_connection(("127.0.0.1", to))
        for pair in ((inside, outside), (outside, inside)):
            threading.Thread(target=relay, args=pair, daemon=True).start()


class Node:
    def __init__(self, kind, name, at, contact, **environment):
        command = [sys.executable, os.path.join(HERE, "reference_node.py"), kind, os.path.join(WORK, name), str(at),
                   contact, PRACTICE]
        environment = {**os.environ, "PRIV_KEY_PASSWORD": "test", **environment}
        log = open(os.path.join(WORK, name + ".log"), "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                        env=environment)
        processes.append(self.process)
        self.rid = json.loads(self.process.stdout.readline())["rid"]

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


try:
    listener = socket.create_server(("127.0.0.1", 0))
    at, counted = port(), listener.getsockname()[1]
    threading.Thread(target=count, args=(listener, at), daemon=True).start()
    url = f"http://127.0.0.1:{counted}/koi-net"
    there = Node("coordinator", "there", at, "-", BASE_URL=url)
    there.ask(f"fill {PRACTICE} {N}")
    n_bytes, began = 0, time.time()
    here = Node("full", "here", port(), f"{there.rid} {url}")
    end = time.time() + 600
    while (n := here.ask(f"count {PRACTICE}")) < N:
        if time.time() > end:
            raise SystemExit(f"FAIL: {n} of {N} bundles arrived")
        time.sleep(0.2)
    print(json.dumps({"bundles": N, "seconds": round(time.time() - began, 2), "bytes": n_bytes}))
finally:
    for process in processes:
        process.kill()
