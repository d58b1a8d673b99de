"""Croissant's metadata of shards: all of it, for a few fields."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tarviz.model.types import URL
from tarviz.tools import croissant
from tarviz.tools.croissant import ShardFile, metadata, type_of


def test_a_shard_is_named_with_its_size_and_its_sum(tmp_path: Path):
    data = bytes(range(256)) * 5000  # more than is read at a time
    (tmp_path / "a.tar").write_bytes(data)

    assert ShardFile("in/a.tar", 1_280_000, hashlib.sha256(data).hexdigest()) == ShardFile.of(URL(str(tmp_path / "a.tar")), "in/a.tar")


def test_the_kind_of_a_field():
    for ext, kind in [
        ("jpg", "sc:ImageObject"),
        ("wav", "sc:AudioObject"),
        ("mp4", "sc:VideoObject"),
        ("cls", "sc:Integer"),
        ("json", "sc:Text"),
        ("bin", "sc:Text"),
    ]:
        assert kind == type_of(ext) == type_of(f"seg.{ext}")


def record_set(ext: str, kind: str, regex: str) -> dict[str, object]:
    files = {"fileSet": {"@id": f"{ext}-files"}}
    return {
        "@type": "cr:RecordSet",
        "@id": ext,
        "name": ext,
        "key": {"@id": f"{ext}/key"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{ext}/key",
                "name": "key",
                "description": "The same in all fields of a record.",
                "dataType": "sc:Text",
                "source": {**files, "extract": {"fileProperty": "fullpath"}, "transform": {"regex": regex}},
            },
            {
                "@type": "cr:Field",
                "@id": f"{ext}/content",
                "name": "content",
                "description": f"What the record's .{ext} holds.",
                "dataType": kind,
                "source": {**files, "extract": {"fileProperty": "content"}},
            },
        ],
    }


def test_the_whole_metadata():
    made = metadata(
        "digits", "Two shards.", [ShardFile("a.tar", 512, "aa"), ShardFile("b.tar", 1024, "bb")], ["png", "seg.png", "cls", "json"]
    )

    held = [{"@id": "a.tar"}, {"@id": "b.tar"}]
    assert {
        "@context": croissant._CONTEXT,
        "@type": "sc:Dataset",
        "name": "digits",
        "description": "Two shards.",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "distribution": [
            *(
                {
                    "@type": "cr:FileObject",
                    "@id": name,
                    "name": name,
                    "contentUrl": name,
                    "contentSize": size,
                    "encodingFormat": "application/x-tar",
                    "sha256": digest,
                }
                for name, size, digest in (("a.tar", "512 B", "aa"), ("b.tar", "1024 B", "bb"))
            ),
            *(
                {
                    "@type": "cr:FileSet",
                    "@id": f"{ext}-files",
                    "name": f"{ext}-files",
                    "containedIn": held,
                    "encodingFormat": kind,
                    "includes": [f"*.{ext}", f"*.{ext.upper()}"],
                    **more,
                }
                for ext, kind, more in (
                    ("png", "image/png", {"excludes": ["*.seg.png", "*.SEG.PNG"]}),
                    ("seg.png", "image/png", {}),
                    ("cls", "text/plain", {}),
                    ("json", "application/json", {}),
                )
            ),
        ],
        "recordSet": [
            record_set("png", "sc:ImageObject", r"^(.*)\.(?:png|PNG)$"),
            record_set("seg.png", "sc:ImageObject", r"^(.*)\.(?:seg\.png|SEG\.PNG)$"),
            record_set("cls", "sc:Integer", r"^(.*)\.(?:cls|CLS)$"),
            record_set("json", "sc:Text", r"^(.*)\.(?:json|JSON)$"),
        ],
    } == made


def test_a_class_is_plain_text_whatever_the_machine_takes_its_ending_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(croissant.mimetypes, "guess_type", lambda name: ("text/x-tex", None))
    (fileset,) = metadata("d", "", [], ["cls"])["distribution"]

    assert "text/plain" == fileset["encodingFormat"]


def test_an_extension_without_letters_has_one_case():
    (fileset,) = metadata("d", "", [], ["001"])["distribution"]

    assert (["*.001"], "application/octet-stream") == (fileset["includes"], fileset["encodingFormat"])
    assert ("cr:field", "cr:transform") == (croissant._CONTEXT["field"], croissant._CONTEXT["transform"])
