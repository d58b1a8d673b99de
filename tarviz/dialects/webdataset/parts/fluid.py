"""The methods that add a stage to a pipeline; each returns a new one and leaves the old as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from tarviz.dialects.webdataset import filters
from tarviz.dialects.webdataset.autodecode import FieldDecoder
from tarviz.dialects.webdataset.handlers import Handler, reraise_exception
from tarviz.dialects.webdataset.parts.collate import default_collation_fn


class FluidInterface:
    """The stages of `filters` as methods, for classes with `compose`."""

    def compose(self, *stages: Any) -> Self:
        """The same with more stages."""
        raise NotImplementedError

    def batched(
        self,
        batchsize: float,
        collation_fn: Callable[[list[Any]], Any] | None = default_collation_fn,
        partial: bool = True,
    ) -> Self:
        """`batchsize` items as one; `partial=False` leaves out a smaller one at the end."""
        return self.compose(filters.batched(batchsize, collation_fn, partial))

    def unbatched(self) -> Self:
        """Batches taken apart again."""
        return self.compose(filters.unbatched())

    def listed(self, batchsize: float, partial: bool = True) -> Self:
        """Lists of `batchsize` items."""
        return self.compose(filters.batched(batchsize, None, partial))

    def unlisted(self) -> Self:
        """Lists taken apart again."""
        return self.compose(filters.unlisted())

    def shuffle(self, size: float = 1000, *, bufsize: float | None = None, **options: Any) -> Self:
        """Shuffles through a buffer of `size` items (`bufsize` is another name for it); 0 and less do nothing.

        The order depends on seed and pass only. `initial`: how many items are there before the first is given.
        """
        stage = filters.shuffle(size if bufsize is None else bufsize, **options)
        return self.compose(stage) if stage.size else self.compose()

    def map(self, f: Callable[[Any], Any], handler: Handler = reraise_exception) -> Self:
        """`f` of each item; None leaves it out."""
        return self.compose(filters.map(f, handler))

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
        return self.compose(filters.decode(*args, handler=handler, pre=pre, post=post, only=only, partial=partial, unsafe=unsafe))

    def map_dict(self, handler: Handler = reraise_exception, **functions: Callable[[Any], Any]) -> Self:
        """A function for each field named."""
        return self.compose(filters.map_dict(handler, **functions))

    def select(self, predicate: Callable[[Any], Any]) -> Self:
        """Only the items for which `predicate` is true."""
        return self.compose(filters.select(predicate))

    def to_tuple(
        self, *names: Any, handler: Handler = reraise_exception, missing_is_error: bool = True, none_is_error: bool | None = None
    ) -> Self:
        """Fields as a tuple: `to_tuple("jpg;png", "cls")` or `to_tuple("jpg;png cls")`."""
        return self.compose(filters.to_tuple(*names, handler=handler, missing_is_error=missing_is_error, none_is_error=none_is_error))

    def map_tuple(self, *functions: Callable[[Any], Any] | None, handler: Handler = reraise_exception) -> Self:
        """A function for each place of a tuple; None leaves it."""
        return self.compose(filters.map_tuple(*functions, handler=handler))

    def slice(self, *bounds: int | None) -> Self:
        """Items by number: stop, or start, stop and step."""
        return self.compose(filters.slice(*bounds))

    def rename(self, handler: Handler = reraise_exception, keep: bool = True, **moves: Any) -> Self:
        """New names for fields: `rename(image="jpg;png", label="cls")`; other fields stay unless `keep=False`."""
        return self.compose(filters.rename(handler, keep, **moves))

    def rsample(self, p: float = 0.5) -> Self:
        """Each item with probability `p`."""
        return self.compose(filters.rsample(p))

    def rename_keys(self, *pairs: tuple[str, str], **options: Any) -> Self:
        """New names for fields by pattern: `rename_keys(("image", "*.jpg"))` or `rename_keys(image="*.jpg")`."""
        return self.compose(filters.rename_keys(*pairs, **options))

    def extract_keys(self, *patterns: Any, **options: Any) -> Self:
        """The fields that fit patterns as a tuple: `extract_keys("*.jpg;*.png", "*.cls")`."""
        return self.compose(filters.extract_keys(*patterns, **options))

    def xdecode(self, *args: tuple[str, Callable[[Any], Any]], **options: Any) -> Self:
        """Decodes fields by patterns, with functions of an open binary file: `xdecode(png=imread, must_decode=False)`."""
        return self.compose(filters.xdecode(*args, **options))

    def mcached(self) -> Self:
        """Keeps what passes in memory; from the second pass on it comes from there."""
        return self.compose(filters.Cached())

    def log_keys(self, logfile: str | None = None) -> Self:
        """Appends number, worker, rank and key of each sample to a file; None does nothing."""
        return self.compose(filters.log_keys(logfile)) if logfile else self.compose()
