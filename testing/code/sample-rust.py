"""Chooses calls to be graded by hand: python3 sample-rust.py SOURCES SEED COUNT

A candidate is a name before a bracket, in a file under `src`, outside of comments and texts, whose name some function of the
same sources has: other calls cannot be mistaken. Each is printed as path, line and name.
"""
import pathlib, random, re, sys

root, seed, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
blank = lambda found: re.sub(r"[^\n]", " ", found.group())
hidden = re.compile(r'//[^\n]*|/\*.*?\*/|b?r#*".*?"#*|b?"(?:\\.|[^"\\])*"', re.S)
texts = {}
for path in sorted((root / "src").rglob("*.rs")):
    texts[path.relative_to(root).as_posix()] = hidden.sub(blank, path.read_text(encoding="utf-8"))
defined = {name for text in texts.values() for name in re.findall(r"\bfn\s+(\w+)", text)}
sites = []
for path, text in texts.items():
    for found in re.finditer(r"(\bfn\s+)?\b([a-z_]\w*)\s*(?:::\s*<[^()\n]*?>)?\s*\(", text):
        if not found.group(1) and found.group(2) in defined:
            sites.append((path, text.count("\n", 0, found.start(2)) + 1, found.group(2)))
for path, line, name in sorted(random.Random(seed).sample(sites, count)):
    print(path, line, name, sep="\t")
