"""The page inside a Jupyter server: its address, its sign-in, its rules for files; on a real server with a base URL."""

from __future__ import annotations

import http.client
import http.cookies
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

pytest.importorskip("jupyter_server", reason="jupyterlab is in the extra `lab`")
pytest.importorskip("jupyterlab", reason="jupyterlab is in the extra `lab`")

from jupyter_server.services.contents.filemanager import FileContentsManager

from tarviz.model.errors import NotFoundError, TarvizError
from tarviz.testing.faults import FaultServer
from tarviz.widgets.host.replies import CSP, HEADERS
from tarviz.widgets.host.rpc import pack, unpack
from tarviz.widgets.lab import pages as lab_pages
from tarviz.widgets.lab.pages import Pages
from tests.browser.conftest import Lab, running_lab
from tests.widgets.conftest import records, tar

BASE = "/hub/user/x"
OUTSIDE = ["../outside.tar", "sub/../../outside.tar", "{../outside,a}.tar", "-", "memory://x.tar", "pipe:cat x"]
HIDDEN = [".hidden.tar", ".folder/a.tar", ".folder", "sub/.folder/*.tar", ".h*.tar"]


def fill(root: Path) -> Path:
    """A folder with shards to be shown, hidden ones, and one outside of it."""
    for name in ("a.tar", "sub/b.tar", "sub/b2.tar", ".hidden.tar", ".folder/a.tar", "sub/.folder/a.tar", "../outside.tar"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        tar(root / name, records(0, 5))
    return root


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    root = fill(tmp_path / "root")
    pages = Pages(FileContentsManager(root_dir=str(root)), f"{BASE}/tarviz/")
    yield pages
    pages.close()


class TestPlaces:
    @pytest.mark.parametrize("path", ["a.tar", "sub", "sub/b{,2}.tar", "sub/*.tar"])
    def test_what_lies_in_the_folder_is_shown(self, pages: Pages, path: str):
        assert pages.browser(path).wait(5, 60.0)

    @pytest.mark.parametrize("path", OUTSIDE + HIDDEN)
    def test_what_lies_outside_or_is_hidden_is_not(self, pages: Pages, path: str):
        with pytest.raises(TarvizError):
            pages.browser(path)

    def test_an_absolute_path_and_a_file_url_are_held_to_the_same(self, pages: Pages, tmp_path: Path):
        for path in (str(tmp_path / "root" / "a.tar"), (tmp_path / "root" / "a.tar").as_uri()):
            assert pages.place(path) == str(tmp_path / "root" / "a.tar")
        for path in (str(tmp_path / "outside.tar"), (tmp_path / "outside.tar").as_uri(), str(tmp_path)):
            with pytest.raises(NotFoundError):
                pages.place(path)

    def test_hidden_files_are_shown_where_jupyter_shows_them(self, pages: Pages):
        pages.contents.allow_hidden = True

        assert pages.browser(".hidden.tar").wait(5, 60.0)

    def test_remote_shards_are_nobodys_folder(self, pages: Pages):
        assert "s3://bucket/a.tar" == pages.place("s3://bucket/a.tar")

    def test_a_server_whose_files_are_elsewhere_shows_none_of_this_machine(self, tmp_path: Path):
        other = Pages(object(), "/tarviz/")
        with pytest.raises(NotFoundError):
            other.place("a.tar")
        other.close()


class TestOpen:
    def test_two_pages_on_one_path_share_a_browser(self, pages: Pages):
        assert pages.browser("a.tar") is pages.browser("a.tar")
        assert pages.browser("a.tar") is not pages.browser("sub")

    def test_what_was_asked_for_least_lately_ends(self, pages: Pages, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(lab_pages, "MOST", 2)
        first, second = pages.browser("a.tar"), pages.browser("sub")
        pages.browser("a.tar")
        pages.browser("sub/b.tar")

        assert (False, True) == (first.closed, second.closed)

    def test_other_shards_have_an_address_below_the_server(self, pages: Pages):
        assert f"{BASE}/tarviz/?path=sub%2Fb.tar" == pages.open("sub/b.tar")


class TestReplies:
    def test_a_page_and_what_it_asks_beside_it(self, pages: Pages):
        page = pages.get("a.tar", "", "", "", True)
        state = pages.get("a.tar", "state", "one", "", True)
        answered = pages.post("a.tar", "rpc", pack({"k": "tvz:req", "id": "1", "name": "find", "msg": {"text": "set/n000003"}}))

        assert (200, b"<title>a.tar \xc2\xb7 tarviz</title>" in b"".join(map(bytes, page.pieces))) == (page.status, True)
        assert "a.tar" == unpack(b"".join(map(bytes, state.pieces)))[0]["_first"]["config"]["title"]
        assert {"row": 3, "position": 3} == unpack(b"".join(map(bytes, answered.pieces)))[0]["r"]
        for reply in (page, state, answered):
            assert {**HEADERS, "Content-Security-Policy": CSP} == dict(reply.headers)

    def test_a_part_of_a_payload(self, pages: Pages):
        assert pages.browser("a.tar").wait(5, 60.0)
        reply = pages.get("a.tar", "m/3/cls", "", "bytes=0-0", True)

        assert (206, b"0", "bytes 0-0/1") == (reply.status, b"".join(map(bytes, reply.pieces)), reply.headers["Content-Range"])
        assert "nosniff" == reply.headers["X-Content-Type-Options"]

    def test_on_nothing_is_a_page_that_opens_others(self, pages: Pages):
        page = pages.get("", "", "", "", True)

        assert (200, True) == (page.status, b"<title>tarviz</title>" in b"".join(map(bytes, page.pieces)))

    def test_what_is_not_shown_is_404_a_page_still_a_page(self, pages: Pages):
        page, state = pages.get("../outside.tar", "", "", "", True), pages.get("../outside.tar", "state", "", "", True)
        answered = pages.post("../outside.tar", "rpc", pack({"k": "tvz:req", "id": "1", "name": "poll"}))

        assert (404, "text/html; charset=utf-8") == (page.status, page.mime)
        for reply in (state, answered):
            assert (404, "text/plain; charset=utf-8") == (reply.status, reply.mime)
            assert b"There is no such file or folder in the folder of this Jupyter server." in b"".join(map(bytes, reply.pieces))

    def test_a_frame_goes_to_one_place_only(self, pages: Pages):
        assert (404, 400) == (pages.post("a.tar", "state", b"").status, pages.post("a.tar", "rpc", b"").status)

    def test_for_another_site_nothing_far_is_read(self, pages: Pages):
        reply = pages.get("s3://bucket/a.tar", "state", "", "", False)

        assert (404, True) == (reply.status, b"another site asks this server to read a URL." in b"".join(map(bytes, reply.pieces)))
        assert 200 == pages.get("a.tar", "state", "", "", False).status


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("served"), BASE) as lab:
        fill(lab.folder)
        yield lab


def ask(lab: Lab, place: str, *, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[Any, bytes]:
    """What the server answers below `tarviz/`, without following it elsewhere."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(lab.url).port, timeout=100)
    connection.request(method, f"{BASE}/tarviz/{place}", body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response, data


def call(lab: Lab, shard: str, name: str, **message: Any) -> dict[str, Any]:
    body = pack({"k": "tvz:req", "id": "1", "session": "s", "name": name, "msg": message})
    response, data = ask(lab, f"rpc?path={quote(shard)}", method="POST", body=body, Authorization="token tarviz")
    assert 200 == response.status, data
    return unpack(data)[0]


@pytest.mark.programs
class TestServed:
    def test_the_page_and_what_it_asks_for_lie_below_the_base_url(self, lab: Lab):
        response, page = ask(lab, "?path=a.tar", Authorization="token tarviz")
        _, state = ask(lab, "state?path=a.tar&session=s", Authorization="token tarviz")

        assert 200 == response.status
        assert b'src="page.mjs"' in page
        assert b"<title>a.tar \xc2\xb7 tarviz</title>" in page
        assert 5 == len(unpack(state)[0]["_first"]["rows"]["rows"])
        for name in ("page.mjs", "host.mjs", "widget.mjs", "widget.css"):
            assert 200 == ask(lab, name, Authorization="token tarviz")[0].status

    def test_only_pages_of_the_server_may_frame_it_and_nothing_from_elsewhere_is_loaded(self, lab: Lab):
        policy = ask(lab, "?path=a.tar", Authorization="token tarviz")[0].headers["Content-Security-Policy"]

        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "frame-ancestors 'self'" in policy

    @pytest.mark.parametrize("place", ["?path=a.tar", "state?path=a.tar", "m/0/txt?path=a.tar"])
    def test_who_is_not_signed_in_is_sent_to_sign_in(self, lab: Lab, place: str):
        response, data = ask(lab, place)

        assert 302 == response.status
        assert response.headers["Location"].startswith(f"{BASE}/login?next=")
        assert b"" == data

    @pytest.mark.parametrize("place", ["page.mjs", "host.mjs", "widget.mjs", "widget.css"])
    def test_the_code_of_the_page_is_everybodys(self, lab: Lab, place: str):
        """JupyterHub takes no cookie with the request for a module."""
        response, data = ask(lab, place)

        assert 200 == response.status
        assert data

    def test_a_request_needs_the_sign_in_and_the_cookie_that_other_sites_cannot_read(self, lab: Lab):
        body = pack({"k": "tvz:req", "id": "1", "session": "s", "name": "poll", "msg": {}})
        assert 403 == ask(lab, "rpc?path=a.tar", method="POST", body=body)[0].status
        response, _ = ask(lab, "?path=a.tar&token=tarviz")
        cookies = http.cookies.SimpleCookie("; ".join(value.partition(";")[0] for value in response.headers.get_all("Set-Cookie")))
        sent = "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())

        assert 403 == ask(lab, "rpc?path=a.tar", method="POST", body=body, Cookie=sent)[0].status
        signed = {"Cookie": sent, "X_XSRFToken": cookies["_xsrf"].value}
        assert 200 == ask(lab, "rpc?path=a.tar", method="POST", body=body, **signed)[0].status

    def test_another_site_makes_the_server_read_no_url(self, lab: Lab):
        response, _ = ask(lab, "?path=a.tar&token=tarviz")
        cookies = http.cookies.SimpleCookie("; ".join(value.partition(";")[0] for value in response.headers.get_all("Set-Cookie")))
        signed = {"Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())}
        elsewhere = [{}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site", "Referer": "http://elsewhere.test/"}]
        here = [{"Sec_Fetch_Site": "same-origin"}, {"Sec_Fetch_Site": "none"}, {"Referer": lab.url}, {"Authorization": "token tarviz"}]
        with FaultServer() as far:
            body = (lab.folder / "a.tar").read_bytes()
            for place, asked in itertools.product(("", "state", "m/0/png"), elsewhere):
                url = far.put(f"/{len(far.requests)}.tar", body)

                assert 404 == ask(lab, f"{place}?path={quote(url, safe='')}", **signed, **asked)[0].status
                assert 200 == ask(lab, "?path=a.tar", **signed, **asked)[0].status
            assert [] == far.requests
            for number, asked in enumerate(here):
                url = far.put(f"/here-{number}.tar", body)

                assert 200 == ask(lab, f"?path={quote(url, safe='')}", **signed, **asked)[0].status
                assert 200 == ask(lab, f"state?path={quote(url, safe='')}&session=s", **signed)[0].status  # it is open
            assert far.requests

    @pytest.mark.parametrize("path", ["../outside.tar", ".hidden.tar", ".folder", "nothing.tar", "/etc/hostname"])
    def test_hidden_and_outside_is_404(self, lab: Lab, path: str):
        for place in ("", "state", "m/0/txt"):
            assert 404 == ask(lab, f"{place}?path={quote(path)}", Authorization="token tarviz")[0].status
        assert b"E_NOT_FOUND" in ask(lab, f"state?path={quote(path)}", Authorization="token tarviz")[1]

    def test_a_page_opens_and_writes_nothing_outside(self, lab: Lab):
        ask(lab, "state?path=a.tar&session=s", Authorization="token tarviz")
        refused = [
            call(lab, "a.tar", "open", url="../outside.tar"),
            call(lab, "a.tar", "keep", path="../written.txt", query=1),
            call(lab, "a.tar", "clean", path=".written.tar"),
        ]

        assert ["E_NOT_FOUND"] * 3 == [answer["err"]["code"] for answer in refused]
        assert not (lab.folder / "../written.txt").exists()
        assert f"{BASE}/tarviz/?path=sub" == call(lab, "a.tar", "open", url="sub")["r"]["address"]

    def test_a_payload_comes_in_ranges(self, lab: Lab):
        state = unpack(ask(lab, "state?path=a.tar&session=s", Authorization="token tarviz")[1])[0]["_first"]
        row = state["rows"]["rows"][0]["id"]
        response, data = ask(lab, f"m/{row}/png?path=a.tar", Authorization="token tarviz", Range="bytes=0-0")

        assert 206 == response.status
        assert b"\x89" == data
        assert "attachment" == response.headers["Content-Disposition"]


def test_the_versions_of_the_wheel_and_of_the_extension_are_one():
    import tarviz

    assert tarviz.__version__ == json.loads((Path(lab_pages.__file__).parent / "extension" / "package.json").read_text("utf-8"))["version"]
