"""What every kind of file with named tensors has in common: checkpoints, .npz, .safetensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, Self

from toolkit.errors import InvalidArgumentError, NotFoundError, did_you_mean
from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.slices import TensorSlice
from toolkit.graph.dtypes import DType

#: bytes that are read, summed and written at a time: they stay in the cache, and in memory that is not given back
#: to the system each time (4 MB pieces take three times the processor time)
CHUNK = 1 << 18
#: a numpy array; its dtype is known only when the file is
Array = Any


class TensorSource:
    """Named tensors in a file.

    Attributes:
        prefix: what it was opened as.
        entries: every tensor by name, in the file's order.
        num_shards: how many data files there are.
        has_raw_parts: `chunks` works on the entries of parts.
        has_crcs: entries have the CRC of their bytes, which `chunks` checks.
    """

    has_raw_parts = False
    has_crcs = False

    def __init__(self, prefix: str):
        self.prefix = prefix
        self.entries: dict[str, Entry] = {}
        self.num_shards = 1

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def entry(self, name: str) -> Entry:
        """What the file says of a tensor.

        Raises:
            NotFoundError: there is no such tensor; close names are suggested.
        """
        try:
            return self.entries[name]
        except KeyError:
            raise NotFoundError(
                f"there is no tensor '{name}' in the checkpoint{did_you_mean(name, self.entries)}", file=self.prefix
            ) from None

    def parts(self, name: str) -> list[tuple[TensorSlice, Entry]]:
        """The parts of a partitioned tensor with their own entries; nothing for other tensors.

        Raises:
            NotFoundError: there is no such tensor.
            DataLossError: a part is missing or does not fit.
        """
        self.entry(name)
        return []

    def read(self, name: str, verify: bool = True) -> Array:
        """A tensor as a numpy array.

        Strings come as an object array of bytes, variants as one of serialized VariantTensorDataProtos; partitioned
        tensors are put together. Plain tensors are read-only views of the file where its alignment allows it.

        Args:
            verify: check the CRC first, in formats that have one.

        Raises:
            NotFoundError: there is no such tensor, or its data file is missing.
            DataLossError: the file is too short, or the CRC is wrong.
        """
        raise NotImplementedError

    def read_slice(self, name: str, starts: Sequence[int], lengths: Sequence[int], verify: bool = True) -> Array:
        """A rectangular part of a tensor; of a partitioned one, only the parts that it touches are read.

        Args:
            starts: first index in each dimension.
            lengths: size in each dimension; -1 takes the whole dimension.
            verify: check the CRC of everything that is touched first.

        Raises:
            NotFoundError, DataLossError: as `read`.
            InvalidArgumentError: the part reaches outside of the tensor.
        """
        entry = self.entry(name)
        wanted = TensorSlice(tuple(zip(starts, lengths, strict=True)))
        try:
            bounds = wanted.bounds(entry.dims)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"tensor '{name}': {error.message}", file=self.prefix) from None
        return self._read_bounds(entry, bounds, verify)

    def _read_bounds(self, entry: Entry, bounds: tuple[tuple[int, int], ...], verify: bool) -> Array:
        return self.read(entry.name, verify)[tuple(slice(start, stop) for start, stop in bounds)]

    def chunks(self, entry: Entry, size: int = CHUNK, verify: bool = True) -> Iterator[bytes]:
        """The little-endian bytes of a tensor (no strings), in pieces of `size`, the last one excepted.

        Raises:
            NotFoundError, DataLossError: as `read`.
        """
        import numpy as np

        flat = np.ascontiguousarray(self.read(entry.name, verify)).reshape(-1).view(np.uint8)
        for start in range(0, flat.nbytes, size):
            yield flat[start : start + size].tobytes()

    def region_chunks(
        self, entry: Entry, bounds: tuple[tuple[int, int], ...], size: int = CHUNK, verify: bool = True
    ) -> Iterator[bytes]:
        """The little-endian bytes of a rectangular part of a tensor (no strings), a piece at a time.

        Args:
            bounds: (start, stop) in each dimension.

        Raises:
            NotFoundError, DataLossError: as `read`.
        """
        import numpy as np

        flat = np.ascontiguousarray(self._read_bounds(entry, bounds, verify)).reshape(-1).view(np.uint8)
        for start in range(0, flat.nbytes, size):
            yield flat[start : start + size].tobytes()

    def check_amount(self) -> None:
        """Refuse a file whose tensors together take more bytes than it has: copies of them would be larger than it.

        Raises:
            DataLossError: so.
        """

    def check_files(self) -> None:
        """Refuse a checkpoint whose data files are missing or end before their last tensor; none of it is read.

        Raises:
            NotFoundError, DataLossError: so.
        """

    def missing_files(self) -> list[str]:
        """The data files that should be there and are not."""
        return []

    def close(self) -> None:
        """Close the files. Arrays that were read stay valid."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class TensorSink(Protocol):
    """A file with named tensors being written; it appears when `finish` has succeeded, and whole."""

    def add(self, name: str, array: Array, dtype: DType | None = None) -> None:
        """Write a tensor; see `BundleWriter.add`."""
        ...

    def add_raw(
        self, name: str, dtype: DType, dims: Sequence[int], pieces: Iterable[bytes], crc_: int | None = None
    ) -> None:
        """Write a plain tensor from its little-endian bytes, whose masked CRC may be known."""
        ...

    def finish(self) -> None: ...

    def abort(self) -> None: ...
