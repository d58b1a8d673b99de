"""Which store a URL belongs to, and which shards URLs stand for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarviz import stores
from tarviz.model.errors import NotFoundError, StoreError, UsageError
from tarviz.model.types import URL
from tarviz.stores import memory
from tests.conftest import each_case


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """Four shards, a note, and two folders, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("t-1.tar", "t-2.tar", "t-10.tar", "z.tar.gz", "note.txt", ".hidden.tar", "sub/s.tar", "sub/deep/d.tgz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    return tmp_path


class TestOf:
    @each_case(
        ("url", "kind"),
        [
            ("a.tar", "FileStore"),
            ("/a/b", "FileStore"),
            (Path("a"), "FileStore"),
            ("FILE:///a", "FileStore"),
            ("a:b.tar", "FileStore"),
            ("-", "StdioStore"),
            ("memory://a", "MemoryStore"),
            ("http://h/a", "HttpStore"),
            ("HTTPS://h/a", "HttpStore"),
        ],
    )
    def test_the_scheme_decides(self, url, kind):
        assert kind == type(stores.of(url)).__name__

    def test_only_what_is_far_away_is_kept_here(self, monkeypatch):
        monkeypatch.setenv("TARVIZ_SHARD_CACHE", "1MB")

        kinds = [type(stores.of(url)).__name__ for url in ("a.tar", "-", "memory://a", "http://h/a", "s3://b/a")]
        assert ["FileStore", "StdioStore", "MemoryStore", "CachedStore", "CachedStore"] == kinds

    def test_an_unknown_scheme_names_those_there_are(self):
        with pytest.raises(
            UsageError, match=r"no store for htps:// URLs\. Hint: Did you mean https://\? There are: ais://, az://, file://, gs://, hf://"
        ):
            stores.of("htps://host/a")

    def test_a_shell_command_is_no_url(self):
        with pytest.raises(UsageError, match="shell command"):
            stores.of("pipe:curl http://x")

    @pytest.mark.parametrize("url", ["file://host/a", "a\0b"])
    def test_a_path_that_cannot_be_is_refused(self, url):
        with pytest.raises(UsageError):
            stores.local_path(url)


class TestJoin:
    @each_case(
        ("prefix", "name", "expected"),
        [
            ("a", "b", "a/b"),
            ("a/", "b", "a/b"),
            (Path("a"), "b c", "a/b c"),
            ("file:///a%20b", "c", "/a b/c"),
            ("memory://a/", "b c", "memory://a/b c"),
            ("s3://bucket", "b#c", "s3://bucket/b#c"),
            ("https://h", "a", "https://h/a"),
            ("https://h/d/?k=1", "a#b?c", "https://h/d/a%23b%3Fc?k=1"),
        ],
    )
    def test_a_name_is_put_into_a_folder(self, prefix, name, expected):
        assert expected == stores.join(prefix, name)

    def test_a_pipe_is_no_folder(self):
        with pytest.raises(UsageError):
            stores.join("-", "a")


class TestExpand:
    @pytest.mark.parametrize(
        ("urls", "expected"),
        [
            ("t-1.tar", ["t-1.tar"]),
            (Path("t-1.tar"), ["t-1.tar"]),
            ("./t-1.tar", ["./t-1.tar"]),
            ("t-{1..2}.tar", ["t-1.tar", "t-2.tar"]),
            ("t-{2,1,2}.tar", ["t-2.tar", "t-1.tar", "t-2.tar"]),
            (".", ["./t-1.tar", "./t-2.tar", "./t-10.tar", "./z.tar.gz"]),
            ("sub/", ["sub/s.tar"]),
            (Path("sub"), ["sub/s.tar"]),
            ("t-*.tar", ["t-1.tar", "t-2.tar", "t-10.tar"]),
            ("t-?.tar", ["t-1.tar", "t-2.tar"]),
            ("t-[12].tar", ["t-1.tar", "t-2.tar"]),
            ("{t-1*,sub/*}.tar", ["t-1.tar", "t-10.tar", "sub/s.tar"]),
            ("sub/**/*.t*", ["sub/deep/d.tgz", "sub/s.tar"]),
            ("note.txt", ["note.txt"]),
            ("-", ["-"]),
            (["t-1.tar", Path("sub"), "t-{1..2}.tar"], ["t-1.tar", "sub/s.tar", "t-1.tar", "t-2.tar"]),
            (iter(["t-2.tar", "https://h/{a,b}"]), ["t-2.tar", "https://h/a", "https://h/b"]),
            ("https://h/a?list=1", ["https://h/a?list=1"]),
            ("https://h/*.tar", ["https://h/*.tar"]),
        ],
    )
    def test_shards_are_found_in_order(self, shards, urls, expected):
        assert expected == stores.expand(urls)

    def test_names_that_exist_are_no_patterns(self, shards):
        for name in ("a{1,2}.tar", "b*.tar", "c[1].tar", "d{.tar", "e,f.tar"):
            (shards / name).write_bytes(b"")

            assert [name] == stores.expand(name)

    def test_home_and_file_urls_are_paths(self, shards, monkeypatch):
        monkeypatch.setenv("HOME", str(shards))

        assert [f"{shards}/t-1.tar"] == stores.expand("~/t-1.tar")
        assert [f"{shards}/t-1.tar", f"{shards}/t-2.tar"] == stores.expand(f"file://{shards}/t-{{1..2}}.tar")

    def test_file_and_a_colon_are_a_path_too(self, shards):
        assert ["t-1.tar", "t-2.tar"] == stores.expand("file:t-{1..2}.tar")
        assert [f"{shards}/t-1.tar"] == stores.expand(f"file:{shards}/t-1.tar")
        (shards / "file:x.tar").write_bytes(b"")
        assert ["file:x.tar"] == stores.expand("file:x.tar")

    @each_case(
        ("urls", "text"),
        [
            ("", "the URL is empty"),
            ("  ", "the URL is empty"),
            ([], "the list of URLs is empty"),
            (["t-1.tar", ""], "the URL is empty"),
            (b"t-1.tar", "not bytes"),
            (7, "not int"),
            (None, "not NoneType"),
            ([None], "not NoneType"),
            ("t-{1.tar", "do not match"),
            ("ipfs://bucket/{0..1}", "no store for ipfs://"),
        ],
    )
    def test_what_cannot_be_is_said(self, shards, urls, text):
        with pytest.raises(UsageError, match=text):
            stores.expand(urls)

    @pytest.mark.parametrize(
        ("url", "text"),
        [
            ("t-3.tar", r"E_NOT_FOUND t-3\.tar: there is no such file\. Hint: Nearest in \.: .*t-1\.tar"),
            ("t-{1..4}.tar", r"E_NOT_FOUND t-\{1\.\.4\}\.tar: 2 of 4 shards do not exist: t-3\.tar, t-4\.tar\."),
            ("t-{11..19}.tar", r"9 of 9 shards do not exist: t-11\.tar, t-12\.tar, t-13\.tar, …"),
            ("subb/s.tar", r"There is no folder subb\. Nearest in \.: sub\."),
            ("x*.tar", "no file matches"),
            ("t-{}.tar", r"\{\} counts outputs; to read, write a range"),
            ("t-{0..}.tar", r"The braces are not range: write \{0\.\.9\}"),
            ("empty", r"the folder holds no shard"),
            ("empty/a.tar", r"The folder empty is empty"),
            ("sub/..", None),
            ("pipe.tar", "no such file"),
        ],
    )
    def test_what_is_missing_is_said_with_what_is_near(self, shards, url, text):
        if text is None:
            assert 4 == len(stores.expand(url))
            return
        with pytest.raises(NotFoundError, match=text):
            stores.expand(url)

    def test_a_link_to_nothing_is_said(self, shards):
        (shards / "gone.tar").symlink_to("nowhere")

        with pytest.raises(NotFoundError, match="it is a link to a file that does not exist"):
            stores.expand("gone.tar")

    def test_a_folder_of_folders_says_where_shards_lie(self, shards):
        (shards / "top" / "a").mkdir(parents=True)
        (shards / "top" / "a" / "b.tar").write_bytes(b"")

        with pytest.raises(NotFoundError, match=r"Shards lie in folders below: top/\*/\*\.tar takes them all"):
            stores.expand("top")

    def test_on_a_listing_store_a_range_selects_what_exists(self, monkeypatch):
        monkeypatch.setattr(memory.MemoryStore, "selects", True)
        for name in ("x/s-0.tar", "x/s-2.tar", "y/s-1.tar"):
            stores.of("memory://").create(URL(f"memory://sel/{name}")).commit()

        assert ["memory://sel/x/s-0.tar", "memory://sel/x/s-2.tar", "memory://sel/y/s-1.tar"] == stores.expand(
            "memory://sel/{x,y}/s-{0..3}.tar"
        )
        assert ["memory://sel/x/s-9.tar"] == stores.expand("memory://sel/x/s-9.tar")
        with pytest.raises(NotFoundError, match="none of the 2 objects"):
            stores.expand("memory://sel/x/s-{8..9}.tar")


def test_the_http_store_loads_no_framework_and_importing_stores_loads_no_http():
    code = "import sys; from tarviz import stores; stores.expand('-'); assert not {'urllib3', 'ssl'} & set(sys.modules), 'loaded'"
    subprocess.run([sys.executable, "-c", code], check=True)


class TestListings:
    """What a store that lists makes of templates, and where it may not be listed."""

    @pytest.fixture
    def refuses(self, monkeypatch):
        def refuse(code):
            def listed(self, url):
                raise StoreError("no", code=code, shard=url)

            monkeypatch.setattr(memory.MemoryStore, "selects", True)
            monkeypatch.setattr(memory.MemoryStore, "list", listed)

        return refuse

    def test_who_may_not_list_may_still_read(self, refuses):
        refuses("E_AUTH")

        assert ["memory://r/*.tar"] == stores.expand("memory://r/*.tar")
        assert ["memory://r/0.tar", "memory://r/1.tar"] == stores.expand("memory://r/{0..1}.tar")

    @pytest.mark.parametrize("template", ["memory://r/*.tar", "memory://r/{0..1}.tar", "memory://r/"])
    def test_another_error_is_one(self, refuses, template):
        refuses("E_NETWORK")

        with pytest.raises(StoreError, match="E_NETWORK"):
            stores.expand(template)

    def test_a_template_of_folders_is_the_shards_in_each(self, shards):
        (shards / "top").mkdir()
        (shards / "top" / "x.tar").write_bytes(b"")

        assert ["top/x.tar", "sub/s.tar", "t-1.tar"] == stores.expand("{top,sub,t-1.tar}")

    def test_a_path_of_bytes_is_none(self):
        class Place(os.PathLike):
            def __fspath__(self):
                return b"a.tar"

        with pytest.raises(UsageError, match=r"a path of bytes is not.*os\.fsdecode"):
            stores.expand(Place())


def test_a_file_is_written_whole(tmp_path: Path):
    stores.write(tmp_path / "a", b"one")
    stores.write(str(tmp_path / "a"), b"other")

    assert ["a"] == os.listdir(tmp_path)
    assert b"other" == (tmp_path / "a").read_bytes()
