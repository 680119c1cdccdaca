"""Each patch gets past the error that it answers, and leaves torch, transformers and the model as it found them, an exception included."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest
import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass
from onnxscript._internal import ast_utils
from onnxscript._internal.values import TracedOnnxFunction
from torch import Tensor, nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from content import zoo
from exportlab import Sample, export, patches, quiet, verify
from exportlab.messages import heard
from fx2onnx.caches import registries

pytestmark = pytest.mark.usefixtures("as_if_nobody_had_registered_caches")
ROWS = ({0: "rows"},)
SIZES = (4, 7, 1)


@dataclass
class Pair:
    """An argument that nobody registered."""

    x: Tensor
    y: Tensor


class Swapped(nn.Module):
    """Takes and gives a dataclass."""

    def forward(self, pair: Pair) -> Pair:
        return Pair(pair.y, pair.x + pair.y)


class Checked(nn.Module):
    """Two checks of values, in the two ways people write them."""

    def forward(self, x: Tensor) -> Tensor:
        assert (x < 100).all(), "too large"
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
        return x * 2


class Branching(nn.Module):
    """Its test decides what is computed."""

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x * 2
        raise ValueError("negative")


class Silenced(nn.Module):
    """Changes the mode of gradients, and then fails to export."""

    def forward(self, x: Tensor) -> Tensor:
        torch.set_grad_enabled(False)
        if x.sum() > 0:
            return x * 2
        return x


class Keywords(nn.Module):
    """Takes a tensor by its `**`."""

    def forward(self, x: Tensor, **further: Tensor) -> Tensor:
        return x + further["y"]


def tensors(width: int = 3) -> list[Sample]:
    """One argument, at every size."""
    return [Sample((torch.linspace(-1, 1, rows * width).reshape(rows, width),)) for rows in SIZES]


def tiny_llama() -> nn.Module:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    return LlamaForCausalLM(LlamaConfig(vocab_size=32, **sizes)).eval()


def step(batch: int, seq: int, past: int) -> Sample:
    """A step of decoding."""
    cache = DynamicCache([(torch.randn(batch, 1, past, 8), torch.randn(batch, 1, past, 8)) for _ in range(2)])
    mask = torch.ones(batch, seq + past, dtype=torch.long)
    return Sample((), {"input_ids": torch.randint(0, 32, (batch, seq)), "attention_mask": mask, "past_key_values": cache})


def observed() -> dict[str, Any]:
    """Everything that a patch may change."""
    return {
        "registries": [registry.copy() for registry in registries()],
        "bool": vars(torch.Tensor).get("__bool__"),
        "vmap": torch.vmap,
        "signature": TracedOnnxFunction.function_ir,
        "grad": torch.is_grad_enabled(),
    }


@dataclass
class Obstacle:
    """A model that cannot be exported, the patch, and what is said without it."""

    model: nn.Module
    samples: list[Sample]
    dynamic_shapes: Any
    patch: Callable[[], AbstractContextManager[Any]]
    message: str


def obstacles() -> dict[str, Obstacle]:
    """By patch."""
    masks, steps = zoo.get("mask_by_four_vmaps"), [step(2, 3, 5), step(3, 4, 7), step(1, 1, 4)]
    layers = [{0: "batch", 2: "past"}] * 2
    shapes = {
        "input_ids": {0: "batch", 1: "seq"},
        "attention_mask": {0: "batch", 1: "all"},
        "past_key_values": [layers, layers],
    }
    pairs = [Sample((Pair(torch.ones(rows, 3), torch.arange(3.0).expand(rows, 3)),)) for rows in SIZES]
    return {
        "as_containers": Obstacle(Swapped(), pairs, ([*ROWS, *ROWS],), lambda: patches.as_containers(Pair), "non-tensor type|Unsupported"),
        "caches_as_containers": Obstacle(tiny_llama(), steps, shapes, patches.caches_as_containers, "non-tensor type|Unsupported"),
        "checks_passed": Obstacle(Checked(), tensors(), ROWS, patches.checks_passed, "data-dependent"),
        "indices_in_vmap": Obstacle(masks.module(), masks.samples(), masks.dynamic_shapes(), patches.indices_in_vmap, r"\.item\(\)"),
    }


@pytest.fixture(autouse=True)
def without_chatter() -> None:
    quiet()


def exported(obstacle: Obstacle) -> Any:
    """By torch.export, on which the others stand."""
    first = obstacle.samples[0]
    with heard():
        return export("torch.export", obstacle.model, first.args, first.kwargs, dynamic_shapes=obstacle.dynamic_shapes)


@pytest.mark.parametrize("name", obstacles())
def test_a_patch_gets_past_its_error_and_only_while_it_lasts(name: str) -> None:
    obstacle, before = obstacles()[name], observed()
    with pytest.raises(Exception, match=obstacle.message):
        exported(obstacle)
    with obstacle.patch():
        verify(exported(obstacle), obstacle.model, obstacle.samples).check()
    assert observed() == before
    with pytest.raises(Exception, match=obstacle.message):
        exported(obstacle)


@pytest.mark.parametrize("name", obstacles())
def test_for_model_picks_it_and_says_so(name: str) -> None:
    obstacle, before = obstacles()[name], observed()
    first = obstacle.samples[0]
    with patches.for_model(obstacle.model, first.args, first.kwargs) as applied:
        verify(exported(obstacle), obstacle.model, obstacle.samples).check()
    assert any(line.startswith(name) for line in applied), applied
    assert observed() == before


def test_the_official_exporter_goes_on_with_a_cache_after_the_capture() -> None:
    """Its decomposition puts the cache together once more, and finds no constant that it has not seen."""
    obstacle = obstacles()["caches_as_containers"]
    with patches.caches_as_containers(), heard():
        artifact = export("dynamo", obstacle.model, (), obstacle.samples[0].kwargs, dynamic_shapes=obstacle.dynamic_shapes)
    report = verify(artifact, obstacle.model, obstacle.samples)
    assert [check.values for check in report.failed] in ([], ["integers zero"])  # a mask of zeros, where the official file differs


def _break(grad: bool) -> None:
    torch.set_grad_enabled(grad)
    raise ZeroDivisionError


@pytest.mark.parametrize("name", [*obstacles(), "grad_mode_kept", "operators_read_once", "for_model"])
def test_a_patch_is_undone_after_an_exception(name: str) -> None:
    def for_model() -> AbstractContextManager[Any]:
        sample = obstacles()["caches_as_containers"].samples[0]
        return patches.for_model(nn.Sequential(tiny_llama(), Checked(), Silenced()), sample.args, sample.kwargs)

    stateful = {"grad_mode_kept": patches.grad_mode_kept, "operators_read_once": patches.operators_read_once, "for_model": for_model}
    entered = {**{key: one.patch for key, one in obstacles().items()}, **stateful}
    before = observed()
    with pytest.raises(ZeroDivisionError), entered[name]():
        _break(grad=name not in ("grad_mode_kept", "for_model"))
    assert observed() == before


def test_a_refused_export_leaves_the_mode_of_gradients() -> None:
    with pytest.raises(Exception, match="data-dependent"), patches.grad_mode_kept(), heard():
        torch.export.export(Silenced(), (torch.ones(4, 3),))
    assert torch.is_grad_enabled()


def test_the_older_tracer_leaves_the_mode_of_gradients_and_the_patch_does_not() -> None:
    with torch.enable_grad():
        torch.jit.trace(WithoutGradients(), torch.ones(4, 3))
        assert not torch.is_grad_enabled()
    with patches.grad_mode_kept():
        torch.jit.trace(WithoutGradients(), torch.ones(4, 3))
    assert torch.is_grad_enabled()


def test_a_branch_is_no_check() -> None:
    with patches.checks_passed() as places, pytest.raises(Exception, match="data-dependent"):
        exported(Obstacle(Branching(), tensors(), ROWS, patches.checks_passed, ""))
    assert not places


def test_eager_still_checks() -> None:
    with patches.checks_passed(), pytest.raises(AssertionError, match="too large"):
        Checked()(torch.full((4, 3), 1000.0))


def test_the_places_of_passed_checks_are_told() -> None:
    with patches.checks_passed() as places:
        exported(obstacles()["checks_passed"])
    assert len(places) == 2
    assert all(place.rpartition(":")[0] == __file__ for place in places)


def test_nothing_is_applied_where_nothing_is_needed() -> None:
    with patches.for_model(nn.Linear(3, 3), (torch.ones(4, 3),)) as applied:
        assert applied == []


def test_keywords_get_parameters_and_lose_them_again() -> None:
    model, samples = Keywords(), [Sample((torch.ones(n, 3),), {"y": torch.ones(n, 3)}) for n in SIZES]
    shapes, before = {"x": {0: "rows"}, "further": {"y": {0: "rows"}}}, dict(vars(model))
    with patches.keywords_named(model, samples[0].args, samples[0].kwargs, shapes) as named:
        artifact = export("torch.export", model, samples[0].args, samples[0].kwargs, dynamic_shapes=named)
    assert vars(model) == before
    verify(artifact, model, samples).check()
    with pytest.raises(ZeroDivisionError), patches.keywords_named(model, samples[0].args, samples[0].kwargs, shapes):
        raise ZeroDivisionError
    assert vars(model) == before


@pytest.mark.parametrize("name", patches.__all__)
def test_the_page_names_every_patch(name: str) -> None:
    assert f"{name}(" in (Path(__file__).parents[2] / "docs/patches.md").read_text(encoding="utf-8")


class WithoutGradients(nn.Module):
    """Switches gradients off in the two ways people do."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y = x * 2
        torch.set_grad_enabled(False)
        return y + x


@pytest.mark.parametrize("exporter", ["torch.export", "dynamo", "to_onnx"])
def test_modes_of_gradients_need_no_patch_any_more(exporter: str) -> None:
    artifact = export(exporter, WithoutGradients(), tensors()[0].args, dynamic_shapes=ROWS)
    with patches.grad_mode_kept():
        verify(artifact, WithoutGradients(), tensors()).check()


def test_operators_are_read_by_the_first_export_alone_and_the_file_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    own = ast_utils.get_src_and_ast
    monkeypatch.setattr(ast_utils, "get_src_and_ast", lambda func: read.append(func) or own(func))

    def written() -> tuple[bytes, int]:
        read.clear()
        artifact: Any = export("dynamo", WithoutGradients(), tensors()[0].args, dynamic_shapes=ROWS)
        ClearMetadataAndDocStringPass()(artifact.model)  # what names objects by their address
        return ir.to_proto(artifact.model).SerializeToString(deterministic=True), len(read)

    without, each_time = written()
    with patches.operators_read_once():
        first, at_first = written()
        second, later = written()
    assert first == second == without
    assert 100 < at_first <= each_time
    assert later < each_time / 10
