"""Small parts that are drawn as a line of text in the box they feed: constants and reads of variables.

An absorbed element has no box of its own. Its host, the element that uses it, represents it: its input links
go to the host, and its link to the host disappears into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.graph import opdefs
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import CONTROL_FLOW_OPS, Node
from toolkit.render import describe
from toolkit.render.elements import LinkKind, Model, Scope

_READS = frozenset({"ReadVariableOp"})
_HAND_ON = frozenset({"Identity", "ReadVariableOp", "Snapshot", "_Arg"})
# A box that uses more variables than this says how many.
_MOST_VARIABLES = 3
# With fewer boxes than this left, a picture of constants alone would show nothing.
_LEAST_LEFT = 3
# Where a constant comes from is looked for through at most so many nodes.
_LONGEST_WAY = 40


@dataclass(slots=True)
class Absorbed:
    """Attributes:
    host: the element that each absorbed one is drawn in.
    notes: lines to write in the host's box, e.g. ["filter 3×3×64×64"].
    noted: absorbed constants and variables, which every user names in a note of its own; no arc leads from them.
    """

    host: dict[int, int] = field(default_factory=dict[int, int])
    notes: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    noted: set[int] = field(default_factory=set[int])


def data_users(model: Model) -> list[list[int]]:
    """For each element those that use what it puts out, in the order of the links."""
    users: list[list[int]] = [[] for _ in model.elements]
    for src, dst, kind, _, _ in model.links:
        if kind is not LinkKind.CONTROL:
            users[src].append(dst)
    return users


def absorb(model: Model, users: list[list[int]]) -> Absorbed:
    """Choose what is absorbed, and take it out of its scope.

    Constants, and expressions of constants only, go into what uses them; so does a variable's read with one
    user. Elements in a variable's own scope stay there. Linear.

    Args:
        users: see `data_users`.
    """
    count = len(model.elements)
    inputs = [0] * count
    blocked = bytearray(count)  # has a control input
    waited: set[int] = set()
    for src, dst, kind, _, _ in model.links:
        if kind is LinkKind.CONTROL:
            blocked[dst] = 1
            waited.add(src)
        else:
            inputs[dst] += 1
    constant = _constant_valued(model, users, inputs, blocked)
    handles = _variable_handles(model)
    out = Absorbed()
    chosen = [
        e.id
        for e in model.elements
        if users[e.id]
        and e.scope.kind != "variable"
        and (
            constant[e.id]
            or (e.op == "_Arg" and e.id in handles)
            or (e.op in _READS and len(users[e.id]) == 1 and not blocked[e.id])
            or (e.op == "Identity" and len(users[e.id]) == 1 and inputs[e.id] == 1 and e.id not in waited)
        )
    ]
    chosen += _barriers(model, users, inputs)
    if count - len(chosen) < _LEAST_LEFT:
        return out
    wanted = set(chosen)
    ids: dict[tuple[object, int], int] = {}
    if any(not users[i] for i in chosen):  # barriers
        ids = {(e.node.graph, e.node.id): e.id for e in model.elements if e.op != "Const"}
    for i in chosen:
        host = i
        seen = {i}
        while host in wanted:
            element = model.elements[host]
            host = users[host][0] if users[host] else ids[element.node.graph, element.node.control_inputs[0].id]
            if host in seen:
                break
            seen.add(host)
        else:
            out.host[i] = host
    for scope in model.root.walk():
        if any(i in out.host for i in scope.elements):
            scope.elements = [i for i in scope.elements if i not in out.host]
    out.noted = {i for i in out.host if constant[i] or i in handles}
    _write_notes(model, out, constant, handles)
    model.count_sizes()
    return out


def absorb_passed_through(model: Model, out: Absorbed, users: list[list[int]]) -> None:
    """Let the node that calls a function stand for arguments that the body only hands back, or never uses.

    Loops carry everything their body or condition reads, so most of their arguments are of this kind.

    Args:
        users: see `data_users`.
    """
    gone: set[int] = set()
    for element in model.elements:
        lead = _lead(element.scope) if element.op == "_Arg" else None
        if lead is None:
            continue
        if element.id in out.host:
            # It is a note of what uses it; what only hands it back says nothing more.
            back = [i for i in _through_identities(model, element.id, users) if model.elements[i].op == "_Retval"]
            gone.update(back)
            out.host.update(dict.fromkeys(back, lead))
            continue
        reached = _handed_back(model, element.id, users)
        if reached is not None:
            gone.update(reached)
            out.host.update(dict.fromkeys(reached, lead))
            continue
        for user in users[element.id]:  # an invariant of a loop: what comes back is what went in
            if model.elements[user].op == "_Retval" and model.elements[user].scope is element.scope:
                gone.add(user)
                out.host[user] = element.id
    for i, host in out.host.items():
        while host in out.host:
            host = out.host[host]
        out.host[i] = host
    if gone:
        for scope in model.root.walk():
            if any(i in gone for i in scope.elements):
                scope.elements = [i for i in scope.elements if i not in gone]
        model.count_sizes()


def _lead(scope: Scope | None) -> int | None:
    """The node that calls the function whose body this is."""
    while scope is not None and scope.kind == "function":
        if scope.lead is not None:
            return scope.lead
        scope = scope.parent
    return None


def _handed_back(model: Model, start: int, users: list[list[int]]) -> list[int] | None:
    """What an argument reaches, itself included, when that is nothing but Identity nodes and results."""
    reached = [start]
    body = model.elements[start].scope
    for i in reached:  # grows while we walk it
        for user in users[i]:
            element = model.elements[user]
            if (element.op == "_Retval" and element.scope is body) or (
                element.op == "Identity" and element.node.graph is model.elements[start].node.graph
            ):
                reached.append(user)
            elif model.elements[i].op != "_Retval":
                return None
    return reached


def _constant_valued(model: Model, users: list[list[int]], inputs: list[int], blocked: bytearray) -> bytearray:
    """Which elements depend on constants only."""
    constant = bytearray(len(model.elements))
    pending = list(inputs)
    ready: list[int] = []
    for element in model.elements:
        if element.op in ("Const", "HostConst") and inputs[element.id] == 0:
            constant[element.id] = 1
            ready.append(element.id)
    for i in ready:  # grows while we walk it
        for user in users[i]:
            pending[user] -= 1
            if pending[user] == 0 and not blocked[user] and _stays_constant(model, user, users):
                constant[user] = 1
                ready.append(user)
    return constant


def _stays_constant(model: Model, i: int, users: list[list[int]]) -> bool:
    """Whether an element whose inputs are constants is one: an op that folds, or an argument that never changes."""
    element = model.elements[i]
    if element.op != "_Arg":
        return _folds(element.op)
    lead = _lead(element.scope)
    if lead is None or model.elements[lead].op not in ("While", "StatelessWhile"):
        return lead is not None
    # What a loop carries is a constant when its body hands it back as it came; its condition sees it as the body does.
    return element.scope.label != "cond" and _comes_back(model, i, users)


def _comes_back(model: Model, argument: int, users: list[list[int]]) -> bool:
    """Whether an argument of a loop's body is, through Identity nodes only, the body's result of the same number."""
    number = model.elements[argument].node.attr_or("index", None)
    reached = (model.elements[i].node for i in _through_identities(model, argument, users))
    return any(node.op == "_Retval" and node.attr_or("index", None) == number for node in reached)


def _through_identities(model: Model, start: int, users: list[list[int]]) -> list[int]:
    """What uses an element in the same graph, directly or through Identity nodes."""
    graph = model.elements[start].node.graph
    identities, found = [start], list[int]()
    for i in identities:  # grows while we walk it
        for user in users[i]:
            element = model.elements[user]
            if element.node.graph is not graph:
                continue
            if element.op == "Identity" and user not in identities:
                identities.append(user)
            found.append(user)
    return found


def _folds(op: str) -> bool:
    """Whether an op of constants is a constant: it has no state, calls nothing and steers nothing."""
    definition = opdefs.find(op)
    return (
        definition is not None
        and not definition.is_stateful
        and not op.startswith("_")
        and op not in CONTROL_FLOW_OPS
        and op not in describe.INPUT_OPS  # a default is a constant, what is fed is not
        and bool(definition.outputs)
        and not any(a.type in ("func", "list(func)") for a in definition.attrs.values())
        and "Summary" not in op
    )


def _barriers(model: Model, users: list[list[int]], inputs: list[int]) -> list[int]:
    """NoOp nodes in functions that wait for one node only: tracing made them, and they say nothing of their own."""
    return [
        e.id
        for e in model.elements
        if e.op == "NoOp"
        and e.scope.kind == "function"
        and not users[e.id]
        and not inputs[e.id]
        and len(e.node.control_inputs) == 1
    ]


def _variable_handles(model: Model) -> dict[int, int]:
    """Elements that hold the handle of a variable, or its value just read, with the variable.

    Handles go from the variable through the arguments of functions; a picture of a SavedModel is about what the
    functions do, not about how handles get there.
    """
    found: dict[int, int] = {}
    variables = [e.id for e in model.elements if e.op == "VarHandleOp"]
    if not variables:
        return found
    by_source: dict[int, list[int]] = {}
    for link in model.links:
        op = model.elements[link.dst].op
        if op in _READS or (op == "_Arg" and link.kind is LinkKind.REFERENCE):
            by_source.setdefault(link.src, []).append(link.dst)
    ready = [i for i in variables if i in by_source]
    found.update((i, i) for i in ready)
    for i in ready:  # grows while we walk it
        for target in by_source.get(i, []):
            if target not in found:
                found[target] = found[i]
                ready.append(target)
    return found


def _variable_text(model: Model, variable: int) -> str:
    node = model.elements[variable].node
    name = "/".join(node.name.split("/")[-2:])
    return f"{name} {describe.variable_text(node).rpartition(' ')[2]}".strip()


def _write_notes(model: Model, out: Absorbed, constant: bytearray, handles: dict[int, int]) -> None:
    variables: dict[int, int] = {}
    hands_on = bytearray(element.op in _HAND_ON for element in model.elements)
    sources: dict[int, int] = {}
    for src, dst, kind, _, _ in model.links:
        if hands_on[dst] and kind is not LinkKind.CONTROL:
            sources.setdefault(dst, src)
    host = out.host
    texts: dict[NodeKind, str] = {}  # of constants that are alike
    for link in model.links:
        if link[0] not in host or link[1] in host or link[2] is LinkKind.CONTROL:
            continue
        if not constant[link.src]:
            variable = handles.get(link.src)
            if variable is not None:
                variables[link.dst] = variables.get(link.dst, 0) + 1
                if variables[link.dst] <= _MOST_VARIABLES:
                    name = describe.input_name(model.elements[link.dst].op, link.dst_input)
                    text = _variable_text(model, variable)
                    out.notes.setdefault(link.dst, []).append(f"{name} {text}".strip())
            continue
        source = model.elements[link.src]
        # An Identity or Reshape of one weight still is that weight to the reader.
        origin = _origin(model, source.id, sources)
        alike = origin.source if origin.changed_attrs is None else None
        text = texts.get(alike) if isinstance(alike, NodeKind) else None
        if text is None:
            text = describe.constant_text(origin)
            if isinstance(alike, NodeKind):
                texts[alike] = text
        name = describe.input_name(model.elements[link.dst].op, link.dst_input)
        out.notes.setdefault(link.dst, []).append(f"{name} {text}".strip())

    for i, count in variables.items():
        if count > _MOST_VARIABLES:
            out.notes[i] = [*out.notes[i][:-_MOST_VARIABLES], f"{count} variables"]


def _origin(model: Model, start: int, sources: Mapping[int, int]) -> Node:
    """The constant that an element hands on, through Identity nodes and the arguments of functions.

    Args:
        sources: by element that hands something on (`_HAND_ON`), what it takes first.
    """
    here = start
    for _ in range(_LONGEST_WAY):
        if here not in sources:
            break
        here = sources[here]
    return model.elements[here].node


def lead_scopes(model: Model) -> None:
    """Put a node that has the name of a scope into that scope, as its lead (variables above all).

    `conv1/kernel` is a node and `conv1/kernel/` holds its Assign, its read and its initializer.
    """
    for scope in list(model.root.walk()):
        if not scope.by_name:
            continue
        moved: set[int] = set()
        present = {id(inner) for inner in scope.scopes}  # a focus may have emptied others, which are still named
        for i in scope.elements:
            element = model.elements[i]
            inner = scope.by_name.get(element.node.name.rpartition("/")[2])
            if inner is None or id(inner) not in present:
                continue
            if inner.parent is scope and inner.lead is None and inner.kind == "scope":
                inner.lead = i
                inner.elements.insert(0, i)
                element.scope = inner
                moved.add(i)
                if element.op in describe.VARIABLE_OPS:
                    inner.kind = "variable"
        if moved:
            scope.elements = [i for i in scope.elements if i not in moved]


def simplify(model: Model) -> None:
    """Take out scopes that say nothing: one element alone moves up, a scope with one scope in it joins it."""
    for body in [s for s in model.root.walk() if s.kind == "function"]:
        _dissolve_repeated(model, body)
    for scope in reversed(list(model.root.walk())):
        changed = False
        kept: list[Scope] = []
        for inner in scope.scopes:
            if inner.size == 1 and len(inner.elements) == 1 and inner.kind in ("scope", "variable"):
                scope.elements.append(inner.elements[0])
                model.elements[inner.elements[0]].scope = scope
                changed = True
                continue
            if not inner.elements and len(inner.scopes) == 1 and inner.kind == "scope":
                only = inner.scopes[0]
                if only.kind in ("scope", "function", "loop"):
                    only.label = f"{inner.label}/{only.label}"
                    only.parent = scope
                    inner = only
                    changed = True
            kept.append(inner)
        scope.scopes = kept
        if changed:
            scope.elements.sort()
    model.count_sizes()


def _dissolve_repeated(model: Model, body: Scope) -> None:
    """Take out the scope in a function's body that only repeats the path of the call: tracing puts everything in it."""
    lead = _lead(body)
    if lead is None:
        return
    path = model.elements[lead].node.name.split("/")
    chain: list[Scope] = []
    around = body
    for part in path:
        inner = around.by_name.get(part)
        if inner is None or inner.kind != "scope" or inner not in around.scopes:
            return
        chain.append(inner)
        around = inner
    if any(s.elements or len(s.scopes) > 1 for s in chain[:-1]):
        return
    last = chain[-1]
    for scope in last.scopes:
        scope.parent = body
    for i in last.elements:
        model.elements[i].scope = body
    body.scopes = [s for s in body.scopes if s is not chain[0]] + last.scopes
    body.elements = sorted(body.elements + last.elements)
    last.scopes, last.elements = [], []
    body.repeats = "/".join(path) + "/"
