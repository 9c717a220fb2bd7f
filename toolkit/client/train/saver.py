"""The nodes that save and restore variables (SaveV2, RestoreV2), and the SaverDef that names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from schemas import saver_pb2
from toolkit.client import array_ops, ops, variables
from toolkit.client.control_flow import with_dependencies
from toolkit.client.convert import constant
from toolkit.client.graph import Graph
from toolkit.client.grouping import group
from toolkit.client.operation import Operation
from toolkit.client.scopes import name_scope
from toolkit.client.tensor import Tensor
from toolkit.client.variables import BaseVariable
from toolkit.errors import UsageError
from toolkit.graph.device import DeviceSpec

_FOREVER_HOURS = 10000.0


@dataclass(frozen=True)
class _Entry:
    """One tensor of the checkpoint: a variable, or one part of a partitioned one."""

    name: str
    variable: BaseVariable

    @property
    def spec(self) -> str:
        return self.variable.slice_info.spec if self.variable.slice_info is not None else ""

    @property
    def device(self) -> str:
        return self.variable.device


class Saver:
    """Adds `save/...` nodes to the default graph.

    Args:
        var_list: variables, or a mapping from the name in the checkpoint to the variable; default: all global
            variables. Partitioned variables are stored whole, as slices.
        max_to_keep: how many checkpoints the session that saves keeps; 0 keeps all.
        keep_checkpoint_every_n_hours: besides those, one every so many hours stays.
        sharded: one file per device, joined by MergeV2Checkpoints.

    Raises:
        UsageError: there is nothing to save, or two variables have one name.
    """

    def __init__(
        self,
        var_list: Iterable[Any] | Mapping[str, Any] | None = None,
        max_to_keep: int = 5,
        keep_checkpoint_every_n_hours: float = _FOREVER_HOURS,
        name: str | None = None,
        sharded: bool = False,
        restore_sequentially: bool = False,
        filename: str = "model",
    ):
        entries = _entries(variables.global_variables() if var_list is None else var_list)
        if not entries:
            raise UsageError("there are no variables to save")
        self.entries = entries
        self.sharded = sharded
        self.sequential = restore_sequentially
        graph = entries[0].variable.graph
        with graph.as_default(), name_scope(name, "save", [e.variable.handle for e in entries]):
            default = constant(filename, name="filename/input")
            given = array_ops.placeholder_with_default(default, [], name="filename")
            prefix = array_ops.placeholder_with_default(given, [], name="Const")
            if sharded:
                saved = self._save_sharded(graph, prefix)
                restore = self._restore_sharded(graph, prefix)
            else:
                saved = self._save(graph, entries, prefix)
                restore = self._restore(entries, prefix, "restore_all", "/device:CPU:0")
        self.saver_def = saver_pb2.SaverDef(
            filename_tensor_name=prefix.name,
            save_tensor_name=saved.name,
            restore_op_name=restore.name,
            max_to_keep=max_to_keep,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=saver_pb2.SaverDef.V2,
        )

    # -- saving --------------------------------------------------------------------------------------------

    def _save(self, graph: Graph, entries: Sequence[_Entry], prefix: Tensor) -> Tensor:
        save = ops.save_v2(
            prefix,
            [e.name for e in entries],
            [e.spec for e in entries],
            [_savable(e.variable) for e in entries],
        )
        return with_dependencies([save], prefix)

    def _save_sharded(self, graph: Graph, prefix: Tensor) -> Tensor:
        """Each device writes its own shard next to the checkpoint; one node then joins the indexes."""
        by_device = self._by_device()
        with graph.device("/device:CPU:*"):
            # Object stores cannot rename cheaply: there the parts get a plain suffix instead of a folder.
            suffix = ops.select(
                ops.static_regex_full_match(prefix, pattern="^s3://.*"), constant(".part"), constant("_temp/part")
            )
            base = ops.string_join([prefix, suffix])
        count = constant(len(by_device), name="num_shards")
        shards: list[Tensor] = []
        saved: list[Tensor] = []
        last = ""
        for number, (device, entries) in enumerate(by_device.items()):
            last = _cpu_of(device)
            with graph.device(last):
                shard = ops.sharded_filename(base, number, count)
                shards.append(shard)
                saved.append(self._save(graph, entries, shard))
        with graph.device(last):
            with graph.control_dependencies(saved):
                parts = array_ops.stack(shards, name="MergeV2Checkpoints/checkpoint_prefixes")
                merge: Operation = ops.merge_v2_checkpoints(parts, prefix, delete_old_dirs=True)
            with graph.control_dependencies([merge, *saved]):
                return array_ops.identity(prefix)

    def _by_device(self) -> dict[str, list[_Entry]]:
        found: dict[str, list[_Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.device, []).append(entry)
        return dict(sorted(found.items()))

    # -- restoring -----------------------------------------------------------------------------------------

    def _restore(self, entries: Sequence[_Entry], prefix: Tensor, name: str, device: str) -> Operation:
        graph = entries[0].variable.graph
        with graph.device(device):
            values: list[Tensor] = ops.restore_v2(
                prefix, [e.name for e in entries], [e.spec for e in entries],
                dtypes=[e.variable.dtype.base for e in entries],
            )  # fmt: skip
        assigns: list[Any] = []
        for entry, value in zip(entries, values, strict=True):
            waits = assigns[-1:] if self.sequential else []
            with graph.control_dependencies(waits):
                assigns.append(assign_restored(graph, entry.variable, value))
        return group(assigns, name=name)

    def _restore_sharded(self, graph: Graph, prefix: Tensor) -> Operation:
        shards: list[Operation] = []
        for device, entries in self._by_device().items():
            with graph.device(device):
                shards.append(self._restore(entries, prefix, "restore_shard", _cpu_of(device)))
        return group(shards, name="restore_all")


def assign_restored(graph: Graph, variable: BaseVariable, value: Tensor) -> Any:
    """Give a variable what was read for it."""
    if variable.is_resource:
        with graph.device(variable.device or None):
            moved = array_ops.identity(value)
            return ops.assign_variable_op(variable.handle, moved)
    return ops.assign(variable.handle, value, validate_shape=variable.static_shape.is_fully_defined)


def _savable(variable: BaseVariable) -> Tensor:
    return variable.snapshot if variable.is_resource else variable.handle


def _cpu_of(device: str) -> str:
    spec = DeviceSpec.parse(device)
    return str(DeviceSpec(spec.job, spec.replica, spec.task, "CPU", 0))


def _entries(var_list: Iterable[Any] | Mapping[str, Any]) -> list[_Entry]:
    named: list[tuple[str, BaseVariable]] = []
    if isinstance(var_list, Mapping):
        by_name = cast("Mapping[str, Any]", var_list)
        for name, whole in by_name.items():
            members: list[Any] = getattr(whole, "parts", None) or [whole]
            named += [(name, part) for part in members]
    else:
        for variable in var_list:
            parts: list[Any] = getattr(variable, "parts", None) or [variable]
            for part in parts:
                named.append((part.slice_info.full_name if part.slice_info else part.op.name, part))
    entries: list[_Entry] = []
    taken: set[str] = set()
    for name, variable in sorted(named, key=lambda pair: pair[0]):
        if not isinstance(variable, BaseVariable):
            raise UsageError(f"{variable!r} cannot be saved; give variables")
        if variable.slice_info is None:
            if name in taken:
                raise UsageError(f"two variables would be saved as '{name}'")
            taken.add(name)
        entries.append(_Entry(name, variable))
    return entries
