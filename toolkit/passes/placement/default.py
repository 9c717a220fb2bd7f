"""The default strategy: the best device of the default task, with TensorFlow's exceptions."""

from __future__ import annotations

from toolkit.graph.device import DeviceSpec
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node
from toolkit.passes.placement.constraints import Choice, Constraints
from toolkit.passes.placement.strategies import PlacementTask, strategy

#: ops that look at nothing but the shapes of their inputs
METADATA = frozenset({"Shape", "ShapeN", "Size", "Rank", "VariableShape"})


@strategy("default", "the default task's first device, as TensorFlow's placer")
def default(task: PlacementTask) -> list[Choice]:
    """The first allowed device, with TensorFlow's exceptions: metadata, generators, identities in between."""
    return default_choices(task.constraints)


def default_choices(constraints: Constraints) -> list[Choice]:
    """The devices that TensorFlow would give, by node id."""
    return _Default(constraints).run()


class _Default:
    def __init__(self, constraints: Constraints):
        self.constraints = constraints
        self.chosen: list[Choice | None] = [None] * len(constraints.graph)
        self._usual: dict[tuple[int, str], Choice] = {}  # by id(device), which the set of devices keeps
        self._links = self._find_links()

    def run(self) -> list[Choice]:
        self._default()
        return [choice for choice in self.chosen if choice is not None]

    def _default(self) -> None:
        """The first allowed device, with TensorFlow's exceptions: metadata, generators, identities in between."""
        constraints, groups, chosen, links = self.constraints, self.constraints.groups, self.chosen, self._links
        lone = groups.lone
        late: list[Node] = []
        usual: dict[tuple[int, str], Choice] = {}  # of nodes that are alone, by id(what is allowed) and why
        generates: dict[NodeKind, bool] = {}
        alike: dict[tuple[NodeKind, str], Choice] = {}  # of nodes that are alone, where nothing else matters
        for node in constraints.order:
            number = node.id
            is_alone = bool(lone[number])
            kind = node.kind if is_alone and number not in links else None
            if kind is not None:
                choice = alike.get((kind.like or kind, node.device))
                if choice is not None:
                    chosen[number] = choice
                    continue
            allowed, why = constraints.allowed_alone(node) if is_alone else constraints.allowed(groups[number])
            if is_alone and number in links:
                self._beside_producer(node, allowed, why)
                continue
            if not node.inputs:
                kind = node.kind
                known = None if kind is None else generates.get(kind.like or kind)
                if known is None:
                    known = _is_generator(node)
                    if kind is not None:
                        generates[kind.like or kind] = known
                if known:
                    late.append(node)
                    continue
            elif is_alone and not why and node.op in METADATA:
                source = chosen[node.inputs[0].node.id]
                if source is not None and source.device in allowed:
                    chosen[number] = Choice(source.device, f"metadata of '{node.inputs[0].node.name}'")
                    continue
            if not is_alone:
                chosen[number] = self._choice(allowed[0], constraints.reason(node, groups[number], why))
                continue
            key = (id(allowed), why)
            choice = usual.get(key)
            if choice is None:
                choice = usual[key] = self._choice(allowed[0], constraints.reason(node, groups[number], why))
            chosen[number] = choice
            if kind is not None and node.op not in METADATA:
                alike[kind.like or kind, node.device] = choice
        self._beside_consumers(late)

    def _choice(self, device: DeviceSpec, reason: str) -> Choice:
        """The choice of a device for a reason that many nodes may have: one for all of them."""
        found = self._usual.get((id(device), reason))
        if found is None:
            found = self._usual[id(device), reason] = Choice(device, reason)
        return found

    def _beside_consumers(self, late: list[Node]) -> None:
        """Put generators where they are used, if that is one device."""
        constraints, groups, chosen = self.constraints, self.constraints.groups, self.chosen
        # by id, the first consumer; the devices of all, as far as they are one
        first: dict[int, Node | None] = {node.id: None for node in late if groups.lone[node.id]}
        where: dict[int, DeviceSpec | None] = {}

        def take(source: int, node: Node) -> None:
            choice = chosen[node.id]
            device = None if choice is None else choice.device
            if first[source] is None:
                first[source], where[source] = node, device
            elif where[source] is not device and where[source] != device:
                where[source] = None

        for node in constraints.graph.nodes if first else ():
            for src, _ in node.inputs:
                if src.id in first:
                    take(src.id, node)
            for src in node.control_inputs:
                if src.id in first:
                    take(src.id, node)
        for node in late:
            consumer, device = first.get(node.id), where.get(node.id)
            is_alone = bool(groups.lone[node.id])
            allowed, why = constraints.allowed_alone(node) if is_alone else constraints.allowed(groups[node.id])
            if consumer is not None and device is not None and device in allowed:
                chosen[node.id] = Choice(device, f"a generator, next to its consumer '{consumer.name}'")
            else:
                chosen[node.id] = self._choice(allowed[0], constraints.reason(node, groups[node.id], why))

    def _find_links(self) -> set[int]:
        """The ids of Identities that ask for nothing, between two nodes that ask for the same device."""
        nodes = self.constraints.graph.nodes
        users: dict[int, list[Node]] = {
            node.id: [] for node in nodes if node.op == "Identity" and not node.device and not node.control_inputs
        }
        for node in nodes if users else ():
            for src, _ in node.inputs:
                if src.id in users:
                    users[src.id].append(node)
            for src in node.control_inputs:
                if src.id in users:
                    users[src.id].append(node)
        return {
            number
            for number, readers in users.items()
            if len(readers) < 2
            and nodes[number].inputs
            and nodes[number].inputs[0].node.device == (readers[0].device if readers else "")
        }

    def _beside_producer(self, node: Node, allowed: list[DeviceSpec], why: str) -> None:
        source = self.chosen[node.inputs[0].node.id]
        if source is not None and source.device in allowed:
            self.chosen[node.id] = Choice(source.device, f"passes on '{node.inputs[0].node.name}'")
        else:
            group = self.constraints.groups[node.id]
            self.chosen[node.id] = self._choice(allowed[0], self.constraints.reason(node, group, why))


def _is_generator(node: Node) -> bool:
    return not node.inputs and node.num_outputs == 1 and not node.output_types[0].is_ref
