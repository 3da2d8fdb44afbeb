"""The table that is made: its tokenizer `semb-1` and its file format `.semb`.

Both are the product's, and have to stay what `crates/embed` reads.
"""

import json
import re
import struct
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WORD = re.compile(r"[^\W_]+")
CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
RUN = re.compile(r"[A-Za-z]+|[0-9]+")
CJK_OR_RUN = re.compile(r"[^\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+|.")
CJK = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x2FA1F))
WORD_CHARS_MAX = 40
IDS_MAX = 512
# A reader keeps ids in two bytes, and one value for none.
ENTRIES_MAX = 65_534

HEADER = "<4sHHIIHHIII"
HEADER_BYTES = 64
ALIGNED = 64


def fold(word: str) -> str:
    word = word.lower()
    if word.isascii():
        return word
    return "".join(it for it in unicodedata.normalize("NFD", word) if unicodedata.category(it) != "Mn")


def is_cjk(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in CJK)


class Vocabulary:
    """Words and pieces (`##ing`), and how a text is cut into them."""

    def __init__(self, entries: list[str]):
        self.entries = entries
        self.id = {word: idx for idx, word in enumerate(entries)}
        assert len(self.id) == len(entries), "an entry stands twice"
        self.known: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        out: list[int] = []
        for word in WORD.findall(text):
            if word not in self.known:
                self.known[word] = self.of_word(word)
            out += self.known[word]
            if len(out) >= IDS_MAX:
                break
        return out[:IDS_MAX]

    def of_word(self, word: str) -> list[int]:
        key = fold(word)
        if key in self.id:
            return [self.id[key]]
        if any(map(is_cjk, key)):
            return [it for part in CJK_OR_RUN.findall(key) for it in self.of_part(part, len(part) > 1)]
        if word.isascii() and not word.islower():
            parts: list[str] = []
            for run in RUN.findall(word):
                parts += [run] if run.lower() in self.id else CAMEL.findall(run)
            if len(parts) > 1:
                return [it for part in parts for it in self.of_part(part.lower(), True)]
        return self.pieces(key)

    def of_part(self, part: str, divisible: bool) -> list[int]:
        if part in self.id:
            return [self.id[part]]
        return self.pieces(part) if divisible else []

    def pieces(self, key: str) -> list[int]:
        """Greedy longest match. A word that cannot be covered gives nothing."""
        out: list[int] = []
        start = 0
        while start < len(key) and len(key) <= WORD_CHARS_MAX:
            mark = "##" if start else ""
            for end in range(len(key), start, -1):
                hit = self.id.get(mark + key[start:end])
                if hit is not None:
                    break
            else:
                return []
            out.append(hit)
            start = end
        return out


@dataclass
class Table:
    """A file's content: entries, how many of them are the teacher's, one row each."""

    meta: dict
    entries: list[str]
    n_base: int
    rows: np.ndarray


def write(path: Path, table: Table, bits: int) -> None:
    """4 bits: byte k of a row holds dimension k in its low half and k + d/2 in its high half."""
    n, d = table.rows.shape
    if n > ENTRIES_MAX or d % 2:
        raise ValueError(f"{n} rows of {d} numbers: at most {ENTRIES_MAX} rows of an even number fit the format")
    scale, steps = quantized(table.rows, bits)
    if bits == 4:
        nibbles = (steps + 8).astype(np.uint8)
        packed = nibbles[:, :d // 2] | nibbles[:, d // 2:] << 4
    else:
        packed = steps.astype(np.int8)
    meta = json.dumps(table.meta, ensure_ascii=False, separators=(",", ":")).encode()
    words = b"".join(bytes([len(it)]) + it for it in (word.encode() for word in table.entries))
    header = struct.pack(HEADER, b"SEMB", 1, bits, n, table.n_base, d, 0, len(meta), len(words), 0)
    out = bytearray(header.ljust(HEADER_BYTES, b"\0"))
    out += meta
    out += bytes(-len(out) % ALIGNED)
    out += scale.astype("<f4").tobytes()
    out += bytes(-len(out) % ALIGNED)
    out += packed.tobytes()
    out += words
    path.write_bytes(out)


def quantized(rows: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """For each row the scale with the least squared error, and the whole steps of it."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    widest = np.abs(rows).max(1)
    best_scale = np.ones(len(rows), np.float32)
    best_error = np.full(len(rows), np.inf, np.float32)
    # A few outliers cut off may cost less than coarse steps for all the others.
    for share in np.linspace(0.6, 1.0, 9):
        scale = np.where(widest > 0, widest * share / high, 1).astype(np.float32)
        steps = np.clip(np.rint(rows / scale[:, None]), low, high)
        error = ((steps * scale[:, None] - rows) ** 2).sum(1)
        better = error < best_error
        best_scale[better], best_error[better] = scale[better], error[better]
    return best_scale, np.clip(np.rint(rows / best_scale[:, None]), low, high)


def read(path: Path) -> Table:
    """Reads a file back, and fails on anything that is not as the format has it."""
    data = path.read_bytes()
    magic, version, bits, n, n_base, d, zero_a, meta_length, words_length, zero_b = struct.unpack_from(HEADER, data)
    assert (magic, version, zero_a, zero_b) == (b"SEMB", 1, 0, 0) and bits in (4, 8), "not a table"
    assert not any(data[struct.calcsize(HEADER):HEADER_BYTES]), "the header is not padded with zeros"
    at = HEADER_BYTES + meta_length
    meta = json.loads(data[HEADER_BYTES:at])
    at += -at % ALIGNED
    scale = np.frombuffer(data, "<f4", n, at)
    at += 4 * n
    at += -at % ALIGNED
    row_bytes = d * bits // 8
    packed = np.frombuffer(data, np.uint8, n * row_bytes, at).reshape(n, row_bytes)
    at += n * row_bytes
    if bits == 4:
        steps = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32) - 8
    else:
        steps = packed.view(np.int8).astype(np.float32)
    entries, end = [], at + words_length
    while at < end:
        length = data[at]
        entries.append(data[at + 1:at + 1 + length].decode())
        at += 1 + length
    assert at == end == len(data), "the file does not end where its header says"
    assert len(entries) == n and len(set(entries)) == n and n_base <= n, "the vocabulary does not fit the rows"
    assert np.isfinite(scale).all() and (scale > 0).all(), "a scale is not a positive number"
    return Table(meta, entries, n_base, steps * scale[:, None])
