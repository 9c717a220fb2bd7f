"""Whether variables are assigned and saved in a graph whose nodes are a table."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, ints


def variables_fit(
    table: NodeColumns,
    variables: Collection[str],
    assigns: Collection[str],
    saves: Collection[str],
    pass_on: Collection[str],
) -> bool:
    """Whether each variable is assigned, is saved if any is, and has no shared name; False where nodes have to say.

    Args:
        variables, assigns, saves, pass_on: ops: of variables, that give a value to their first input, that save their
            inputs, and that hand on a variable or its value.
    """
    is_variable = table.has_op(variables)
    if not is_variable.any():
        return True
    used = map(table.kinds.all.__getitem__, table.used_kinds())
    if any(
        kind.op in variables and kind.head.attr["shared_name"].s for kind in used if "shared_name" in kind.head.attr
    ):
        return False
    is_data = table.index != CONTROL
    is_first = np.zeros(len(table.source), np.bool_)
    is_first[table.begin[:-1][table.begin[:-1] < table.begin[1:]]] = True
    owners = table.owners()
    passes = table.has_op(pass_on)
    assigned = _origins(table, table.source[is_first & is_data & table.has_op(assigns)[owners]], passes)
    if (is_variable & ~assigned).any():
        return False
    saved = _origins(table, table.source[is_data & table.has_op(saves)[owners]], passes)
    return not (saved & is_variable).any() or not (is_variable & ~saved).any()


def _origins(table: NodeColumns, sources: NDArray[np.int32], passes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """These nodes, and those whose value or handle they pass on."""
    found = np.zeros(len(table), np.bool_)
    found[sources] = True
    waiting = ints(np.flatnonzero(found & passes))
    while waiting:
        number = waiting.pop()
        for edge in range(int(table.begin[number]), int(table.begin[number + 1])):
            source = int(table.source[edge])
            if table.index[edge] != CONTROL and not found[source]:
                found[source] = True
                if passes[source]:
                    waiting.append(source)
    return found
