"""Calls as events of a timeline, for trace viewers such as Perfetto."""

from vani.render.events.chrome import ChromeEvents
from vani.render.events.perfetto import PerfettoEvents
from vani.render.events.slices import Names, Process

__all__ = ["ChromeEvents", "Names", "PerfettoEvents", "Process"]
