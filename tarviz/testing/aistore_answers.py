"""What an AIStore is asked and what it answers: places of objects, pages of listings, members out of tars, the parts of a GetBatch."""

from __future__ import annotations

import hashlib
import io
import json
import re
import secrets
import tarfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_ARCHIVES, _FLAT, _NO_FOLDERS = 1 << 3, 1 << 11, 1 << 13  # bits of `flags` of a listing
_MATCHES: dict[str, Callable[[str, str], bool]] = {
    "regexp": lambda name, text: re.search(text, name) is not None,
    "prefix": lambda name, text: name.startswith(text),
    "suffix": lambda name, text: name.endswith(text),
    "substr": lambda name, text: text in name,
    "wdskey": lambda name, text: (
        re.split(r"\.", name.rpartition("/")[2], maxsplit=1)[0] == text.rpartition("/")[2]
        and name.rpartition("/")[0] == text.rpartition("/")[0]
    ),
}


class Problem(Exception):  # noqa: N818  (an answer)
    """What is wrong with a request: the status, the words and the code of the answer, and headers."""

    def __init__(self, status: int, message: str, tcode: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.tcode = tcode
        self.headers = dict(headers or {})


@dataclass
class AisObject:
    """Bytes and what AIStore keeps with them.

    `present`: the cluster holds a copy; an object of a remote bucket that it does not hold yet comes whole, whatever range is asked for.
    `chunked`: it was put in parts, and is kept so: the cluster lists no members of it. `readers`: answers with it that are on their way.
    """

    data: bytes
    version: int = 1
    present: bool = True
    chunked: bool = False
    readers: int = 0

    @property
    def headers(self) -> dict[str, str]:
        import google_crc32c

        value = google_crc32c.Checksum(self.data).hexdigest().decode()
        return {"ais-checksum-type": "crc32c", "ais-checksum-value": value, "ais-version": str(self.version), "ais-atime": "1700000000"}


@dataclass
class Fail:
    """How a target answers the next `times` requests for objects: with `status`, or cut after `cut` bytes of the body.

    With a `tcode` it is the proxy that so answers whatever it is asked.
    """

    times: int = 1
    status: int = 0
    cut: int | None = None
    tcode: str = ""


@dataclass
class Call:
    """A request, parted."""

    method: str
    kind: str
    bucket: str
    name: str
    query: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def message(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.body or b"{}")
        except ValueError as error:
            raise Problem(400, f"failed to unmarshal: {error}") from error
        return found


def place_of(bucket: str, name: str, targets: int, gone: Collection[int] = ()) -> int:
    """Which of the targets has an object: another one only for what was on one that is `gone`, or is the newest one's.

    >>> place_of("data", "a.tar", 2), place_of("data", "c.tar", 2), place_of("data", "a.tar", 2, {0})
    (0, 1, 1)
    """
    left = (at for at in range(targets) if at not in gone)
    return max(left, key=lambda at: hashlib.sha256(f"{at}/{bucket}/{name}".encode("utf-8", "surrogateescape")).digest())


def listing(objects: Mapping[str, AisObject], value: Mapping[str, Any], page_size: int) -> bytes:
    """One page of a bucket's objects, as MessagePack. `value` is what the request asks for."""
    import msgspec

    prefix, after = value.get("prefix") or "", value.get("continuation_token") or ""
    rows = _rows({name: kept for name, kept in objects.items() if name.startswith(prefix)}, prefix, int(value.get("flags") or 0))
    order = [name for name in sorted(rows) if name > after]
    size = min(int(value.get("pagesize") or page_size), page_size)
    page: dict[str, Any] = {"UUID": value.get("uuid") or secrets.token_hex(4), "Flags": 0}
    page["ContinuationToken"] = order[size - 1] if len(order) > size else ""
    page["Entries"] = [rows[name] for name in order[:size]] or None
    encoded: bytes = msgspec.msgpack.encode(page)
    return encoded


def _rows(there: Mapping[str, AisObject], prefix: str, flags: int) -> dict[str, dict[str, Any]]:
    """The entries of a listing by name: objects, what lies in those that are archives, and folders, as the flags ask."""
    rows: dict[str, dict[str, Any]] = {name: {"n": name, "s": len(kept.data), "v": str(kept.version)} for name, kept in there.items()}
    if flags & _ARCHIVES:
        inside = [(f"{name}/{inner}", size) for name, kept in there.items() if not kept.chunked for inner, size in names(kept.data)]
        rows |= {name: {"n": name, "s": size} for name, size in inside}
    if flags & _FLAT:
        below = {name.removeprefix(prefix).partition("/")[0] for name in rows if "/" in name.removeprefix(prefix)}
        rows = {name: row for name, row in rows.items() if "/" not in name.removeprefix(prefix)}
        if not flags & _NO_FOLDERS:
            rows |= {f"{prefix}{name}/": {"n": f"{prefix}{name}/", "f": 1 << 6} for name in below}
    return rows


def names(data: bytes) -> list[tuple[str, int]]:
    """Name and size of every file in a tar; none where the bytes are not one."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            return [(each.name, each.size) for each in tar if each.isfile()]
    except tarfile.TarError:
        return []


def member(data: bytes, name: str) -> bytes | None:
    """The bytes of one file of a tar."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            file = tar.extractfile(name)
            return None if file is None else file.read()
    except (tarfile.TarError, KeyError):
        return None


def chosen(data: bytes, mode: str, text: str) -> bytes:
    """A tar of the files whose names match."""
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar, tarfile.open(fileobj=made, mode="w") as new:
        for each in tar:
            if each.isfile() and _MATCHES[mode](each.name, text):
                new.addfile(each, tar.extractfile(each))
    return made.getvalue()


def batch(rows: Iterable[tuple[str, dict[str, Any], bytes | None]], *, names_only: bool, streamed: bool) -> tuple[bytes, str]:
    """Body and content type of the answer to a GetBatch: a tar in the order asked, what is missing below `__404__/`."""
    made, told = io.BytesIO(), []
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for bucket, item, data in rows:
            name = "/".join(filter(None, ("" if names_only else bucket, item["objname"], item.get("archpath", ""))))
            info = tarfile.TarInfo(name if data is not None else f"__404__/{name}")
            info.size = len(data or b"")
            tar.addfile(info, io.BytesIO(data or b""))
            row: dict[str, Any] = {key: item[key] for key in ("objname", "archpath", "opaque") if key in item}
            row |= {"bucket": bucket, "provider": item.get("provider", "ais"), "size": info.size}
            told.append(row if data is not None else {**row, "err_msg": f'"ais://{bucket}/{item["objname"]}" does not exist'})
    if streamed:
        return made.getvalue(), "application/x-tar"
    mark = secrets.token_hex(16)
    head = json.dumps({"uuid": mark[:8], "out": told}).encode()
    parts = [("application/json", head), ("application/octet-stream", made.getvalue())]
    body = b"".join(b"--%b\r\nContent-Type: %b\r\n\r\n%b\r\n" % (mark.encode(), kind.encode(), part) for kind, part in parts)
    return body + f"--{mark}--\r\n".encode(), f"multipart/mixed; boundary={mark}"
