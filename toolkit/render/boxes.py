"""The boxes and clusters of a scene, and what is written in them."""

from __future__ import annotations

import os.path
from collections import Counter

from toolkit.render import describe
from toolkit.render.absorbed import Absorbed
from toolkit.render.elements import Element, Model, Scope, relative_name
from toolkit.render.fold import Folding
from toolkit.render.scene import Box, Cluster


class BoxMaker:
    """Makes boxes and clusters, and notes which one each element is in (`owner`).

    Args:
        opened: paths of the scopes that are open.
        folding: folds levels that are looked into; None: all have been folded, or are not to be.
    """

    def __init__(self, model: Model, opened: set[str], absorbed: Absorbed, folding: Folding | None = None):
        self.model = model
        self.opened = opened
        self.absorbed = absorbed
        self.folding = folding
        self.boxes: list[Box] = []
        self.owner: list[Box | Cluster | None] = [None] * len(model.homes)
        self.prefixes: dict[str, str] = {}

    def cluster(self, top: Scope) -> Cluster:
        """The cluster of an open scope with all that is visible in it (without recursion: scopes nest deeply)."""
        result = Cluster(top, top.label)
        stack = [result]
        while stack:
            cluster = stack.pop()
            scope = cluster.scope
            if self.folding is not None:
                self.folding.fold(scope)
            for i in scope.elements:
                if i == scope.lead and scope.kind == "function":
                    self.owner[i] = cluster  # the frame is the calling node
                    continue
                box = self.element_box(self.model.elements[i], scope)
                self.owner[i] = box
                cluster.boxes.append(box)
                self.boxes.append(box)
            for inner in scope.scopes:
                if inner.path in self.opened:
                    made = Cluster(inner, scope_label(inner))
                    cluster.clusters.append(made)
                    stack.append(made)
                else:
                    box = self.scope_box(inner, inner.kind)
                    cluster.boxes.append(box)
                    self.boxes.append(box)
        return result

    def element_box(self, element: Element, scope: Scope) -> Box:
        node = element.node
        kind = "op"
        if element.op in describe.INPUT_OPS:
            kind = "input"
        elif element.op in describe.OUTPUT_OPS:
            kind = "output"
        elif element.op in describe.VARIABLE_OPS:
            kind = "variable"
        elif element.op in ("Const", "HostConst"):
            kind = "constant"
        label = relative_name(element.name, scope)
        if kind in ("input", "output"):
            label = label.removeprefix(self._common_prefix(element.scope))
        box = Box(element.name, label, element.name, kind, element=element, members=[element.id])
        words = [element.op.lstrip("_")] if element.op.lower() != label.lower() else []
        if kind in ("input", "variable", "output"):
            words = [{"input": "input", "variable": "variable", "output": "output"}[kind]]
            if kind == "variable":
                words.append(describe.variable_text(node))
            else:
                shape = describe.shape_text(self.model.shapes.of(node, 0))
                dtype = describe.output_dtype(node, 0)
                words += [w for w in (dtype.base.name if dtype else "", shape) if w]
            box.lines.append(" ".join(words))
        elif kind == "constant":
            box.lines.append(describe.constant_text(node))
        else:
            words += describe.attribute_notes(node)
            if words:
                box.lines.append(" · ".join(words))
        box.lines += self.absorbed.notes.get(element.id, [])
        if element.note:
            prefix = self._common_prefix(element.scope) if kind == "output" else ""
            box.lines.append(element.note.replace(prefix, "", 1) if prefix else element.note)
        return box

    def _common_prefix(self, scope: Scope) -> str:
        """What the names of a function's arguments and results begin with; tracing puts the same path on all."""
        known = self.prefixes.get(scope.path)
        if known is None:
            wanted = describe.INPUT_OPS | describe.OUTPUT_OPS
            chosen = [i for i in scope.elements if self.model.ops[i] in wanted]
            names = [self.model.elements[i].node.name for i in chosen]
            common = ""
            if len(names) > 2 and scope.kind == "function":
                # Characters are what is wanted here, not path components.
                common = os.path.commonprefix(names)  # noqa: RUF071
            known = self.prefixes[scope.path] = common[: common.rfind("_") + 1]
        return known

    def scope_box(self, scope: Scope, kind: str) -> Box:
        members = list(scope.all_elements())
        box = Box(scope.path, scope_label(scope), scope.path.rstrip("/"), kind, scope=scope, size=len(members))
        box.members = members
        for i in members:
            self.owner[i] = box
        box.lines = self.scope_lines(scope, kind, members)
        return box

    def scope_lines(self, scope: Scope, kind: str, members: list[int]) -> list[str]:
        """What is written in the box of a closed scope."""
        if kind == "variable" and scope.lead is not None:
            return [f"variable {describe.variable_text(self.model.elements[scope.lead].node)}"]
        ops = Counter(map(self.model.ops.__getitem__, members))
        for plain in ("Identity", "NoOp", "Const", "_Arg", "_Retval", "PlaceholderWithDefault"):
            if len(ops) > 1:
                ops.pop(plain, None)
        common = ", ".join(f"{n} {op}" if n > 1 else op for op, n in self._most_common(scope, ops))
        if len(ops) > 2:
            common += ", …"
        if kind == "series":
            each = len(scope.scopes) + len(scope.elements)
            first = scope.scopes[0].size if scope.scopes else 1
            what = f"{each} × {first} nodes" if first > 1 else f"{each} × {common.partition(' ')[2]}"
            return [what] if first == 1 else [what, common]
        count = f"{len(members)} node{'s' if len(members) != 1 else ''}"
        detail = [scope.detail] if scope.detail and kind in ("loop", "section") else []
        return [*detail, count, common] if common else [*detail, count]

    def _most_common(self, scope: Scope, ops: Counter[str]) -> list[tuple[str, int]]:
        """The two most frequent ops; of equally frequent ones that which comes first when all levels are folded."""
        ranked = ops.most_common()
        counts = [count for _, count in ranked[:3]]
        if self.folding is None or len(set(counts)) == len(counts):
            return ranked[:2]
        tied = {op for op, count in ranked if count >= counts[1]}
        first: dict[str, int] = {}
        for inner in self.folding.walk(scope):
            for i in inner.elements:
                if (op := self.model.ops[i]) in tied:
                    first.setdefault(op, len(first))
            if len(first) == len(tied):
                break
        return sorted(((op, ops[op]) for op in tied), key=lambda each: (-each[1], first[each[0]]))[:2]


def scope_label(scope: Scope) -> str:
    if scope.kind == "function" and scope.detail and scope.detail != scope.label:
        return f"{scope.label}: {scope.detail}()"
    if scope.kind == "section" and not scope.detail:
        return f"{scope.label}_…" if " … " not in scope.label else scope.label
    return scope.label
