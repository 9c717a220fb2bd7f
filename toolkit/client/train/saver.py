"""The nodes that save and restore variables (SaveV2, RestoreV2), and the SaverDef that names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schemas import saver_pb2
from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.train.saveables import SaveableObject, saveables
from toolkit.client.variables import by_collection
from toolkit.errors import SaverError
from toolkit.graph.device import DeviceSpec

_FOREVER_HOURS = 10000.0


class Saver:
    """Adds `save/...` nodes to the default graph.

    Args:
        var_list: variables and other things that can be saved, or a mapping from the name in the checkpoint to them;
            default: all global variables. Partitioned variables are stored whole, as slices.
        max_to_keep: how many checkpoints the session that saves keeps; 0 keeps all.
        keep_checkpoint_every_n_hours: besides those, one every so many hours stays.
        sharded: one file per device, joined by MergeV2Checkpoints.
        filename: what is saved to where the step is given no other name.
        reshape: what is read takes the shape of its variable, whatever shape it has in the checkpoint.
        version: the format, `saver_pb2.SaverDef.V2` or `V1`.

    Raises:
        SaverError: there is nothing to save; see also `saveables`.
        TypeError: something in the list cannot be saved.
    """

    def __init__(
        self,
        var_list: Iterable[Any] | Mapping[str, Any] | None = None,
        max_to_keep: int = 5,
        keep_checkpoint_every_n_hours: float = _FOREVER_HOURS,
        name: str | None = None,
        sharded: bool = False,
        filename: str = "model",
        reshape: bool = False,
        version: int = saver_pb2.SaverDef.V2,
    ):
        entries = saveables(by_collection.global_variables() if var_list is None else var_list)
        if not entries:
            raise SaverError("there are no variables to save")
        self.entries = entries
        self._reshape = reshape
        self._version = version
        owners = [_element(entry) for entry in entries]
        graph = owners[0].graph
        with graph.as_default(), name_scope(name, "save", owners):
            default = constant(filename, name="filename/input")
            given = array_ops.placeholder_with_default(default, [], name="filename")
            prefix = array_ops.placeholder_with_default(given, [], name="Const")
            if sharded:
                by_device = self._by_device()
                if version == saver_pb2.SaverDef.V1:
                    saved = self._save_files(graph, prefix, by_device)
                else:
                    saved = self._save_sharded(graph, prefix, by_device)
                restore = self._restore_sharded(graph, prefix, by_device)
            else:
                saved = self._save(entries, prefix)
                restore = self._restore(graph, entries, prefix, "restore_all", "/device:CPU:0")
        self.saver_def = saver_pb2.SaverDef(
            filename_tensor_name=prefix.name,
            save_tensor_name=saved.name,
            restore_op_name=restore.name,
            max_to_keep=max_to_keep,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=version,  # pyright: ignore[reportArgumentType]  # a number of the enum
        )

    # -- saving --------------------------------------------------------------------------------------------

    def _save(self, entries: Sequence[SaveableObject], prefix: Tensor) -> Tensor:
        specs = [spec for entry in entries for spec in entry.specs]
        names, slices = [spec.name for spec in specs], [spec.slice_spec for spec in specs]
        tensors = [spec.tensor for spec in specs]
        if self._version == saver_pb2.SaverDef.V1:
            save = ops.save_slices(prefix, names, slices, tensors, name="save")
        else:
            save = ops.save_v2(prefix, names, slices, tensors)
        return with_dependencies([save], prefix)

    def _save_files(self, graph: Graph, prefix: Tensor, by_device: Mapping[str, Sequence[SaveableObject]]) -> Tensor:
        """Each device writes a file of its own, of the V1 format; the pattern of their names is the checkpoint's."""
        count = constant(len(by_device), name="num_shards")
        saved: list[Tensor] = []
        for number, (device, entries) in enumerate(by_device.items()):
            with graph.device(device or None):
                saved.append(self._save(entries, ops.sharded_filename(prefix, number, count)))
        with graph.control_dependencies([each.op for each in saved]):
            return ops.sharded_filespec(prefix, count)

    def _save_sharded(self, graph: Graph, prefix: Tensor, by_device: Mapping[str, Sequence[SaveableObject]]) -> Tensor:
        """Each device writes its own shard next to the checkpoint; one node then joins the indexes."""
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
                saved.append(self._save(entries, shard))
        with graph.device(last):
            with graph.control_dependencies(saved):
                parts = array_ops.stack(shards, name="MergeV2Checkpoints/checkpoint_prefixes")
                merge: Operation = ops.merge_v2_checkpoints(parts, prefix, delete_old_dirs=True)
            with graph.control_dependencies([merge, *saved]):
                return array_ops.identity(prefix)

    def _by_device(self) -> dict[str, list[SaveableObject]]:
        found: dict[str, list[SaveableObject]] = {}
        for entry in self.entries:
            devices = {spec.device for spec in entry.specs}
            if len(devices) > 1:
                raise SaverError(
                    f"'{entry.name}' has tensors on several devices, {sorted(devices)}; save it in one file"
                )
            found.setdefault(devices.pop(), []).append(entry)
        return dict(sorted(found.items()))

    # -- restoring -----------------------------------------------------------------------------------------

    def _restore(
        self, graph: Graph, entries: Sequence[SaveableObject], prefix: Tensor, name: str, device: str
    ) -> Operation:
        specs = [spec for entry in entries for spec in entry.specs]
        with graph.device(device):
            values: list[Tensor] = ops.restore_v2(
                prefix, [spec.name for spec in specs], [spec.slice_spec for spec in specs],
                dtypes=[spec.dtype.base for spec in specs],
            )  # fmt: skip
        remaining = iter(values)
        assigns: list[Any] = []
        for entry in entries:
            shapes = [_shape_of(spec.tensor) for spec in entry.specs] if self._reshape else None
            assigns.append(entry.restore([next(remaining) for _ in entry.specs], shapes))
        return group(assigns, name=name)

    def _restore_sharded(
        self, graph: Graph, prefix: Tensor, by_device: Mapping[str, Sequence[SaveableObject]]
    ) -> Operation:
        shards: list[Operation] = []
        for device, entries in by_device.items():
            with graph.device(device):
                shards.append(self._restore(graph, entries, prefix, "restore_shard", _cpu_of(device)))
        return group(shards, name="restore_all")


def _element(entry: SaveableObject) -> Any:
    """What of a saveable object is in the graph."""
    owner = getattr(entry.op, "handle", getattr(entry.op, "resource_handle", entry.op))
    return owner if hasattr(owner, "graph") else entry.specs[0].tensor


def _shape_of(tensor: Tensor) -> Any:
    shape = tensor.static_shape
    return shape.as_list() if shape.is_fully_defined else array_ops.shape(tensor)


def _cpu_of(device: str) -> str:
    spec = DeviceSpec.parse(device)
    return str(DeviceSpec(spec.job, spec.replica, spec.task, "CPU", 0))
