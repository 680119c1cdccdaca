"""Aimv2TextModel of transformers sees later tokens with sdpa, its default, where nothing is padded; with eager attention it does not."""

import torch
from transformers import Aimv2TextConfig, Aimv2TextModel

sizes = {"vocab_size": 8, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "eos_token_id": 7}
tokens = torch.tensor([[1, 2, 3, 4]])
changed = torch.tensor([[1, 2, 3, 5]])  # the last one, which the places before it must not see
far = {}
for attention in ("eager", "sdpa"):
    torch.manual_seed(0)
    model = Aimv2TextModel(Aimv2TextConfig(**sizes, attn_implementation=attention)).eval()
    for name, mask in {"no mask": None, "a mask of ones": torch.ones_like(tokens)}.items():
        with torch.inference_mode():
            apart = model(tokens, mask)[0] - model(changed, mask)[0]
        far[attention, name] = float(apart[:, :3].abs().max())
print(far)
assert all(value < 1e-5 for value in far.values()), far
