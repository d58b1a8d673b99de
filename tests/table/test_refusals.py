"""Whatever is asked wrongly, however oddly, is refused in our words at every door: no sentence of DuckDB's, no traceback."""

from __future__ import annotations

import contextlib
import random
import re
import sys
from pathlib import Path

import pytest

import tarviz
from tarviz.cli import main
from tarviz.model.errors import LimitError, MissingPackageError, TarvizError, UsageError
from tarviz.read.stream import ReadReport, blocks
from tarviz.table.interrupts import stop_error
from tarviz.table.refusals import translate
from tarviz.table.streamed import StreamCondition
from tarviz.testing.strategies import shard
from tarviz.widgets.browse.controller import Browser

THEIRS = re.compile(
    r"Candidate|Binder|Catalog|Parser|Conversion|INTERNAL|LINE \d|_records\b|_called|_given|Referenced|[Dd]uck|"
    r"Did you mean|explicit|Macro|BOUND_|Traceback|INT\d|_LITERAL|system\.main|STRUCT\(|clause cannot|Unimplemented|Malformed|\bSET "
)
RECORDS = [
    ("a", {"json": b'{"v": 1, "l": [1, 2], "s": {"x": 1}, "t": "cat"}', "txt": b"boat at sea", "cls": b"1", "jpg": b"no"}),
    ("b", {"json": b'{"v": "x", "l": [3], "s": {"x": 2}, "t": "dog"}', "txt": b"3", "cls": b"2", "_words": b"x", "_records.txt": b"t"}),
    ("c", {"json": b'{"v": [2], "t": null}', "txt": b"", "objects": b"x", "records": b"x", "tags.txt": b"q", "select.txt": b"s"}),
]
CONDITIONS = """
count(*) > 1 ¦ sum(cls) > 1 ¦ max(json.s.x) = 2 ¦ avg(txt) > 1 ¦ string_agg(txt, ',') = 'x' ¦ first(cls) = 1 ¦ any_object(count(*) > 1)
sum(cls) over () > 1 ¦ row_number() over () = 1 ¦ lag(cls) = 1 ¦ lower(txt) over () = 'x' ¦ nope(txt) over () = 'x' ¦ quantile(cls, 2) > 1
unnest(json.l) = 1 ¦ unnest([1, 2]) = 1 ¦ json.l ¦ json.s = 1 ¦ json.s.x.y = 1 ¦ json.s.nope = 1 ¦ json.l['x'] = 1 ¦ json.l[1.5] = 1
_words = 1 ¦ _words.text = 'x' ¦ _words is null ¦ _records = 1 ¦ _records.key = 'a' ¦ records = 1 ¦ objects = 1 ¦ objects.label = 'x'
tags = 'x' ¦ tags.tag = 'x' ¦ _words.size > 0 and nope = 1 ¦ _streamed = 1 ¦ _called = 1 ¦ _given = 1 ¦ _part0 = 1 ¦ records.nope = 1
lower(cls, 1) = 'x' ¦ lower() = 'x' ¦ lower(1, 2, 3) = 'x' ¦ nofn(cls) ¦ substring(txt) = 'a' ¦ int() = 1 ¦ float(1, 2) = 1
abs(1, 2, 3) = 1 ¦ matches(txt, '[') ¦ matches(txt, '(') ¦ txt ~ '(' ¦ txt like 'a' escape 'ab' ¦ cls::nosuch = 1 ¦ cls::struct(a int) = 1
cls || 1 ¦ 'x'::int = 1 ¦ if(cls, 1, 'x') = 1 ¦ [1, 'x'] = [1] ¦ {'a': 1}.b = 1 ¦ {'a': 1} = 1 ¦ struct_extract(json.s, 'nope') = 1
-'x' = 1 ¦ list_filter(json.l, v -> nope > 1) = [2] ¦ list_transform(json.l, v -> v + 'x') = [1] ¦ list_transform(json.l, 1) = [1]
x -> x ¦ list_filter(json.l, v -> v.x > 1) = [2] ¦ list_filter(cls, v -> v > 1) = [2] ¦ cls = lambda x: x
list_sort(json.l, 'nope') = [1] ¦ json.v -> '$.x' = 'x' ¦ json_extract(json.v, '$[') = 1 ¦ json(txt) = 1 ¦ txt -> 'a' = 1
json.v ->> '$' = 'x' ¦ txt::json = 1 ¦ exists (select 1 from nope) ¦ exists (select nope from records) ¦ cls in (select 1, 2)
cls = (select cls from records) ¦ * = 1 ¦ * ¦ cls like 3 ¦ 3 like 3 ¦ key glob 3 ¦ columns('(') = 1 ¦ $1 = 1 ¦ $x = 1 ¦ ? = 1 ¦ #1 = 1
@x = 1 ¦ cls = default ¦ default ¦ cls as x ¦ cls = 1; cls = 2 ¦ cls = 1 /* x ¦ cls = 'x ¦ cls = "x ¦ (cls = 1 ¦ cls = 1) ¦ )cls = 1(
cls == == 1 ¦ = 1 ¦ and cls = 1 ¦ cls = 1 and ¦ cls = 1 order by cls ¦ cls = 1 having count(*) > 1 ¦ 1) union (select 1
select * from records ¦ from records ¦ drop table records ¦ txt collate nope = 'x' ¦ cls at time zone 'x' = 1 ¦ extract(nope from txt) = 1
date_trunc('nope', now()) = 1 ¦ strptime(txt, '%Q') = 'x' ¦ position(1 in txt) = 1 ¦ map {1: 2, 1: 3} = 1 ¦ (cls, key) in (1, 2)
cls = row(1) ¦ grouping(cls) = 1 ¦ nextval('x') = 1 ¦ version() = 1 ¦ current_setting('nope') = 'x' ¦ getenv('HOME') = 'x'
read_text('/etc/passwd') = 'x' ¦ query('select 1') = 1 ¦ random() > 0.5 ¦ repeat('x', 99999999999) = 'x' ¦ range(10000000000) = [1]
cls ! = 1 ¦ cls === 1 ¦ cls =! 1 ¦ cls => 1 ¦ cls <=> 1 ¦ cls @> 1 ¦ cls && 1 ¦ any_object() ¦ any_object(nope = 1) ¦ has_object()
count_objects('x', 1) > 1 ¦ tagged() ¦ folded() = 1 ¦ words_of(1, 2) = 'x' ¦ has(a, b) ¦ len() = 1 ¦ len(1, 2) = 1 ¦ round(1, 2, 3) = 1
round(cls, 'x') = 1 ¦ greatest() = 1 ¦ coalesce(1, 'x', [1]) = 1 ¦ contains(cls, 1, 2) ¦ try_cast(txt as nope) = 1 ¦ flatten(json.l) = [1]
json.l || 'x' = 'x' ¦ json.l @> 1 ¦ json.l in (1) ¦ json.l[99999999999999999999] = 1 ¦ cls::decimal(99, 3) = 1 ¦ cls::enum = 'a'
txt::inet = 1 ¦ json.t::date > 1 ¦ json.t::date + 'x' > 1 ¦ year(1) = 1 ¦ make_date(1, 99, 99) = 1 ¦ cls = any(1) ¦ unique(cls)
lower(distinct txt) = 'x' ¦ lower(txt) filter (where cls) = 'x' ¦ cls＝1 ¦ cls = “x” ¦ `cls` = 1 ¦ json."" = 1
"""
QUERIES = """
select ¦ select * from ¦ select * form records ¦ selct * from records ¦ select nope from records ¦ select x.key from records ¦ ; ¦ /*
select key, count(*) from records ¦ select key from records group by nope ¦ select key from records group by 5
select key from records limit 'x' ¦ select key from records where count(*) > 1 ¦ select key from records having cls > 1
select key from records where row_number() over () > 1 ¦ select _records.nope from records ¦ select key from _records
select _words from records ¦ select objects.label from records ¦ select 1 where nope ¦ select _words.text from records
select * from _words ¦ summarize _records ¦ describe _records ¦ show _words ¦ table _records ¦ from nope
select a.key from records a join records b on nope ¦ select a.key from records a join records b using (nope) ¦ select tags.nope from tags
select key from records union select key, cls from records ¦ select json.l from records union all select 1
select json.s from records union select 1 ¦ select unnest(txt) from records ¦ select unnest(1) from records ¦ select unnest() from records
select * from records, unnest(txt) ¦ select list_filter(txt, v -> v > 1) from records ¦ select list_sum(json.v) from records
select sum(txt) from records ¦ select sum(json.s) from records ¦ select quantile_cont(cls, 5) from records
select string_agg(cls, key) from records ¦ select lower(cls, 1) from records ¦ select txt + 1 from records ¦ select key * 2 from records
select -key from records ¦ select not key from records ¦ select key::int from records ¦ select key::date from records
select date '2020-99-99' ¦ select 'x'::int ¦ select case when key then 1 end from records ¦ select [key, json.s] from records
select n.nope from records ¦ select 9223372036854775807 * n * 99 from records where n > 1 ¦ select (n + 300)::tinyint from records
select n << 100 from records ¦ select error('boo') ¦ select json(txt) from records ¦ select json_extract(json.v, '$[') from records
select from_base64(txt) from records ¦ select format('{:d}', txt) from records ¦ select map([1], [1, 2])
select struct_extract(json.s, 'nope') from records ¦ select columns('(') from records ¦ select * exclude (nope) from records
select sum(key) over () from records ¦ select lower(key) over () from records ¦ select count(count(*)) from records
select (select key, cls from records) ¦ select key from records where key = (select key from records)
select nope from (select key from records) ¦ with t as (select 1) select * from u
with t(a, b) as (select key from records) select a from t ¦ with recursive t as (select 1 union all select x from t) select * from t
values (1), (1, 2) ¦ select * from records pivot (count(*) for nope in (1)) ¦ select * from records unpivot (a for b in (key, cls))
pivot records on cls using count(*) ¦ create table x as select 1 ¦ insert into tags values (1) ¦ drop table tags ¦ attach 'x'
copy records to 'x' ¦ set memory_limit = '1GB' ¦ begin ¦ call nope() ¦ load json ¦ select * from read_csv('x') ¦ select * from 'x.parquet'
select * from range('x') ¦ select * from duckdb_functions() ¦ select * from query_table('records') ¦ select main.records.nope from records
select * from memory.main._records ¦ select * from system.records ¦ select * from records tablesample nope
select * from records using sample 200% ¦ select * from records positional join nope ¦ select $1 from records ¦ select lable from objects
select sum(label) from objects ¦ select label, count(*) from objects ¦ select outlines.x from objects ¦ select x0 + label from objects
select list_filter(json.l, lambda x, y, z: x) from records ¦ select key collate nope from records ¦ select interval 'x'
select to_days(key) from records ¦ select json.v::struct(a int) from records ¦ select json.l::date[] from records
select json.s::int from records ¦ select json.v::bool and key from records
"""


def lines(text: str) -> list[str]:
    return [each.strip() for line in text.strip().splitlines() for each in line.split("¦")]


def harmed(texts: list[str], count: int) -> list[str]:
    """Texts with a token lost, doubled, moved or out of another one."""
    draw = random.Random(27)
    found = []
    for _ in range(count):
        tokens = re.findall(r"\w+|\s+|'[^']*'|.", draw.choice(texts))
        at, to = draw.randrange(len(tokens)), draw.randrange(len(tokens))
        tokens[at : at + draw.randint(0, 1)] = draw.choice(
            [[], [tokens[to]], [tokens[at], tokens[at]], [draw.choice("()[]{}'\".,;:=<>*%$\\é\0")]]
        )
        found.append("".join(tokens))
    return found


DEEP = ["[" * 600 + "]" * 600, "lower(" * 300 + "txt" + ")" * 300 + " = 'x'", "not " * 1500 + "cls = 1", "json" + "[0]" * 1500 + " = 1"]
ASKED = DEEP + lines(CONDITIONS) + harmed(lines(CONDITIONS), 60)
QUERIED = lines(QUERIES) + harmed(lines(QUERIES), 60)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("odd") / "a.tar"
    found.write_bytes(shard(RECORDS))
    return found


def theirs(message: str, text: str) -> list[str]:
    """Words of DuckDB's in a message about `text`, those left out that were asked for."""
    return [word for word in THEIRS.findall(re.sub("(There are|Nearest:) .*", "", message)) if word not in text]


def said(work, text: str) -> None:
    """An answer, or a refusal in our words; any other exception fails."""
    try:
        work(text)
    except TarvizError as error:
        assert [] == theirs(str(error), text), str(error)


def streamed(path: Path, where: str) -> None:
    condition, report = StreamCondition(where), ReadReport()
    with contextlib.closing(blocks(path, report=report)) as run:
        for block in run:
            condition.fits(block)


@pytest.mark.filterwarnings("ignore::tarviz.model.errors.TarvizWarning")
@pytest.mark.parametrize("text", ASKED)
def test_a_condition(path, text):
    table = tarviz.table(path)
    for ask in (table.rows, lambda text: table.rows(order=text), table.facets, lambda text: streamed(path, text)):
        said(ask, text)


@pytest.mark.parametrize("text", QUERIED)
def test_a_query(path, text):
    said(lambda text: tarviz.table(path).sql(text).fetchall(), text)


@pytest.mark.parametrize("text", [each for each in ASKED if "\0" not in each])
def test_a_condition_of_a_verb_and_of_the_page(path, text, capsys):
    assert main(["cat", "--where", text, "-o", "/dev/null", str(path)]) in (0, 1, 2)
    assert [] == theirs(capsys.readouterr().err, text)

    def browse(where: str) -> None:
        with contextlib.closing(Browser([str(path)], where=where, cache=False)) as browser:
            browser.wait(99, 60)
            if browser.query.error is not None:
                raise browser.query.error

    said(browse, text)


@pytest.mark.parametrize("text", [each for each in QUERIED if "\0" not in each])
def test_a_query_of_the_shell(path, text, capsys):
    assert main(["sql", text, str(path)]) in (0, 1, 2)
    assert [] == theirs(capsys.readouterr().err, text)


SAID = [
    ("rows", "count(*) > 1", r"a record is chosen and placed by itself.*HAVING count\(\*\) > 1"),
    ("order", "count(*) > 1", r"a record is chosen and placed by itself"),
    ("rows", "row_number() over () = 1", r"a window is over many.*QUALIFY"),
    ("rows", "_words = 1", r"there is no column _words\. Hint: Nearest: _words\.size"),
    ("rows", "_words.text = 'x'", r"there is no column _words\.text"),
    ("rows", "objects.label = 'x'", r"there is no column objects\.label\. Hint: Write any_object\(label = …\)"),
    ("rows", "lower(txt, 1) = 'x'", r"lower\(\) cannot be called with a text, a number\. Hint: Write lower\(string VARCHAR\)"),
    ("rows", "int() = 1", r"int\(\) takes one argument"),
    ("rows", "typeof(json.s) = 'BIGINT'", r"typeof\(\) says what a column was made.*json_type\("),
    ("sql", "select key from records where typeof(txt) = 'VARCHAR'", r"typeof\(\) says what a column was made"),
    ("rows", "cls === 1", "does not fit there|no operator ==="),
    ("rows", "matches(txt, '(')", r"\( is no regular expression: missing \)"),
    ("sql", "select key, count(*) from records", r"key is of one record.*any_value\(key\)"),
    ("sql", "select key::int from records", r"'a' is no INTEGER\. Hint: try_cast\(… AS INTEGER\) is null there"),
    ("sql", "select txt::date from records", r"is no date\. Hint: try_cast\(… AS date\) is null there"),
    ("sql", "select json.s::int from records", r"an object does not become a number\. Hint: A list or an object is asked by what it holds"),
    ("sql", "select key from records where key = (select key from records)", r"gives one row, and this gives more\. Hint: Write IN"),
    ("rows", "[" * 600 + "]" * 600 + " = 1", "nested too deep"),
    ("rows", "lower(" * 300 + "txt" + ")" * 300 + " = 'x'", "nested too deep"),
    ("rows", "not " * 1500 + "cls = 1", "nested too deep"),
    ("sql", "select [key, json.s] from records", "a text and an object do not go together"),
    ("sql", "select key from records a, records b", r"key is in two of the tables\. Hint: Write of which: a\.key"),
    ("sql", "select n * 9223372036854775807 * 99 from records", "a number is out of range"),
    ("sql", 'select "json.s" from records', r"there is no column json\.s\. Hint: It is a path: .* around each name, \"json\"\.\"s\"\."),
    ("sql", "select a.key from records a join records b using (nope)", "there is no column nope"),
    ("sql", "select nope.key from records", r"there is no table nope\. Hint: Ask FROM records"),
]


@pytest.mark.parametrize(("door", "text", "words"), SAID)
def test_what_is_said_is_what_to_write(path, door, text, words):
    table = tarviz.table(path)
    doors = {"rows": table.rows, "order": lambda text: table.rows(order=text), "sql": lambda text: table.sql(text).fetchall()}

    with pytest.raises(UsageError, match=words) as error:
        doors[door](text)
    assert "E_QUERY" == error.value.code


@pytest.mark.parametrize("form", ["df", "pl"])
def test_a_form_of_an_answer_whose_package_is_missing_says_how_to_install_it(path, monkeypatch, form):
    package = {"df": "pandas", "pl": "polars"}[form]
    found = tarviz.table(path).sql("select key from records")
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(MissingPackageError, match=rf"needs the package {package}.*pip install {package}") as error:
        getattr(found, form)()
    assert "E_MISSING_PACKAGE" == error.value.code


def test_a_condition_that_is_no_truth_fits_nothing(path):
    assert [] == tarviz.table(path).rows("txt || ' '").n.tolist()
    assert [0] == tarviz.table(path).rows("cls || ''").n.tolist()[:1]


CAST = "Cast a side: …::DOUBLE, …::VARCHAR."
ONE = "Cast one of them: …::VARCHAR."
HOLDS = "A list or an object is asked by what it holds: json.list[0], json.meta.name."
THERE = "Ask FROM records, or objects; marks are in tags."
OURS = [  # asked of DuckDB itself: what is said instead, and what the hint begins with
    ("select txt - j from t", "- cannot be used with a text, JSON.", "Of a value of two kinds ask the path itself"),
    ("select lower(j, 1) from t", "lower cannot be used with JSON, a number.", "Of a value of two kinds"),
    ("select txt + s from t", "+ cannot be used with a text, an object.", CAST),
    ("select txt ~~ s from t", "LIKE cannot be used with a text, an object.", CAST),
    ("select lower(s) from t", "lower() cannot be called with an object.", "Write lower(string VARCHAR)."),
    (
        "select substr(1)",
        "substr() cannot be called with a number.",
        "Write substr(string VARCHAR, start BIGINT, length BIGINT) or substr(string VARCHAR, start BIGINT).",
    ),
    ("select m(1, 2)", "m() cannot be called so.", "Write m(x)."),
    ("select key, count(*) from t", "key is of one record and stands beside what is of many.", "Write GROUP BY key, or any_value(key)."),
    ("select key::int from t", "'a' is no INTEGER.", "try_cast(… AS INTEGER) is null there."),
    ("select txt::date from t", "'x' is no date.", "try_cast(… AS date) is null there."),
    ("select s::int from t", "an object does not become a number.", HOLDS),
    ("select case when s then 1 end from t", "an object does not become true or false.", HOLDS),
    ("select [key, s] from t", "a text and an object do not go together.", ONE),
    ("select s between 1 and 2 from t", "an object and a number do not go together.", ONE),
    ("select nope from t", "there is no column nope.", "Nearest: it."),
    ("select s.nope from t", "there is no column nope.", "Nearest: it."),
    ("select t.nope.x from t", "there is no column nope.", "Nearest: it."),
    ("select * from nope", "there is no table nope.", THERE),
    ("select n < 1 from t where nope.x", "there is no table nope.", THERE),
    ("select nope(1)", "there is no function nope().", "Nearest: now()."),
    ("select txt <+> 1 from t", "there is no operator <+>.", ""),
    ("select 1::nope", "there is no type nope.", "Types are BIGINT, "),
    ("select strptime('a', '%Q')", "%Q is not known.", ""),
    ("select key from t a, t b", "key is in two of the tables.", "Write of which: a.key, after FROM records a."),
    ("select n * 9223372036854775807 * 99 from t", "a number is out of range there.", "Count in …::DOUBLE."),
    ("select 1 where 1 = (select key from t)", "a subquery here gives one row, and this gives more.", "Write IN (SELECT …), or LIMIT 1."),
    ("select 1 = (select key, n from t)", "a subquery here gives one column, and this gives 2.", "Name one after SELECT."),
    ("select regexp_matches(txt, '(') from t", "( is no regular expression: missing ).", ""),
    (
        "select * from t where count(*) > 1",
        "a record is chosen and placed by itself, and a count, a sum or a maximum is of many.",
        "Write SELECT",
    ),
    ("select unnest(1)", "a list is needed there, and this is none.", "Put one value in brackets: [json.v]."),
    ("select $1", "a query has no parameters.", "Write the value itself in its place."),
]


def test_what_duckdb_says_is_said_in_our_words():
    import duckdb

    base, found = duckdb.connect(), []
    base.execute("create table t as select 'a' as key, 'x' as txt, 1::bigint as n, {'x': 1} as s, '1'::json as j")
    base.execute("insert into t from t")
    base.execute("create macro m(x) as x")
    for query, _, hint in OURS:
        with pytest.raises(duckdb.Error) as error:
            base.execute(query).fetchall()
        ours = translate(error.value, lambda name: f"Nearest: {'it' if name == 'nope' else name}.")
        found.append((query, ours.message, (ours.hint or "")[: len(hint)] if hint else ours.hint or ""))

    assert OURS == found


def test_memory_time_and_depth_are_limits_and_a_name_that_is_no_column_is_answered():
    import duckdb

    near = {"a.b": "Nearest: a.c."}

    assert isinstance(translate(duckdb.OutOfMemoryException("x")), LimitError)
    assert "nested too deep" in str(translate(RecursionError()))
    assert stop_error().message == translate(duckdb.InterruptException("x")).message
    assert "no column a.b. Hint: Nearest: a.c." in str(translate(duckdb.BinderException("x"), near.get, ["tag", "a.b"]))
    assert "no column" not in str(translate(duckdb.BinderException("x"), near.get, ["objects.label"]))
    assert "no column" not in str(translate(duckdb.ConversionException("x"), near.get, ["a.b"]))
