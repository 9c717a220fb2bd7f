"""The sections `optimizer` and `optimizers`."""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Callable
from typing import Any

from toolkit.client.construction.grouping import group
from toolkit.client.construction.tensor import IndexedSlices
from toolkit.client.math import clip_ops
from toolkit.client.spec.builder import FAILED, FollowError, SpecBuilder
from toolkit.client.spec.values import NAME, NAMES, given, options
from toolkit.client.train import decoupled, optimizers, proximal, schedules
from toolkit.client.train.averages import ExponentialMovingAverage
from toolkit.client.train.global_step import get_or_create_global_step
from toolkit.client.train.optimizer import Optimizer
from toolkit.errors import did_you_mean
from toolkit.formats.schema.choices import ByTag, OneOf
from toolkit.formats.schema.containers import Key, MapOf
from toolkit.formats.schema.scalars import Boolean, Number
from toolkit.formats.settings.tree import Section, YamlItem
from toolkit.graph.metagraph import GraphKeys

#: schedules of learning rates, with their options
SCHEDULES = {name: options(make, ("global_step", "name")) for name, make in schedules.BY_NAME.items()}
_RATE = OneOf(Number(0), ByTag("schedule", SCHEDULES))

#: optimizers by the names that specs give them
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    **optimizers.BY_NAME,
    "proximal_sgd": proximal.ProximalGradientDescent,
    "proximal_adagrad": proximal.ProximalAdagrad,
    "adagrad_da": proximal.AdagradDA,
    "nadam": decoupled.Nadam,
    "lazy_adam": decoupled.LazyAdam,
    "adamw": decoupled.AdamW,
    "momentumw": decoupled.MomentumW,
    "lars": decoupled.LARS,
}

#: what each optimizer takes besides its learning rate; the step count is the graph's
OPTIONS = {
    name: options(make, ("learning_rate", "global_step", "use_locking", "name")) for name, make in OPTIMIZERS.items()
}
#: optimizers whose learning rate has a default
_WITH_RATE = tuple(name for name, make in OPTIMIZERS.items() if not options(make)["learning_rate"].required)


def common(kind: str) -> dict[str, Key]:
    """The keys of every optimizer, for one that takes them."""
    return {
        "learning_rate": Key(_RATE, "a number, or {schedule: ...}", required=kind not in _WITH_RATE),
        "loss": Key(NAME, "what becomes small; by default the only loss"),
        "variables": Key(NAMES, "names or patterns of the variables that it changes; by default all"),
        "clip_norm": Key(Number(0), "the largest norm of all gradients together"),
        "clip_value": Key(Number(0), "the largest magnitude of a gradient's elements"),
        "colocate_gradients": Key(Boolean(), "gradients run where their operations do", default=False),
        "moving_average": Key(Number(0, 1), "decay of averages of the variables, kept beside them"),
        "global_step": Key(Boolean(), "whether it counts steps", default=True),
    }


_KEYS = {name: common(name) | keys for name, keys in OPTIONS.items()}
OPTIMIZER = ByTag(
    "type", {name: {"name": Key(NAME, "its name", default="train")} | keys for name, keys in _KEYS.items()}
)
MANY = MapOf(ByTag("type", _KEYS))


def build_optimizer(spec: SpecBuilder, found: YamlItem) -> None:
    """Make the training operation of the section `optimizer`."""
    if not spec.mistakes.has(found):
        _build(spec, found.section().text("name", "train"), found)


def build_optimizers(spec: SpecBuilder, found: YamlItem) -> None:
    """Make those of the section `optimizers`, each under its key: two players of a game, say."""
    for name, item in found.section():
        if not spec.mistakes.has(item):
            _build(spec, name, item)


def _build(spec: SpecBuilder, name: str, item: YamlItem) -> None:
    with spec.noting(item, [name]):
        section = item.section()
        kind = section["type"].text()
        loss = _loss(spec, item, section)
        chosen = _variables(spec, section)
        if not spec.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) and spec.mistakes.errors:
            raise FollowError("")
        step = get_or_create_global_step()
        rate = _learning_rate(section, step)
        make = OPTIMIZERS[kind]
        arguments = given(section, OPTIONS[kind]) | ({} if rate is None else {"learning_rate": rate})
        if "global_step" in inspect.signature(make).parameters:
            arguments["global_step"] = step
        made = make(**arguments)
        counted = step if section.boolean("global_step", True) else None
        decay = section.get("moving_average")
        with spec.graph.control_dependencies(spec.graph.get_collection(GraphKeys.UPDATE_OPS)):
            pairs = made.compute_gradients(
                loss, chosen, colocate_gradients_with_ops=section.boolean("colocate_gradients", False)
            )
            pairs = _clipped(pairs, section)
            if decay is None:
                train = made.apply_gradients(pairs, counted, name)
            else:
                applied = made.apply_gradients(pairs, counted)
                with spec.graph.control_dependencies([applied]):
                    averaged = ExponentialMovingAverage(decay.number(), counted).apply([v for _, v in pairs])
                train = group([averaged], name=name)
                kept = [op for op in spec.graph.get_collection(GraphKeys.TRAIN_OP) if op is not applied]
                spec.graph.get_collection_ref(GraphKeys.TRAIN_OP)[:] = [*kept, train]
        spec.train_ops[name] = train


def _loss(spec: SpecBuilder, item: YamlItem, section: Section) -> Any:
    named = section.get("loss")
    if named is not None:
        return spec.tensor(named)
    if len(spec.losses) == 1:
        return next(iter(spec.losses.values()))
    if len(spec.losses) > 1:
        raise item.error(f"there are several losses: say which with loss: ({', '.join(spec.losses)})")
    if "loss" in spec.root or "losses" in spec.root:
        raise FollowError("")
    raise item.error("an optimizer needs a loss")


def _variables(spec: SpecBuilder, section: Section) -> list[Any] | None:
    """The variables that the patterns of `variables` name; a pattern without wildcards is also a scope."""
    found = section.get("variables")
    if found is None:
        return None
    by_name = {v.op.name: v for v in spec.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    chosen: dict[str, Any] = {}
    for item in found.texts():
        pattern = item.text()
        matching = [n for n in by_name if fnmatch.fnmatchcase(n, pattern) or n.startswith(f"{pattern.rstrip('/')}/")]
        if not matching:
            if FAILED in spec.names.found.values():
                raise FollowError("")
            raise item.error(f"no trainable variable is named '{pattern}'{did_you_mean(pattern, by_name)}")
        chosen |= {n: by_name[n] for n in matching}
    return [v for n, v in by_name.items() if n in chosen]


def _learning_rate(section: Section, step: Any) -> Any:
    found = section.get("learning_rate")
    if found is None or not isinstance(found.value, dict):
        return None if found is None else found.number()
    inner = found.section()
    kind = inner["schedule"].text()
    return schedules.BY_NAME[kind](global_step=step, name="learning_rate", **given(inner, SCHEDULES[kind]))


def _clipped(pairs: list[Any], section: Section) -> list[Any]:
    if (norm := section.get("clip_norm")) is not None:
        clipped, _ = clip_ops.clip_by_global_norm([g for g, _ in pairs], norm.number())
        return [(g, v) for g, (_, v) in zip(clipped, pairs, strict=True)]
    if (limit := section.get("clip_value")) is not None:
        bound = limit.number()
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
