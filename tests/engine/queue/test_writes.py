"""The order of the statements when a worker writes the effects of many items together."""

from itertools import permutations

from batuta.queue.outcome import Writes
from batuta.stores.sql.database import Query
from batuta.stores.sql.queue.claim import merge_writes, order_statements


def query(name: str) -> Query:
    return Query(name=name, text=f"UPDATE {name}", parameters=("id",), writes=True)


def order(*shapes: str) -> str:
    return "".join(each.name for each in order_statements([tuple(map(query, shape)) for shape in shapes]))


def test_statement_follows_every_statement_that_any_item_names_before_it() -> None:
    assert order("d", "bd", "acd") == "abcd"
    assert order("x", "zx", "yz") == "yzx"


def test_order_does_not_depend_on_which_item_ended_first() -> None:
    assert {order(*shapes) for shapes in permutations(["d", "bd", "acd", "e"])} == {"abcde"}


def test_statement_named_twice_takes_its_last_place() -> None:
    assert order("azbz", "cz") == "abcz"


def test_items_with_contradicting_orders_are_still_written() -> None:
    assert order("ab", "ba", "bc") == "abc"


def test_rows_of_one_statement_have_one_order() -> None:
    effects = [Writes(((query("a"), {"id": id}),)) for id in ("2", "1", "3")]
    assert merge_writes(effects) == [(query("a"), [{"id": "1"}, {"id": "2"}, {"id": "3"}])]
    assert merge_writes(reversed(effects)) == merge_writes(effects)
