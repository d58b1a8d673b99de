"""Which shard a URL names, however it is spelled; what is its name, and what is said beside it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarviz.model.errors import UsageError
from tarviz.model.urls import base_name, identity, is_local, local_path, scheme_of, without_query

AMAZON = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F20261124&X-Amz-Date=20261124T{0}Z&X-Amz-Expires=60&X-Amz-Signature={0}"
GOOGLE = "X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Date={0}&X-Goog-Expires=9&X-Goog-SignedHeaders=host&X-Goog-Signature={0}"
SAS = "sv=2024-11-04&st={0}&se={0}&sr=b&sp=r&spr=https&sip=10.0.0.1&sig={0}%3D"
USER_SAS = "skoid={0}&sktid={0}&skt={0}&ske={0}&sks=b&skv={0}&sv=2024-11-04&se={0}&sr=b&sp=r&sig={0}"
CLOUDFRONT = "Expires={0}&Signature={0}~&Key-Pair-Id=K{0}"
POLICY = "Policy={0}&Signature={0}&Key-Pair-Id=K{0}"
OLD_AMAZON = "AWSAccessKeyId={0}&Expires={0}&Signature={0}"
OLD_GOOGLE = "GoogleAccessId={0}&Expires={0}&Signature={0}"
SIGNERS = [AMAZON, GOOGLE, SAS, USER_SAS, CLOUDFRONT, POLICY, OLD_AMAZON, OLD_GOOGLE]

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)


class TestIdentity:
    @pytest.mark.parametrize("signer", SIGNERS)
    @pytest.mark.parametrize("own", ["", "file=a.tar&", "versionId=7&"])
    def test_a_signature_renewed_names_the_same_shard(self, signer: str, own: str):
        first, second = (f"https://host/data/a.tar?{own}{signer.format(each)}" for each in ("111", "222"))

        assert first != second
        assert f"https://host/data/a.tar{'?' if own else ''}{own.rstrip('&')}" == identity(first) == identity(second)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("https://h/get?file=a.tar", "https://h/get?file=b.tar"),
            ("https://h/a.tar?sp=1", "https://h/a.tar?sp=2"),
            ("https://h/a.tar?Expires=1", "https://h/a.tar?Expires=2"),
            ("https://h/a.tar?Signature=1", "https://h/a.tar?Signature=2"),
            (f"https://h/a.tar?snapshot=1&{SAS.format(1)}", f"https://h/a.tar?snapshot=2&{SAS.format(1)}"),
            ("https://h/a.tar", "http://h/a.tar"),
            ("https://h/a.tar", "https://h:8443/a.tar"),
            ("https://h/a.tar", "https://h/A.tar"),
            ("s3://b/a.tar?X-Amz-Date=1", "s3://b/a.tar?X-Amz-Date=2"),
            ("s3://b/a.tar#1", "s3://b/a.tar#2"),
            ("gs://b/a%20b.tar", "gs://b/a b.tar"),
            ("abfs://one@account.dfs.core.windows.net/a.tar", "abfs://two@account.dfs.core.windows.net/a.tar"),
            ("ais://@aws/b/a.tar", "ais://@gcp/b/a.tar"),
            ("hf://datasets/o/n@v1/a.tar", "hf://datasets/o/n@v2/a.tar"),
        ],
    )
    def test_two_shards_have_two(self, one: str, other: str):
        assert identity(one) != identity(other)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("https://me:secret@host/a.tar", "https://you@HOST:443/a.tar#begin"),
            ("HTTP://host:80/a.tar", "http://host/a.tar"),
            ("http://[::1]:80/a.tar", "http://[::1]/a.tar"),
            ("http://host/a b%2d\u00fc%2fc.tar", "http://host/a%20b-%c3%BC%2Fc.tar"),
            ("ftp://me:secret@host/a.tar", "ftp://HOST/a.tar"),
            ("s3a://b/a.tar", "s3://b/a.tar"),
            ("https://h/a.tar?sig=1&sv=1", "https://h/a.tar"),
            ("gcs://b/a.tar", "gs://b/a.tar"),
        ],
    )
    def test_two_spellings_have_one(self, one: str, other: str):
        assert identity(one) == identity(other)
        assert "secret" not in identity(one)

    def test_a_path_is_the_file_it_leads_to(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / "sub").mkdir()
        (tmp_path / "a.tar").touch()
        (tmp_path / "link.tar").symlink_to("a.tar")
        names = ["a.tar", "./a.tar", "sub/../a.tar", "link.tar", "~/a.tar", "file:a.tar", f"{tmp_path}/a.tar", f"file://{tmp_path}/a.tar"]

        assert {os.path.realpath(tmp_path / "a.tar")} == {identity(name) for name in names}
        assert identity("a.tar") != identity("sub/a.tar")

    @pytest.mark.parametrize("url", ["-", "pipe:cat ./a.tar", "http://host:port/a.tar?sig=1#b", "https://[::1/a.tar"])
    def test_what_is_no_place_is_what_it_is(self, url: str):
        assert url == identity(url)

    @given(st.lists(st.tuples(WORDS, WORDS), max_size=4), st.sampled_from(SIGNERS))
    def test_other_parameters_stay_as_they_are(self, own: list[tuple[str, str]], signer: str):
        own = [(f"q{name}", value) for name, value in own]
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in own)
        plain = f"https://host/a.tar{'?' if own else ''}{query}"

        assert plain == identity(plain)
        assert plain == identity(f"https://host/a.tar?{query}{'&' if own else ''}{signer.format(3)}")

    @given(WORDS)
    def test_in_a_bucket_every_letter_is_the_name_s(self, name: str):
        assert f"s3://bucket/{name}" == identity(f"s3://bucket/{name}")
        assert (f"s3://bucket/{name}", "") == without_query(f"s3://bucket/{name}")
        assert name.rpartition("/")[2] == base_name(f"s3://bucket/{name}")


class TestSchemes:
    @pytest.mark.parametrize(
        ("url", "scheme"),
        [("a.tar", "file"), ("a:b.tar", "file"), ("-", "stdio"), ("S3://b/a", "s3"), ("webdav+https://h/a", "webdav+https")],
    )
    def test_it_is_what_stands_before_the_slashes(self, url: str, scheme: str):
        assert scheme == scheme_of(url)
        assert (scheme == "file") == is_local(url)

    def test_a_shell_command_is_no_url_but_a_file_of_that_name_is_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "pipe:a.tar").symlink_to("nowhere")

        assert "file" == scheme_of("pipe:a.tar")
        with pytest.raises(UsageError, match="shell command"):
            scheme_of("pipe:curl http://x")


class TestLocalPath:
    @pytest.mark.parametrize(
        ("url", "path"),
        [
            ("file:///a%20b.tar", "/a b.tar"),
            ("FILE://localhost/a.tar", "/a.tar"),
            ("file:a.tar", "a.tar"),
            ("file:/a%20b.tar", "/a%20b.tar"),
            ("file:///%FF", "/\udcff"),
            ("a%20b.tar", "a%20b.tar"),
        ],
    )
    def test_schemes_are_taken_off(self, url: str, path: str):
        assert path == local_path(url)

    def test_a_file_of_that_very_name_is_meant(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "file:a.tar").touch()

        assert "file:a.tar" == local_path("file:a.tar")

    def test_the_home_folder_has_its_sign(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("HOME", "/home/x")

        assert "/home/x/a.tar" == local_path("~/a.tar")
        assert "a~/b" == local_path("a~/b")

    @pytest.mark.parametrize("url", ["file://other/a.tar", "a\0b.tar"])
    def test_what_is_no_path_here_is_refused(self, url: str):
        with pytest.raises(UsageError):
            local_path(url)
