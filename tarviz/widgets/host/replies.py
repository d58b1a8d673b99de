"""What a page asks its server for over HTTP, and the replies: the same for the stand-alone page and inside a Jupyter server."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tarviz.model.errors import TarvizError, UsageError
from tarviz.model.types import Buffer
from tarviz.widgets.host import assets
from tarviz.widgets.host.rpc import MAX_FRAME, Controller, Media, answer, error_message, pack, session_of, unpack

log = logging.getLogger(__name__)

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'"
)
"""The policy of every reply; who may frame it is its server's to say."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PLAYED = re.compile(r"(audio|video)/[\w.+-]+")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_PART = 1 << 20

_PAGE = """<!doctype html>
<html lang="en" data-tarviz-page>
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="widget.css">
<script type="module" src="page.mjs"></script>
</head>
<body><main id="tarviz"></main><noscript>This page draws its shards with JavaScript, which is switched off.</noscript></body>
</html>
"""
_START = """const place = document.getElementById("tarviz");
try {
  const [{ pageModel, mount }, { default: widget }] = await Promise.all([import("./host.mjs"), import("./widget.mjs")]);
  mount(widget, await pageModel(), place);
} catch (error) {
  const text = document.createElement("p");
  text.className = "tvz-page-error";
  text.setAttribute("role", "alert");
  text.textContent = `This page could not be drawn. ${error.message}`;
  place.replaceChildren(text);
}
"""


@dataclass(frozen=True, slots=True)
class Reply:
    """`length` bytes in pieces, each read when it is its turn. Where fewer come, a shard shrank: the connection has to end."""

    mime: str
    length: int
    pieces: Iterable[Buffer]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def sentence(status: int, text: str) -> Reply:
    """A sentence.

    >>> sentence(404, "There is nothing here.").length
    22
    """
    return _whole(text, "text/plain; charset=utf-8", status)


def _whole(body: str | bytes, mime: str, status: int = 200) -> Reply:
    payload = body.encode() if isinstance(body, str) else body
    return Reply(mime, len(payload), [payload], status)


def answer_get(controller: Controller, place: str, *, title: str, session: str = "", span: str = "") -> Reply:
    """The reply to a GET of `place`, a path below the page's own (`""` is the page); `span` is its Range header. Never raises."""
    try:
        return _answer_get(controller, place, title, session, span)
    except Exception as error:  # the rim: the page says what happened, and so does the log
        found = error_message(error)
        text = " ".join(filter(None, (f"{found['code']}: {found['msg']}", found["hint"])))
        log.error("%s", text, exc_info=None if isinstance(error, TarvizError) else error)
        return sentence(500, text)


def _answer_get(controller: Controller, place: str, title: str, session: str, span: str) -> Reply:
    match place:
        case "":
            return _whole(_PAGE.format(title=html.escape(title)), "text/html; charset=utf-8")
        case "page.mjs":
            return _whole(_START, "text/javascript; charset=utf-8")
        case "host.mjs":
            return _whole(assets.read("host.mjs"), "text/javascript; charset=utf-8")
        case "widget.mjs":
            return _whole(assets.module(controller.script), "text/javascript; charset=utf-8")
        case "widget.css":
            return _whole(assets.style(controller.script), "text/css; charset=utf-8")
        case "state":
            first, pictures = controller.first(session[:64])
            return _frame({"_first": first, "_state": {}}, pictures)
        case path if path.startswith("m/"):
            return _media(controller, path[2:], span)
    return sentence(404, "There is nothing here.")


def answer_post(controller: Controller, frame: bytes) -> Reply:
    """The reply to a POST of a frame to `rpc`: the answer to a request, or that a page's state is remembered. Never raises."""
    if len(frame) > MAX_FRAME:
        return sentence(413, "Too long.")
    try:
        request, _ = unpack(frame)
    except UsageError as error:
        return sentence(400, error.message)
    if request.get("k") == "tvz:state" and isinstance(request.get("state"), dict):
        controller.remember(request["state"], session_of(request))
        return _frame({"k": "tvz:ok"})
    return _frame(*answer(controller, request))


def _frame(message: Mapping[str, object], buffers: Iterable[Buffer] = ()) -> Reply:
    return _whole(pack(message, list(buffers)), "application/octet-stream")


def _media(controller: Controller, path: str, span: str) -> Reply:
    """A payload, whole or the one range requested (RFC 9110 §14)."""
    try:
        media = controller.media(path)
    except TarvizError as error:
        return sentence(404, str(error))
    if media is None:
        return sentence(404, "There is no such field.")
    begin, end, status = 0, media.size, 200
    found = _RANGE.fullmatch(span.strip())
    if found and (found[1] or found[2]):
        begin = int(found[1]) if found[1] else max(0, media.size - int(found[2]))
        end = min(int(found[2]) + 1, media.size) if found[1] and found[2] else media.size
        status = 206
        if begin >= end:
            return Reply("text/plain", 0, (), 416, {"Content-Range": f"bytes */{media.size}"})
    played = _PLAYED.fullmatch(media.mime) is not None
    headers = {"Accept-Ranges": "bytes", **({} if played else {"Content-Disposition": "attachment"})}
    if status == 206:
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{media.size}"
    return Reply(media.mime if played else "application/octet-stream", end - begin, _pieces(media, begin, end), status, headers)


def _pieces(media: Media, begin: int, end: int) -> Iterator[Buffer]:
    while begin < end and (piece := media.read(begin, min(_PART, end - begin))):
        yield piece
        begin += len(piece)
