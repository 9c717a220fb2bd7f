"""The language of rewrites: `Relu(Relu(x)) => Relu(x)`, a rule a line.

    rule        PATTERN => PATTERN [where CONDITION and CONDITION ...]
    pattern     OP(INPUT, ..., ATTRIBUTE=VALUE, ...)
    input       a pattern, a name (any tensor; the same name is the same tensor), or a number (a constant of only that)
    value       a number, true, false, "text", a type such as float32, [a list], or $NAME (any value; the same name is
                the same value)
    condition   NAME == NUMBER (a constant of only that), NAME is constant, dtype(NAME) == TYPE, rank(NAME) == NUMBER,
                $NAME == VALUE; != as well

Ops begin with a capital letter, names with a small one. `#` begins a comment; a line that is indented goes on with the
one before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import UsageError, did_you_mean
from toolkit.graph import dtypes, opdefs

_TOKEN = re.compile(
    r'\s*(?:(?P<arrow>=>)|(?P<test>==|!=)|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<text>"[^"]*")|'
    r"(?P<attr>\$[A-Za-z_]\w*)|(?P<word>[A-Za-z_]\w*)|(?P<sign>[(),=\[\]]))"
)
#: nesting of patterns that is read
_MOST_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Capture:
    """`$NAME`: whatever value an attribute has."""

    name: str


@dataclass(slots=True)
class Pattern:
    """An operation with its inputs and attributes; an input is a pattern, a name or a number."""

    op: str
    inputs: list[Any] = field(default_factory=list[Any])
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])

    def walk(self) -> list[Pattern]:
        """It and the patterns in it."""
        return [self, *(each for part in self.inputs if isinstance(part, Pattern) for each in part.walk())]


@dataclass(frozen=True, slots=True)
class Condition:
    """A test: `kind` is constant, dtype, rank, number or attr."""

    kind: str
    name: str
    value: Any = None
    negated: bool = False


@dataclass(slots=True)
class RewriteRule:
    """A rule, with the place that it was read from."""

    pattern: Pattern
    replacement: Any
    conditions: list[Condition]
    place: str


def parse_rules(text: str, file: str) -> list[RewriteRule]:
    """The rules of a text.

    Raises:
        UsageError: a line is no rule, names an op that does not exist, or uses what its pattern does not have; with the
            line.
    """
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r'#(?=[^"]*(?:"[^"]*"[^"]*)*$).*', "", line).rstrip()
        if not line:
            continue
        if line[0].isspace() and lines:
            lines[-1] = (lines[-1][0], lines[-1][1] + line)
        else:
            lines.append((number, line))
    if not lines:
        raise UsageError("there is no rule in it; expected lines such as: Relu(Relu(x)) => Relu(x)", file=file)
    return [_Reader(line, f"{file}:{number}").rule() for number, line in lines]


class _Reader:
    def __init__(self, line: str, place: str):
        self.place = place
        self.tokens: list[tuple[str, str]] = []
        at = 0
        line = line.rstrip()
        while at < len(line):
            found = _TOKEN.match(line, at)
            if found is None:
                raise self.wrong(f"cannot read '{line[at:].strip()[:40]}'")
            self.tokens.append((str(found.lastgroup), found.group(str(found.lastgroup))))
            at = found.end()
        self.at = 0

    def wrong(self, what: str) -> UsageError:
        return UsageError(what, file=self.place)

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "the end of the rule")

    def take(self, kind: str = "", text: str = "") -> str:
        found = self.peek()
        if (kind and found[0] != kind) or (text and found[1] != text):
            raise self.wrong(f"expected {text or kind}, found {found[1]}")
        self.at += 1
        return found[1]

    def rule(self) -> RewriteRule:
        pattern = self.pattern(0)
        self.take("arrow", "=>")
        replacement = self.input(0)
        conditions: list[Condition] = []
        if self.peek() == ("word", "where"):
            self.take()
            conditions.append(self.condition())
            while self.peek() == ("word", "and"):
                self.take()
                conditions.append(self.condition())
        if self.peek()[0] != "end":
            raise self.wrong(f"expected where, and or the end of the rule, found {self.peek()[1]}")
        if isinstance(replacement, float):
            raise self.wrong("expected an operation or a name behind =>, found a number")
        rule = RewriteRule(pattern, replacement, conditions, self.place)
        self.check(rule)
        return rule

    def pattern(self, depth: int) -> Pattern:
        op = self.take("word")
        if not op[0].isupper() and op[0] != "_":
            raise self.wrong(f"expected an operation, found the name '{op}'; a rule begins with one, as Relu(x)")
        found = opdefs.find(op)
        if found is None:
            raise self.wrong(opdefs.unknown_op(op))
        out = Pattern(op)
        self.take("sign", "(")
        while self.peek() != ("sign", ")"):
            if self.peek()[0] == "word" and self.tokens[self.at + 1 : self.at + 2] == [("sign", "=")]:
                name = self.take("word")
                self.take("sign", "=")
                if name not in found.attrs:
                    raise self.wrong(f"{op} has no attribute '{name}'{did_you_mean(name, found.attrs)}")
                out.attrs[name] = self.value()
            else:
                out.inputs.append(self.input(depth + 1))
            if self.peek() != ("sign", ")"):
                self.take("sign", ",")
        self.take("sign", ")")
        plain = not any(arg.number_attr or arg.type_list_attr for arg in found.inputs)
        if plain and len(out.inputs) != len(found.inputs):
            raise self.wrong(f"{op} has {len(found.inputs)} inputs, not {len(out.inputs)}")
        if not found.outputs:
            raise self.wrong(f"{op} has no output that something could take")
        return out

    def input(self, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise self.wrong("the pattern is nested too deeply")
        kind, text = self.peek()
        if kind == "number":
            return float(self.take())
        if kind == "word" and not text[0].isupper() and text[0] != "_":
            return self.take()
        return self.pattern(depth)

    def value(self) -> Any:
        kind, text = self.peek()
        self.at += 1
        if kind == "number":
            return float(text) if re.search(r"[.eE]", text) else int(text)
        if kind == "text":
            return text[1:-1]
        if kind == "attr":
            return Capture(text[1:])
        if (kind, text) == ("sign", "["):
            items: list[Any] = []
            while self.peek() != ("sign", "]"):
                items.append(self.value())
                if self.peek() != ("sign", "]"):
                    self.take("sign", ",")
            self.take()
            return items
        if kind == "word" and text in ("true", "false"):
            return text == "true"
        if kind == "word" and text in dtypes.names():
            return dtypes.from_name(text)
        raise self.wrong(f"expected a value, found {text}")

    def condition(self) -> Condition:
        kind, text = self.peek()
        self.at += 1
        if kind == "attr":
            negated = self.take("test") == "!="
            return Condition("attr", text[1:], self.value(), negated)
        if kind != "word":
            raise self.wrong(f"expected a condition, found {text}")
        if text in ("dtype", "rank") and self.peek() == ("sign", "("):
            self.take()
            name = self.take("word")
            self.take("sign", ")")
            negated = self.take("test") == "!="
            return Condition(text, name, self.value(), negated)
        if self.peek() == ("word", "is"):
            self.take()
            self.take("word", "constant")
            return Condition("constant", text)
        negated = self.take("test") == "!="
        return Condition("number", text, float(self.take("number")), negated)

    def check(self, rule: RewriteRule) -> None:
        """Hold what is used against what the pattern has."""
        names, values = _names(rule.pattern)
        used = _names(rule.replacement) if isinstance(rule.replacement, Pattern) else ({rule.replacement}, set[str]())
        used[0].update(each.name for each in rule.conditions if each.kind != "attr")
        used[1].update(each.name for each in rule.conditions if each.kind == "attr")
        for mine, known, sign in ((used[0], names, ""), (used[1], values, "$")):
            for name in sorted(mine - known):
                raise self.wrong(f"'{sign}{name}' is not in the pattern{did_you_mean(name, known)}")


def _names(pattern: Pattern) -> tuple[set[str], set[str]]:
    """The names of tensors and of values in a pattern."""
    every = pattern.walk()
    tensors = {part for each in every for part in each.inputs if isinstance(part, str)}
    return tensors, {value.name for each in every for value in each.attrs.values() if isinstance(value, Capture)}
