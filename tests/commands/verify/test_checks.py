"""How one shard or one TFRecord file is looked at: records, payloads, features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tarviz.commands.verify import verify
from tarviz.formats import example, tfrecord
from tests.conftest import DATA, corpus

TARS = DATA / "corpora" / "generated"
TFRECORDS = DATA / "corpora" / "tfrecord"


def codes(found: list[dict[str, Any]]) -> list[str]:
    return [each["code"] for each in found]


class TestTheTFRecordsOfTheCorpus:
    @pytest.mark.parametrize(("path", "entry"), corpus("tfrecord"))
    def test_behave_as_the_manifest_says(self, path: Path, entry: dict[str, Any]):
        expected = entry["tarviz_expected"]

        result = verify(str(path))

        if "error" in expected:
            assert expected["error"] in codes(result.faults)
            assert expected.get("offset", result.faults[0].get("offset")) == result.faults[0].get("offset")
            assert expected.get("records_before", 0) <= result.records
        else:
            assert [] == result.faults
            assert expected["records"] == result.records

    def test_goes_on_behind_a_payload_that_does_not_fit_its_crc(self):
        result = verify(str(TFRECORDS / "bad-data-crc-rec2.tfrecord"))

        assert 4 == result.records
        assert 243 == result.faults[0]["resumable_at"]

    def test_examples_are_parsed_on_request(self):
        path = str(TFRECORDS / "not-an-example.tfrecord")

        assert [] == verify(path).faults
        assert ["E_BAD_EXAMPLE"] == codes(verify(path, examples=True).faults)

    def test_features_are_held_against_the_types_given(self):
        result = verify(str(TFRECORDS / "example-wrong-type.tfrecord"), examples={"id": "int64"})

        assert ["E_SCHEMA"] == codes(result.faults)
        assert "id" == result.faults[0]["member"]

    def test_a_tfrecord_is_known_by_its_content_where_the_name_says_nothing(self, tmp_path: Path):
        path = tmp_path / "part-00000-of-00001"
        path.write_bytes((TFRECORDS / "valid-5.tfrecord").read_bytes())

        assert (5, 0) == (verify(str(path)).records, verify(str(path)).exit_code)

    def test_the_format_can_be_given(self):
        result = verify(str(TARS / "A01-ustar.tar"), format="tfrecord")

        assert ["E_NOT_TFRECORD"] == codes(result.faults)


class TestExamples:
    def test_features_that_differ_from_those_of_the_first_record_are_named(self, tmp_path: Path):
        path = tmp_path / "x.tfrecord"
        records = [{"a": 1, "b": [0.5]}, {"a": 2}, {"a": b"x"}]
        path.write_bytes(b"".join(tfrecord.frame([*(example.encode(each) for each in records), b"\x12\0"]).buffers()))
        found = verify(path, examples=True)

        assert [("E_SCHEMA", 2, "a"), ("E_BAD_EXAMPLE", 3, None)] == [
            (each["code"], each["records_before"], each.get("member")) for each in found.faults
        ]
        assert "the feature 'a' holds bytes, not int64." == found.faults[0]["message"]
        assert (4, path.stat().st_size) == (found.records, found.bytes)
        assert [0] == [each["records_before"] for each in verify(path, examples={"b": "int64"}).faults][:1]
