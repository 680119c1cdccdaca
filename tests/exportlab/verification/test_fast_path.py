"""Where everything is masked, PyTorch's fast path for encoders answers NaN and its operators do not: a file is not wrong for that."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from exportlab import to_onnx, verify
from exportlab.outcomes import Outcome
from exportlab.verification.fast_path import WORDS, disable_fast_path

IDS, MASK = torch.randint(0, 9, (2, 5)), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


class Tagger(nn.Module):
    """Words and which of them count, through an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.encoder(self.words(ids), src_key_padding_mask=~mask)


@pytest.fixture(scope="module")
def tagger() -> nn.Module:
    torch.manual_seed(0)
    return Tagger().eval()


def test_a_value_that_we_invent_is_not_held_against_the_file_where_the_fast_path_alone_differs(tagger: nn.Module) -> None:
    report = verify(to_onnx(tagger, (IDS, MASK)), tagger, [(IDS, MASK)])
    assert report.outcome is Outcome.OK
    assert [check.outcome for check in report.checks if check.detail == WORDS] == [Outcome.SKIPPED]


def test_what_you_give_is_held_against_eager_as_it_runs(tagger: nn.Module) -> None:
    nothing = torch.zeros_like(MASK)
    with torch.no_grad():
        assert tagger(IDS, nothing).isnan().all()
    report = verify(to_onnx(tagger, (IDS, MASK)), tagger, [(IDS, MASK), (IDS, nothing)])
    assert report.outcome is Outcome.FROZEN


def test_a_file_that_is_wrong_beside_the_fast_path_stays_wrong(tagger: nn.Module) -> None:
    frozen = to_onnx(tagger, (IDS, MASK))
    torch.manual_seed(1)
    other = Tagger().eval()
    assert not any(check.detail == WORDS for check in verify(frozen, other, [(IDS, MASK)]).checks)


def test_the_fast_path_is_on_again_after_an_error() -> None:
    def fail() -> None:
        with disable_fast_path():
            assert not torch.backends.mha.get_fastpath_enabled()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.backends.mha.get_fastpath_enabled()
