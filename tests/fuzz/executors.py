"""Compiled runs held to the definition: the same status, the same kinds of numbers, close values."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import MetaGraphDef
from tests.fuzz.case import Case, Finding
from tests.fuzz.judge import Outcome

#: how `run` is run: more arguments, environment. The first is the definition.
MODES: dict[str, tuple[list[str], dict[str, str]]] = {
    "node by node": ([], {"GRAPHMILL_SEGMENTS": "off", "GRAPHMILL_ONEDNN": "off"}),
    "tokens": (["--tokens"], {"GRAPHMILL_ONEDNN": "off"}),
    "compiled": ([], {"GRAPHMILL_SEGMENTS": "on"}),
    "exact": (["--precision", "exact"], {"GRAPHMILL_SEGMENTS": "on"}),
}
#: the mode that promises nothing of NaN and infinities where they come in or arise (graphmill help numerics)
_FAST = "compiled"
#: values may differ by this share of the largest finite number beside them: products of a few thousand terms in
#: another order (sqrt(n) half units each, 2e-7 * 50), through norms and differences that enlarge it a hundredfold
TOLERANCE = 2e-3
#: what a damaged loop may use, that may have become endless: in each mode, which together stay below pool.CPU_LIMIT
LIMITS = ("--limit", "time=2s,memory=1G")
#: how what went over its limits ends
LIMITED = {"DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"}
#: what a difference is called where one number is finite and the other is not
KIND = "kind of number"
_HUGE = 1e15
#: numbers from here on overflow in one order of addition and not in another
_NEAR_OVERFLOW = {"f": 1e36, "d": 1e300, "e": 3e4}


def executions(command: Sequence[str]) -> list[tuple[str, list[str], dict[str, str]]]:
    """(mode, command line, environment) of every executor."""
    return [
        (mode, [*command, *more, "--out", "out/result.npz"], environment) for mode, (more, environment) in MODES.items()
    ]


def arrays(data: bytes | None) -> dict[str, Any]:
    """The arrays of an .npz."""
    if data is None:
        return {}
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def status(outcome: Outcome) -> str:
    """How a run ended: "OK", the status of its error, or the kind of error."""
    if outcome.code == 0:
        return "OK"
    error = outcome.reported or outcome.escaped
    return getattr(error, "status", type(error).__name__)


def compare(case: Case, command: Sequence[str], results: Mapping[str, tuple[Outcome, bytes | None]]) -> list[Finding]:
    """What every mode did, held to what the first did."""
    (first, (wanted, data)), *others = results.items()
    right = arrays(data)
    ordinary = all(_is_ordinary(value) for value in [*right.values(), *arrays(case.files.get("feeds.npz")).values()])
    found: list[Finding] = []
    for mode, (outcome, mine) in others:
        if outcome.escaped is not None or wanted.escaped is not None:
            continue
        if LIMITED & {status(outcome), status(wanted)}:  # by what was left of a busy machine
            continue
        if status(outcome) != status(wanted):
            detail = f"{first}: {wanted.code} {wanted.stderr!r}\n{mode}: {outcome.code} {outcome.stderr!r}"
            where = op_of(case, getattr(wanted.reported or outcome.reported, "node", None))
            key = f"executors:{mode}:{status(outcome)} instead of {status(wanted)}:{where}"
            found.append(Finding(key, tuple(command), detail))
            continue
        got = arrays(mine)
        for name in sorted(right):
            difference = differs(got.get(name), right[name], exact=case.exact)
            if difference and not (difference[0].startswith(KIND) and mode == _FAST and not ordinary):
                key = f"executors:{mode}:{difference[0]}:{op_of(case, name)}"
                found.append(Finding(key, tuple(command), f"{name}: {difference[1]}"))
                break
    return found


def _is_ordinary(value: Any) -> bool:
    """Whether numbers are finite, and far from overflow."""
    with np.errstate(over="ignore"):  # the limit is an infinity in float16
        return value.dtype.kind not in "fc" or bool(np.all(np.abs(value) < _HUGE))


def nodes_of(case: Case) -> list[Any]:
    """The nodes of a case's model, those of functions included."""
    data = case.files.get("model.pb", b"")
    for read in (lambda: GraphDef.FromString(data), lambda: MetaGraphDef.FromString(data).graph_def):
        with contextlib.suppress(DecodeError):
            graph = read()
            return [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return []


def op_of(case: Case, name: str | None) -> str:
    """The op of a node or of a tensor's node, through what only passes on; "?" if there is no such node."""
    nodes = {node.name: node for node in nodes_of(case)}
    node = nodes.get((name or "").partition(":")[0])
    for _ in range(5):
        if node is None or node.op not in ("Identity", "Reshape", "Transpose") or not node.input:
            break
        node = nodes.get(node.input[0].partition(":")[0], node)
    return "?" if node is None else node.op


def differs(got: Any, wanted: Any, *, exact: bool, tolerance: float = TOLERANCE) -> tuple[str, str] | None:
    """(what kind of difference, the numbers) where there is one."""
    if got is None:
        return "missing", ""
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return "type", f"{got.dtype} {got.shape}, not {wanted.dtype} {wanted.shape}"
    if wanted.dtype.kind not in "fc":
        if exact and not np.array_equal(got, wanted):
            at = np.argwhere(np.asarray(got != wanted))[:3].tolist()
            return "values", f"{np.asarray(got).ravel()[:8]} and {np.asarray(wanted).ravel()[:8]}, at {at}"
        return None
    if wanted.dtype.kind == "c":
        got, wanted = np.stack([got.real, got.imag]), np.stack([wanted.real, wanted.imag])
    finite = np.isfinite(wanted)
    limit = _NEAR_OVERFLOW.get(wanted.dtype.char, 1e30)
    for kind, test in (("NaN", np.isnan), ("infinity", np.isposinf), ("-infinity", np.isneginf)):
        bad = test(got) != test(wanted)
        bad &= ~((np.abs(got) > limit) & (np.abs(wanted) > limit))
        if bad.any():
            at = tuple(np.argwhere(bad)[0])
            return f"{KIND} ({kind})", f"at {list(map(int, at))}: {got[at]} and {wanted[at]}"
    if not exact:
        return None
    both = finite & np.isfinite(got)
    if not both.any():
        return None
    with np.errstate(all="ignore"):
        mine, right = got[both].astype(np.float64), wanted[both].astype(np.float64)
        scale = max(1e-3, float(np.abs(right).max()))
        error = np.abs(mine - right)
        worst = int(error.argmax())
        if error[worst] > tolerance * scale:
            return "values", f"{mine[worst]} and {right[worst]} beside {scale:g}"
    return None
