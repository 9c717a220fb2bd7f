"""Writing checkpoints: tensors as they come, the index at the end, nothing visible before all of it is on disk."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from toolkit.errors import AlreadyExistsError, GraphmillError, InvalidArgumentError
from toolkit.formats.bundle import storage, strings, wire
from toolkit.formats.bundle.encode import elements, flat_bytes
from toolkit.formats.bundle.entry import data_path, index_path
from toolkit.formats.bundle.replace import replace_checkpoint
from toolkit.formats.bundle.slices import TensorSlice, encode_key, parse_slice
from toolkit.formats.bundle.storage import TemporaryFile
from toolkit.formats.bundle.table import TableWriter
from toolkit.formats.records import crc
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

#: small tensors are collected up to this many bytes before they are written
_BUFFER = 1 << 20
#: pieces of this many bytes are not worth a copy into the buffer
_DIRECT = 1 << 16
#: from this size on, a second thread computes an array's CRC while it is written
_PARALLEL = 1 << 20
#: files that are forced to disk at the same time
_SYNCS = 16

Array = Any


class _DataFile:
    """One data file being written.

    Attributes:
        lock: held by the thread that writes a tensor to it.
        offset: bytes added so far.
    """

    def __init__(self, path: str):
        self.lock = threading.Lock()
        self.file = storage.create(path)
        self.offset = 0
        self._pending: list[bytes] = []
        self._pending_size = 0

    def append(self, piece: bytes) -> None:
        self.offset += len(piece)
        if len(piece) >= _DIRECT:
            self.flush()
            self.file.write(piece)
            return
        self._pending.append(piece)
        self._pending_size += len(piece)
        if self._pending_size >= _BUFFER:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            data = b"".join(self._pending)
            self._pending.clear()
            self._pending_size = 0
            self.file.write(data)


def _key(name: str) -> bytes:
    """The key of a tensor in the index."""
    if not name or name.startswith("\0"):
        raise InvalidArgumentError(f"{name!r} is not a name for a tensor: it is empty or starts with a zero byte")
    return name.encode("utf-8", "surrogateescape")


class BundleWriter:
    """Writes a checkpoint in TensorFlow's V2 format, byte for byte as TensorFlow does.

    Tensors go to the data files in the order they are added (TensorFlow's Saver adds them by name); at most one of
    them is in memory. Nothing carries the checkpoint's name before `finish`, which forces everything to disk and
    renames it, the index last. As a context manager it finishes at the end of the block, and removes what it wrote
    when the block raises.

    Several threads may add at the same time, each to its own data file; the order within a file is what counts. Two
    that add to one file take turns. Parts of one tensor are listed in the order they are added.

    Args:
        prefix: the checkpoint's name; folders are created.
        num_shards: how many data files to write; `add` says into which.

    Attributes:
        failure: what ended the writing of a tensor first; other threads may see its consequences only.

    Raises:
        OpError: the files cannot be created.
    """

    def __init__(self, prefix: str | Path, num_shards: int = 1):
        self.prefix = str(prefix)
        if num_shards < 1 or num_shards > 99999:
            raise InvalidArgumentError(f"a checkpoint has 1 to 99999 data files, not {num_shards}")
        if not Path(self.prefix).name or self.prefix.endswith("/"):
            raise InvalidArgumentError(
                f"'{self.prefix}' is a folder; a checkpoint needs a name, e.g. '{self.prefix}model'"
            )
        self.num_shards = num_shards
        self.failure: BaseException | None = None
        self._entries: dict[bytes, wire.RawEntry] = {}
        self._taken: set[bytes] = set()  # the keys of entries, and of those on their way
        self._lock = threading.Lock()  # of both
        self._files: list[_DataFile] = []
        self._pool: ThreadPoolExecutor | None = None
        self._is_open = True
        try:
            for shard in range(num_shards):
                self._files.append(_DataFile(data_path(self.prefix, shard, num_shards)))
        except BaseException:
            self.abort()
            raise

    # -- adding ------------------------------------------------------------------------------------------

    def add(self, name: str, array: Array, dtype: DType | None = None, shard: int = 0) -> None:
        """Write a tensor.

        Args:
            name: its key.
            array: a numpy array or what makes one; strings as bytes or str objects, variants as serialized
                VariantTensorDataProtos.
            dtype: its type, where numpy's does not say it (quantized types, variants).
            shard: the data file it goes to.

        Raises:
            AlreadyExistsError: the name has been added.
            InvalidArgumentError: the array does not fit the type.
            OpError: writing failed; the writer is closed and nothing is left behind.
        """
        key = _key(name)
        self._check_new(key, name)
        entry = self._write(name, key, name, array, dtype, shard)
        with self._lock:
            self._entries[key] = entry

    def add_slice(
        self,
        name: str,
        full_shape: Sequence[int],
        part: TensorSlice | str,
        array: Array,
        dtype: DType | None = None,
        shard: int = 0,
    ) -> None:
        """Write a part of a partitioned tensor.

        Args:
            name: the key of the whole tensor.
            full_shape: its sizes.
            part: which part this is, e.g. "0,4:-".
            array, dtype, shard: see `add`.

        Raises:
            AlreadyExistsError: the part, or the tensor as a whole, has been added.
            InvalidArgumentError: shape or type do not fit the part or the parts before.
            OpError: see `add`.
        """
        import numpy as np

        dims = tuple(int(size) for size in full_shape)
        part = parse_slice(part) if isinstance(part, str) else part
        shape = part.shape(dims)
        array = np.asarray(array)
        if array.shape != shape:
            raise InvalidArgumentError(
                f"part '{part}' of tensor '{name}' has shape {list(shape)}, not {list(array.shape)}"
            )
        key = _key(name)
        part_key = encode_key(name, part)
        whole = self._entries.get(key)
        resolved = dtype or dtypes.from_numpy(array.dtype)
        if whole is None:
            pass
        elif not whole.slices:
            raise AlreadyExistsError(f"tensor '{name}' has been added as a whole", file=self.prefix)
        elif whole.dims != dims or whole.dtype != resolved.enum:
            raise InvalidArgumentError(
                f"the parts of tensor '{name}' disagree: {dtypes.from_enum(whole.dtype)}{list(whole.dims or ())} and "
                f"{resolved}{list(dims)}"
            )
        self._check_new(part_key, f"{name}[{part}]")
        entry = self._write(name, part_key, f"{name}[{part}]", array, resolved, shard)
        self._add_part(key, part_key, dims, part, entry)

    def _add_part(
        self, key: bytes, part_key: bytes, dims: tuple[int, ...], part: TensorSlice, entry: wire.RawEntry
    ) -> None:
        with self._lock:
            self._entries[part_key] = entry
            fresh = wire.RawEntry(dtype=entry.dtype, dims=dims, shard=entry.shard)
            self._entries.setdefault(key, fresh).slices += (part,)

    def add_raw(
        self,
        name: str,
        dtype: DType,
        dims: Sequence[int],
        pieces: Iterable[bytes],
        crc_: int | None = None,
        shard: int = 0,
        part: TensorSlice | None = None,
    ) -> None:
        """Write a tensor whose stored form is at hand, e.g. `BundleReader.chunks`; nothing is decoded.

        Args:
            pieces: the stored bytes.
            crc_: the masked CRC of the entry; required for strings and variants, checked by nobody here.
            part: the bytes are this part of a tensor of shape `dims`.

        Raises:
            AlreadyExistsError, OpError: see `add`.
        """
        plain = _key(name)
        key = encode_key(name, part) if part else plain
        self._check_new(key, f"{name}[{part}]" if part else name)
        sizes = part.shape(tuple(dims)) if part else tuple(dims)
        sum_ = 0
        with self._writing(shard, key, name) as file:
            start = file.offset
            for piece in pieces:
                self._require_open()
                if crc_ is None:
                    sum_ = crc.extend(sum_, piece)
                file.append(piece)
            size = file.offset - start
        stored = crc.mask(sum_) if crc_ is None else crc_
        entry = wire.RawEntry(dtype.enum, sizes, shard, start, size, stored)
        if part:
            self._add_part(plain, key, tuple(dims), part, entry)
        else:
            with self._lock:
                self._entries[key] = entry

    def _require_open(self) -> None:
        if not self._is_open:
            raise InvalidArgumentError("the checkpoint's writer is closed", file=self.prefix)

    def _check_new(self, key: bytes, name: str) -> None:
        self._require_open()
        if key in self._taken:
            raise AlreadyExistsError(f"tensor '{name}' has been added already", file=self.prefix)

    @contextlib.contextmanager
    def _writing(self, shard: int, key: bytes, name: str) -> Generator[_DataFile]:
        """Keep a data file to this thread; whatever fails in the block is the end of the checkpoint."""
        file = self._file(shard)
        with self._lock:
            self._check_new(key, name)
            self._taken.add(key)
        try:
            with file.lock:
                self._require_open()
                yield file
        except BaseException as error:
            with self._lock:
                self.failure = self.failure or error
            self.abort()
            raise

    def _file(self, shard: int) -> _DataFile:
        if not 0 <= shard < self.num_shards:
            raise InvalidArgumentError(f"there is no data file {shard}; the checkpoint has {self.num_shards}")
        return self._files[shard]

    def _write(self, name: str, key: bytes, shown: str, array: Array, dtype: DType | None, shard: int) -> wire.RawEntry:
        import numpy as np

        array = np.asarray(array)
        try:
            dtype = dtype or dtypes.from_numpy(array.dtype)
        except GraphmillError as error:
            raise InvalidArgumentError(f"tensor '{name}': {error.message}") from None
        if dtype.is_ref:
            dtype = dtype.base
        if dtype.kind in "srv":
            encode = strings.encode_strings if dtype.kind == "s" else strings.encode_variants
            pieces, sum_ = encode(elements(name, array, dtype))
            with self._writing(shard, key, shown) as file:
                start = file.offset
                for piece in pieces:
                    file.append(piece)
                size = file.offset - start
        else:
            raw = flat_bytes(name, array, dtype)
            with self._writing(shard, key, shown) as file:
                start = file.offset
                sum_ = self._write_plain(file, raw)
            size = raw.nbytes
        return wire.RawEntry(dtype.enum, tuple(array.shape), shard, start, size, sum_)

    def _write_plain(self, file: _DataFile, raw: Array) -> int:
        """Write a byte array; returns its masked CRC."""
        if raw.nbytes < _PARALLEL:
            file.append(raw.tobytes())
            return crc.masked(raw)
        file.flush()
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "checkpoint-crc")
            # The system call runs without the interpreter's lock, so the other thread can sum meanwhile.
            summing = self._pool.submit(crc.masked, raw)
        file.file.write(raw)
        sum_ = summing.result()
        file.offset += raw.nbytes
        return sum_

    # -- ending ------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Make the checkpoint appear: everything to disk, then the names, the index last.

        An older checkpoint of the same name loses its index first, so what is there is at every moment the old one,
        none, or the new one; when an operation fails, the old one is put back. Its data files that the new one does
        not replace are removed.

        Raises:
            OpError: writing failed; nothing of the new checkpoint is left behind.
        """
        if not self._is_open:
            raise InvalidArgumentError("the checkpoint's writer is closed", file=self.prefix)
        index: TemporaryFile | None = None
        try:
            index = storage.create(index_path(self.prefix))
            write_index(index, self._entries, self.num_shards)
            self._sync_data()
            index.sync()
            replace_checkpoint(self.prefix, [file.file for file in self._files], index)
        except BaseException:
            self._close()
            if index is not None:
                index.discard()
            self.abort()
            raise
        self._close()

    def _sync_data(self) -> None:
        """Force all data files to disk; the waiting overlaps."""

        def sync(file: _DataFile) -> None:
            file.flush()
            file.file.sync()

        if len(self._files) == 1:
            sync(self._files[0])
            return
        with ThreadPoolExecutor(min(len(self._files), _SYNCS), "checkpoint-sync") as pool:
            for done in [pool.submit(sync, file) for file in self._files]:
                done.result()

    def abort(self) -> None:
        """Close the writer and remove what it wrote, once other threads have left its files."""
        self._close()
        for file in self._files:
            with file.lock:
                file.file.discard()

    def __del__(self) -> None:
        if getattr(self, "_is_open", False):  # forgotten: neither finished nor aborted
            self.abort()

    def _close(self) -> None:
        self._is_open = False
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is not None:
            self.abort()
        elif self._is_open:
            self.finish()


def write_index(file: TemporaryFile, entries: dict[bytes, wire.RawEntry], num_shards: int) -> None:
    """Write the table of an index."""
    pieces: list[bytes] = []
    table = TableWriter(pieces.append)
    table.add(b"", wire.encode_header(num_shards))
    for key in sorted(entries):
        table.add(key, wire.encode_entry(entries[key]))
        if len(pieces) > 1:
            file.write(b"".join(pieces))
            pieces.clear()
    table.finish()
    file.write(b"".join(pieces))
