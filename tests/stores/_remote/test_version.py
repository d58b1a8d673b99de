"""Which version of an object an answer is of, and how to ask for no other one."""

from __future__ import annotations

import pytest
import urllib3

from tarviz.stores._remote.version import Version, total_of
from tests.conftest import each_case

DATE = "Tue, 01 Jan 2030 00:00:00 GMT"


def of(**headers):
    return Version.of(urllib3.HTTPHeaderDict({name.replace("_", "-"): value for name, value in headers.items()}))


class TestToken:
    @each_case(
        ("headers", "condition"),
        [
            ({"ETag": '"x"', "Last_Modified": DATE}, {"If-Match": '"x"'}),
            ({"ETag": 'W/"x"', "Last_Modified": DATE}, {}),
            ({"Last_Modified": DATE}, {"If-Unmodified-Since": DATE}),
            ({"ais_checksum_type": "md5", "ais_checksum_value": "ff", "ais_version": "2"}, {}),
            ({}, {}),
        ],
    )
    def test_a_version_is_the_same_out_of_its_token(self, headers, condition):
        version = of(**headers)
        token = version.token(100)

        assert condition == version.condition()
        if token is None:
            assert not version.known
            return
        again, size = Version.of_token(token)
        assert condition == again.condition()
        assert again.is_same(version)
        assert (100 if "ETag" not in headers and "Last_Modified" in headers else None) == size

    def test_other_dates_and_sizes_are_other_tokens(self):
        later = DATE.replace("2030", "2031")

        assert 3 == len({of(Last_Modified=DATE).token(1), of(Last_Modified=DATE).token(2), of(Last_Modified=later).token(1)})


class TestSame:
    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ({"ETag": '"x"'}, {"ETag": 'W/"x"'}, True),
            ({"ETag": '"x"'}, {"ETag": '"y"'}, False),
            ({"ETag": '"x"', "Last_Modified": DATE}, {"ETag": '"y"', "Last_Modified": DATE}, False),
            ({"ETag": '"x"', "Last_Modified": DATE}, {"Last_Modified": DATE}, True),
            ({"ETag": '"x"'}, {}, False),
            ({}, {}, False),
        ],
    )
    def test_by_what_both_tell(self, one, other, same):
        assert same == of(**one).is_same(of(**other)) == of(**other).is_same(of(**one))

    def test_a_body_coded_on_the_way_has_no_known_version(self):
        assert not of(ETag='"x"', Content_Encoding="gzip").known
        assert of(ETag='"x"', Content_Encoding="identity").known

    def test_googles_number_tells_more_than_an_etag(self):
        first = of(x_goog_generation="7", ETag='"x"', Last_Modified=DATE)

        assert first.is_same(of(x_goog_generation="7", ETag='"y"'))
        assert not first.is_same(of(x_goog_generation="8", ETag='"x"', Last_Modified=DATE))
        assert first.is_same(of(ETag='"x"'))

    def test_a_cluster_s_version_is_its_checksum_and_number(self):
        headers = {"ais_checksum_type": "md5", "ais_checksum_value": "ff"}

        assert "ais md5 ff 2" == of(**headers, ais_version="2").token(None)
        assert "ais md5 ff" == of(**headers).token(None)
        assert '"x"' == of(**headers, ETag='"x"').token(None)


class TestGeneration:
    NAMED = of(x_goog_generation="7", ETag='"x"', Last_Modified=DATE)

    def test_it_is_all_that_names_the_version(self):
        token = self.NAMED.token(100)
        again, size = Version.of_token(token)

        assert ("generation 7", None, ("generation", "7")) == (token, size, again.pin)
        assert again.known
        assert again.is_same(self.NAMED)
        assert {} == self.NAMED.condition() == again.condition() == of(x_goog_generation="7", Last_Modified=DATE).condition()

    def test_it_is_described_with_date_and_size(self):
        found, size = Version.of_description({"generation": 7, "size": "100", "updated": "2030-01-01T00:00:00Z"})

        assert (Version(None, DATE, pin=("generation", "7")), 100, 1893456000.0) == (found, size, found.mtime)
        assert (Version(pin=("generation", "7")), 1) == Version.of_description({"generation": "7", "size": 1})

    @each_case("found", [[], {"generation": 7}, {"size": 1}, {"generation": 7, "size": "many"}])
    def test_anything_else_is_no_description(self, found):
        with pytest.raises(ValueError, match=r"no description|invalid literal"):
            Version.of_description(found)


@each_case(
    ("version", "words"),
    [
        (of(x_goog_generation="7", ETag='"x"'), "generation 7"),
        (of(ETag='W/"x"', Last_Modified=DATE), 'ETag W/"x"'),
        (of(ais_checksum_type="md5", ais_checksum_value="ff", ais_version="2"), "ais md5 ff 2"),
        (of(Last_Modified=DATE), f"Last-Modified {DATE}"),
        (of(), "no ETag"),
    ],
)
def test_people_are_told_what_names_it(version, words):
    assert words == str(version)


def test_a_token_may_lack_the_size():
    assert (Version(None, DATE), None) == Version.of_token(of(Last_Modified=DATE).token(None))
    assert f"modified {DATE}; 0" == of(Last_Modified=DATE).token(0)


class TestPin:
    @pytest.mark.parametrize(
        ("header", "name"), [("x-amz-version-id", "versionId"), ("x-goog-generation", "generation"), ("x-ms-version-id", "versionid")]
    )
    def test_a_bucket_that_keeps_old_versions_is_asked_for_this_one(self, header, name):
        assert (name, "7") == of(**{header: "7"}).pin
        assert of(**{header: "null"}).pin is None


@each_case(("header", "total"), [("bytes 0-9/100", 100), ("bytes */5", 5), ("bytes 0-9/*", None), ("0-9/100", None), ("", None)])
def test_the_size_of_the_whole_is_in_content_range(header, total):
    assert total == total_of(urllib3.HTTPResponse(b"", headers={"Content-Range": header}))
