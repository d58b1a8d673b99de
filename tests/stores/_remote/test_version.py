"""Which version of an object an answer is of, and how to ask for no other one."""

from __future__ import annotations

import pytest
import urllib3

from tarviz.stores._remote.version import Version, total_of

DATE = "Tue, 01 Jan 2030 00:00:00 GMT"


def of(**headers):
    return Version.of(urllib3.HTTPHeaderDict({name.replace("_", "-"): value for name, value in headers.items()}))


class TestToken:
    @pytest.mark.parametrize(
        ("headers", "condition"),
        [
            ({"ETag": '"x"', "Last_Modified": DATE}, {"If-Match": '"x"'}),
            ({"ETag": 'W/"x"', "Last_Modified": DATE}, {}),
            ({"Last_Modified": DATE}, {"If-Unmodified-Since": DATE}),
            ({"ais_checksum_type": "md5", "ais_checksum_value": "ff", "ais_version": "2"}, {}),
            ({}, {}),
        ],
        ids=["etag", "weak", "date", "cluster", "nothing"],
    )
    def test_a_version_is_the_same_out_of_its_token(self, headers, condition):
        version = of(**headers)
        token = version.token(100)

        assert condition == version.condition()
        if token is None:
            assert not version.known
            return
        again, size = Version.named(token)
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


class TestPin:
    @pytest.mark.parametrize(
        ("header", "name"), [("x-amz-version-id", "versionId"), ("x-goog-generation", "generation"), ("x-ms-version-id", "versionid")]
    )
    def test_a_bucket_that_keeps_old_versions_is_asked_for_this_one(self, header, name):
        assert (name, "7") == of(**{header: "7"}).pin
        assert of(**{header: "null"}).pin is None


@pytest.mark.parametrize(
    ("header", "total"), [("bytes 0-9/100", 100), ("bytes */5", 5), ("bytes 0-9/*", None), ("0-9/100", None), ("", None)]
)
def test_the_size_of_the_whole_is_in_content_range(header, total):
    assert total == total_of(urllib3.HTTPResponse(b"", headers={"Content-Range": header}))
