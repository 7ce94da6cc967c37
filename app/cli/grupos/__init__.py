"""``batuta grupos``: the groups pipeline, its review and its dictionary."""
