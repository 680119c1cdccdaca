"""Generate other values at the sizes of a sample, which may reach another branch, a mask, a bound or a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from fx2onnx.compat import trees as pytree

from ..cases import Sample

FACTORS = {torch.float16: 16.0}  # scale factor that keeps most values finite; 1000 for other dtypes
USUAL_SCALE = 11.0  # values up to this multiple of a sample are not extreme
PARTS = 8  # maximum number of calls over which integers are spread
LARGEST = 2**30  # largest integer that may be doubled
CLOSED = -1e4  # a float mask has this value or less where it hides a position
ROUNDED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
Change = Callable[[torch.Tensor], torch.Tensor]
Applies = Callable[[torch.Tensor], bool]
SIGNED: dict[str, Change] = {"": lambda tensor: tensor, "negated": torch.neg, "all positive": torch.abs}


@dataclass(frozen=True)
class Mutation:
    """A named change of all tensors that it applies to.

    Attributes:
        not_finite: it inserts NaN or infinity; only finite outputs are compared afterwards.
        extreme: its values are far from any that a model is made for, so kernels may be less exact.
        level: all its numbers are equal.
    """

    name: str
    applies: Applies
    change: Change
    not_finite: bool = False
    extreme: bool = False
    level: bool = False


def mutate_sample(sample: Sample, variations: tuple[Mutation, ...]) -> Iterator[tuple[Mutation, Sample]]:
    """Yield the sample with each of these changes, except changes without an effect."""
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
    """Change each tensor of a sample; a repeated tensor stays one tensor."""
    seen: dict[int, torch.Tensor] = {}
    tensors = [leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor)]
    for tensor in tensors:
        seen.setdefault(id(tensor), change(tensor))
    return Sample(*pytree.tree_map_only(torch.Tensor, lambda tensor: seen[id(tensor)], (sample.args, dict(sample.kwargs))))


def mapped_leaves(sample: Sample, change: Callable[[int, torch.Tensor], torch.Tensor]) -> Sample:
    """Change each tensor of a sample by the index of its leaf; a repeated tensor stays one tensor."""
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
    """Whether this is a float mask that is added to scores: 0, or a very negative number where it hides a position."""
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
    """Return a change that multiplies by the dtype's factor to this power."""
    return lambda tensor: tensor * FACTORS.get(tensor.dtype, 1000.0) ** power


def _make_planting(value: Callable[[torch.Tensor], float]) -> Change:
    """Return a change that sets the middle element to this value."""

    def plant(tensor: torch.Tensor) -> torch.Tensor:
        planted = tensor.clone(memory_format=torch.contiguous_format)
        planted.view(-1)[tensor.numel() // 2] = value(tensor)
        return planted

    return plant


def _large(tensor: torch.Tensor) -> float:
    return float(_make_scaling(1)(tensor.abs().nan_to_num(posinf=1.0).amax().clamp(min=1.0)))


def _spread(tensor: torch.Tensor) -> torch.Tensor:
    """Multiply each element by its own factor, spread over the scales in a shuffled order."""
    decades = math.log10(FACTORS.get(tensor.dtype, 1000.0))
    factors = torch.logspace(-decades, decades, tensor.numel(), dtype=torch.float64)
    return tensor * shuffle_values(factors).reshape(tensor.shape).to(tensor)


def shuffle_values(values: torch.Tensor) -> torch.Tensor:
    """Shuffle a one-dimensional tensor reproducibly."""
    return values[torch.randperm(len(values), generator=torch.Generator().manual_seed(0))]


def _roll_values(tensor: torch.Tensor) -> torch.Tensor:
    """Roll the elements by one in memory order; flip a single flag."""
    return ~tensor if tensor.dtype == torch.bool and tensor.numel() == 1 else tensor.roll(1)


def _open_mask(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(tensor) if tensor.dtype != torch.bool else torch.ones_like(tensor)


def _close_mask(tensor: torch.Tensor) -> torch.Tensor:
    return torch.full_like(tensor, float(tensor.min())) if tensor.dtype != torch.bool else torch.zeros_like(tensor)


def _flags(tensor: torch.Tensor) -> bool:
    """Whether this is a mask, or integers 0 and 1 with at least one 1; the last axis must have at least two elements."""
    if not tensor.dim() or tensor.shape[-1] < 2:
        return False
    return _masks(tensor) or (_integers(tensor) and int(tensor.min()) >= 0 and int(tensor.max()) == 1)


def _flipped_at_the_end(tensor: torch.Tensor) -> torch.Tensor:
    """Flip the mask at the last position."""
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
#: Used at sizes other than the export's: masks often hide nothing there, and the handling of hidden positions may depend on a size.
ELSEWHERE = (FLIPPED,)
#: Used if a condition had the same result for all other values.
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
    """Return a change that sets all integers, or those of one tensor, to this value."""
    applies = _integers if tensor is None else lambda other: other is tensor
    return Mutation(f"integers all {value}", applies, lambda old: torch.full_like(old, value))


def integers_of(sample: Sample) -> list[torch.Tensor]:
    """Return the integer tensors, except those that contain only 0 and 1, as masks do."""
    tensors = {id(leaf): leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor)}
    found = [tensor for tensor in tensors.values() if tensor.numel() and _integers(tensor)]
    return [tensor for tensor in found if int(tensor.max()) > 1 or int(tensor.min()) < 0]


def integers_up_to(value: int, tensor: torch.Tensor) -> Mutation:
    """Return a change that clamps one integer tensor to this maximum, and sets one element to it."""
    capped = _make_planting(lambda _: value)
    return Mutation(f"integers up to {value}", lambda other: other is tensor, lambda old: capped(old.clamp(max=value)))


def times(scale: float, sign: str = "") -> Mutation:
    """Return a change that multiplies all floats by a scale, after an optional change of sign: `negated` or `all positive`."""
    extreme = not 1 / USUAL_SCALE <= scale <= USUAL_SCALE
    return Mutation(f"{sign} times {scale:.3g}".strip(), _floats, lambda tensor: SIGNED[sign](tensor) * scale, extreme=extreme)


def reach_of(sample: Sample) -> float:
    """Return the scale factor for the sample's floats, the smallest of their dtypes; 1 without floats."""
    floats = [leaf for leaf in sample.leaves() if isinstance(leaf, torch.Tensor) and leaf.numel() and _floats(leaf)]
    return min((FACTORS.get(leaf.dtype, 1000.0) for leaf in floats), default=1.0)


def integers_spread(greatest: Mapping[int, int]) -> list[Mutation]:
    """Return changes that spread each integer tensor over 0 to its greatest accepted value, by `id`, in a shuffled order.

    There are enough changes to use each number once, but at most `PARTS`.
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
    """Return a change that sets each integer tensor to its greatest accepted value, by `id`."""
    return Mutation("integers large", lambda tensor: id(tensor) in greatest, lambda old: torch.full_like(old, greatest[id(old)]))


def sizes_of(sample: Sample) -> list[int]:
    """Return the distinct sizes of all tensors."""
    return sorted({size for leaf in sample.leaves() if isinstance(leaf, torch.Tensor) for size in leaf.shape})


def a_rounding_away(sample: Sample, seed: int) -> Sample:
    """Change each finite float by up to two roundings of its dtype; a zero by two roundings of 1."""
    generator = torch.Generator().manual_seed(seed)

    def nudged(tensor: torch.Tensor) -> torch.Tensor:
        if not _real(tensor):
            return tensor
        noise = torch.rand(tensor.shape, generator=generator).to(tensor) * 2 - 1
        size = torch.where(tensor == 0, torch.ones_like(tensor), tensor.abs())
        return torch.where(tensor.isfinite(), tensor + 2 * torch.finfo(tensor.dtype).eps * noise * size, tensor)

    return map_tensors(sample, nudged)
