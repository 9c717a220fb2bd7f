"""Rewrites that the user says: `this subgraph => that one`, in the language of `rules`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from toolkit.errors import GraphmillError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.passes.base import PassResult
from toolkit.passes.edit.make import settle
from toolkit.passes.optimize.arithmetic.constants import number_of
from toolkit.passes.optimize.rewriting import Optimization, is_pure
from toolkit.passes.optimize.rules import Capture, Condition, Pattern, RewriteRule, parse_rules
from toolkit.passes.optimize.subgraph import Subgraphs


@dataclass(frozen=True)
class Rewrite(Optimization):
    """Replace small subgraphs by others, as rules say.

    A rule applies where its operations are, all of them without effects, and none but the last is looked through where
    it is fed. The last keeps its name and its readers; the others stay where something else reads them. What the
    replacement's attributes are follows from its inputs, or stands in the rule, or is the op's default; of the same op,
    it is the last node's. The first rule that applies to a node is taken, once in a round.

    The report has `rewritten`: rules (FILE:LINE) to how often they applied.

    Attributes:
        file: a file of rules.
        rule: one rule; may be given several times.
    """

    name: ClassVar[str] = "rewrite"

    file: str = ""
    rule: tuple[str, ...] = ()
    rules: tuple[RewriteRule, ...] = field(default=(), init=False, repr=False, metadata={"option": False})

    def __post_init__(self) -> None:
        rules = [rule for text in self.rule for rule in parse_rules(text, "rule")]
        if self.file:
            try:
                text = Path(self.file).read_text(encoding="utf-8")
            except OSError as error:
                raise UsageError(f"cannot be read: {error.strerror}", file=self.file) from None
            except UnicodeDecodeError:
                raise UsageError("is no text in UTF-8; expected rules", file=self.file) from None
            rules += parse_rules(text, self.file)
        if not rules:
            raise UsageError('there is no rule; expected file=FILE or rule="PATTERN => PATTERN"')
        object.__setattr__(self, "rules", tuple(rules))

    def apply(self, graph: Graph) -> PassResult:
        """
        Raises:
            UsageError: a replacement has another type than what it replaces, or attributes that its op lacks; with the
                rule's line.
        """
        work = Subgraphs(graph, self.kept)
        by_op: dict[str, list[RewriteRule]] = {}
        for rule in self.rules:
            by_op.setdefault(rule.pattern.op, []).append(rule)
        counts: Counter[str] = Counter()
        for node in work.each(*by_op):
            if work.is_fed(node):
                continue
            for rule in by_op[node.op]:
                match = _Match(work)
                if match.finds(rule.pattern, node) and all(map(match.holds, rule.conditions)):
                    try:
                        match.replace(rule, node)
                    except GraphmillError as error:
                        raise UsageError(error.message, file=rule.place, node=node.name) from None
                    counts[rule.place] += 1
                    break
        return work.result({"rewritten": dict(counts)})


class _Match:
    """A rule's pattern beside a graph."""

    def __init__(self, work: Subgraphs):
        self.work = work
        self.tensors: dict[str, Output] = {}
        self.values: dict[str, Any] = {}
        self.inner: list[Node] = []

    def finds(self, pattern: Pattern, node: Node) -> bool:
        """Whether a node is the pattern's last; names are bound then."""
        if node.op != pattern.op or not is_pure(node) or len(node.inputs) != len(pattern.inputs):
            return False
        return all(self._has(node, key, value) for key, value in pattern.attrs.items()) and all(
            self._takes(part, source) for part, source in zip(pattern.inputs, node.inputs, strict=True)
        )

    def _has(self, node: Node, key: str, wanted: Any) -> bool:
        found = _plain(node.attr(key))
        if isinstance(wanted, Capture):
            return _equal(self.values.setdefault(wanted.name, found), found)
        return _equal(wanted, found)

    def _takes(self, part: Any, source: Output) -> bool:
        if isinstance(part, str):
            return self.tensors.setdefault(part, source) == source
        if isinstance(part, float):
            return self._is_number(source, part)
        if source.index or self.work.is_fed(source.node) or not self.finds(part, source.node):
            return False
        self.inner.append(source.node)
        return True

    def _is_number(self, source: Output, number: float) -> bool:
        found = number_of(self.work, source)
        return found is not None and found == number

    def holds(self, condition: Condition) -> bool:
        if condition.kind == "attr":
            return _equal(self.values[condition.name], condition.value) is not condition.negated
        source = self.tensors[condition.name]
        match condition.kind:
            case "constant":
                return self.work.constant(source) is not None
            case "dtype":
                return (source.dtype.base is condition.value) is not condition.negated
            case "rank":
                rank = self.work.shape(source).rank
                return rank is not None and (rank == condition.value) is not condition.negated
            case _:
                found = number_of(self.work, source)
                return found is not None and bool(found == condition.value) is not condition.negated

    def replace(self, rule: RewriteRule, node: Node) -> None:
        """Have the last node compute the replacement.

        Raises:
            GraphmillError: its type is another one, or what the rule says does not fit its op.
        """
        dtype = node.output().dtype.base
        self.work.wait(node, [source for each in self.inner for source in each.control_inputs])
        if isinstance(rule.replacement, str):
            source = self.tensors[rule.replacement]
            _same_type(dtype, source.dtype.base)
            self.work.hand_on(node, source)
            return
        pattern: Pattern = rule.replacement
        attrs, inputs = self._settled(pattern, node)
        inner = [each for each in dict.fromkeys(self.inner) if self.work.is_inner(each)]
        self.work.make(node, pattern.op, inputs, attrs, inner)
        _same_type(dtype, node.output().dtype.base)

    def _settled(self, pattern: Pattern, node: Node) -> tuple[dict[str, Any], list[Output]]:
        """Attributes and inputs of an operation of the replacement; what is in it is made."""
        parts: list[Any] = [part if isinstance(part, float) else self._made(part, node) for part in pattern.inputs]
        given = {key: self.values[v.name] if isinstance(v, Capture) else v for key, v in pattern.attrs.items()}
        if pattern.op == node.op:
            inferred = node.op_def.inferred_attrs
            given = {
                key: _plain(node.attr(key)) for key in node.op_def.attrs if key in node.attrs and key not in inferred
            } | given
        attrs, found = settle(node.graph, pattern.op, parts, given)
        inputs = [
            each if isinstance(each, Output) else self._constant(f"{node.name}/number", each, node) for each in found
        ]
        return attrs, inputs

    def _constant(self, name: str, value: Any, node: Node) -> Output:
        from toolkit.passes.optimize.flow.inline_functions import awaited

        const = self.work.add(
            "Const", name, attrs={"dtype": dtypes.from_enum(value.dtype), "value": value}, device=node.device
        )
        first = next((source for source in node.inputs if not self.work.is_plain(source.node)), None)
        if first is not None:  # in its loop, or on its branch
            self.work.wait(const, [awaited(self.work, first)])
        return const.output()

    def _made(self, part: Any, node: Node) -> Output:
        if isinstance(part, str):
            return self.tensors[part]
        attrs, inputs = self._settled(part, node)
        return self.work.add(part.op, f"{node.name}/{part.op}", inputs, attrs=attrs, device=node.device).output()


def _same_type(before: Any, after: Any) -> None:
    if before is not after:
        raise UsageError(f"the replacement is {after}, and what it replaces is {before}")


def _plain(value: Any) -> Any:
    """An attribute's value as rules write it."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return [_plain(each) for each in value]  # pyright: ignore[reportUnknownVariableType] -- of any kind
    return value


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, bool) is not isinstance(b, bool):
        return False
    return str(a) == str(b) if isinstance(a, Shape) or isinstance(b, Shape) else bool(a == b)
