"""Errors say what, where, why and what next on one line, without secrets; they travel between processes."""

from __future__ import annotations

import json
import pickle
import re
import sys

import pytest

from tarviz.model import errors
from tarviz.model.errors import DataError, Fault, LimitError, MissingPackageError, StoreError, TarvizError, require

KINDS = [kind for name, kind in vars(errors).items() if name.endswith("Error")]
WHOLE = DataError(
    "it is cut.",
    code="E_TRUNCATED",
    shard="https://u:planted@h/a.tar?sig=planted",
    key="k",
    member="k.jpg",
    offset=512,
    records_before=1,
    hint="Fetch it again.",
    details={"need": 5},
)


def test_the_line_names_every_place_and_no_secret():
    text = str(WHOLE)

    assert text.startswith("E_TRUNCATED https://")
    assert text.endswith(': record "k", member "k.jpg", byte 512: it is cut. 1 record read before. Hint: Fetch it again.')
    assert "planted" not in text + repr(WHOLE) + str(WHOLE.to_dict()) + repr(WHOLE.fault)
    assert ("https://***@h/a.tar is cut.",) == DataError("https://u:planted@h/a.tar is cut.").args


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DataError("it is cut."), "E_CORRUPT: it is cut."),
        (DataError("it is cut.", shard="a.tar", records_before=0), "E_CORRUPT a.tar: it is cut. 0 records read before."),
        (DataError("it is cut.", offset=0, records_before=1), "E_CORRUPT: byte 0: it is cut. 1 record read before."),
        (StoreError("gone.", key="k", records_before=2, hint="Wait."), 'E_NETWORK: record "k": gone. 2 records read before. Hint: Wait.'),
        (Fault("W_ODD", "it is odd."), "W_ODD: it is odd."),
        (Fault("W_ODD", "it is odd.", "a.tar", "k\n", "m", 0), r"W_ODD a.tar, record 'k\\n', member 'm' at byte 0: it is odd."),
    ],
)
def test_the_line_has_what_is_known(error: TarvizError | Fault, line: str):
    assert line == str(error)


def test_as_data_it_has_what_is_known():
    assert {"code": "W_ODD", "message": "it is odd.", "key": "k", "offset": 0} == Fault("W_ODD", "it is odd.", key="k", offset=0).to_dict()
    known = {"code": "E_LIMIT", "message": "too large.", "key": "k", "compressed_offset": 0, "hint": "Set it.", "need": 5}
    assert known == LimitError("too large.", key="k", compressed_offset=0, hint="Set it.", details={"need": 5}).to_dict()


def test_what_is_shown_has_no_control_characters():
    assert "\x1b" not in str(DataError("x\x1b[31m", key="a\x1bb\n"))
    assert 1 == len(str(DataError("x\ny", member="a\nb")).splitlines())


def test_a_place_is_filled_in_once():
    error = StoreError("gone").at(shard="a.tar").at(shard="b.tar", offset=0)

    assert ("a.tar", 0) == (error.shard, error.offset)
    assert error.at(offset=7).offset == 0
    with pytest.raises(TypeError, match="no place named colour"):
        error.at(colour="red")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_itself_on_the_other_side(kind: type[TarvizError]):
    error = kind("what", shard="a.tar", offset=5, hint="next", details={"need": 3})
    again = pickle.loads(pickle.dumps(error))

    assert (type(error), str(error), error.details, error.code) == (type(again), str(again), again.details, again.code)


def test_kinds_are_what_python_calls_them():
    """So that who knows no tarviz catches them: `except FileNotFoundError`, `except ValueError`."""
    bases = {"UsageError": ValueError, "DataError": ValueError, "NotFoundError": FileNotFoundError, "StoreError": OSError}
    bases |= {"ChangedError": StoreError, "LimitError": DataError, "MissingPackageError": ImportError, "SchemaError": ValueError}

    assert all(issubclass(getattr(errors, name), base) for name, base in bases.items())
    assert len(KINDS) - 1 == len({kind.code for kind in KINDS if kind is not TarvizError})


def test_a_fault_is_the_error_as_data():
    assert Fault("E_TRUNCATED", "it is cut.", WHOLE.shard, "k", "k.jpg", 512) == WHOLE.fault
    assert {
        "code": "E_TRUNCATED",
        "message": "it is cut.",
        "need": 5,
        "offset": 512,
        "records_before": 1,
    }.items() <= WHOLE.to_dict().items()


@pytest.mark.parametrize(("extra", "line"), [("fast", "pip install 'tarviz[fast]'"), (None, "pip install zstandard")])
def test_a_missing_package_names_the_line_that_brings_it(extra: str | None, line: str):
    error = MissingPackageError.of("zstandard", "Writing .zst", extra)

    assert line == error.hint
    assert "Writing .zst needs the package zstandard" in str(error)
    assert LimitError("x").code == "E_LIMIT"


def test_a_package_that_is_needed_is_imported_or_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)

    assert json is require("json", "An answer")
    with pytest.raises(MissingPackageError, match="a plan needs the package yaml, which is not installed") as plain:
        require("yaml", "a plan")
    with pytest.raises(MissingPackageError, match="a plan needs the package pyyaml, which is not installed") as named:
        require("yaml", "a plan", "media", package="pyyaml")
    assert ["pip install yaml", "pip install 'tarviz[media]'"] == [caught.value.hint for caught in (plain, named)]
    assert isinstance(plain.value.__cause__, ImportError)


@pytest.mark.parametrize(("python", "hint"), [((3, 13), "pip install 'tarviz[tensorflow]'"), ((3, 14), r"take \.torch\(\) or \.eager\(\)")])
def test_where_there_is_no_tensorflow_for_a_python_the_hint_is_a_way_without(python, hint, monkeypatch):
    monkeypatch.setattr(sys, "version_info", python)
    with pytest.raises(MissingPackageError, match=re.escape(hint) if python < (3, 14) else hint):
        raise MissingPackageError.of("tensorflow", "Pipeline.tf()", "tensorflow")


def test_a_hint_is_found_out_once_and_only_when_it_is_read():
    asked = []
    error = StoreError("there is no such file.", hint=lambda: asked.append(1) or "Try another.")  # type: ignore[func-returns-value]
    assert not asked

    assert "Try another." == error.hint == pickle.loads(pickle.dumps(error)).hint
    assert str(error).endswith("Hint: Try another.")
    assert [1] == asked
