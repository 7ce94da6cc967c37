"""Tests of the engine, one folder for each package of ``src/batuta``."""
