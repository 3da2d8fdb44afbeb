#!/usr/bin/env python3
"""Makes a token table (`.semb`) that imitates a sentence transformer. The recipe is in README.md.

    python distill.py --corpus FOLDER --out table.semb
    python distill.py --out plain.semb            # without a corpus: the teacher's rows, Zipf's weights
"""

import argparse
import collections
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import corpus as corpora
import table as tables
from loss import Bags, Targets, loss, to_rows, unit
from table import WORD, Vocabulary, fold, is_cjk
from teacher import Teacher, packaged

RARE = 1e-3
DROPPED = 0.1
BAG_WORDS_MAX = 5
CLUSTER_TEXTS = 64


@dataclass
class Settings:
    dimensions: int = 256
    words: int = 32_000
    epochs: int = 4
    batch: int = 2048
    rate: float = 3e-3
    seed: int = 1
    only_seen: bool = False


@dataclass
class Run:
    """A table and how it came about."""

    entries: list[str]
    n_base: int
    start: np.ndarray
    rows: np.ndarray
    losses: list[float] = field(default_factory=list)
    texts: Bags | None = None
    targets: Targets | None = None


def distill(teacher: Teacher, passages: list[corpora.Passage], settings: Settings) -> Run:
    random = np.random.default_rng(settings.seed)
    base = base_entries(teacher)
    counts = collections.Counter(fold(word) for it in passages for word in WORD.findall(f"{it.heading} {it.text}"))
    entries = base + whole_words(Vocabulary(base), counts, settings.words)
    if settings.only_seen:
        entries = seen(entries, passages)
    vocabulary = Vocabulary(entries)
    say(f"{len(entries)} entries, {len(passages)} passages")

    # What the table cannot read teaches it nothing.
    passages = [it for it in passages if vocabulary.ids(it.text)]
    texts = [np.array(vocabulary.ids(it.text)) for it in passages]
    alone = teacher.embed_entries(entries, progress("entries"))
    of_texts = teacher.embed([it.text for it in passages], progress("texts")) if passages else alone
    axes = principal_axes(of_texts)
    share = shares(texts, len(entries))
    start = (alone @ axes)[:, :settings.dimensions] * (RARE / (RARE + share))[:, None].astype(np.float32)

    known = set(entries)
    run = Run(entries, sum(it in known for it in base), start, start.copy())
    if not passages:
        return run
    headings = [(idx, np.array(ids)) for idx, it in enumerate(passages) if (ids := vocabulary.ids(it.heading))]
    loose = loose_bags(vocabulary, counts, len(passages), random)
    lesson = Lesson(
        texts=texts,
        headings=dict(headings),
        loose=[np.array(vocabulary.ids(it)) for it in loose],
        of_texts=Targets.of(of_texts @ axes, settings.dimensions),
        of_headings={idx: row for (idx, _), row in zip(headings, teacher.embed(
            [passages[idx].heading for idx, _ in headings], progress("headings")) @ axes)} if headings else {},
        of_loose=Targets.of(teacher.embed(loose, progress("bags")) @ axes, settings.dimensions),
    )
    run.texts, run.targets = Bags.of(texts), lesson.of_texts
    train(run, lesson, settings, random)
    return run


def base_entries(teacher: Teacher) -> list[str]:
    """The teacher's entries without specials and punctuation."""
    special = teacher.specials()
    return [it for it in teacher.vocabulary() if it not in special and WORD.search(it)]


def whole_words(base: Vocabulary, counts: collections.Counter, limit: int) -> list[str]:
    """The most frequent words that would otherwise be split, here and in general."""
    total = max(1, sum(counts.values()))
    score = {word: count / total for word, count in counts.items()}
    try:
        import wordfreq

        for word in wordfreq.top_n_list("en", 4 * limit, wordlist="large"):
            score[fold(word)] = score.get(fold(word), 0) + wordfreq.word_frequency(word, "en", wordlist="large")
    except ImportError:
        say("wordfreq is not installed: whole words are chosen by the corpus alone")
    split = [
        word for word in score
        if WORD.fullmatch(word) and len(word) <= tables.WORD_CHARS_MAX and not any(map(is_cjk, word))
        and len(base.of_word(word)) > 1
    ]
    return sorted(split, key=lambda it: (-score[it], it))[:limit]


def seen(entries: list[str], passages: list[corpora.Passage]) -> list[str]:
    """Those that the passages use, so that a trial does not wait for all the others."""
    vocabulary = Vocabulary(entries)
    used = {it for passage in passages for it in vocabulary.ids(f"{passage.heading} {passage.text}")}
    return [word for idx, word in enumerate(entries) if idx in used]


def principal_axes(vectors: np.ndarray) -> np.ndarray:
    """A rotation that puts most of the vectors' length into the first dimensions.

    They are not centered, because cosines are taken from the origin.
    """
    _, axes = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)
    return axes[:, ::-1].astype(np.float32)


def shares(texts: list[np.ndarray], n_entries: int) -> np.ndarray:
    """How much of the corpus each entry is. Without one, what Zipf's law gives their order."""
    if texts:
        counts = np.bincount(np.concatenate(texts), minlength=n_entries)
    else:
        counts = 1 / np.arange(1, n_entries + 1)
    return counts / counts.sum()


def loose_bags(vocabulary: Vocabulary, counts: collections.Counter, n_bags: int, random: np.random.Generator) -> list[str]:
    words = sorted(it for it in counts if vocabulary.ids(it))
    picks = (random.choice(len(words), random.integers(1, BAG_WORDS_MAX + 1)) for _ in range(n_bags))
    return [" ".join(words[it] for it in pick) for pick in picks]


@dataclass
class Lesson:
    """What is learned from: ids, and the teacher's vectors for them."""

    texts: list[np.ndarray]
    headings: dict[int, np.ndarray]
    loose: list[np.ndarray]
    of_texts: Targets
    of_headings: dict[int, np.ndarray]
    of_loose: Targets


def train(run: Run, lesson: Lesson, settings: Settings, random: np.random.Generator) -> None:
    adam = Adam(run.rows)
    n_batches = math.ceil(len(lesson.texts) / settings.batch)
    n_steps = settings.epochs * n_batches
    for epoch in range(settings.epochs):
        # Every other epoch like is set beside like: only then is it hard to tell them apart.
        order = by_likeness(lesson.of_texts.whole, random) if epoch % 2 else random.permutation(len(lesson.texts))
        loose = random.permutation(len(lesson.loose))
        batches = np.array_split(np.arange(len(order)), n_batches)
        for part in random.permutation(n_batches):
            step = len(run.losses)
            rate = settings.rate * (1 + math.cos(math.pi * step / n_steps)) / 2
            value, ids, gradient = lesson_loss(run.rows, lesson, order[batches[part]], loose[batches[part]], random)
            adam.step(ids, gradient, rate)
            run.losses.append(value)
        say(f"epoch {epoch + 1} of {settings.epochs}: loss {np.mean(run.losses[-n_batches:]):.4f}")


def lesson_loss(
    rows: np.ndarray, lesson: Lesson, texts: np.ndarray, loose: np.ndarray, random: np.random.Generator,
) -> tuple[float, np.ndarray, np.ndarray]:
    with_heading = [(place, idx) for place, idx in enumerate(texts) if idx in lesson.headings]
    dimensions = rows.shape[1]
    bags = (
        Bags.of([thinned(lesson.texts[it], random) for it in texts]),
        Bags.of([thinned(lesson.headings[it], random) for _, it in with_heading]),
        Bags.of([thinned(lesson.loose[it], random) for it in loose]),
    )
    whole = np.array([lesson.of_headings[it] for _, it in with_heading], np.float32)
    of_headings = Targets.of(whole.reshape(-1, lesson.of_texts.whole.shape[1]), dimensions)
    value, *gradients = loss(
        *(it.sums(rows) for it in bags),
        lesson.of_texts[texts], of_headings, lesson.of_loose[loose],
        np.array([place for place, _ in with_heading], np.int64),
    )
    ids, gradient = to_rows(list(zip(bags, gradients)))
    return value, ids, gradient


def thinned(ids: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Without a tenth of its tokens, but never without all."""
    kept = ids[random.random(len(ids)) >= DROPPED]
    return kept if len(kept) else ids


def by_likeness(vectors: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """An order in which the texts nearest to the same one of some random texts are neighbors."""
    n_centers = max(1, len(vectors) // CLUSTER_TEXTS)
    centers = vectors[random.choice(len(vectors), n_centers, replace=False)]
    nearest = np.concatenate([(part @ centers.T).argmax(1) for part in np.array_split(vectors, max(1, len(vectors) // 4096))])
    return np.lexsort((random.random(len(vectors)), nearest))


class Adam:
    def __init__(self, rows: np.ndarray, decay=(0.9, 0.999), epsilon=1e-8):
        self.rows, self.decay, self.epsilon = rows, decay, epsilon
        self.mean, self.square = np.zeros_like(rows), np.zeros_like(rows)
        self.steps = 0

    def step(self, ids: np.ndarray, gradient: np.ndarray, rate: float) -> None:
        self.steps += 1
        a, b = self.decay
        self.mean *= a
        self.square *= b
        self.mean[ids] += (1 - a) * gradient
        self.square[ids] += (1 - b) * gradient * gradient
        mean = self.mean / (1 - a ** self.steps)
        square = self.square / (1 - b ** self.steps)
        self.rows -= rate * mean / (np.sqrt(square) + self.epsilon)


def likeness(rows: np.ndarray, texts: Bags, targets: Targets) -> float:
    """The mean cosine between the table's vectors of the texts and the teacher's."""
    return float((unit(texts.sums(rows)) * targets.cut).sum(1).mean())


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def progress(what: str):
    began = told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told > 10:
            told = time.monotonic()
            say(f"{what}: {done} of {total} in {told - began:.0f} s")

    return tell


def main() -> None:
    default = Settings()
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--corpus", type=Path, help="a folder of .md, .rst, .txt or .jsonl files")
    args.add_argument("--out", type=Path, required=True, help="the table to write")
    args.add_argument("--teacher", type=Path, help="a folder with the teacher's files instead of the package")
    args.add_argument("--name", default="static-minilm", help="what the table calls itself")
    args.add_argument("--dimensions", type=int, default=default.dimensions)
    args.add_argument("--bits", type=int, choices=(4, 8), default=4)
    args.add_argument("--words", type=int, default=default.words, help="whole words beside the teacher's entries")
    args.add_argument("--epochs", type=int, default=default.epochs)
    args.add_argument("--batch", type=int, default=default.batch)
    args.add_argument("--seed", type=int, default=default.seed)
    given = args.parse_args()

    passages = corpora.read(given.corpus) if given.corpus else []
    if given.corpus and not passages:
        args.error(f"--corpus {given.corpus} holds no text")
    settings = Settings(given.dimensions, given.words, given.epochs, given.batch, default.rate, given.seed)
    run = distill(Teacher(given.teacher or packaged()), passages, settings)
    if run.texts:
        before, after = (likeness(it, run.texts, run.targets) for it in (run.start, run.rows))
        say(f"mean cosine to the teacher: {before:.4f} at the start, {after:.4f} now")
    meta = {
        "name": f"{given.name}-{given.dimensions}",
        "teacher": "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0)",
        "tokenizer": "wordpiece-lower-nfd; words=[^\\W_]+; camelCase split on miss",
        "calibration": {},
    }
    tables.write(given.out, tables.Table(meta, run.entries, run.n_base, run.rows), given.bits)
    say(f"{given.out}: {given.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
