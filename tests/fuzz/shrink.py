"""Makes a case smaller while it goes on doing what it did: fewer commands, fewer nodes, fewer bytes."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from google.protobuf.message import DecodeError

from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import MetaGraphDef
from tests.fuzz.case import Case

#: says whether a case does it
Test = Callable[[Case], bool]


def shrink(case: Case, does: Test, seconds: float = 20.0) -> Case:
    """The smallest case found within a time that still does it."""
    deadline = time.monotonic() + seconds
    for command in case.commands:
        one = replace(case, commands=[command])
        if len(case.commands) > 1 and does(one):
            case = one
            break
    case = next((one for one in _one_fetch(case) if does(one)), case)
    changed = True
    while changed and time.monotonic() < deadline:
        changed = False
        for candidate in itertools.chain(_without_files(case), _smaller_files(case)):
            if time.monotonic() > deadline:
                break
            if does(candidate):
                case, changed = candidate, True
                break
    return case


def _without_files(case: Case) -> Iterator[Case]:
    used = " ".join(itertools.chain(*case.commands))
    for name in sorted(case.files, key=lambda name: name in used):
        yield replace(case, files={other: data for other, data in case.files.items() if other != name})


def _smaller_files(case: Case) -> Iterator[Case]:
    for name, data in sorted(case.files.items(), key=lambda item: -len(item[1])):
        for smaller in itertools.chain(_fewer_nodes(data), _fewer_bytes(data) if len(data) < 4000 else ()):
            yield replace(case, files=case.files | {name: smaller})


def _one_fetch(case: Case) -> Iterator[Case]:
    """With one of several results asked for."""
    line = case.commands[0]
    fetches = [word for word in line if word.startswith("--fetch=")]
    if len(fetches) > 1:
        for fetch in fetches:
            kept = [word for word in line if word == fetch or word not in fetches]
            yield replace(case, commands=[kept, *case.commands[1:]])


def _fewer_nodes(data: bytes) -> Iterator[bytes]:
    """A GraphDef or MetaGraphDef without some of its nodes, functions, attributes."""
    for cls in (GraphDef, MetaGraphDef):
        message: Any = cls()
        with contextlib.suppress(DecodeError):
            message.ParseFromString(data)
            graph = message.graph_def if cls is MetaGraphDef else message
            if graph.node:
                yield from _without_parts(message, graph)
                return


def _without_parts(message: Any, graph: Any) -> Iterator[bytes]:
    whole = GraphDef.FromString(graph.SerializeToString())
    yield from _needed(message, graph, whole)
    count, size = len(whole.node), max(1, len(whole.node) // 2)
    while size:
        for start in range(0, count, size):
            graph.CopyFrom(whole)
            del graph.node[start : start + size]
            yield message.SerializeToString()
        size //= 2
    for at in range(len(whole.library.function)):
        graph.CopyFrom(whole)
        del graph.library.function[at]
        yield message.SerializeToString()
    for at, node in enumerate(whole.node):
        for key in sorted(node.attr):
            graph.CopyFrom(whole)
            del graph.node[at].attr[key]
            yield message.SerializeToString()


def _needed(message: Any, graph: Any, whole: GraphDef) -> Iterator[bytes]:
    """What each of the last nodes needs, and nothing else."""
    inputs = {node.name: [text.lstrip("^").partition(":")[0] for text in node.input] for node in whole.node}
    for last in whole.node[::-1][:12]:
        found, left = {"init"}, [last.name, *inputs.get("init", ())]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += inputs.get(name, ())
        if len(found & inputs.keys()) < len(inputs):
            graph.CopyFrom(whole)
            del graph.node[:]
            graph.node.extend(node for node in whole.node if node.name in found)
            yield message.SerializeToString()


def _fewer_bytes(data: bytes) -> Iterator[bytes]:
    size = len(data) // 2
    while size >= max(1, len(data) // 64):
        for start in range(0, len(data), size):
            yield data[:start] + data[start + size :]
        size //= 2
