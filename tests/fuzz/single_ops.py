"""One op at a time, with any inputs and attributes that a file can give it.

    python -m tests.fuzz.single_ops --count 5000 --seed 1 [--op Conv2D] [--tensorflow]

Cases are rows of the op suites with something changed, and nodes made from nothing but their OpDef. `judge` runs one
node by node: a result, or an error with a status that is not INTERNAL or UNKNOWN. What runs is said before it runs,
so that a crash or a hang of the child has a name.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schemas import graph_pb2
from tests.fuzz import single_op_values as values
from tests.fuzz.judge import is_tensorflows
from tests.fuzz.reference import HEADINGS
from tests.kernels import tables
from toolkit.errors import BY_CODE, GraphmillError, OpError
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import opdefs
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node

#: what a model is not run for here: ops that wait for another machine, or end the process
_LEFT_OUT = ("DataService", "Collective", "Nccl", "Tpu", "TPU", "Rpc", "Debug")
#: seconds of one case, bytes of a child beyond what it begins with
_HANG, _MEMORY = 20.0, 3 << 30
_STEP_MS = 300  # for ops that wait: an empty queue is no mistake


@dataclass(frozen=True)
class Case:
    """A graph of one node with what it needs.

    Attributes:
        name: the op, the seed and the number that make it again.
        graph: a GraphDef, its node called "node".
        fetches: the outputs whose values can be fetched; the node itself where there are none.
    """

    name: str
    graph: bytes
    fetches: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """Something that must not be: its class, the case, what was said."""

    key: str
    case: Case
    detail: str


# -- making cases ----------------------------------------------------------------------------------------


def ops() -> list[str]:
    """The ops that are tried: those with a kernel."""
    from toolkit.kernels import registry

    known = {entry.op for entry in registry.all_kernels("CPU")}
    return sorted(op for op in known if not any(part in op for part in _LEFT_OUT) and not op.startswith("_"))


def rows() -> dict[str, list[Any]]:
    """The rows of the op suites by op: nodes that run."""
    found: dict[str, list[Any]] = collections.defaultdict(list)
    for name in tables.modules():
        try:
            module = importlib.import_module(name)
        except ImportError:  # it needs what is not installed here
            continue
        for value in list(vars(module).values()):
            for mark in getattr(value, "pytestmark", ()):
                if mark.name == "parametrize" and mark.args[0] == ("case", "device"):
                    for case, _ in mark.args[1]:
                        found[case.op].append(case)
    return found


def cases(seed: int, only: Sequence[str] | None = None) -> Iterator[Case]:
    """Cases without end; every op has its turn."""
    known = rows()
    names = list(only or ops())
    number = 0
    while True:
        dice = random.Random(f"{seed} {number}")
        op = names[number % len(names)] if number < len(names) else dice.choice(names)
        made = None
        with contextlib.suppress(GraphmillError, OverflowError, ValueError, AssertionError):
            # what cannot even be written as a file is no case
            made = _case(dice, op, known.get(op, []), f"{op} {seed} {number}")
        if made is not None:
            yield made
        number += 1


def _case(dice: random.Random, op: str, known: list[Any], name: str) -> Case | None:
    graph = Graph()
    values.add_functions(graph)
    row = dice.choice(known) if known and dice.random() < 0.75 else None
    attrs, inputs = _from_row(dice, row) if row is not None else _from_definition(dice, op)
    definition = opdefs.get(op)
    types = definition.expand(definition.inputs, attrs, op)
    sources: list[Any] = []
    controls: list[Node] = []
    for position, dtype in enumerate(types):
        given = inputs[position] if position < len(inputs) else None
        source, ready = _source(dice, graph, f"in{position}", op, dtype, given)
        sources.append(source)
        controls += ready
    node = graph.add(op, "node", sources, control_inputs=controls, attrs=attrs)
    outputs = node.output_types
    fetches = [f"node:{i}" for i, dtype in enumerate(outputs) if dtype.base.kind not in "rv"][:20]
    serialized = graph.to_proto().SerializeToString()
    return Case(name, serialized, tuple(fetches) or ("node",))


def _source(dice: random.Random, graph: Graph, name: str, op: str, dtype: DType, value: Any) -> tuple[Any, list[Node]]:
    """A node that gives a value of this type, and what must run before it is used."""
    base = dtype.base
    if base.kind in "rv":
        return values.add_resource(dice, graph, name, op, base)
    if value is None or value.dtype != base.numpy:
        value = values.tensor(dice, base)
    constant = graph.add("Const", name, attrs={"dtype": base, "value": from_array(value, base)})
    if not dtype.is_ref:
        return constant, []
    attrs: dict[str, Any] = {"dtype": base, "shape": values.shape_of(value)}
    variable = graph.add("VariableV2", f"{name}/variable", attrs=attrs)
    assign = graph.add("Assign", f"{name}/assign", [variable, constant], attrs={"T": base})
    return variable, [assign] if dice.random() < 0.95 else []


def _from_row(dice: random.Random, row: Any) -> tuple[dict[str, Any], list[Any]]:
    """A row with up to three changes."""
    from tests.kernels.op_suite import prepare  # type: ignore[import-not-found]

    ready = prepare(row)
    attrs, inputs = dict(ready.attrs), list(ready.inputs)
    if any(not isinstance(value, np.ndarray) for value in inputs):
        raise ValueError("a row with handles")
    definition = opdefs.get(row.op)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        if inputs and dice.random() < 0.7:
            position = dice.randrange(len(inputs))
            inputs[position] = values.changed(dice, inputs[position], ready.types[position].base)
        else:
            _change_attr(dice, definition, attrs)
    return attrs, inputs


def _change_attr(dice: random.Random, definition: Any, attrs: dict[str, Any]) -> None:
    free = [attr for attr in definition.attrs.values() if attr.name not in definition.inferred_attrs]
    if not free:
        return
    attr = dice.choice(free)
    if not attr.name.startswith("_"):
        attrs[attr.name] = values.attribute(dice, attr, attrs.get(attr.name, attr.default))


def _from_definition(dice: random.Random, op: str) -> tuple[dict[str, Any], list[Any]]:
    """Attributes from their definitions, and no inputs: they are made to fit the types."""
    attrs: dict[str, Any] = {}
    definition = opdefs.get(op)
    for attr in definition.attrs.values():
        if not attr.has_default or attr.name in definition.inferred_attrs or dice.random() < 0.4:
            attrs[attr.name] = values.attribute(dice, attr, attr.default, small=attr.name in definition.inferred_attrs)
    common = values.shape(dice)
    types = definition.expand(definition.inputs, attrs, op)
    return attrs, [values.tensor(dice, t.base, common) if t.base.kind not in "rv" else None for t in types]


# -- judging ---------------------------------------------------------------------------------------------


def judge(case: Case) -> Finding | None:
    """Run a case node by node, in this process."""
    status, detail = run(case)
    if status in ("OK", "CANCELLED", "DEADLINE_EXCEEDED") or status in _STATUSES or is_tensorflows(detail):
        return None
    return Finding(f"{status}: {case.name.split()[0]}", case, detail)


_STATUSES = {cls.status for cls in BY_CODE.values()} - {"INTERNAL", "UNKNOWN"}


def run(case: Case, *, tokens: bool = False) -> tuple[str, str]:
    """The status of a run, and what was said of it; GRAPH when the graph itself was refused."""
    from toolkit.runtime.session import Session

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing may reach a user's terminal
            graph = Graph.from_proto(graph_pb2.GraphDef.FromString(case.graph))
            with Session(graph, force_tokens=tokens) as session:
                results: list[Any] = session.run(list(case.fetches), timeout_ms=_STEP_MS)
            for name, result in zip(case.fetches, results, strict=True):
                if ":" in name:
                    node = graph.node(name.split(":")[0])
                    wanted = node.output_types[int(name.split(":")[1])].base
                    found = object if isinstance(result, bytes) else getattr(result, "dtype", None)
                    if found != wanted.numpy:
                        return "WRONG TYPE", f"{name} is {type(result)} {found}, not {wanted}"
    except OpError as error:
        return error.status, str(error)
    except GraphmillError as error:
        return "INVALID_ARGUMENT", str(error)
    except Exception as error:
        import traceback

        where = traceback.extract_tb(error.__traceback__)[-1]
        return "TRACEBACK", f"{type(error).__name__}: {error} at {where.filename}:{where.lineno}"
    return "OK", " ".join(str(getattr(r, "shape", "")) for r in results or () if r is not None)


def run_tensorflow(case: Case) -> tuple[str, str]:
    """What TensorFlow makes of it."""
    import tensorflow

    tf: Any = tensorflow
    v1: Any = tf.compat.v1
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    definition = v1.GraphDef.FromString(case.graph)
    try:
        with tf.Graph().as_default() as graph:
            v1.import_graph_def(definition, name="")
            with v1.Session(graph=graph, config=config) as session:
                options = v1.RunOptions(timeout_in_ms=_STEP_MS * 10)
                results = session.run(list(case.fetches), options=options)
    except tf.errors.OpError as error:
        lines = [line for line in error.message.split("\n") if line and line not in HEADINGS]
        said = (lines or [""])[0]
        no_kernel = "No OpKernel was registered" in error.message or "No registered" in error.message
        return "UNIMPLEMENTED" if no_kernel else BY_CODE[error.error_code].status, said
    except Exception as error:
        return "INVALID_ARGUMENT", str(error).split("\n")[0]
    return "OK", " ".join(str(getattr(r, "shape", "")) for r in results if r is not None)


# -- children --------------------------------------------------------------------------------------------


def in_children(given: Sequence[Case], runner: Any, memory: int = _MEMORY) -> Iterator[tuple[Case, str, str]]:
    """Run cases in a forked child; another one goes on after a crash or a hang. (case, status, detail) of each."""
    at = 0
    while at < len(given):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _work(given[at:], runner, write, memory)
            os._exit(0)
        os.close(write)
        ended = False
        with os.fdopen(read, "rb") as pipe:
            while not ended and at < len(given):
                lines = _line(pipe, child)
                if lines is None:
                    ended = True
                    continue
                status, _, detail = lines.partition("\t")
                yield given[at], status, detail
                at += 1
        _, code = os.waitpid(child, 0)
        if ended and at < len(given):
            hang = os.WIFSIGNALED(code) and os.WTERMSIG(code) == signal.SIGALRM
            yield given[at], "HANG" if hang else "SIGNAL", f"exit status {code}"
            at += 1


def _line(pipe: Any, child: int) -> str | None:
    del child
    line = pipe.readline()
    return line.decode().rstrip("\n") if line.endswith(b"\n") else None


def _work(given: Sequence[Case], runner: Any, write: int, memory: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with os.fdopen(write, "wb") as pipe:
            for case in given:
                signal.setitimer(signal.ITIMER_REAL, _HANG)  # its default ends the child
                status, detail = runner(case)
                signal.setitimer(signal.ITIMER_REAL, 0)
                pipe.write(f"{status}\t{detail}".replace("\n", " ").encode("utf-8", "replace") + b"\n")
                pipe.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases and print what is found, by class; exit status 1 when there is anything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op", action="append")
    parser.add_argument("--tensorflow", action="store_true", help="compare statuses with TensorFlow's")
    parser.add_argument("--out", type=Path, help="a folder for the graphs of what is found")
    options = parser.parse_args(arguments)
    os.environ["GRAPHMILL_SEGMENTS"] = "off"
    source = cases(options.seed, options.op)
    started = time.monotonic()
    found: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    done = 0
    while done < options.count:
        batch = [next(source) for _ in range(min(200, options.count - done))]
        done += len(batch)
        mine = list(in_children(batch, run))
        theirs = list(in_children(batch, run_tensorflow, 0)) if options.tensorflow else [None] * len(batch)
        for (case, status, detail), other in zip(mine, theirs, strict=True):
            key = None if is_tensorflows(detail) else _key(status, other[1] if other else None)
            if key is None:
                continue
            said = detail + (f" | TensorFlow: {other[1]} {other[2]}" if other else "")
            found[f"{key} {case.name.split()[0]}"].append((case.name, said))
            if options.out:
                options.out.mkdir(parents=True, exist_ok=True)
                (options.out / (case.name.replace(" ", "_") + ".pb")).write_bytes(case.graph)
    for key, entries in sorted(found.items()):
        print(f"{len(entries):4} {key}\n       {entries[0][0]}: {entries[0][1][:300]}")
    print(f"{done} cases, {sum(map(len, found.values()))} findings in {time.monotonic() - started:.0f} s")
    return 1 if found else 0


def _key(status: str, other: str | None) -> str | None:
    """The class of a finding, or None."""
    if status != "OK" and status not in _STATUSES:
        return None if other == status and status in ("INTERNAL", "UNKNOWN") else status
    if other is None or other in ("HANG", "SIGNAL", "INTERNAL", "UNKNOWN", "UNIMPLEMENTED", "DEADLINE_EXCEEDED"):
        return None
    if status in ("UNIMPLEMENTED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"):
        return None
    if (status == "OK") != (other == "OK"):
        return "ACCEPTED" if status == "OK" else "REFUSED"
    return "STATUS" if status != other else None


if __name__ == "__main__":
    sys.exit(main())
