"""The tests whose tables have cases of ops, for whoever runs these cases elsewhere."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent
#: folders of tests of GPUs, and of compiled loops
_OF_THEIR_OWN = frozenset({"cuda", "gpu", "native"})


def modules() -> dict[str, Path]:
    """Module to file of the tests in this folder and in those of its groups that hold ops against TensorFlow."""
    files = sorted(path.relative_to(_HERE) for path in _HERE.rglob("test_*.py"))
    return {
        ".".join(("tests.kernels", *path.with_suffix("").parts)): _HERE / path
        for path in files
        if path.parts[0] not in _OF_THEIR_OWN
    }
