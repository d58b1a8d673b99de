"""The features of a `tf.train.Example` as the fields of a record, and back: Examples equal as messages.

A feature `image/object/bbox/xmin` is the field `image.object.bbox.xmin.npy`: `/` is a dot, any character that is no lower-case
letter, digit, `_` or `-` is `%` and two hexadecimal digits of its UTF-8, and the last part says what the payload is. A feature that is
named like a kind of payload already (`jpg`, `cls`, `txt`) keeps its name. The field `features.json` says which fields are features.

| feature | payload | last part |
|---|---|---|
| one bytes value | the value | `jpg png gif webp bmp tif` by its first bytes, `txt` where it is text, else `bin` |
| one integer, in a feature that has one in each record | decimal | `cls` |
| integers, floats | a one-dimensional array of int64, float32 | `npy` |
| bytes values, in a feature that may have several | a list of texts, `{"base64": …}` for one that is no UTF-8 | `json` |
| no list at all | `null` | `json` |
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from tarviz.formats import npy
from tarviz.formats.features import INTEGER_FIELDS, KEY, Kind, check_kinds, example, feature, field_feature, name_of, order, parse_integer
from tarviz.model.errors import DataError, TarvizError

MARK = "features.json"
_PLAIN = re.compile(r"jpe?g|png|gif|webp|bmp|tiff?|txt|text|json|npy|bin|wav|flac|mp[34]|pth?|pyd|pickle|pkl|ten|tb")
_PICTURES = ((b"\xff\xd8\xff", "jpg"), (b"\x89PNG\r\n\x1a\n", "png"), (b"GIF87a", "gif"), (b"GIF89a", "gif"), (b"BM", "bmp"))
_TIFF = (b"II*\0", b"MM\0*")
_ODD = re.compile(rb"[^a-z0-9_-]")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
Features = Mapping[str, tuple[Kind | None, list[Any]]]


def lists_in(examples: Iterable[Features]) -> set[str]:
    """The features that hold another number of values than one in some of these Examples.

    >>> sorted(lists_in([{"a": ("int64", [1]), "b": ("int64", [1])}, {"a": ("int64", [2]), "b": ("int64", [])}]))
    ['b']
    """
    return {name for features in examples for name, (_, values) in features.items() if len(values) != 1}


def fields(features: Features | None, lists: Collection[str] = (), *, key: str | None = None) -> dict[str, bytes]:
    """The fields that hold these features (None: an Example of no bytes); `lists` names features that stay lists with one value.

    `key`: the record's, when it is what the feature `__key__` holds, which then has no field of its own.

    >>> list(fields({"image/encoded": ("bytes", [b"GIF89a"]), "image/object/label": ("int64", [3, 1]), "cls": ("int64", [7])}))
    ['cls', 'image.encoded.gif', 'image.object.label.npy', 'features.json']
    """
    made: dict[str, bytes] = {}
    names: dict[str, str] = {}
    for name, (kind, values) in sorted((features or {}).items()):
        if name == KEY and key is not None and values == [key.encode()]:
            names[KEY] = KEY
            continue
        ext, payload = _field(name, kind, values, name not in lists)
        made[ext], names[ext] = payload, name
    made[MARK] = json.dumps(names if features is not None else None, ensure_ascii=False, separators=(",", ":")).encode()
    return made


def _field(name: str, kind: Kind | None, values: list[Any], single: bool) -> tuple[str, bytes]:
    single = single and len(values) == 1
    if single and kind == "bytes":
        payload = bytes(values[0])
        return name if _PLAIN.fullmatch(name) else f"{_escape(name)}.{_ending(payload)}", payload
    if single and kind == "int64":
        return name if name in INTEGER_FIELDS else f"{_escape(name)}.cls", b"%d" % values[0]
    if kind in ("int64", "float"):
        file = io.BytesIO()
        np.save(file, np.array(values, "<i8" if kind == "int64" else "<f4"))
        return f"{_escape(name)}.npy", file.getvalue()
    content = None if kind is None else [json_text(value) for value in values]
    ext = f"{_escape(name)}.json"
    return "%66eatures.json" if ext == MARK else ext, json.dumps(content, ensure_ascii=False).encode()


def _escape(name: str) -> str:
    return ".".join(_ODD.sub(lambda found: b"%%%02x" % found[0][0], part.encode()).decode() for part in name.split("/"))


def _ending(data: bytes) -> str:
    """What one value is, by its bytes."""
    for magic, ending in _PICTURES:
        if data.startswith(magic) and (ending != "bmp" or data[6:10] == bytes(4)):
            return ending
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "webp"
    if data.startswith(_TIFF):
        return "tif"
    if _CONTROL.search(data):
        return "bin"
    return "txt" if isinstance(json_text(data), str) else "bin"


def json_text(value: bytes) -> str | dict[str, str]:
    """Bytes as JSON has them: a text, or an object that holds their base64."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def restore(record: Mapping[str, Any], types: Mapping[str, str] | None = None, *, key: bool = True) -> bytes:
    """The serialised Example of a record that has the field `features.json`.

    Fields that it names are features of their first name, whatever their payload is now; others are features as in `example.encode`.
    `types` names kinds by feature. `DataError` `E_DECODE` where the field, or one that it names, is not what it was.

    >>> from tarviz.formats.example import decode
    >>> decode(restore(fields({"a/b": ("int64", [1, 2]), "A": ("bytes", [b"x"])})))
    {'A': [b'x'], 'a/b': [1, 2]}
    """
    found = _names(record[MARK])
    names = found or {}
    check_kinds(types or {})
    entries: dict[str, bytes] = {}
    for ext, value in record.items():
        if ext in (MARK, KEY, "__shard__", "__index__"):
            continue
        name = names.get(ext, ext)
        try:
            entries[name] = _feature(name, ext, value, types) if ext in names else field_feature(name, value, types)
        except TarvizError as error:
            raise error.at(member=ext) from None
    if key and KEY in names:
        entries[KEY] = feature("bytes", (str(record[KEY]).encode("utf-8", "surrogateescape"),))
    if found is None and not entries:
        return b""
    return example((name_of(name), entries[name]) for name in sorted(entries, key=order))


def _names(data: Any) -> dict[str, str] | None:
    names = _parse(bytes(data)) if isinstance(data, bytes | bytearray | memoryview) else data
    if names is not None and not (isinstance(names, dict) and all(isinstance(name, str) for name in names.values())):
        text = "it does not say which fields are features."
        raise DataError(text, code="E_DECODE", member=MARK, hint=f"Leave it out (cat --drop {MARK}): fields are then features as they are.")
    return names


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the JSON of a feature cannot be read: {error}.", code="E_DECODE") from error


def _feature(name: str, ext: str, value: Any, types: Mapping[str, str] | None) -> bytes:
    """The serialised feature of a field that was one."""
    if not isinstance(value, bytes | bytearray | memoryview):
        return field_feature(name, value, types)
    ending = ext.rpartition(".")[2] if "." in ext else "cls" if ext in INTEGER_FIELDS else ""
    if ending == "cls":
        return field_feature(name, parse_integer(bytes(value), ext), types)
    if ending == "npy":
        return field_feature(name, npy.array_of(value), types)
    if ending != "json":
        return feature("bytes", (bytes(value),))
    content = _parse(bytes(value))
    if content is None:
        return b""
    if isinstance(content, list) and all(
        isinstance(each, str) or (isinstance(each, dict) and each.keys() == {"base64"}) for each in content
    ):
        return feature("bytes", [each.encode() if isinstance(each, str) else _from_base64(each["base64"]) for each in content])
    return field_feature(name, content, types)


def _from_base64(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise DataError(f"the base64 of a value cannot be read: {error}.", code="E_DECODE") from error
