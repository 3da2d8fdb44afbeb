"""What is minimized, and its gradient.

Only the rows are trained, and a text is the sum of its rows, so the gradient is a few lines and needs
no library. It is given for the sums; `Bags.to_rows` hands it on to the rows.
"""

from dataclasses import dataclass

import numpy as np

TEMPERATURE = 0.05
COSINE = 10.0
INFO_NCE = 0.2
FAR_AWAY = -1e9


@dataclass
class Bags:
    """Lists of ids, one after the other. None is empty."""

    flat: np.ndarray
    starts: np.ndarray

    @staticmethod
    def of(lists: list[np.ndarray]) -> "Bags":
        lengths = np.array([len(it) for it in lists], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if lists else np.zeros(0)
        flat = np.concatenate(lists) if lists else np.zeros(0)
        return Bags(flat.astype(np.int64), starts.astype(np.int64))

    def sums(self, rows: np.ndarray) -> np.ndarray:
        if not len(self.starts):
            return np.zeros((0, rows.shape[1]), rows.dtype)
        return np.add.reduceat(rows[self.flat], self.starts)

    def owners(self) -> np.ndarray:
        lengths = np.diff(np.append(self.starts, len(self.flat)))
        return np.repeat(np.arange(len(self.starts)), lengths)


def to_rows(parts: list[tuple[Bags, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The ids that occur, and the gradient of their rows from those of the sums."""
    flat = np.concatenate([bags.flat for bags, _ in parts])
    each = np.concatenate([gradient[bags.owners()] for bags, gradient in parts])
    order = np.argsort(flat, kind="stable")
    ids, starts = np.unique(flat[order], return_index=True)
    return ids, np.add.reduceat(each[order], starts)


@dataclass
class Targets:
    """The teacher's vectors: whole for similarities, and cut to the table's dimensions."""

    whole: np.ndarray
    cut: np.ndarray

    @staticmethod
    def of(rotated: np.ndarray, dimensions: int) -> "Targets":
        return Targets(rotated, unit(rotated[:, :dimensions]))

    def __getitem__(self, idx) -> "Targets":
        return Targets(self.whole[idx], self.cut[idx])


def loss(
    texts: np.ndarray, headings: np.ndarray, loose: np.ndarray,
    of_texts: Targets, of_headings: Targets, of_loose: Targets,
    heading_of: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """The loss of sums of rows, and its gradients by them.

    `heading_of[k]` is the place among the texts of the one that heading k stands above.
    """
    u, v, w = unit(texts), unit(headings), unit(loose)
    du, dv, dw = np.zeros_like(u), np.zeros_like(v), np.zeros_like(w)
    value = 0.0

    for found, wanted, gradient in ((u, of_texts.cut, du), (v, of_headings.cut, dv), (w, of_loose.cut, dw)):
        if len(found):
            value += COSINE * (1 - float((found * wanted).sum()) / len(found))
            gradient -= COSINE * wanted / len(found)

    # A text is always most like itself, which teaches nothing.
    itself = np.where(np.eye(len(u), dtype=bool), FAR_AWAY, 0).astype(u.dtype)
    wanted = softmax(of_texts.whole @ of_texts.whole.T / TEMPERATURE + itself)
    found = u @ u.T / TEMPERATURE + itself
    value += divergence(wanted, found)
    error = (softmax(found) - wanted) / len(u)
    du += (error + error.T) @ u / TEMPERATURE

    if len(v):
        wanted = softmax(of_headings.whole @ of_texts.whole.T / TEMPERATURE)
        found = v @ u.T / TEMPERATURE
        value += divergence(wanted, found)
        shares = softmax(found)
        own = np.zeros_like(shares)
        own[np.arange(len(v)), heading_of] = 1
        value += INFO_NCE * divergence(own, found)
        error = ((shares - wanted) + INFO_NCE * (shares - own)) / len(v)
        dv += error @ u / TEMPERATURE
        du += error.T @ v / TEMPERATURE

    return value, through_unit(texts, u, du), through_unit(headings, v, dv), through_unit(loose, w, dw)


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12).astype(x.dtype)


def through_unit(x: np.ndarray, u: np.ndarray, du: np.ndarray) -> np.ndarray:
    """Only what is across the vector changes its direction."""
    length = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12).astype(x.dtype)
    return (du - (du * u).sum(1, keepdims=True) * u) / length


def softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(1, keepdims=True))
    return x / x.sum(1, keepdims=True)


def divergence(wanted: np.ndarray, logits: np.ndarray) -> float:
    """Kullback-Leibler, mean over rows."""
    logits = logits - logits.max(1, keepdims=True)
    log_found = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    log_wanted = np.log(np.maximum(wanted, 1e-30))
    return float((wanted * (log_wanted - log_found)).sum() / len(wanted))
