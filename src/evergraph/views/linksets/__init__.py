"""Linksets: links between two changing datasets, kept right by matching again only what changed."""

from evergraph.views.linksets.linkset import Linkset, Mode, Run
from evergraph.views.linksets.running import link
from evergraph.views.linksets.view import CatalogueView, Resources

__all__ = ["CatalogueView", "Linkset", "Mode", "Resources", "Run", "link"]
