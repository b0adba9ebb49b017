"""What is derived from a dataset and kept up to date."""
