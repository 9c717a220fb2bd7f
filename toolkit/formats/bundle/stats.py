"""Minimum, maximum, mean and non-finite counts of tensors, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from toolkit.formats.arrays.npy import USER_DEFINED
from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.source import Array, TensorSource


@dataclass(slots=True)
class Statistics:
    """Of the finite elements: extremes and mean; None where there are none or they have no order."""

    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | None = None
    nan: int = 0
    infinite: int = 0
    zeros: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "min": self.minimum, "max": self.maximum, "mean": self.mean, "nan": self.nan, "inf": self.infinite,
            "zeros": self.zeros,
        }  # fmt: skip

    def as_cells(self) -> list[str]:
        numbers = ["" if x is None else f"{x:.6g}" for x in (self.minimum, self.maximum, self.mean)]
        return [*numbers, str(self.nan or ""), str(self.infinite or "")]


def statistics(source: TensorSource, entry: Entry) -> Statistics:
    """The statistics of a tensor; of complex numbers, those of their magnitudes. Strings have none.

    Raises:
        NotFoundError, DataLossError: the checkpoint is damaged.
    """
    return summarize(_pieces(source, entry), entry.dtype.kind)


def summarize(pieces: Iterable[Array], kind: str) -> Statistics:
    """The statistics of a tensor that comes in pieces; see `statistics`.

    Args:
        kind: `DType.kind` of its type.
    """
    import numpy as np

    result = Statistics()
    if kind in "srv":
        return result
    total, count = 0.0, 0
    for piece in pieces:
        with np.errstate(all="ignore"):
            values = np.abs(piece) if piece.dtype.kind == "c" else piece
        result.zeros += int(np.count_nonzero(piece == piece.dtype.type(0)))
        if kind in "fc":
            values = values.astype(np.float64)
            finite = np.isfinite(values)
            if not finite.all():
                nan = int(np.isnan(values).sum())
                result.nan += nan
                result.infinite += int(values.size - finite.sum()) - nan
                values = values[finite]
        elif values.dtype.num >= USER_DEFINED or values.dtype.kind == "b":
            values = values.astype(np.int8 if kind == "i" else np.uint8)
        if values.size:
            low, high = values.min().item(), values.max().item()
            result.minimum = low if result.minimum is None else min(result.minimum, low)
            result.maximum = high if result.maximum is None else max(result.maximum, high)
            with np.errstate(all="ignore"):  # a sum may become infinite
                total += float(values.sum(dtype=np.float64))
            count += values.size
    if count:
        result.mean = total / count
    return result


def _pieces(source: TensorSource, entry: Entry) -> Iterator[Array]:
    import numpy as np

    for chunk in source.chunks(entry):
        yield np.frombuffer(chunk, entry.dtype.numpy)
