#!/usr/bin/env python3
"""Makes crates/entities/assets/words.txt: words and names that another one is a slip of the fingers away from.

    python3 make.py TABLE SURNAMES > words.txt

TABLE is the built-in embedding table, whose vocabulary is read. SURNAMES is a file with one family name a
line; the list in use has the thousand most frequent ones of a census of the United States.
"""

import re
import struct
import sys
from collections import defaultdict

LETTERS_MIN, LETTERS_MAX = 4, 14
# As in crates/entities/src/likeness/slip.rs.
TWO_SLIPS_LETTERS = 10
ENDINGS = [
    ("ing", ["", "e"]), ("ings", ["", "e"]), ("ed", ["", "e"]), ("ly", [""]), ("er", ["", "e"]),
    ("ers", ["", "e"]), ("es", ["", "e"]), ("s", [""]), ("est", ["", "e"]), ("ness", [""]), ("ies", ["y"]),
    ("ied", ["y"]),
]


def vocabulary(path):
    with open(path, "rb") as file:
        table = file.read()
    n_bytes = struct.unpack_from("<I", table, 24)[0]
    words, at = table[-n_bytes:], 0
    while at < len(words):
        end = at + 1 + words[at]
        yield words[at + 1 : end].decode()
        at = end


def is_inflected(word, words):
    for ending, stems in ENDINGS:
        if not word.endswith(ending):
            continue
        stem = word[: -len(ending)]
        if any(stem + it in words for it in stems):
            return True
        if len(stem) > 3 and stem[-1] == stem[-2] and stem[:-1] in words:
            return True
    return False


def shortened(word):
    """The word without any letter, or any two of a long one: words that share one are near."""
    out, last = {word}, {word}
    for _ in range(2 if len(word) >= TWO_SLIPS_LETTERS - 1 else 1):
        last = {it[:i] + it[i + 1 :] for it in last for i in range(len(it))}
        out |= last
    return out


def edits(a, b):
    before, last = [], list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        row = [i]
        for j in range(1, len(b) + 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]


def is_near(a, b):
    n_max = 2 if max(len(a), len(b)) >= TWO_SLIPS_LETTERS else 1
    return a != b and a[0] == b[0] and edits(a, b) <= n_max


def main():
    table, surnames = sys.argv[1:]
    words = {it for it in vocabulary(table) if re.fullmatch("[a-z]+", it) and len(it) >= LETTERS_MIN}
    plain = {it for it in words if len(it) <= LETTERS_MAX and not is_inflected(it, words)}
    near = defaultdict(set)
    for word in plain:
        for it in shortened(word):
            near[it].add(word)
    kept = {word for word in plain if any(is_near(word, it) for key in shortened(word) for it in near[key])}
    with open(surnames, encoding="utf-8") as file:
        names = (it.strip().lower().replace("'", "") for it in file)
        kept |= {it for it in names if re.fullmatch("[a-z]+", it) and len(it) >= LETTERS_MIN}
    print("\n".join(sorted(kept)))


main()
