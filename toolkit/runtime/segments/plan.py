"""Plans: what a program compiles to for one set of argument shapes, and the executor that keeps them."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from toolkit.errors import InternalError
from toolkit.kernels.cpu.onednn.library import set_threads, threads
from toolkit.runtime.limits.account import current, whole
from toolkit.runtime.limits.exhaustion import exhaustion
from toolkit.runtime.program import Program, locate
from toolkit.runtime.segments import optimise
from toolkit.runtime.segments.emission.instance import SOURCE_NAME, Emitted, Instance
from toolkit.runtime.segments.explain import explain
from toolkit.runtime.segments.ir import Block, NotSupportedError, Operation
from toolkit.runtime.segments.lifting import lift
from toolkit.runtime.segments.lifting.control import UnstructuredError
from toolkit.runtime.segments.lifting.lift import Guard, Lifter
from toolkit.runtime.segments.lifting.states import drop_states
from toolkit.runtime.segments.networks.batches import Shares, batch_of, is_share, part_of, piece_of, share_of
from toolkit.runtime.segments.settings import Settings
from toolkit.runtime.step import Step as RunningStep

_MAX_PLANS = 16  # per program; the oldest goes
_MAX_BYTES = 1 << 29  # of arenas and packed constants of a program's plans, beyond the newest
_GIVEN_BACK = 1 << 20  # bytes of an initialiser's arena, from which it does not outlive the first run
_COLLECT = 8  # plans gone, after which their memory is given back
_MAX_REBUILDS = 4  # of plans whose variables changed; then variables are no longer taken as constants


class Plan:
    """A compiled program with the arenas to run it in."""

    def __init__(self, emitted: Emitted, guards: list[Guard], notes: list[str]):
        self.emitted = emitted
        self.guards = guards
        self.notes = notes
        self.nbytes = emitted.packed_bytes() + emitted.layout.size
        self._free: list[Instance] = []
        # most initialisers run once in a session; those that run again do not pay for it again and again
        self._gives_back = emitted.initialises and emitted.layout.size >= _GIVEN_BACK

    def holds(self) -> bool:
        """Whether the variables that were taken as constants have kept their arrays."""
        for cell, array in self.guards:  # noqa: SIM110 -- this runs on every step
            if cell.value is not array:
                return False
        return True

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        """Execute once. Several threads may: each takes an arena of its own."""
        free = self._free
        try:
            instance = free.pop()
        except IndexError:
            instance = self._instantiate()
        try:
            return instance.run(arguments, running)
        except Exception as error:
            raise self._located(error, running) from error.__cause__
        finally:
            if self._gives_back:
                self._gives_back = False
                instance.close()
            else:
                free.append(instance)

    def make_ready(self) -> None:
        """Make the first arena.

        Raises:
            MemoryError: there is no room for it, or a tensor in it is larger than the limits allow.
        """
        account = current()
        if account is not None and account.limits.tensor is not None:
            for emitted in self.emitted.all():
                if any(value.nbytes > account.limits.tensor for value in emitted.layout.storage):
                    raise MemoryError
        self._free.append(self._instantiate())

    def _instantiate(self) -> Instance:
        with whole():
            return self.emitted.instantiate()

    def _located(self, error: Exception, running: RunningStep) -> BaseException:
        """The error with the name of the node that it happened in."""
        owner: Operation | None = None
        there: dict[str, Any] = {}
        values: list[Any] | None = None
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if code.co_filename == SOURCE_NAME:
                owner = self.emitted.owner(code, trace.tb_lineno) or owner
                there = trace.tb_frame.f_locals
                values = self.emitted.inputs_of(owner, there, trace.tb_frame.f_globals) if owner is not None else None
            trace = trace.tb_next
        if owner is None:
            exhausted = exhaustion(error, "the compiled step", alive=running.variables())
            return exhausted or InternalError(f"a plan failed: {type(error).__name__}: {error}")
        step = owner.step

        def alive() -> Iterator[tuple[str, Any]]:
            for emitted in self.emitted.all():
                for name, value in emitted.named():
                    yield name, there.get(value)
            yield from running.variables()

        return locate(error, step, alive, values)


class SharedPlan:
    """A plan for a share of a batch, run by one thread for each share.

    Attributes:
        share: the plan.
    """

    def __init__(self, share: Plan, shares: Shares):
        self.share = share
        self.emitted, self.guards, self.nbytes = share.emitted, share.guards, share.nbytes
        self.notes = [*share.notes, "the batch is run in shares, one for each thread"]
        self.holds = share.holds
        self.make_ready = share.make_ready
        self._shares = shares

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        """Execute once."""
        try:
            return self._shares.run(lambda share: self.share.run(share, running), arguments)
        finally:
            _THREADS.use(None)


class Reference(Protocol):
    """An executor that runs node by node."""

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]: ...


class SegmentExecutor:
    """Runs a program by plans, one for each set of argument shapes.

    Args:
        reference: makes the executor that runs node by node: for probes, and for control flow without structure.
    """

    def __init__(self, program: Program, settings: Settings, reference: Callable[[Program], Reference]):
        self._program = program
        self._settings = settings
        self._make_reference = reference
        self._node_by_node: Reference | None = None
        self._is_unstructured = False
        self._too_large: set[tuple[Any, ...]] = set()  # arguments for which there is no room for a plan
        self._threads = settings.threads
        self._plans: OrderedDict[tuple[Any, ...], Plan | SharedPlan] = OrderedDict()
        self._lock = threading.Lock()
        self._rebuilds = 0
        self._gone = 0
        self._generation: tuple[Any, int] | None = None

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        """Execute once: the values of _Arg nodes in, the values of _Retval nodes out."""
        if self._threads is not None or _THREADS.is_set:
            _THREADS.use(self._threads)
        if running.probe is not None or self._is_unstructured:
            return self._reference().run(arguments, running)
        key = _key(arguments)
        if self._too_large and key in self._too_large:
            return self._reference().run(arguments, running)
        plan = self._plans.get(key)
        resources = running.resources
        if plan is None or not plan.holds() or self._generation != (resources, resources.generation):
            try:
                plan = self._build(key, arguments, running)
            except UnstructuredError:
                self._is_unstructured = True
                return self._reference().run(arguments, running)
            except MemoryError:  # node by node less may be there at one time; else the node is told that wants too much
                self._too_large.add(key)
                return self._reference().run(arguments, running)
            except Exception:
                if self._settings.strict:
                    raise
                self._is_unstructured = True  # a mistake of the compiler costs speed, never a result
                return self._reference().run(arguments, running)
        return plan.run(arguments, running)

    def explain(self, arguments: Sequence[Any], running: RunningStep) -> list[str]:
        """What the plan for these arguments does, in lines; nothing is run."""
        key = _key(arguments)
        try:
            plan = self._plans.get(key) or self._build(key, arguments, running)
        except UnstructuredError as error:
            return [f"runs node by node in the dataflow executor: {error}"]
        return explain(plan.emitted, plan.notes, len(plan.guards))

    def _reference(self) -> Reference:
        if self._node_by_node is None:
            self._node_by_node = self._make_reference(self._program)
        return self._node_by_node

    def _build(self, key: tuple[Any, ...], arguments: Sequence[Any], running: RunningStep) -> Plan | SharedPlan:
        with self._lock:
            generation = (running.resources, running.resources.generation)
            if self._generation != generation:
                self._plans.clear()
                self._generation = generation
            known = self._plans.get(key)
            if known is not None and known.holds():
                return known
            if known is not None:
                self._rebuilds += 1
            plan = build(self._program, arguments, running, self._settings, capture=self._rebuilds <= _MAX_REBUILDS)
            if current() is not None:
                plan.make_ready()
            self._plans[key] = plan
            while len(self._plans) > 1 and (
                len(self._plans) > _MAX_PLANS or sum(each.nbytes for each in self._plans.values()) > _MAX_BYTES
            ):
                self._plans.popitem(last=False)
                self._gone += 1
                if self._gone % _COLLECT == 0:  # plans are full of cycles, and large in ways the collector cannot see
                    gc.collect()
            return plan


class _Threads:
    """How many threads oneDNN uses, which OpenMP keeps for each thread that calls it."""

    def __init__(self) -> None:
        self.is_set = False  # somebody has chosen a number, so everybody must say theirs
        self._of_thread = threading.local()

    def use(self, count: int | None) -> None:
        """For what this thread runs now: so many, or the default."""
        if not self.is_set and count is None:
            return
        if not self.is_set:
            self._default = threads()
            self.is_set = True
        wanted = count or self._default
        if getattr(self._of_thread, "count", None) != wanted:
            set_threads(wanted)
            self._of_thread.count = wanted


_THREADS = _Threads()


def build(
    program: Program, arguments: Sequence[Any], running: RunningStep, settings: Settings, *, capture: bool = True
) -> Plan | SharedPlan:
    """Compile a program for the shapes of these arguments."""
    session, block = _lifted(program, arguments, running, capture=capture)
    batch = batch_of(block) if settings.onednn else None
    count = (settings.threads or threads()) if batch is not None else 1
    size = share_of(batch, count) if batch is not None else None
    if batch is not None and size is not None:
        piece = piece_of(block, batch, size, settings.precision)
        share = [part_of(argument, batch, 0, piece) for argument in arguments]
        shared_session, shared = _lifted(program, share, running, capture=capture)
        if is_share(block, shared, batch, piece):
            alone = replace(settings, threads=1)
            plan = _compiled(program, share, running, alone, shared_session, shared, capture=capture)
            return SharedPlan(plan, Shares(count, size, functools.partial(_THREADS.use, 1), piece))
    return _compiled(program, arguments, running, settings, session, block, capture=capture)


def _lifted(
    program: Program, arguments: Sequence[Any], running: RunningStep, *, capture: bool
) -> tuple[lift.Session, Block]:
    session = lift.Session(running, capture=capture)
    lifter = Lifter(session)
    lifter.lift(program, arguments)
    block = lifter.block
    block.drop_unused(optimise.has_effect)
    drop_states(block, optimise.has_effect)
    block.drop_unused(optimise.has_effect)
    return session, block


def _compiled(
    program: Program, arguments: Sequence[Any], running: RunningStep, settings: Settings,
    session: lift.Session, block: Block, *, capture: bool,
) -> Plan:  # fmt: skip
    excluded: dict[str, str] = {}
    while True:
        try:
            with whole():
                emitted = optimise.compile_block(block, settings, excluded, running)
        except NotSupportedError as refusal:
            # the last node that was fused is left out first; everything is lifted anew
            excluded[refusal.nodes[0]] = refusal.reason
            session, block = _lifted(program, arguments, running, capture=capture)
            continue
        return Plan(emitted, session.guards, block.notes + [f"{n}: {why}" for n, why in excluded.items()])


def _key(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """What a plan depends on: shapes and types of arrays, the class of other things."""
    return tuple([(a.shape, a.dtype) if isinstance(a, _ARRAYS) else type(a) for a in arguments])


_ARRAYS = (np.ndarray, np.generic)
