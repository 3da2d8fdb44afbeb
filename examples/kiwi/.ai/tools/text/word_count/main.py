"""Counts the lines, words and characters of a text."""

import argparse
import json


def count(text: str) -> dict[str, int]:
    return {
        "lines": len(text.splitlines()),
        "words": len(text.split()),
        "characters": len(text),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", required=True, help="the text to count")
    # The runtime adds arguments of its own, such as the project's path.
    arguments, _ = parser.parse_known_args()
    print(json.dumps(count(arguments.text)))


if __name__ == "__main__":
    main()
