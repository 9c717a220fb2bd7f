"""The op suite on a device beside the CPU: what its kernels give is what the CPU's definitions give.

    python -m tests.kernels.beside_cpu GPU --ops Softmax,MatMul      # these ops, with the first line of each failure
    python -m tests.kernels.beside_cpu GPU --jobs 8 --json FILE      # every case, in eight processes
    python -m tests.kernels.beside_cpu GPU --varied 20 --seed 3      # cases made of these (`tests.kernels.varied`)

TensorFlow is not needed: the CPU's kernels are held to it by the suite itself. A case takes part where the device has
a kernel of its own for its node. Values are compared as the suite compares them with TensorFlow's: equal where the
arithmetic is exact, else within what roundings explain (`tests.kernels.op_bounds`). A case that the CPU refuses is
refused with the same status, but for what kernels of accelerators do not look at (`tests.kernels.unchecked`).

Random numbers, orders and places that a case leaves out (`skip_outputs`) are left out here as well.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import itertools
import json
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.kernels import op_workers, tables
from tests.kernels.unchecked import UNCHECKED
from tests.kernels.varied import varied
from toolkit.errors import GraphmillError
from toolkit.kernels import device_types, registry

#: what errors of a driver say behind which nothing works
LOST = "context is lost"
#: bytes that the process of varied cases may have
MEMORY = 6 << 30
#: seconds that the cases of one op may take
PATIENCE = 120.0
#: modules of cases that cannot be imported without these packages, and have no op of an accelerator
_PICTURES = frozenset(("PIL",))

#: before what errors say that know their node
_NODE = "node 'node': "
#: what is not the same bit by bit though cases say so, and why
ROUNDED: dict[str, str] = dict.fromkeys(
    (
        "RandomStandardNormal", "TruncatedNormal", "StatelessRandomNormal", "StatelessRandomNormalV2",
        "StatelessTruncatedNormal", "StatelessTruncatedNormalV2", "StatefulStandardNormalV2",
        "StatefulTruncatedNormal", "StatelessRandomGammaV2", "StatelessRandomGammaV3",
    ),
    "the C library's logarithms and sines, which CPUs use, are not rounded correctly in each case",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A case of the suite: a `Case` or a `StateCase`, and the module that it is from."""

    module: str
    case: Any

    @property
    def label(self) -> str:
        return f"{self.module}:{self.case.label}"


@dataclass(frozen=True)
class Result:
    """What came of a case: "" where it agrees."""

    op: str
    label: str
    problem: str
    seconds: float


@functools.cache
def every_case() -> dict[str, list[Entry]]:
    """Op to the cases of it in every list that a test is parametrized by."""
    found: dict[str, list[Entry]] = {}
    seen: set[int] = set()
    for module, path in tables.modules().items():
        for case in _cases(module):
            if id(case) not in seen:
                seen.add(id(case))
                found.setdefault(case.op, []).append(Entry(path.stem, case))
    return found


def _cases(module: str) -> Iterator[Any]:
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in _PICTURES:
            raise
        return
    for function in vars(imported).values():
        for mark in getattr(function, "pytestmark", ()):
            if mark.name == "parametrize":
                yield from (each for row in mark.args[1] for each in _parts(row) if _is_case(each))


def _parts(row: Any) -> Sequence[Any]:
    values = getattr(row, "values", row)  # of pytest.param
    return values if isinstance(values, list | tuple) else (values,)


def _is_case(value: Any) -> bool:
    # by name: under pytest the modules of this folder are imported by two names
    return type(value).__name__ in ("Case", "StateCase")


def ops_of(device: str) -> list[str]:
    """The ops with kernels of a device type's own, whether or not they have cases; none where it is not there."""
    if device not in device_types.names():
        return []
    return sorted({entry.op for entry in registry.all_kernels(device)})


def has_own_kernel(case: Any, device: str) -> bool:
    """Whether the device has a kernel of its own for the node of a case."""
    try:
        node = _build(case)
        node.device = f"/device:{device}:0"
        found = registry.find(node, device)
    except GraphmillError:
        return False  # no node can be made of it: there is nothing to run
    return found is not None and found.device_type == device


def cases_of(op: str, device: str) -> list[Entry]:
    """The cases of an op that take part on a device."""
    return [entry for entry in every_case().get(op, ()) if has_own_kernel(entry.case, device)]


def spread(entries: Sequence[Entry], most: int) -> list[Entry]:
    """At most so many of the cases, from the whole list; those of the smallest inputs where there is a choice."""
    if len(entries) <= most:
        return list(entries)
    cuts = np.linspace(0, len(entries), most + 1).astype(int)
    parts = [entries[start:stop] for start, stop in itertools.pairwise(cuts)]
    return [min(part, key=lambda entry: _size(entry.case)) for part in parts]


def _size(case: Any) -> int:
    """How many numbers go in; what is empty or refused says less, and comes last."""
    total = sum(
        np.size(each) for value in case.inputs for each in (value if isinstance(value, list | tuple) else [value])
    )
    return total if total > 1 and not case.error else 1 << 40


def _build(case: Any) -> Any:
    suite = _suite(case)
    return suite.build(case) if _has_state(case) else suite.build(case, suite.prepare(case))


def _has_state(case: Any) -> bool:
    return type(case).__name__ == "StateCase"


def _suite(case: Any) -> Any:
    """The module of a case's class, whichever of its two names that was imported by."""
    return sys.modules[type(case).__module__]


def check(case: Any, device: str, texts: bool = False) -> None:
    """Run a case on the CPU and on a device; raise AssertionError unless they agree."""
    (_compare_states if _has_state(case) else _compare_outputs)(_suite(case), case, device, texts)


def _compare_outputs(suite: Any, case: Any, device: str, texts: bool) -> None:
    ready = suite.prepare(case)
    status, wanted = suite.outcome(lambda: suite.run_ours(case, ready=ready, defining=True))
    got_status, got = suite.outcome(lambda: suite.run_ours(case, device, ready=ready))
    if _is_refused(case.op, status, wanted, got_status, got, device, texts):
        return
    normalize = case.normalize or (lambda outputs: outputs)
    near = replace(case, exact=False) if case.op in ROUNDED else case
    suite.compare_outputs(near, normalize(got), normalize(wanted), ready)


def _compare_states(suite: Any, case: Any, device: str, texts: bool) -> None:
    status, wanted = suite.outcome(lambda: list(suite.run_ours(case)))
    got_status, got = suite.outcome(lambda: list(suite.run_ours(case, device)))
    if not _is_refused(case.op, status, wanted, got_status, got, device, texts):
        parts = [[None if each is None else np.asarray(each) for each in part] for part in wanted]
        suite.compare_parts(case, got, parts)


def _is_refused(
    op: str, status: str | None, wanted: Any, got_status: str | None, got: Any, device: str, texts: bool
) -> bool:
    """Whether there is nothing to compare, since the CPU refuses the case.

    Raises:
        AssertionError: the device does otherwise.
    """
    if status is None:
        assert got_status is None, f"the CPU succeeds, {device} fails: {got_status}: {got}"
        return False
    if op not in UNCHECKED:
        assert got_status == status, (
            f"the CPU refuses it with {status} ({wanted}), {device}: {got_status or 'succeeds'}: {got}"
        )
        same = got.removeprefix(_NODE) == wanted.removeprefix(_NODE)
        assert not texts or same, f"the CPU says: {wanted}; {device}: {got}"
    return True


def run(entry: Entry, device: str, texts: bool = False) -> Result:
    """What comes of a case, whatever that is."""
    start = time.perf_counter()
    try:
        check(entry.case, device, texts)
        problem = ""
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = "" if isinstance(error, AssertionError) else f" ({Path(where.filename).name}:{where.lineno})"
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}{place}"
    return Result(entry.case.op, entry.label, problem, time.perf_counter() - start)


def varied_cases(op: str, device: str, seed: int, count: int) -> list[Entry]:
    """So many cases that are made of the suite's, of each of several rows as many."""
    entries = spread(cases_of(op, device), count)
    shares = [count // len(entries) + (at < count % len(entries)) for at in range(len(entries))]
    return [
        Entry(entry.module, case)
        for entry, share in zip(entries, shares, strict=True)
        for case in itertools.islice(varied(entry.case, device, seed, lambda made: has_own_kernel(made, device)), share)
    ]


class Work(NamedTuple):
    """The cases of an op on a device.

    Attributes:
        most: how many at most; 0: all.
        varied: how many are made of the suite's instead.
        seed: of these.
        texts: refusals are to be in the same words.
    """

    op: str
    device: str
    most: int = 0
    varied: int = 0
    seed: int = 1
    texts: bool = False


def run_op(work: Work) -> list[Result]:
    """What comes of all or some of the cases of an op, or of such as are made of them."""
    op, device, most, count, seed, texts = work
    if count:
        entries = varied_cases(op, device, seed, count)
    else:
        entries = spread(cases_of(op, device), most) if most else cases_of(op, device)
    if device == "GPU":
        _open_libraries()
    found: list[Result] = []
    for entry in entries:
        found.append(run(entry, device, texts))
        if LOST in found[-1].problem:
            break
    return found


@functools.cache
def _open_libraries() -> None:
    """What is loaded with the first kernel that needs it, so that no op seems to reach outside for it."""
    from toolkit.kernels.cuda import device

    there = device.device(0)
    _ = there.context.blas, there.context.dnn
    there.full((1,), np.dtype(np.float32), 1.0)  # compiled, and kept on disk


def _run_op(work: Work) -> tuple[list[Result], bool]:
    """As `run_op`, and whether nothing can be run any more in this process."""
    results = run_op(work)
    return results, any(LOST in each.problem for each in results)


def _results(work: Sequence[Work], jobs: int) -> Iterator[list[Result]]:
    is_varied = any(each.varied for each in work)  # whatever a case does, others are to follow
    if jobs == 1 and not is_varied:
        yield from map(run_op, work)
        return
    for each, results, problem in op_workers.each(work, _run_op, jobs, PATIENCE * (5 if is_varied else 1)):
        yield [Result(each.op, each.op, problem, 0.0)] if problem else results


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases and print what differs; returns 1 if any does."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.beside_cpu", description=__doc__)
    parser.add_argument("device", help="a type: GPU, NULL")
    parser.add_argument("--ops", help="only these, separated by commas")
    parser.add_argument("--most", type=int, default=0, help="at most so many cases of each op (0: all)")
    parser.add_argument("--varied", type=int, default=0, help="so many cases of each op, made of the suite's")
    parser.add_argument("--seed", type=int, default=1, help="of --varied")
    parser.add_argument("--texts", action="store_true", help="refusals are to be in the same words")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=0, help="begin no further op after so long (0: all)")
    parser.add_argument("--json", metavar="FILE", help="also write every result")
    args = parser.parse_args(arguments)
    if args.varied:  # whatever a case asks for
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    ops = args.ops.split(",") if args.ops else ops_of(args.device)
    work = [Work(op, args.device, args.most, args.varied, args.seed, args.texts) for op in ops]
    results = list(_until(args.seconds, _results(work, args.jobs)))
    wrong = [each for each in results if each.problem]
    ran = Counter(each.op for each in results)
    failed = sorted({each.op for each in wrong})
    print(
        f"{args.device}: {len(results) - len(wrong)} passed, {len(wrong)} failed; cases of {len(ran)} of {len(ops)} ops"
        + (f"; failed: {', '.join(failed)}" if failed else "")
    )
    if args.json:
        Path(args.json).write_text(json.dumps([vars(each) for each in results], indent=1) + "\n")
    return 1 if wrong or not results else 0


def _until(seconds: float, results: Iterable[list[Result]]) -> Iterator[Result]:
    start = time.perf_counter()
    for some in results:
        for each in some:
            if each.problem:
                print(f"{each.label}: {each.problem}", flush=True)
            yield each
        if seconds and time.perf_counter() - start > seconds:
            print(f"stopped after {seconds:.0f} s", file=sys.stderr)
            return


if __name__ == "__main__":
    sys.exit(main())
