"""`webdataset.filters`: the stages of a pipeline by name, `wds.map(f)` for `DataPipeline` and `.map(f)` alike.

Each function makes a stage, an object that takes an iterable and gives an iterator. Those with an underscore take the data
first and run at once.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TextIO

import numpy as np

from tarviz.dialects import check_function
from tarviz.dialects.webdataset.autodecode import Decoder, FieldDecoder, PatternDecoder
from tarviz.dialects.webdataset.handlers import Handler, reraise_exception
from tarviz.dialects.webdataset.parts import per_item, stages
from tarviz.dialects.webdataset.parts.stages import Custom, Each
from tarviz.dialects.webdataset.utils import PipelineStage as PipelineStage
from tarviz.model.errors import SchemaError, UsageError


def default_collation_fn(samples: Sequence[Any], combine_tensors: bool = True, combine_scalars: bool = True) -> Any:
    """A batch of samples: numbers and arrays stacked along a new first axis, anything else a list; tuples and dicts are kept.

    `combine_tensors=False` and `combine_scalars=False` leave arrays and numbers in lists.

    >>> default_collation_fn([(1, b"a"), (2, b"b")])
    (array([1, 2]), [b'a', b'b'])
    """
    first = samples[0]
    if not hasattr(first, "__len__"):
        raise UsageError(f"a batch is made of tuples or dicts, got {type(first).__name__}.", hint="listed makes lists of anything.")
    fields = [sample.keys() if isinstance(sample, dict) else hasattr(sample, "__len__") and len(sample) for sample in samples]
    if any(each != fields[0] for each in fields):
        raise SchemaError("samples of one batch have different fields.", hint="Put to_tuple or a map before batched.")
    if isinstance(first, dict):
        return {name: _combine([sample[name] for sample in samples], name, combine_tensors, combine_scalars) for name in first}
    return tuple(_combine(list(column), place, combine_tensors, combine_scalars) for place, column in enumerate(zip(*samples, strict=True)))


def _combine(values: list[Any], name: object, tensors: bool, scalars: bool) -> Any:
    first = values[0]
    if isinstance(first, int | float):
        return np.array(values) if scalars else values
    if not tensors or not (hasattr(first, "shape") and (isinstance(first, np.ndarray) or hasattr(first, "detach"))):
        return values
    if len(shapes := {getattr(value, "shape", None) for value in values}) > 1:
        some = ", ".join(sorted("none" if shape is None else str(list(shape)) for shape in shapes)[:3])
        raise SchemaError(f"the values of {name!r} in one batch have the shapes {some}.", hint="Resize or crop them before batched.")
    if isinstance(first, np.ndarray):
        return np.stack(values)
    import torch

    return torch.stack(values)


class FilterFunction:
    """A function from iterator to iterator with its other arguments given; pickles."""

    def __init__(self, f: Callable[..., Iterable[Any]], *args: Any, **kw: Any) -> None:
        self.f, self.args, self.kw = f, args, kw

    def __call__(self, data: Iterable[Any]) -> Iterable[Any]:
        return self.f(data, *self.args, **self.kw)


def pipelinefilter(f: Callable[..., Iterable[Any]]) -> Callable[..., FilterFunction]:
    """A stage from a function of your own: `f(data, more)` becomes `f(more)`, which takes the data.

    >>> list(pipelinefilter(lambda data, n: (x * n for x in data))(3)([1, 2]))
    [3, 6]
    """
    return functools.wraps(f)(lambda *args, **kw: FilterFunction(f, *args, **kw))


def getfirst(a: Mapping[str, Any], keys: Any, default: Any = None, missing_is_error: bool = True) -> Any:
    """The value of the first name that is there (`"jpg;png"` or a list).

    >>> getfirst({"png": 1}, "jpg;png")
    1
    """
    names = keys.split(";") if isinstance(keys, str) else keys
    if (name := per_item.first_of(a, names)) is not None:
        return a[name]
    if missing_is_error:
        raise per_item.missing(a, names)
    return default


def transform_with(sample: Any, transformers: Any) -> Any:
    """A list of values, each through the function at its place; None and places after the last function leave it."""
    return list(per_item.apply_by_place(tuple(transformers), False, sample)) if transformers else sample


def count(where: str, size: Any) -> int:
    """`size` as an integer, `1e4` too; `UsageError` where it is not a whole number from 1 on."""
    if isinstance(size, bool) or not isinstance(size, int | float) or size < 1 or size != size // 1:
        raise UsageError(f"{where} expects a whole number from 1 on, got {size!r}.")
    return int(size)


def shuffle(
    bufsize: float = 1000, initial: float = 100, rng: Any = None, seed: Any = None, handler: Handler | None = None
) -> stages.Shuffle:
    """Shuffles through a buffer of `bufsize` items; 0 and less shuffle nothing. The order depends on seed and pass, or on an `rng`."""
    if isinstance(bufsize, int | float) and bufsize < 1:
        return stages.Shuffle(0)
    return stages.Shuffle(count("shuffle", bufsize), count("shuffle(initial=…)", max(initial, 1)), seed, rng)


detshuffle = stages.Determined
Cached = stages.Memory


def map(f: Callable[[Any], Any], handler: Handler = reraise_exception) -> Each:
    """`f` of each item; None leaves it out."""
    return Each(partial(per_item.apply, check_function(f, "map expects a function")), handler)


def decode(
    *args: str | FieldDecoder,
    handler: Handler = reraise_exception,
    pre: Iterable[FieldDecoder] | None = None,
    post: Iterable[FieldDecoder] | None = None,
    only: str | Iterable[str] | None = None,
    partial: bool = False,
    unsafe: Iterable[str] = (),
) -> Each:
    """Decodes fields by extension; see `Decoder`. Without an image spec pictures stay bytes; pickles need `unsafe=["pkl"]`."""
    return Each(Decoder(args, pre, post, only, partial, unsafe), handler)


def xdecode(
    *args: tuple[str, Callable[[Any], Any]],
    must_decode: bool = True,
    defaults: Iterable[tuple[str, Callable[[Any], Any]]] | None = None,
    **kw: Callable[[Any], Any],
) -> Each:
    """Decodes fields by patterns: pairs of `"*.png"` and a function of an open binary file, or `png=f`; the last that fits counts."""
    known = _PLAIN if defaults is None else tuple(defaults)
    return map(PatternDecoder((*known, *args, *((f"*.{ext}", f) for ext, f in kw.items())), must_decode))


def _read_text(file: Any) -> str:
    return str(file.read().decode("utf-8"))


_PLAIN = (("*.bin", operator.methodcaller("read")), ("*.txt", _read_text))


def associate(associator: Any, **kw: Any) -> Each:
    """Adds to each sample what a dict has for its key, or what a function of the key returns."""
    return Each(partial(per_item.with_associate, associator))


def map_dict(handler: Handler = reraise_exception, **functions: Callable[[Any], Any]) -> Each:
    """A function for each field named."""
    if not functions:
        raise UsageError("map_dict expects field=function.", hint="For example .map_dict(cls=int).")
    found = {name: check_function(f, f"map_dict({name}=…) expects a function") for name, f in functions.items()}
    return Each(partial(per_item.apply_by_name, found), handler)


def select(predicate: Callable[[Any], Any]) -> Each:
    """Only the items for which `predicate` is true."""
    return Each(partial(per_item.select, check_function(predicate, "select expects a function")))


def to_tuple(*args: Any, handler: Handler = reraise_exception, missing_is_error: bool = True, none_is_error: bool | None = None) -> Each:
    """Fields as a tuple: `to_tuple("jpg;png", "cls")` or `to_tuple("jpg;png cls")`. `none_is_error`: as `missing_is_error`."""
    return Each(per_item.ToTuple(per_item.groups_of(args), missing_is_error, none_is_error), handler)


def map_tuple(*functions: Callable[[Any], Any] | None, handler: Handler = reraise_exception) -> Each:
    """A function for each place of a tuple; None leaves it."""
    found = tuple(f if f is None else check_function(f, "map_tuple expects a function") for f in functions)
    return Each(partial(per_item.apply_by_place, found, False), handler)


def batched(batchsize: float = 20, collation_fn: Callable[[list[Any]], Any] | None = default_collation_fn, partial: bool = True) -> Custom:
    """`batchsize` items as one; `partial=False` leaves out a smaller one at the end."""
    return Custom(functools.partial(stages.batches, count("batched", batchsize), collation_fn, partial), prompt=True)


def unbatched() -> Custom:
    """Batches taken apart again."""
    return Custom(stages.rows)


def unlisted() -> Custom:
    """Lists taken apart again."""
    return Custom(stages.items)


def slice(*bounds: int | None) -> Custom:
    """Items by number: stop, or start, stop and step."""
    return Custom(partial(stages.part, bounds))


def rename(handler: Handler = reraise_exception, keep: bool = True, **moves: Any) -> Each:
    """New names for fields: `rename(image="jpg;png", label="cls")`; other fields stay unless `keep=False`."""
    found = {new: tuple(old.split(";") if isinstance(old, str) else old) for new, old in moves.items()}
    return Each(partial(per_item.rename, found, keep), handler)


def rsample(p: float = 0.5) -> Custom:
    """Each item with probability `p`."""
    if not isinstance(p, int | float) or not 0 <= p <= 1:
        raise UsageError(f"rsample expects a probability from 0 to 1, got {p!r}.")
    return Custom(partial(stages.sample, float(p)), seeded=True)


def rename_keys(
    *pairs: tuple[str, str], keep_unselected: bool = False, must_match: bool = True, duplicate_is_error: bool = True, **more: str
) -> Each:
    """New names for fields by pattern: `rename_keys(("image", "*.jpg"))` or `rename_keys(image="*.jpg")`."""
    found = (*pairs, *more.items())
    if not found:
        raise UsageError('rename_keys expects pairs of new name and pattern, such as ("image", "*.jpg").')
    return Each(partial(per_item.rename_by_pattern, found, keep_unselected, must_match, duplicate_is_error))


def extract_keys(*patterns: Any, duplicate_is_error: bool = True, ignore_missing: bool = False) -> Each:
    """The fields that fit patterns as a tuple: `extract_keys("*.jpg;*.png", "*.cls")`."""
    return Each(partial(per_item.extract, per_item.groups_of(patterns), duplicate_is_error, ignore_missing))


def _log_keys(data: Iterable[Any], logfile: str | None = None) -> Iterator[Any]:
    """Appends number, worker, rank and key of each sample to a file; None does nothing."""
    with open(logfile or os.devnull, "a", encoding="utf-8", errors="surrogateescape") as file:
        for number, sample in enumerate(data):
            values = [sample.get(name) if isinstance(sample, dict) else None for name in ("__worker__", "__rank__", "__key__")]
            file.write("\t".join(str(value) for value in (number, *values)) + "\n")
            yield sample


log_keys = pipelinefilter(_log_keys)


def _info(
    data: Iterable[Any],
    fmt: str | None = None,
    n: int = 3,
    every: int = -1,
    width: int = 50,
    stream: TextIO | None = None,
    name: str = "",
) -> Iterator[Any]:
    """Writes the fields of the first `n` samples, and of one in `every`, to a stream (standard error); `fmt` says how."""
    for number, sample in enumerate(data):
        if number < n or (every > 0 and (number + 1) % every == 0):
            shown = [f"--- {name}", *(f"{field} {repr(value)[:width]}" for field, value in sample.items())]
            (stream or sys.stderr).write((fmt.format(**sample) if fmt else "\n".join(shown)) + "\n")
        yield sample


info = pipelinefilter(_info)


def _at_once(make: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """The form of a stage that takes the data first and runs: `_map(data, f)`."""

    def run(data: Iterable[Any], *args: Any, **kw: Any) -> Iterator[Any]:
        return make(*args, **kw)(data)  # type: ignore[no-any-return]

    return run


_STAGES = (shuffle, map, decode, xdecode, associate, map_dict, select, to_tuple, map_tuple, batched, unbatched, unlisted, rename, rsample)
globals().update({f"_{make.__name__}": _at_once(make) for make in (*_STAGES, rename_keys, extract_keys)})
