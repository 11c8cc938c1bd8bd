"""Paths, a module a family. Each translates, asks the service, and translates back."""
