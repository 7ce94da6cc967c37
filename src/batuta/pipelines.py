"""A queue table whose items pass through stages, and the outcomes of a stage."""

from batuta.queue.outcome import FanOut, Jump, Next, StageOutcome
from batuta.queue.pipeline import Pipeline, Stage

__all__ = ["FanOut", "Jump", "Next", "Pipeline", "Stage", "StageOutcome"]
