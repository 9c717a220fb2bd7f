"""What helps where a step lacks something that has to run first: values of variables, iterators, tables."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from toolkit.errors import FailedPreconditionError
from toolkit.formats.models.model import Model, ModelKind, variables_prefix
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.saving.saver import variable_cells, variable_nodes
from toolkit.runtime.session import Session
from toolkit.runtime.training.scaffold import Scaffold

#: what helps where variables have no values
_GIVE_VALUES = "; give the variables values with --init, --checkpoint PREFIX or --checkpoint-dir DIR"


class Hints:
    """Adds to what the steps of a run raise which option helps."""

    def __init__(self, model: Model, options: RunOptions, scaffold: Scaffold):
        self._model, self._options, self._scaffold = model, options, scaffold

    @contextmanager
    def around_step(self, session: Session) -> Generator[None]:
        """Around a step: where variables have no values, say how they get them."""
        try:
            yield
        except FailedPreconditionError as error:
            options = self._options
            if not self._gives_values() and self._lacks_values(session):
                beside = variables_prefix(self._model)
                error.message += _GIVE_VALUES + (f" (beside it lies --checkpoint {beside})" if beside else "")
            elif not options.init_ops and (
                names := self._makers_of_iterator(error.node) or self._fillers_of_table(error.node)
            ):
                error.message = (
                    f"{error.message.rstrip('.')}; run it first with --init-op {' or --init-op '.join(names)}"
                )
            raise

    def _gives_values(self) -> bool:
        return bool(self._options.init or self._options.checkpoint or self._options.checkpoint_dir)

    @contextmanager
    def around_session(self) -> Generator[None]:
        """Around a session: likewise for what its queue runners raise, which is told when it has been closed."""
        try:
            yield
        except FailedPreconditionError as error:
            has_values = self._gives_values() or self._options.init_ops or self._model.kind is ModelKind.SAVED_MODEL
            if _GIVE_VALUES not in error.message and not has_values and variable_nodes(self._model.graph):
                error.message += _GIVE_VALUES
            raise

    def _lacks_values(self, session: Session) -> bool:
        if session.is_remote:
            return bool(variable_nodes(self._model.graph)) and bool(self._scaffold.uninitialized(session))
        return bool(variable_nodes(self._model.graph)) and any(
            cell.value is None for cell in variable_cells(session, self._model.graph).values()
        )

    def _makers_of_iterator(self, name: str | None) -> list[str]:
        """What initialises the iterator that a node takes elements from."""
        node = self._model.graph.get(name or "")
        if node is None or not node.op.startswith("IteratorGetNext"):
            return []
        iterator = node.inputs[0]
        return [each.name for each in self._model.graph if each.op == "MakeIterator" and iterator in each.inputs]

    def _fillers_of_table(self, name: str | None) -> list[str]:
        """What fills the table that a node looks something up in; the operation alone that stands for all tables."""
        node = self._model.graph.get(name or "")
        if node is None or "Lookup" not in node.op or not node.inputs:
            return []
        from toolkit.passes.freezing.freeze_tables import FILLING

        graph, table = self._model.graph, node.inputs[0]
        fills = {each: each.name for each in graph if each.op in FILLING and each.inputs[0] == table}
        whole = [each.name for each in graph if each.op == "NoOp" and not fills.keys().isdisjoint(each.control_inputs)]
        return whole[:1] or list(fills.values())
