"""Other values at the sizes of a sample: what takes another branch, reaches a mask or a bound, or passes a threshold; each has a name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree

from ..cases import Sample

FACTORS = {torch.float16: 16.0}  # what keeps most values finite; 1000 for other types
USUAL_SCALE = 11.0  # times a sample: what is no farther from it is not extreme
PARTS = 8  # calls in which integers are spread
LARGEST = 2**30  # of integers that may be doubled
CLOSED = -1e4  # a float mask holds this or less where it hides something
ROUNDED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
Change = Callable[[torch.Tensor], torch.Tensor]
Applies = Callable[[torch.Tensor], bool]
SIGNED: dict[str, Change] = {"": lambda tensor: tensor, "negated": torch.neg, "all positive": torch.abs}


@dataclass(frozen=True)
class Mutation:
    """A named change of every tensor that it applies to.

    Attributes:
        not_finite: it plants what is not finite: only finite answers are held after it.
        extreme: its values are far from any that a model was made for: kernels may be less exact there.
        level: all its numbers are equal.
    """

    name: str
    applies: Applies
    change: Change
    not_finite: bool = False
    extreme: bool = False
    level: bool = False


def mutate_sample(sample: Sample, variations: tuple[Mutation, ...]) -> Iterator[tuple[Mutation, Sample]]:
    """Yield the sample changed by each of these; one that changes nothing is left out."""
    for variation in variations:
        changed = _apply_variation(sample, variation)
        if not _same(sample, changed):
            yield variation, changed


def _apply_variation(sample: Sample, variation: Mutation) -> Sample:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        dense = tensor.numel() and not tensor.is_meta and tensor.layout == torch.strided
        return variation.change(tensor) if dense and variation.applies(tensor) else tensor

    return map_tensors(sample, change)


def map_tensors(sample: Sample, change: Change) -> Sample:
    """Return the sample with every tensor changed; what was one tensor stays one."""
    seen: dict[int, torch.Tensor] = {}
    tensors = [leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor)]
    for tensor in tensors:
        seen.setdefault(id(tensor), change(tensor))
    return Sample(*pytree.tree_map_only(torch.Tensor, lambda tensor: seen[id(tensor)], (sample.args, dict(sample.kwargs))))


def mapped_leaves(sample: Sample, change: Callable[[int, torch.Tensor], torch.Tensor]) -> Sample:
    """Return the sample with every tensor changed, by the number of its leaf; what was one tensor stays one."""
    leaves, spec = pytree.tree_flatten((sample.args, dict(sample.kwargs)))
    seen: dict[int, torch.Tensor] = {}
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and id(leaf) not in seen:
            seen[id(leaf)] = change(place, leaf)
    return Sample(*pytree.tree_unflatten([seen.get(id(leaf), leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec))


def _same(a: Sample, b: Sample) -> bool:
    pairs = zip(a.leaves(), b.leaves(), strict=True)
    return all(x is y or torch.equal(x, y) for x, y in pairs if isinstance(x, torch.Tensor))


def is_additive_mask(tensor: torch.Tensor) -> bool:
    """Whether this is a float mask that is added to scores: nothing but 0 where it shows, and a very negative number where it hides."""
    hides = tensor <= CLOSED if tensor.dtype in ROUNDED else torch.zeros(())
    return bool(hides.any()) and bool((hides | (tensor == 0)).all())


def _floats(tensor: torch.Tensor) -> bool:
    return (tensor.dtype in ROUNDED or tensor.is_complex()) and not is_additive_mask(tensor)


def _real(tensor: torch.Tensor) -> bool:
    return tensor.dtype in ROUNDED and not is_additive_mask(tensor)


def _integers(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def _small(tensor: torch.Tensor) -> bool:
    return _integers(tensor) and int(tensor.abs().max()) <= LARGEST


def _masks(tensor: torch.Tensor) -> bool:
    return tensor.dtype == torch.bool or is_additive_mask(tensor)


def _make_scaling(power: int) -> Change:
    """Times a factor of the dtype to this power."""
    return lambda tensor: tensor * FACTORS.get(tensor.dtype, 1000.0) ** power


def _make_planting(value: Callable[[torch.Tensor], float]) -> Change:
    """With this at one position, in the middle."""

    def plant(tensor: torch.Tensor) -> torch.Tensor:
        planted = tensor.clone(memory_format=torch.contiguous_format)
        planted.view(-1)[tensor.numel() // 2] = value(tensor)
        return planted

    return plant


def _large(tensor: torch.Tensor) -> float:
    return float(_make_scaling(1)(tensor.abs().nan_to_num(posinf=1.0).amax().clamp(min=1.0)))


def _spread(tensor: torch.Tensor) -> torch.Tensor:
    """Each element times a factor of its own, from the least to the greatest, in a shuffled order."""
    decades = math.log10(FACTORS.get(tensor.dtype, 1000.0))
    factors = torch.logspace(-decades, decades, tensor.numel(), dtype=torch.float64)
    return tensor * shuffle_values(factors).reshape(tensor.shape).to(tensor)


def shuffle_values(values: torch.Tensor) -> torch.Tensor:
    """Return the values, of one axis, in an order that is always the same."""
    return values[torch.randperm(len(values), generator=torch.Generator().manual_seed(0))]


def _roll_values(tensor: torch.Tensor) -> torch.Tensor:
    """Along by one, in the order of memory; a single flag is flipped."""
    return ~tensor if tensor.dtype == torch.bool and tensor.numel() == 1 else tensor.roll(1)


def _open_mask(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(tensor) if tensor.dtype != torch.bool else torch.ones_like(tensor)


def _close_mask(tensor: torch.Tensor) -> torch.Tensor:
    return torch.full_like(tensor, float(tensor.min())) if tensor.dtype != torch.bool else torch.zeros_like(tensor)


def _flags(tensor: torch.Tensor) -> bool:
    """A mask, or integers that are one: 0 and 1, and a 1 among them; along an axis of which something is left when its end is flipped."""
    if not tensor.dim() or tensor.shape[-1] < 2:
        return False
    return _masks(tensor) or (_integers(tensor) and int(tensor.min()) >= 0 and int(tensor.max()) == 1)


def _flipped_at_the_end(tensor: torch.Tensor) -> torch.Tensor:
    """What hides the last place shows it, and the other way round."""
    flipped = tensor.clone(memory_format=torch.contiguous_format)
    last = tensor[..., -1]
    if tensor.dtype == torch.bool:
        flipped[..., -1] = ~last
    elif is_additive_mask(tensor):
        flipped[..., -1] = torch.where(last == 0, tensor.min(), torch.zeros_like(last))
    else:
        flipped[..., -1] = 1 - last
    return flipped


FLIPPED = Mutation("masks flipped at the end", _flags, _flipped_at_the_end)
USUAL = (
    Mutation("negated", _floats, torch.neg),
    Mutation("scaled up", _floats, _make_scaling(1), extreme=True),
    Mutation("scaled down", _floats, _make_scaling(-1), extreme=True),
    Mutation("zeros", _floats, torch.zeros_like, level=True),
    Mutation("spread over scales", _floats, _spread, extreme=True),
    Mutation("one large element", _real, _make_planting(_large), extreme=True),
    Mutation("one NaN", _real, _make_planting(lambda tensor: torch.nan), not_finite=True),
    Mutation("one infinity", _real, _make_planting(lambda tensor: torch.inf), not_finite=True),
    Mutation("integers moved along", _integers, _roll_values),
    Mutation("integers at their least", _integers, lambda tensor: torch.full_like(tensor, int(tensor.min())), level=True),
    Mutation("integers at their greatest", _integers, lambda tensor: torch.full_like(tensor, int(tensor.max())), level=True),
    Mutation("integers zero", _integers, torch.zeros_like, level=True),
    Mutation("integers doubled", _small, lambda tensor: tensor * 2),
    Mutation("masks moved along", _masks, _roll_values),
    Mutation("masks all true", _masks, _open_mask),
    Mutation("masks all false", _masks, _close_mask),
    FLIPPED,
)
#: Tried at sizes that were not exported with: masks often hide nothing there, and what is done with what they hide may hang on a size.
ELSEWHERE = (FLIPPED,)
#: Tried where a condition came out the same in all others.
FURTHER = (
    Mutation("scaled up twice", _floats, _make_scaling(2), extreme=True),
    Mutation("scaled up four times", _real, _make_scaling(4), extreme=True),
    Mutation("scaled down twice", _floats, _make_scaling(-2), extreme=True),
    Mutation("scaled down four times", _floats, _make_scaling(-4), extreme=True),
    Mutation("ten times", _floats, lambda tensor: tensor * 10),
    Mutation("a tenth", _floats, lambda tensor: tensor / 10),
    Mutation("all ones", _real, torch.ones_like),
    Mutation("all positive", _real, torch.abs),
    Mutation("all negative", _real, lambda tensor: -tensor.abs()),
    Mutation("one large negative element", _real, _make_planting(lambda tensor: -_large(tensor)), extreme=True),
    Mutation("all NaN", _real, lambda tensor: torch.full_like(tensor, torch.nan), not_finite=True),
    Mutation("all infinite", _real, lambda tensor: torch.full_like(tensor, torch.inf), not_finite=True),
    Mutation("integers negated", _integers, torch.neg),
)


def integers_at(value: int, tensor: torch.Tensor | None = None) -> Mutation:
    """Return the change of all integers, or of those in one tensor, to this one."""
    applies = _integers if tensor is None else lambda other: other is tensor
    return Mutation(f"integers all {value}", applies, lambda old: torch.full_like(old, value))


def integers_of(sample: Sample) -> list[torch.Tensor]:
    """Return its tensors of integers, but those that hold nothing else than 0 and 1, as masks do."""
    tensors = {id(leaf): leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor)}
    found = [tensor for tensor in tensors.values() if tensor.numel() and _integers(tensor)]
    return [tensor for tensor in found if int(tensor.max()) > 1 or int(tensor.min()) < 0]


def integers_up_to(value: int, tensor: torch.Tensor) -> Mutation:
    """Return the change of one tensor of integers to numbers that this is the largest of."""
    capped = _make_planting(lambda _: value)
    return Mutation(f"integers up to {value}", lambda other: other is tensor, lambda old: capped(old.clamp(max=value)))


def times(scale: float, sign: str = "") -> Mutation:
    """Return the change of all floats to themselves times a scale: as they are, `negated`, or `all positive`."""
    extreme = not 1 / USUAL_SCALE <= scale <= USUAL_SCALE
    return Mutation(f"{sign} times {scale:.3g}".strip(), _floats, lambda tensor: SIGNED[sign](tensor) * scale, extreme=extreme)


def reach_of(sample: Sample) -> float:
    """Return the factor by which its floats are scaled up, the least of those of their types; 1 where there are none."""
    floats = [leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor) and leaf.numel() and _floats(leaf)]
    return min((FACTORS.get(leaf.dtype, 1000.0) for leaf in floats), default=1.0)


def integers_spread(greatest: Mapping[int, int]) -> list[Mutation]:
    """Return changes of each tensor of integers to the numbers from 0 to its greatest, by `id`, in a shuffled order.

    So many that each number is there once, but no more than `PARTS`.
    """
    return [Mutation(f"integers spread {part + 1}", lambda t: id(t) in greatest, _part(part, greatest)) for part in range(PARTS)]


def _part(part: int, greatest: Mapping[int, int]) -> Change:
    def spread(tensor: torch.Tensor) -> torch.Tensor:
        count = min(greatest[id(tensor)] + 1, PARTS * tensor.numel())
        if part and part * tensor.numel() >= count:
            return tensor
        numbers = shuffle_values(torch.linspace(0, greatest[id(tensor)], count, dtype=torch.float64).round())
        places = (torch.arange(tensor.numel()) + part * tensor.numel()) % count
        return numbers[places].reshape(tensor.shape).to(tensor)

    return spread


def integers_at_most(greatest: Mapping[int, int]) -> Mutation:
    """Return the change of each tensor of integers to its greatest, by `id`."""
    return Mutation("integers large", lambda tensor: id(tensor) in greatest, lambda old: torch.full_like(old, greatest[id(old)]))


def sizes_of(sample: Sample) -> list[int]:
    """Return all sizes of its tensors, each once."""
    return sorted({size for leaf in sample.leaves() if isinstance(leaf, torch.Tensor) for size in leaf.shape})


def a_rounding_away(sample: Sample, seed: int) -> Sample:
    """Return the sample with every finite float moved by up to two roundings of its type; a zero by two of one."""
    generator = torch.Generator().manual_seed(seed)

    def nudged(tensor: torch.Tensor) -> torch.Tensor:
        if not _real(tensor):
            return tensor
        noise = torch.rand(tensor.shape, generator=generator).to(tensor) * 2 - 1
        size = torch.where(tensor == 0, torch.ones_like(tensor), tensor.abs())
        return torch.where(tensor.isfinite(), tensor + 2 * torch.finfo(tensor.dtype).eps * noise * size, tensor)

    return map_tensors(sample, nudged)
