"""`_["cls"]` in a condition: a record as tarproc's tools called it, in the words of ours.

`tarfirst -S` took any Python over `_`, the sample: `int(_["cls"]) == 180`, `_["__key__"].startswith("n0")`. Nothing is executed here;
the syntax tree is rewritten, and what has no meaning is refused as in any condition.
"""

from __future__ import annotations

import ast

from tarviz.model.errors import UsageError

SAMPLE = "_"
_FACTS = {"__key__": "key", "__source__": "shard", "__shard__": "shard", "__index__": "index"}


def without_sample(text: str) -> str:
    """The condition with fields in place of `_["ext"]` and `_.ext`; one without `_` is itself.

    >>> without_sample('int(_["cls"]) == 180 and len(_.jpg) > 9')
    "int(field('cls')) == 180 and size('jpg') > 9"
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    if not any(isinstance(node, ast.Name) and node.id == SAMPLE for node in ast.walk(tree)):
        return text
    made = ast.fix_missing_locations(_Rewriter().visit(tree))
    if any(isinstance(node, ast.Name) and node.id == SAMPLE for node in ast.walk(made)):
        raise UsageError(
            f"{text!r} does more with _ than to name fields.", hint='Write _["cls"], "jpg" in _, len(_["jpg"]) or _["__key__"].'
        )
    return ast.unparse(made)


def _field_name(node: ast.AST) -> str | None:
    """The field that `_["ext"]` or `_.ext` names."""
    match node:
        case ast.Subscript(value=ast.Name(id="_"), slice=ast.Constant(value=str(name))):
            return name
        case ast.Attribute(value=ast.Name(id="_"), attr=name):
            return name
    return None


def _call(function: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(function, ast.Load()), list(arguments), [])


class _Rewriter(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript | ast.Attribute) -> ast.expr:
        name = _field_name(node)
        if name is None:
            return self.generic_visit(node)  # type: ignore[return-value]
        if name in _FACTS:
            return ast.Name(_FACTS[name], ast.Load())
        return node if name.startswith("__") else _call("field", ast.Constant(name))  # of such a name: the reader refuses it

    visit_Attribute = visit_Subscript  # noqa: N815 (as `ast` calls it)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[value]) if (name := _field_name(value)) is not None and name not in _FACTS:
                return _call("size", ast.Constant(name))
            case ast.Call(func=ast.Attribute(value=value, attr="decode")) if not node.keywords:
                return self.visit(value)  # type: ignore[no-any-return]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="_"), attr="get"), args=[ast.Constant(value=str(name))]):
                return self.visit(ast.Subscript(ast.Name(SAMPLE, ast.Load()), ast.Constant(name), ast.Load()))  # type: ignore[no-any-return]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="_"))):
                return node  # refused: fields are no functions
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Fields were bytes: `_["cls"] == b"3"` is what is `cls == "3"` here."""
        return ast.Constant(node.value.decode("utf-8", "replace")) if isinstance(node.value, bytes) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """`"jpg" in _`: whether the record has the field."""
        match node:
            case ast.Compare(left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn() as how], comparators=[ast.Name(id="_")]):
                has = _call("has", node.left)
                return has if isinstance(how, ast.In) else ast.UnaryOp(ast.Not(), has)
        return self.generic_visit(node)  # type: ignore[return-value]
