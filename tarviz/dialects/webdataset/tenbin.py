"""`webdataset.tenbin`: arrays as the bytes of `ten`."""

from tarviz.formats.tenbin import decode_buffer as decode_buffer
from tarviz.formats.tenbin import encode_buffer as encode_buffer
