"""Makes a case smaller while it goes on doing what it did: fewer commands, fewer nodes, fewer bytes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from google.protobuf.message import DecodeError

from schemas.graph_pb2 import GraphDef
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


def _fewer_nodes(data: bytes) -> Iterator[bytes]:
    """A GraphDef without some of its nodes, functions, attributes."""
    graph = GraphDef()
    try:
        graph.ParseFromString(data)
    except DecodeError:
        return
    if not graph.node:
        return
    count, size = len(graph.node), max(1, len(graph.node) // 2)
    while size:
        for start in range(0, count, size):
            fewer = GraphDef()
            fewer.CopyFrom(graph)
            del fewer.node[start : start + size]
            yield fewer.SerializeToString()
        size //= 2
    for at in range(len(graph.library.function)):
        fewer = GraphDef()
        fewer.CopyFrom(graph)
        del fewer.library.function[at]
        yield fewer.SerializeToString()
    for at, node in enumerate(graph.node):
        for key in sorted(node.attr):
            fewer = GraphDef()
            fewer.CopyFrom(graph)
            del fewer.node[at].attr[key]
            yield fewer.SerializeToString()


def _fewer_bytes(data: bytes) -> Iterator[bytes]:
    size = len(data) // 2
    while size >= max(1, len(data) // 64):
        for start in range(0, len(data), size):
            yield data[:start] + data[start + size :]
        size //= 2
