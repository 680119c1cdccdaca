"""torchvision: a model of each of its families, classifiers, segmentation, detection, video and optical flow, at their own sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exportlab.cases import Case, Declaration
from exportlab.samples import Sample
from exportlab.specs import TensorSpec, tensor
from exportlab.torchvisions import import_torchvision

from .library import check_installed

BATCH = {"batch": (2, 3, 1)}
IMAGE, CLIP, FRAME = (3, 224, 224), (3, 16, 112, 112), (3, 128, 128)
OTHER_SIZES = {  # of models that take only these
    "inception_v3": (3, 299, 299),
    "mvit_v1_b": (3, 16, 224, 224),
    "s3d": (3, 16, 224, 224),
    "swin3d_t": (3, 16, 224, 224),
}
CLASSIFIERS = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "efficientnet_v2_s",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_x_400mf",
    "regnet_y_400mf",
    "resnet18",
    "resnext50_32x4d",
    "wide_resnet50_2",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "swin_t",
    "swin_v2_t",
    "vgg11_bn",
    "vit_b_32",
]
SEGMENTATION = ["deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large"]
DETECTION = [
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "fcos_resnet50_fpn",
    "keypointrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn",
    "retinanet_resnet50_fpn",
    "ssd300_vgg16",
    "ssdlite320_mobilenet_v3_large",
]
VIDEO = ["r3d_18", "mc3_18", "r2plus1d_18", "mvit_v1_b", "s3d", "swin3d_t"]
FLOW = ["raft_small"]


@dataclass(frozen=True)
class Model:
    """Whether this model of torchvision exports, with random weights."""

    model: str
    inputs: tuple[TensorSpec | list[TensorSpec], ...]

    def __call__(self) -> Declaration:
        """Return the model and its inputs."""
        import_torchvision()
        from torchvision import models

        from ..zoo.tiny import weighted

        options: dict[str, Any] = {"weights": None}
        if self.model not in (*CLASSIFIERS, *VIDEO, *FLOW):
            options["weights_backbone"] = None
        if self.model in ("googlenet", "inception_v3"):
            options["init_weights"] = False
        sample: Any = Sample(self.inputs)
        return weighted(models.get_model(self.model, **options)).eval(), [sample]


def cases() -> list[Case]:
    """Return a case for each model; detectors take a list of two images, so nothing of theirs is asked to move.

    Raises:
        NotInstalled: torchvision is not there.
    """
    check_installed("torchvision")
    shapes = {
        **dict.fromkeys((*CLASSIFIERS, *SEGMENTATION), (IMAGE,)),
        **dict.fromkeys(VIDEO, (CLIP,)),
        **dict.fromkeys(FLOW, (FRAME, FRAME)),
    }
    moving = {name: tuple(tensor("batch", *OTHER_SIZES.get(name, shape)) for shape in taken) for name, taken in shapes.items()}
    fixed: dict[str, Any] = {name: ([tensor(3, 320, 320), tensor(3, 320, 320)],) for name in DETECTION}
    return [
        *(Case(f"torchvision.{name}", Model(name, inputs), BATCH, topics=("images",)) for name, inputs in moving.items()),
        *(Case(f"torchvision.{name}", Model(name, inputs), topics=("images",)) for name, inputs in fixed.items()),
    ]
