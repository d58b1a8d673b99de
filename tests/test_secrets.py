"""No secret of a URL is ever shown (issue 10, F8): not by a repr, a notebook, an error, a log, a file that is written.

Eight ways in which a URL carries one, each through every door; and every dataclass that holds a URL.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import logging
import pkgutil
import traceback
import warnings
from typing import Any

import pytest

import tarviz
from tarviz import Pipeline, cli
from tarviz.model.errors import TarvizError
from tarviz.model.types import Block
from tarviz.outputs import tar_member
from tarviz.testing.faults import FaultServer
from tarviz.widgets.host.rpc import answer

SECRET = "hunter2hunter2"
URL = f"http://me:{SECRET}@host/a.tar?token={SECRET}"
CARRIERS = {
    "user info": "http://me:{}@{host}{path}",
    "password with an @": "http://me:p@{}@{host}{path}",
    "token as user": "http://{}@{host}{path}",
    "presigned query": "http://{host}{path}?X-Amz-Credential={}%2F1&X-Amz-Signature={}",
    "shared access signature": "http://{host}{path}?sv=1&sig={}",
    "token in a query": "http://{host}{path}?auth={}&auth_token={}&client_secret={}&refresh_token={}&private_token={}&jwt={}",
    "fragment": "http://{host}{path}#access_token={}",
    "nested URL": "http://{host}{path}?from=https%3A%2F%2Fx%2F%3Ftoken%3D{}",
}

ASKED: dict[str, dict[str, Any]] = {
    "fetch": {"query": 0, "start": 0, "stop": 9},
    "record": {"row": 0, "ext": "txt"},
    "header": {"row": 0, "ext": "txt"},
    "part": {"row": 0, "ext": "txt"},
    "find": {"text": "k1"},
    "call": {},
    "poll": {},
}


@pytest.fixture(scope="module")
def server():
    good = b"".join(b"".join(tar_member(f"k{at}.{ext}", b"%d" % at)) for at in range(9) for ext in ("cls", "txt")) + bytes(1024)
    with FaultServer() as server:
        for carrier in CARRIERS:
            path = url("", "/good.tar", carrier).removeprefix("http://").partition("/")[2]
            server.put(f"/{path.partition('#')[0]}", good)
            server.put(f"/{path.partition('#')[0]}".replace("good", "bad"), good[:3000])
        yield server


def url(host: str, path: str, carrier: str) -> str:
    return CARRIERS[carrier].replace("{host}", host).replace("{path}", path).replace("{}", SECRET)


@pytest.fixture(params=CARRIERS)
def carrier(request):
    return request.param


@pytest.fixture
def good(server, carrier):
    return url(server.url.removeprefix("http://"), "/good.tar", carrier)


@pytest.fixture
def bad(server, carrier):
    return url(server.url.removeprefix("http://"), "/bad.tar", carrier)


@pytest.fixture
def missing(server, carrier):
    return url(server.url.removeprefix("http://"), "/missing.tar", carrier)


def shown(found: Any) -> str:
    """Everything an object says of itself."""
    said = [repr(found), str(found)]
    if hasattr(found, "_repr_mimebundle_"):
        said.append(repr(found._repr_mimebundle_()))
    for name in ("_repr_html_", "to_html"):
        if hasattr(found, name):
            said += [str(getattr(found, name)())]
    if hasattr(found, "to_dict"):
        said.append(json.dumps(found.to_dict(), default=str))
    return "\n".join(said)


def refused(call: Any) -> TarvizError:
    with pytest.raises(TarvizError) as caught:
        call()
    return caught.value


def told(error: BaseException) -> str:
    said = [shown(error), repr(error.args), "".join(traceback.format_exception(error))]
    return "\n".join([*said, shown(error.fault)] if isinstance(error, TarvizError) else said)


class TestWhatIsShown:
    def test_records_and_their_blocks(self, good):
        with tarviz.records(good) as run:
            record = next(iter(run))
            said = [shown(run), shown(record), shown(run.report), shown(record.block()), repr([record]), shown(record.members[0])]

        assert "/good.tar" in said[1]
        assert SECRET not in "\n".join(said)

    def test_pipelines_and_their_runs(self, good):
        pipeline = Pipeline(good, "decode(cls)", select=("cls", "txt"))
        eager = pipeline.eager()
        said = [shown(pipeline), shown(Pipeline([good, good])), shown(eager), repr(next(iter(eager))), shown(pipeline.schema())]
        said.append(shown(pipeline.plan()))

        assert "/good.tar" in said[0]
        assert SECRET not in "\n".join(said)

    def test_indexes(self, good):
        found = tarviz.index(good)
        said = [shown(found), shown(found[0]), shown(found["k1"]), repr(found.shards)]

        assert SECRET not in "\n".join(said)

    def test_widgets_their_state_and_what_they_answer(self, good):
        browser = tarviz.browse(good)
        compared = tarviz.compare(good, ["keep(cls)", "keep(txt)"])
        browser.controller.wait(9, 60)
        compared.wait(60)
        said: list[str] = []
        for view in (browser, compared):
            said += [shown(view), json.dumps(view.get_state(), default=repr), repr(view.controller.first()), view.controller.text()]
        for name, message in ASKED.items():
            request = {"k": "tvz:req", "id": "1", "name": name, "msg": message}
            reply, buffers = answer(browser.controller, request)
            assert "r" in reply, reply
            said.append(json.dumps(reply) + repr(buffers))
        for view in (browser, compared):
            view.close()

        assert "/good.tar" in said[0]
        assert SECRET not in "\n".join(said)

    @pytest.mark.parametrize("verb", ["ls", "show", "verify", "index"])
    def test_verbs_that_look(self, good, bad, verb):
        call = getattr(tarviz, verb)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            said = [shown(call(good))]
            try:
                said.append(shown(call(bad)))
            except TarvizError as error:
                said.append(told(error))

        assert SECRET not in "\n".join([*said, *(str(each.message) for each in heard)])

    def test_verbs_that_write(self, good, tmp_path):
        for verb, name in (
            ("cat", "a.tar"),
            ("sort", "b.tar"),
            ("split", "c-{}.tar"),
            ("tsv", "d.tsv"),
            ("convert", "e.tfrecord"),
            ("first", "f"),
        ):
            options = {"field": "txt"} if verb == "first" else {"fields": "txt __shard__"} if verb == "tsv" else {}
            found = getattr(importlib.import_module(f"tarviz.commands.{verb}"), verb)([good], str(tmp_path / name), **options)

            assert SECRET not in shown(found)
        for path in sorted(tmp_path.iterdir()):
            assert SECRET.encode() not in path.read_bytes(), path.name

    def test_outputs_of_a_remote_name(self, good):
        said = [told(refused(lambda: tarviz.commands.cat.cat(good, good)))]
        said.append(told(refused(lambda: tarviz.convert(good, good.replace("good", "{}")))))

        assert SECRET not in "\n".join(said)


class TestErrors:
    def test_what_is_missing(self, missing):
        for call in (
            lambda: list(tarviz.records(missing)),
            lambda: tarviz.index(missing),
            lambda: list(Pipeline(missing)),
            lambda: tarviz.ls(missing).to_dict(),
            lambda: list(tarviz.records([missing, missing])),
        ):
            try:
                said = shown(call())
            except TarvizError as error:
                said = told(error)
            assert SECRET not in said

    def test_what_is_damaged(self, bad):
        error = refused(lambda: list(tarviz.records(bad)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with tarviz.records(bad, on_error="skip") as run:
                list(run)

        assert "/bad.tar" in str(error)
        assert SECRET not in told(error) + shown(run.report)

    def test_a_host_that_does_not_answer(self, carrier, monkeypatch):
        gone = url("127.0.0.1:1", "/a.tar", carrier)
        monkeypatch.setenv("TARVIZ_RETRY_TIMEOUT", "0.01")
        error = refused(lambda: list(tarviz.records(gone)))

        assert SECRET not in told(error)

    def test_debug_logs(self, good, bad, missing, caplog):
        caplog.set_level(logging.DEBUG)
        list(tarviz.records(good))
        tarviz.index(good)
        for shard in (bad, missing):
            refused(lambda shard=shard: list(tarviz.records(shard)))

        assert SECRET not in caplog.text
        assert SECRET not in "\n".join(str(record.__dict__) for record in caplog.records if record.name.startswith("tarviz"))


def test_the_shell(good, bad, tmp_path, capfd):
    for line in (["ls", good], ["verify", bad], ["show", bad], ["cat", bad, "-o", str(tmp_path / "a.tar")], ["ls", "--json", good]):
        cli.main(line)
        said = capfd.readouterr()

        assert SECRET not in said.out + said.err


HOLD = {"url", "urls", "shard", "shards", "output", "outputs", "page"}
ONE = ("str", "URL", "str | None", "URL | None")
SOME = ("tuple[str, ...]", "tuple[URL, ...]", "list[str]", "list[URL]", "Sequence[str]", "Sequence[URL]")


QUICK = ("tarviz.model", "tarviz.formats", "tarviz.stores", "tarviz.read", "tarviz.outputs", "tarviz.cli", "tarviz.commands.convert")


def holders(modules: tuple[str, ...]) -> list[type]:
    """Every dataclass here that has a field for a URL."""
    found: dict[type, None] = {}
    packages = [importlib.import_module(name) for name in modules]
    names = [each.name for package in packages for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    for name in names:
        if name.startswith(("tarviz.testing", "tarviz.__main__")):
            continue
        try:
            values = vars(importlib.import_module(name)).values()
        except (ImportError, TarvizError):
            continue
        for value in values:
            own = isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__.startswith("tarviz.")
            if own and value not in (Pipeline, Block) and any(_holds(part) for part in dataclasses.fields(value)):
                found[value] = None
    return list(found)


def _holds(part: Any) -> bool:
    return part.repr and part.name in HOLD and part.type in ONE + SOME


@pytest.mark.parametrize("modules", [QUICK, pytest.param(("tarviz",), marks=pytest.mark.slow)], ids=["quick", "all"])
def test_no_dataclass_shows_the_secret_of_a_url_it_holds(modules):
    kinds = holders(modules)
    telling = []
    for kind in kinds:
        held = object.__new__(kind)
        for part in dataclasses.fields(kind):
            value = part.default if part.default is not dataclasses.MISSING else None
            if part.default_factory is not dataclasses.MISSING:
                value = part.default_factory()
            object.__setattr__(held, part.name, value if not _holds(part) else URL if part.type in ONE else (URL,))
        if SECRET in repr(held):
            telling.append(kind)

    assert kinds
    assert [] == telling
