"""In which order workers write what many items have to write."""

from itertools import permutations

from batuta.queue.outcome import Writes
from batuta.stores.sql.database import Query
from batuta.stores.sql.queue.claim import merge_writes, order_statements


def query(name: str) -> Query:
    return Query(name=name, text=f"UPDATE {name}", parameters=("id",), writes=True)


def order(*shapes: str) -> str:
    return "".join(each.name for each in order_statements([tuple(map(query, shape)) for shape in shapes]))


def test_a_statement_comes_after_whatever_any_item_names_before_it() -> None:
    assert order("d", "bd", "acd") == "abcd"
    assert order("x", "zx", "yz") == "yzx"


def test_whichever_item_ended_first_the_order_is_the_same() -> None:
    assert {order(*shapes) for shapes in permutations(["d", "bd", "acd", "e"])} == {"abcde"}


def test_one_that_is_named_twice_comes_where_it_was_named_last() -> None:
    assert order("azbz", "cz") == "abcz"


def test_items_that_contradict_each_other_are_written_all_the_same() -> None:
    assert order("ab", "ba", "bc") == "abc"


def test_rows_of_one_statement_are_in_one_order_too() -> None:
    effects = [Writes(((query("a"), {"id": id}),)) for id in ("2", "1", "3")]
    assert merge_writes(effects) == [(query("a"), [{"id": "1"}, {"id": "2"}, {"id": "3"}])]
    assert merge_writes(reversed(effects)) == merge_writes(effects)
