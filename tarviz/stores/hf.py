"""`hf://datasets/ORG/NAME@REVISION/name`: files of the Hugging Face hub (`hf://ORG/NAME/…`: of a model, `hf://buckets/…`: of a bucket).

What is written goes up by the hub's own library (extra `hf`) once all of the file is there: one commit a file, and none in a bucket.
Environment: `HF_TOKEN`, or the login that the hub's own tools keep (`HF_TOKEN_PATH`, `HF_HOME`), opens what is
private; `HF_ENDPOINT` names another hub. Without `@REVISION` it is `main`; buckets have no revisions.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from tarviz.model.errors import MissingPackageError, NotFoundError, StoreError, TarvizError, UsageError, require
from tarviz.model.types import URL, Buffer
from tarviz.stores._remote.access import REFUSED, Access
from tarviz.stores._remote.buckets import path, refuse_dots, with_query
from tarviz.stores._remote.reader import RemoteStore
from tarviz.stores._remote.wire import read_whole
from tarviz.stores.base import OneSink, Sink, Stat, errors_as, refuse_taken

_KINDS = "datasets|spaces|models|kernels|buckets"
_URL = re.compile(rf"hf://(?:({_KINDS})/)?(?!(?:{_KINDS})/)([^/@]+/[^/@]+)(?:@(refs/(?:convert|pr)/[^/]+|[^/]+))?(?:/(.*))?", re.DOTALL)
_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')
_STATUS = re.compile(r"\bHTTP status \w+ error \((\d{3})\b")  # as hf_xet tells it
_PAGE_LIMIT = 64 << 20


class _Repository:
    """The parts of a URL."""

    def __init__(self, url: URL) -> None:
        match = _URL.fullmatch(url)
        if match is None:
            raise UsageError("the URL names no repository.", shard=url, hint="Write hf://datasets/ORG/NAME/name.tar.")
        refuse_dots(url)
        self.kind = match[1] or "models"
        if self.kind == "buckets" and match[3]:
            raise UsageError("a bucket keeps no revisions.", shard=url, hint=f"Leave out @{match[3]}.")
        self.id = match[2]
        self.revision = match[3] or ("" if self.kind == "buckets" else "main")
        self.name = match[4] or ""
        self.base = url[: len(url) - len(self.name)] if self.name else f"{url.rstrip('/')}/"

    @property
    def words(self) -> dict[str, str]:
        """The repository as the hub's library names it."""
        return {"repo_id": self.id, "repo_type": self.kind[:-1], "revision": self.revision}


class _HubAccess(Access):
    """Requests with the user's token to the hub, which redirects them to where the bytes are."""

    HINT_MISSING = "Check organisation, name, revision and file; HF_ENDPOINT names another hub."

    def address(self, url: URL, query: Mapping[str, str]) -> str:
        found, rest = _Repository(url), {name: value for name, value in query.items() if name != "tree"}
        revision, begin = _part(found.revision), "" if found.kind == "models" else f"/{found.kind}"
        if (folder := query.get("tree")) is None:
            return with_query(f"{_endpoint()}{begin}{path(found.id)}/resolve{revision}{path(found.name)}", query)
        return with_query(f"{_endpoint()}/api/{found.kind}{path(found.id)}/tree{revision}{_part(folder)}", rest)

    def headers(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        token = find_token()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def denial_hint(self) -> str:
        if find_token() is None:
            return "Private and gated repositories need a token: run hf auth login, or set HF_TOKEN."
        return "The token may not read this repository: accept its conditions on the hub, or take another HF_TOKEN."


def _part(text: str) -> str:
    """One part of an address, whatever slashes there are in it; none without a text."""
    return text and f"/{quote(text, safe='', errors='surrogateescape')}"


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def find_token() -> str | None:
    """The token that the hub's own tools would use."""
    env = os.environ
    if env.get("HF_OIDC_RESOURCE"):
        found: str | None = require("huggingface_hub", "a hub token by HF_OIDC_RESOURCE", "hf").get_token()
        return found
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        if text := "".join(env.get(name, "").split()):
            return text
    home = env.get("HF_HOME") or os.path.join(env.get("XDG_CACHE_HOME") or Path.home() / ".cache", "huggingface")
    try:
        return "".join(Path(env.get("HF_TOKEN_PATH") or os.path.join(home, "token")).expanduser().read_text("utf-8").split()) or None
    except OSError:
        return None  # nobody has logged in


class HubStore(RemoteStore):
    """Files of repositories, each of one commit."""

    access = _HubAccess

    def _asks_again(self, error: StoreError | NotFoundError) -> bool:
        return True

    def _rows(self, url: URL, folder: str, *, deep: bool = False) -> Iterator[dict[str, Any]]:
        query = {"tree": folder, "recursive": str(deep).lower()}
        while query:
            rows, following = self.persist(url, lambda stall, asked=query: self._tree(url, asked, stall))  # type: ignore[misc]
            yield from rows
            query = {**query, "cursor": following} if following else {}

    def _tree(self, url: URL, query: Mapping[str, str], stall: float) -> tuple[list[dict[str, Any]], str]:
        """A page of a list, and what asks for the next one: it is asked of this hub, whatever server the link names, with the token."""
        answer = self.wire.send("GET", url, {}, stall, query=query, accept=frozenset({200}))
        try:
            rows = json.loads(read_whole(answer, _PAGE_LIMIT))
        except ValueError:
            rows = None
        if not isinstance(rows, list):
            raise StoreError("the hub's list cannot be read.", code="E_READ", shard=url, hint="Check HF_ENDPOINT.")
        link = _NEXT.search(answer.headers.get("Link", ""))
        return rows, dict(parse_qsl(urlsplit(link[1]).query)).get("cursor", "") if link else ""

    def list(self, url: URL) -> Iterator[Stat]:
        found = _Repository(url)
        folder = found.name.strip("/")
        # a bucket shows what only begins with the folder's name, and nothing at all where there is no such folder
        rows = [row for row in self._rows(url, folder) if str(row["path"]).rpartition("/")[0] == folder]
        if folder and not rows:
            raise NotFoundError("the hub has no such folder.", shard=url, hint=_HubAccess.HINT_MISSING)
        return self._stats(found, rows)

    def walk(self, url: URL) -> Iterator[Stat]:
        found = _Repository(url)
        try:
            stats = self._stats(found, self._rows(url, found.name.rpartition("/")[0], deep=True))
        except NotFoundError:  # no such folder
            return iter(())
        return (stat for stat in stats if stat.url.startswith(url))

    def _stats(self, found: _Repository, rows: Iterable[dict[str, Any]]) -> Iterator[Stat]:
        files = sorted((row for row in rows if row.get("type") == "file"), key=lambda row: str(row["path"]))
        return iter([Stat(URL(f"{found.base}{row['path']}"), int(row.get("size") or 0)) for row in files])

    def create(self, url: URL, *, replace: bool = True) -> Sink:
        return _HubSink(self, url, replace)

    def delete(self, url: URL) -> None:
        self.stat(url)
        api, found = _api(url)
        with errors_as(_refusal, url):
            if found.kind == "buckets":
                api.batch_bucket_files(found.id, delete=[found.name])
            else:
                api.delete_file(found.name, **found.words)


class _HubSink(OneSink):
    """A file on this machine until it is committed: the hub is told its checksum before its bytes."""

    def __init__(self, store: HubStore, url: URL, replace: bool) -> None:
        super().__init__(url)
        self._store, self._replace = store, replace
        self._api, self._found = _api(url)
        self._file: Any = tempfile.NamedTemporaryFile(prefix="tarviz-")  # noqa: SIM115 - until complete or discard

    def write(self, data: Buffer, /) -> None:
        self.check_open()
        self._file.write(data)

    def complete(self) -> Stat:
        self._file.flush()
        if not self._replace:
            refuse_taken(self._store, self.url)
        with errors_as(_refusal, self.url), _without_bars(), self._file:
            if self._found.kind == "buckets":
                self._api.batch_bucket_files(self._found.id, add=[(self._file.name, self._found.name)])
            else:
                self._api.upload_file(path_or_fileobj=self._file.name, path_in_repo=self._found.name, **self._found.words)
        return self._store.stat(self.url)

    def discard(self) -> None:
        self._file.close()


def _api(url: URL) -> tuple[Any, _Repository]:
    """The hub's own client, and the file it is to write; what it lacks is said before anything is made."""
    found = _Repository(url)
    if not found.name or found.name.endswith("/"):
        raise UsageError("the URL names no file.", shard=url, hint="Write hf://datasets/ORG/NAME/name.tar.")
    api = require("huggingface_hub", "writing to the hub", "hf").HfApi
    if found.kind == "buckets" and not hasattr(api, "batch_bucket_files"):
        hint = "pip install --upgrade huggingface_hub"
        raise MissingPackageError("the huggingface_hub that is installed knows no buckets.", shard=url, hint=hint)
    if (token := find_token()) is None:
        hint = "Run hf auth login, or set HF_TOKEN to a token that may write."
        raise StoreError("the hub takes files only from somebody it knows.", code="E_AUTH", shard=url, hint=hint)
    return api(endpoint=_endpoint(), token=token), found


@contextmanager
def _without_bars() -> Iterator[None]:
    """The hub's library draws bars over ours, named by our temporary file."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if shown := not are_progress_bars_disabled():
        disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            enable_progress_bars()


def _refusal(error: Exception, url: URL) -> TarvizError | None:
    """An error of the hub's library, or of what it sends a bucket's bytes by, as ours."""
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    if isinstance(error, ImportError):
        return MissingPackageError.of("hf_xet", "writing to a bucket of the hub")
    if not isinstance(error, (OSError, ValueError, RuntimeError, HfHubHTTPError.__mro__[1])):  # the last: any error of its HTTP library
        return None
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        said = error.server_message or "; ".join(each["error"] for each in getattr(error, "failures", ()))
    else:
        said = str(error.__cause__ or error).rstrip(".")
        status = int(found[1]) if (found := _STATUS.search(said)) else 0
    if status == 404 or isinstance(error, RepositoryNotFoundError):
        hint = "Make it first (hf repos create ORG/NAME --type dataset, hf buckets create ORG/NAME), with a token that may write there."
        return NotFoundError("the hub has no such repository or bucket, or not for this token.", shard=url, hint=hint)
    if status:
        code, hint = ("E_AUTH", "Take an HF_TOKEN that may write there.") if status in REFUSED else ("E_WRITE", "Try again.")
        return StoreError(f"the hub refuses the file: {status} {said}.", code=code, shard=url, hint=hint)
    return StoreError(f"the file was not sent: {said}.", shard=url, hint="Check the network; HF_ENDPOINT names another hub.")


store = HubStore
