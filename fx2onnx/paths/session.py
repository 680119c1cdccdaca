"""What all runs of one capture share: the module, and the plan that restarts refine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import nn

from ..trace.path_decisions import ConstantPolicy, PathDecisions, Pretended
from ..trace.plan import Plan
from ..trace.refusal import Restart, TraceUnsupported


@dataclass
class Session:
    """One capture of a module.

    Attributes:
        constant_policy: whether what follows from weights alone has one outcome.
        plan: how the module is run from now on.
    """

    model: nn.Module
    constant_policy: ConstantPolicy = field(default_factory=ConstantPolicy)
    plan: Plan = field(default_factory=Plan)

    def decisions(self, given: Sequence[bool] = (), pretended: Pretended | None = None) -> PathDecisions:
        """Return the decisions of a run whose first outcomes of tests are these."""
        return PathDecisions(given, self.plan, self.constant_policy, pretended)

    def refine(self, error: Restart) -> None:
        """Refine the plan as a restart asks.

        Raises:
            TraceUnsupported: the plan is refined already, so a further run would end in the same way.
        """
        refined = error.refine(self.plan)
        if refined is self.plan:
            raise TraceUnsupported(str(error)) from error
        self.plan = refined
