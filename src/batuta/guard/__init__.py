"""Guards decide whether work may start now. The engine calls them before a claim and again immediately before the effect."""
