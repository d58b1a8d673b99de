"""Records as members: keys, names and values that cannot be written are refused before anything is."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tarviz.model.errors import SchemaError, UsageError
from tarviz.outputs.encoded import EncodedRecords, RecordEncoder, array_of, check_key


@pytest.mark.parametrize("key", ["", "a.b", "a/", "a/b.c", "a\0b", "./a", "./a/b", "a\ud800"])
def test_keys_that_would_be_cut_elsewhere_are_refused(key: str):
    with pytest.raises(UsageError, match="cannot be a key"):
        check_key(key)


@pytest.mark.parametrize("key", ["/a", "../a", "a/../b", "~/a", "C:a", "a/.."])
def test_keys_that_lead_out_of_the_folder_are_refused(key: str):
    with pytest.raises(UsageError) as found:
        check_key(key)
    assert "E_UNSAFE_NAME" == found.value.code


def test_a_key_is_a_text():
    with pytest.raises(UsageError, match="a key is a text, got int"):
        check_key(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["0001", "train/0001", "a.b/c", "a b", "é-1", "a/./b", "\udcff"])
def test_other_keys_are_taken(key: str):
    check_key(key)


@pytest.mark.parametrize("ext", ["", ".jpg", "a..b", "a/b", "jpg.", "a\0", "a\ud800"])
def test_names_that_are_no_extension_are_refused(ext: str):
    with pytest.raises(UsageError, match="cannot name a field"):
        RecordEncoder().members("a", {ext: b""})


def test_what_a_record_says_of_itself_is_no_field():
    assert 3 == len(RecordEncoder().members("a", {"__key__": "a", "__shard__": "s", "__index__": 0, "cls": 1}))
    with pytest.raises(UsageError, match="no field"):
        RecordEncoder().members("a", {"__key__": "a"})


def test_an_extension_that_says_no_format_needs_bytes_or_a_format():
    with pytest.raises(SchemaError, match="formats="):
        RecordEncoder().members("a", {"caption": "a cat"})
    assert b"a cat" == RecordEncoder({"caption": "txt"}).members("a", {"caption": "a cat"})[1]


def test_a_format_that_does_not_exist_is_refused_at_once():
    with pytest.raises(UsageError, match="no format 'exr'"):
        RecordEncoder({"caption": "exr"})


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3), ("RGBA", 4), ("P", 3), ("CMYK", 3), ("1", 3)])
def test_a_pil_picture_becomes_an_array(mode: str, channels: int):
    assert (4, 5, channels) == array_of(Image.new(mode, (5, 4))).shape


def test_what_is_transparent_stays_so():
    picture = Image.new("P", (5, 4))
    picture.info["transparency"] = 0

    assert (4, 5, 4) == array_of(picture).shape


@pytest.mark.parametrize("mode", ["1", "P", "I;16"])
def test_a_mask_or_a_depth_keeps_its_numbers_in_a_png(mode: str):
    numbers = np.arange(20, dtype="uint16" if mode == "I;16" else "uint8").reshape(4, 5) * (3000 if mode == "I;16" else 1)
    picture = Image.fromarray(numbers > 9) if mode == "1" else Image.fromarray(numbers)
    if mode == "P":
        picture.putpalette(np.random.default_rng(0).bytes(768))
    again = Image.open(io.BytesIO(RecordEncoder().members("a", {"seg.png": picture})[1]))

    assert mode == again.mode
    assert np.asarray(picture).tolist() == np.asarray(again).tolist()
    assert picture.getpalette() == again.getpalette()


@pytest.mark.parametrize(("mode", "ext"), [("I", "png"), ("F", "png"), ("I;16", "jpg")])
def test_a_picture_of_more_than_8_bits_is_refused(mode: str, ext: str):
    with pytest.raises(SchemaError, match="more than 8 bits"):
        RecordEncoder().members("a", {ext: Image.new(mode, (5, 4))})


def test_the_quality_is_90_unless_another_is_given():
    picture = Image.effect_noise((64, 64), 80)
    usual, best = RecordEncoder().members("a", {"jpg": picture})[1], RecordEncoder(quality=91).members("a", {"jpg": picture})[1]

    assert RecordEncoder(quality=90).members("a", {"jpg": picture})[1] == usual != best


def test_a_quality_is_refused_at_once():
    with pytest.raises(UsageError, match="1 to 100"):
        RecordEncoder(quality=200)


class Tensor:
    """As TensorFlow and JAX have them."""

    def __init__(self, array: object):
        self.array = np.asarray(array)

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.array


def test_tensors_are_arrays():
    fields = {
        "cls": Tensor(3),
        "png": Tensor(np.zeros((4, 5, 3), np.uint8)),
        "bin": Tensor(np.array(b"as it is", object)),
        "json": [Tensor([1])],
    }
    pieces = RecordEncoder().members("a", fields)

    assert (b"3", b"\x89PNG", b"as it is", b"[[1]]") == (pieces[1], pieces[4][:4], pieces[7], pieces[10])


def test_a_picture_that_datasets_has_not_decoded_is_its_bytes():
    assert b"as it is" == RecordEncoder().members("a", {"jpg": {"bytes": b"as it is", "path": "a.jpg"}})[1]


def test_a_tensor_that_numpy_cannot_hold_is_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(SchemaError, match="'npy' cannot be written"):
        RecordEncoder().members("a", {"npy": torch.ones(2, dtype=torch.bfloat16)})


@pytest.mark.parametrize("size", [3, 20_000])
def test_records_are_cut_where_they_end(size: int):
    encoder, held = RecordEncoder(), EncodedRecords()
    each = [encoder.members(str(n), {"bin": bytes([n]) * size, "cls": n}) for n in range(4)]
    for members in each:
        held.add(members)

    assert b"".join(each[1] + each[2]) == b"".join(held.buffers(1, 3))
    assert b"".join([piece for members in each for piece in members]) == b"".join(held.buffers())
    assert [sum(map(len, members)) for members in each] == held.size.tolist()
    assert 0 == np.sum(held.size % 512)


def test_a_file_that_is_open_is_no_picture():
    with pytest.raises(SchemaError, match="expects an image"):
        RecordEncoder().members("a", {"jpg": io.BytesIO(b"")})
