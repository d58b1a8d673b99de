"""Mathematics in Markdown as MathML, which every browser draws by itself."""

from __future__ import annotations

import re

from nbconvert.filters.markdown_mistune import IPythonRenderer

from tarviz.model.errors import DataError, MissingPackageError


def mathml(tex: str, *, block: bool = False) -> str:
    """TeX as a `<math>` element.

    >>> mathml("x^2")[:45]
    '<math xmlns="http://www.w3.org/1998/Math/Math'
    """
    try:
        from latex2mathml import exceptions
        from latex2mathml.converter import convert
    except ImportError as error:
        raise MissingPackageError.of("latex2mathml", "Mathematics on a page", "deck") from error
    failures: list[type[Exception]] = [ValueError, LookupError, TypeError]
    failures += [kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    plain = re.sub(r"\\.", "", tex)
    try:
        if plain.count("{") != plain.count("}"):
            raise ValueError("braces are not balanced")
        made = str(convert(tex.strip(), display="block" if block else "inline"))
        if unknown := re.search(r">(\\[a-zA-Z]+)<", made):
            raise ValueError(f"the command {unknown[1]} is unknown")
    except tuple(failures) as error:
        reason = str(error) or type(error).__name__
        raise DataError(f"This is not mathematics I can read ({reason}): {tex.strip()[:80]}", code="E_NOTEBOOK") from error
    return made


class Renderer(IPythonRenderer):  # type: ignore[misc]
    """Markdown as nbconvert renders it, with MathML in place of `$…$` for a script to find."""

    def inline_html(self, html: str) -> str:
        # nbconvert reads each piece as a whole page to embed its pictures: <b> alone would be ended at once, and </b> be lost
        return str(super().inline_html(html)) if "<img" in html.lower() else html

    def block_html(self, html: str) -> str:
        return str(super().block_html(html)) if "<img" in html.lower() else f"{html}\n"

    def inline_math(self, body: str) -> str:
        return mathml(body)

    def block_math(self, body: str) -> str:
        return mathml(body, block=True)

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", block=True)
