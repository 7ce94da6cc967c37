"""Guards decide whether work may start now. The engine calls them before it claims the work, and again immediately
before the work has an external effect.
"""
