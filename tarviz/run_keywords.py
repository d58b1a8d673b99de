"""The options of a pipeline's runners as keyword arguments: what type checkers see, `help()` shows and each runner's `run` takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, TypeVar, cast, get_type_hints

from tarviz.formats.features import Kind
from tarviz.formats.tfrecord import Compression
from tarviz.outputs import Exists

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Option:
    """What an option means, its unit included, and the value it has where it is not given."""

    means: str
    default: Any = None


class _Passes(TypedDict, total=False):
    shuffle: Annotated[int | None, Option("records of the buffer that others are drawn from; shards come in another order in every epoch")]
    repeat: Annotated[int | None, Option("passes over the shards, each an epoch; None: without end", 1)]
    epoch: Annotated[int, Option("number of the first pass, from 0; random ops and shuffling draw by it", 0)]
    even: Annotated[bool, Option("equally many records for every rank", False)]
    reshare: Annotated[bool, Option("deal the shards out to ranks and workers anew in every epoch", False)]
    address: Annotated[str | None, Option("where the engine is: auto, host:6379, ray://host:10001; None: what the environment names")]
    send_functions: Annotated[bool, Option("whether functions of the chain (Func) may be sent to the engine", False)]


class _Batches(TypedDict, total=False):
    batch: Annotated[int | None, Option("records that become one step; None: each by itself")]
    drop_remainder: Annotated[bool, Option("leave out a last batch that is smaller", False)]


class EagerKeywords(_Batches, _Passes, total=False):
    """What `Pipeline.eager` takes."""

    num_workers: Annotated[int, Option("threads that run the chain, or tasks of the engine at a time; 0: none, or one per processor", 0)]
    rank: Annotated[int, Option("which of `world_size` processes this is, from 0", 0)]
    world_size: Annotated[int, Option("processes that share the records", 1)]
    engine: Annotated[str | None, Option('where records are read and worked on: "ray"; None: here')]


class _Ranks(_Passes, total=False):
    rank: Annotated[int | None, Option("which of `world_size` processes this is, from 0; None: as torch.distributed or RANK says")]
    world_size: Annotated[int | None, Option("processes that share the records; None: as torch.distributed or WORLD_SIZE says")]


class TfKeywords(_Batches, _Ranks, total=False):
    """What `Pipeline.tf` takes."""

    num_workers: Annotated[int | None, Option("shards read, and records decoded, at a time; None: one per processor")]
    prefetch: Annotated[int | None, Option("steps kept ready; None: 2 batches")]
    deterministic: Annotated[bool, Option("keep the order of shards; False: take them as they come", True)]
    input_context: Annotated[Any, Option("the tf.distribute.InputContext that says which part to read")]
    output_types: Annotated[Any, Option("dtypes in the structure of the selection; None where nothing is asked")]
    output_shapes: Annotated[Any, Option("shapes in the structure of the selection; None where nothing is asked")]
    pad: Annotated[Any, Option("what fills up lists and arrays of different sizes (True: 0); None: lists come as a tf.RaggedTensor")]
    ragged: Annotated[bool, Option("batches of arrays of different sizes as a tf.RaggedTensor", False)]
    graph: Annotated[bool | None, Option("run the ops in TensorFlow's graph, or in threads of their own; None: what is faster")]
    engine: Annotated[str | None, Option('where records are read and worked on: "ray", "tf-service"; None: here')]
    on_loss: Annotated[str | None, Option('what the loss of a worker of "tf-service" is: "error", to be said')]


class TorchKeywords(_Ranks, total=False):
    """What `Pipeline.torch` takes."""

    num_workers: Annotated[int | None, Option("tasks of the engine at a time; without an engine it is the DataLoader's")]
    engine: Annotated[str | None, Option('where records are read and worked on: "ray"; None: here')]


class IndexedKeywords(TypedDict, total=False):
    """What `Pipeline.indexed` takes."""

    epoch: Annotated[int, Option("number that random ops draw by, from 0", 0)]


class ConvertKeywords(TypedDict, total=False):
    """What `Pipeline.convert` takes: the options of `tarviz.convert` that a pipeline does not have itself."""

    types: Annotated[Mapping[str, Kind] | None, Option("kinds of features by name; None: class fields are int64, the rest bytes")]
    max_shard_size: Annotated[int | float | str | None, Option("most bytes of an output, framing included: 100MB, 1GiB; None: no limit")]
    num_workers: Annotated[int | Literal["auto"] | None, Option("processes; auto: this one alone, None or 0: one per processor", "auto")]
    compression: Annotated[Compression | None, Option("gzip or zlib; None: not compressed")]
    key: Annotated[bool, Option("whether the key becomes the feature __key__", True)]
    exists: Annotated[Exists, Option("what happens to outputs that exist: replace, error", "replace")]
    resume: Annotated[bool, Option("keep outputs that their manifest proves", False)]
    manifest: Annotated[bool, Option("write NAME.manifest.json beside each output", True)]
    record_to_example: Annotated[Callable[[dict[str, Any]], Any] | None, Option("makes each Example from the record, a dict")]
    dry_run: Annotated[bool, Option("only say what would be written", False)]
    engine: Annotated[str, Option("where shards are converted: local, ray", "local")]
    address: Annotated[str | None, Option("where the engine is; None: what the environment names")]


def _sign(keywords: Any, method: Callable[..., Any]) -> dict[str, Option]:
    """Put the options of a TypedDict into the signature of what takes them as `**options`; these."""
    hints = get_type_hints(keywords, include_extras=True)
    options = {name: next(part for part in hint.__metadata__ if isinstance(part, Option)) for name, hint in hints.items()}
    signature = inspect.signature(method)
    given = [part for part in signature.parameters.values() if part.kind is not part.VAR_KEYWORD]
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=hints[name].__origin__)
        for name, option in options.items()
    ]
    method.__signature__ = signature.replace(parameters=[*given, *named])  # type: ignore[attr-defined]  # what inspect looks for
    return options


def describe(keywords: Any) -> Callable[[Method], Method]:
    """Put the options of a TypedDict into the signature and the text of the method that takes them as `**options`."""

    def describe(method: Method) -> Method:
        lines = (f"\n    {name}: {option.means} [{option.default!r}]" for name, option in _sign(keywords, method).items())
        method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n\nOptions, and what they are by default:\n" + "".join(lines)
        return method

    return describe


def takes(keywords: Any) -> Callable[[Method], Method]:
    """Have a function that takes the options of a TypedDict as `**options` get all of them: those that are not given, by default."""

    def takes(method: Method) -> Method:
        _sign(keywords, method)
        signature = inspect.signature(method)

        @functools.wraps(method)
        def call(*given: Any, **options: Any) -> Any:
            bound = signature.bind(*given, **options)
            bound.apply_defaults()
            return method(*bound.args, **bound.kwargs)

        return cast("Method", call)

    return takes
