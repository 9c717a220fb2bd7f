"""TensorArrays: what loops of TensorFlow 1 write their values to (per-step resources)."""

from __future__ import annotations

import threading
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.kernels.resources.slots import empty_slots
from toolkit.kernels.resources.tensor_list import admits
from toolkit.kernels.resources.tensor_space import HOST, TensorSpace, shape_of


class TensorArray:
    """An array of tensors of one type, each written once and read.

    Attributes:
        name: unique in the step.
        dtype: of the elements.
        shape: what is known of their shape.
        dynamic: whether writing past the end makes it longer.
        clear_after_read: reading lets go of the value.
        same_shapes: all elements have one shape, which the first write tells.
        aggregates: writing again adds (arrays of gradients).
        space: where the elements lie.
    """

    def __init__(
        self, name: str, dtype: DType, shape: Shape, size: int, *, dynamic: bool = False,
        clear_after_read: bool = True, same_shapes: bool = False, aggregates: bool = False,
        space: TensorSpace = HOST,
    ):  # fmt: skip
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.dynamic = dynamic
        self.clear_after_read = clear_after_read
        self.same_shapes = same_shapes
        self.aggregates = aggregates
        self.space = space
        self.lock = threading.RLock()
        self._dense: Any = None  # a tensor whose rows are the elements, all of them, if they are known to be
        # None: the rows of the tensor, which nobody has asked for yet
        self._made: list[Any] | None = empty_slots(size)
        self._shapes: list[tuple[int | None, ...] | None] = empty_slots(size)
        self._cleared: set[int] = set()
        self._closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgumentError(f"TensorArray {self.name} has already been closed.")

    def close(self) -> None:
        with self.lock:
            self._closed = True
            self._made, self._dense = [], None

    @property
    def size(self) -> int:
        self._check_open()
        return len(self._shapes)

    length = size

    @property
    def _values(self) -> list[Any]:
        """The elements, to be changed: they are rows of one tensor no longer."""
        if self._made is None:
            self._made = self.space.rows(self._dense, len(self._shapes))
        self._dense = None
        return self._made

    @property
    def rows(self) -> Any:
        """The elements as one tensor, where that is there already; None elsewhere."""
        self._check_open()
        return self._dense

    def grow(self, size: int) -> None:
        more = size - len(self._shapes)
        self._values.extend(empty_slots(more))
        self._shapes += empty_slots(more)

    def merge_shape(self, shape: Shape) -> None:
        """Learn from what a reader says of the elements' shape.

        Raises:
            InvalidArgumentError: it contradicts what is known.
        """
        if not self.shape.is_compatible_with(shape):
            raise InvalidArgumentError(
                f"TensorArray {self.name}: element shape {shape} is incompatible with {self.shape}"
            )
        self.shape = self.shape.merge(shape)

    def write(self, index: int, value: Any, dtype: DType) -> None:
        """Set an element; in an array of gradients, add to it.

        Raises:
            InvalidArgumentError: out of range, written or read before, of another type or shape.
        """
        self._check_open()
        if dtype is not self.dtype:
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not write to TensorArray index {index} because the value dtype is "
                f"{dtype} but TensorArray dtype is {self.dtype}."
            )
        if index < 0 or (index >= self.size and not self.dynamic):
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Tried to write to index {index} but array is not resizeable and size is: "
                f"{self.size}"
            )
        if index >= self.size:
            self.grow(index + 1)
        shape = shape_of(value)
        if not admits(self.shape.dims, shape):
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not write to TensorArray index {index} because the value shape is "
                f"{Shape(shape)} which is incompatible with the TensorArray's inferred element shape: {self.shape} "
                "(consider setting infer_shape=False)."
            )
        if index in self._cleared:
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not write to TensorArray index {index} because it has already been "
                "read."
            )
        values = self._values
        present = values[index]
        if present is not None:
            if not self.aggregates:
                raise InvalidArgumentError(
                    f"TensorArray {self.name}: Could not write to TensorArray index {index} because it has already "
                    "been written to."
                )
            if shape_of(present) != shape:
                raise InvalidArgumentError(
                    f"TensorArray {self.name}: Could not aggregate to TensorArray index {index} because the existing "
                    f"shape is {list(shape_of(present))} but the new input shape is {Shape(shape)}."
                )
            value = self.space.computed("Add", present, value)
        if self.same_shapes and self.shape.dims != shape:
            self.shape = Shape(shape)
        values[index] = value
        self._shapes[index] = shape

    def state(self) -> tuple[list[Any], set[int]]:
        """The elements, None where there is none, and which of them were read and let go."""
        self._check_open()
        values = self._made if self._made is not None else self.space.rows(self._dense, len(self._shapes))
        return list(values), set(self._cleared)

    def replace(self, values: list[Any], cleared: set[int]) -> None:
        """Hold these elements, as many as before, all of shapes that were proved to fit."""
        self._made, self._dense = values, None
        self._cleared = cleared
        for index, value in enumerate(values):
            if value is not None and self._shapes[index] is None:
                self._shapes[index] = shape_of(value)
                if self.same_shapes:
                    self.shape = Shape(shape_of(value))

    def takes_rows(self, indices: list[int], shape: tuple[int, ...]) -> bool:
        """Whether rows of this shape may be written to these places at once: all places, in order, for the first time.

        What else may be written, `write` says, row by row.
        """
        return (
            self._made is not None
            and not self._cleared
            and indices == list(range(len(self._made)))
            and all(value is None for value in self._made)
            and admits(self.shape.dims, shape)
        )

    def replace_rows(self, dense: Any) -> None:
        """Hold the rows of a tensor, as many as there are places, of a shape that was proved to fit."""
        self._made, self._dense = None, dense
        self._cleared = set()
        shape = dense.shape[1:]
        self._shapes = [shape] * len(self._shapes)
        if self.same_shapes and dense.shape[0]:
            self.shape = Shape(shape)

    def read_rows(self, indices: list[int]) -> Any:
        """What `read` answers for each of these places, as one tensor, if that is there already."""
        dense = self._dense
        if dense is None or not indices or indices != list(range(len(self._shapes))):
            return None
        if self.clear_after_read:
            self.clear()
        return dense

    def clear(self) -> None:
        """Let go of all elements: they were read."""
        self._made, self._dense = empty_slots(len(self._shapes)), None
        self._cleared = set(range(len(self._shapes)))

    def read(self, index: int) -> Any:
        """An element; zeros where nothing was written and the shape is known.

        Raises:
            InvalidArgumentError: out of range, read before and let go, or of unknown shape.
        """
        self._check_open()
        if not 0 <= index < self.size:
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Tried to read from index {index} but array size is: {self.size}"
            )
        if index in self._cleared:
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not read index {index} twice because it was cleared after a previous "
                "read (perhaps try setting clear_after_read = false?)."
            )
        values = self._values if self.clear_after_read or self._made is None else self._made
        value = values[index]
        if value is None:
            known = self._shapes[index]
            shape = self.shape if known is None else Shape(known)
            if not shape.is_fully_defined:
                raise InvalidArgumentError(
                    f"TensorArray {self.name}: Could not read from TensorArray index {index}.  Furthermore, the "
                    f"element shape is not fully defined: {shape}.  It is possible you are working with a resizeable "
                    "TensorArray and stop_gradients is not allowing the gradients to be written.  If you set the "
                    "full element_shape property on the forward TensorArray, the proper all-zeros tensor will be "
                    "returned instead of incurring this error."
                )
            value = self.space.zeros(self.dtype, shape.as_list())
        if self.clear_after_read:
            self._cleared.add(index)
            values[index] = None
        return value

    def gradient(self, name: str, prepend: Shape | None = None) -> TensorArray:
        """The array that gradients of this one's elements are written to; this one stops growing."""
        self._check_open()
        self.dynamic = False
        shape = self.shape if prepend is None else prepend.concatenate(self.shape)
        out = TensorArray(
            name, self.dtype, shape, self.size, aggregates=True, same_shapes=self.same_shapes, space=self.space
        )
        if prepend is None:
            out._shapes = list(self._shapes)
        else:
            out._shapes = [None if s is None else prepend.concatenate(Shape(s)).dims for s in self._shapes]
        return out
