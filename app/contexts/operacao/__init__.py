"""Upkeep: signs of life, and history that does not grow for ever."""
