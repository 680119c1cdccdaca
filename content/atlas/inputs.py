"""Inputs for a model of transformers: the first of a few forms that its `forward` names and that runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .configured import NotBuilt

Make = Callable[[int, int, torch.Generator], Tensor]
HOP = 400  # samples of sound for each step of a sequence
FRAMES = 128


@dataclass(frozen=True)
class Form:
    """One way to call a model: by name what makes each argument."""

    arguments: dict[str, Make]

    def inputs(self, batch: int, seq: int) -> dict[str, Tensor]:
        """Return the arguments at these sizes, always the same values."""
        generator = torch.Generator().manual_seed(100 * batch + seq)
        return {name: make(batch, seq, generator) for name, make in self.arguments.items()}


def form_that_runs(model: nn.Module, kind: str, batch: int, seq: int) -> Form:
    """Return the first form that the model takes at these sizes.

    Raises:
        NotBuilt: it takes none; the message names what `forward` asks for, and the error of the first form.
    """
    takes = inspect.signature(model.forward).parameters
    said: list[str] = []
    for arguments in forms(model):
        form = Form({name: make for name, make in arguments.items() if name in takes})
        if not form.arguments:
            continue
        try:
            model(**form.inputs(batch, seq))
        except Exception as error:  # noqa: BLE001 - whatever a foreign model raises, another form may do
            said.append(f"{', '.join(form.arguments)}: {type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}")
        else:
            return form
    raise NotBuilt(
        f"no inputs were found for {kind}, forward({', '.join(list(takes)[:6])}); {said[0] if said else 'none of them is known'}"
    )


def forms(model: nn.Module) -> Iterator[dict[str, Make]]:
    """Yield the forms, those with the model's main input first."""
    config: Any = model.config
    text = {"input_ids": tokens(config), "attention_mask": ones}
    both = {**text, "decoder_input_ids": tokens(config)}
    pictures = [{"pixel_values": pixels(config, size)} for size in image_sizes(config)]
    plain = [text if not getattr(config, "is_encoder_decoder", False) else both, *pictures, *sounds(config), *videos(config)]
    main = getattr(model, "main_input_name", "input_ids")
    yield from sorted(plain, key=lambda form: main not in form)  # stable: the order above among equals
    yield from ({**text, **other} for other in (*pictures, *sounds(config), *videos(config)))
    yield from ({**other, "decoder_input_ids": tokens(config)} for other in sounds(config))


def tokens(config: Any) -> Make:
    """Return what makes token ids, without those that mean something special."""
    sizes = (getattr(part, "vocab_size", None) for part in (config, getattr(config, "text_config", None)))
    high = max(4, min(60, next((size for size in sizes if isinstance(size, int)), 32)))
    return lambda batch, seq, generator: torch.randint(3, high, (batch, seq), generator=generator)


def ones(batch: int, seq: int, _: torch.Generator) -> Tensor:
    """Return a mask that masks nothing."""
    return torch.ones(batch, seq, dtype=torch.int64)


def normal(*shape: int) -> Make:
    """Return what makes numbers of this shape behind the batch."""
    return lambda batch, _, generator: torch.randn(batch, *shape, generator=generator)


def pixels(config: Any, size: int) -> Make:
    """Return what makes an image."""
    return normal(channels(config), size, size)


def channels(config: Any) -> int:
    """Return how many colours the images of a model have."""
    return next((n for n in of_parts(config, "num_channels") if isinstance(n, int)), 3)


def image_sizes(config: Any) -> list[int]:
    """Return the sizes of images to try: what the configuration says, then usual ones."""
    said = [size[0] if isinstance(size, (list, tuple)) and size else size for size in of_parts(config, "image_size")]
    return list(dict.fromkeys([*(size for size in said if isinstance(size, int)), 64, 224]))


def of_parts(config: Any, name: str) -> Iterator[Any]:
    """Yield a field of a configuration, and of its parts that may have it."""
    for part in (config, *(getattr(config, part, None) for part in ("vision_config", "backbone_config", "audio_config"))):
        yield getattr(part, name, None)


def sounds(config: Any) -> list[dict[str, Make]]:
    """Return the forms of a sound: the wave, with channel or without, and its bands, before or behind the frames."""
    bands = next((n for name in ("num_mel_bins", "feature_size") for n in of_parts(config, name) if isinstance(n, int)), 80)

    def wave(*channel: int) -> Make:
        return lambda batch, seq, generator: torch.randn(batch, *channel, seq * HOP, generator=generator)

    features = [{"input_features": normal(bands, FRAMES)}, {"input_features": normal(FRAMES, bands)}]
    return [{"input_values": wave()}, {"input_values": wave(1)}, *features]


def videos(config: Any) -> list[dict[str, Make]]:
    """Return the forms of a video, by either of its two names."""
    frames = next((n for n in of_parts(config, "num_frames") if isinstance(n, int)), 4)
    made = [normal(frames, channels(config), size, size) for size in image_sizes(config)[:1]]
    return [{name: make} for make in made for name in ("pixel_values", "pixel_values_videos")]
