"""Every lock of a module is one that forked children have, free and with what it guards whole."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_LOCKS = frozenset({"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "allocate_lock"})
#: locks that need not be held over forks, and why
_REASONS = {
    ("toolkit/tensorflow/families/contrib/slim_data.py", "_running"): "is never waited for; who finds it taken is told",
}


def locks_of_modules(text: str) -> Iterator[str]:
    """The names under which a module, or a class, has a lock that is made when the module is imported."""

    def found(body: list[ast.stmt]) -> Iterator[str]:
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                calls = [node.func for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
                names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
                if names & _LOCKS:
                    yield ", ".join(ast.unparse(target) for target in targets)
            for field in ("body", "orelse", "finalbody"):
                yield from found(getattr(statement, field, []))

    yield from found(ast.parse(text).body)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("_lock = threading.Lock()", ["_lock"]),
        ("_lock: Any = RLock()", ["_lock"]),
        ("class A:\n    _lock = threading.RLock()", ["_lock"]),
        ("try:\n    made = {1: threading.Condition()}\nexcept E:\n    pass", ["made"]),
        ("_lock = held_over_forks()", []),
        ("def f():\n    lock = threading.Lock()", []),
        ("_LOCK = type(object())", []),
    ],
)
def test_what_is_found(text: str, names: list[str]) -> None:
    assert list(locks_of_modules(text)) == names


def test_locks_of_modules_are_held_over_forks() -> None:
    """`toolkit.forks` says what becomes of them."""
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for top in ("toolkit", "commands", "schemas")
        for path in (ROOT / top).rglob("*.py")
        if path != ROOT / "toolkit" / "forks.py"
        if (text := path.read_text()) and any(f"{lock}(" in text for lock in _LOCKS)
        for name in locks_of_modules(text)
    }
    wrong = sorted(f"{path}: {name} = held_over_forks(), or a reason here" for path, name in found - _REASONS.keys())
    assert not wrong, "\n".join(wrong)
    assert _REASONS.keys() <= found, "a reason for a lock that is not there"
