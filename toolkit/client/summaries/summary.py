"""Summaries: tensors that hold serialized Summary messages for TensorBoard."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.graph.metagraph import GraphKeys

_BAD = re.compile(r"[^-/\w.]")


def clean(name: str) -> str:
    """A name that may be a node's: other characters become '_', leading slashes go."""
    return _BAD.sub("_", name).lstrip("/")


@contextmanager
def tagged(name: str, family: str | None, values: Sequence[Any]) -> Generator[tuple[str, str]]:
    """The tag of a summary and the scope of its nodes; a family stands before both, and TensorBoard groups by it."""
    base = clean(name) if family is None else f"{clean(family)}/{clean(name)}"
    with name_scope(base, None, values) as scope:
        inner = scope.rstrip("/")
        yield (inner if family is None else f"{clean(family)}/{inner}"), scope


def _collect(summary: Tensor, collections: Iterable[str] | None) -> Tensor:
    names = [GraphKeys.SUMMARIES] if collections is None else list(collections)
    get_default_graph().add_to_collections(names, summary)
    return summary


def scalar(
    name: str, tensor: TensorLike, collections: Iterable[str] | None = None, family: str | None = None
) -> Tensor:
    """One number; the tag is the name with its scope."""
    with tagged(name, family, [tensor]) as (tag, scope):
        return _collect(ops.scalar_summary(tag, tensor, name=scope), collections)


def histogram(
    name: str, values: TensorLike, collections: Iterable[str] | None = None, family: str | None = None
) -> Tensor:
    """The distribution of the values."""
    with tagged(name, family, [values]) as (tag, scope):
        return _collect(ops.histogram_summary(tag, values, name=scope), collections)


def image(
    name: str,
    tensor: TensorLike,
    max_outputs: int = 3,
    collections: Iterable[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """The first images of a batch [batch, height, width, 1, 3 or 4]."""
    with tagged(name, family, [tensor]) as (tag, scope):
        return _collect(ops.image_summary(tag, tensor, max_images=max_outputs, name=scope), collections)


def audio(
    name: str, tensor: TensorLike, sample_rate: TensorLike, max_outputs: int = 3,
    collections: Iterable[str] | None = None, family: str | None = None,
) -> Tensor:  # fmt: skip
    """Clips [batch, frames, channels] or [batch, frames]."""
    with tagged(name, family, [tensor]) as (tag, scope):
        summary = ops.audio_summary_v2(tag, tensor, sample_rate, max_outputs=max_outputs, name=scope)
        return _collect(summary, collections)


def text(name: str, tensor: TensorLike, collections: Iterable[str] | None = None) -> Tensor:
    """Strings, shown as text (a TensorSummary with the text plugin's metadata)."""
    from schemas import summary_pb2

    metadata = summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"), data_class=summary_pb2.DATA_CLASS_TENSOR
    )
    with tagged(name, None, [tensor]) as (tag, scope):
        summary = ops.tensor_summary_v2(tag, tensor, metadata.SerializeToString(), name=scope)
        return _collect(summary, collections)


def tensor_summary(
    name: str, tensor: TensorLike, metadata: Any = None, collections: Iterable[str] | None = None,
    display_name: str | None = None, description: str | None = None, family: str | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of any type and shape, for a plugin of TensorBoard that knows what to do with it.

    Args:
        metadata: a SummaryMetadata that says which plugin; a copy gets what follows.
        display_name: what is shown in place of the tag.
        description: what is shown beside it, in Markdown.
    """
    from schemas import summary_pb2

    full = summary_pb2.SummaryMetadata()
    if metadata is not None:
        full.CopyFrom(metadata)
    if display_name is not None:
        full.display_name = display_name
    if description is not None:
        full.summary_description = description
    with tagged(name, family, [tensor]) as (tag, scope):
        made = ops.tensor_summary_v2(tag, tensor, full.SerializeToString(), name=scope)
        return _collect(made, collections)


def merge(inputs: Sequence[Tensor], name: str | None = None) -> Tensor:
    """Several summaries as one."""
    with name_scope(name, "Merge", list(inputs)) as scope:
        return ops.merge_summary(list(inputs), name=scope)


def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None) -> Tensor | None:
    """All summaries of the graph as one, or None when there are none."""
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name="Merge/MergeSummary") if found else None
