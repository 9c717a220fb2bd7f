"""What TensorFlow 1's API is: names, kinds, signatures and aliases, read from two files of `schemas`.

tf1_api.txt.xz has what tensorflow.compat.v1 of TensorFlow 2.21 still has, tf1_dropped.txt.xz what only 1.15 had:
layers, cells of recurrent networks, estimators, tf.contrib. `schemas.export_tf1_api`, which says what the columns are,
and `schemas/export_tf1_dropped.py` write them. Names have no "tf." here.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import schemas

FILE = Path(schemas.__file__).resolve().parent / "tf1_api.txt.xz"
DROPPED_FILE = FILE.with_name("tf1_dropped.txt.xz")


@dataclass(frozen=True)
class Fact:
    """One public name of TensorFlow.

    Attributes:
        kind: module, function, op, class, message, enum, dtype, constant; method or property of a class.
        canonical: the name that the same thing has first; the name itself where there is no other.
        detail: see `schemas.export_tf1_api`.
        signature: as text; see `signature_of`.
    """

    name: str
    kind: str
    canonical: str
    detail: dict[str, Any]
    signature: str

    @property
    def is_deprecated(self) -> bool:
        return bool(self.detail.get("deprecated"))


@functools.cache
def _lines(file: Path) -> dict[str, str]:
    import lzma

    text = lzma.decompress(file.read_bytes()).decode()
    return {line.partition("\t")[0]: line for line in text.split("\n")[1:] if line}


@functools.lru_cache(4096)
def fact(name: str) -> Fact | None:
    """What TensorFlow has, or had, under a dotted name, or None."""
    line = _lines(FILE).get(name) or _lines(DROPPED_FILE).get(name)
    if line is None:
        return None
    _, kind, canonical, detail, signature = line.split("\t")
    return Fact(name, kind, canonical or name, json.loads(detail) if detail else {}, signature)


_NO_NAMES = ("method", "property", "module")


def _names(file: Path) -> tuple[str, ...]:
    return tuple(name for name, line in _lines(file).items() if line.split("\t", 2)[1] not in _NO_NAMES)


@functools.cache
def names() -> tuple[str, ...]:
    """Every public name of tensorflow.compat.v1 but modules and the members of classes, sorted."""
    return _names(FILE)


@functools.cache
def dropped() -> tuple[str, ...]:
    """Every public name that 1.15 had and tensorflow.compat.v1 has no more, as `names`."""
    return _names(DROPPED_FILE)


@functools.cache
def modules() -> tuple[str, ...]:
    both = (*_lines(FILE).items(), *_lines(DROPPED_FILE).items())
    return tuple(name for name, line in both if line.split("\t", 2)[1] == "module")


@functools.cache
def spellings() -> dict[str, list[str]]:
    """Every name by its canonical one."""
    found: dict[str, list[str]] = {}
    for name in (*names(), *dropped()):
        known = fact(name)
        assert known is not None
        found.setdefault(known.canonical, []).append(name)
    return found


def members(name: str) -> list[Fact]:
    """The public methods and properties of a class, by its canonical name."""
    prefix = name + "."
    found = [fact(key) for file in (FILE, DROPPED_FILE) for key in _lines(file) if key.startswith(prefix)]
    return [each for each in found if each is not None and each.kind in ("method", "property")]


class Unwritten:
    """A default that Python cannot write, known by its type alone."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature_of(text: str, value_of: Callable[[str], Any]) -> inspect.Signature:
    """A signature from its text.

    Args:
        value_of: gives what a dotted name (tf.float32) stands for.
    """
    import re

    plain = re.sub(r"(?<!')<(\w+)>(?!')", r"__unwritten__('<\1>')", text)
    tree = ast.parse(f"def f{plain}: pass").body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = tree.args
    kinds = inspect.Parameter
    empty = inspect.Parameter.empty

    def value(node: ast.expr | None) -> Any:
        if node is None:
            return empty
        if isinstance(node, ast.Attribute):
            return value_of(ast.unparse(node).removeprefix("tf."))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            inner: Any = ast.literal_eval(node.args[0])
            return float(inner) if node.func.id == "float" else Unwritten(inner)
        if isinstance(node, ast.Tuple):
            return tuple(value(item) for item in node.elts)
        if isinstance(node, ast.List):
            return [value(item) for item in node.elts]
        return ast.literal_eval(node)

    plain_args = [*arguments.posonlyargs, *arguments.args]
    padded = [None] * (len(plain_args) - len(arguments.defaults)) + list(arguments.defaults)
    found: list[inspect.Parameter] = []
    for position, (arg, default) in enumerate(zip(plain_args, padded, strict=True)):
        only = position < len(arguments.posonlyargs)
        kind = kinds.POSITIONAL_ONLY if only else kinds.POSITIONAL_OR_KEYWORD
        found.append(inspect.Parameter(arg.arg, kind, default=value(default)))
    if arguments.vararg:
        found.append(inspect.Parameter(arguments.vararg.arg, kinds.VAR_POSITIONAL))
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(inspect.Parameter(arg.arg, kinds.KEYWORD_ONLY, default=value(default)))
    if arguments.kwarg:
        found.append(inspect.Parameter(arguments.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(found)
