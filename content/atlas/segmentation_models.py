"""segmentation_models_pytorch: each of its decoders on a small encoder."""

from __future__ import annotations

from dataclasses import dataclass

from exportlab.cases import Case, Declaration
from exportlab.specs import tensor
from exportlab.torchvisions import import_torchvision

from .library import check_installed

BATCH = {"batch": (2, 3, 1)}
DECODERS = ["Unet", "UnetPlusPlus", "FPN", "PSPNet", "DeepLabV3", "DeepLabV3Plus", "Linknet", "MAnet", "PAN", "UPerNet", "Segformer", "DPT"]
RESNET, VIT = ("resnet18", 256), ("tu-vit_tiny_patch16_224", 224)  # an encoder, and the size of its images


@dataclass(frozen=True)
class Segmenter:
    """Whether this decoder exports, with random weights."""

    decoder: str

    def __call__(self) -> Declaration:
        """Return the model and its inputs."""
        import_torchvision()
        import segmentation_models_pytorch

        from ..zoo.tiny import weighted

        encoder, size = VIT if self.decoder == "DPT" else RESNET
        made = getattr(segmentation_models_pytorch, self.decoder)(encoder_name=encoder, encoder_weights=None, classes=2)
        return weighted(made).eval(), (tensor("batch", 3, size, size),)


def cases() -> list[Case]:
    """Return a case for each decoder.

    Raises:
        NotInstalled: the library, or timm or torchvision, which it imports, is not there.
    """
    check_installed("segmentation_models_pytorch", "timm", "torchvision")
    return [Case(f"segmentation_models.{name}", Segmenter(name), BATCH, topics=("images",)) for name in DECODERS]
