"""Reading a spec from a file."""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

from toolkit.client.context import get_default_graph
from toolkit.client.export import to_meta_graph
from toolkit.client.graph import Graph
from toolkit.client.spec.builder import SpecBuilder
from toolkit.errors import FormatError, GraphmillError, source_name
from toolkit.formats import io
from toolkit.formats.tree import SpecError, parse
from toolkit.graph.metagraph import MetaGraph


def build_spec(source: str | Path) -> MetaGraph:
    """The MetaGraph that a spec describes.

    Args:
        source: a .py file, or a YAML file of any name; "-" is YAML on standard input.

    Raises:
        SpecError: a mistake in the spec, with file and line.
        GraphmillError: the file cannot be read, or is no text.
    """
    name = str(source)
    if name.endswith(".py"):
        return _from_python(Path(name))
    try:
        text = io.read_bytes(name).decode()
    except UnicodeDecodeError:
        raise FormatError("not a spec: it is not UTF-8 text; build takes a YAML or Python file", file=name) from None
    return build_text(text, source_name(name))


def build_text(text: str, file: str = "spec") -> MetaGraph:
    """The MetaGraph of a YAML spec given as text; `file` is what messages call it.

    Raises:
        SpecError: a mistake in the spec.
    """
    return SpecBuilder(parse(text, file)).build()


def _from_python(path: Path) -> MetaGraph:
    if not path.is_file():
        io.read_bytes(str(path))  # raises with the message that all commands give
    graph = Graph()
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # a spec may import modules beside it
    try:
        with graph.as_default():
            module = runpy.run_path(str(path), run_name="graphmill_spec")
            made: Any = module["build"]() if callable(module.get("build")) else module.get("graph")
            if made is None:
                made = get_default_graph()
    except GraphmillError as error:
        line = _line_in(path, error)
        raise SpecError(str(error), file=f"{path}:{line}" if line else str(path)) from None
    except SyntaxError as error:
        raise SpecError(f"not valid Python: {error.msg}", file=f"{path}:{error.lineno or 1}") from None
    except Exception as error:
        line = _line_in(path, error)
        raise SpecError(
            f"the spec failed: {type(error).__name__}: {error}", file=f"{path}:{line}" if line else str(path)
        ) from error
    finally:
        sys.path.remove(folder)
    return _as_meta_graph(made, path)


def _line_in(path: Path, error: BaseException) -> int | None:
    """The innermost line of the spec that the error passed through."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    return lines[-1] if lines else None


def _as_meta_graph(made: Any, path: Path) -> MetaGraph:
    if isinstance(made, MetaGraph):
        meta = made
    elif isinstance(made, Graph):
        savers = made.get_collection("savers")
        meta = to_meta_graph(made, saver_def=savers[0] if savers else None)
    else:
        raise SpecError(
            f"build() returned {type(made).__name__}; expected a MetaGraph (to_meta_graph()), a Graph, or nothing",
            file=str(path),
        )
    if not len(meta.graph):
        raise SpecError("the spec made no nodes; define build(), or make nodes in the default graph", file=str(path))
    return meta
