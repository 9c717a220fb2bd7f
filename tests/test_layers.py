"""Imports point one way, through the layers of ARCHITECTURE.md."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Lowest first. Render and tensorflow share a level and do not import each other.
LEVELS = [
    ["schemas"],
    ["toolkit.errors", "toolkit.forks", "toolkit.printable"],
    ["toolkit.target"],
    ["toolkit.graph"],
    ["toolkit.formats"],
    ["toolkit.policy"],
    ["toolkit.client"],
    ["toolkit.kernels"],
    ["toolkit.passes", "toolkit.limits"],
    ["toolkit.compiler"],
    ["toolkit.runtime"],
    ["toolkit.cluster"],
    ["toolkit.render", "toolkit.tensorflow"],
    ["commands"],
]
HEIGHT = {name: level for level, names in enumerate(LEVELS) for name in names}
NO_NUMPY = ("toolkit/target/", "toolkit/graph/", "toolkit/policy/", "toolkit/passes/", "toolkit/render/", "commands/")

#: what works on the columns of very large graphs, in these rooms: each is imported late as a whole
ON_COLUMNS = frozenset({
    "toolkit.passes.measuring.measure_table", "toolkit.passes.partitioning.crossing_table",
    "toolkit.passes.partitioning.partition_table", "toolkit.passes.placement.place_table",
    "toolkit.passes.placement.table_groups", "toolkit.passes.pruning.prune_table", "toolkit.render.absorb_table",
    "toolkit.render.bundle_table", "toolkit.render.fold_table", "toolkit.render.link_table",
    "toolkit.render.model_table",
})  # fmt: skip


def home(module: str) -> str | None:
    """The layer a module belongs to."""
    if module == "toolkit":
        return None
    return next((n for n in HEIGHT if module == n or module.startswith(n + ".")), None)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Statement(NamedTuple):
    """An import, with where it stands: at the top of its module, inside a function or class, or for types alone."""

    node: ast.Import | ast.ImportFrom
    inside: bool
    for_types: bool


@functools.cache
def statements(path: Path) -> tuple[Statement, ...]:
    """Every import in the file, those inside functions too."""

    def found(node: ast.AST, inside: bool, for_types: bool) -> Iterator[Statement]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield Statement(child, inside, for_types)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from found(child, True, for_types)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                yield from found(child, inside, True)
            elif not isinstance(child, ast.expr):
                yield from found(child, inside, for_types)

    return tuple(found(ast.parse(path.read_text()), False, False))


def modules_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    """What a statement may import: of `from a import b`, a and a.b."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, f"line {node.lineno}: relative imports hide the direction"
    return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]


def imports(path: Path) -> list[tuple[int, str]]:
    """Every import in the file with its line; TYPE_CHECKING ones count as well."""
    return [(each.node.lineno, module) for each in statements(path) for module in modules_of(each.node)]


#: rooms of the compiler, lowest first; what is beside them is the program that the importer reads, or the top
COMPILER_ROOMS = ("ir", "importer", "transforms", "backends")
COMPILER_TOP = ("pipeline", "plan", "explain", "stages", "segments")


def compiler_height(module: str) -> int | None:
    """How far up a module of the compiler is."""
    room = module.removeprefix("toolkit.compiler.").split(".")[0]
    if not module.startswith("toolkit.compiler."):
        return None
    if room in COMPILER_TOP:
        return len(COMPILER_ROOMS) + 1
    return COMPILER_ROOMS.index(room) + 1 if room in COMPILER_ROOMS else 0


FILES = sorted(
    path for top in ("toolkit", "commands", "schemas") for path in (ROOT / top).rglob("*.py") if "_pb2" not in path.name
)


@pytest.mark.parametrize("mine", sorted(HEIGHT))
def test_imports_point_down(mine: str) -> None:
    """Of toolkit/__init__.py, which names its lazy exports for the type checker, nothing is asked."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {mine} must not import {theirs}"
        for path in FILES
        if home(module_name(path)) == mine
        for line, module in imports(path)
        if (theirs := home(module)) not in (None, mine) and HEIGHT[theirs] >= HEIGHT[mine]
    ]
    assert not wrong, "\n".join(wrong)


def test_imports_point_down_inside_the_compiler() -> None:
    for path in FILES:
        mine = compiler_height(module_name(path))
        if mine is None:
            continue
        for line, module in imports(path):
            theirs = compiler_height(module)
            assert theirs is None or theirs <= mine, f"{path.relative_to(ROOT)}:{line}: {module} is above it"


#: rooms of one device, and who may import them: the table of passes, beside the rooms themselves
OF_THE_CPU = ("toolkit.compiler.backends.cpu", "toolkit.kernels.cpu")
KNOW_THE_CPU = ("toolkit.compiler.pipeline",)


def test_only_the_pipeline_imports_a_backend() -> None:
    """Another backend is a room and rows of the table; nothing else of the compiler or the runtime has to know it."""
    for path in FILES:
        mine = module_name(path)
        if not mine.startswith(("toolkit.compiler", "toolkit.runtime")) or mine.startswith(
            (*OF_THE_CPU, *KNOW_THE_CPU)
        ):
            continue
        for line, module in imports(path):
            assert not module.startswith(OF_THE_CPU), f"{path.relative_to(ROOT)}:{line}: {module} is the CPU's alone"


def test_nobody_imports_tensorflow() -> None:
    relative = {path: str(path.relative_to(ROOT)) for path in FILES}
    wrong = [
        relative[path]
        for path in FILES
        if not relative[path].startswith("schemas/export_")
        and any(module.split(".")[0] == "tensorflow" for _, module in imports(path))
    ]
    assert not wrong, f"these import TensorFlow: {', '.join(wrong)}"


@pytest.mark.parametrize("room", NO_NUMPY)
def test_numpy_is_imported_late(room: str) -> None:
    """Rooms that need no arrays do not import numpy at module level, nor what works on columns."""
    for path in FILES:
        relative = str(path.relative_to(ROOT))
        if relative.startswith(room) and module_name(path) not in ON_COLUMNS:
            at_once = [each.node for each in statements(path) if not each.inside and not each.for_types]
            modules = {module for node in at_once for module in modules_of(node)}
            assert not modules & ON_COLUMNS, f"{relative} imports columns when it is imported"
            top = {module.split(".")[0] for module in modules}
            assert not top & {"numpy", "ml_dtypes", "cupy", "grpc"}, f"{relative} imports arrays when it is imported"


def _own(node: ast.Import | ast.ImportFrom, modules: set[str]) -> set[str]:
    """The modules of ours that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & modules
    full = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {each if each in modules else node.module or "" for each in full.values()} & modules


@functools.cache
def _graph() -> tuple[dict[str, set[str]], list[tuple[str, str, int]]]:
    """What each module of ours imports when it is imported; who imports what later, in which line."""
    paths = {module_name(path): path for path in FILES}
    modules = set(paths)
    at_once: dict[str, set[str]] = {}
    late: list[tuple[str, str, int]] = []
    for name, path in paths.items():
        found = [(each, _own(each.node, modules)) for each in statements(path) if not each.for_types]
        at_once[name] = {target for each, own in found if not each.inside for target in own}
        late += [(name, target, each.node.lineno) for each, own in found if each.inside for target in own]
    return at_once, late


@functools.cache
def _reached(module: str) -> frozenset[str]:
    """All that is imported when a module is."""
    at_once, _ = _graph()
    reached, waiting = {module}, [module]
    while waiting:
        for following in at_once.get(waiting.pop(), set()) - reached:
            reached.add(following)
            waiting.append(following)
    return frozenset(reached)


@pytest.mark.parametrize("room", sorted(HEIGHT))
def test_no_import_waits_for_its_function_because_of_a_circle(room: str) -> None:
    """What is imported inside of a function is heavy or rarely needed: it does not import the module back."""
    for name, target, line in _graph()[1]:
        if home(name) == room or name.startswith(room + "."):
            assert name not in _reached(target), f"{name}:{line}: {target} imports it back"


#: who asks for what may not be there: symbols of libraries, what a thread has of its own, what PyYAML and stores of
#: other people raise
_MAY_LACK = {
    "toolkit/formats/settings/documents.py", "toolkit/formats/bundle/remote.py",
    "toolkit/kernels/random/libm.py", "toolkit/kernels/cpu/onednn/library.py", "toolkit/kernels/cpu/onednn/cached.py",
    "toolkit/kernels/cpu/native/compiler.py",
}  # fmt: skip


def test_nobody_catches_what_a_misspelt_name_raises() -> None:
    """`except AttributeError` around code of ours hides mistakes; what may be missing is asked for by its type."""
    texts = {path: path.read_text() for path in FILES}
    found = {
        str(path.relative_to(ROOT))
        for path, text in texts.items()
        if "AttributeError" in text  # few name it at all, and parsing takes its time
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler) and node.type is not None and "AttributeError" in ast.unparse(node.type)
    }
    assert found == _MAY_LACK
