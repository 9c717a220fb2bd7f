"""python -m tests.bench.target [NAME]: measures this processor and prints a row for `toolkit/target/rows.py`.

The least of many runs counts, so that others who work on the machine disturb little; what they do disturb is memory.
Instructions are what Linux says, sizes of caches too. Thresholds that are shares of a cache follow from it; the others
are those of the row that the processor has now, to be changed where runs in turns (`python -m tests.bench`) say so.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench import roofline
from toolkit.kernels.cpu.memory.addresses import address, aligned, record
from toolkit.kernels.cpu.native.code import Code, Lanes
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.loops import Operand, nest
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.onednn.library import library, one_thread, openmp_symbols
from toolkit.kernels.cpu.onednn.memory import Memory, dense
from toolkit.kernels.cpu.onednn.primitive import Arg, Binary, Primitive, PrimitiveCall, new_stream
from toolkit.kernels.tensors import F32
from toolkit.target import processor, rows
from toolkit.target.target import Caches, Rates, Target

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_CALLS = 100
_SIDES = (96, 192, 384)  # of products that are over before somebody else has the processor


def measured(row: Target, name: str) -> Target:
    """A row with what this machine can do.

    Args:
        row: whose thresholds hold where nothing is measured.
        name: of the new one.
    """
    caches = _caches() or row.caches
    model = processor.model()
    return row._replace(
        name=name, models=(model,) if model else (), caches=caches, rates=_rates(row),
        strips=row.strips._replace(least=3 * caches.second // 2, strip=3 * caches.second // 4),
        packed_gemm=row.packed_gemm._replace(resident=caches.second // 4),
    )  # fmt: skip


def _caches() -> Caches | None:
    """What Linux says; None where it says nothing."""
    sizes: dict[int, int] = {}
    for folder in _CACHES.glob("index*"):
        if (folder / "type").read_text().strip() != "Instruction":
            sizes[int((folder / "level").read_text())] = _bytes((folder / "size").read_text().strip())
    return Caches(sizes[1], sizes[2], sizes[max(sizes)]) if {1, 2} <= sizes.keys() else None


def _bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def _rates(row: Target) -> Rates:
    x, y = np.ones(1, np.float32), np.ones(1, np.float32)
    with one_thread():
        float32, bfloat16, int8 = _products(row)
        primitive_call = _primitive_call()
    return Rates(
        float32=float32,
        bfloat16=bfloat16,
        int8=int8,
        copied=roofline.copy_rate(1) / 2,
        numpy_call=_call(lambda: np.add(x, x, y)),
        primitive_call=primitive_call,
        native_call=_nest_call(spread=False),
        threads_call=_nest_call(spread=True),
    )


def _products(row: Target) -> tuple[float, float, float]:
    """Multiplications with an addition each, in a second: of float32, bfloat16 and 8-bit numbers."""
    found = library()
    if found is None:
        return max(map(roofline.numpy_rate, _SIDES)) / 2, 0.0, 0.0
    import ml_dtypes

    kinds: Sequence[Any] = (np.float32, *((ml_dtypes.bfloat16,) if row.vectors.bfloat16 else ()))
    rates = [max(roofline.onednn_rate(np.dtype(kind), side) for side in _SIDES) / 2 for kind in kinds]
    int8 = max(roofline.onednn_rate(np.dtype(np.uint8), side, np.dtype(np.int8)) for side in _SIDES) / 2
    return rates[0], rates[1] if len(rates) > 1 else 0.0, int8


def _primitive_call() -> float:
    found = library()
    if found is None:
        return 0.0
    desc = dense((16,), F32)
    primitive = Primitive("binary", Binary.ADD, desc, desc, desc)
    memories = [(arg, Memory(desc, aligned(desc.size))) for arg in (Arg.SRC, Arg.SRC_1, Arg.DST)]
    call = PrimitiveCall(primitive, new_stream(), memories)
    return _call(lambda: found.execute_held(*call.prepared))


def _nest_call(*, spread: bool) -> float:
    """Of the smallest compiled function, by itself or by all threads."""
    machine, symbols = compiler(), openmp_symbols(*OPENMP)
    if machine is None or (spread and not symbols):
        return 0.0

    def body(code: Code, lanes: Sequence[Lanes]) -> list[Lanes]:
        return [code.add(lanes[0], lanes[0])]

    operand = Operand("float", (1,))
    text = nest((64,), [operand], [operand], body, calls=False, spread=spread)
    function = machine.function(text, symbols if spread else {})
    x, y = np.ones(64, np.float32), np.ones(64, np.float32)
    pointers = record(address(x, x.nbytes), address(y, y.nbytes))
    return _call(lambda: function.call(pointers))


def _call(job: Callable[[], Any]) -> float:
    """Seconds of one call: the least mean of many."""

    def many() -> None:
        for _ in range(_CALLS):
            job()

    return min(roofline.seconds(many) for _ in range(roofline.REPEATS)) / _CALLS


def text(row: Target, base: Target) -> str:
    """A row as it is written in the table: what a processor is, and what differs from the defaults.

    Args:
        base: with the defaults.
    """
    lines = [f"{row.name.upper()} = Target("]
    for name, value in row._asdict().items():
        if name in ("name", "vectors", "caches", "rates") or value != getattr(base, name):
            lines.append(f"    {name}={_written(value, getattr(base, name))},")
    return "\n".join([*lines, ")"])


def _written(value: Any, base: Any) -> str:
    if not hasattr(value, "_asdict"):
        return (
            f"{value:.2g}" if isinstance(value, float) else json.dumps(value) if isinstance(value, str) else repr(value)
        )
    is_thresholds = type(value).__module__.endswith("thresholds")
    shown = [
        f"{name}={_written(each, None)}"
        for name, each in value._asdict().items()
        if not is_thresholds or each != getattr(base, name)
    ]
    return f"{type(value).__name__}({', '.join(shown)})"


if __name__ == "__main__":
    print(text(measured(rows.current(), sys.argv[1] if len(sys.argv) > 1 else "measured"), rows.AVX512))
