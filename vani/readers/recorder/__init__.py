"""Recorder traces: layouts 2.3 to 3.0 and the combined files of 2025-26."""
