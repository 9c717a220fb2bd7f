"""A worker's requests, damaged: sequences of real ones, some of them mutated, against a server in a process of its own.

    python -m tests.fuzz.requests --seed 1 --count 200

What is found: the process ends, does not answer any more, or answers by a status of our own mistakes (INTERNAL).
"""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import collections
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np

from schemas import worker_pb2
from tests import patience
from tests.cluster.tensorflow_servers import ServerProcess, free_ports
from tests.fuzz import messages
from toolkit import client as gm
from toolkit.cluster.rpc.channels import channel
from toolkit.cluster.rpc.services import WORKER, methods
from toolkit.formats.arrays.tensor import from_array
from toolkit.passes.partitioning.partition import by_task, split
from toolkit.passes.pruning.client_graph import CLIENT, feed_key, fetch_key, rewrite_for_partial_run
from toolkit.runtime.steps.rendezvous import make_key

_PS, _OTHER = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"
#: what all tensors of the server may take: much more than any real request here, much less than the machine has
_MEMORY = 1 << 30
#: seconds for a call that may rightly wait, as for a tensor that nobody sends; then it is cancelled
_WAIT = 0.15
_INTERNAL = 13
ops = gm.ops


def _graphs() -> list[tuple[Any, Any]]:
    """Graphs that take x and give y, with a value of x: a step, a loop, a queue, a tensor that crosses."""
    with gm.Graph().as_default() as training, training.device(_PS):
        x = gm.placeholder(gm.float32, [None, 3], name="x")
        weights = ops.variable_v2(shape=[3, 2], dtype=gm.float32, name="weights")
        start = ops.assign(weights, np.ones((3, 2), np.float32), name="start")
        with training.control_dependencies([start]):
            product = ops.mat_mul(x, ops.identity(weights))
        ops.relu(product, name="y")
    with gm.Graph().as_default() as loop, loop.device(_PS):
        x = gm.placeholder(gm.float32, [2], name="x")
        _, looped = gm.while_loop(lambda n, v: ops.less(n, 3), lambda n, v: (ops.add(n, 1), ops.mul(v, 2.0)), [0, x])
        ops.identity(looped, name="y")
    with gm.Graph().as_default() as queue, queue.device(_PS):
        x = gm.placeholder(gm.string, [], name="x")
        handle = ops.fifo_queue_v2(component_types=[gm.string], name="queue")
        put = ops.queue_enqueue_v2(handle, [x])
        with queue.control_dependencies([put]):
            ops.identity(ops.queue_dequeue_v2(handle, component_types=[gm.string])[0], name="y")
    with gm.Graph().as_default() as crossing:
        with crossing.device(_PS):
            x = gm.placeholder(gm.float32, [2], name="x")
            sent = x + 1.0
            ops.mul(x, 3.0, name="y")
        with crossing.device(_OTHER):
            ops.neg(sent, name="far")
    made: list[tuple[Any, Any]] = [(training, np.ones((2, 3), np.float32)), (loop, np.ones(2, np.float32))]
    made += [(queue, np.array(b"text", object)), (crossing, np.ones(2, np.float32))]
    return [(graph.core, value) for graph, value in made]


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        statuses: how calls ended, by method and code.
        findings: what is wrong, in lines.
    """

    statuses: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)
    findings: list[str] = field(default_factory=list)
    requests: int = 0


class Target:
    """The server, and real requests for it."""

    def __init__(self) -> None:
        ports = free_ports(2)
        jobs = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
        settings = {"jobs": jobs, "job": "ps", "task": 0, "memory": _MEMORY}
        line = [sys.executable, "-m", "tests.cluster.worker_process", json.dumps(settings)]
        self.process = ServerProcess(line, "ps/0")
        assert self.process.wait_until_ready(), self.process.errors
        self._methods = methods(WORKER)
        self._channel = channel(jobs["ps"][0])
        self._calls = {name: self._channel.unary_unary(each.path) for name, each in self._methods.items()}
        status = worker_pb2.GetStatusResponse.FromString(self.call("GetStatus", b"", patience.HUNG))
        self._incarnation = status.device_attributes[0].incarnation
        self._parts = [(self._part(graph), value) for graph, value in _graphs()]

    def _part(self, graph: Any) -> Any:
        """What the server has of a graph."""
        x, y = graph.node("x").output(), graph.node("y").output()
        client = rewrite_for_partial_run(graph, [x], [y], [graph.node("far")] if "far" in graph else [])
        parts = split(client, by_task, incarnation=lambda _: self._incarnation)
        return parts[_PS.partition("/device:")[0]].to_proto()

    def call(self, name: str, data: bytes, seconds: float) -> bytes:
        """A method, whose request and response are bytes."""
        return self._calls[name](data, timeout=seconds)

    def sequence(self, rng: random.Random, number: int) -> Iterator[tuple[str, Any]]:
        """Real requests, in order; the registered handle is filled in by who sends them."""
        graph, value = rng.choice(self._parts)
        session = f"session {number}"
        common: dict[str, Any] = {"session_handle": session, "create_worker_session_called": True}
        isolate = rng.random() < 0.5
        yield (
            "CreateWorkerSession",
            worker_pb2.CreateWorkerSessionRequest(
                session_handle=session, isolate_session_state=isolate, master_task=_OTHER[:-13], master_incarnation=1
            ),
        )
        yield "RegisterGraph", worker_pb2.RegisterGraphRequest(graph_def=graph, **common)
        key = make_key(CLIENT, 0, CLIENT, feed_key(0), (0, 0))
        run = worker_pb2.RunGraphRequest(
            step_id=number, recv_key=[make_key(CLIENT, 0, CLIENT, fetch_key(0), (0, 0))], request_id=number + 1,
            store_errors_in_response_body=rng.random() < 0.5, **common,
        )  # fmt: skip
        run.send.add(name=key).tensor.CopyFrom(from_array(value))
        if rng.random() < 0.3:
            run.is_partial, run.is_last_partial_run = True, rng.random() < 0.7
        if rng.random() < 0.2:
            run.exec_opts.record_timeline = run.exec_opts.record_costs = run.exec_opts.record_partition_graphs = True
        yield "RunGraph", run
        crossing = next(
            (node for node in graph.node if node.op == "_Send" and not node.attr["client_terminated"].b), None
        )
        name = crossing.attr["tensor_name"].s.decode() if crossing is not None else "edge_1_x"
        step = number if crossing is not None else number - 1  # of one that is over, whatever it asks for
        yield (
            "RecvTensor",
            worker_pb2.RecvTensorRequest(
                step_id=step, rendezvous_key=make_key(_PS, self._incarnation, _OTHER, name, (0, 0))
            ),
        )
        yield "MarkRecvFinished", worker_pb2.MarkRecvFinishedRequest(request_id=number)
        yield "Logging", worker_pb2.LoggingRequest(fetch_step_id=[number], enable_rpc_logging=rng.random() < 0.5)
        yield "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=number)
        yield "DeregisterGraph", worker_pb2.DeregisterGraphRequest(**common)
        yield "CleanupAll", worker_pb2.CleanupAllRequest(container=rng.choice(([], ["localhost"], ["a", ""])))
        yield "DeleteWorkerSession", worker_pb2.DeleteWorkerSessionRequest(session_handle=session)

    def run(self, seed: int, count: int) -> Outcome:
        """Send so many damaged requests, or a few more.

        Returns:
            how they ended; it stops at the first that the process does not survive.
        """
        outcome = Outcome()
        number = 0
        while outcome.requests < count and not outcome.findings:
            number += 1
            rng = random.Random(f"{seed} requests {number}")
            handle = ""
            sequence = list(self.sequence(rng, number))
            damaged = rng.sample(range(len(sequence)), rng.choice((1, 1, 2, 4)))
            for position, (name, request) in enumerate(sequence):
                if "graph_handle" in request.DESCRIPTOR.fields_by_name:
                    request.graph_handle = handle
                data = request.SerializeToString()
                if position in damaged:
                    data = messages.mutate_serialized(rng, data, self._methods[name].request)
                    outcome.requests += 1
                answer = self._sent(outcome, name, data, f"seed {seed}, sequence {number}, {name}")
                if name == "RegisterGraph" and answer is not None:
                    handle = worker_pb2.RegisterGraphResponse.FromString(answer).graph_handle
        if not outcome.findings:
            self._sent(outcome, "GetStatus", b"", "after all", patience.HUNG)
        return outcome

    def _sent(self, outcome: Outcome, name: str, data: bytes, where: str, seconds: float = _WAIT) -> bytes | None:
        answer: bytes | None = None
        try:
            answer = self.call(name, data, seconds)
            code, details = "OK", ""
            if name == "RunGraph":
                response = worker_pb2.RunGraphResponse.FromString(answer)
                code = f"body {response.status_code}" if response.status_code else "OK"
                if response.status_code == _INTERNAL:
                    outcome.findings.append(f"{where}: {response.status_error_message}")
        except grpc.RpcError as error:
            code, details = error.code().name, error.details()
            own = code == "INTERNAL" and "deserializ" not in str(details).lower()
            if own or code == "UNAVAILABLE" or (code == "UNKNOWN" and "deserializ" not in str(details).lower()):
                outcome.findings.append(f"{where}: {code} {details}\n{self.process.errors if own else ''}")
        outcome.statuses[name, code] += 1
        return answer

    def stop(self) -> None:
        """End the server."""
        self._channel.close()
        self.process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    target = Target()
    try:
        outcome = target.run(arguments.seed, arguments.count)
    finally:
        target.stop()
    for (name, code), count in sorted(outcome.statuses.items()):
        print(f"{count:7} {name} {code}")
    print(f"{outcome.requests} damaged requests")
    for line in outcome.findings:
        print(line)
        print(target.process.errors)
    sys.exit(bool(outcome.findings))


if __name__ == "__main__":
    main()
