"""Small parts that are drawn as a line of text in the box they feed: constants and reads of variables.

An absorbed element has no box of its own. Its host, the element that uses it, represents it: its input links
go to the host, and its link to the host disappears into it. Over the columns of a large model it is
`toolkit.render.absorb_table` that does so.
"""

from __future__ import annotations

from toolkit.render.absorbed import (
    CONSTANTS,
    LEAST_LEFT,
    READS,
    Absorbed,
    Neighbours,
    barriers,
    stays_constant,
    take_out,
    through_identities,
    variable_handles,
)
from toolkit.render.elements import LinkKind, Model
from toolkit.render.notes import HAND_ON, Notes
from toolkit.render.scopes import lead_of


def data_users(model: Model) -> Neighbours:
    """For each element those that use what it puts out, in the order of the links."""
    if model.has_columns:
        from toolkit.render.absorb_table import data_users as of_columns

        return of_columns(model)
    users: list[list[int]] = [[] for _ in model.elements]
    for src, dst, kind, _, _ in model.links:
        if kind is not LinkKind.CONTROL:
            users[src].append(dst)
    return users


def absorb(model: Model, users: Neighbours) -> Absorbed:
    """Choose what is absorbed, and take it out of its scope.

    Constants, and expressions of constants only, go into what uses them; so does a variable's read with one
    user. Elements in a variable's own scope stay there. Linear.

    Args:
        users: see `data_users`.
    """
    if model.has_columns:
        from toolkit.render.absorb_table import absorb as absorb_columns

        return absorb_columns(model, users)
    count = len(model.elements)
    ops, homes = model.ops, model.homes
    inputs = [0] * count
    waits = [0] * count  # control inputs
    waits_for: dict[int, int] = {}
    waited: set[int] = set()
    for src, dst, kind, _, _ in model.links:
        if kind is LinkKind.CONTROL:
            waits[dst] += 1
            waits_for[dst] = src
            waited.add(src)
        else:
            inputs[dst] += 1
    constant = _constant_valued(model, users, inputs, waits)
    handles = variable_handles(model, [link for link in model.links if ops[link.dst] in _HOLDERS])
    out = Absorbed()
    chosen = [
        i
        for i, op in enumerate(ops)
        if users[i]
        and homes[i].kind != "variable"
        and (
            constant[i]
            or (op == "_Arg" and i in handles)
            or (op in READS and len(users[i]) == 1 and not waits[i])
            or (op == "Identity" and len(users[i]) == 1 and inputs[i] == 1 and i not in waited)
        )
    ]
    chosen += barriers(model, users, inputs, waits)
    if count - len(chosen) < LEAST_LEFT:
        return out
    wanted = set(chosen)
    for i in chosen:
        host = i
        seen = {i}
        while host in wanted:
            host = users[host][0] if users[host] else waits_for[host]
            if host in seen:
                break
            seen.add(host)
        else:
            out.host[i] = host
    gone = bytearray(count)
    for i in out.host:
        gone[i] = 1
    out.noted = {i for i in out.host if constant[i] or i in handles}
    _write_notes(model, out, constant, handles)
    take_out(model, gone)
    return out


#: what may hold the handle of a variable, or its value just read
_HOLDERS = READS | {"_Arg"}


def absorb_passed_through(model: Model, out: Absorbed, users: Neighbours) -> None:
    """Let the node that calls a function stand for arguments that the body only hands back, or never uses.

    Loops carry everything their body or condition reads, so most of their arguments are of this kind.

    Args:
        users: see `data_users`.
    """
    gone: set[int] = set()
    for i in model.of_op({"_Arg"}):
        scope = model.homes[i]
        lead = lead_of(scope)
        if lead is None:
            continue
        if i in out.host:
            # It is a note of what uses it; what only hands it back says nothing more.
            back = [each for each in through_identities(model, i, users) if model.ops[each] == "_Retval"]
            gone.update(back)
            out.host.update(dict.fromkeys(back, lead))
            continue
        reached = _handed_back(model, i, users)
        if reached is not None:
            gone.update(reached)
            out.host.update(dict.fromkeys(reached, lead))
            continue
        for user in users[i]:  # an invariant of a loop: what comes back is what went in
            if model.ops[user] == "_Retval" and model.homes[user] is scope:
                gone.add(user)
                out.host[user] = i
    for i, host in out.host.items():
        while host in out.host:
            host = out.host[host]
        out.host[i] = host
    if gone:
        is_gone = bytearray(len(model.elements))
        for i in gone:
            is_gone[i] = 1
        take_out(model, is_gone)


def _handed_back(model: Model, start: int, users: Neighbours) -> list[int] | None:
    """What an argument reaches, itself included, when that is nothing but Identity nodes and results."""
    reached = [start]
    body = model.homes[start]
    for i in reached:  # grows while we walk it
        for user in users[i]:
            element = model.elements[user]
            if (element.op == "_Retval" and element.scope is body) or (
                element.op == "Identity" and element.node.graph is model.elements[start].node.graph
            ):
                reached.append(user)
            elif model.ops[i] != "_Retval":
                return None
    return reached


def _constant_valued(model: Model, users: Neighbours, inputs: list[int], waits: list[int]) -> bytearray:
    """Which elements depend on constants only."""
    constant = bytearray(len(model.elements))
    pending = list(inputs)
    ready: list[int] = []
    for i in model.of_op(CONSTANTS):
        if inputs[i] == 0:
            constant[i] = 1
            ready.append(i)
    for i in ready:  # grows while we walk it
        for user in users[i]:
            pending[user] -= 1
            if pending[user] == 0 and not waits[user] and stays_constant(model, user, users):
                constant[user] = 1
                ready.append(user)
    return constant


def _write_notes(model: Model, out: Absorbed, constant: bytearray, handles: dict[int, int]) -> None:
    hands_on = bytearray(op in HAND_ON for op in model.ops)
    sources: dict[int, int] = {}
    for src, dst, kind, _, _ in model.links:
        if hands_on[dst] and kind is not LinkKind.CONTROL:
            sources.setdefault(dst, src)
    host = out.host
    noted = (
        link for link in model.links
        if link[0] in host and link[1] not in host and link[2] is not LinkKind.CONTROL
    )  # fmt: skip
    out.notes = Notes(model, constant, handles, sources.get).write(noted)
