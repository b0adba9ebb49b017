"""Where changes come from: changeset folders, RDF Patch, dataset versions."""
