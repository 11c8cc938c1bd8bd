"""The brokers: one contract for all providers, what they refuse, and what they leave behind (nothing)."""
