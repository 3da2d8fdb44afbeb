# Runs a Python tool whose `main` takes its inputs as arguments: `python3 bind.py INPUTS SCRIPT ARGS...`
#
# The script runs as it would by itself, with one difference: where it calls `main()` without
# arguments when it is run as a program, `main` gets the inputs, and what it returns is printed as
# JSON. A script that calls `main` with arguments of its own, or whose `main` does not take the inputs,
# is left as it is.

import ast
import json
import sys
import types


def takes(function, inputs):
    """Whether `main` takes the inputs by name."""
    arguments = function.args
    if arguments.kwarg is not None:
        return True
    named = [it.arg for it in arguments.args + arguments.kwonlyargs]
    return bool(inputs) and all(name in named for name in inputs)


def is_guard(node):
    """Whether this is `if __name__ == "__main__":`."""
    test = node.test if isinstance(node, ast.If) else None
    if not isinstance(test, ast.Compare) or len(test.comparators) != 1:
        return False
    sides = [test.left, test.comparators[0]]
    names = [it.id for it in sides if isinstance(it, ast.Name)]
    texts = [it.value for it in sides if isinstance(it, ast.Constant)]
    return names == ["__name__"] and texts == ["__main__"]


def is_bare_call(node):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "main"
        and not node.args
        and not node.keywords
    )


class Bind(ast.NodeTransformer):
    """Gives the inputs to every `main()` in the guard."""

    def __init__(self):
        self.is_bound = False

    def visit_Call(self, node):
        self.generic_visit(node)
        if is_bare_call(node):
            self.is_bound = True
            inputs = ast.Name("__kiwi_inputs__", ast.Load())
            node.keywords = [ast.keyword(None, inputs)]
        return node

    def visit_Expr(self, node):
        before = self.is_bound
        self.is_bound = False
        self.generic_visit(node)
        if self.is_bound and isinstance(node.value, ast.Call) and not is_print(node.value):
            give = ast.Name("__kiwi_give__", ast.Load())
            node.value = ast.Call(give, [node.value], [])
        self.is_bound = self.is_bound or before
        return node


def is_print(call):
    """Whether what `main` returns is used already."""
    function = call.func
    name = getattr(function, "attr", None) or getattr(function, "id", None)
    return name in ("print", "exit", "dump", "write")


def give(value):
    if value is not None:
        print(json.dumps(value, ensure_ascii=False, default=str), flush=True)


def bound(tree, inputs):
    """The script with its inputs bound."""
    mains = [
        it
        for it in tree.body
        if isinstance(it, (ast.FunctionDef, ast.AsyncFunctionDef)) and it.name == "main"
    ]
    if not mains or not takes(mains[-1], inputs):
        return tree
    guards = [it for it in tree.body if is_guard(it)]
    for guard in guards:
        guard.body = [Bind().visit(it) for it in guard.body]
    # Without a guard nothing calls it, unless the module does so itself.
    calls_itself = any(
        isinstance(it, ast.Name) and it.id == "main"
        for statement in tree.body
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        for it in ast.walk(statement)
    )
    if not guards and not calls_itself:
        call = "main(**__kiwi_inputs__)"
        if isinstance(mains[-1], ast.AsyncFunctionDef):
            call = "__import__('asyncio').run(%s)" % call
        tree.body += ast.parse("__kiwi_give__(%s)" % call).body
    return ast.fix_missing_locations(tree)


def run():
    inputs_path, script = sys.argv[1:3]
    with open(inputs_path, encoding="utf-8") as file:
        inputs = json.load(file)
    with open(script, "rb") as file:
        source = file.read()
    sys.argv[:] = sys.argv[2:]
    sys.path[0] = script.rpartition("/")[0]
    module = types.ModuleType("__main__")
    module.__file__ = script
    module.__dict__.update(__builtins__=__builtins__, __cached__=None)
    module.__dict__.update(__kiwi_inputs__=inputs, __kiwi_give__=give)
    sys.modules["__main__"] = module
    code = compile(bound(ast.parse(source, script), inputs), script, "exec", dont_inherit=True)
    exec(code, module.__dict__)


run()
