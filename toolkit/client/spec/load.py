"""Reading a spec from a file."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.graph import Graph
from toolkit.client.metagraphs.export import to_meta_graph
from toolkit.client.spec.document import build_document
from toolkit.errors import FormatError, GraphmillError, UsageError, source_name
from toolkit.formats import io
from toolkit.formats.settings.tree import SpecError, parse
from toolkit.graph.metagraph import MetaGraph


def build_spec(
    source: str | Path, parameters: Mapping[str, str] | None = None, include_folders: Sequence[str | Path] = ()
) -> MetaGraph:
    """The MetaGraph that a spec describes.

    Args:
        source: a .py file, or a YAML file of any name; "-" is YAML on standard input.
        parameters: values of the spec's parameters, as text.
        include_folders: folders of files that it may include, besides its own.

    Raises:
        MultipleMistakesError: what is wrong with the spec, each with its place; `SpecError`, where it is one thing.
        GraphmillError: the file cannot be read, or is no text; a parameter that the spec does not have.
    """
    name = str(source)
    if name.endswith(".py"):
        if parameters:
            raise UsageError(f"--set {next(iter(parameters))}: a Python file has no parameters")
        return _from_python(Path(name))
    try:
        text = io.read_bytes(name).decode()
    except UnicodeDecodeError:
        raise FormatError("not a spec: it is not UTF-8 text; build takes a YAML or Python file", file=name) from None
    folder = Path() if name == io.STDIO else Path(name).parent
    return build_text(text, source_name(name), folder, parameters, include_folders)


def build_text(
    text: str,
    file: str = "spec",
    folder: Path = Path(),
    parameters: Mapping[str, str] | None = None,
    include_folders: Sequence[str | Path] = (),
) -> MetaGraph:
    """The MetaGraph of a YAML spec given as text.

    Args:
        file: what messages call it.
        folder: what it includes lies there; for the rest see `build_spec`.

    Raises:
        MultipleMistakesError, SpecError, UsageError: see `build_spec`.
    """
    folders = tuple(Path(each) for each in include_folders)
    for each in folders:
        if not each.is_dir():
            raise UsageError(f"--include-dir {each}: there is no such folder")
    return build_document(parse(text, file, columns=True), folder, parameters, folders)


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
