# The arguments of TensorFlow's functions may be nested in any way, so `elements` says what they are, not types.
# pyright: basic
"""Parts of a graph made again, with other inputs, in another scope or graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from schemas import attr_value_pb2
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.graph_editor.elements import ControlOutputs, make_list_of_t, make_placeholder_from_tensor, plain
from toolkit.client.graph_editor.views import SubGraphView, sgv
from toolkit.client.graph_editor.walks import get_walks_intersection_ops
from toolkit.errors import ArgumentTypeError, ArgumentValueError

#: collections that programs know by these names whatever the scope is; those of their own are in the copy's scope
_COMMON = frozenset({
    "variables", "local_variables", "model_variables", "trainable_variables", "summaries", "queue_runners",
    "table_initializer", "asset_filepaths", "moving_average_variables", "regularization_losses", "biases", "weights",
    "activations", "update_ops", "losses", "savers", "concatenated_variables", "init_op", "local_init_op", "ready_op",
    "ready_for_local_init_op", "summary_op", "global_step", "eval_step", "train_op", "cond_context", "while_context",
    "metric_variables", "trainable_resource_variables", "saveable_objects",
})  # fmt: skip


class TransformerInfo:
    """What became of the operations and tensors that were copied."""

    def __init__(self, info: Any):
        self._new: dict[Any, Any] = info
        self._old = {new: old for old, new in info.items()}

    @property
    def _transformed_ops(self) -> dict[Operation, Operation]:
        """TensorFlow's name for the operations alone, which programs read."""
        return {old: new for old, new in self._new.items() if isinstance(old, Operation)}

    @property
    def _transformed_ts(self) -> dict[Tensor, Tensor]:
        """As `_transformed_ops`, of tensors."""
        return {old: new for old, new in self._new.items() if isinstance(old, Tensor)}

    def transformed(self, original: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """The copy of an operation, a tensor or a part of a graph; of what was not copied, what `missing_fn` says.

        Raises:
            ArgumentTypeError: something else is given.
        """
        return _looked_up(self._new, original, missing_fn)

    def original(self, transformed: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
        """What a copy was made of; see `transformed`."""
        return _looked_up(self._old, transformed, missing_fn)


def _looked_up(found: dict[Any, Any], wanted: Any, missing_fn: Callable[[Any], Any] | None) -> Any:
    if isinstance(wanted, SubGraphView):
        return _same_view(wanted, lambda each: found.get(each))
    element = plain(wanted)
    if not isinstance(element, Operation | Tensor):
        raise ArgumentTypeError(f"expected an operation, a tensor or a part of a graph, not {wanted!r}")
    if element in found:
        return found[element]
    return None if missing_fn is None else missing_fn(element)


def _same_view(view: SubGraphView, of: Callable[[Any], Any]) -> SubGraphView:
    """A view of what stands for a view's operations, with its inputs and outputs as far as they were made again."""
    through = [made for tensor in view.passthroughs if (made := of(tensor)) is not None]
    found = SubGraphView([made for op in view.ops if (made := of(op)) is not None], through)
    found._inputs = [made for tensor in view.inputs if (made := of(tensor)) is not None]
    found._outputs = [made for tensor in view.outputs if (made := of(tensor)) is not None]
    return found


class _Copier:
    """One copy.

    Args:
        outside: what a copy takes for a tensor that is not copied, and the copy's scope; called for each use.
    """

    def __init__(
        self, view: SubGraphView, graph: Graph, scope: tuple[str, str], outside: Callable[[Tensor, str], Tensor]
    ):
        self._view, self._graph, self._outside = view, graph, outside
        self._scope, self._from = scope
        self.made: dict[Any, Any] = {}

    def run(self) -> TransformerInfo:
        inside = set(self._view.ops)
        for op in self._view.ops:  # a copy's name is told before its inputs are there: loops go round
            self._make(op)
        for op in self._view.ops:
            new = self.made[op]
            new.node.inputs = [
                (self.made[each] if each.op in inside else self._outside(each, self._scope)).output
                for each in op.inputs
            ]
            waits = [self.made[each] for each in op.control_inputs if each in inside]
            new.node.control_inputs = sorted((each.node for each in waits), key=lambda node: node.name)
        self._graph.core.version += 1
        for op in self._view.ops:
            self._graph.shapes.update(self.made[op].node)
        self._join_collections()
        for tensor in self._view.passthroughs:
            self.made[tensor] = self._outside(tensor, self._scope)
        return TransformerInfo(self.made)

    def _make(self, op: Operation) -> None:
        graph, node = self._graph, op.node
        for function in () if graph is op.graph else op.graph.core.library:
            graph.core.library.add(op.graph.core.library.function(function))
        attrs: dict[str, attr_value_pb2.AttrValue] = {key: node.attrs.proto(key) for key in node.attrs}
        with graph.name_scope(None):
            name = graph.unique_name(self.name(op.name))
        copy = graph.core.add(node.op, name, attrs=attrs, device=node.device)
        new = self.made[op] = graph.operation(copy)
        self.made.update(zip(op.outputs, new.outputs, strict=True))

    def name(self, name: str) -> str:
        """A name in the copy's scope.

        Raises:
            ArgumentValueError: it is not in the scope that is copied.
        """
        if not name.startswith(self._from):
            raise ArgumentValueError(f"'{name}' is not in the scope that is copied, '{self._from}'")
        return self._scope + name[len(self._from) :]

    def _join_collections(self) -> None:
        """Copies are in the collections that their originals are in."""
        for key, items in list(self._view.graph.collections.items()):
            there = {id(item) for item in items}
            new = [made for old, made in self.made.items() if id(old) in there]
            if new:
                self._graph.add_to_collections([key if key in _COMMON else self.name(key)], new[0])
                for each in new[1:]:
                    self._graph.add_to_collection(key if key in _COMMON else self.name(key), each)


def copy(
    sgv: Any, dst_graph: Any = None, dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False
) -> tuple[SubGraphView, TransformerInfo]:
    """Operations made again, with a placeholder for each input from outside.

    Args:
        sgv: what to copy: a view, or what `make_view` takes.
        dst_graph: where the copy goes; by default where the originals are.
        dst_scope, src_scope: the scope of the copy, in place of that of the originals.
        reuse_dst_scope: `dst_scope` as it is, if it is taken, too.

    Returns:
        A view of the copy, and what became of what.

    Raises:
        ArgumentValueError: an operation is not in `src_scope`.
    """
    return _copied(sgv, dst_graph, (dst_scope, src_scope, reuse_dst_scope), make_placeholder_from_tensor)


def copy_with_input_replacements(
    sgv: Any, replacement_ts: Any, dst_graph: Any = None, dst_scope: str = "", src_scope: str = "",
    reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:  # fmt: skip
    """Operations made again, with other inputs; see `copy`.

    Args:
        replacement_ts: tensors to what takes their places. Others from outside stay as they are; if the copy is in
            another graph, placeholders stand for them.
    """
    replaced = dict(zip(make_list_of_t(list(replacement_ts)), replacement_ts.values(), strict=True))
    view = _view(sgv)
    stays = dst_graph is None or dst_graph is view.graph

    def outside(tensor: Tensor, scope: str) -> Tensor:
        if tensor in replaced:
            return make_list_of_t(replaced[tensor])[0]
        return tensor if stays else make_placeholder_from_tensor(tensor, scope)

    return _copied(view, dst_graph, (dst_scope, src_scope, reuse_dst_scope), outside)


def _view(given: Any) -> SubGraphView:
    return sgv(given)


def _copied(
    given: Any, graph: Any, names: tuple[str, str, bool], outside: Callable[[Tensor, str], Tensor]
) -> tuple[SubGraphView, TransformerInfo]:
    view = _view(given)
    graph = view.graph if graph is None else graph
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(f"dst_graph: expected a graph, not {graph!r}")
    scope, source, reuses = names
    scope, source = scope.rstrip("/"), source.rstrip("/")
    with graph.as_default():
        if scope and not reuses:
            with graph.name_scope(None):
                scope = graph.unique_name(scope)
        scopes = (f"{scope}/" if scope else "", f"{source}/" if source else "")
        info = _Copier(view, graph, scopes, outside).run()
    return info.transformed(view), info


def graph_replace(
    target_ts: Any, replacement_ts: Any, dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False
) -> Any:
    """Tensors computed again with others in the place of some that they depend on.

    Args:
        target_ts: a tensor, or a nested structure of such.
        replacement_ts: tensors to what takes their places.
        dst_scope, src_scope, reuse_dst_scope: see `copy`.

    Returns:
        What was computed again, in the structure of `target_ts`; what depends on nothing replaced, as it is.

    Raises:
        ArgumentValueError: no target depends on anything that is replaced, or they are of several graphs.
    """
    if not isinstance(replacement_ts, Mapping):
        raise ArgumentTypeError(f"replacement_ts: expected tensors to tensors, not {replacement_ts!r}")
    targets = make_list_of_t(_leaves(target_ts))
    replaced = make_list_of_t(list(replacement_ts))
    ops: Iterable[Operation] = ()
    if targets and replaced:
        ops = get_walks_intersection_ops(replaced, targets, control_ios=ControlOutputs(targets[0].graph))
    if not ops:
        raise ArgumentValueError("no target depends on what is replaced: replacement_ts names other tensors")
    _, info = copy_with_input_replacements(
        list(ops), replacement_ts, None, dst_scope=dst_scope, src_scope=src_scope, reuse_dst_scope=reuse_dst_scope
    )
    return _mapped(target_ts, lambda tensor: info.transformed(tensor, lambda same: same))


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    _mapped(tree, found.append)
    return found


def _mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    """A structure with a function's results in it; keys may be anything, tensors too, and stay in their order."""
    if isinstance(tree, Mapping):
        items = [(key, _mapped(value, function)) for key, value in tree.items()]
        return type(tree)(items)  # type: ignore[call-arg]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[_mapped(value, function) for value in tree])
    if isinstance(tree, list | tuple):
        return type(tree)(_mapped(value, function) for value in tree)
    return function(tree)
