"""Short digests of code and of values, which a record holds so that its numbers can be traced.

A code digest covers the parsed modules and whatever they import inside `lib`, without docstrings,
comments, formatting or error messages. So it changes when behaviour can change, and stays when only
words do: of ``raise ValueError(f"got {x}")`` it covers that a ValueError is raised, but not the message.
Our own walk writes out the syntax tree, because `ast.dump` prints it differently in each Python.
"""

import ast
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

PACKAGE = Path(__file__).parent
# A record's configuration already holds the values of the first two; how files are written and locked
# changes no number.
NOT_CODE = frozenset({"lib.recipes", "lib.profiles", "lib.files"})
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SKIPPED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def value_digest(value: object) -> str:
    """Digest of a JSON-able value.

    Args:
        value: anything `json.dumps` takes; the order of keys does not matter.

    Returns:
        16 hexadecimal digits.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code_digest(modules: Iterable[str]) -> str:
    """Digest of modules and of everything in `lib` that they import, lazily or not.

    Args:
        modules: dotted names, e.g. ``["lib.training", "lib.losses.hinge"]``; a package stands for
            its ``__init__``.

    Returns:
        16 hexadecimal digits, the same for every supported Python.

    Raises:
        ModuleNotFoundError: a name is no module of `lib`.
    """
    return _digest_of(frozenset(modules))


@cache
def _digest_of(modules: frozenset[str]) -> str:
    return value_digest({name: _module_text(name) for name in sorted(closure(modules))})


def closure(modules: Iterable[str]) -> frozenset[str]:
    """Names of the given modules and of all modules of `lib` that they import, directly or not."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found or name in NOT_CODE:
            continue
        found.add(name)
        waiting.extend(_imports(name))
    return frozenset(found)


def module_file(name: str) -> Path | None:
    """Return the source file of a module of `lib`, or None if there is no such module."""
    stem = PACKAGE.parent.joinpath(*name.split("."))
    files = (stem.with_suffix(".py"), stem / "__init__.py")
    return next((file for file in files if name.split(".")[0] == "lib" and file.is_file()), None)


@cache
def _tree(name: str) -> ast.Module:
    file = module_file(name)
    if file is None:
        raise ModuleNotFoundError(f"{name} is no module of lib")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            said = [*node.exc.args, *node.exc.keywords]
            node.exc.args, node.exc.keywords = [_Wordless().visit(part) for part in said], []
    return tree


class _Wordless(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Constant:
        return ast.Constant("")


@cache
def _module_text(name: str) -> str:
    return json.dumps(_plain(_tree(name)), separators=(",", ":"))


@cache
def _imports(name: str) -> tuple[str, ...]:
    names, tree = [], _tree(name)
    package = name if module_file(name).name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            names.append(base)
            names += [f"{base}.{alias.name}" for alias in node.names]
    return tuple(n for n in names if module_file(n))


def _plain(node: object) -> object:
    if isinstance(node, ast.AST):
        fields = {}
        for field in node._fields:
            value = getattr(node, field, None)
            if field in _SKIPPED_FIELDS or value is None or value == []:
                continue
            documented = field == "body" and isinstance(node, _DOCUMENTED)
            if documented and ast.get_docstring(node) is not None:
                value = value[1:]
            fields[field] = _plain(value)
        return [type(node).__name__, dict(sorted(fields.items()))]
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return [type(node).__name__, repr(node)]
