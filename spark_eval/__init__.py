"""Thousands to millions of harness runs as a Spark job, and what they say."""
