"""timm: of each of its modules the smallest model that it lists, at the size of image that the model was made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exportlab.cases import Case, Declaration
from exportlab.specs import tensor
from exportlab.torchvisions import import_torchvision

from .library import check_installed

BATCH = {"batch": (2, 3, 1)}
MODELS = [
    "beit_base_patch16_224",
    "cait_xxs24_224",
    "coat_tiny",
    "convit_tiny",
    "convmixer_768_32",
    "cpubone_nano",
    "crossvit_tiny_240",
    "cs3darknet_focus_s",
    "csatv2",
    "cspnext_tiny",
    "davit_tiny",
    "deepseek_vit_412m",
    "deit_tiny_patch16_224",
    "densenet121",
    "dla34",
    "dpn48b",
    "edgenext_xx_small",
    "efficientformer_l1",
    "efficientformerv2_s0",
    "efficientvim_m1",
    "efficientvit_b0",
    "efficientvit_m0",
    "ese_vovnet19b_slim_dw",
    "eva02_tiny_patch14_224",
    "fasternet_t0",
    "fastvit_t8",
    "focalnet_tiny_srf",
    "gcvit_xxtiny",
    "gemma4_vit_167m",
    "ghostnet_050",
    "gmlp_ti16_224",
    "halonet_h1",
    "hardcorenas_b",
    "hgnetv2_b0",
    "hiera_tiny_224",
    "hrnet_w18_small",
    "iformer_t",
    "inception_next_atto",
    "inception_resnet_v2",
    "inception_v3",
    "inception_v4",
    "lcnetv2_small",
    "legacy_seresnet18",
    "levit_128",
    "lowformer_b0",
    "maxvit_tiny_tf_224",
    "mobilenetv3_small_050",
    "mobilenetv5_base",
    "mobileone_s1",
    "mobilevit_xxs",
    "mvitv2_tiny",
    "naflexvit_base_patch16_gap",
    "nasnetalarge",
    "nest_tiny",
    "nextvit_small",
    "pit_ti_224",
    "pnasnet5large",
    "poolformer_s12",
    "pvt_v2_b0",
    "qwen3_vit_88m",
    "rdnet_tiny",
    "regnetx_004_tv",
    "repghostnet_050",
    "repvit_m1",
    "res2next50",
    "resnest14d",
    "resnet10t",
    "resnetv2_18",
    "rexnet_100",
    "sam2_hiera_tiny",
    "samvit_base_patch16_224",
    "selecsls42",
    "sequencer2d_s",
    "shvit_s1",
    "skresnet18",
    "starnet_s050",
    "swiftformer_xs",
    "swin_tiny_patch4_window7_224",
    "swinv2_cr_tiny_224",
    "swinv2_tiny_window8_256",
    "test_convnext",
    "test_mambaout",
    "test_nfnet",
    "test_vit_relpos",
    "tiny_vit_5m_224",
    "tinynet_e",
    "tnt_s_legacy_patch16_224",
    "tresnet_m",
    "twins_svt_small",
    "vgg11",
    "visformer_tiny",
    "vit_small_patch16_18x2_224",
    "vit_tiny_r_s16_p8_224",
    "vitamin_small_224",
    "volo_d1_224",
    "xception",
    "xception41p",
    "xcit_nano_12_p8_224",
]  # fixed, so that two versions of timm are asked the same


@dataclass(frozen=True)
class Classifier:
    """Whether this model of timm exports, with random weights."""

    model: str

    def __call__(self) -> Declaration:
        """Return the model and its inputs."""
        import_torchvision()
        import timm

        from ..zoo.tiny import weighted

        made: Any = timm.create_model(self.model, pretrained=False)
        return weighted(made).eval(), (tensor("batch", *made.pretrained_cfg["input_size"]),)


def cases() -> list[Case]:
    """Return a case for each model.

    Raises:
        NotInstalled: timm or torchvision, which it imports, is not there.
    """
    check_installed("timm", "torchvision")
    return [Case(f"timm.{model}", Classifier(model), BATCH, topics=("images",)) for model in MODELS]
