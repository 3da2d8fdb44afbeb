"""Reads a graph from a folder, answers the queries that are there with ladybug, and prints one JSON object.

How long loading took, and of each query the rows and the milliseconds of each set of parameters.
"""

import json
import pathlib
import sys
import time

import ladybug

COLUMNS = "uid STRING, name STRING, lines INT64, visibility STRING, PRIMARY KEY (uid)"


def load(connection, folder):
    for file in sorted(folder.glob("nodes-*.csv")):
        label = file.stem.split("-")[1]
        connection.execute(f"CREATE NODE TABLE {label} ({COLUMNS})")
        connection.execute(f"COPY {label} FROM '{file}' (header=false)")
    kinds = {}
    for file in sorted(folder.glob("rels-*.csv")):
        _, start, kind, end = file.stem.split("-")
        kinds.setdefault(kind, []).append((start, end, file))
    for kind, tables in kinds.items():
        ends = ", ".join(f"FROM {start} TO {end}" for start, end, _ in tables)
        connection.execute(f"CREATE REL TABLE {kind} ({ends})")
        for start, end, file in tables:
            connection.execute(
                f"COPY {kind} FROM '{file}' (header=false, from='{start}', to='{end}')"
            )


def ask(connection, text, parameters, repeat, limit_ms):
    """The rows, and the least time of the repetitions: what else runs here only adds to it."""
    times, rows, began_all = [], None, time.perf_counter()
    while not times or (
        len(times) < repeat and (time.perf_counter() - began_all) * 1e3 < limit_ms
    ):
        began = time.perf_counter()
        rows = connection.execute(text, parameters).get_all()
        times.append((time.perf_counter() - began) * 1e3)
    return rows, min(times)


def main():
    folder = pathlib.Path(sys.argv[1])
    began = time.perf_counter()
    connection = ladybug.Connection(ladybug.Database(str(folder / "ladybug.db")))
    load(connection, folder)
    load_s = time.perf_counter() - began
    asked = json.loads((folder / "queries.json").read_text())
    answers = []
    for query in asked["queries"]:
        found = [
            ask(connection, query["ladybug"], it, asked["repeat"], asked["limit_ms"])
            for it in query["parameters"]
        ]
        answers.append({"rows": [it[0] for it in found], "ms": [it[1] for it in found]})
    print(json.dumps({"load_s": load_s, "queries": answers}, default=int))


main()
