"""A KAMI tool in Python: counts the words of a text."""

import json
from collections import Counter

from componentize_py_types import Err
from wit_world import exports


class Tool(exports.Tool):
    def run(self, input: str) -> str:
        try:
            arguments = json.loads(input)
        except ValueError as err:
            raise Err(f"invalid input: {err}")
        text = arguments.get("text") if isinstance(arguments, dict) else None
        if not isinstance(text, str):
            raise Err("invalid input: `text` is missing or no text")
        return json.dumps(count(text), ensure_ascii=False)

    def describe(self) -> str:
        return json.dumps(
            {
                "name": "dev.example.word-count",
                "version": "1.0.0",
                "description": "Counts the words of a text",
            }
        )


def count(text: str) -> dict:
    words = Counter(text.lower().split())
    often = sorted(words.items(), key=lambda it: -it[1])[:3]
    return {"words": sum(words.values()), "most_common": dict(often)}
