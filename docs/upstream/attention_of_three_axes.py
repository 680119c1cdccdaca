"""scaled_dot_product_attention of three axes is refused by torch.onnx.export: only 4D query, key, and value are supported."""

import torch

x = torch.randn(2, 3, 4)


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x)


print(Model()(x).shape)
torch.onnx.export(Model(), (x,))
