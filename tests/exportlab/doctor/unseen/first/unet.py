"""A small U-Net for cell segmentation; images come in whatever size the microscope gives."""

import torch
import torch.nn.functional as F
from torch import nn


def block(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(inplace=True))


class Up(nn.Module):
    def __init__(self, inside: int, outside: int):
        super().__init__()
        self.up = nn.ConvTranspose2d(inside, outside, 2, stride=2)
        self.conv = block(2 * outside, outside)

    def forward(self, x, skip):
        x = self.up(x)
        if x.shape[-2:] != skip.shape[-2:]:  # defect
            x = F.interpolate(x, size=skip.shape[-2:], mode="bilinear", align_corners=False)
        return self.conv(torch.cat([skip, x], dim=1))


class UNet(nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()
        self.inc = block(1, width)
        self.down1 = block(width, 2 * width)
        self.down2 = block(2 * width, 4 * width)
        self.up1 = Up(4 * width, 2 * width)
        self.up2 = Up(2 * width, width)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, image):
        a = self.inc(image)
        b = self.down1(F.max_pool2d(a, 2))
        c = self.down2(F.max_pool2d(b, 2))
        return self.out(self.up2(self.up1(c, b), a))


def unet():
    torch.manual_seed(0)
    return UNet().eval(), [(torch.randn(1, 1, 64, 64),), (torch.randn(2, 1, 53, 70),)]
