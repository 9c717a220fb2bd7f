"""Imports point one way, through the layers of ARCHITECTURE.md."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Lowest first. Render, cluster and tensorflow share a level and do not import each other.
LEVELS = [
    ["schemas"],
    ["toolkit.errors", "toolkit.printable"],
    ["toolkit.target"],
    ["toolkit.graph"],
    ["toolkit.formats"],
    ["toolkit.policy"],
    ["toolkit.client"],
    ["toolkit.kernels"],
    ["toolkit.passes", "toolkit.limits"],
    ["toolkit.compiler"],
    ["toolkit.runtime"],
    ["toolkit.render", "toolkit.cluster", "toolkit.tensorflow"],
    ["commands"],
]
HEIGHT = {name: level for level, names in enumerate(LEVELS) for name in names}
NO_NUMPY = ("toolkit/target/", "toolkit/graph/", "toolkit/policy/", "toolkit/passes/", "toolkit/render/", "commands/")


def home(module: str) -> str | None:
    """The layer a module belongs to."""
    if module == "toolkit":
        return None
    return next((n for n in HEIGHT if module == n or module.startswith(n + ".")), None)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST) -> list[tuple[int, str]]:
    """Every import in the file, those inside functions too; TYPE_CHECKING ones count as well."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the direction"
            found.append((node.lineno, node.module or ""))
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


#: rooms of the compiler, lowest first; what is beside them is the program that the importer reads, or the top
COMPILER_ROOMS = ("ir", "importer", "transforms", "backends")
COMPILER_TOP = ("pipeline", "plan", "explain", "stages")


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


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    mine = home(module_name(path))
    if mine is None:  # toolkit/__init__.py names its lazy exports for the type checker
        return
    for line, module in imports(ast.parse(path.read_text())):
        theirs = home(module)
        if theirs is None or theirs == mine:
            continue
        assert HEIGHT[theirs] < HEIGHT[mine], f"{path.relative_to(ROOT)}:{line}: {mine} must not import {theirs}"


def test_imports_point_down_inside_the_compiler() -> None:
    for path in FILES:
        mine = compiler_height(module_name(path))
        if mine is None:
            continue
        for line, module in imports(ast.parse(path.read_text())):
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
        for line, module in imports(ast.parse(path.read_text())):
            assert not module.startswith(OF_THE_CPU), f"{path.relative_to(ROOT)}:{line}: {module} is the CPU's alone"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_numpy_is_imported_late(path: Path) -> None:
    """Rooms that need no arrays do not import numpy, or TensorFlow anywhere, at module level."""
    relative = str(path.relative_to(ROOT))
    tree = ast.parse(path.read_text())
    everything = {module.split(".")[0] for _, module in imports(tree)}
    if not relative.startswith("schemas/export_"):
        assert "tensorflow" not in everything, f"{relative} imports TensorFlow"
    if relative.startswith(NO_NUMPY):
        top = {module.split(".")[0] for node in tree.body for _, module in imports(node) if not is_type_checking(node)}
        assert not top & {"numpy", "ml_dtypes", "cupy", "grpc"}, f"{relative} imports arrays when it is imported"


def is_type_checking(node: ast.stmt) -> bool:
    return (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)) or isinstance(
        node, ast.FunctionDef | ast.ClassDef
    )


def _own(node: ast.Import | ast.ImportFrom, modules: set[str]) -> set[str]:
    """The modules of ours that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & modules
    full = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {each if each in modules else node.module or "" for each in full.values()} & modules


@pytest.mark.parametrize("room", sorted(HEIGHT))
def test_no_import_waits_for_its_function_because_of_a_circle(room: str) -> None:
    """What is imported inside of a function is heavy or rarely needed: it does not import the module back."""
    modules = {module_name(path): path for path in FILES}
    at_once: dict[str, set[str]] = {}
    late: list[tuple[str, str, int]] = []
    for name, path in modules.items():
        tree = ast.parse(path.read_text())
        statements = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        hidden = {inner for node in ast.walk(tree) if isinstance(node, ast.stmt) and is_type_checking(node)
                  for inner in ast.walk(node)}  # fmt: skip
        typing = {inner for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node)
                  for inner in ast.walk(node)}  # fmt: skip
        own = {node: _own(node, set(modules)) for node in statements}
        at_once[name] = {target for node in statements if node not in hidden for target in own[node]}
        inside = [node for node in statements if node in hidden and node not in typing]
        late += [(name, target, node.lineno) for node in inside for target in own[node]]
    for name, target, line in late:
        if home(name) == room or name.startswith(room + "."):
            reached, waiting = {target}, [target]
            while waiting:
                for following in at_once.get(waiting.pop(), set()) - reached:
                    reached.add(following)
                    waiting.append(following)
            assert name not in reached, f"{modules[name].relative_to(ROOT)}:{line}: {target} imports it back"


#: who asks for what may not be there: symbols of libraries, what a thread has of its own, what PyYAML and stores of
#: other people raise
_MAY_LACK = {
    "toolkit/formats/documents.py", "toolkit/formats/bundle/remote.py",
    "toolkit/kernels/random/libm.py", "toolkit/kernels/cpu/onednn/library.py", "toolkit/kernels/cpu/onednn/cached.py",
    "toolkit/kernels/cpu/native/compiler.py",
}  # fmt: skip


def test_nobody_catches_what_a_misspelt_name_raises() -> None:
    """`except AttributeError` around code of ours hides mistakes; what may be missing is asked for by its type."""
    found = {
        str(path.relative_to(ROOT))
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and node.type is not None and "AttributeError" in ast.unparse(node.type)
    }
    assert found == _MAY_LACK
