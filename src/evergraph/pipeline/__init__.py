"""Pipelines on Spark: sources to exact changes to views to sinks, defined in TOML, each change exactly once."""

from evergraph.pipeline.definition import Pipeline, ViewDefinition, load_pipeline
from evergraph.pipeline.document import PipelineInvalid
from evergraph.pipeline.running import Report, check, run, watch

__all__ = ["Pipeline", "PipelineInvalid", "Report", "ViewDefinition", "check", "load_pipeline", "run", "watch"]
