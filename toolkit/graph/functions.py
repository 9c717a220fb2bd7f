"""Function libraries; `toolkit.graph.bodies` makes graphs of functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from schemas import function_pb2, op_def_pb2
from toolkit.errors import GraphError, did_you_mean
from toolkit.graph import opdefs, plugins
from toolkit.graph.opdefs import OpDef

if TYPE_CHECKING:
    pass


class FunctionLibrary:
    """Functions by name, and which function is the gradient of which."""

    __slots__ = ("_declared", "_functions", "_op_defs", "_shell", "gradients")

    def __init__(self) -> None:
        self._functions: dict[str, function_pb2.FunctionDef] = {}
        self._op_defs: dict[str, OpDef] = {}
        self._declared: dict[str, OpDef] = {}
        self.gradients: dict[str, str] = {}
        self._shell: function_pb2.FunctionDefLibrary | None = None

    @staticmethod
    def from_proto(proto: function_pb2.FunctionDefLibrary) -> FunctionLibrary:
        """Take the functions of a library message; they are shared with it.

        Raises:
            GraphError: two functions have one name.
        """
        library = FunctionLibrary()
        for function in proto.function:
            library.add(function)
        if plugins.folders():  # else bodies say it, when they are read
            opdefs.hear({node.op: node for function in proto.function for node in function.node_def})
        library.gradients = {g.function_name: g.gradient_func for g in proto.gradient}
        shell = function_pb2.FunctionDefLibrary()
        shell.CopyFrom(proto)
        del shell.function[:]
        del shell.gradient[:]
        library._shell = shell
        return library

    @property
    def registered_gradients(self) -> dict[str, str]:
        """The function that is the gradient of an operation with a custom one, by that gradient's name."""
        listed = self._shell.registered_gradients if self._shell is not None else ()
        return {each.registered_op_type: each.gradient_func for each in listed}

    def to_proto(self, out: function_pb2.FunctionDefLibrary) -> None:
        if self._shell is not None:
            out.CopyFrom(self._shell)
        out.function.extend(self._functions.values())
        if opdefs.OF_PLUGINS:
            for function in out.function:
                _name_plugins(function)
        for name, gradient in self.gradients.items():
            out.gradient.add(function_name=name, gradient_func=gradient)

    def copy(self) -> FunctionLibrary:
        """A library with the same functions that can be added to and removed from on its own."""
        out = FunctionLibrary()
        out._functions = dict(self._functions)
        out._op_defs = dict(self._op_defs)
        out._declared = dict(self._declared)
        out.gradients = dict(self.gradients)
        out._shell = self._shell
        return out

    def add(self, function: function_pb2.FunctionDef) -> None:
        """Add a function.

        Raises:
            GraphError: another function has its name.
        """
        name = function.signature.name
        known = self._functions.setdefault(name, function)
        if known is not function and known != function:
            raise GraphError(f"two functions are named '{name}'")

    def replace(self, function: function_pb2.FunctionDef) -> None:
        """Put a function in the place of the one that has its name, which there must be."""
        name = function.signature.name
        self._op_defs.pop(name, None)
        self._functions[name] = function

    def sort(self) -> None:
        """Have the functions stand by name."""
        self._functions = dict(sorted(self._functions.items()))
        self.gradients = dict(sorted(self.gradients.items()))

    def remove(self, name: str) -> None:
        del self._functions[name]
        self._op_defs.pop(name, None)
        self.gradients.pop(name, None)

    def get(self, name: str) -> function_pb2.FunctionDef | None:
        return self._functions.get(name)

    def function(self, name: str) -> function_pb2.FunctionDef:
        """The FunctionDef of that name.

        Raises:
            GraphError: there is none; close names are suggested.
        """
        try:
            return self._functions[name]
        except KeyError:
            raise GraphError(f"there is no function '{name}'{did_you_mean(name, self._functions)}") from None

    def declare(self, signature: op_def_pb2.OpDef) -> None:
        """Say what a function will take and give that is still to be added."""
        self._declared[signature.name] = OpDef(signature)

    def op_def(self, name: str) -> OpDef | None:
        """The signature of a function, declared or there, as an OpDef; None when there is no such function."""
        function = self._functions.get(name)
        if function is None:
            return self._declared.get(name)
        known = self._op_defs.get(name)
        if known is None:
            known = self._op_defs[name] = OpDef(function.signature)
        return known

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


def _name_plugins(function: function_pb2.FunctionDef) -> None:
    """Have the nodes of a function say which plugins their ops come from."""
    for node in function.node_def:
        plugin = opdefs.OF_PLUGINS.get(node.op)
        if plugin is not None:
            node.attr[opdefs.PLUGIN].s = plugin.encode()
