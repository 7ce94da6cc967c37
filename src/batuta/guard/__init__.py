"""May this start now? Asked before anything is claimed, and again at the instant of the effect."""
