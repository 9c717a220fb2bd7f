"""Writing and reading checkpoints from inside the graph."""

from __future__ import annotations

import numpy as np

from toolkit.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from toolkit.formats import bundle
from toolkit.formats.bundle.remote import is_remote
from toolkit.formats.bundle.v1 import write_v1
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import integer, require, require_vector, text, texts
from toolkit.kernels.cpu.files.file_io import matching
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array
from toolkit.policy.access import Wish
from toolkit.policy.outside import Reach


def _string(text: str) -> Array:
    out = np.empty((), object)
    out[()] = text.encode()
    return out


@kernel("SaveV2", kind=Kind.STATEFUL)
def save_v2(op: KernelNode) -> Compute:
    dtypes, files = op.attr("dtypes"), op.files

    def compute(step: StepContext, prefix: Array, names: Array, slices: Array, *tensors: Array) -> None:
        listed = texts(names, "a name")
        if len(listed) != len(tensors) or np.size(slices) != len(tensors):
            raise InvalidArgumentError(
                f"there are {len(listed)} names and {np.size(slices)} slices for {len(tensors)} tensors"
            )
        arrays = [np.asarray(t) for t in tensors]
        target = files.checkpoint(Reach.WRITE, text(prefix, "prefix"))
        bundle.save(target, zip(listed, arrays, strict=True), dtypes, texts(slices, "a name"))

    return compute


@kernel("RestoreV2", kind=Kind.STATEFUL)
def restore_v2(op: KernelNode) -> Compute:
    dtypes, files = op.attr("dtypes"), op.files

    def compute(step: StepContext, prefix: Array, names: Array, slices: Array) -> list[Array]:
        source = files.checkpoint(Reach.READ, text(prefix, "prefix"))
        return bundle.restore(source, texts(names, "a name"), texts(slices, "a name"), dtypes)

    return compute


@kernel("MergeV2Checkpoints", kind=Kind.STATEFUL)
def merge_v2_checkpoints(op: KernelNode) -> Compute:
    delete_old, allow_missing = op.attr("delete_old_dirs"), op.attr("allow_missing_files")
    files = op.files

    def compute(step: StepContext, prefixes: Array, destination: Array) -> None:
        # the shares' data files are renamed, so they are gone afterwards whatever `delete_old` says
        shares = [Wish(Reach.DELETE, prefix, is_prefix=True) for prefix in texts(prefixes, "a name")]
        wanted = Wish(Reach.WRITE, text(destination, "destination_prefix"), is_prefix=True)
        *shares, target = files.checkpoints(*shares, wanted)
        bundle.merge(shares, target, delete_old, allow_missing)

    return compute


@kernel("ShardedFilename")
def sharded_filename(op: KernelNode) -> Compute:
    def compute(basename: Array, shard: Array, num_shards: Array) -> Array:
        return _string(
            f"{text(basename, 'basename')}-{integer(shard, 'shard'):05d}-of-{integer(num_shards, 'num_shards'):05d}"
        )

    return compute


@kernel("ShardedFilespec")
def sharded_filespec(op: KernelNode) -> Compute:
    def compute(basename: Array, num_shards: Array) -> Array:
        return _string(f"{text(basename, 'basename')}-?????-of-{integer(num_shards, 'num_shards'):05d}")

    return compute


@kernel("Restore", "RestoreSlice", kind=Kind.STATEFUL)
def restore_v1(op: KernelNode) -> Compute:
    """Reads what matches the pattern, V1 or V2; a pattern of shards matches several files."""
    dtype, files = op.attr("dt"), op.files

    def compute(step: StepContext, pattern: Array, name: Array, *shape_and_slice: Array) -> Array:
        spec = [text(part, "shape_and_slice") for part in shape_and_slice] or [""]
        wanted, tensor = text(pattern, "file_pattern"), text(name, "tensor_name")
        found = [] if is_remote(wanted) else matching(files, wanted)
        missing: NotFoundError | None = None
        for prefix in [wanted, *sorted(found)]:
            try:
                return bundle.restore(files.checkpoint(Reach.READ, prefix), [tensor], spec, [dtype])[0]
            except NotFoundError as error:
                missing = missing or error
        assert missing is not None
        raise missing

    return compute


@kernel("Save", "SaveSlices", kind=Kind.STATEFUL)
def save_v1(op: KernelNode) -> Compute:
    """Writes the V1 format: one table file of that very name."""
    dtypes, files = op.attr("T"), op.files
    has_slices = op.op == "SaveSlices"

    def compute(step: StepContext, filename: Array, names: Array, *rest: Array) -> None:
        if has_slices and any(texts(rest[0], "a name")):
            raise UnimplementedError("writing slices in the V1 format is not supported; use SaveV2")
        tensors = rest[1:] if has_slices else rest
        require_vector(names, "tensor_names")
        require(len(names) == len(tensors), f"there are {len(names)} tensor names for {len(tensors)} tensors")
        entries = zip(texts(names, "a name"), tensors, dtypes, strict=True)
        target = files.checkpoint(Reach.WRITE, text(filename, "filename"))
        write_v1(target, {name: (np.asarray(t), dtype) for name, t, dtype in entries})

    return compute
