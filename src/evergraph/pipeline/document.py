"""Definitions of pipelines as documents: their mistakes are told with file, line, key and what was expected."""

from evergraph import documents
from evergraph.documents import DefinitionInvalid, Table


class PipelineInvalid(DefinitionInvalid):
    """The definition of a pipeline says something that cannot be done; nothing was started."""

    condition = "PIPELINE_INVALID"


class Document(documents.Document):
    """A TOML file with the definition of a pipeline."""

    invalid = PipelineInvalid


__all__ = ["Document", "PipelineInvalid", "Table"]
