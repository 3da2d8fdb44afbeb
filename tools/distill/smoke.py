#!/usr/bin/env python3
"""The test of the recipe: a small run on this repository's own prose, from start to file.

    python smoke.py
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import corpus
import distill
import loss
import table
from teacher import Teacher, packaged

REPOSITORY = Path(__file__).resolve().parents[2]
N_PASSAGES = 240
SETTINGS = distill.Settings(dimensions=64, words=500, epochs=1, batch=32, only_seen=True)


def main() -> None:
    began = time.monotonic()
    the_gradient_is_that_of_the_loss()
    the_format_comes_back_as_it_was_written()
    teacher = Teacher(packaged())
    the_teacher_is_the_teacher(teacher)
    a_short_run_learns(teacher)
    print(f"all held, in {time.monotonic() - began:.0f} s")


def the_gradient_is_that_of_the_loss() -> None:
    """By differences, in double precision, for every kind of sum."""
    random = np.random.default_rng(3)
    sums = [random.normal(size=(n, 6)) for n in (5, 3, 4)]
    targets = [loss.Targets.of(loss.unit(random.normal(size=(n, 9))), 6) for n in (5, 3, 4)]
    heading_of = np.array([0, 2, 4])
    _, *gradients = loss.loss(*sums, *targets, heading_of)
    for kind, gradient in enumerate(gradients):
        for at in np.ndindex(gradient.shape):
            moved = []
            for step in (1e-6, -1e-6):
                changed = [it.copy() for it in sums]
                changed[kind][at] += step
                moved.append(loss.loss(*changed, *targets, heading_of)[0])
            slope = (moved[0] - moved[1]) / 2e-6
            assert abs(slope - gradient[at]) < 1e-5 * max(1, abs(slope)), (kind, at, slope, gradient[at])

    rows = random.normal(size=(7, 6))
    bags = loss.Bags.of([np.array([1, 1, 4]), np.array([6]), np.array([4, 0])])
    ids, gradient = loss.to_rows([(bags, np.arange(18.0).reshape(3, 6))])
    assert np.allclose(bags.sums(rows)[0], 2 * rows[1] + rows[4])
    assert ids.tolist() == [0, 1, 4, 6]
    assert gradient[:, 0].tolist() == [12, 0, 12, 6]


def the_format_comes_back_as_it_was_written() -> None:
    entries = ["log", "##s", "é", "a" * 40]
    for bits, off_max in ((4, 0.15), (8, 0.01)):
        rows = np.random.default_rng(5).normal(size=(4, 10)).astype(np.float32)
        rows[2] = 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.semb"
            table.write(path, table.Table({"name": "é"}, entries, 2, rows), bits)
            back = table.read(path)
        assert (back.entries, back.n_base, back.meta) == (entries, 2, {"name": "é"})
        assert not back.rows[2].any()
        off = np.linalg.norm(back.rows - rows, axis=1) / np.maximum(np.linalg.norm(rows, axis=1), 1)
        assert off.max() < off_max, (bits, off)


def the_teacher_is_the_teacher(teacher: Teacher) -> None:
    """The figure is that of the same weights in another implementation, `crates/embed`."""
    a, b = teacher.embed(["how do I rotate the logs", "log rotation is configured in logrotate.d"])
    print(f"teacher: cosine {a @ b:.6f}")
    assert abs(float(a @ b) - 0.758122) < 1e-4, a @ b


def a_short_run_learns(teacher: Teacher) -> None:
    passages = prose()[:N_PASSAGES]
    assert len(passages) >= 200, f"{len(passages)} passages are too few to learn from"
    run = distill.distill(teacher, passages, SETTINGS)

    quarter = len(run.losses) // 4
    first, last = np.mean(run.losses[:quarter]), np.mean(run.losses[-quarter:])
    print(f"{len(passages)} passages, {len(run.entries)} entries, {len(run.losses)} steps: loss {first:.3f} to {last:.3f}")
    assert last < first

    before, after = (distill.likeness(it, run.texts, run.targets) for it in (run.start, run.rows))
    print(f"mean cosine to the teacher: {before:.4f} to {after:.4f}")
    assert after > before + 0.01

    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "smoke.semb"
        table.write(path, table.Table({"name": "smoke"}, run.entries, run.n_base, run.rows), 4)
        back = table.read(path)
    assert back.entries == run.entries and back.n_base == run.n_base
    kept = distill.likeness(back.rows, run.texts, run.targets)
    print(f"after rounding to 4 bits: {kept:.4f}")
    assert kept > after - 0.02


def prose() -> list[corpus.Passage]:
    """Of the repository's manual, in short passages, so that there are enough of them."""
    files = sorted(REPOSITORY.glob("*.md")) + sorted((REPOSITORY / "docs").rglob("*.md"))
    found = [it for path in files for it in corpus.of_prose(path.read_text(), words_max=40)]
    found = [it for it in found if len(it.text.split()) >= corpus.PASSAGE_WORDS_MIN]
    return list({it.text: it for it in found}.values())


if __name__ == "__main__":
    main()
