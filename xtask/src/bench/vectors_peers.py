"""Measures one peer on the vectors of a folder, and prints one JSON object.

Processor time of one thread; questions one at a time, as an agent asks them.
"""

import json
import os
import pathlib
import sys
import time

import numpy

LIMIT = 10
MEASURED_S = 1.0
CHUNK = 5_000
SHARES = [1, 10, 100]


def resident_bytes():
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def build(vectors, add, limit_s):
    """Adds everything in pieces; None when it takes too long."""
    began = time.process_time()
    for start in range(0, len(vectors), CHUNK):
        add(start, vectors[start : start + CHUNK])
        if time.process_time() - began > limit_s:
            return None
    return time.process_time() - began


def recall(truth, found):
    held = sum(len(set(a) & set(b)) for a, b in zip(truth.tolist(), found))
    return held / truth.size


def measure(queries, truth, ask):
    """Recall and milliseconds of a question."""
    found = [ask(query) for query in queries]
    began, n = time.process_time(), 0
    while time.process_time() - began < MEASURED_S:
        for query in queries:
            ask(query)
        n += len(queries)
    return recall(truth, found), (time.process_time() - began) * 1_000 / n


def faiss_index(kind, dimensions):
    import faiss

    faiss.omp_set_num_threads(1)
    if kind == "flat":
        return faiss.IndexFlatIP(dimensions), "faiss flat"
    index = faiss.IndexHNSWFlat(dimensions, 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 200
    index.hnsw.efSearch = 64
    return index, "faiss HNSW32, efC 200, efS 64"


def faiss_asker(index, kind, n, share):
    import faiss

    bits = None
    if share > 1:
        admitted = numpy.zeros(n, dtype=bool)
        admitted[::share] = True
        bits = numpy.packbits(admitted, bitorder="little")
        selector = faiss.IDSelectorBitmap(bits)
        if kind == "flat":
            parameters = faiss.SearchParameters(sel=selector)
        else:
            parameters = faiss.SearchParametersHNSW(sel=selector, efSearch=64)
    else:
        parameters = None

    def ask(query, _bits=bits):
        return index.search(query[None, :], LIMIT, params=parameters)[1][0].tolist()

    return ask


def run(folder, kind, n, dimensions, limit_s):
    vectors = numpy.fromfile(folder / "vectors.f32", dtype="<f4").reshape(n, dimensions)
    queries = numpy.fromfile(folder / "queries.f32", dtype="<f4").reshape(-1, dimensions)
    truth = numpy.fromfile(folder / "truth.u32", dtype="<u4").reshape(3, len(queries), LIMIT)
    before = resident_bytes()
    removal_us = None
    if kind == "usearch":
        from usearch.index import Index

        index = Index(ndim=dimensions, metric="ip", dtype="f32", connectivity=16,
                      expansion_add=128, expansion_search=64)
        what = "usearch HNSW16, f32, 128/64"
        keys = numpy.arange(n, dtype=numpy.uint64)
        took = build(vectors, lambda at, rows: index.add(keys[at : at + len(rows)], rows, threads=1), limit_s)
        askers = [lambda query: index.search(query, LIMIT, threads=1).keys.tolist()]
    else:
        index, what = faiss_index(kind, dimensions)
        if kind == "hnsw" and n > 300_000:
            return {"why": "not built: more than 300,000"}
        took = build(vectors, lambda at, rows: index.add(rows), limit_s)
        askers = [faiss_asker(index, kind, n, share) for share in SHARES]
    if took is None:
        return {"why": f"not built in {limit_s:.0f} s of processor time"}
    resident = resident_bytes() - before
    measured = [measure(queries, truth[i], ask) for i, ask in enumerate(askers)]
    if kind == "usearch":
        gone = keys[::5][: min(1_000, n // 5)]
        began = time.process_time()
        for key in gone.tolist():
            index.remove(key)
        removal_us = (time.process_time() - began) * 1e6 / len(gone)
    return {
        "what": what,
        "recall": [it[0] for it in measured],
        "query_ms": [it[1] for it in measured],
        "insert_us": took * 1e6 / n,
        "removal_us": removal_us,
        "bytes": resident / n,
    }


if __name__ == "__main__":
    folder, kind, n, dimensions, minutes = sys.argv[1:]
    row = run(pathlib.Path(folder), kind, int(n), int(dimensions), 60.0 * float(minutes))
    print(json.dumps(row))
