"""The executor of compiled programs: a plan for each set of argument shapes, made when it is needed first."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from toolkit.compiler.backends.base import HostSide
from toolkit.compiler.importer.control import UnstructuredError
from toolkit.compiler.importer.facts import is_known
from toolkit.compiler.pipeline.passes import THREADS
from toolkit.compiler.plan import Plan, SharedPlan, build
from toolkit.compiler.program import Program
from toolkit.compiler.settings import Settings
from toolkit.compiler.stages import StagesError
from toolkit.errors import CancelledError, DeadlineExceededError, GraphmillError
from toolkit.forks import free_in_children
from toolkit.kernels.context import DEAD
from toolkit.kernels.device_memory import DeviceArray
from toolkit.limits.account import current
from toolkit.limits.exhaustion import exhaustion
from toolkit.runtime.probes.base import Manner, manner_of
from toolkit.runtime.steps.step import DeviceStep
from toolkit.runtime.steps.turns import TURNS

#: plans of a program that are kept whatever they take besides arenas and packed constants, and that are kept at most;
#: of more the one goes that has not been used for longest. Sentences of 5 to 35 words in batches of 1 to 5 are more
#: shapes than the former, and each step would be compiled anew: 74 milliseconds of a processor in place of 4
_FEW_PLANS, _MAX_PLANS = 16, 256
_MAX_BYTES = 1 << 29  # of arenas and packed constants of a program's plans, beyond the newest
#: what a plan takes besides, for each operation: 8.2 MB were measured of a MobileNetV3's with 96 of them, most of them
#: primitives (an attention decoder's, with 25 and two loops, took 0.76)
_OPERATION_BYTES = 88 << 10
_COLLECT_BYTES = 1 << 26  # of plans that are gone, after which their memory is given back
_COLLECT_PLANS = 128  # likewise plans: looking for garbage takes as long as a hundred small steps
_MAX_DEAD = 8  # plans for arguments of which some are dead
#: nodes of a program from which on it may run once uncompiled: with fewer, compiling takes a fifth of a second at most
LARGE = 4096
_MAX_REBUILDS = 4  # of plans whose variables changed; then variables are no longer taken as constants


#: results of a step, and what runs it again
FromHost: TypeAlias = tuple[list[Any], Callable[[Sequence[Any]], "list[Any] | None"]]


class Reference(Protocol):
    """An executor that runs node by node."""

    def run(self, arguments: Sequence[Any], running: DeviceStep) -> list[Any]: ...


class CompiledExecutor:
    """Runs a program by plans, one for each set of argument shapes.

    Args:
        reference: makes the executor that runs node by node: for probes, and for control flow without structure.
    """

    def __init__(self, program: Program, settings: Settings, reference: Callable[[Program], Reference]):
        self._program = program
        self._settings = settings
        self._make_reference = reference
        self._node_by_node: Reference | None = None
        self._by_tokens: Reference | None = None
        self._unplanned: str | None = None  # why the program runs node by node, whatever its arguments
        self._too_large: dict[tuple[Any, ...], str] = {}  # arguments for which there is no room for a plan
        self._branches = False  # they were taken in more ways than there are plans for
        self._threads = settings.threads
        self._is_first = settings.once and settings.stages is None
        self._plans: OrderedDict[tuple[Any, ...], Plan | SharedPlan] = OrderedDict()
        self._lock = threading.Lock()
        self._making_another = threading.Lock()
        free_in_children(self, "_lock", "_making_another")
        self._rebuilds = 0
        self._gone_plans = self._gone_bytes = 0
        self._generation: tuple[Any, int] | None = None

    def run(self, arguments: Sequence[Any], running: DeviceStep) -> list[Any]:
        """Execute once: the values of _Arg nodes in, the values of _Retval nodes out."""
        threads = self._threads_now()
        if TURNS.threads is not None and self._threads is None and running.probe is None and not THREADS.is_chosen:
            return self._run_beside_others(arguments, running, threads)
        return self._run(arguments, running, threads)

    def ran_before(self) -> None:
        """The program was run in another way: what comes is not its first run."""
        self._is_first = False

    def _threads_now(self) -> int | None:
        """How many threads a step may use: as many as other processes leave, where it is the CPU that computes it."""
        chosen = self._threads is not None or self._program.device_type != "CPU"
        return self._threads if chosen else THREADS.free

    def _run_beside_others(self, arguments: Sequence[Any], running: DeviceStep, threads: int | None) -> list[Any]:
        """Execute once while other callers' steps run, by a plan that leaves them processors.

        Under a limit of memory there is none.
        """
        key = self._key(arguments)
        wide = self._plans.get(key if threads is None else (*key, threads))
        fewer = None if wide is None or current() is not None else TURNS.narrower(wide.turn)
        if fewer is None or (threads is not None and threads <= fewer):
            return self._run(arguments, running, threads)
        return self._run(arguments, running, fewer)

    def _run(
        self, arguments: Sequence[Any], running: DeviceStep, threads: int | None, *, waits: bool = False
    ) -> list[Any]:
        """Execute once, with so many threads; None for all.

        Where there is a plan for another number of threads, one caller makes the one for this number, and the others go
        on with that.

        Args:
            waits: until the plan is there, whoever makes it.
        """
        if threads is not None or THREADS.is_set:
            THREADS.use(threads)
        if running.probe is not None and self._is_looked_at(manner := manner_of(running.probe)):
            return self._probed(manner).run(arguments, running)
        if self._unplanned is not None:
            return self._reference().run(arguments, running)
        key = shapes = self._key(arguments)
        if threads != self._threads:
            key = (*shapes, threads)
        plan = self._plans.get(key)
        resources = running.resources
        if plan is None or not plan.holds() or self._generation != (resources, resources.generation):
            if key in self._too_large or (plan is None and DEAD in key and self._has_enough(key)):
                return self._reference().run(arguments, running)
            if self._is_first:
                self._is_first = False
                results = self._run_once(arguments, running)
                if results is not None:
                    return results
            other = None if waits or plan is not None else self._other_threads(shapes, resources)
            if other is None:
                plan = self._planned(key, arguments, running, threads)
            elif not (making := self._making_another).acquire(blocking=False):
                return self._run(arguments, running, other[0], waits=True)
            else:
                try:
                    plan = self._planned(key, arguments, running, threads)
                finally:
                    making.release()
            if plan is None:
                return self._reference().run(arguments, running)
        elif len(self._plans) > _FEW_PLANS:
            self._used(key)
        if running.probe is not None and manner_of(running.probe) is Manner.CHECKED:
            from toolkit.runtime.executors.checked import run_checked

            return run_checked(plan, self._program, arguments, running)
        return plan.run(arguments, running) if plan.turn is None else TURNS.run(plan, arguments, running)

    def _other_threads(self, shapes: tuple[Any, ...], resources: Any) -> tuple[int | None] | None:
        """For how many threads there is a plan for these arguments; None where there is none."""
        if self._generation != (resources, resources.generation):
            return None
        for known in list(self._plans):  # of many shapes; pairs would be made one by one, while others change the order
            if known == shapes:
                threads = self._threads
            elif known[:-1] == shapes and (known[-1] is None or isinstance(known[-1], int)):
                threads = known[-1]
            else:
                continue
            plan = self._plans.get(known)
            if plan is not None and plan.holds():
                return (threads,)
        return None

    def _used(self, key: tuple[Any, ...]) -> None:
        """Have the plan be the last to go."""
        if len(self._plans) > _FEW_PLANS:
            with suppress(KeyError):  # another thread has dropped it this very moment
                self._plans.move_to_end(key)

    def _run_once(self, arguments: Sequence[Any], running: DeviceStep) -> list[Any] | None:
        """The results of a first run for which nothing is compiled; None where it is worth compiling."""
        if len(self._program.steps) < LARGE:
            return None
        from toolkit.runtime.executors.once import run_once  # large programs alone need it

        return run_once(self._program, arguments, running)

    def run_from_host(self, arguments: Sequence[Any], running: DeviceStep, boundary: HostSide) -> FromHost | None:
        """Execute once, from host memory to host memory, where the program was recorded; None where it was not.

        Returns:
            the results, and what runs the same again for other arguments: it gives None where that would not be the
            same.
        """
        if running.probe is not None or self._unplanned is not None:
            return None
        key = self._key(arguments)
        if (threads := self._threads_now()) != self._threads:
            key = (*key, threads)
        plan, resources = self._plans.get(key), running.resources
        generation = resources.generation
        if not isinstance(plan, Plan) or not plan.replays or self._generation != (resources, generation):
            return None
        results = plan.run_from_host(arguments, running, boundary) if plan.holds() else None
        if results is None:
            return None
        self._used(key)
        by_value = [(k, key_of(arguments[k])) for k in self._program.by_value]

        def again(given: Sequence[Any]) -> list[Any] | None:
            if resources.generation != generation:
                return None
            for position, known in by_value:
                if key_of(given[position]) != known:
                    return None
            self._used(key)
            return plan.replay(given)

        return results, again

    def _planned(
        self, key: tuple[Any, ...], arguments: Sequence[Any], running: DeviceStep, threads: int | None
    ) -> Plan | SharedPlan | None:
        """The plan for these arguments and threads; None where the program runs node by node, and why is kept then.

        Raises:
            ResourceExhaustedError: compiling wants more memory than the machine has left.
            CancelledError, DeadlineExceededError: the step ended meanwhile.
            StagesError: what passes do was to be written, and cannot be.
            Exception: the compiler stumbled, and mistakes of it are errors (`Settings.strict`).
        """
        try:
            return self._build(key, arguments, running, threads)
        except UnstructuredError as error:
            self._unplanned = f"runs node by node in the dataflow executor: {error}"
        except MemoryError as error:
            # under a limit, node by node less may be there at one time; else the node is told that wants too much
            if current() is None:
                raise exhaustion(error, "compiling the step") or error from None
            self._too_large[key] = "runs node by node: a plan wants more memory than the limits allow"
        except (CancelledError, DeadlineExceededError, StagesError):
            raise
        except Exception as error:
            if self._settings.strict or self._settings.verify:
                raise
            # a mistake of the compiler costs speed, never a result
            told = error.message if isinstance(error, GraphmillError) else f"{type(error).__name__}: {error}"
            self._unplanned = f"runs node by node, for the compiler failed: {told}"
        return None

    def notes(self) -> list[str]:
        """What the compiler left to kernels until now, and why, in lines."""
        told = [note for plan in list(self._plans.values()) for note in plan.notes]
        told += self._too_large.values()
        if self._branches:
            told.append(f"branches are taken in more than {_MAX_DEAD} ways: what is new runs node by node")
        if self._unplanned is not None:
            told.append(self._unplanned)
        return list(dict.fromkeys(told))

    def explain(self, arguments: Sequence[Any], running: DeviceStep) -> list[str]:
        """What the plan for these arguments does, in lines; nothing is run."""
        from toolkit.compiler.explain import explain
        from toolkit.compiler.ir.text.printer import print_block

        key = self._key(arguments)
        plan = None
        if self._unplanned is None and key not in self._too_large:
            plan = self._plans.get(key) or self._planned(key, arguments, running, self._threads)
        if plan is None:
            return [self._unplanned or self._too_large[key]]
        return [*explain(plan.emitted, plan.notes, len(plan.guards)), *print_block(plan.emitted.block).splitlines()]

    def _has_enough(self, key: tuple[Any, ...]) -> bool:
        """Whether there are so many ways in which branches were taken that others are run node by node."""
        enough = sum(DEAD in known for known in list(self._plans)) >= _MAX_DEAD
        self._branches = self._branches or enough
        return enough

    def known(self) -> list[str]:
        """The plans that there are, in lines."""
        from toolkit.compiler.explain import explain

        plans = list(self._plans.values())
        lines = [line for plan in plans for line in explain(plan.emitted, plan.notes, len(plan.guards))]
        return [*lines, self._unplanned] if self._unplanned is not None else lines

    def _key(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        key = _key(arguments)
        by_value = self._program.by_value
        if not by_value:
            return key
        values = [(i, a.tobytes()) for i in by_value if is_known(a := arguments[i])]
        return (*key, *values)

    def _reference(self) -> Reference:
        if self._node_by_node is None:
            self._node_by_node = self._make_reference(self._program)
        return self._node_by_node

    def _is_looked_at(self, manner: Manner) -> bool:
        """Whether a probe sees something else than plans; kernels are all that there is on devices with a memory."""
        if manner in (Manner.PLANNED, Manner.CHECKED):
            return self._program.memory is not None
        return manner is not Manner.COMPILED

    def _probed(self, manner: Manner) -> Reference:
        if manner in (Manner.NODE_BY_NODE, Manner.PLANNED, Manner.CHECKED):
            return self._reference()
        if self._by_tokens is None:
            from toolkit.runtime.executors.tokens import TokenExecutor

            self._by_tokens = TokenExecutor(self._program)
        return self._by_tokens

    def _build(
        self, key: tuple[Any, ...], arguments: Sequence[Any], running: DeviceStep, threads: int | None
    ) -> Plan | SharedPlan:
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
            settings = self._settings if threads == self._threads else replace(self._settings, threads=threads)
            plan = build(self._program, arguments, running, settings, capture=self._rebuilds <= _MAX_REBUILDS)
            if current() is not None:
                plan.make_ready()
            self._plans[key] = plan
            while len(self._plans) > 1 and self._are_too_many():
                self._let_go(self._plans.popitem(last=False)[1])
            return plan

    def _are_too_many(self) -> bool:
        """Whether a plan has to go; a packed constant that several have counts once."""
        packed: dict[int, int] = {}
        arenas = besides = 0
        plans = list(self._plans.values())  # other threads change their order
        for plan in plans:
            packed |= plan.packed
            arenas += plan.emitted.layout.size
            besides += _OPERATION_BYTES * len(plan.emitted.block.operations)
        held = arenas + sum(packed.values())
        few = len(plans) <= _FEW_PLANS
        return len(plans) > _MAX_PLANS or held > _MAX_BYTES or (not few and held + besides > _MAX_BYTES)

    def _let_go(self, plan: Plan | SharedPlan) -> None:
        """Have memory given back once it is much: plans are full of cycles, and the collector does not see sizes."""
        self._gone_plans += 1
        self._gone_bytes += plan.nbytes
        if self._gone_bytes > _COLLECT_BYTES or self._gone_plans >= _COLLECT_PLANS:
            self._gone_plans = self._gone_bytes = 0
            gc.collect()


def key_of(value: Any) -> Any:
    """What is compared of an argument whose value a plan depends on."""
    return (value.tobytes(), value.shape, value.dtype) if isinstance(value, _ARRAYS[:2]) else type(value)


def _key(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """What a plan depends on: shapes and types of arrays, the class of other things."""
    return tuple([(a.shape, a.dtype) if isinstance(a, _ARRAYS) else a if a is DEAD else type(a) for a in arguments])


_ARRAYS = (np.ndarray, np.generic, DeviceArray)
