"""From a parsed spec to a graph: inputs, variables, nodes, loss, metrics, optimizer, saver, signatures."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from toolkit.client import array_ops, clip_ops, create, initializers, math_ops, nn_ops, variables
from toolkit.client.export import PREDICT_METHOD, predict_signature, to_meta_graph
from toolkit.client.graph import Graph
from toolkit.client.operation import Operation
from toolkit.client.spec import layers as spec_layers
from toolkit.client.tensor import IndexedSlices, Tensor
from toolkit.client.train import optimizers, schedules
from toolkit.client.train.global_step import get_or_create_global_step
from toolkit.client.train.saver import Saver
from toolkit.client.variable_store import get_variable, variable_scope
from toolkit.client.variables import BaseVariable
from toolkit.errors import GraphmillError, did_you_mean
from toolkit.formats.tree import Section, SpecError, YamlItem, dtype_of
from toolkit.graph import dtypes, opdefs
from toolkit.graph.device import DeviceSpec
from toolkit.graph.metagraph import GraphKeys, MetaGraph, Signature

TOP_KEYS = (
    "name", "description", "seed", "device", "resource_variables", "inputs", "variables", "nodes", "loss", "metrics",
    "optimizer", "summaries", "saver", "init", "signatures", "collections",
)  # fmt: skip
_PLACEMENT = ("device", "control_inputs", "colocate_with")
_ENTRY = ("name", "input", *_PLACEMENT)
_OP_KEYS = ("op", "name", "inputs", "attrs", *_PLACEMENT)
_VARIABLE_KEYS = (
    "shape", "dtype", "initializer", "value", "trainable", "regularizer", "collections", "resource", "device",
)  # fmt: skip
_SCOPE_KEYS = ("scope", "nodes", "device", "control_inputs")

LOSSES = (
    "sparse_softmax_cross_entropy", "softmax_cross_entropy", "sigmoid_cross_entropy", "mean_squared_error",
    "absolute_difference", "tensor",
)  # fmt: skip
METRICS = ("accuracy", "top_k_accuracy", "mean_squared_error", "mean", "tensor")


class SpecBuilder:
    """Builds one spec. The order of the sections in the file does not matter."""

    def __init__(self, root: YamlItem):
        self.root = root.section(TOP_KEYS)
        self.graph = Graph()
        self.tensors: dict[str, Tensor] = {}
        self.variables: dict[str, Any] = {}
        self.last: Tensor | None = None
        self.train: Operation | None = None
        self.saver: Saver | None = None

    def build(self) -> MetaGraph:
        """Make the graph and everything around it.

        Raises:
            SpecError: the spec is wrong; the message says where.
        """
        root = self.root
        seed = root.get("seed")
        self.graph.seed = None if seed is None else seed.integer(0)
        with self.graph.as_default(), ExitStack() as stack:
            self._enter_placement(root, stack)
            stack.enter_context(variable_scope("", use_resource=root.boolean("resource_variables", False)))
            self._inputs()
            self._variables()
            if (nodes := root.get("nodes")) is not None:
                self._nodes(nodes, "")
            self._loss()
            self._metrics()
            self._optimizer()
            self._summaries()
            self._saver()
            self._init()
            self._collections()
        if not len(self.graph.core):
            raise root.item.error("the spec makes no graph: give inputs, variables or nodes")
        return to_meta_graph(self.graph, self._signatures(), self.saver.saver_def if self.saver else None)

    # -- names ---------------------------------------------------------------------------------------------

    def declare(self, name: str, value: Tensor, item: YamlItem) -> None:
        if name in self.tensors or name in self.variables:
            raise item.error(f"the name '{name}' is taken by an earlier entry")
        self.tensors[name] = value

    def find(self, item: YamlItem, scope: str = "") -> Any:
        """What a name stands for: an entry of the spec (nearest scope first), a variable, or a node of the graph.

        Raises:
            SpecError: nothing; close names are suggested.
        """
        name = item.text()
        prefix = scope
        while True:
            full = f"{prefix}/{name}" if prefix else name
            if full in self.tensors:
                return self.tensors[full]
            if full in self.variables:
                return self.variables[full]
            plain, colon, index = full.rpartition(":")
            node = self.graph.core.get(plain if colon else full)
            if node is not None:
                op = self.graph.operation(node)
                if not colon:
                    return op.outputs[0] if op.outputs else op
                if index.isdigit() and int(index) < len(op.outputs):
                    return op.outputs[int(index)]
                raise item.error(f"'{plain}' has {len(op.outputs)} output(s), so there is no '{name}'")
            if not prefix:
                break
            prefix = prefix.rpartition("/")[0]
        known = [*self.tensors, *self.variables, *(n.name for n in self.graph.core)]
        raise item.error(f"nothing is named '{name}'{did_you_mean(name, known)}")

    def tensor(self, item: YamlItem, scope: str = "") -> Tensor:
        """The tensor (or variable's value) of a name.

        Raises:
            SpecError: it is no tensor.
        """
        found = self.find(item, scope)
        if isinstance(found, Operation):
            raise item.error(f"'{item.value}' is an operation without outputs; a tensor is needed")
        return found if isinstance(found, Tensor) else found.to_tensor()

    @contextmanager
    def at(self, item: YamlItem) -> Generator[None]:
        """Mistakes found by the client API are mistakes of this entry."""
        try:
            yield
        except SpecError:
            raise
        except GraphmillError as error:
            raise item.error(error.message) from None

    def _enter_placement(self, section: Section, stack: ExitStack, scope: str = "") -> None:
        if (device := section.get("device")) is not None:
            try:
                DeviceSpec.parse(device.text())
            except SpecError:
                raise
            except GraphmillError as error:
                raise device.error(error.message) from None
            stack.enter_context(self.graph.device(device.text()))
        if (target := section.get("colocate_with")) is not None:
            stack.enter_context(self.graph.colocate_with(self.find(target, scope)))
        if (controls := section.get("control_inputs")) is not None:
            stack.enter_context(self.graph.control_dependencies([self.find(c, scope) for c in controls.texts()]))

    # -- inputs and variables --------------------------------------------------------------------------------

    def _inputs(self) -> None:
        found = self.root.get("inputs")
        if found is None:
            return
        for name, item in found.section():
            section = item.section(["dtype", "shape", "default", "device"])
            with ExitStack() as stack, self.at(item):
                self._enter_placement(section, stack)
                shape = section.get("shape")
                sizes = None if shape is None else shape.sizes()
                dtype = dtype_of(section["dtype"]) if "dtype" in section else dtypes.float32
                default = section.get("default")
                if default is None:
                    tensor = array_ops.placeholder(dtype, sizes, name)
                else:
                    value = array_ops.constant(default.plain(), dtype, name=f"{name}/input")
                    tensor = array_ops.placeholder_with_default(value, value.shape if sizes is None else sizes, name)
            self.declare(name, tensor, item)
            if self.last is None:
                self.last = tensor

    def _variables(self) -> None:
        found = self.root.get("variables")
        if found is None:
            return
        for name, item in found.section():
            section = item.section(_VARIABLE_KEYS)
            with ExitStack() as stack, self.at(item):
                self._enter_placement(section, stack)
                dtype = dtype_of(section["dtype"]) if "dtype" in section else dtypes.float32
                value, shape = section.get("value"), section.get("shape")
                initial: Any = spec_layers.initializer(section.get("initializer"))
                if value is not None:
                    if initial is not None:
                        raise item.error("give either initializer or value, not both")
                    plain = array_ops.tensor_array(value.plain(), dtype)
                    initial, sizes = initializers.Constant(plain), list(plain.shape)
                elif shape is not None:
                    sizes = [size.integer(0) for size in shape.items()]
                else:
                    raise item.error("a variable needs shape (with initializer) or value")
                groups = section.get("collections")
                resource = section.get("resource")
                self.variables[name] = get_variable(
                    name, sizes, dtype, initial,
                    regularizer=spec_layers.regularizer(section.get("regularizer")),
                    trainable=section.boolean("trainable", True),
                    collections=None if groups is None else [_collection_name(g) for g in groups.texts()],
                    use_resource=None if resource is None else resource.boolean(),
                )  # fmt: skip

    # -- nodes ---------------------------------------------------------------------------------------------

    def _nodes(self, nodes: YamlItem, scope: str) -> None:
        for item in nodes.items():
            section = item.section()
            kinds = [key for key in ("layer", "op", "scope") if key in section]
            if len(kinds) != 1:
                raise item.error("each entry has exactly one of the keys layer, op and scope")
            {"layer": self._layer, "op": self._op, "scope": self._scope}[kinds[0]](item, section, scope)

    def _scope(self, item: YamlItem, section: Section, scope: str) -> None:
        section.check(_SCOPE_KEYS)
        name = section["scope"].text()
        full = f"{scope}/{name}" if scope else name
        with ExitStack() as stack, self.at(item):
            self._enter_placement(section, stack, scope)
            stack.enter_context(variable_scope(name))
            self._nodes(section["nodes"], full)

    def _layer(self, item: YamlItem, section: Section, scope: str) -> None:
        kind = section["layer"].text(spec_layers.LAYERS)
        entry = spec_layers.LAYERS[kind]
        section.check(["layer", *_ENTRY, *entry.keys])
        name = section.text("name", kind)
        given = section.get("input")
        if given is not None:
            inputs = [self.tensor(i, scope) for i in given.texts()]
        elif self.last is not None:
            inputs = [self.last]
        else:
            raise item.error("the layer has no input: the spec declares no inputs, and no entry comes before")
        full = f"{scope}/{name}" if scope else name
        with ExitStack() as stack, self.at(item):
            self._enter_placement(section, stack, scope)
            result = entry.build(spec_layers.LayerCall(section, name, inputs, lambda i: self.tensor(i, scope)))
        self.declare(full, result, item)
        self.last = result

    def _op(self, item: YamlItem, section: Section, scope: str) -> None:
        section.check(_OP_KEYS)
        kind = section["op"].text()
        op_def = opdefs.find(kind)
        if op_def is None:
            raise section["op"].error(f"there is no op '{kind}'{did_you_mean(kind, opdefs.names())}")
        name = section.text("name", kind)
        given = section.get("inputs")
        inputs: Any = []
        if given is not None:
            if isinstance(given.value, dict):
                inputs = {key: self._op_input(i, scope) for key, i in given.section([a.name for a in op_def.inputs])}
            else:
                inputs = [self._op_input(i, scope) for i in given.items()]
        attrs: dict[str, Any] = {}
        if (found := section.get("attrs")) is not None:
            custom = [key for key, _ in found.section() if key.startswith("_")]
            for key, value in found.section([*op_def.attrs, *custom]):
                attrs[key] = self._attr(op_def, key, value, found)
        if kind == "Const" and "dtype" not in attrs and "value" in attrs:
            attrs["dtype"] = dtypes.from_enum(attrs["value"].dtype)
        with ExitStack() as stack, self.at(item):
            self._enter_placement(section, stack, scope)
            op = create.create_op(kind, inputs, attrs, name)
        full = f"{scope}/{name}" if scope else name
        if op.outputs:
            self.declare(full, op.outputs[0], item)
            self.last = op.outputs[0]

    def _op_input(self, item: YamlItem, scope: str) -> Any:
        """A name, a number, nested numbers, a list of names, or {const: VALUE, dtype: TYPE}."""
        if isinstance(item.value, str):
            return self.find(item, scope)
        if isinstance(item.value, list):
            return [self._op_input(i, scope) for i in item.items()]
        if isinstance(item.value, dict):
            section = item.section(["const", "dtype"], ["const"])
            dtype = dtype_of(section["dtype"]) if "dtype" in section else None
            with self.at(item):
                value = array_ops.tensor_array(section["const"].plain(), dtype)
                return value if dtype is None else array_ops.constant(value, dtype)  # a type that was given stays
        if item.value is None:
            raise item.error("expected a name or a value, found nothing")
        return item.value

    def _attr(self, op_def: opdefs.OpDef, key: str, item: YamlItem, attrs: YamlItem) -> Any:
        definition = op_def.attrs.get(key)
        if definition is None:
            return item.plain()
        if definition.type == "tensor":
            from toolkit.client.convert import tensor_proto

            dtype = attrs.section().get("dtype")
            with self.at(item):
                return tensor_proto(item.plain(), None if dtype is None else dtype_of(dtype))
        value = item.plain()
        if definition.type == "float":
            return item.number()
        if definition.type == "list(float)":
            return [i.number() for i in item.items()]
        with self.at(item):
            return create.convert_attr(definition, value, op_def.name, "")

    # -- training ------------------------------------------------------------------------------------------

    def _loss(self) -> None:
        found = self.root.get("loss")
        if found is None:
            return
        keys = ["type", "name", "labels", "logits", "predictions", "tensor", "weight", "regularization", "device"]
        section = found.section(keys)
        kind = section["type"].text(LOSSES) if "type" in section else "tensor"
        name = section.text("name", "loss")
        with ExitStack() as stack, self.at(found):
            self._enter_placement(section, stack)
            scope = stack.enter_context(self.graph.name_scope(name))
            losses = self._loss_values(kind, section)
            weight = section.number("weight", 1.0)
            extra = self.graph.get_collection(GraphKeys.REGULARIZATION_LOSSES)
            extra = extra if section.boolean("regularization", bool(extra)) else []
            plain = weight == 1.0 and not extra
            loss = math_ops.reduce_mean(losses, name=scope if plain else None)
            if weight != 1.0:
                loss = math_ops.multiply(loss, weight, name=None if extra else scope)
            if extra:
                total = math_ops.add_n(extra) if len(extra) > 1 else extra[0]
                loss = math_ops.add(loss, total, name=scope)
        self.declare(name, loss, found)
        self.graph.add_to_collection(GraphKeys.LOSSES, loss)

    def _loss_values(self, kind: str, section: Section) -> Tensor:
        if kind == "tensor":
            return self.tensor(section["tensor"])
        labels = self.tensor(section["labels"])
        if kind in ("mean_squared_error", "absolute_difference"):
            predictions = self.tensor(section["predictions"])
            labels = math_ops.cast(labels, predictions.dtype)
            if kind == "mean_squared_error":
                return math_ops.square(predictions - labels)
            return math_ops.abs(predictions - labels)
        logits = self.tensor(section["logits"])
        if kind == "sparse_softmax_cross_entropy":
            return nn_ops.sparse_softmax_cross_entropy_with_logits(labels, logits, name="xent")
        labels = math_ops.cast(labels, logits.dtype)
        if kind == "softmax_cross_entropy":
            return nn_ops.softmax_cross_entropy_with_logits(labels, logits, name="xent")
        return nn_ops.sigmoid_cross_entropy_with_logits(labels, logits, name="xent")

    def _metrics(self) -> None:
        found = self.root.get("metrics")
        if found is None:
            return
        for name, item in found.section():
            section = item.section(["type", "labels", "predictions", "tensor", "k", "device"])
            kind = section.text("type", name if name in METRICS else None, METRICS)
            with ExitStack() as stack, self.at(item):
                self._enter_placement(section, stack)
                scope = stack.enter_context(self.graph.name_scope(name))
                values = self._metric_values(kind, section)
                metric = math_ops.reduce_mean(math_ops.cast(values, dtypes.float32), name=scope)
            self.declare(name, metric, item)

    def _metric_values(self, kind: str, section: Section) -> Tensor:
        if kind in ("mean", "tensor"):
            return self.tensor(section["tensor"])
        labels = self.tensor(section["labels"])
        predictions = self.tensor(section["predictions"])
        if kind == "mean_squared_error":
            return math_ops.square(predictions - math_ops.cast(labels, predictions.dtype))
        if kind == "top_k_accuracy":
            return nn_ops.in_top_k(predictions, labels, section.integer("k", 5, minimum=1))
        if predictions.static_shape.rank is not None and predictions.static_shape.rank > (
            labels.static_shape.rank or 1
        ):
            output_type = labels.dtype.base if labels.dtype.base in (dtypes.int32, dtypes.int64) else dtypes.int64
            predictions = math_ops.argmax(predictions, -1, output_type, name="prediction")
        return math_ops.equal(math_ops.cast(labels, predictions.dtype), predictions)

    def _optimizer(self) -> None:
        found = self.root.get("optimizer")
        if found is None:
            return
        section = found.section()
        kind = section["type"].text(optimizers.BY_NAME)
        common = ("type", "name", "learning_rate", "clip_norm", "clip_value", "colocate_gradients")
        section.check([*common, *_OPTIONS[kind]])
        loss = self.tensors.get(self.root["loss"].section().text("name", "loss")) if "loss" in self.root else None
        if loss is None:
            raise found.error("an optimizer needs a loss")
        name = section.text("name", "train")
        with self.at(found):
            step = get_or_create_global_step()
            options = {key: _option(key, section[key]) for key in _OPTIONS[kind] if key in section}
            rate = self._learning_rate(section, step)
            optimizer = optimizers.BY_NAME[kind](*([] if rate is None else [rate]), **options)
            with self.graph.control_dependencies(self.graph.get_collection(GraphKeys.UPDATE_OPS)):
                pairs = optimizer.compute_gradients(
                    loss, colocate_gradients_with_ops=section.boolean("colocate_gradients", False)
                )
                pairs = self._clipped(pairs, section)
                self.train = optimizer.apply_gradients(pairs, step, name)

    def _learning_rate(self, section: Section, step: Any) -> Any:
        found = section.get("learning_rate")
        if found is None:
            if section["type"].value not in ("adam", "adadelta"):
                raise section.item.error("the key 'learning_rate' is missing")
            return None
        if not isinstance(found.value, dict):
            return found.number(0)
        inner = found.section()
        schedule = schedules.BY_NAME[inner["schedule"].text(schedules.BY_NAME)]
        import inspect

        allowed = [p for p in inspect.signature(schedule).parameters if p not in ("global_step", "name")]
        inner.check(["schedule", *allowed])
        values = {key: item.plain() for key, item in inner if key != "schedule"}
        missing = [
            key for key in allowed
            if key not in values and inspect.signature(schedule).parameters[key].default is inspect.Parameter.empty
        ]  # fmt: skip
        if missing:
            raise found.error(f"the key '{missing[0]}' is missing")
        return schedule(global_step=step, name="learning_rate", **values)

    def _clipped(self, pairs: list[Any], section: Section) -> list[Any]:
        if (norm := section.get("clip_norm")) is not None:
            clipped, _ = clip_ops.clip_by_global_norm([g for g, _ in pairs], norm.number(0))
            return [(g, v) for g, (_, v) in zip(clipped, pairs, strict=True)]
        if (limit := section.get("clip_value")) is not None:
            bound = limit.number(0)
            out: list[Any] = []
            for grad, v in pairs:
                if isinstance(grad, IndexedSlices):
                    values = clip_ops.clip_by_value(grad.values, -bound, bound)
                    grad = IndexedSlices(values, grad.indices, grad.dense_shape)
                elif grad is not None:
                    grad = clip_ops.clip_by_value(grad, -bound, bound)
                out.append((grad, v))
            return out
        return pairs

    def _summaries(self) -> None:
        found = self.root.get("summaries")
        if found is None:
            return
        from toolkit.client import summary

        section = found.section(["scalar", "histogram", "image"])
        makers: Mapping[str, Callable[[str, Tensor], Tensor]] = {
            "scalar": summary.scalar, "histogram": summary.histogram, "image": summary.image,
        }  # fmt: skip
        for kind, names in section:
            for item in names.texts():
                with self.at(item):
                    makers[kind](item.text().replace(":", "_"), self.tensor(item))
        merged = summary.merge_all()
        if merged is not None:
            self.graph.add_to_collection(GraphKeys.SUMMARY_OP, merged)

    # -- around the graph --------------------------------------------------------------------------------------

    def _saver(self) -> None:
        found = self.root.get("saver")
        stored = self.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        if found is not None and found.value is False:
            return
        if found is None or found.value is True:
            self.saver = Saver() if stored else None
            if found is not None and not stored:
                raise found.error("there are no variables to save")
            return
        section = found.section(["max_to_keep", "keep_checkpoint_every_n_hours", "sharded", "variables", "name"])
        chosen = section.get("variables")
        with self.at(found):
            name = section.get("name")
            self.saver = Saver(
                None if chosen is None else [self._variable(i) for i in chosen.texts()],
                section.integer("max_to_keep", 5, minimum=0),
                section.number("keep_checkpoint_every_n_hours", 10000.0, minimum=0),
                name=None if name is None else name.text(),
                sharded=section.boolean("sharded", False),
            )

    def _variable(self, item: YamlItem) -> BaseVariable:
        name = item.text()
        by_name = {v.op.name: v for v in self.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
        if name not in by_name:
            raise item.error(f"there is no variable '{name}'{did_you_mean(name, by_name)}")
        return by_name[name]

    def _init(self) -> None:
        """`init` for the global variables, in the collection INIT_OP, where sessions look for it."""
        found = self.root.get("init")
        if found is not None and not found.boolean():
            return
        if self.graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
            self.graph.add_to_collection(GraphKeys.INIT_OP, variables.global_variables_initializer())
        if self.graph.get_collection(GraphKeys.LOCAL_VARIABLES):
            local = variables.variables_initializer(variables.local_variables(), "local_init")
            self.graph.add_to_collection(GraphKeys.LOCAL_INIT_OP, local)

    def _collections(self) -> None:
        found = self.root.get("collections")
        if found is None:
            return
        for key, names in found.section():
            for item in names.texts():
                self.graph.add_to_collection(key, self.find(item))

    def _signatures(self) -> dict[str, Signature]:
        found = self.root.get("signatures")
        if found is None:
            return {}
        out: dict[str, Signature] = {}
        for key, item in found.section():
            section = item.section(["inputs", "outputs", "method"], ["outputs"])
            method = section.text("method", PREDICT_METHOD)
            with self.at(item):
                out[key] = predict_signature(
                    self._endpoints(section.get("inputs")), self._endpoints(section.get("outputs")), method
                )
        return out

    def _endpoints(self, item: YamlItem | None) -> dict[str, Tensor]:
        """A list of names (each its own key), or a mapping from key to name."""
        if item is None:
            return {}
        if isinstance(item.value, dict):
            return {key: self.tensor(i) for key, i in item.section()}
        return {i.text(): self.tensor(i) for i in item.texts()}


#: what each optimizer takes besides its learning rate
_OPTIONS: dict[str, tuple[str, ...]] = {
    "sgd": (),
    "momentum": ("momentum", "use_nesterov"),
    "adam": ("beta1", "beta2", "epsilon"),
    "adagrad": ("initial_accumulator_value",),
    "adadelta": ("rho", "epsilon"),
    "rmsprop": ("decay", "momentum", "epsilon", "centered"),
    "ftrl": (
        "learning_rate_power", "initial_accumulator_value", "l1_regularization_strength", "l2_regularization_strength",
    ),
}  # fmt: skip


def _option(key: str, item: YamlItem) -> Any:
    return item.boolean() if key in ("use_nesterov", "centered") else item.number()


def _collection_name(item: YamlItem) -> str:
    return item.text()
