"""Every code that a person can meet is explained, and no other."""

from __future__ import annotations

from docs import codes


def test_every_code_is_explained_and_no_other():
    assert codes.in_code() == set(codes.CODES)


def test_a_row_says_what_it_means_and_what_to_do():
    assert [] == [code for code, *texts in codes.rows() if not all(len(text) > 5 or text == "nothing" for text in texts)]
