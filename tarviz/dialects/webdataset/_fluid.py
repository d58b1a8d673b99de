"""The methods that add a stage to a data set; each returns a new one and leaves the old as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from tarviz.dialects.webdataset import _stages as stages
from tarviz.dialects.webdataset._decode import Decoder, FieldDecoder
from tarviz.dialects.webdataset._handlers import Handler, reraise_exception
from tarviz.model.errors import UsageError


class Fluid:
    """What can follow a source of samples, under the names of today's WebDataset."""

    def _then(self, *more: stages.Stage) -> Self:
        raise TypeError  # WebDataset and WebLoader say how

    def compose(self, *functions: Callable[[Iterator[Any]], Iterable[Any]]) -> Self:
        """Functions of your own from iterator to iterator."""
        for f in functions:
            _callable(f, "compose")
        return self._then(*(stages.Custom(f) for f in functions))

    def batched(
        self,
        batchsize: int,
        collation_fn: Callable[[list[Any]], Any] | None = stages.default_collation_fn,
        partial: bool = True,
    ) -> Self:
        """`batchsize` items as one; `partial=False` leaves out a smaller one at the end."""
        return self._then(stages.Batched(_count("batched", batchsize), collation_fn, partial))

    def unbatched(self) -> Self:
        """Batches taken apart again."""
        return self._then(stages.Unbatched())

    def listed(self, batchsize: int, partial: bool = True) -> Self:
        """Lists of `batchsize` items."""
        return self._then(stages.Batched(_count("listed", batchsize), None, partial))

    def unlisted(self) -> Self:
        """Lists taken apart again."""
        return self._then(stages.Unbatched(listed=True))

    def shuffle(self, size: int, *, initial: int = 100, seed: int | None = None) -> Self:
        """Shuffles through a buffer of `size` items; 0 does nothing. The order depends on seed and pass only."""
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise UsageError(f"shuffle expects the size of its buffer, got {size!r}.", hint="For example .shuffle(1000).")
        return self._then(stages.Shuffle(size, max(initial, 1), seed)) if size > 0 else self._then()

    def map(self, f: Callable[[Any], Any], handler: Handler = reraise_exception) -> Self:
        """`f` of each item; None leaves it out."""
        return self._then(stages.Map(_callable(f, "map"), handler=handler))

    def decode(
        self,
        *args: str | FieldDecoder,
        pre: Iterable[FieldDecoder] | None = None,
        post: Iterable[FieldDecoder] | None = None,
        only: str | Iterable[str] | None = None,
        partial: bool = False,
        unsafe: Iterable[str] = (),
        handler: Handler = reraise_exception,
    ) -> Self:
        """Decodes fields by extension; see `Decoder`. Without an image spec pictures stay bytes; pickles need `unsafe=["pkl"]`."""
        return self._then(stages.Decode(Decoder(args, pre, post, only, partial, unsafe), handler=handler))

    def map_dict(self, handler: Handler = reraise_exception, **functions: Callable[[Any], Any]) -> Self:
        """A function for each field named."""
        if not functions:
            raise UsageError("map_dict expects field=function.", hint="For example .map_dict(cls=int).")
        pairs = tuple((name, _callable(f, f"map_dict({name}=…)")) for name, f in functions.items())
        return self._then(stages.MapDict(pairs, handler=handler))

    def select(self, predicate: Callable[[Any], Any]) -> Self:
        """Only the items for which `predicate` is true."""
        return self._then(stages.Select(_callable(predicate, "select")))

    def to_tuple(
        self, *names: Any, handler: Handler = reraise_exception, missing_is_error: bool = True, none_is_error: bool | None = None
    ) -> Self:
        """Fields as a tuple: `to_tuple("jpg;png", "cls")` or `to_tuple("jpg;png cls")`."""
        return self._then(stages.ToTuple(stages.groups_of(names), missing_is_error, handler=handler))

    def map_tuple(self, *functions: Callable[[Any], Any] | None, handler: Handler = reraise_exception) -> Self:
        """A function for each place of a tuple; None leaves it."""
        checked = tuple(f if f is None else _callable(f, "map_tuple") for f in functions)
        return self._then(stages.MapTuple(checked, handler=handler))

    def slice(self, *bounds: int | None) -> Self:
        """Items by number: stop, or start, stop and step."""
        return self._then(stages.Slice(bounds))

    def rename(self, handler: Handler = reraise_exception, keep: bool = True, **moves: str) -> Self:
        """New names for fields: `rename(image="jpg;png", label="cls")`; other fields stay unless `keep=False`."""
        pairs = tuple((new, tuple(old.split(";") if isinstance(old, str) else old)) for new, old in moves.items())
        return self._then(stages.Rename(pairs, keep, handler=handler))

    def rsample(self, p: float = 0.5) -> Self:
        """Each item with probability `p`."""
        if not isinstance(p, int | float) or not 0 <= p <= 1:
            raise UsageError(f"rsample expects a probability from 0 to 1, got {p!r}.")
        return self._then(stages.Sampled(float(p)))

    def rename_keys(
        self,
        *pairs: tuple[str, str],
        keep_unselected: bool = False,
        must_match: bool = True,
        duplicate_is_error: bool = True,
        **more: str,
    ) -> Self:
        """New names for fields by pattern: `rename_keys(("image", "*.jpg"))` or `rename_keys(image="*.jpg")`."""
        renamings = (*pairs, *more.items())
        if not renamings:
            raise UsageError('rename_keys expects pairs of new name and pattern, such as ("image", "*.jpg").')
        return self._then(stages.RenameKeys(tuple(renamings), keep_unselected, must_match, duplicate_is_error))

    def extract_keys(self, *patterns: Any, duplicate_is_error: bool = True, ignore_missing: bool = False) -> Self:
        """The fields that fit patterns as a tuple: `extract_keys("*.jpg;*.png", "*.cls")`."""
        return self._then(stages.ExtractKeys(stages.groups_of(patterns), duplicate_is_error, ignore_missing))

    def log_keys(self, logfile: str | None = None) -> Self:
        """Appends number and key of each sample to a file; None does nothing."""
        return self._then() if not logfile else self._then(stages.Custom(KeyLog(logfile)))


class KeyLog:
    """Writes `number<TAB>key` for each sample that passes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, source: Iterator[Any]) -> Iterator[Any]:
        with open(self.path, "a", encoding="utf-8", errors="surrogateescape") as file:
            for number, sample in enumerate(source):
                file.write(f"{number}\t{sample.get('__key__') if isinstance(sample, dict) else ''}\n")
                yield sample


def _callable(f: Any, where: str) -> Any:
    if not callable(f):
        raise UsageError(f"{where} expects a function, got {f!r}.")
    return f


def _count(where: str, size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise UsageError(f"{where} expects a whole number from 1 on, got {size!r}.")
    return size
