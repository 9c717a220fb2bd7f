"""The time of a step of each workload beside the peers', with outputs compared and the roofline counted."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.agreement import disagreement, error, varies
from tests.bench.engines import OURS, installed
from tests.bench.measure import NotRun, Row, compare
from tests.bench.roofline import peaks, work
from tests.bench.settings import Settings
from tests.bench.turns import Turns, take_turns
from tests.bench.workloads import WORKLOADS
from tests.bench.workloads.base import Workload

#: outputs of a network in bfloat16 are never as near to float32's as this
FLOAT32_ERROR = 1e-4


def run(suite: str, settings: Settings) -> Iterator[Row | NotRun]:
    """The rows of a suite of workloads: one for each peer, and one for the fastest where a target names several."""
    for workload in WORKLOADS.values():
        if workload.suite == suite and settings.wants(workload.name):
            yield from rows(workload, settings)


def rows(workload: Workload, settings: Settings) -> Iterator[Row | NotRun]:
    """Run one workload and judge it."""
    workload.model()  # built before anything is timed
    peers = [peer for peer in settings.sides if peer in workload.peers or peer in settings.versions]
    turns = take_turns(
        workload, [OURS, *peers], installed("tensorflow"), settings.rounds, settings.threads, settings.versions
    )
    for engine, reason in {**turns.absent, **turns.failed}.items():
        yield NotRun(workload.name, engine, reason, failed=engine in turns.failed)
    if OURS not in turns.bursts:
        return
    wrong = judge(workload, turns)
    least = work(workload).least_seconds(peaks(settings.threads), workload.precision)
    unit, scale = ("us", 1e6) if workload.repeat > 1 else ("ms", 1e3)
    figures = {engine: [scale * burst.median for burst in bursts] for engine, bursts in turns.bursts.items()}
    mine = figures.pop(OURS)
    if not peers and least:
        row = compare(workload.name, "roofline", unit, (mine, [scale * least] * len(mine)))
        row.note, row.wrong = _errors(workload, turns), wrong.get(OURS, "")
        yield row
    for peer, theirs in figures.items():
        target = next((t.ratio for t in workload.targets if t.peers == (peer,)), None)
        row = compare(workload.name, peer, unit, (mine, theirs), target, _errors(workload, turns, peer))
        if peer in settings.versions:
            row.note += "; outputs equal" if _equal(turns, peer) else "; outputs not equal"
        row.roofline = scale * least / row.ours if least is not None else None
        row.wrong = "; ".join(f"{name}: {wrong[name]}" for name in (OURS, peer) if name in wrong)
        yield row
    for several in workload.targets:
        there = [peer for peer in several.peers if peer in figures]
        if len(several.peers) > 1 and there:
            best = [min(pair) for pair in zip(*(figures[peer] for peer in there), strict=True)]
            row = compare(workload.name, f"fastest of {', '.join(there)}", unit, (mine, best), several.ratio)
            row.wrong = f"{OURS}: {wrong[OURS]}" if OURS in wrong else ""
            yield row


def judge(workload: Workload, turns: Turns) -> dict[str, str]:
    """Engine to what is wrong with its outputs: round by round where TensorFlow took part, else the first."""
    if turns.reference is None:
        return {}
    if not varies(turns.reference.outputs):
        return dict.fromkeys(turns.bursts, "the outputs hardly vary with the input, so nothing can be compared")
    # what is drawn depends on the runs before: first bursts are compared with first ones
    references = [turns.reference, *turns.bursts.get("tensorflow", [])]
    found: dict[str, str] = {}
    for engine, bursts in turns.bursts.items():
        for burst, reference in zip([turns.first[engine], *bursts], references, strict=False):
            problem = disagreement(burst.outputs, reference.outputs, workload.precision, workload.rtol)
            if problem is not None:
                found.setdefault(engine, problem)
    return found


def _equal(turns: Turns, version: str) -> bool:
    """Whether our outputs are the other version's, bit for bit."""
    pairs = list(zip(turns.bursts[OURS], turns.bursts[version], strict=True))
    return all(
        mine.outputs[run].tobytes() == theirs.outputs[run].tobytes()
        for mine, theirs in pairs
        for run in mine.outputs.keys() & theirs.outputs.keys()
    )


def _errors(workload: Workload, turns: Turns, peer: str = "tensorflow") -> str:
    """How far both sides are from TensorFlow in their first bursts."""
    if turns.reference is None:
        return "outputs not compared: TensorFlow is not installed"
    reference = turns.reference.outputs
    shown = (OURS,) if peer == "tensorflow" else (OURS, peer)
    errors = [error(turns.first[name].outputs, reference, workload.precision) for name in shown]
    text = f"error{'s' * (len(errors) > 1)} {', '.join(f'{each:.0e}' for each in errors)}"
    computed_in_f32 = workload.precision != "f32" and errors[0] < FLOAT32_ERROR
    return f"{text}; ours computed in float32, by its error" if computed_in_f32 else text
