"""Whether what a GPU's tests need is here, as pyproject.toml asks for it: `python -m tests.gpu.packages`."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
#: what runs the tests
RUNNERS = ("pytest", "pytest-xdist")
#: without these a few cases or rows are left out
OPTIONAL = ("google-re2", "graphviz-pure", "pytest-random-order", "torch", "jax", "tensorflow")
_ORDER = re.compile(r"(>=|<|==)\s*([0-9.]+)")


def version(name: str) -> str:
    """Of a package; "" where it is not there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def asked(extras: tuple[str, ...] = ("cuda", "native")) -> Iterator[str]:
    """What graphmill depends on, and some of its extras, as pyproject.toml has it."""
    project: dict[str, Any] = tomllib.loads(_PROJECT.read_text())["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    yield from (each for group in groups for each in group if not each.startswith("graphmill"))


def fits(there: str, bounds: str) -> bool:
    """Whether a version is within bounds as ">=0.26,<0.29"."""
    own = _numbers(there)
    for order, number in _ORDER.findall(bounds):
        other = _numbers(number)
        if not {">=": own >= other, "<": own < other, "==": own[: len(other)] == other}[order]:
            return False
    return True


def _numbers(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", text.partition("+")[0])]


def problems(requirements: Iterator[str]) -> Iterator[str]:
    """What is missing or of another version, in words."""
    for requirement in requirements:
        name, bounds = re.match(r"([\w.-]+)([^;]*)", requirement).groups()  # type: ignore[union-attr]
        there = version(name)
        if name not in OPTIONAL and not (there and fits(there, bounds)):
            yield f"{name} {there or 'is missing'} ({bounds.strip() or 'any'} is needed)"


def main() -> int:
    """Print what there is; returns 1 if something that is needed lacks."""
    requirements = [*asked(), *RUNNERS]
    names = [re.split(r"[^\w.-]", each)[0] for each in requirements]
    print(f"Python {sys.version.split()[0]}")
    print(", ".join(f"{name} {version(name)}" for name in dict.fromkeys((*names, *OPTIONAL)) if version(name)))
    without = [name for name in OPTIONAL if not version(name)]
    if without:
        print(f"without {', '.join(without)}")
    found = list(problems(iter(requirements)))
    print("; ".join(found) if found else "all that is needed is here")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
