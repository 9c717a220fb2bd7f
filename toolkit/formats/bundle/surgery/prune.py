"""Dropping tensors: optimizer slots, moving averages, what a graph does not need."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import InvalidArgumentError
from toolkit.formats.bundle.object_graph import KEY, ObjectGraph, find_object_graph
from toolkit.formats.bundle.source import TensorSource
from toolkit.formats.bundle.transfer import Item, copy_of, write_items
from toolkit.graph import dtypes

#: what TensorFlow 1's optimizers append to a variable's name; a number is added for the second slot and on
_SLOT_NAMES = (
    "Adam", "AdaMax", "Adagrad", "AdagradDA", "Adadelta", "Ftrl", "Momentum", "RMSProp", "ProximalAdagrad", "LARS",
    "LAMB", "Lamb", "LARSOptimizer", "LAMBOptimizer", "adam_m", "adam_v", "GradientDescent", "AdamW", "Nadam",
    "gradient_accumulator", "gradient_squared_accumulator", "linear",
)  # fmt: skip
_SLOT = re.compile(rf"(?:^|/)(?:{'|'.join(_SLOT_NAMES)})(?:_\d+)?$")
#: scalars that optimizers keep beside the variables
_POWERS = re.compile(r"(?:^|/)beta[12]_power(?:_\d+)?$")
_AVERAGE = re.compile(r"/ExponentialMovingAverage(?:_\d+)?$")
_STEP = re.compile(r"(?:^|/)(?:global_step|save_counter)(?:/\.ATTRIBUTES/VARIABLE_VALUE)?$")


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning kept and dropped, by name."""

    kept: list[str]
    dropped: list[str]
    kept_bytes: int
    dropped_bytes: int


def is_global_step(name: str) -> bool:
    """Whether a tensor counts steps or saves."""
    return _STEP.search(name) is not None


def is_moving_average(name: str) -> bool:
    """Whether a tensor is the moving average of a variable."""
    return _AVERAGE.search(name) is not None


def optimizer_state(source: TensorSource) -> set[str]:
    """The tensors of a checkpoint that belong to optimizers and to nothing else.

    In object-based checkpoints the object graph says so, see `ObjectGraph.optimizer_keys`. In name-based ones they
    are the variable's name and the slot's ("w/Adam", "w/Adam_1"), and count only when the variable itself is there.
    """
    objects = find_object_graph(source)
    if objects is not None:
        return objects.optimizer_keys() & set(source)
    found: set[str] = set()
    for name in source:
        match = _SLOT.search(name)
        if _POWERS.search(name) or (match and any(base in source for base in _bases(name[: match.start()]))):
            found.add(name)
    return found


def _bases(name: str) -> tuple[str, ...]:
    """The variables that a slot's scope can belong to: optimizers put their own name scope before it."""
    return (name, name.split("/", 1)[-1])


def prune(source: TensorSource, target: str | Path, keep: Callable[[str], bool], dry_run: bool = False) -> Pruned:
    """Copy the tensors that `keep` accepts.

    The object graph of an object-based checkpoint is kept, without what was dropped, so TensorFlow restores the rest.

    Raises:
        InvalidArgumentError: nothing would be left.
        GraphmillError: reading or writing failed.
    """
    kept = [name for name in source if name == KEY or keep(name)]
    dropped = [name for name in source if name != KEY and not keep(name)]
    if not [name for name in kept if name != KEY]:
        raise InvalidArgumentError("nothing would be left of the checkpoint", file=source.prefix)
    if not dry_run:
        write_items(target, select(source, kept, dropped))
    sizes = {name: entry.bytes for name, entry in source.entries.items()}
    return Pruned(kept, dropped, sum(sizes[name] for name in kept), sum(sizes[name] for name in dropped))


def select(source: TensorSource, kept: Collection[str], dropped: Collection[str]) -> list[Item]:
    """The kept tensors as items to write, with an object graph that fits."""
    items = [copy_of(source, name) for name in kept if name != KEY or not dropped]
    objects = find_object_graph(source) if dropped else None
    if objects is not None:
        items.append(graph_item(objects.without(set(dropped))))
    return items


def graph_item(objects: ObjectGraph) -> Item:
    """An object graph as a tensor to write."""
    import numpy as np

    return Item(KEY, dtypes.string, (), make=lambda: np.array(objects.serialize(), object))
