"""The state of a spec that is being built: what its names stand for, and what was found wrong with it.

Sections are built one after the other (`document` has them in order). What is wrong with one entry is noted, and the
rest is built nevertheless, so that one run tells all mistakes: a name whose entry failed stands for `Failed`, and what
needs it fails silently with it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import Any

from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.errors import GraphmillError, did_you_mean
from toolkit.formats.schema.mistakes import Mistakes
from toolkit.formats.settings.tree import Section, SpecError, YamlItem


class FollowError(SpecError):
    """Something cannot be made because of a mistake that is noted already."""


class Failed:
    """What a name stands for whose entry could not be made."""


FAILED = Failed()


class Names:
    """What the names of one body stand for: the spec's own, or that of a branch, a loop or a function.

    Args:
        outer: the body around it, whose names are visible too.
        scope: the scope of the spec that the body stands in.
    """

    def __init__(self, outer: Names | None = None, scope: str = ""):
        self.outer = outer
        self.scope = scope
        self.found: dict[str, Any] = {}

    def visible(self, scope: str) -> Generator[tuple[Names, str]]:
        """The bodies and scopes in which a name is looked for, from the innermost outwards."""
        names: Names | None = self
        while names is not None:
            yield names, scope
            while scope:
                scope = scope.rpartition("/")[0]
                yield names, scope
            names, scope = names.outer, names.scope

    def all(self) -> list[str]:
        """All names that are visible."""
        return [*self.found, *(self.outer.all() if self.outer is not None else [])]


class SpecBuilder:
    """What the sections of one spec are built into.

    Attributes:
        graph: the graph.
        names: the names of the innermost body that is being built.
        last: the tensor of the entry before, which layers take by default.
        functions: those of the section `functions`, for `function_entries`.
        train_ops, saver: what other sections need.
    """

    def __init__(self, root: Section, mistakes: Mistakes):
        self.root = root
        self.mistakes = mistakes
        self.graph = Graph()
        self.names = Names()
        self.last: Tensor | Failed | None = None
        self.functions: dict[str, Any] = {}
        self.losses: dict[str, Tensor] = {}
        self.train_ops: dict[str, Operation] = {}
        self.saver: Any = None

    # -- mistakes ------------------------------------------------------------------------------------------

    @contextmanager
    def noting(self, item: YamlItem, names: Iterable[str] = (), *, lasting: bool = False) -> Generator[None]:
        """Within this, what the client refuses is a mistake of `item`, which is noted; building goes on after it.

        Args:
            names: what stands for `FAILED` from then on.
            lasting: the entry would have been the one before the next.
        """
        try:
            yield
            return
        except FollowError:
            pass
        except SpecError as error:
            self.mistakes.add(error)
        except GraphmillError as error:
            self.mistakes.add(item.error(error.message))
        self.fail(names, last=lasting)

    @contextmanager
    def making(self, item: YamlItem, names: Iterable[str], *, lasting: bool = False) -> Generator[Section]:
        """As `noting`, where the keys of `PLACEMENT` say; gives the section of the entry."""
        with self.noting(item, names, lasting=lasting), ExitStack() as stack:
            section = item.section()
            self.place(section, stack)
            yield section

    def sound(self, found: YamlItem) -> Generator[tuple[str, YamlItem]]:
        """The entries of a mapping that fit the schema; the names of the others stand for `FAILED`."""
        for name, item in found.section():
            if self.mistakes.has(item):
                self.fail([name])
            else:
                yield name, item

    def fail(self, names: Iterable[str], *, last: bool = False) -> None:
        """Let names stand for what could not be made; `last`: so does the entry before the next."""
        for name in names:
            self.names.found.setdefault(name, FAILED)
        if last:
            self.last = FAILED

    # -- names ---------------------------------------------------------------------------------------------

    def declare(self, name: str, value: Any, item: YamlItem) -> None:
        """Let a name of the innermost body stand for a tensor or variable.

        Raises:
            SpecError: it is taken.
        """
        if name in self.names.found:
            raise item.error(f"the name '{name}' is taken by an earlier entry")
        self.names.found[name] = value

    def find(self, item: YamlItem, scope: str = "") -> Any:
        """What a name stands for: an entry (nearest scope first), a variable, or a node of the graph.

        Raises:
            SpecError: nothing; close names are suggested.
        """
        name = item.text()
        places = [(names, f"{prefix}/{name}" if prefix else name) for names, prefix in self.names.visible(scope)]
        for names, full in places:
            found = names.found.get(full)
            if found is FAILED or (found is None and _has_failed(names, full)):
                raise FollowError("")
            if found is not None:
                return found
        for _, full in places:
            found = self._in_graph(full, item)
            if found is not None:
                return found
        known = [*self.names.all(), *(node.name for node in self.graph.core)]
        raise item.error(f"nothing is named '{name}'{did_you_mean(name, known)}")

    def _in_graph(self, full: str, item: YamlItem) -> Any:
        plain, colon, index = full.rpartition(":")
        node = self.graph.core.get(plain if colon else full)
        if node is None:
            return None
        op = self.graph.operation(node)
        if not colon:
            return op.outputs[0] if op.outputs else op
        if index.isdigit() and int(index) < len(op.outputs):
            return op.outputs[int(index)]
        raise item.error(f"'{plain}' has {len(op.outputs)} output(s), so there is no '{item.value}'")

    def tensor(self, item: YamlItem, scope: str = "") -> Tensor:
        """The tensor (or variable's value) of a name.

        Raises:
            SpecError: it is no tensor.
        """
        found = self.find(item, scope)
        if isinstance(found, Operation):
            raise item.error(f"'{item.value}' is an operation without outputs; a tensor is needed")
        return found if isinstance(found, Tensor) else found.to_tensor()

    # -- bodies and places ---------------------------------------------------------------------------------

    @contextmanager
    def body(self, names: Names) -> Generator[None]:
        """Within this, entries belong to another body, whose first entry has none before it."""
        outer, last = self.names, self.last
        self.names, self.last = names, None
        try:
            yield
        finally:
            self.names, self.last = outer, last

    @contextmanager
    def inside(self, graph: Graph) -> Generator[None]:
        """Within this, nodes are of another graph: that of a function, which takes in what it uses of this one."""
        outer, self.graph = self.graph, graph
        try:
            yield
        finally:
            self.graph = outer

    def place(self, section: Section, stack: ExitStack, scope: str = "") -> None:
        """Open the scopes of the keys of `PLACEMENT`."""
        if (device := section.get("device")) is not None:
            stack.enter_context(self.graph.device(device.text()))
        if (target := section.get("colocate_with")) is not None:
            stack.enter_context(self.graph.colocate_with(self.find(target, scope)))
        if (controls := section.get("control_inputs")) is not None:
            stack.enter_context(self.graph.control_dependencies([self.find(c, scope) for c in controls.texts()]))


def _has_failed(names: Names, name: str) -> bool:
    """Whether a name is of a node that an entry would have made, had it not failed."""
    name = name.partition(":")[0]
    while name:
        if names.found.get(name) is FAILED:
            return True
        name = name.rpartition("/")[0]
    return False
