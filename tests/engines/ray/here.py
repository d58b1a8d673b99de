"""A Ray in this process, for what engines ask of one: tasks are done when somebody waits for them, the last one first, or go wrong."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """A worker or a node is lost."""


class RayTaskError(RayError):
    """A worker could not begin."""


class TaskCancelledError(RayError):
    """Somebody else has cancelled it."""


@dataclass(eq=False)
class Reference:
    """What Ray knows of an outcome: how it is made, then what it is; and whose it is."""

    make: Callable[[], Any]
    owner: Actor | None = None
    done: bool = False
    value: Any = None

    def settle(self) -> None:
        if not self.done:
            self.done = True
            try:
                self.value = self.make()
            except (RayError, StopIteration) as error:
                self.value = error


@dataclass(eq=False)
class Streaming:
    """The references of a task that yields; what is wrong comes before as many of them."""

    parts: Iterator[Any]
    wrong: dict[int, type[Exception]]
    taken: int = 0

    def __next__(self) -> Reference:
        self.taken += 1
        if (kind := self.wrong.get(self.taken - 1)) is StopIteration:
            raise StopIteration
        return Reference(partial(next, self.parts) if kind is None else partial(_fail, kind))


def _fail(kind: type[Exception]) -> None:
    raise kind("node died")


@dataclass(eq=False)
class Actor:
    """An object in a worker; what is asked of it is done in this order. What is wrong comes in place of as many answers to a task."""

    ray: RayHere
    made: Any
    processors: int
    wrong: dict[int, type[Exception]] = field(default_factory=dict)
    asked: int = 0
    last: Reference | None = None

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=partial(self._reference, name))

    def _reference(self, name: str, *given: Any) -> Reference:
        if name == "begin":
            self.wrong, self.asked = self.ray.wrong.get(len(self.ray.made), {}), 0
            self.ray.note(self, given[-1], self.processors)
        before, kind = self.last, self.wrong.get(self.asked)
        self.asked += 1

        def make() -> Any:
            if before is not None:
                before.settle()
            return getattr(self.made, name)(*given) if kind is None else _fail(kind)

        self.last = Reference(make, self)
        return self.last


@dataclass
class RayHere:
    """`wrong[n]` says what goes wrong with the n-th task that is begun, from 0; those in `busy` get no processor."""

    processors: int = 2
    wrong: dict[int, Any] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)
    begun: list[tuple[Any, int]] = field(default_factory=list)  # of each task its last argument, and the processors asked for
    made: list[Any] = field(default_factory=list)  # what each is known by
    ended: list[Any] = field(default_factory=list)  # numbers of those that were cancelled or killed
    most: int = 0  # outcomes that were waited for at a time
    first: bool = False  # which of several is done: the first, or else the last

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError, TaskCancelledError=TaskCancelledError)
    cloudpickle = pickle
    util = SimpleNamespace(client=SimpleNamespace(ray=SimpleNamespace(is_connected=lambda: False)))

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.processors)} if self.processors else {}

    def note(self, made: Any, argument: Any, processors: int) -> None:
        self.made.append(made)
        self.begun.append((argument, processors))

    def put(self, value: Any) -> Reference:
        return Reference(lambda: value)

    def get(self, reference: Reference) -> Any:
        reference.settle()
        if isinstance(reference.value, Exception):
            raise reference.value
        return reference.value

    def wait(self, given: list[Any], num_returns: int = 1, timeout: float | None = None, fetch_local: bool = True) -> tuple[list[Any], Any]:
        """What is ready. An outcome is so when somebody waits for it as long as it takes."""
        self.most = max(self.most, len(given))
        turns = given if self.first else given[::-1]
        for each in turns:
            if isinstance(each, Reference) and self._due(each, given if timeout is None else []):
                each.settle()
        ready = [each for each in turns if (each.done if isinstance(each, Reference) else self.number(each) not in self.busy)]
        return ready[:num_returns], None

    def _due(self, each: Reference, given: list[Any]) -> bool:
        """Whether an actor has come to it, or somebody waits for one of those given."""
        if each.owner is not None:
            return self.number(each.owner) not in self.busy
        return bool(given) and not any(other.done for other in given)

    def number(self, made: Any) -> int:
        return max(at for at, each in enumerate(self.made) if each is made)

    def cancel(self, made: Any, force: bool = False) -> None:
        self.ended.append((self.number(made), force))

    def kill(self, actor: Actor) -> None:
        self.ended.append(self.number(actor))

    def remote(self, **asked: Any) -> Callable[[Any], Any]:
        return lambda what: Remote(self, what, asked)


@dataclass
class Remote:
    """A function or a class that was made remote."""

    ray: RayHere
    what: Any
    asked: dict[str, Any]

    def options(self, **more: Any) -> Remote:
        return Remote(self.ray, self.what, self.asked | more)

    def remote(self, *given: Any) -> Any:
        ray, processors = self.ray, self.asked["num_cpus"]
        values = [ray.get(each) if isinstance(each, Reference) else each for each in given]
        if isinstance(self.what, type):
            return Actor(ray, self.what(*values), processors)
        wrong = ray.wrong.get(len(ray.made))
        if self.asked["num_returns"] == "streaming":
            ray.note(made := Streaming(self.what(*values), wrong or {}), values[-1], processors)
            return made
        whole = Reference(partial(self.what, *values) if wrong is None else partial(_fail, wrong))
        ray.note(made := Reference(lambda: ray.get(whole)[0]), values[-1], processors)
        return made, Reference(lambda: ray.get(whole)[1])
