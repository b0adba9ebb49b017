"""The engine for volume: relations are Spark DataFrames with a weight column, kept in Delta tables."""
