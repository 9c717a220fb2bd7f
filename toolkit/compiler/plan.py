"""Plans: what a program compiles to for one set of argument shapes."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from toolkit.compiler.backends.base import SOURCE_NAME, Executable, HostSide, Instance
from toolkit.compiler.context import RunningStep, compiling
from toolkit.compiler.importer.control import UnstructuredError
from toolkit.compiler.importer.facts import Facts
from toolkit.compiler.importer.lift import Lifter
from toolkit.compiler.importer.state import Guard, ImportState
from toolkit.compiler.importer.states import drop_states
from toolkit.compiler.importer.waits import loops, may_wait
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import has_effect
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.pipeline.compile import backend_of
from toolkit.compiler.pipeline.passes import THREADS
from toolkit.compiler.program import Program
from toolkit.compiler.settings import Settings
from toolkit.compiler.steps import locate
from toolkit.compiler.transforms.batches import Shares, batch_of, is_share, part_of, piece_of, share_of
from toolkit.compiler.turn import Turn
from toolkit.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from toolkit.graph.garbage import no_collection
from toolkit.limits.account import current, whole
from toolkit.limits.exhaustion import exhaustion

_GIVEN_BACK = 1 << 20  # bytes of an initialiser's arena, from which it does not outlive the first run


class Plan:
    """A compiled program with the arenas to run it in.

    Attributes:
        turn: what its steps take of the machine; None where they may have to wait for others.
        replays: its instances may be recorded (`backends.base.Replays`).
        packed: bytes of its packed constants, by what tells them apart; some are other plans' too.
        nbytes: of these and an arena.
    """

    def __init__(self, emitted: Executable, guards: list[Guard], excluded: list[str], turn: Turn | None = None):
        self.emitted = emitted
        self.turn = turn
        self.guards = guards
        self._excluded = excluded
        self.replays = emitted.replays
        self.packed = emitted.packed()
        self.nbytes = sum(self.packed.values()) + emitted.layout.size
        self._free: list[Instance] = []
        # most initialisers run once in a session; those that run again do not pay for it again and again
        self._gives_back = emitted.initialises and emitted.layout.size >= _GIVEN_BACK

    @property
    def notes(self) -> list[str]:
        """What was done or left to kernels, for people; of what becomes a CUDA graph only its runs tell."""
        return [*self.emitted.block.notes, *self._excluded]

    def holds(self) -> bool:
        """Whether the variables that were taken as constants have kept their arrays."""
        for cell, array in self.guards:  # noqa: SIM110 -- this runs on every step
            if cell.value is not array:
                return False
        return True

    def run(self, arguments: Sequence[Any], running: RunningStep, bad: list[Operation] | None = None) -> list[Any]:
        """Execute once. Several threads may: each takes an arena of its own.

        Args:
            bad: is given the operations whose results are not finite, where that is asked for.
        """
        free = self._free
        try:
            instance = free.pop()
        except IndexError:
            try:
                with compiling(running, "make_arena"):
                    instance = self._instantiate()
            except MemoryError as error:
                raise exhaustion(error, "the compiled step", alive=running.variables()) or error from None
        try:
            if bad is not None:
                results, found = instance.run_checked(arguments, running)
                bad += found
                return results
            if running.watcher is not None:
                results, entries, marks = instance.run_marked(arguments, running)
                running.watcher.ran_plan(entries, running.device_name, marks)
                return results
            return instance.run(arguments, running)
        except Exception as error:
            raise self._located(error, running) from error.__cause__
        finally:
            if self._gives_back:
                self._gives_back = False
                instance.close()
            else:
                free.append(instance)

    def run_from_host(self, arguments: Sequence[Any], running: RunningStep, boundary: HostSide) -> list[Any] | None:
        """Execute once, where that was recorded, from host memory to host memory; None where it was not."""
        return self._replayed(arguments, running, boundary) if self.replays else None

    def replay(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Likewise, if what was recorded last fits these arguments and the variables."""
        return self._replayed(arguments, None, None) if self.replays and self.holds() else None

    def _replayed(
        self, arguments: Sequence[Any], running: RunningStep | None, boundary: HostSide | None
    ) -> list[Any] | None:
        try:
            instance: Any = self._free.pop()
        except IndexError:
            return None
        try:
            if running is None or boundary is None:
                return instance.replay(arguments)
            return instance.run_from_host(arguments, running, boundary)
        except (InvalidArgumentError, FailedPreconditionError):  # the replay found what a kernel would have refused
            raise
        except Exception as error:
            raise InternalError(f"a plan failed: {type(error).__name__}: {error}") from error
        finally:
            self._free.append(instance)

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

    replays = False

    def __init__(self, share: Plan, shares: Shares):
        self.share = share
        self.emitted, self.guards, self.packed, self.nbytes = share.emitted, share.guards, share.packed, share.nbytes
        self.notes = [*share.notes, "the batch is run in shares, one for each thread"]
        self.turn = share.turn
        self.holds = share.holds
        self.make_ready = share.make_ready
        self._shares = shares

    def run(self, arguments: Sequence[Any], running: RunningStep, bad: list[Operation] | None = None) -> list[Any]:
        """Execute once; see `Plan.run`."""
        try:
            return self._shares.run(lambda share: self.share.run(share, running, bad), arguments)
        finally:
            THREADS.use(None)


def build(
    program: Program, arguments: Sequence[Any], running: RunningStep, settings: Settings, *, capture: bool = True
) -> Plan | SharedPlan:
    """Compile a program for the shapes of these arguments."""
    target = settings.target
    state, block = _lifted(program, arguments, running, capture=capture)
    batch = batch_of(block, target.batches) if settings.onednn and program.memory is None else None
    count = (settings.threads or THREADS.available()) if batch is not None else 1
    size = share_of(batch, count, target.batches) if batch is not None else None
    if batch is not None and size is not None:
        piece = piece_of(block, batch, size, settings.precision, target.batches)
        share = [part_of(argument, batch, 0, piece) for argument in arguments]
        shared_state, shared = _lifted(program, share, running, capture=capture)
        if is_share(block, shared, batch, piece):
            alone = replace(settings, threads=1)
            plan = _compiled(program, share, running, alone, shared_state, shared, capture=capture)
            return SharedPlan(plan, Shares(count, size, functools.partial(THREADS.use, 1), piece))
    return _compiled(program, arguments, running, settings, state, block, capture=capture)


@no_collection()
def _lifted(
    program: Program, arguments: Sequence[Any], running: RunningStep, *, capture: bool
) -> tuple[ImportState, Block]:
    with compiling(running, "import"):
        state = ImportState(running, Facts.of(program), capture=capture, on_host=program.memory is None)
        lifter = Lifter(state)
        lifter.lift(program, arguments)
        block = lifter.block
        block.drop_unused(has_effect)
        drop_states(block, has_effect)
        block.drop_unused(has_effect)
    return state, block


def _compiled(
    program: Program, arguments: Sequence[Any], running: RunningStep, settings: Settings,
    state: ImportState, block: Block, *, capture: bool,
) -> Plan:  # fmt: skip
    excluded: dict[str, str] = {}
    waits = may_wait(block) if program.memory is None else any(has_effect(operation) for operation in block.walk())
    turn = None if waits else Turn(loops(block))
    there: set[str] | None = None  # nodes of the block as it was lifted
    while True:  # each round excludes one of `there` that was not excluded yet, so there are at most as many
        try:
            with whole(), no_collection():
                emitted = backend_of(program)(block, settings, excluded, running)
        except NotSupportedError as refusal:
            # the last node that was fused is left out first; everything is lifted anew
            state, block = _lifted(program, arguments, running, capture=capture)
            if there is None:
                there = {step.node.name for operation in block.walk() for step in operation.steps}
            blamed = next((name for name in refusal.nodes if name in there and name not in excluded), None)
            if blamed is None:  # its kernel does not mend what is wrong: a variable of an impossible size
                raise UnstructuredError(str(refusal)) from None
            excluded[blamed] = refusal.reason
            assert len(excluded) <= len(there)
            continue
        return Plan(emitted, state.guards, [f"{n}: {why}" for n, why in excluded.items()], turn)
