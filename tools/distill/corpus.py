"""Texts and headings from a folder of prose.

Markdown, reStructuredText and plain text are cut into passages of paragraphs; the heading of a
passage is the nearest one above it. Lines of `.jsonl` have `text` and perhaps `title`.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

PASSAGE_WORDS = 120
PASSAGE_WORDS_MIN = 5
SUFFIXES = (".md", ".rst", ".txt", ".jsonl")
HASHES = re.compile(r"^#{1,6}\s+(.+?)\s*#*$")
UNDERLINE = re.compile(r"^([=\-~^\"'#*+])\1{2,}$")


@dataclass(frozen=True)
class Passage:
    text: str
    heading: str


def read(folder: Path) -> list[Passage]:
    """Every passage once, in the order of the files' names."""
    seen: dict[str, Passage] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        content = path.read_text(errors="replace")
        found = of_lines(content) if path.suffix == ".jsonl" else of_prose(content)
        for passage in found:
            if len(passage.text.split()) >= PASSAGE_WORDS_MIN:
                seen.setdefault(passage.text, passage)
    return list(seen.values())


def of_lines(content: str) -> list[Passage]:
    rows = [json.loads(it) for it in content.splitlines() if it.strip()]
    return [Passage(it["text"].strip(), (it.get("title") or "").strip()) for it in rows if it.get("text")]


def of_prose(content: str, words_max: int = PASSAGE_WORDS) -> list[Passage]:
    out: list[Passage] = []
    heading, pending = "", []

    def close():
        if pending:
            out.append(Passage(" ".join(pending), heading))
            pending.clear()

    for block in re.split(r"\n\s*\n", content):
        lines = [it.strip() for it in block.splitlines() if it.strip()]
        while lines and (found := heading_of(lines)):
            close()
            heading, used = found
            lines = lines[used:]
        # A paragraph stays whole if it can.
        for part in [" ".join(lines)] if count(lines) <= words_max else lines:
            if count(pending) + count([part]) > words_max:
                close()
            if part:
                pending.append(part)
    close()
    return out


def count(texts: list[str]) -> int:
    return sum(len(it.split()) for it in texts)


def heading_of(lines: list[str]) -> tuple[str, int] | None:
    """The heading that a block begins with, and how many lines it takes."""
    if marked := HASHES.match(lines[0]):
        return marked[1], 1
    if len(lines) > 1 and UNDERLINE.match(lines[1]) and not UNDERLINE.match(lines[0]):
        return lines[0], 2
    return None
