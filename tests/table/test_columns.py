"""Which columns every kind of field can have, and what has to be read for each."""

from __future__ import annotations

from tarviz.table import columns

FIELDS = ["jpg", "seg.tiff.gz", "txt", "json.gz", "cls", "wav", "npy", "safetensors", "bin", "png.gz"]
PARTS = """
key shard n size: names
jpg.size: names; jpg.width jpg.height jpg.mode: head
jpg.checksum jpg.decodable jpg.mean jpg.phash: content; jpg.brightness jpg.sharpness: quality
seg.tiff.gz.size: names; seg.tiff.gz.checksum: content
txt.size: names; txt: value; txt.checksum: content; txt.length: quality
json.gz.size: names; json.gz json.gz.bad: value; json.gz.checksum: content
cls.size: names; cls: value; cls.checksum: content
wav.size: names; wav.duration wav.rate: head; wav.checksum: content
npy.size: names; npy.dtype npy.shape: head; npy.checksum: content; npy.vector: vector
safetensors.size: names; safetensors.checksum: content; safetensors.vector: vector
bin.size: names; bin.checksum: content
png.gz.size: names; png.gz.checksum: content
"""


def test_fields_have_the_columns_of_their_kind_in_this_order():
    expected = []
    for group in PARTS.replace("\n", ";").split(";"):
        names, _, tier = group.strip().partition(": ")
        expected += [(name, tier) for name in names.split()]

    assert expected == [(name, part.tier) for name, part in columns.of_fields(FIELDS).items()]
    assert {"", *FIELDS} == {part.ext for part in columns.of_fields(FIELDS).values()}


def test_columns_that_keep_documents_and_small_pictures_are_seen_by_no_question():
    assert [True, True, False] == [columns.is_hidden(name) for name in (columns.text_of("json"), columns.small_of("jpg"), "text")]
