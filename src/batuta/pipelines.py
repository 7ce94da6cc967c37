"""Pipelines and the outcomes of a stage. A pipeline is a list of functions, or an application's queue table with
stages.
"""

from batuta.queue.outcome import FanOut, Jump, Next, StageOutcome
from batuta.queue.pipeline import Pipeline, Stage
from batuta.queue.steps import Step, step
from batuta.stores.sql.queue.items import DeadItem, ItemPipeline

__all__ = ["DeadItem", "FanOut", "ItemPipeline", "Jump", "Next", "Pipeline", "Stage", "StageOutcome", "Step", "step"]
