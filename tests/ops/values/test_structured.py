"""Objects and tables in a field: what was written comes back, and damage is an error of ours."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tarviz.formats.tenbin import encode_buffer
from tarviz.model.errors import DataError, LimitError
from tarviz.ops.values.payloads import decode_payload
from tarviz.ops.values.structured import READERS
from tests.ops.values.test_clouds import PLACES, ROWS, pcd, ply

TREE = {"a": [1, 2.5, None], "b": {"c": "grün"}}


def written(kind: str) -> tuple[bytes, Any]:
    """A payload, and its value."""
    module = READERS[kind].module
    if module:
        pytest.importorskip(module, reason=f"{READERS[kind].package} reads {kind}")
    return WRITERS[kind]()


def _table(save: Callable[[Any, Any], None]) -> tuple[bytes, Any]:
    import pyarrow as pa

    out = io.BytesIO()
    save(pa.table({"x": [1, 2, 3], "y": [0.5, 1.5, 2.5]}), out)
    return out.getvalue(), {"x": np.array([1, 2, 3]), "y": np.array([0.5, 1.5, 2.5])}


def _parquet() -> tuple[bytes, Any]:
    from pyarrow import parquet

    return _table(parquet.write_table)


def _arrow() -> tuple[bytes, Any]:
    from pyarrow import feather

    return _table(lambda table, out: feather.write_feather(table, out, compression="uncompressed"))


def _msgpack() -> tuple[bytes, Any]:
    import msgpack

    return msgpack.packb(TREE), TREE


def _cbor() -> tuple[bytes, Any]:
    import cbor2

    return cbor2.dumps(TREE), TREE


def _safetensors() -> tuple[bytes, Any]:
    from safetensors.numpy import save

    arrays = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}
    return save(arrays), arrays


def _dicom() -> tuple[bytes, Any]:
    from tests.ops.values.test_volumes import CT, dicom

    return dicom(CT), (CT * 2 - 1024).astype(np.float32)


def _nifti() -> tuple[bytes, Any]:
    import nibabel

    voxels = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    return nibabel.Nifti1Image(voxels, np.eye(4)).to_bytes(), voxels


COLUMNS = {"x": np.array([1, 2]), "s": np.array(["a", "b"], object)}
WRITERS: dict[str, Callable[[], tuple[bytes, Any]]] = {
    "msgpack": _msgpack,
    "cbor": _cbor,
    "ten": lambda: (encode_buffer([np.eye(2, dtype=np.float32)]), [np.eye(2, dtype=np.float32)]),
    "safetensors": _safetensors,
    "yaml": lambda: ("a: [1, 2.5, null]\nb: {c: grün}\n".encode(), TREE),
    "toml": lambda: (b"[b]\nc = 1\n", {"b": {"c": 1}}),
    "csv": lambda: (b"x,s\n1,a\n2,b\n", COLUMNS),
    "tsv": lambda: (b"x\ts\n1\ta\n2\tb\n", COLUMNS),
    "parquet": _parquet,
    "arrow": _arrow,
    "ply": lambda: (ply("binary_little_endian"), {name: ROWS[name] for name in ROWS.dtype.names}),
    "pcd": lambda: (pcd("binary", PLACES.tobytes()), dict(zip("xyz", PLACES.T, strict=True))),
    "xyz": lambda: (b"1 2 3\n", {name: np.float64([at]) for at, name in enumerate("xyz", 1)}),
    "dicom": _dicom,
    "nifti": _nifti,
}


def test_each_kind_has_a_case() -> None:
    assert set(READERS) == set(WRITERS)


@pytest.mark.parametrize("kind", READERS)
def test_it_comes_back_under_each_of_its_endings(kind: str) -> None:
    data, value = written(kind)

    for ending in READERS[kind].endings:
        np.testing.assert_equal(decode_payload(ending, data), value)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("damage", [b"\x91", b"{\0"])
def test_what_it_is_not_is_an_error_of_ours(kind: str, damage: bytes) -> None:
    written(kind)
    with pytest.raises(DataError, match="E_DECODE"):
        decode_payload(READERS[kind].endings[0], damage)


def test_safetensors_come_in_one_order_every_time() -> None:
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed (extra `media`)")
    blob = numpy.save({name: np.full(3, at, np.float32) for at, name in enumerate("abcdefghijkl")})

    assert list("abcdefghijkl") == list(decode_payload("safetensors", blob))


def test_safetensors_of_a_dtype_that_numpy_lacks_say_so() -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed (extra `media`)")
    header = b'{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    blob = len(header).to_bytes(8, "little") + header + bytes(4)

    with pytest.raises(DataError, match=r"tensors of BF16, a dtype that NumPy lacks"):
        decode_payload("safetensors", blob)


def test_an_object_in_a_table_stays_one() -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra `table`)")
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pa.table({"s": [{"a": 1}, None], "n": [1, None]}), out)
    found = decode_payload("parquet", out.getvalue())

    assert ([{"a": 1}, None], object) == (found["s"].tolist(), found["s"].dtype)
    assert 1 == found["n"][0]
    assert np.isnan(found["n"][1])


def test_a_table_that_unpacks_to_more_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra `table`)")
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pa.table({"a": [7] * 1000, "b": [7] * 1000}), out)
    monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", "16000")
    assert 1000 == len(decode_payload("parquet", out.getvalue())["a"])
    monkeypatch.setenv("TARVIZ_MAX_MEMBER_BYTES", "15999")

    with pytest.raises(LimitError, match="1000 rows of 2 columns, 16000 bytes, are more than the limit 15999"):
        decode_payload("parquet", out.getvalue())


def test_a_cell_may_hold_lines_and_delimiters() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra `table`)")

    assert ["a\nb,c"] == decode_payload("csv", b'x,y\n"a\nb,c",1\n')["x"].tolist()
    assert ["a,b"] == decode_payload("tsv", b"x\ty\na,b\t1\n")["x"].tolist()


def test_an_arrow_stream_is_read_like_a_file() -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra `table`)")
    table, out = pa.table({"x": [1, 2]}), io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)

    assert [1, 2] == decode_payload("arrow", out.getvalue())["x"].tolist()
