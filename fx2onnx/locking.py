"""The lock of what changes torch for all threads while it lasts: its captures, and what it knows as containers."""

from __future__ import annotations

import threading

CAPTURE_LOCK = threading.RLock()  # torch.export puts its own in the place of nn.Module.__call__
