"""Variables whose initial values come from a checkpoint (init_from_checkpoint, warm_start)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.scopes import device
from toolkit.client.train.saveables import assign_restored
from toolkit.client.variables.store import get_variable_scope
from toolkit.formats import bundle
from toolkit.formats.bundle.locate import find_prefix
from toolkit.graph.metagraph import GraphKeys

#: the node that reads a tensor
_NODE = "checkpoint_initializer"


def initialize_from_checkpoint(checkpoint: str, assignments: Mapping[str, Any]) -> None:
    """Let variables be initialised with what a checkpoint holds.

    Args:
        checkpoint: its prefix, or a folder, whose latest one is taken.
        assignments: a name in the checkpoint to a variable, its parts or its name; or a scope in the checkpoint
            ("scope/", "/" for all) to a scope here, of which every variable that the checkpoint has is taken.

    Raises:
        ValueError: the checkpoint has no such tensor, it has another shape, or there is no such variable.
    """
    prefix = find_prefix(checkpoint)
    with bundle.open_checkpoint(prefix) as reader:
        for name, target in assignments.items():
            if not name.endswith("/") or not isinstance(target, str):
                variable = _variable(target) if isinstance(target, str) else target
                _assign(reader, prefix, name, variable)
                continue
            inside = target.removesuffix("/") + "/" if target not in ("", "/") else ""
            scope = name.removeprefix("/") if name != "/" else ""
            for variable_name, variable in _by_full_name().items():
                if not variable_name.startswith(inside):
                    continue
                wanted = scope + variable_name.removeprefix(inside)
                if wanted not in reader:
                    raise ValueError(f"{prefix}: there is no tensor '{wanted}' for the variable '{variable_name}'")
                _assign(reader, prefix, wanted, variable)


def warm_start(
    checkpoint: str,
    vars_to_warm_start: Any = ".*",
    vocabularies: Mapping[str, Any] | None = None,
    previous_names: Mapping[str, str] | None = None,
) -> None:
    """Let variables be initialised with what an earlier model learnt.

    Args:
        vars_to_warm_start: a regular expression for the names of trainable variables; a list of them, or of names,
            for any variables; variables; or None for those alone that the mappings name.
        vocabularies: a variable's name to its new and old vocabulary (`VocabInfo`): rows follow the words.
        previous_names: a variable's name to its name in the checkpoint.

    Raises:
        ValueError: no variable is meant, or one that a mapping names.
    """
    vocabularies, previous_names = dict(vocabularies or {}), dict(previous_names or {})
    prefix = find_prefix(checkpoint)
    chosen = _chosen(vars_to_warm_start)
    with bundle.open_checkpoint(prefix) as reader:
        for name, variable in chosen.items():
            source = previous_names.pop(name, name)
            vocabulary = vocabularies.pop(name, None)
            if vocabulary is not None:
                _assign_rows(reader, prefix, source, variable, vocabulary)
            else:
                _assign(reader, prefix, source, variable)
    left = sorted({*vocabularies, *previous_names})
    if left and vars_to_warm_start is not None:
        raise ValueError(f"no variable that is started from {prefix} is called {', '.join(left)}")


def _chosen(wanted: Any) -> dict[str, Any]:
    graph = get_default_graph()
    if wanted is None:
        return {}
    if isinstance(wanted, str):
        return _matching([wanted], graph.get_collection(GraphKeys.TRAINABLE_VARIABLES))
    items: list[Any] = list(cast("list[Any]", wanted)) if isinstance(wanted, list | tuple) else [wanted]
    texts = [item for item in items if isinstance(item, str)]
    found = _matching(texts, graph.get_collection(GraphKeys.GLOBAL_VARIABLES)) if texts else {}
    return found | _grouped([item for item in items if not isinstance(item, str)])


def _matching(patterns: Iterable[str], variables: list[Any]) -> dict[str, Any]:
    kept = [v for v in variables if any(re.match(pattern, v.op.name) for pattern in patterns)]
    if not kept:
        raise ValueError(f"no variable's name matches {', '.join(patterns)}")
    return _grouped(kept)


def _grouped(variables: Iterable[Any]) -> dict[str, Any]:
    """Variables by their names in checkpoints; parts of one variable as a list."""
    found: dict[str, Any] = {}
    for variable in variables:
        for part in getattr(variable, "parts", [variable]):
            if part.slice_info is None:
                found[part.op.name] = part
            else:
                found.setdefault(part.slice_info.full_name, []).append(part)
    return found


def _by_full_name() -> dict[str, Any]:
    return _grouped(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES))


def _variable(name: str) -> Any:
    known = _by_full_name()
    scope = get_variable_scope().name
    for full in (f"{scope}/{name}" if scope else name, name):
        if full in known:
            return known[full]
    raise ValueError(f"there is no variable '{name}'")


def _parts(variable: Any) -> list[Any]:
    if isinstance(variable, list | tuple):
        return [part for each in cast("list[Any]", variable) for part in _parts(each)]
    return list(getattr(variable, "parts", [variable]))


def _assign(reader: Any, prefix: str, name: str, variable: Any) -> None:
    parts = _parts(variable)
    if name not in reader:
        raise ValueError(f"{prefix}: there is no tensor '{name}' for the variable '{parts[0].op.name}'")
    held = list(reader.entry(name).shape.as_list())
    full = _full_shape(parts)
    if held != full:
        raise ValueError(f"{prefix}: '{name}' has shape {held}, the variable '{parts[0].op.name}' {full}")
    for part in parts:
        info = part.slice_info
        dtype = part.dtype.base
        spec = info.spec if info is not None else ""
        with device(part.device or None), device("/cpu:0"):
            (value,) = cast("list[Any]", ops.restore_v2(prefix, [name], [spec], dtypes=[dtype], name=_NODE))
            value.set_shape(part.static_shape)
            _set_initializer(part, value)


def _assign_rows(reader: Any, prefix: str, name: str, variable: Any, vocabulary: Any) -> None:
    """Rows of an embedding that follow the words of a vocabulary; words that are new keep their initial values."""
    parts = _parts(variable)
    if name not in reader:
        raise ValueError(f"{prefix}: there is no tensor '{name}' for the variable '{parts[0].op.name}'")
    old_words = _words(vocabulary.old_vocab, vocabulary.old_vocab_size)
    new_words = _words(vocabulary.new_vocab, vocabulary.new_vocab_size)
    old: np.ndarray[Any, Any] = reader.read(name)
    row_of = {word: row for row, word in enumerate(old_words)}
    axis = getattr(vocabulary, "axis", 0)
    start = 0
    for part in parts:
        sizes = [int(size or 0) for size in part.static_shape]
        offset = part.slice_info.offset[axis] if part.slice_info is not None else start
        table = np.zeros(sizes, old.dtype)
        is_old = np.zeros(sizes[axis], bool)
        for row in range(sizes[axis]):
            word = new_words[offset + row] if offset + row < len(new_words) else None
            if word is not None and word in row_of:
                is_old[row] = True
                if axis == 0:
                    table[row] = old[row_of[word]]
                else:
                    table[:, row] = old[:, row_of[word]]
        shape = [1] * len(sizes)
        shape[axis] = sizes[axis]
        fresh = vocabulary.backup_initializer
        initial: Any = part.initial_value if fresh is None else fresh(sizes, part.dtype.base)
        mask = np.broadcast_to(is_old.reshape(shape), sizes)
        _set_initializer(part, array_ops.where(mask, table, initial))


def _words(path: str, size: int | None) -> list[bytes]:
    with open(path, "rb") as file:  # noqa: PTH123  # the name may be a path of any kind
        words = [line.rstrip(b"\r\n") for line in file]
    return words if size is None or size < 0 else words[:size]


def _full_shape(parts: list[Any]) -> list[int]:
    first = parts[0]
    if first.slice_info is not None:
        return list(first.slice_info.full_shape)
    return [int(size or 0) for size in first.static_shape]


def _set_initializer(variable: Any, value: Any) -> None:
    """Let the variable's initializer assign this value."""
    op = assign_restored(variable, value)
    variable.initializer = getattr(op, "op", op)
    variable.initial_value = variable.safe_initial_value = value
