"""Convolutions, pooling, resizing, padding, patches. Complete image models are in vision."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exportlab.cases import Declaration, case
from exportlab.specs import tensor

IMAGE = {"batch": (2, 3, 1, 0), "height": (8, 11, 7, 12)}
IMAGES = tensor("batch", 3, "height", 6)


@case(dims={"batch": (2, 3, 1, 0), "length": (12, 17, 1, 9)}, topics=("convolution", "layers"))
def conv1d_dilated() -> Declaration:
    """A dilated, grouped and causal convolution with padding on one side: does the length stay the same?"""
    return nn.Sequential(nn.ConstantPad1d((6, 0), 0.5), nn.Conv1d(4, 6, 3, dilation=3, groups=2)), (tensor("batch", 4, "length"),)


@case(dims=IMAGE, topics=("convolution", "layers"))
def depthwise_separable() -> Declaration:
    """One filter per channel, then a 1×1 convolution: are groups and strides kept?"""
    return nn.Sequential(nn.Conv2d(3, 6, 3, stride=(2, 1), groups=3), nn.ReLU6(), nn.Conv2d(6, 4, 1, bias=False)), (IMAGES,)


@case(dims={"batch": (2, 3, 1, 0), "depth": (5, 7, 1, 4)}, topics=("convolution", "layers"))
def conv3d_of_clip() -> Declaration:
    """A video clip of dynamic length with convolution and pooling in space and time: are 3D operators exported?"""
    layers = (nn.Conv3d(2, 4, (1, 3, 3), padding=(0, 1, 1)), nn.AvgPool3d((1, 2, 2)), nn.AdaptiveAvgPool3d((1, 1, 2)))
    return nn.Sequential(*layers), (tensor("batch", 2, "depth", 4, 4),)


@case(dims=IMAGE, topics=("convolution", "layers"))
def transposed_convolutions() -> Declaration:
    """A decoder doubles the height, with an extra row by `output_padding`: is it added at the end?"""
    wide = nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1)
    return nn.Sequential(wide, nn.ConvTranspose2d(4, 4, 2, stride=(3, 2), groups=2, dilation=2, bias=False)), (IMAGES,)


@case(dims=IMAGE, topics=("convolution", "dynamic shapes"))
def transposed_to_a_size() -> Declaration:
    """`output_size` of a transposed convolution comes from another tensor: does it follow that tensor?"""

    class Unshrunk(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1)

        def forward(self, x: Tensor) -> Tensor:
            return self.up(self.down(x), output_size=x.shape[2:]) + x

    return Unshrunk(), (IMAGES,)


@case(dims=IMAGE, topics=("convolution", "padding"))
def same_padding() -> Declaration:
    """`padding="same"` with an even kernel pads one more at one end: at the right end?"""
    return nn.Conv2d(3, 4, (4, 3), padding="same", dilation=(1, 2)), (IMAGES,)


@case(dims=IMAGE, topics=("convolution", "padding"))
def padding_modes() -> Declaration:
    """Convolutions with reflect, replicate and circular padding: is any of them padded with zeros?"""
    modes = ("reflect", "replicate", "circular")
    return nn.Sequential(*(nn.Conv2d(3, 3, 3, padding=(2, 1), padding_mode=mode) for mode in modes)), (IMAGES,)


@case(dims={"batch": (2, 3, 1), "length": (12, 17, 1, 9)}, topics=("padding", "dynamic shapes"))
def padded_to_a_multiple() -> Declaration:
    """Padded to a multiple of eight, cut into windows, reflected: is the padding computed at run time?"""

    class Windows(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            missing = -x.shape[-1] % 8
            return F.pad(F.pad(x, (0, missing)), (2, 2), mode="reflect").unfold(-1, 4, 4)

    return Windows(), (tensor("batch", "length"),)


@case(dims=IMAGE, topics=("padding",))
def pads_that_crop() -> Declaration:
    """Negative padding crops, also along the dynamic axis, and a constant fills: is the sign handled?"""

    class Cropped(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return F.pad(x, (1, -2, -1, 2), value=0.5), F.pad(x, (2, 1, 1, 2), mode="circular")

    return Cropped(), (IMAGES,)


@case(dims={"batch": (2, 3, 1)}, topics=("convolution",))
def filters_from_input() -> Declaration:
    """Filters are an input, one per image, applied as groups: may a weight be computed?"""

    class Filtered(nn.Module):
        def forward(self, x: Tensor, filters: Tensor) -> Tensor:
            return F.conv2d(x.flatten(0, 1)[None], filters[:, None], padding=1, groups=x.shape[0] * x.shape[1]).unflatten(1, (-1, 1))

    return Filtered(), (tensor("batch", 1, 6, 6), tensor("batch", 3, 3))


@case(dims=IMAGE, topics=("resize", "dynamic shapes"))
def nearest_by_factor() -> Declaration:
    """Nearest-neighbour resizing by a factor, once fractional, once exact: is the same pixel chosen?"""

    class Nearest(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            one, other = F.interpolate(x, scale_factor=2.0), F.interpolate(x, scale_factor=(1.5, 0.7))
            return one, other, F.interpolate(x, scale_factor=1.5, mode="nearest-exact")

    return Nearest(), (IMAGES,)


@case(dims=IMAGE, topics=("resize", "dynamic shapes"))
def bilinear_to_a_size() -> Declaration:
    """A small map is resized to the size of a larger one and added: does it follow the larger one?"""

    class Pyramid(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            small = F.avg_pool2d(x, 2)
            return x + F.interpolate(small, size=x.shape[2:], mode="bilinear")

    return Pyramid(), (IMAGES,)


@case(dims=IMAGE, topics=("resize", "silence"))
def bilinear_variants() -> Declaration:
    """Bilinear resizing with aligned corners, a given factor, or a recomputed factor: are all three grids right?"""

    class Variants(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            aligned = F.interpolate(x, size=(9, 9), mode="bilinear", align_corners=True)
            given, again = (F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=flag) for flag in (None, True))
            return aligned, given, again

    return Variants(), (IMAGES,)


@case(dims=IMAGE, topics=("resize", "silence"))
def antialiased() -> Declaration:
    """Bicubic and bilinear downscaling with `antialias=True`: are the coefficients the same?"""

    class Antialiased(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            small = (F.interpolate(x, size=(5, 4), mode=mode, antialias=True) for mode in ("bilinear", "bicubic"))
            return *small, F.interpolate(x, scale_factor=2.0, mode="bicubic")

    return Antialiased(), (IMAGES,)


@case(dims={"batch": (2, 3, 1, 0), "length": (6, 9, 1, 4)}, topics=("resize", "layers"))
def resized_in_one_and_three_axes() -> Declaration:
    """Linear resizing along one axis and trilinear along three: do batch and channels stay unchanged?"""

    class OneAndThree(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            one = F.interpolate(x.flatten(2), scale_factor=2.0, mode="linear")
            return one, F.interpolate(x, size=(x.shape[2] * 2, 3, 5), mode="trilinear", align_corners=True)

    return OneAndThree(), (tensor("batch", 2, "length", 2, 3),)


@case(dims=IMAGE, topics=("pooling", "dynamic shapes"))
def adaptive_pools() -> Declaration:
    """Adaptive pooling to three rows that don't divide the height: are the windows those of the current size?"""

    class Adaptive(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_max_pool2d(x, (3, None))

    return Adaptive(), (IMAGES,)


@case(dims=IMAGE, topics=("pooling", "indexing"))
def max_pool_with_indices() -> Declaration:
    """Max pooling with indices, then unpooling: are the indices counted within a plane?"""

    class Unpooled(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            top, where = F.max_pool2d(x, 2, return_indices=True)
            return where, F.max_unpool2d(top, where, 2, output_size=x.shape[2:])

    return Unpooled(), (IMAGES,)


@case(dims=IMAGE, topics=("pooling",))
def max_pool_dilated() -> Declaration:
    """Dilated max pooling with padding and `ceil_mode`: is the number of rows right?"""
    return nn.Sequential(nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), nn.MaxPool2d((2, 1), 1, dilation=(2, 1))), (IMAGES,)


@case(dims=IMAGE, topics=("pooling", "silence"))
def average_pool_divisor() -> Declaration:
    """`divisor_override` replaces the number of pixels as divisor: is it used?"""
    return nn.AvgPool2d(3, divisor_override=2), (IMAGES,)


@case(dims=IMAGE, topics=("pooling", "silence"))
def average_pool_borders() -> Declaration:
    """At the edge, a window is partly padding and partly outside it: is the divisor right?"""

    class Borders(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            counts = (F.avg_pool2d(x, 3, 2, 1, ceil_mode=up, count_include_pad=pad) for up in (False, True) for pad in (False, True))
            return *counts, F.lp_pool2d(x, 2.0, 2)

    return Borders(), (IMAGES,)


@case(dims={"batch": (2, 3, 1), "height": (8, 11, 7, 12)}, topics=("reshape", "layers"))
def pixel_shuffles() -> Declaration:
    """Pixel shuffle and unshuffle, which don't commute: are they in the right order?"""

    class Shuffles(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.Conv2d(3, 12, 1)

        def forward(self, x: Tensor) -> Tensor:
            large = F.pixel_shuffle(self.wide(x), 2)
            return F.channel_shuffle(F.pixel_unshuffle(large.flip(2), 2), 3)

    return Shuffles(), (IMAGES,)


@case(dims=IMAGE, topics=("reshape", "dynamic shapes"))
def patches_and_back() -> Declaration:
    """Overlapping patches are extracted, scaled and summed again: is each pixel in its position?"""

    class Patches(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            patches = F.unfold(x, 3, padding=1)
            scale = torch.arange(27.0)[:, None] / 27
            return F.fold(patches * scale, x.shape[2:], 3, padding=1)

    return Patches(), (IMAGES,)


@case(dims={"batch": (2, 3, 1), "height": (8, 11, 7, 12)}, topics=("resize", "layers"))
def spatial_transformer() -> Declaration:
    """An image is sampled with a grid rotated by its content, once out of bounds: are the right pixels used?"""

    class Turned(nn.Module):
        def forward(self, x: Tensor, angle: Tensor) -> Tensor:
            row = torch.stack([angle.cos(), -angle.sin(), angle / 4], -1)
            grid = F.affine_grid(torch.stack([row, row.flip(-1)], 1), list(x.shape), align_corners=False)
            modes = (("bilinear", "zeros"), ("nearest", "border"), ("bilinear", "reflection"))
            return torch.cat([F.grid_sample(x, grid, mode, padding, align_corners=False) for mode, padding in modes])

    return Turned(), (IMAGES, tensor("batch"))


@case(dims={"height": (8, 11, 7, 12)}, topics=("convolution", "pooling"))
def image_without_batch() -> Declaration:
    """An image without a batch axis through convolution and pooling: does the output have three axes?"""
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.ConvTranspose2d(4, 2, 2)), (tensor(3, "height", 6),)


@case(dims=IMAGE, topics=("convolution", "layout"))
def channels_last() -> Declaration:
    """A channels-last image is permuted, also in memory: is eager's memory layout left out of the export?"""

    class ChannelsLast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)

        def forward(self, x: Tensor) -> Tensor:
            y = self.conv(x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last))
            return y.permute(0, 2, 3, 1).flatten(1, 2)

    return ChannelsLast(), (tensor("batch", "height", 6, 3),)
