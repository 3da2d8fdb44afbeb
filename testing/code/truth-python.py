"""Writes a published call graph of Python as rows of paths and lines: truth-python.py ROOT GRAPH.json > truth.tsv

GRAPH.json maps the dotted name of each function to the names that it calls, as PyCG's benchmark and the packages
that were published beside Jarvis do. A row is the outermost function around the call and the function that is
called, each as a path and the line of its name; line 0 stands for code outside of functions. What is no function of
ROOT (built-in functions, libraries, classes, modules, lambdas) is left out.
"""

import ast
import json
import os
import sys

root, graph = sys.argv[1], json.load(open(sys.argv[2]))
functions, modules, classes = {}, {}, set()


def visit(node, path, prefix, outermost):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = f"{prefix}.{child.name}"
            place = f"{path}:{child.lineno}"
            functions[name] = (place, outermost or place)
            visit(child, path, name, outermost or place)
        elif isinstance(child, ast.ClassDef):
            name = f"{prefix}.{child.name}"
            classes.add(name)
            visit(child, path, name, outermost)
        else:
            visit(child, path, prefix, outermost)


for folder, _, names in os.walk(root):
    for name in names:
        if not name.endswith(".py"):
            continue
        full = os.path.join(folder, name)
        path = os.path.relpath(full, root)
        dotted = path[:-3].replace(os.sep, ".")
        for it in {dotted, dotted.removesuffix(".__init__")}:
            modules[it] = path
            try:
                visit(ast.parse(open(full, encoding="utf-8").read()), path, it, None)
            except (SyntaxError, UnicodeDecodeError):
                pass


def caller(name):
    """The outermost function of a name; a lambda or a class is part of what it stands in."""
    while name:
        if name in functions:
            return functions[name][1]
        if name in modules:
            return f"{modules[name]}:0"
        name = name.rpartition(".")[0]
    return None


rows = set()
for name, called in graph.items():
    source = caller(name)
    if source is None:
        continue
    for it in called:
        if it in functions:
            rows.add(f"{source}\t{functions[it][0]}")
print("\n".join(sorted(rows)))
