"""The trial of `verify` by changed files: is a change to be seen by any input, and does `verify` see it?

`PYTHONPATH=. python tests/exportlab/verification/mutant_trial.py [CSV]` prints the table of two hundred, in some minutes.
"""

from __future__ import annotations

import csv
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice, zip_longest
from typing import Any

import torch
from mutant_models import Arguments, Subject, numbers, subjects
from mutants import KINDS, Mutation, mutations
from torch import Tensor

from exportlab import verify
from exportlab.cases import Sample
from exportlab.eager import called_once
from exportlab.exporters import Artifact, OnnxArtifact, export
from exportlab.messages import muffled
from exportlab.outcomes import Outcome
from exportlab.verification.difference import difference_of

DRAWN = 60
RELATIVE = {torch.float16: 2e-2, torch.float32: 1e-3}  # of the largest value of a tensor: by this much it is another tensor
SHAPED: Sequence[Callable[[Tensor], Tensor]] = (
    torch.clone, torch.clone, torch.abs, torch.relu, torch.ones_like, lambda x: x + 3 * x.abs().max(),
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What became of one change: by how many drawn inputs it is told, and what `verify` says with the author's samples and with more.

    `why` is said of one that escapes: `told` (the report names what no sample reaches), `within rounding` (the file answers
    the author's samples otherwise, by less than the tolerance), or `not reached` (it answers them alike).
    """

    model: str
    kind: str
    what: str
    told_by: int
    outcome: str
    advised: str
    remark: str
    why: str = ""

    @property
    def caught(self) -> str:
        """In one word: equivalent, caught, advised (caught with the samples that are asked for) or missed."""
        if not self.told_by:
            return "equivalent"
        if self.outcome != Outcome.OK:
            return "caught"
        return "missed" if self.advised == Outcome.OK else "advised"


class Trial:
    """One model, its file, and inputs at which the file is right, with what it answers there."""

    def __init__(self, name: str, subject: Subject) -> None:
        self.name, self.subject = name, subject
        with muffled():
            artifact = export(subject.exporter, subject.module, subject.samples[0], dynamic_shapes=subject.dynamic_shapes)
        assert isinstance(artifact, OnnxArtifact)
        self.artifact = artifact
        self.known = list(self._known())

    def _known(self) -> Iterator[tuple[Arguments, Any]]:
        chosen = random.Random(self.name)
        given = [*self.subject.samples, *self.subject.advised]
        for _ in range(DRAWN):
            arguments = tuple(drawn(leaf, chosen, self.subject.words) for leaf in chosen.choice(given))
            answer = _answered(self.artifact, arguments)
            if answer is not None and not difference_of(called_once(self.subject.module, Sample(arguments)), answer).problem:
                yield arguments, answer

    def changes(self) -> Iterator[Mutation]:
        """Yield the changes of its file, the kinds in turns."""
        by_kind = mutations(self.artifact.model).values()
        return (change for change in chain.from_iterable(zip_longest(*by_kind)) if change)

    def changed(self, mutation: Mutation) -> OnnxArtifact | None:
        """Return the changed file, None when it does not run on what the author gives."""
        artifact = OnnxArtifact(mutation.applied(self.artifact.model), self.artifact.calling, self.artifact.exporter)
        return None if any(_answered(artifact, sample) is None for sample in self.subject.samples) else artifact

    def verdict(self, mutation: Mutation) -> Verdict | None:
        """Return what becomes of a change, None for one whose file does not run."""
        artifact = self.changed(mutation)
        if artifact is None:
            return None
        told_by = sum(differs(answer, _answered(artifact, arguments)) for arguments, answer in self.known)
        outcome, remark = self._verified(artifact, self.subject.samples)
        advised = outcome if outcome != Outcome.OK else self._verified(artifact, (*self.subject.samples, *self.subject.advised))[0]
        why = self._why(artifact, remark) if told_by and advised == Outcome.OK else ""
        return Verdict(self.name, mutation.kind, mutation.what, told_by, outcome, advised, remark, why)

    def _why(self, artifact: Artifact, remark: str) -> str:
        if "no sample reaches" in remark or "in every sample" in remark:
            return "told"
        answers = ((_answered(self.artifact, sample), _answered(artifact, sample)) for sample in self.subject.samples)
        return "not reached" if all(difference_of(a, b).worst == 0 for a, b in answers) else "within rounding"

    def _verified(self, artifact: Artifact, samples: Sequence[Arguments]) -> tuple[str, str]:
        report = verify(artifact, self.subject.module, list(samples))
        quiet = [check for check in report.checks if not check.failed and check.detail]
        return str(report.outcome), "; ".join(f"{check.name}: {check.detail}" for check in (report.failed or quiet))


def _answered(artifact: Artifact, arguments: Arguments) -> Any:
    """What a file returns, None where the runtime refuses."""
    try:
        return artifact(*arguments)
    except Exception:  # noqa: BLE001 - whatever the runtime raises
        return None


def differs(answer: Any, other: Any) -> bool:
    """Return whether an answer is another one: by the tolerances of `verify`, or by the scale of the tensor."""
    if other is None or difference_of(answer, other).problem:
        return True
    pairs = zip(torch.utils._pytree.tree_leaves(answer), torch.utils._pytree.tree_leaves(other), strict=True)
    return any(_by_scale(a, b) for a, b in pairs if isinstance(a, Tensor) and a.dtype in RELATIVE and a.numel())


def _by_scale(a: Tensor, b: Tensor) -> bool:
    finite = a.isfinite() & b.isfinite()
    apart, size = (torch.where(finite, value.double(), 0.0) for value in (a.double() - b.double(), a))
    return bool(apart.abs().max() > RELATIVE[a.dtype] * size.abs().max())


def drawn(like: Tensor, chosen: random.Random, words: int) -> Tensor:
    """Return other values of the same shape and type: of any scale and sign, sparse, constant, with a special one, masks of any kind."""
    seed = chosen.randrange(2**31)
    if like.dtype == torch.bool:
        return _flags(like, chosen, seed)
    if not like.is_floating_point():
        high = chosen.choice([1, 3, words, words, words])
        made = torch.randint(high, like.shape, generator=torch.Generator().manual_seed(seed))
        return (made + chosen.choice([0, 0, words - high])).to(like.dtype)
    made = numbers(*like.shape, seed=seed).double() * 10 ** chosen.choice([0, chosen.uniform(-2, 2), chosen.uniform(-6, 6)])
    made = chosen.choice(SHAPED)(made)
    if chosen.random() < 0.2:
        made.flatten()[chosen.randrange(made.numel())] = chosen.choice([float("nan"), float("inf"), float("-inf"), 1e4])
    return made.to(like.dtype)


def _flags(like: Tensor, chosen: random.Random, seed: int) -> Tensor:
    share = chosen.choice([0.1, 0.5, 0.9, 1.0])
    if chosen.random() < 0.5:
        return (torch.arange(like.shape[-1]) < share * like.shape[-1]).expand(like.shape).clone()
    return torch.rand(like.shape, generator=torch.Generator().manual_seed(seed)) < share


def told(trial: Trial) -> Iterator[Verdict]:
    """Yield the verdicts on the changes of one model, those that nothing tells apart among them."""
    return (verdict for verdict in map(trial.verdict, trial.changes()) if verdict)


def tried(wanted: int, names: Sequence[str] = ()) -> list[Verdict]:
    """Return verdicts, the models in turns, until `wanted` changes are told apart by some input."""
    ways = [told(Trial(name, subject)) for name, subject in subjects().items() if not names or name in names]
    verdicts: list[Verdict] = []
    in_turns = (verdict for row in zip_longest(*ways) for verdict in row if verdict)
    for verdict in in_turns:
        verdicts.append(verdict)
        if sum(v.told_by > 0 for v in verdicts) == wanted:
            break
    return verdicts


def table(verdicts: Sequence[Verdict], by: str, values: Sequence[str]) -> str:
    """Return how many were caught, of each kind or of each model."""
    words = ("caught", "advised", "missed", "equivalent")
    counts = Counter((getattr(v, by), v.caught) for v in verdicts)
    rows = [(value, *(counts[value, word] for word in words)) for value in values]
    rows.append(("all", *(sum(counts[value, word] for value in values) for word in words)))
    return "\n".join("".join(f"{cell!s:>14}" for cell in row) for row in [(by, *words), *rows])


def main(path: str = "") -> None:
    """Print the tables and what was missed; write all verdicts to a file, if one is named."""
    verdicts = tried(200)
    print(table(verdicts, "kind", KINDS), table(verdicts, "model", list(subjects())), sep="\n\n")
    for v in verdicts:
        if v.caught in ("missed", "advised"):
            print(f"\n{v.caught}: {v.model}, {v.kind}: {v.what} (told by {v.told_by} inputs) {v.why}\n    {v.remark}")
    if path:
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, [*asdict(verdicts[0]), "caught"])
            writer.writeheader()
            writer.writerows(asdict(v) | {"caught": v.caught} for v in verdicts)


if __name__ == "__main__":
    main(*islice(sys.argv, 1, 2))
