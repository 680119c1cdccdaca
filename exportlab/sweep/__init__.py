"""Run cases × exporters × modes and record the results. Each task runs in a separate process, on this machine or on a cluster."""

from __future__ import annotations

from ..defaults import MODES
from .process_worker import Limits
from .runner import SweepError, sweep
from .task import Task, grid

__all__ = ["MODES", "Limits", "SweepError", "Task", "grid", "sweep"]
