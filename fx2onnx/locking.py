"""A lock for everything that changes torch for all threads: captures, and registrations of pytree nodes."""

from __future__ import annotations

import threading

CAPTURE_LOCK = threading.RLock()  # torch.export replaces nn.Module.__call__
