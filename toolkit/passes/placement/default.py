"""The default strategy: the best device of the default task, with TensorFlow's exceptions."""

from __future__ import annotations

from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node
from toolkit.passes.placement.constraints import Choice, Constraints
from toolkit.passes.placement.strategies import PlacementTask, strategy

_METADATA = frozenset({"Shape", "ShapeN", "Size", "Rank", "VariableShape"})


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
        self.chosen: dict[int, Choice] = {}
        self._usual: dict[tuple[int, str], Choice] = {}  # by id(device), which the set of devices keeps

    def run(self) -> list[Choice]:
        self._default()
        return [self.chosen[number] for number in range(len(self.constraints.graph))]

    def _default(self) -> None:
        """The first allowed device, with TensorFlow's exceptions: metadata, generators, identities in between."""
        late: list[Node] = []
        for node in self.constraints.order:
            group = self.constraints.groups[node.id]
            allowed, why = self.constraints.allowed(group)
            if len(group.members) == 1 and self._is_link(node):
                self._beside_producer(node)
                continue
            if self._is_generator(node):
                late.append(node)
                continue
            if len(group.members) == 1 and not why and node.op in _METADATA and node.inputs:
                source = self.chosen.get(node.inputs[0].node.id)
                if source is not None and source.device in allowed:
                    self.chosen[node.id] = Choice(source.device, f"metadata of '{node.inputs[0].node.name}'")
                    continue
            self.chosen[node.id] = self._choice(allowed[0], self.constraints.reason(node, group, why))
        for node in late:
            self._beside_consumers(node)

    def _choice(self, device: DeviceSpec, reason: str) -> Choice:
        """The choice of a device for a reason that many nodes may have: one for all of them."""
        found = self._usual.get((id(device), reason))
        if found is None:
            found = self._usual[id(device), reason] = Choice(device, reason)
        return found

    def _beside_consumers(self, node: Node) -> None:
        """Put a generator where it is used, if that is one device."""
        allowed, why = self.constraints.allowed(self.constraints.groups[node.id])
        choices = [self.chosen.get(edge.dst.id) for edge in self.constraints.consumers[node.id]]
        users = {None if choice is None else choice.device for choice in choices}
        alone = len(self.constraints.groups[node.id].members) == 1
        if alone and len(users) == 1 and (device := users.pop()) is not None and device in allowed:
            consumer = self.constraints.consumers[node.id][0].dst
            self.chosen[node.id] = Choice(device, f"a generator, next to its consumer '{consumer.name}'")
        else:
            self.chosen[node.id] = Choice(
                allowed[0], self.constraints.reason(node, self.constraints.groups[node.id], why)
            )

    def _is_link(self, node: Node) -> bool:
        """An Identity that asks for nothing, between two nodes that ask for the same device."""
        if node.op != "Identity" or node.device or node.control_inputs or len(self.constraints.consumers[node.id]) > 1:
            return False
        users = self.constraints.consumers[node.id]
        return node.inputs[0].node.device == (users[0].dst.device if users else "")

    def _beside_producer(self, node: Node) -> None:
        allowed, why = self.constraints.allowed(self.constraints.groups[node.id])
        source = self.chosen.get(node.inputs[0].node.id)
        if source is not None and source.device in allowed:
            self.chosen[node.id] = Choice(source.device, f"passes on '{node.inputs[0].node.name}'")
        else:
            self.chosen[node.id] = Choice(
                allowed[0], self.constraints.reason(node, self.constraints.groups[node.id], why)
            )

    @staticmethod
    def _is_generator(node: Node) -> bool:
        return not node.inputs and node.num_outputs == 1 and not node.output_types[0].is_ref
