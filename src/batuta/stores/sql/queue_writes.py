"""What many items write with their endings: each statement once, for all of them."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from batuta.queue.outcome import Writes
from batuta.stores.sql.database import Query


def together(effects: Iterable[Writes]) -> list[tuple[Query, list[Mapping[str, object]]]]:
    """In an order that every worker keeps, the statements and the rows of each: two of them never wait for each other."""
    rows: dict[Query, list[Mapping[str, object]]] = {}
    shapes: set[tuple[Query, ...]] = set()
    for effect in effects:
        for query, values in effect.statements:
            rows.setdefault(query, []).append(values)
        shapes.add(tuple(query for query, _ in effect.statements))
    return [(query, sorted(rows[query], key=repr)) for query in in_one_order(shapes)]


def in_one_order(shapes: Iterable[tuple[Query, ...]]) -> list[Query]:
    """After whatever an item names before it; beside that, by name. Where two items contradict each other, by name as well."""
    before: dict[Query, set[Query]] = {}
    for shape in shapes:
        # One that is named again comes where it was named last: what stands between may be what it is to see.
        own = list(dict.fromkeys(reversed(shape)))[::-1]
        for query in own:
            before.setdefault(query, set())
        for earlier, later in pairwise(own):
            before[later].add(earlier)
    order: list[Query] = []
    while before:
        free = [query for query, earlier in before.items() if not earlier] or list(before)
        first = min(free, key=lambda query: (query.name, query.text))
        del before[first]
        for named_before in before.values():
            named_before.discard(first)
        order.append(first)
    return order
