"""Convolutions and attention by cuDNN 9, through the graphs of nvidia-cudnn-frontend (its module `cudnn`).

A convolution and its epilogue are one graph, for which cuDNN's heuristics propose engines; the first that can be built
becomes the plan, and is given addresses from then on. TensorFlow's SAME may pad one more behind than before, which
cuDNN takes as it is (pre- and post-padding).
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.kernels.cuda.driver.base import Context, Span, Stream
from toolkit.kernels.cuda.libraries import cudnn_attention
from toolkit.kernels.cuda.libraries.attention import Attention, AttentionGradient, check_attention
from toolkit.kernels.cuda.libraries.base import Convolution, LibraryError, check_convolution, is_result
from toolkit.kernels.cuda.libraries.choosing import Choosing, Way, is_repeatable
from toolkit.kernels.cuda.libraries.workspaces import Workspace

#: names of tensors in a graph
_X, _W, _Y, _BIAS, _ADDED = 1, 2, 3, 4, 5
#: the operands and the result of each kind
_ROLES = {"forward": (_X, _W, _Y), "input": (_W, _Y, _X), "filter": (_X, _Y, _W)}
#: engines that want more memory than this are passed over; those of networks' convolutions want less
_MOST_WORKSPACE = 1 << 30
#: and those that are only tried than this: what was given to a plan once stays taken
_MOST_TRIED = 128 << 20
#: the first piece of memory of a stream, enough for most plans, so that few follow
_WORKSPACE = 32 << 20
_TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "bfloat16": "BFLOAT16"}


def load() -> Any:
    """
    Raises:
        ImportError: the frontend or cuDNN itself is not there; the text says which.
    """
    try:
        found: Any = importlib.import_module("cudnn")
    except OSError as error:  # it opens shared libraries while it is imported
        raise ImportError(f"cuDNN's frontend cannot be loaded: {error}") from error
    try:
        found.backend_version()
    except Exception as error:  # whatever the extension raises without its library
        raise ImportError(f"cuDNN is not there: {error}") from error
    return found


#: what plans are made for
_Asked = Convolution | Attention | AttentionGradient


@dataclass(slots=True)
class _Plan:
    """Attributes:
    graph: with the plan that the heuristics chose, built.
    workspace: bytes of what is run.
    number: of the plan that was found to be fastest, None for the heuristics' choice.
    is_open: it may still be found out.
    """

    graph: Any
    workspace: int
    number: int | None = None
    is_open: bool = True


class Cudnn:
    """cuDNN in one context.

    Args:
        enter: makes the context the calling thread's.

    Raises:
        ImportError: it is not there.
        LibraryError: it does not start.
    """

    def __init__(self, context: Context, enter: Callable[[], Any]):
        self._cudnn = load()
        self._enter = enter
        self._workspace = Workspace(context, _WORKSPACE)
        self._choosing = Choosing(context)
        self._plans: dict[_Asked, _Plan | None] = {}
        self._lock = threading.Lock()
        enter()
        try:
            self._handle = self._cudnn.create_handle()
        except RuntimeError as error:
            raise LibraryError(f"cudnnCreate failed: {error}") from error

    @property
    def version(self) -> str:
        """ "9.28.1"."""
        number = int(self._cudnn.backend_version())
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def supports(self, convolution: Convolution) -> bool:
        with self._lock:
            return self._plan(convolution) is not None

    def convolve(
        self,
        convolution: Convolution,
        first: Span,
        second: Span,
        out: Span,
        stream: Stream,
        *,
        bias: Span | None = None,
        added: Span | None = None,
    ) -> None:
        check_convolution(convolution, bias, added)
        with self._lock:
            plan = self._plan(convolution)
            if plan is None:
                raise LibraryError(f"cuDNN has no engine for {convolution}")
            addresses = dict(zip(_ROLES[convolution.kind], (first.address, second.address, out.address), strict=True))
            if bias is not None:
                addresses[_BIAS] = bias.address
            if added is not None:
                addresses[_ADDED] = added.address
            if plan.is_open:
                again = is_repeatable((out,), (first, second, bias, added))
                self._choose(plan, addresses, stream, convolution, again=again)
            self._run(plan, addresses, stream, convolution)

    def attends(self, attention: Attention | AttentionGradient) -> bool:
        with self._lock:
            return self._plan(attention) is not None

    def attend(
        self,
        attention: Attention,
        q: Span,
        k: Span,
        v: Span,
        out: Span,
        stream: Stream,
        *,
        mask: Span | None = None,
        statistics: Span | None = None,
    ) -> None:
        check_attention(attention, mask, statistics)
        spans = {
            cudnn_attention.Q: q, cudnn_attention.K: k, cudnn_attention.V: v, cudnn_attention.OUT: out,
            cudnn_attention.MASK: mask, cudnn_attention.STATISTICS: statistics,
        }  # fmt: skip
        self._attend(attention, spans, stream)

    def attend_back(
        self,
        gradient: AttentionGradient,
        q: Span,
        k: Span,
        v: Span,
        out: Span,
        d_out: Span,
        statistics: Span,
        made: Sequence[Span],
        stream: Stream,
        *,
        mask: Span | None = None,
    ) -> None:
        check_attention(gradient.forward, mask, statistics)
        dq, dk, dv = made
        spans = {
            cudnn_attention.Q: q, cudnn_attention.K: k, cudnn_attention.V: v, cudnn_attention.OUT: out,
            cudnn_attention.D_OUT: d_out, cudnn_attention.STATISTICS: statistics, cudnn_attention.MASK: mask,
            cudnn_attention.DQ: dq, cudnn_attention.DK: dk, cudnn_attention.DV: dv,
        }  # fmt: skip
        self._attend(gradient, spans, stream)

    def _attend(self, of: Attention | AttentionGradient, spans: dict[int, Span | None], stream: Stream) -> None:
        with self._lock:
            plan = self._plan(of)
            if plan is None:
                raise LibraryError(f"cuDNN has no engine for {of}")
            self._run(plan, {uid: span.address for uid, span in spans.items() if span is not None}, stream, of)

    def _run(self, plan: _Plan, addresses: dict[int, int], stream: Stream, of: _Asked) -> None:
        """Put a plan into a stream, under the lock."""
        workspace = self._workspace.of(max(plan.workspace, 1))
        self._enter()
        self._cudnn.set_stream(handle=self._handle, stream=stream.handle)
        try:
            if plan.number is None:
                plan.graph.execute(addresses, workspace.address, handle=self._handle)
            else:
                plan.graph.execute_plan_at_index(addresses, workspace.address, plan.number, handle=self._handle)
        except RuntimeError as error:
            raise LibraryError(f"cuDNN failed to run {of}: {error}") from error

    def _choose(self, plan: _Plan, addresses: dict[int, int], stream: Stream, of: Convolution, *, again: bool) -> None:
        """Settle which of the heuristics' plans is used from now on, unless the call is being recorded.

        Args:
            again: the call may be done again and again.
        """
        if self._choosing.is_over or not again or not hasattr(plan.graph, "execute_plan_at_index"):
            plan.is_open = False  # frontends have had plans by number since 1.1
        elif not self._choosing.is_recorded(stream):
            plan.is_open = False
            found = self._choosing.fastest(self._ways(plan, addresses, of), stream)
            if found is not None:
                plan.number, plan.workspace = found
            else:  # a graph runs the plan that was built last
                plan.graph = self._build(of)

    def _ways(self, plan: _Plan, addresses: dict[int, int], of: Convolution) -> Iterator[Way]:
        """The heuristics' plans in their order, built one by one; the first is what they chose."""
        graph = plan.graph
        for number in range(int(graph.get_execution_plan_count())):
            try:
                graph.build_plan_at_index(number)
                workspace = int(graph.get_workspace_size_plan_at_index(number))
            except (RuntimeError, ValueError):  # no such engine for this, or one that is refused
                continue
            if workspace <= max(plan.workspace, _MOST_TRIED):
                tried = _Plan(graph, workspace, number)

                def run(stream: Stream, tried: _Plan = tried) -> None:
                    self._run(tried, addresses, stream, of)

                yield Way((number, workspace), run)

    def _plan(self, of: _Asked) -> _Plan | None:
        """The plan of a configuration, None if no engine takes it."""
        if isinstance(of, Convolution) and (of.dtype not in _TYPES or not is_result(of.dtype, of.made)):
            return None
        if of not in self._plans:
            self._enter()
            try:
                graph = self._build(of)
            except self._cudnn.cudnnGraphNotSupportedError:
                self._plans[of] = None
            except RuntimeError as error:
                raise LibraryError(f"cuDNN failed to plan {of}: {error}") from error
            else:
                self._plans[of] = _Plan(graph, int(graph.get_workspace_size()))
        return self._plans[of]

    def _build(self, of: _Asked) -> Any:
        if isinstance(of, Attention):
            return cudnn_attention.build_attention(self._cudnn, of, _MOST_WORKSPACE, handle=self._handle)
        if isinstance(of, AttentionGradient):
            return cudnn_attention.build_gradient(self._cudnn, of, _MOST_WORKSPACE, handle=self._handle)
        return build(self._cudnn, of, handle=self._handle)


def build(cudnn: Any, convolution: Convolution, **device: Any) -> Any:
    """The graph of a configuration, its plan built.

    Args:
        device: `handle`, or `device_property` for a GPU that is not here.

    Raises:
        cudnn.cudnnGraphNotSupportedError: no engine takes it.
    """
    c = convolution
    double = c.dtype == "float64"
    wide = cudnn.data_type.DOUBLE if double else cudnn.data_type.FLOAT
    dtype, made_type = (getattr(cudnn.data_type, _TYPES[name]) for name in (c.dtype, c.result))
    graph = cudnn.pygraph(io_data_type=dtype, intermediate_data_type=wide, compute_data_type=wide, **device)
    shapes = {
        _X: (c.batch, c.channels, *c.sizes),
        _W: (c.filters, c.channels // c.groups, *c.kernel),
        _Y: (c.batch, c.filters, *c.out),
        _BIAS: (1, c.filters, *(1 for _ in c.out)),
    }
    shapes[_ADDED] = shapes[_Y]

    def tensor(uid: int) -> Any:
        shape = shapes[uid]
        kind = made_type if uid in (_BIAS, _ADDED) else dtype
        return graph.tensor(dim=list(shape), stride=strides(shape, c.channels_first), data_type=kind, uid=uid)

    how = {
        "pre_padding": [before for before, _ in c.pads],
        "post_padding": [after for _, after in c.pads],
        "stride": list(c.strides),
        "dilation": list(c.dilations),
    }
    first, second, result = _ROLES[c.kind]
    if c.kind == "forward":
        made = graph.conv_fprop(image=tensor(first), weight=tensor(second), **how)
        made = _epilogue(graph, made, c.epilogue, tensor)
    elif c.kind == "input":
        made = graph.conv_dgrad(filter=tensor(first), loss=tensor(second), **how)
    else:
        made = graph.conv_wgrad(image=tensor(first), loss=tensor(second), **how)
    shape = shapes[result]
    made.set_output(True).set_uid(result).set_data_type(made_type)
    made.set_dim(list(shape)).set_stride(strides(shape, c.channels_first))
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.deselect_numeric_notes(_refused(cudnn.numerical_note, c))
    graph.deselect_workspace_greater_than(_MOST_WORKSPACE)
    graph.build_plans()
    return graph


def _epilogue(graph: Any, y: Any, names: Sequence[str], tensor: Callable[[int], Any]) -> Any:
    for name in names:
        if name == "bias":
            y = graph.add(y, tensor(_BIAS))
        elif name == "add":
            y = graph.add(y, tensor(_ADDED))
        elif name == "relu6":
            y = graph.relu(y, lower_clip=0.0, upper_clip=6.0)
        else:
            y = getattr(graph, name)(y)
    return y


def _refused(note: Any, c: Convolution) -> list[Any]:
    """Kinds of engines whose results would be further from the sums of products than their type says."""
    refused = [note.REDUCED_PRECISION_REDUCTION]
    if c.dtype in ("float32", "float64") and not c.tf32:
        refused += [note.TENSOR_CORE, note.DOWN_CONVERT_INPUTS, note.FFT, note.WINOGRAD]
    if c.deterministic:
        refused.append(note.NONDETERMINISTIC)
    return refused


def strides(shape: Sequence[int], channels_first: bool) -> list[int]:
    """Of (batch, channels, spatial...), as it lies in memory."""
    order = [*range(len(shape) - 1, -1, -1)]
    if not channels_first:  # channels change fastest
        order = [1, *(axis for axis in order if axis != 1)]
    found = [0] * len(shape)
    step = 1
    for axis in order:
        found[axis] = step
        step *= shape[axis]
    return found
