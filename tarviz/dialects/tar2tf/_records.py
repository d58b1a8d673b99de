"""The default way from a record to an Example and back: the features of tar2tf, `height width depth label image_raw`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tarviz.dialects.tar2tf.ops import names
from tarviz.model.errors import DataError, SchemaError
from tarviz.ops import Convert, Decode, Resize
from tarviz.ops.base import names_of
from tarviz.ops.values.payloads import decode_class

IMAGES = ("jpg", "jpeg", "png", "bmp")
CONVERSIONS = (Decode("jpg"), Convert("jpg", "float32"), Resize("jpg", (224, 224)))
"""What happens to a record when no conversions are given."""


@dataclass(frozen=True, slots=True)
class ToExample:
    """A function of the record as the text describes it: a dict of `__key__` and the contents of each file."""

    f: Callable[[dict[str, Any]], Any]

    def __call__(self, record: Mapping[str, Any]) -> Any:
        return self.f(names(record))


def default_record_to_example(record: Mapping[str, Any]) -> dict[str, Any]:
    """The features of tar2tf: `image_raw`, the bytes of the image (`jpg`, else `jpeg`, `png`, `bmp`), its `height`, `width` and
    `depth`, and `label`, the number in `cls`.
    """
    from tarviz.ops.values.pictures import open_picture

    image = next((ext for ext in IMAGES if ext in record), None)
    there = ", ".join(names_of(record)) or "none"
    if image is None or "cls" not in record:
        missing = "an image (jpg)" if image is None else "'cls'"
        raise SchemaError(
            f"the default record_to_example expects {missing}; there are {there}.", hint="Pass a record_to_example of your own."
        )
    field = "cls"
    try:
        label = int(decode_class(record[field]))
        field = image
        picture = open_picture(record[field])
    except DataError as error:
        raise error.at(member=f"{record.get('__key__')}.{field}") from None
    depth = 3 if picture.mode in ("P", "CMYK") else len(picture.getbands())
    return {"height": picture.height, "width": picture.width, "depth": depth, "label": label, "image_raw": bytes(record[image])}


def default_record_parser(serialized: Any) -> tuple[Any, Any]:
    """(image, label) of an Example that `default_record_to_example` made: float32 0…1 [224, 224, 3] and int32.

    For `tf.data.TFRecordDataset(paths).map(default_record_parser)`. These are the tensors that `load` yields without a path.
    """
    import tensorflow as tf

    spec = {"image_raw": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    parsed = tf.io.parse_single_example(serialized, spec)
    record: dict[str, Any] = {"jpg": parsed["image_raw"]}
    for op in CONVERSIONS:
        record = op.run_tf(record)
    return record["jpg"], tf.cast(parsed["label"], tf.int32)
