"""The first values of a graph's variables: its initialisers are run, and what they made is written as a checkpoint."""

from __future__ import annotations

from toolkit.errors import GraphmillError, UsageError
from toolkit.formats import bundle
from toolkit.graph.metagraph import MetaGraph
from toolkit.kernels.resources import variables
from toolkit.policy.rules import Policy
from toolkit.runtime.saving.saver import Saver, variable_cells
from toolkit.runtime.session import Session
from toolkit.runtime.training.scaffold import Scaffold, run_in_dependency_order


def write_initial_values(meta: MetaGraph, prefix: str, policy: Policy | None = None) -> None:
    """Run the initialisers of global and local variables, and write the variables as a checkpoint.

    Args:
        policy: what the initialisers may touch; by default nothing outside of the graph.

    Raises:
        UsageError: nothing initialises the variables, or their initialisers need what nobody feeds here.
    """
    scaffold = Scaffold.of(meta)
    if not scaffold.init_ops:
        raise UsageError(
            "its variables have no values, and nothing initialises them; train it (graphmill run --checkpoint-dir), "
            "then: graphmill build --from-checkpoint GRAPH PREFIX"
        )
    with Session(meta, policy=policy) as session:
        try:
            run_in_dependency_order(session, scaffold.init_ops)
            run_in_dependency_order(session, scaffold.local_init_ops)
        except GraphmillError as error:
            raise UsageError(
                f"its variables have no values, and their initialisers cannot be run: {error.message}", node=error.node
            ) from None
        if meta.saver is not None and meta.saver.save_tensor_name:
            Saver(meta).save(session, prefix, write_meta_graph=False)
            return
        cells = variable_cells(session, meta.graph)
        with bundle.BundleWriter(prefix) as writer:
            for name in sorted(cells):
                with cells[name].lock:
                    if cells[name].value is not None:
                        writer.add(name, variables.read(cells[name]), cells[name].dtype)
