"""Intent classifier over padded sentences of different lengths."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class IntentClassifier(nn.Module):
    def __init__(self, words: int = 300, width: int = 24, intents: int = 7):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(width, intents)

    def forward(self, tokens, lengths):
        x = self.drop(self.embed(tokens))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)  # defect
        hidden, _ = self.rnn(packed)
        hidden, _ = pad_packed_sequence(hidden, batch_first=True, total_length=tokens.size(1))
        mask = (tokens != 0).unsqueeze(-1)
        pooled = hidden.masked_fill(~mask, 0).sum(1) / lengths.unsqueeze(-1)
        return self.head(pooled)


def sentences(batch: int, longest: int):
    lengths = torch.randint(1, longest + 1, (batch,))
    lengths[-1] = longest
    tokens = torch.randint(1, 300, (batch, longest))
    tokens[torch.arange(longest)[None] >= lengths[:, None]] = 0
    return tokens, lengths


def intents():
    torch.manual_seed(5)
    return IntentClassifier().eval(), [sentences(4, 9), sentences(2, 13)]
