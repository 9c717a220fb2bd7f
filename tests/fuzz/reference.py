"""TensorFlow as the oracle: the same graph, feeds and fetches, in children of a process that has it imported.

    Reference() starts it; `ask` sends a run with what we made of it; `answers` gives what differs.

Statuses are compared as far as they mean the same to a user: that a run succeeds, or whose fault its failure is.
Where TensorFlow dies (its checks abort the process), or takes too long, nothing is said.
"""

from __future__ import annotations

import io
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case, Finding
from tests.fuzz.otherwise import REFUSED, REFUSED_SAYING, TAKEN, VALUES

#: seconds for one run
_TIMEOUT = 30
#: lines that TensorFlow puts above what it has to say
HEADINGS = ("Graph execution error:", "Detected at node 'node' defined at (most recent call last):", "Node: 'node'")
#: characters of what either says
_SHOWN = 400
#: bytes of addresses for one run: TensorFlow imported, and what a graph of a few tensors needs beside it
_MEMORY = 8 << 30
#: statuses that say that the graph or what it was given is wrong: which of them it is differs by who notices first
_INPUT = {"INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION", "NOT_FOUND", "GraphError", "UsageError",
          "FormatError", "UNIMPLEMENTED", "ALREADY_EXISTS"}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A run and what we made of it.

    Attributes:
        number: of its case.
        status: how it ended: "OK" or what failed.
        result: the .npz of its results.
        said: the line that it ended with.
    """

    number: int
    case: Case
    command: Sequence[str]
    status: str
    result: bytes | None
    said: str = ""


class Reference:
    """The process that runs TensorFlow."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.reference"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2], env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "4", "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        self.counts: dict[str, int] = {}

    def ask(self, asked: Asked) -> list[Finding]:
        """Have a run judged."""
        assert self._process.stdin is not None and self._process.stdout is not None
        _send(self._process.stdin, asked)
        how, findings = _receive(self._process.stdout)
        self.counts[how] = self.counts.get(how, 0) + 1
        return findings

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def _send(stream: Any, what: Any) -> None:
    data = pickle.dumps(what)
    stream.write(len(data).to_bytes(8, "little") + data)
    stream.flush()


def _receive(stream: Any) -> Any:
    head = stream.read(8)
    return pickle.loads(stream.read(int.from_bytes(head, "little"))) if len(head) == 8 else None


def serve() -> None:
    """Answer until standard input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what TensorFlow prints is no answer
    import tensorflow as tf

    import toolkit.formats.arrays.given  # noqa: F401  # imported before the children are forked

    while (asked := _receive(requests)) is not None:
        with tempfile.TemporaryDirectory() as folder:
            _send(answers, _in_child(tf, asked, folder))


def _in_child(tf: Any, asked: Asked, folder: str) -> tuple[str, list[Finding]]:
    receive, send = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(receive)
        signal.alarm(_TIMEOUT)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        os.chdir(folder)  # where files go that are named in a graph
        with os.fdopen(send, "wb") as pipe:
            pipe.write(pickle.dumps(_judge(tf, asked)))
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else ("TensorFlow died", [])


def _judge(tf: Any, asked: Asked) -> tuple[str, list[Finding]]:
    import numpy as np

    from tests.fuzz.executors import arrays, differs

    theirs, values = _run(tf, asked)
    command = tuple(asked.command)
    # of what is fed, TensorFlow converts more; a GraphmillError is that files hold no such strings
    if theirs == "unsupported" or asked.status in ("UsageError", "GraphmillError"):
        return "unsupported", []
    single = asked.case.label if asked.case.kind == "ops" else ""
    refused = single in REFUSED or REFUSED_SAYING.search(asked.said)
    if (theirs == "OK" and refused) or (asked.status == "OK" and single in TAKEN):
        return "otherwise on purpose", []
    if theirs in ("INTERNAL", "UNKNOWN") and asked.status == "OK":
        return "TensorFlow fails", []
    if (theirs == "OK") != (asked.status == "OK"):
        if theirs == "OK" and asked.status in ("UNIMPLEMENTED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED"):
            return "we do not have it", []
        key = f"tensorflow:{_class(asked.status)} instead of {_class(theirs)}:{_ops(asked.case)}"
        return "differs", [
            Finding(key, command, f"{asked.status}: {asked.said[:_SHOWN]}\nin TensorFlow {theirs}: {_shown(values)}")
        ]
    if theirs != "OK":
        return "both fail", []
    if single in VALUES:
        return "otherwise on purpose", []
    got = arrays(asked.result)
    for name, value in values.items():
        wanted = np.asarray(value)
        if wanted.dtype.kind not in "fiubc" or wanted.dtype.itemsize > 8:
            continue
        difference = differs(got.get(name), wanted, exact=asked.case.exact)
        if difference and difference[0] != "missing":
            key = f"tensorflow:{difference[0]}:{_ops(asked.case)}"
            return "differs", [Finding(key, command, f"{name}: {difference[1]}")]
    return "same", []


def _shown(values: Any) -> str:
    """What went wrong, or what kind of values there are."""
    if isinstance(values, str):
        return values[:_SHOWN]
    kinds = (
        f"{name} {getattr(value, 'dtype', '')}{list(getattr(value, 'shape', ()))}" for name, value in values.items()
    )
    return ", ".join(kinds)[:_SHOWN]


def _class(status: str) -> str:
    return "an error of the input" if status in _INPUT else status


def _ops(case: Case) -> str:
    """The ops of a small graph, which tell classes apart; of a large one nothing."""
    from tests.fuzz.executors import nodes_of

    if case.kind == "ops":  # what makes its inputs is nothing that is tried
        return case.label
    ops = sorted({node.op for node in nodes_of(case)} - {"Const", "Placeholder", "Identity", "NoOp"})
    return "+".join(ops) if len(ops) <= 3 else "network"


def _run(tf: Any, asked: Asked) -> tuple[str, Any]:
    """(status, values by name or what went wrong)."""
    import numpy as np

    v1, files = tf.compat.v1, asked.case.files
    line = list(asked.command)
    fetches, targets = (
        [part for at, word in enumerate(line) for part in _values(word, line, at, option)]
        for option in ("--fetch", "--target")
    )
    feeds: dict[str, Any] = {}
    if "feeds.npz" in files:
        with np.load(io.BytesIO(files["feeds.npz"]), allow_pickle=False) as file:
            feeds = {name if ":" in name else f"{name}:0": file[name] for name in file.files}
    meta = v1.MetaGraphDef()
    graph = v1.GraphDef()
    data = files.get("model.pb")
    if data is None:  # taken away to make the case smaller
        return "unsupported", ""
    try:
        if "--init" in line:
            meta.ParseFromString(data)
            graph = meta.graph_def
        else:
            graph.ParseFromString(data)
        with tf.Graph().as_default() as imported:
            tf.import_graph_def(graph, name="")
            config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            options = v1.RunOptions(timeout_in_ms=_TIMEOUT * 500)
            with v1.Session(graph=imported, config=config) as session:
                if "--init" in line:
                    session.run("init")
                names = [name if ":" in name else f"{name}:0" for name in fetches]
                return "OK", dict(
                    zip([*fetches, *targets], session.run([*names, *targets], feeds, options), strict=True)
                )
    except tf.errors.OpError as error:
        text = " ".join(line for line in error.message.split("\n") if line and line not in HEADINGS)
        if "No OpKernel" in text or "not supported" in text or error.error_code == 12 or "Could not find" in text:
            return "unsupported", text[:300]
        return _status(error), text[:300]
    except Exception as error:  # the importer's and the session's own checks
        return "INVALID_ARGUMENT", str(error)[:300]


def _status(error: Any) -> str:
    from toolkit.errors import BY_CODE

    found = BY_CODE.get(error.error_code)
    return found.status if found else "UNKNOWN"


def _values(word: str, line: list[str], at: int, option: str) -> list[str]:
    if word.startswith(option + "="):
        return word[len(option) + 1 :].split(",")
    return line[at + 1].split(",") if word == option else []


if __name__ == "__main__":
    serve()
