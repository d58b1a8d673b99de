"""A pipeline: shards, chain and selection as one value that compares, pickles, prints and reads back.

Runners turn it into something that yields; they are looked up by name in `tarviz.runners`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Unpack, cast

from tarviz import selection, stores
from tarviz.model import plugins
from tarviz.model.errors import ChainError, DataError, SchemaError, UsageError, redact
from tarviz.model.types import Block, Feature, Record, Schema, rich_form, to_bytes
from tarviz.model.wording import did_you_mean
from tarviz.ops.base import feature_of, unpack
from tarviz.ops.chain_text import Call, parse_call, print_call
from tarviz.ops.chains import Chain, Chainable
from tarviz.ops.random_draws import draws
from tarviz.read import stream
from tarviz.read.chosen import resolve
from tarviz.read.keywords import ReadKeywords
from tarviz.read.mixes import Mix, mix
from tarviz.read.shard_index import cached_index
from tarviz.read.stream import ReadOptions
from tarviz.run_keywords import ConvertKeywords, EagerKeywords, IndexedKeywords, TfKeywords, TorchKeywords, describe
from tarviz.selection import Selection, Structure

if TYPE_CHECKING:
    import tensorflow

    from tarviz.commands.convert import Converted
    from tarviz.outputs import Names
    from tarviz.runners.eager import Eager
    from tarviz.runners.indexed import IndexedValues
    from tarviz.runners.torch import TorchRecords as TorchRecords


_MIXING = "eager", "tf", "torch"  # runners that draw from sources


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pipeline will do, found from the names in its first block.

    `fields` is what the shards hold, `record` the schema after the chain, `schema` the features in the structure of
    the selection, `needs` the fields that have to be read (None: all), `first` the record it was tried on: of those that are
    decoded the first.
    """

    fields: Schema
    record: Schema
    schema: Structure
    needs: frozenset[str] | None
    first: Record


@dataclass(frozen=True, slots=True, init=False)
class Pipeline:
    """Shards + chain + selection.

    `urls` is a template, a path, a folder, several of these or a `tarviz.mix` of them; `chain` chain text, an op or a list of ops;
    `select` says what each step yields (`("jpg", "cls")`; left out: a dict of `__key__` and all fields); `seed` is for
    random ops and shuffling. The rest are the `ReadOptions`, which are strict here by default.

    Iterating runs the pipeline in this process (`eager`); each `iter` begins anew.

    >>> Pipeline("train-{0..3}.tar", "decode(jpg)|resize(jpg, (32, 32))", select=("jpg", "cls"))
    Pipeline("train-{0..3}.tar", "decode(jpg)|resize(jpg, (32, 32))", select=("jpg", "cls"))
    """

    urls: tuple[str, ...]
    chain: Chain
    select: Selection
    seed: int
    options: ReadOptions
    mix: Mix | None

    def __init__(
        self,
        urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mix,
        chain: Chainable = None,
        *,
        select: Any = None,
        seed: int = 0,
        **options: Unpack[ReadKeywords],
    ) -> None:
        known = [part.name for part in fields(ReadOptions)]
        if unknown := [name for name in options if name not in known]:
            raise UsageError(f"A pipeline has no option {unknown[0]!r}.", hint=f"The options are select, seed, {', '.join(known)}.")
        self._set(**_sources(urls), chain=Chain.of(chain), select=selection.parse(select), seed=int(seed), options=ReadOptions(**options))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, text: str) -> Pipeline:
        """The pipeline that its text says; nothing is evaluated.

        >>> Pipeline.of('Pipeline("a.tar", "decode(jpg)", seed=3)').seed
        3
        """
        call = parse_call(text)
        if call.name != "Pipeline":
            raise ChainError(f"expected Pipeline(…), got {call.name}(…).")
        keywords = dict(call.keywords)
        if "select" in keywords:
            keywords["select"] = _select(keywords["select"])
        args: list[Any] = [
            mix(*part.args, **part.keywords) if isinstance(part, Call) and part.name == "mix" else part for part in call.args
        ]
        return cls(*args, **keywords)

    def __repr__(self) -> str:
        keywords: dict[str, Any] = {}
        if (select := selection.plain(self.select)) is not None:
            keywords["select"] = select
        if self.seed:
            keywords["seed"] = self.seed
        for part in fields(ReadOptions):
            if (value := getattr(self.options, part.name)) != part.default:
                keywords[part.name] = value
        urls = self.mix or (redact(self.urls[0]) if len(self.urls) == 1 else [redact(url) for url in self.urls])
        return print_call("Pipeline", [urls, str(self.chain)] if self.chain else [urls], keywords, quote=True)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return rich_form(self)

    def with_urls(self, urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mix) -> Pipeline:
        """The same pipeline over other shards."""
        return self._with(**_sources(urls))

    def with_chain(self, chain: Chainable) -> Pipeline:
        """The same pipeline with another chain."""
        return self._with(chain=Chain.of(chain))

    def with_select(self, select: Any) -> Pipeline:
        """The same pipeline with another selection."""
        return self._with(select=selection.parse(select))

    def with_seed(self, seed: int) -> Pipeline:
        """The same pipeline with another seed."""
        return self._with(seed=int(seed))

    def _with(self, **changes: Any) -> Pipeline:
        other = object.__new__(Pipeline)
        other._set(**({part.name: getattr(self, part.name) for part in fields(self)} | changes))
        return other

    @property
    def needs(self) -> frozenset[str] | None:
        """The fields that have to be read; None means all of them."""
        return self.chain.needs(self.select.needs())

    def schema(self) -> Structure:
        """Dtype and shape of what each step yields, in the structure of the selection; a `Schema` where there is none.

        Only names are read, nothing is decoded, unless an op does not say what it returns (a `Func` without
        `output_types`): that is tried on the first record. A chain that does not fit raises `SchemaError`.
        """
        return self.plan().schema

    def plan(self) -> Plan:
        """What the pipeline reads, makes and yields; see `Plan`."""
        known, block = self._peek()
        needs = self.needs

        def decodes(record: Record) -> bool:
            try:
                self.chain.schema(known, lambda: unpack(record, needs))
            except DataError:
                return False
            return True

        first = block[0] if self.options.on_error == "raise" else next(filter(decodes, block), block[0])

        def probe() -> Mapping[str, Any]:
            return unpack(first, needs)

        try:
            record = self.chain.schema(known, probe)
            schema = self.select.infer(record)
        except SchemaError as error:
            raise error.at(shard=first.shard) from error.__cause__
        if any(isinstance(leaf, selection.SelectJSON) for leaf in self.select.leaves()):
            drawn = draws(self.chain, [to_bytes(first.key)], self.seed)[0]
            schema = _observe(schema, self.select.pick(self.chain.run(probe(), drawn)))
        return Plan(known, record, schema, needs, first)

    def _peek(self) -> tuple[Schema, Block]:
        """The fields of the first block that has records, and the block."""
        pipeline = self.choose()
        for url in stream.shards(pipeline.urls):
            with closing(stream.blocks(url, pipeline.options)) as blocks:
                for block in blocks:
                    if len(block):
                        names = dict.fromkeys([*block[0], *(block.exts[code] for code in dict.fromkeys(block.ext.tolist()))])
                        return Schema({name: Feature("bytes") for name in names}), block
        raise UsageError(f"There are no records in {', '.join(self.urls)}.")

    def run(self, runner: str, **options: Any) -> Any:
        """What the runner of that name makes of the pipeline."""
        if self.mix is not None and (runner not in _MIXING or options.get("engine") == "tf-service"):
            raise UsageError(
                f"a mix of sources goes through {', '.join(_MIXING)}, here or on Ray.", hint="Pipeline(urls) takes all of each."
            )
        module = plugins.load("runners", runner)
        known = inspect.signature(module.run).parameters
        if not any(part.kind is part.VAR_KEYWORD for part in known.values()):
            for name in options:
                if name not in known:
                    elsewhere = getattr(module, "ELSEWHERE", {}).get(name)
                    hint = elsewhere or f"{did_you_mean(name, known)}There are {', '.join(list(known)[1:])}."
                    raise UsageError(f"Pipeline.{runner}() has no option {name!r}.", hint=hint)
        return module.run(self.choose(), **options)

    def choose(self) -> Pipeline:
        """The same pipeline, with the records that its condition and keys choose found; itself where it has none."""
        if not (self.options.where or self.options.keys):
            return self
        return self._with(options=resolve(stream.shards(self.urls), self.options))

    @describe(EagerKeywords)
    def eager(self, **options: Unpack[EagerKeywords]) -> Eager:
        """The pipeline run in this process: an iterable of NumPy and Python values, in shard and record order."""
        return cast("Eager", self.run("eager", **options))

    @describe(TfKeywords)
    def tf(self, **options: Unpack[TfKeywords]) -> tensorflow.data.Dataset[Any]:
        """The pipeline as a `tf.data.Dataset`; values equal those of `eager` (uint8 within 1). `tarviz.runners.tf.run` says more."""
        return self.run("tf", **options)

    @describe(TorchKeywords)
    def torch(self, **options: Unpack[TorchKeywords]) -> TorchRecords:
        """The pipeline as a `torch.utils.data.IterableDataset`; its `loader` is a `DataLoader` that can be resumed."""
        return cast("TorchRecords", self.run("torch", **options))

    @describe(IndexedKeywords)
    def indexed(self, **options: Unpack[IndexedKeywords]) -> IndexedValues:
        """The pipeline by number: `len`, `[k]`, `[[9, 2, 5]]`, slices."""
        return cast("IndexedValues", self.run("indexed", **options))

    @describe(ConvertKeywords)
    def convert(self, path: str | os.PathLike[str] | Names, **options: Unpack[ConvertKeywords]) -> Converted:
        """Writes what the chain makes of the shards to TFRecord files, named as `tarviz.convert` says."""
        return cast("Converted", plugins.load("commands", "convert").convert(self, path, **options))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.eager())

    def count(self) -> int | None:
        """How many records the shards hold, where a current index of each is in the cache; None otherwise.

        It is not known either where records may be skipped, gathered or drawn (`on_error="skip"`, `group="shard"`, a `mix`).
        """
        options = self.options
        if options.on_error == "skip" or options.group == "shard" or options.where or options.keys or self.mix is not None:
            return None
        total = 0
        for url in stream.shards(self.urls):
            index = None if url == "-" else cached_index(stores.of(url).stat(url), self.options)
            if index is None or index.error is not None or index.pending:
                return None
            total += len(index)
        return total

    def __len__(self) -> int:
        """`count()`, or `TypeError` where that is not known: `tarviz index` makes the indexes."""
        if (count := self.count()) is None:
            chosen = self.options.where or self.options.keys
            how = "len(pipeline.eager()) chooses them first" if chosen else "tarviz.index(urls) counts them and keeps the index"
            raise TypeError(f"the number of records is not known; {how}")
        return count

    def __bool__(self) -> bool:
        return True


def _sources(urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mix) -> dict[str, Any]:
    if isinstance(urls, Mix):
        return {"urls": tuple(url for url, _ in urls.weights), "mix": urls}
    return {"urls": tuple(os.fspath(url) for url in ((urls,) if isinstance(urls, str | os.PathLike) else urls)), "mix": None}


_NODES: dict[str, Callable[..., Selection]] = {
    kind.__name__: kind for kind in (selection.Select, selection.SelectJSON, selection.SelectList, selection.SelectDict)
}


def _select(value: Any) -> Any:
    """A selection as it stood in a text, its calls (`SelectJSON("json", "label")`) made into nodes."""
    if isinstance(value, Call):
        if value.name not in _NODES:
            raise ChainError(f"there is no selection named {value.name!r}.", hint=f"There are {', '.join(_NODES)}.")
        return _NODES[value.name](*map(_select, value.args), **{name: _select(part) for name, part in value.keywords.items()})
    if isinstance(value, tuple | list):
        return type(value)(map(_select, value))
    if isinstance(value, dict):
        return {name: _select(part) for name, part in value.items()}
    return value


def _observe(structure: Structure, values: Any) -> Structure:
    """The structure with unknown features taken from values."""
    if isinstance(structure, Feature):
        return feature_of(values) if structure.dtype == "object" else structure
    if isinstance(structure, Mapping):
        return {name: _observe(part, values[name]) for name, part in structure.items()}
    return type(structure)(_observe(part, value) for part, value in zip(structure, values, strict=True))
