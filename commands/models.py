"""Reading and writing models in commands that go from graph to graph: the same options, the same words."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from commands import messages
from toolkit.errors import source_name

if TYPE_CHECKING:
    from toolkit.formats.models.model import Model


#: nodes above which the collector of garbage does not look at them again and again
_MANY = 50_000


def tag_set(text: str | None) -> list[str] | None:
    """The tags of `--tags A,B`; none at all for "", which is how modules of TensorFlow Hub were tagged."""
    return None if text is None else [tag for tag in text.split(",") if tag]


def read(command: str, source: str, tags: str | None, data: bytes | None = None) -> Model:
    """Read the model a command works on.

    Args:
        tags: the tag set as it was typed, "serve,gpu", or None.
        data: the content of `source`, where it has been read already.

    Raises:
        GraphmillError: it cannot be read; there is no such tag set.
    """
    from toolkit.formats.models.model import read_model
    from toolkit.graph.garbage import no_collection

    started = time.monotonic()
    with no_collection():  # until it is frozen
        model = read_model(source, tags=tag_set(tags), data=data)
        if sum(len(meta.graph) for meta in model.meta_graphs) > _MANY:
            gc.freeze()  # it lives as long as the command
    seconds = time.monotonic() - started
    counts = ", ".join(f"{len(meta.graph):,} nodes" for meta in model.meta_graphs)
    what = f"{model.kind.value}, {model.encoding.value}, {counts}"
    messages.detail(command, f"read {source_name(source)}: {what}, {seconds:.2f} s")
    return model


@contextmanager
def about(source: str) -> Generator[None]:
    """Name the file in errors about its graph."""
    from toolkit.errors import GraphError, UsageError

    try:
        yield
    except (GraphError, UsageError) as error:
        raise error.at(file=source) from None


def write(command: str, model: Model, out: str, as_kind: str | None, allow: list[str] | None = None) -> None:
    """Write the model a command made, and say what does not fit into one file.

    Args:
        allow: files and folders beside the model's own that links among its files may lead to (`--allow`).

    Raises:
        GraphmillError: it cannot be written.
    """

    from toolkit.formats.models.model import write_model

    started = time.monotonic()
    write_model(model, out, as_kind, check_links=link_check(allow))
    messages.detail(command, f"wrote {_shown(out)} in {time.monotonic() - started:.2f} s")
    warn_left_behind(command, model, out, as_kind)
    _warn_split(command, model, out, as_kind)
    _warn_assets(command, model, out, as_kind)


def _warn_assets(command: str, model: Model, out: str, as_kind: str | None) -> None:
    """Say which assets a SavedModel needs and was read without."""
    from toolkit.formats.models.model import ModelKind, target_kind
    from toolkit.formats.models.savedmodel import asset_path

    if model.folder is None or target_kind(model, out, as_kind)[0] is not ModelKind.SAVED_MODEL:
        return
    missing = [
        each.filename for each in model.meta.assets if not asset_path(Path(model.folder), each.filename).exists()
    ]
    if missing:
        messages.say(command, f"warning: the model has no such asset, which it needs: {', '.join(missing)}")


def _warn_split(command: str, model: Model, out: str, as_kind: str | None) -> None:
    """Say who reads a SavedModel that was split."""
    from toolkit.formats.inspection.detect import SPLIT_NAME
    from toolkit.formats.models.model import ModelKind, target_kind, writes_folder

    kind, _ = target_kind(model, out, as_kind)
    if kind is ModelKind.SAVED_MODEL and writes_folder(kind, out) and (Path(out) / SPLIT_NAME).is_file():
        messages.say(
            command,
            "warning: the SavedModel is split (.cpb): TensorFlow's C++ loader and Serving read it, Python's loaders "
            "do not",
        )


def link_check(allow: list[str] | None) -> Callable[[list[Path]], None]:
    """What raises where links among a model's files lead to what `--allow` does not name."""

    def check_links(links: list[Path]) -> None:
        from toolkit.policy.access import Access, Wish
        from toolkit.policy.outside import Reach
        from toolkit.policy.rules import Policy

        policy = Policy() if allow is None else Policy().allowing(*allow)
        wishes = [Wish(Reach.READ, str(link)) for link in links]
        Access(policy).judge(wishes, None, "a copy of this SavedModel", before=True)

    return check_links


def warn_left_behind(command: str, model: Model, out: str, as_kind: str | None = None) -> None:
    """Say what of a SavedModel does not fit into the file that was written."""
    left = left_behind(model, out, as_kind)
    if left:
        whose = source_name(str(model.folder))
        messages.say(
            command,
            f"warning: {' and '.join(left)} of {whose} stay behind, for {_shown(out)} holds the graph alone; as a "
            "SavedModel, in a folder, a .tar or a pipe, they come along",
        )


def left_behind(model: Model, out: str, as_kind: str | None = None) -> list[str]:
    """What belongs to the graph and lies in the SavedModel folder it came from, when the result is the graph alone."""
    from toolkit.formats.models.model import ModelKind, companions, target_kind, writes_archive, writes_folder

    if model.folder is None:
        return []
    kind, encoding = target_kind(model, out, as_kind)
    takes_all = writes_folder(kind, out) or (kind is ModelKind.SAVED_MODEL and writes_archive(model, out, encoding))
    return [] if takes_all else companions(model)


def _shown(out: str) -> str:
    return "standard output" if out == "-" else out
