"""Writes models for other programs and for later: GGUF files and sidecars. Sources are only read."""
