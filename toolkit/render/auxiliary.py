"""Parts of a training graph that are not the model: moved aside so that the model can be seen.

What goes where follows TensorBoard's graph view: savers, initialisers, summaries, gradients and optimizer updates
are drawn beside the picture, without their edges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from toolkit.render.describe import PLACEHOLDERS, category
from toolkit.render.elements import Link, Model, Scope

SAVE = "save and restore"
INIT = "initialization"
GRADIENTS = "gradients"
OPTIMIZER = "optimizer"
SUMMARIES = "summaries"
VARIABLES = "variables"
ORDER = (GRADIENTS, OPTIMIZER, INIT, SAVE, SUMMARIES, VARIABLES)

_SAVER_SCOPE = re.compile(r"save(_\d+)?$")
_GRADIENT_SCOPE = re.compile(r"(gradients|gradient_tape|grad)(_\d+)?$", re.IGNORECASE)
_INIT_NAME = re.compile(
    r"(init(ializer)?(_all_variables|_all_tables)?|group_deps|report_uninitialized_variables)(_\d+)?$"
)
_OPTIMIZER_NAME = re.compile(
    r"(adam|adamw|adagrad|adadelta|rmsprop|momentum|sgd|ftrl|gradientdescent|proximal\w*|nadam|train\w*|optimizer\w*)"
    r"(_\d+)?$",
    re.IGNORECASE,
)
_SAVE_OPS = ("Save", "Restore", "ShardedFilename", "MergeV2Checkpoints")
_APPLY = re.compile(r"(Resource)?(Sparse)?Apply")
_SUMMARY = re.compile(r"\w*Summary(V2)?$|SummaryWriter$|WriteSummary$")
# What is more than this share of a graph is what the graph is about, and stays; variables apart, which only serve.
_LARGEST_SHARE = 0.9


def move_aside(model: Model) -> Scope:
    """Take the auxiliary parts out of the model's scopes and return them under a root of their own."""
    aside = Scope("~aside/", "moved aside", None, "aside")
    picks: dict[str, tuple[list[Scope], list[int]]] = {name: ([], []) for name in ORDER}
    for top in _graph_tops(model.root):
        _pick(model, top, picks)
        if _hands_out_variables(model, top):
            _pick_variables(model, top, picks)
    picks[SAVE][1].extend(_inputs_of(model, picks[SAVE]))
    total = max(1, model.root.size)
    for top in model.root.scopes:
        if top.kind == "partition":
            _close_parts(model, top, picks)
    for name, (scopes, elements) in picks.items():
        size = sum(s.size for s in scopes) + len(elements)
        if not size or (size > _LARGEST_SHARE * total and name != VARIABLES):
            continue
        group = aside.child(name, "aside")
        for scope in scopes:
            assert scope.parent is not None
            scope.parent.scopes.remove(scope)
            if len(scopes) == 1 and not elements:
                group.scopes, group.elements = scope.scopes, scope.elements
                for inner in scope.scopes:
                    inner.parent = group
                for i in scope.elements:
                    model.homes[i] = group
                break
            scope.parent = group
            group.scopes.append(scope)
        gone = set(elements)
        for scope in {id(model.homes[i]): model.homes[i] for i in elements}.values():
            scope.elements = [i for i in scope.elements if i not in gone]
        for i in elements:
            model.homes[i] = group
        group.elements += elements
    model.count_sizes()
    for scope in reversed(list(aside.walk())):
        scope.size = len(scope.elements) + sum(s.size for s in scope.scopes)
    return aside


def _inputs_of(model: Model, parts: tuple[list[Scope], list[int]]) -> list[int]:
    """Placeholders outside these parts that only they use, such as the file name of a SavedModel's saver."""
    inside = {i for scope in parts[0] for i in scope.all_elements()} | set(parts[1])
    if not inside:
        return []
    users: dict[int, list[int]] = {i: [] for i in model.of_op(PLACEHOLDERS) if i not in inside}
    links: Iterable[Link] = model.links if users else ()
    if users and model.has_columns:
        from toolkit.render.link_table import links_from

        links = links_from(model.links, users)
    for link in links:
        if link.src in users:
            users[link.src].append(link.dst)
    return [i for i, found in users.items() if found and inside.issuperset(found)]


def _close_parts(model: Model, part: Scope, picks: dict[str, tuple[list[Scope], list[int]]]) -> None:
    """Gather what is auxiliary in a part of a partition into closed boxes there: what they send to other parts
    is what such a picture is about."""
    for name, (scopes, elements) in picks.items():
        mine = [s for s in scopes if s.parent is part]
        loose = {i for i in elements if model.names[i].startswith(part.path)}
        if not mine and not loose:
            continue
        for scope in {id(model.homes[i]): model.homes[i] for i in loose}.values():
            scope.elements = [i for i in scope.elements if i not in loose]
        part.scopes = [s for s in part.scopes if s not in mine]
        group = part.child(f"~{name}", "aside", name)
        group.scopes, group.elements = mine, sorted(loose)
        group.size = sum(s.size for s in mine) + len(loose)
        for scope in mine:
            scope.parent = group
        for i in loose:
            model.homes[i] = group
        scopes[:] = [s for s in scopes if s not in mine]
        elements[:] = [i for i in elements if i not in loose]


def _graph_tops(root: Scope) -> list[Scope]:
    """The scopes in which a graph starts: the root, parts of a partition, function bodies."""
    return [s for s in root.walk() if s is root or s.kind in ("partition", "function")]


def _pick(model: Model, top: Scope, picks: dict[str, tuple[list[Scope], list[int]]]) -> None:
    for scope in top.scopes:
        name = _scope_purpose(model, scope)
        if name is not None:
            picks[name][0].append(scope)
    taken = {id(s) for scopes, _ in picks.values() for s in scopes}
    ops, stack = model.ops, [top]
    while stack:
        scope = stack.pop()
        for i in scope.elements:
            name = _op_purpose(ops[i])
            if name is None and scope is top:
                name = _top_purpose(model, i)
            if name is not None:
                picks[name][1].append(i)
        stack += [s for s in scope.scopes if id(s) not in taken and s.kind in ("scope", "loop")]


# What is in the scope of a resource variable that is only made, initialised and read there.
_VARIABLE_OPS = frozenset({
    "VarHandleOp", "VarIsInitializedOp", "AssignVariableOp", "ReadVariableOp", "Identity", "Const", "NoOp", "Reshape",
    "Fill", "RandomUniform", "Mul", "Add", "AddV2", "Sub", "TruncatedNormal", "RandomStandardNormal", "Shape",
    "StatelessRandomUniformV2", "StatelessTruncatedNormalV2", "StatelessRandomGetKeyCounter", "Cast",
    "HashTableV2", "MutableHashTableV2",
})  # fmt: skip


def _hands_out_variables(model: Model, top: Scope) -> bool:
    """Whether a graph makes variables for functions to use, as the outer graph of a SavedModel does."""
    if top.kind == "function":
        return False
    calls = any(s.kind == "function" for s in top.scopes)
    return calls and any(model.ops[i] == "VarHandleOp" for i in top.all_elements())


def _pick_variables(model: Model, top: Scope, picks: dict[str, tuple[list[Scope], list[int]]]) -> None:
    taken = {id(s) for scopes, _ in picks.values() for s in scopes}
    for scope in top.scopes:
        ops = {model.ops[i] for i in scope.all_elements()}
        if id(scope) not in taken and "VarHandleOp" in ops and ops <= _VARIABLE_OPS:
            picks[VARIABLES][0].append(scope)
    picks[VARIABLES][1].extend(i for i in top.elements if model.ops[i] in ("VarHandleOp", "VarIsInitializedOp"))


def _scope_purpose(model: Model, scope: Scope) -> str | None:
    name = scope.label
    if scope.kind == "function":
        return SAVE if re.match(r"(_*inference_)?_?traced_(save|restore)", scope.detail) else None
    if scope.kind != "scope":
        return None
    if _SAVER_SCOPE.match(name) and any(model.ops[i].startswith(_SAVE_OPS) for i in scope.all_elements()):
        return SAVE
    if _GRADIENT_SCOPE.match(name):
        return GRADIENTS
    if _INIT_NAME.match(name):
        return INIT
    if scope.size and (_OPTIMIZER_NAME.match(name) or any(_APPLY.match(model.ops[i]) for i in scope.elements)):
        applies = sum(1 for i in scope.all_elements() if _APPLY.match(model.ops[i]))
        products = sum(1 for i in scope.all_elements() if category(model.ops[i]) == "matrix product")
        # A scope called "train" may hold the whole model; then it is no optimizer.
        if applies and products == 0:
            return OPTIMIZER
    return None


@cache
def _op_purpose(op: str) -> str | None:
    if _SUMMARY.match(op):
        return SUMMARIES
    return OPTIMIZER if _APPLY.match(op) else None


def _top_purpose(model: Model, i: int) -> str | None:
    """What an element directly in a graph is for, where its op does not say it."""
    if model.ops[i] == "NoOp" and _INIT_NAME.match(model.elements[i].node.name):
        return INIT
    return SAVE if model.ops[i].startswith(_SAVE_OPS) else None
