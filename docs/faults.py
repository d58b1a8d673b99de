"""What goes wrong between a store and its reader, what is promised then, and the tests that show it.

A test names the faults that it shows by the mark `fault`: `@pytest.mark.fault("F02", "F16")`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
EVERY_STORE = "test_remote"  # its tests run on each store in turn

FAULTS = {
    "F01": ("nothing", "the same bytes by one request"),
    "F02": ("the connection is cut in the middle of a member", "read on from that byte, of that version (`Range`, `If-Match`)"),
    "F03": ("it is cut just where a record ends", "the same"),
    "F04": ("it is cut between two members of a record", "the same"),
    "F05": ("every attempt is cut at the same byte", "`E_NETWORK` when the time is over, with every attempt and its byte"),
    "F06": ("it is cut again and again, and moves on between", "the same bytes: only attempts without progress count"),
    "F07": ("no length was promised, and it is closed early", "an error: the tar's end is missing"),
    "F08": ("the last chunk of a chunked body is missing", "read on"),
    "F09": ("Content-Length is too long", "`E_LENGTH`, a warning where the tar itself is whole"),
    "F10": ("Content-Length is too short", "`E_LENGTH`"),
    "F11": ("the range sent is not the one asked for, or the total is another", "`E_RANGE`, `E_CHANGED`"),
    "F12": ("no answer comes", "asked again after `stall_timeout`"),
    "F13": ("no byte comes any more", "read on after `stall_timeout`"),
    "F14": ("a byte comes now and then", "read on after a minute below `min_rate`"),
    "F15": ("a server is slow and steady", "left alone"),
    "F16": ("the connection is reset in the body", "read on"),
    "F17": ("it is reset before the answer", "asked again"),
    "F18": ("connections are refused, later taken", "asked again, for a second and a half where no server ever was"),
    "F19": ("a name is not found once", "looked up again"),
    "F20": ("the certificate is not trusted", "an error at once; it is always verified"),
    "F21": ("503 with Retry-After in seconds", "waited for as long"),
    "F22": ("429 with Retry-After as a date", "waited for, held against the server's own clock, a minute at most"),
    "F23": ("500, 502, 504 in turn", "asked again"),
    "F24": ("503 when it is read on", "asked again"),
    "F25": ("200 with an XML error in it", "asked again, never taken for the object"),
    "F26": ("404", "`E_NOT_FOUND` at once, with the URL"),
    "F27": ("403, keys or token have ended", "credentials are renewed once, then `E_AUTH`"),
    "F28": ("401", "the same"),
    "F29": ("a login page in place of the object", "`E_NOT_TAR`, which says so"),
    "F30": ("the server ignores ranges", "what was read before is passed over; no byte comes twice"),
    "F31": ("a range of unknown total; several parts in one answer", "read; `E_RANGE`"),
    "F32": ("416 at the very end", "the end, where the size agrees"),
    "F33": ("the object is replaced between two requests", "`E_CHANGED` with both versions: never a mixture"),
    "F34": ("… and has a weak ETag, a date alone, or nothing", "compared; the bytes before are read again and compared"),
    "F35": ("it is deleted between two requests", "`E_NOT_FOUND`"),
    "F36": ("it is replaced in a bucket that keeps versions", "the old version is read on"),
    "F37": ("Content-Encoding: gzip on the way", "told from a packed shard; nothing is inflated twice"),
    "F38": ("a byte is another one, and the server sent a checksum", "`E_CORRUPT` at the end"),
    "F39": (
        "redirects: 1, 5, 6, in a circle, away from TLS, to a file, to the machine's own services",
        "5 at most, http(s) only, without credentials for others",
    ),
    "F40": ("a target of AIStore dies in the body", "the proxy is asked again, and it is read on"),
    "F41": ("an object that AIStore does not hold yet", "read from its start, what was read is passed over"),
    "F42": ("one of several ranges fails", "that one alone is asked for again"),
    "F43": ("32 shards at once, and few connections", "all of them in the end"),
    "F44": ("a kept connection was closed between two shards", "not noticed"),
    "F45": ("an HTTP/1.0 server without ranges", "read again from the start, what was read is passed over"),
    "F46": ("the reader pauses for minutes", "read on"),
    "F47": ("closed, or interrupted, while it waits", "at once, with the socket"),
    "F48": ("two processes keep the same shard", "one copy"),
    "F49": ("the cache folder is full or cannot be written", "read without it"),
    "F50": ("a process is killed while it keeps a shard", "what it left is removed"),
    "F51": ("a local file is cut or replaced while it is read; a kept copy is damaged", "`E_CHANGED`; read from afar, the copy goes"),
    "F52": ("the process forks with a connection open", "the child makes its own"),
    "F53": ("IPv6 alone; proxies; NO_PROXY", "used; used; left out"),
    "F54": ("the wall clock jumps while it waits", "nothing changes"),
    "F55": (
        "a server never ends: behind the end mark, before its answer, in headers or trailers",
        "`E_LIMIT`, soon; what drips is a stall",
    ),
    "U1": ("a part of an upload fails", "sent again"),
    "U2": ("the answer to the completion is lost", "looked up: there, of this size"),
    "U3": ("a write is given up", "nothing is seen of it, its parts are dropped"),
    "U4": ("another job writes the same name", 'with `exists="error"` its object is left alone'),
    "U5": ("keys end in the middle of an upload", "renewed, and sent again"),
}


def shown() -> dict[str, list[tuple[str, str]]]:
    """Fault → the tests that show it: name of their file, and the class and the test as a sentence."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text("utf-8")
        if "mark.fault" in text:
            for names, sentence in _marked(ast.parse(text).body, ()):
                for name in names:
                    found.setdefault(name, []).append((path.stem, sentence))
    return found


def _marked(body: list[ast.stmt], inherited: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        names = inherited + tuple(name for decorator in node.decorator_list for name in _named(decorator))
        if isinstance(node, ast.ClassDef):
            yield from _marked(node.body, names)
        elif names and node.name.startswith("test_"):
            yield names, node.name.removeprefix("test_").replace("_", " ")


def _named(decorator: ast.expr) -> list[str]:
    """The faults that a decorator names."""
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.fault":
        return [str(ast.literal_eval(argument)) for argument in decorator.args]
    return []


def rows() -> list[tuple[str, str, str, str]]:
    """Fault, what goes wrong, what is promised, and the tests, each store's own after those of all stores."""
    tests = shown()
    unknown, missing = sorted(set(tests) - set(FAULTS)), sorted(set(FAULTS) - set(tests))
    if unknown or missing:
        raise SystemExit(f"faults that tests show and nobody lists: {unknown}; that are listed and no test shows: {missing}")
    return [(name, what, promise, _tests(tests[name])) for name, (what, promise) in FAULTS.items()]


def _tests(found: list[tuple[str, str]]) -> str:
    files: dict[str, list[str]] = {}
    for file, sentence in sorted(found, key=lambda each: each[0] != EVERY_STORE):
        files.setdefault(file, []).append(sentence)
    return "; ".join(f"`{file}`: {', '.join(dict.fromkeys(sentences))}" for file, sentences in files.items())
