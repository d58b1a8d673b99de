"""What each code of an error or a warning means and what to do about it, for `docs/troubleshooting.md`."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "tarviz"
EXAMPLES = Path(__file__).with_name("codes.md")
_WRITTEN = re.compile(r'"([EW]_[A-Z_]+)[" ]')
_EXAMPLE = re.compile(r"^### (\w+)\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

CODES = {
    "E_AUTH": (
        "the store does not accept who asks",
        "check keys, profile or token; a public bucket needs none (`AWS_SKIP_SIGNATURE=true`)",
    ),
    "E_BAD_EXAMPLE": (
        "a record of a TFRecord file is no `tf.train.Example`",
        "look at it with `tarviz verify`; `--on-error skip` goes on after it",
    ),
    "E_CHAIN": ("the text of an op chain cannot be read, or an op does not fit where it stands", "the message names the op and the cure"),
    "E_CHANGED": ("a shard was replaced while it was read, or since an index or a state was made", "read it again from the beginning"),
    "E_CHECKSUM": ("a header of the tar is damaged", "fetch the shard again; `tarviz verify --repair` keeps what is whole"),
    "E_COMMAND": ("a command that you named ended with an error", "run it by hand on the record or shard that is named"),
    "E_CORRUPT": ("bytes are damaged, in no way that has a code of its own", "fetch the shard again"),
    "E_CORRUPT_COMPRESSED": ("the gzip, bzip2, xz or zstd stream is damaged", "fetch the shard again"),
    "E_DATA_CRC": ("the bytes of a TFRecord's record do not fit their CRC", "fetch the file again; `--on-error skip` goes on after it"),
    "E_DECODE": ("a field cannot be decoded", 'look at it with `tarviz show`; `on_error="skip"` leaves the record out and counts it'),
    "E_DUP_FIELD": (
        "a record has the same field twice, or both sides of a join have it with different values",
        '`duplicates="first"` or `"last"` takes one',
    ),
    "E_EMPTY": ("the file has no bytes", "write or fetch it again"),
    "E_EXISTS": ("an output has this name already and may not be replaced", 'choose another name, or `exists="replace"`'),
    "E_FORMAT": ("what came is not of the format that was named", "name the format, or leave it out"),
    "E_HEADER": ("a header of the tar makes no sense", "fetch the shard again; it may be no tar from there on"),
    "E_IMAGE_TOO_LARGE": ("a picture has more pixels than are decoded", "make it smaller before, or decode it with `least=`"),
    "E_INDEX": ("a file is no index, or one of another version", "remove it and run `tarviz index`"),
    "E_INTERNAL": ("something in tarviz went wrong", "please report it, with the line and the shard if you may"),
    "E_LENGTH": ("a server sends more or fewer bytes than it says", "try again; a proxy between may be the cause"),
    "E_LENGTH_CRC": ("the length of a TFRecord's record is damaged", "what follows cannot be found; fetch the file again"),
    "E_LIMIT": ("something is larger than a limit", "if you trust it, raise the option that is named (`max_member_bytes`, `max_ratio`, …)"),
    "E_MISSING_FIELD": (
        "a record lacks a field that is asked for",
        "name alternatives (`jpg;png`) or choose records that have it (`has:jpg`)",
    ),
    "E_MISSING_PACKAGE": ("an optional package is not installed", "the message has the line for pip"),
    "E_NETWORK": ("no answer came, or none that helps, in the time for retries", "check the address; `retry_timeout` gives it longer"),
    "E_NOTEBOOK": ("a notebook or a cell of it cannot be made a deck", "run the cell that is named by itself"),
    "E_NOT_FOUND": ("nothing is at this address", "the message says what lies near"),
    "E_NOT_SHOWN": ("a file is whole, but nothing here can show it", "decode it in a chain, or install the extra that is named"),
    "E_NOT_TAR": ("the file is no tar", "the message says what it looks like: often an error page, or another kind of archive"),
    "E_NOT_TFRECORD": ("the file is no TFRecord file", "look at its first bytes: is it a tar?"),
    "E_NO_EOF": ("the tar ends without its end mark: members may be missing", "compare with the source; `--lenient` reads what is there"),
    "E_OP": ("an op cannot do this", "the message names the op, its argument and the record"),
    "E_PAX": ("an extension header (PAX) is damaged", "fetch the shard again"),
    "E_QUERY": ("a query or condition cannot be understood", "the nearest column is named; `tarviz sql --help` has examples"),
    "E_RANGE": ("a server sends another range than was asked for", "try again; a cache between may be the cause"),
    "E_READ": ("a file, a listing or standard input cannot be read", "check permission and disk"),
    "E_SCHEMA": (
        "a field holds something else than an op or a type expects",
        "put the op before it that the message names, often `decode`",
    ),
    "E_SIZE": ("a size in a header is impossible", "fetch the shard again"),
    "E_SPARSE": ("the map of a sparse file is damaged or too long", "write the shard without `--sparse`"),
    "E_SPLIT_RECORD": ("the members of a record are not side by side", '`tarviz sort` puts them together, `group="shard"` gathers them'),
    "E_STALL": ("no byte came for too long", "try again; `stall_timeout` waits longer"),
    "E_STOPPED": ("it was stopped, by Ctrl-C or because nobody waits for it", "ask again"),
    "E_TAGS": ("a file of tags has a line that is no tag", "mend the line that is named"),
    "E_TIMEOUT": ("a command took longer than it may", "give it longer, `--timeout`"),
    "E_TRAILING": (
        "a second archive, or zeros and then members, stand behind the end mark",
        "`concatenated=True` reads on; `--lenient` stops there",
    ),
    "E_TRUNCATED": ("the file ends early", "fetch or write it again; `tarviz verify --repair` keeps the whole records"),
    "E_TRUNCATED_COMPRESSED": ("the compressed stream ends early", "fetch it again"),
    "E_UNSAFE_DECODER": ("a pickle was not loaded: it can run any code", 'only if you trust who made it: `unsafe=["pkl"]`'),
    "E_UNSAFE_NAME": ("a name would lead out of the folder", "rename the record, `tarviz cat --key`"),
    "E_USAGE": ("a call or an option cannot work", "the message says what would"),
    "E_WORKER": ("a worker process or node was lost", "often memory: fewer workers; `num_workers=1` shows where"),
    "E_WRITE": ("an output cannot be written", "check permission, space and keys; nothing half-written has its name"),
    "W_CONTINUED": ("a file begins in another volume of the archive", "read the volumes as one: `cat v1.tar v2.tar`"),
    "W_DOTTED_KEY": ("a key has a dot in its base name, where readers cut it", "write another key"),
    "W_DROPPED": ("a member behind damage is left out, since its name or size may be wrong", "fetch the shard again"),
    "W_DUP_FIELD": ("a field is there twice; the first is shown", "`duplicates=` says which one counts"),
    "W_EMPTY": ("the tar is valid and holds nothing", "is it the right one?"),
    "W_EXTERNAL": ("a deck names something on the network", "put the picture beside the notebook"),
    "W_EXTRA_FIELD": ("a record has a field that the first ones have not; it is left out", "name the fields you want"),
    "W_GLOBAL_PATH_IGNORED": ("a global header would rename everything behind it", "nothing, if names look right"),
    "W_LENGTH": ("the stream was wrong behind the tar's end; the tar is whole", "nothing; tell who serves it"),
    "W_LOCAL": ("what was to run elsewhere runs in this process", "the message says why"),
    "W_LONE_ZERO": ("one zero block, then more members, which are not read", "`concatenated=True` reads on"),
    "W_MAGIC_TAKEN": ("another extension has a magic of that name already, which stays", "write the one that is free: `%tarviz` or `%tv`"),
    "W_MERGED_RECORD": ("two records of one key now stand side by side", "give one another key, `tarviz cat --key`"),
    "W_MTIME": ("a time is outside the calendar", "nothing"),
    "W_NAME_ENCODING": ("a name is not UTF-8", "nothing; its bytes are kept"),
    "W_NAME_NUL": ("a name holds a NUL and is cut there", "write the shard again"),
    "W_NO_COLUMN": ("no record has a name or key that was asked for", "is it spelt as in `tarviz ls`?"),
    "W_NO_EOF": ("the end mark is missing or half; members may be missing", "compare with the source"),
    "W_NO_FIELD": ("types or fields name what no record has", "is it spelt as in `tarviz ls`?"),
    "W_NO_KEY": ("a file has no key or no extension, so is of no record", "rename it, if it should be"),
    "W_NO_PARTNER": ("no record found its partner in a join", "look at the keys of both; `--on` and `--match` say what is compared"),
    "W_NO_VECTOR": ("a record has no vector to compare, or one of another length; it is left out", "nothing, if it is to have none"),
    "W_OLD_OUTPUT": ("an output of an earlier, longer run is still there", "remove it, or read by name"),
    "W_ORPHAN_EXT": ("an extension header has no member behind it", "compare with the source: the last member may be missing"),
    "W_PATHS": ("a column of a plan holds paths, and was taken as text", "`--as @jpg=COLUMN` takes the files, or the title `@jpg`"),
    "W_PENDING": ("the last record may lack a member", "fetch the shard again"),
    "W_PLUGIN": (
        "a package adds what tarviz, or another package, has by that name; it is left out",
        "the option `override` takes it all the same",
    ),
    "W_SIDECAR": ("an index beside the shard does not fit it and is not used", "remove it, or write it again: `tarviz index`"),
    "W_SIZE_MISMATCH": ("two headers say two sizes; readers disagree", "write the shard again: `tarviz cat`"),
    "W_SKIPPED": ("a handler left out what failed", "mend what the message names"),
    "W_SKIPPED_META": ("a file about the shard itself is passed over", "nothing"),
    "W_SKIPPED_TYPE": ("a link, folder or device is passed over", "nothing; links are never followed"),
    "W_SPLIT_RECORD": ("a key comes again later in the shard", "`tarviz sort` puts its members together"),
    "W_STOPPED": ("a handler ended the data at what failed", "mend what the message names"),
    "W_TAGS_LEFT_OUT": ("tags are of shards that are not among these", "name all the shards"),
    "W_TAG_KEY_GONE": ("a tag is on a key that is not there any more; it is kept", "is it the right shard?"),
    "W_TRAILING": ("something stands behind the end mark", "`concatenated=True` reads it if it is an archive"),
    "W_TRUNCATED_PADDING": ("the padding of the last member is cut; its data is whole", "nothing"),
    "W_UNKNOWN_TYPE": ("a member of an unknown type is passed over", "nothing, if records look whole"),
    "W_UNUSED_CONVERSIONS": (
        "files hold the records as they are; the conversions are not applied",
        "map them over what is read from the files",
    ),
}


def in_code() -> set[str]:
    """The codes that the package writes."""
    return {code for path in PACKAGE.rglob("*.py") for code in _WRITTEN.findall(path.read_text("utf-8"))}


def rows() -> list[tuple[str, str, str]]:
    """Code, meaning, what to do, in the order of the alphabet."""
    return [(f"[`{code}`](codes.md#{code.lower().replace('_', '-')})", *CODES[code]) for code in sorted(CODES)]


def opening() -> str:
    """The lines that come before each example."""
    return EXAMPLES.read_text("utf-8").partition("```python\n")[2].partition("```")[0]


def examples() -> dict[str, str]:
    """The example of each code, in the order of the page."""
    return dict(_EXAMPLE.findall(EXAMPLES.read_text("utf-8")))
