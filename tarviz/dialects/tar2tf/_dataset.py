"""The second generation: `Dataset(bucket, proxy, conversions, selections).load(template)`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tarviz import engines
from tarviz.dialects import refuse_unknown
from tarviz.dialects.tar2tf import _shards
from tarviz.dialects.tar2tf._records import CONVERSIONS
from tarviz.model.errors import ChainError, MissingPackageError, StoreError, TarvizWarning, UsageError
from tarviz.model.types import URL
from tarviz.ops import Chain, Op
from tarviz.pipeline import Pipeline
from tarviz.runners.arguments import whole_number
from tarviz.runners.elsewhere import Elsewhere, obstacle
from tarviz.selection import Selection, SelectList, parse

if TYPE_CHECKING:
    import tensorflow as tf

    from tarviz.stores import ais

SELECTIONS = ("jpg", "cls")
_LOAD = ("output_types", "output_shapes", "num_workers", "path", "max_shard_size", "record_to_example", "remote_exec")


class Dataset(_shards.Bucket):
    """Shards below `bucket_name` (a folder or a URL prefix) as datasets of `(value, label)`.

    `conversions` is a conversion, a list of them, or chain text. Left out, `jpg` becomes a float32 image of 224 x 224 pixels in 0…1 and
    `cls` an int32. Given, a field has what its conversions make of it; class fields no conversion touches (`cls`, `cls2`,
    `class`, `index`, `id`) become int32, other fields stay `tf.string`. `[]` leaves everything `tf.string`. `selections` are two,
    value and label, each a field name, a selection, or lists and dicts of these; one name or a dict says what each element
    holds instead of a pair.

    Shards are read as tar2tf reads them: the extension begins at the last dot, a record's members may lie anywhere in the
    shard, and of a field that comes twice the last counts.

    `where` is a condition of `tarviz.table` (`"cls = 3 and json.w > 300"`): only the records that fit are read; the members of a
    record must stand together then.

    `proxy_url` is for buckets of an AIStore cluster. `remote_exec`, also of `load`, which goes first: True runs conversions next to the
    data, in pods of the AIStore cluster, where the bucket is of one that has ETL (`stop` takes the transformer away); else on the cluster
    of Ray that this process is in, or that RAY_ADDRESS names, and refuses a chain that cannot travel (one with a `Func`); where
    there is no cluster it warns once, and the work is done here, as it is with False. None goes to a cluster where there is one and
    the chain can travel. Tensors and their order are the same.

    >>> from tarviz.ops import Decode, Resize
    >>> dataset = Dataset("data/", conversions=[Decode("jpg"), Resize("jpg", (32, 32))], selections=["jpg", "cls"])
    >>> dataset.pipeline("train-{0..3}.tar").urls
    ('data/train-{0..3}.tar',)
    """

    def __init__(
        self,
        bucket_name: str | os.PathLike[str],
        proxy_url: str | None = None,
        conversions: str | Op | Iterable[str | Op] | None = None,
        selections: Any = SELECTIONS,
        remote_exec: bool | None = None,
        *,
        where: str = "",
    ) -> None:
        super().__init__(bucket_name, proxy_url)
        self.where = where
        self._default = conversions is None
        self.chain = _chain(conversions)
        self.selection = _selection(selections)
        _shards.check_remote(remote_exec)
        self._remote = remote_exec
        self._told = False
        self._refused = False  # by the cluster
        self._transformer: ais.Transformer | None = None

    def _engine(self, remote: bool | None, pipeline: Pipeline, count: int) -> str | Elsewhere | None:
        """The engine that conversions run on; None is here."""
        remote = self._remote if remote is None else remote
        if remote and (beside := self._beside(pipeline, count)) is not None:
            return beside
        engine = None if remote is False else engines.there()
        if remote and engine is None:
            self._tell("there is no cluster that could run the conversions; they run here. ray.init() or RAY_ADDRESS names one.")
        error = obstacle(pipeline)
        if remote and engine is not None and error is not None:
            error.hint = "remote_exec=False, or nothing, runs it here."
            raise error
        return engine if error is None else None

    def _beside(self, pipeline: Pipeline, count: int) -> Elsewhere | None:
        """The transformer next to the data, begun with the first load; None where there can be none, which is said once."""
        if not self._prefix.startswith("ais://") or self._refused:
            return None
        from tarviz.dialects.tar2tf import _etl

        if (why := _etl.obstacle(pipeline)) is None and self._transformer is None:
            try:
                self._transformer = _etl.begin(URL(self._prefix))
            except (StoreError, MissingPackageError) as error:
                self._refused, why = True, error.message
        if why is not None:
            self._tell(f"the conversions do not run next to the data ({why}); the next engine has them.")
            return None
        assert self._transformer is not None  # begun above
        return _etl.Etl("ais-etl", count=count, name=self._transformer.name)

    def _tell(self, why: str) -> None:
        """Says once that conversions are not run elsewhere."""
        if not self._told:
            self._told = True
            warnings.warn(f"W_LOCAL remote_exec=True: {why}", TarvizWarning, stacklevel=4)

    def pipeline(self, template: str | Sequence[str]) -> Pipeline:
        """The shards that a template below the bucket stands for, with conversions and selections; class fields still raw."""
        options = {**_shards.OPTIONS, "group": "adjacent", "where": self.where} if self.where else _shards.OPTIONS
        return Pipeline(_shards.urls(self._prefix, template), self.chain, select=self.selection, **options)

    def load(
        self,
        template: str | Sequence[str],
        *,
        output_types: Any = None,
        output_shapes: Any = None,
        num_workers: int = 4,
        path: _shards.OutputPath = None,
        max_shard_size: int | float | str | None = None,
        record_to_example: Callable[[dict[str, Any]], Any] | None = None,
        remote_exec: bool | None = None,
        **unknown: Any,
    ) -> tf.data.Dataset | list[str]:
        """The records of the shards that `template` names (bash braces), as a tf.data.Dataset in the structure of the selections.

        `output_types` and `output_shapes`, in that structure, win over what the conversions make. `num_workers` shards are
        read at a time.

        With a `path`, the records themselves are written to TFRecord files, whose paths are returned: conversions and selections have no
        part in it. `path` is text, with `{}` counting 1, 2, … (one file per shard), or a generator that yields one name after
        the other; with `max_shard_size` (bytes or `"100MB"`, file bytes) files follow each other over all shards. `record_to_example`
        gets a dict of `__key__` and the bytes of each file and returns a `tf.train.Example`, its bytes or a dict; the
        default writes what `default_record_parser` reads.

        A shard that is missing or damaged, or conversions that do not fit, raise `TarvizError`.
        """
        refuse_unknown("load", unknown, _LOAD)
        _shards.check_remote(remote_exec)
        outputs = _shards.outputs_of(path, max_shard_size, record_to_example)
        whole_number("num_workers", num_workers)
        if outputs is not None:
            if self.where:
                raise UsageError("where= is for datasets; the files hold every record.", hint="tarviz convert --where writes what fits.")
            if not self._default and self.chain:
                text = f"the files hold the records as they are; {self.chain} is not applied. Map it over the dataset read from them."
                warnings.warn(f"W_UNUSED_CONVERSIONS {text}", TarvizWarning, stacklevel=2)
            if remote_exec or (remote_exec is None and self._remote):
                self._tell("files are written here; tarviz.convert(engine='ray') writes them on a cluster.")
            return _shards.write(_shards.urls(self._prefix, template), outputs, record_to_example, max_shard_size, num_workers)
        pipeline = self.pipeline(template)
        if self.chain:
            pipeline = _shards.with_class_numbers(pipeline, output_types=output_types)
        engine = self._engine(remote_exec, pipeline, num_workers)
        options = {"num_workers": num_workers, "output_types": output_types, "output_shapes": output_shapes, "engine": engine}
        made: tf.data.Dataset = pipeline.run("tf", **options)
        return made

    def stop(self) -> None:
        """End remote execution: the transformer next to the data is taken away. What Ray does ends with each iteration."""
        begun, self._transformer = self._transformer, None
        if begun is not None:
            begun.end()


def _chain(conversions: Any) -> Chain:
    if conversions is None:
        return Chain.of(CONVERSIONS)
    for part in conversions if isinstance(conversions, list | tuple) else (conversions,):
        if isinstance(part, Selection):
            raise ChainError(f"{part} selects and does not convert.", hint="Selections are the argument after the conversions.")
    return Chain.of(conversions)


def _selection(selections: Any) -> Selection:
    made = parse(selections)
    if isinstance(made, SelectList) and len(made.items) != 2:
        raise UsageError(
            f"selections are two, value and label; there are {len(made.items)}.",
            hint='Put several into one of them: [["jpg", "json"], "cls"].',
        )
    return made
