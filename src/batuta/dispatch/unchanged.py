"""Evidence of silence that needs no wall clock: for how long something was seen unchanged."""

from collections.abc import Collection, Hashable, Mapping
from datetime import timedelta
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Unchanged(Generic[Key]):
    """A look counts for ``longest_look`` at most: what happened between two looks that are further apart, because this
    process or the database stood still, was not seen.
    """

    def __init__(self, longest_look: timedelta) -> None:
        self._longest_look = longest_look
        self._seen: dict[Key, timedelta] = {}
        self._looked_at: float | None = None

    def look(self, keys: Collection[Key], monotonic: float) -> Mapping[Key, timedelta]:
        """For how long each of the keys was there at every look. A key that is not named is forgotten."""
        since = timedelta(0) if self._looked_at is None else timedelta(seconds=monotonic - self._looked_at)
        counted = min(since, self._longest_look)
        self._looked_at = monotonic
        self._seen = {key: self._seen[key] + counted if key in self._seen else timedelta(0) for key in keys}
        return self._seen
