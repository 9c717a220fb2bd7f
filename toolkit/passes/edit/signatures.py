"""Edits of signatures: the named ways to call a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from toolkit.errors import UsageError, did_you_mean
from toolkit.formats.inspection.report import plural
from toolkit.graph.infer import ShapeMap
from toolkit.graph.metagraph import DEFAULT_KEY, Signature, TensorInfo
from toolkit.graph.node import Output
from toolkit.passes.edit.base import PATTERNS, TABLE, TEXT, argument
from toolkit.passes.edit.draft import Draft, matching
from toolkit.passes.edit.loaded import has_map, rename_loaded, rename_loaded_key
from toolkit.passes.models.references import rename_signature
from toolkit.passes.models.surroundings import PREDICT_METHOD


def _signature(draft: Draft, key: str) -> Signature:
    signatures = draft.meta.signatures
    if key not in signatures:
        raise UsageError(f"there is no signature '{key}'{did_you_mean(key, signatures)}")
    return signatures[key]


def _replace(draft: Draft, signatures: Mapping[str, Signature]) -> None:
    draft.meta = replace(draft.meta, signatures=dict(signatures))


def redirect_outputs(draft: Draft, old: Output, new: Output) -> int:
    """Let outputs of signatures that are one tensor be another; returns how many."""
    meta = draft.meta
    count = 0
    made: dict[str, Signature] = {}

    def rename(text: str) -> str:
        nonlocal count
        if text not in (old.name, old.ref.node if old.index == 0 else old.name):
            return text
        count += 1
        return new.name

    for key, signature in meta.signatures.items():
        outputs = rename_signature(Signature({}, signature.outputs), rename).outputs
        made[key] = signature if outputs == signature.outputs else replace(signature, outputs=outputs)
    _replace(draft, made)
    return count


@dataclass(frozen=True)
class AddSignature:
    """Add a signature, or replace the one of that key."""

    name: ClassVar[str] = "add_signature"

    key: str = argument(TEXT, f"its key, {DEFAULT_KEY} for the default")
    outputs: dict[str, str] = argument(TABLE, "name to tensor")
    inputs: dict[str, str] = argument(TABLE, "name to tensor", {})
    method: str = argument(TEXT, "its method's name", PREDICT_METHOD)

    def apply(self, draft: Draft) -> str:
        if not self.outputs:
            raise UsageError("a signature needs an output")
        shapes = ShapeMap()
        groups = [
            {name: _info(draft, tensor, shapes) for name, tensor in group.items()}
            for group in (self.inputs, self.outputs)
        ]
        signatures = dict(draft.meta.signatures)
        done = "replaced" if self.key in signatures else "added"
        signatures[self.key] = Signature(groups[0], groups[1], self.method)
        _replace(draft, signatures)
        if has_map(draft):
            rename_loaded(draft, {self.key: None})
            draft.notes.append(
                f"signature '{self.key}': tf.saved_model.load does not see it, for it is no function of the object "
                "graph; TensorFlow Serving, saved_model_cli and graphmill do"
            )
        return f"{done} the signature '{self.key}'"


def _info(draft: Draft, tensor: str, shapes: ShapeMap) -> TensorInfo:
    output = draft.tensor(tensor)
    if not 0 <= output.index < output.node.num_outputs:
        raise UsageError(f"{output.node.op} '{output.node.name}' has no output {output.index}")
    return TensorInfo(output.name, output.dtype.base, shapes[output])


@dataclass(frozen=True)
class RenameSignature:
    """Give a signature another key."""

    name: ClassVar[str] = "rename_signature"

    key: str = argument(TEXT, "its key")
    to: str = argument(TEXT, "the new one")

    def apply(self, draft: Draft) -> str:
        _signature(draft, self.key)
        signatures = draft.meta.signatures
        if self.to in signatures:
            raise UsageError(f"there is a signature '{self.to}' already")
        _replace(draft, {self.to if key == self.key else key: value for key, value in signatures.items()})
        rename_loaded(draft, {self.key: self.to})
        return f"the signature '{self.key}' is now '{self.to}'"


@dataclass(frozen=True)
class RemoveSignature:
    """Remove signatures; the nodes that they name stay (prune removes those)."""

    name: ClassVar[str] = "remove_signature"

    key: tuple[str, ...] = argument(PATTERNS, "its key, or a pattern of keys")

    def apply(self, draft: Draft) -> str:
        signatures = draft.meta.signatures
        going: set[str] = set()
        for pattern in self.key:
            found = [pattern] if pattern in signatures else matching(pattern, signatures)
            if not found:
                raise UsageError(f"there is no signature '{pattern}'{did_you_mean(pattern, signatures)}")
            going.update(found)
        _replace(draft, {key: value for key, value in signatures.items() if key not in going})
        rename_loaded(draft, dict.fromkeys(going))
        return f"removed {plural(len(going), 'signature')}"


@dataclass(frozen=True)
class RenameSignatureKey:
    """Give an input or output of a signature another name."""

    name: ClassVar[str] = "rename_signature_key"

    signature: str = argument(TEXT, "the signature's key")
    key: str = argument(TEXT, "the name of the input or output")
    to: str = argument(TEXT, "the new one")

    def apply(self, draft: Draft) -> str:
        signature = _signature(draft, self.signature)
        for group in ("inputs", "outputs"):
            infos: dict[str, TensorInfo] = getattr(signature, group)
            if self.key in infos:
                if self.to in infos:
                    raise UsageError(f"the signature has '{self.to}' among its {group} already")
                made = {self.to if key == self.key else key: info for key, info in infos.items()}
                signatures = dict(draft.meta.signatures)
                signatures[self.signature] = replace(signature, **{group: made})
                _replace(draft, signatures)
                if has_map(draft) and not rename_loaded_key(
                    draft, self.signature, self.key, self.to, is_input=group == "inputs"
                ):
                    draft.notes.append(
                        f"signature '{self.signature}': tf.saved_model.load knows '{self.key}' by its old name, for "
                        "the new one would change the order of the function's names"
                    )
                return f"'{self.key}' of the signature '{self.signature}' is now '{self.to}'"
        known = [*signature.inputs, *signature.outputs]
        raise UsageError(
            f"the signature '{self.signature}' has no input or output '{self.key}'{did_you_mean(self.key, known)}"
        )


@dataclass(frozen=True)
class SetSignatureMethod:
    """Set the method name of a signature."""

    name: ClassVar[str] = "set_signature_method"

    key: str = argument(TEXT, "the signature's key")
    method: str = argument(TEXT, f"the method's name, such as {PREDICT_METHOD}")

    def apply(self, draft: Draft) -> str:
        signature = _signature(draft, self.key)
        _replace(draft, {**draft.meta.signatures, self.key: replace(signature, method_name=self.method)})
        return f"the method of the signature '{self.key}' is now {self.method}"


@dataclass(frozen=True)
class SetDefaultSignature:
    """Make a signature the default one; the one that was keeps another key."""

    name: ClassVar[str] = "set_default_signature"

    key: str = argument(TEXT, "the signature's key")
    old: str = argument(TEXT, "the key of the one that was the default", "previous_default")

    def apply(self, draft: Draft) -> str:
        _signature(draft, self.key)
        signatures = draft.meta.signatures
        if self.key == DEFAULT_KEY:
            raise UsageError(f"'{self.key}' is the default already")
        names = {self.key: DEFAULT_KEY, DEFAULT_KEY: self.old}
        if DEFAULT_KEY in signatures and self.old in signatures:
            raise UsageError(f"there is a signature '{self.old}' already; give another key as 'old'")
        _replace(draft, {names.get(key, key): value for key, value in signatures.items()})
        rename_loaded(draft, names)
        return f"the signature '{self.key}' is now '{DEFAULT_KEY}'"
