"""`Example` and `@tfrecordable`: a class that says which of its attributes go into a TFRecord."""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Self

from tarviz import stores
from tarviz.dialects.tfrecorder._fields import Attribute, Field, RecordSchema, Shapes, field_of
from tarviz.formats import example as examples
from tarviz.model.errors import DataError, UsageError
from tarviz.model.types import URL

Path = str | os.PathLike[str]


class IgnoreExampleException(Exception):  # noqa: N818  the name of the earlier system
    """Raise it in `load` or `split`: the example is left out, logged and counted."""


class Recordable(property):
    """What `@tfrecordable` makes of a method: a property that knows its type, which stands at the method."""

    @property
    def field(self) -> Field:
        """The type that was declared."""
        found: Field = self.fget.field  # type: ignore[union-attr]
        return found


def tfrecordable(dtype: Field) -> Callable[[Callable[[Any], Any]], Recordable]:
    """Marks a property of an `Example` to be written, with its type; setter and deleter work as on `@property`."""
    field = field_of(dtype)

    def mark(fget: Callable[[Any], Any]) -> Recordable:
        fget.field = field  # type: ignore[attr-defined]
        return Recordable(fget)

    return mark


class Example:
    """One example of a data set. Subclasses declare what is written with `@tfrecordable`.

    Only declared attributes are written, in the order of their declaration, those of a parent class first.
    """

    Field: ClassVar[type[Field]] = Field
    _attributes: ClassVar[tuple[Attribute, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        found: dict[str, Attribute] = {}
        for kind in reversed(cls.__mro__):
            for name, value in vars(kind).items():
                if isinstance(value, Recordable):
                    found[name] = Attribute(name, value.field)
        cls._attributes = tuple(found.values())

    def load(self, **kwargs: Any) -> None:
        """Loads what is large into the attributes; called just before the example is written. Does nothing by default."""

    def split(self, **kwargs: Any) -> list[Self]:
        """The examples to write in place of this one; itself by default."""
        return [self]

    def release(self) -> None:
        """Lets go of the attributes: each that has a setter becomes None. Called once the example is written."""
        for attribute in self._attributes:
            if getattr(type(self), attribute.name).fset is not None:
                setattr(self, attribute.name, None)

    def to_csv_row(self) -> list[Any]:
        """The row of a CSV file that is enough to make this example again."""
        raise UsageError(f"{type(self).__name__} has no to_csv_row.", hint="Write one, or pass examples_log_in_csv_file=False.")

    @staticmethod
    def from_csv_row(row: list[str], **kwargs: Any) -> Example:
        """The example that a row of a CSV file, a list of strings, describes."""
        raise UsageError("the Example subclass has no from_csv_row.", hint="Write one: it gets the row, a list of strings.")

    def get_tfrecordable_ordered_dict(self) -> OrderedDict[str, Any]:
        """Attribute → value, in declared order."""
        return OrderedDict((name, getattr(self, name)) for name in self.get_tfrecordable_attribute_names())

    @classmethod
    def get_tfrecordable_attribute_names(cls) -> list[str]:
        """The declared attributes, in order. `UsageError` when there are none."""
        if not cls._attributes:
            raise UsageError(f"{cls.__name__} has no @tfrecordable attribute.", hint="Mark those that are to be written.")
        return [attribute.name for attribute in cls._attributes]

    def serialize_to_string(self, shapes: Shapes | None = None) -> bytes:
        """The serialised `tf.train.Example`. `SchemaError` names an attribute that is not what it was declared to be."""
        owner = type(self).__name__
        values = self.get_tfrecordable_ordered_dict()
        found: dict[str, Any] = {}
        for attribute in self._attributes:
            found |= attribute.features(values[attribute.name], owner)
        if shapes is not None:
            shapes.see(found)
        return examples.encode(found, RecordSchema(self._attributes).kinds)

    def get_byte_size(self) -> int:
        """The bytes of the serialised Example."""
        return len(self.serialize_to_string())

    @classmethod
    def parse_from_string(cls, serialized: Any) -> tuple[Any, ...]:
        """The attributes in a serialised Example (a tensor or bytes) as tensors, in declared order."""
        cls.get_tfrecordable_attribute_names()
        return RecordSchema(cls._attributes).parse(serialized)

    @classmethod
    def from_csv_file(cls, filepath: Path, **kwargs: Any) -> list[Example]:
        """The examples that the rows of a CSV file describe; there is no header row."""
        return list(read_csv(cls, filepath, kwargs))

    @staticmethod
    def to_csv_file(filepath: Path, examples: Iterable[Example]) -> None:
        """Writes a CSV file with one row per example; a file of that name is replaced."""
        write_csv(filepath, (example.to_csv_row() for example in examples))


def read_csv(kind: type[Example], filepath: Path, kwargs: dict[str, Any]) -> Iterator[Example]:
    """The examples of a CSV file; what `from_csv_row` raises gets a note with file and row."""
    url = URL(os.fspath(filepath))
    store = stores.of(url)
    size = store.stat(url).size
    data = store.read(url, 0, size if size is not None else 1 << 40)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("the list is not UTF-8.", code="E_DECODE", shard=url, offset=error.start, hint="Save it as UTF-8.") from None
    for number, row in enumerate(csv.reader(io.StringIO(text, newline="")), 1):
        if not row:
            continue
        try:
            made = kind.from_csv_row(row, **kwargs)
        except Exception as error:
            error.add_note(f"{kind.__name__}.from_csv_row, row {number} of {url}: {row!r}")
            raise
        if not isinstance(made, Example):
            raise UsageError(f"{kind.__name__}.from_csv_row returned {type(made).__name__} for row {number} of {url}, not an Example.")
        yield made


def write_csv(filepath: Path, rows: Iterable[list[Any]]) -> None:
    """Writes rows to a CSV file that has its name only when it is complete."""
    url = URL(os.fspath(filepath))
    with stores.of(url).create(url) as sink:
        run = iter(rows)
        while batch := list(itertools.islice(run, 1024)):
            text = io.StringIO(newline="")
            csv.writer(text).writerows(batch)
            sink.write(text.getvalue().encode())
