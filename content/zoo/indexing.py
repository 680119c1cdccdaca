"""Reading and writing at positions given by tensors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import flags, integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing",))
def gathered_columns() -> Declaration:
    """`gather` with an index narrower than the rows: is it along the right axis?"""

    class Gathered(nn.Module):
        def forward(self, x: Tensor, index: Tensor) -> Tensor:
            return x.gather(1, index)

    return Gathered(), (tensor("batch", 5), integers("batch", 2, high=5))


@case(dims={"batch": (4, 7, 1, 0), "more": (2, 3, 1, 0)}, topics=("indexing", "dynamic shapes"))
def gathered_from_fewer_rows() -> Declaration:
    """`gather` with an index that has fewer rows than the data: are only the first rows used?"""

    class Gathered(nn.Module):
        def forward(self, x: Tensor, index: Tensor) -> Tensor:
            return x.gather(1, index) * 2

    return Gathered(), (tensor("batch+more", 5), integers("batch", 2, high=5))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "sorting"))
def scattered_to_ranks() -> Declaration:
    """`scatter` writes each value to the position in a permutation: is it confused with the inverse?"""

    class Scattered(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.zeros_like(x).scatter(1, x.argsort(1), x)

    return Scattered(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing",))
def scattered_one_number() -> Declaration:
    """`scatter` of a Python number, which has no shape: is it written at every position?"""

    class Marked(nn.Module):
        def forward(self, x: Tensor, index: Tensor) -> Tensor:
            return x.scatter(1, index, 7)

    return Marked(), (tensor("batch", 5), integers("batch", 2, high=5))


@case(dims={"edges": (9, 12, 1, 0)}, topics=("indexing", "graphs"))
def messages_along_edges() -> Declaration:
    """A graph network's `index_add` with several edges per node: are all of them added?"""

    class Messages(nn.Module):
        def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
            source, target = edges
            return torch.zeros_like(nodes).index_add(0, target, nodes[source])

    return Messages(), (tensor(5, 3), integers(2, "edges", high=5))


@case(dims={"edges": (9, 12, 1, 0)}, topics=("indexing", "graphs"))
def reduced_by_target() -> Declaration:
    """`scatter_reduce` by maximum and mean leaves nodes without edges unchanged: does a zero appear instead?"""

    class Reduced(nn.Module):
        def forward(self, nodes: Tensor, values: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
            most = nodes.scatter_reduce(0, target, values, "amax", include_self=False)
            return most, nodes.scatter_reduce(0, target, values, "mean")

    return Reduced(), (tensor(5), tensor("edges"), integers("edges", high=5))


@case(dims={"batch": (4, 7, 1, 3), "picked": (3, 5, 1, 0)}, topics=("indexing", "dynamic shapes"))
def rows_in_an_order() -> Declaration:
    """`index_select` with an index of any length, even zero: does the result have that length?"""

    class Ordered(nn.Module):
        def forward(self, x: Tensor, order: Tensor) -> Tensor:
            return x.index_select(0, order % x.shape[0])

    return Ordered(), (tensor("batch", 3), integers("picked", high=20))


@case(dims={"batch": (4, 7, 1, 0), "rows": (3, 2, 1, 0), "columns": (2, 5, 1)}, topics=("indexing", "broadcasting"))
def two_indices_that_broadcast() -> Declaration:
    """`x[rows[:, None], columns]` combines all rows and columns: do the two indices broadcast?"""

    class Crossed(nn.Module):
        def forward(self, x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
            return x[:, rows[:, None], columns]

    return Crossed(), (tensor("batch", 4, 6), integers("rows", high=4), integers("columns", high=6))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "silence"))
def two_indices_apart() -> Declaration:
    """A slice between two index tensors moves their axis to the front: does it in the exported model?"""

    class Apart(nn.Module):
        def forward(self, x: Tensor, first: Tensor, last: Tensor) -> Tensor:
            return x[:, first, :, last]

    return Apart(), (tensor("batch", 4, 3, 5), integers(2, high=4), integers(2, high=5))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "silence"))
def negative_indices() -> Declaration:
    """Negative values in an index tensor count from the end: for reading and for writing?"""

    class FromTheEnd(nn.Module):
        def forward(self, x: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
            written = x.clone()
            written[:, index] = 0
            return x[:, index], written

    return FromTheEnd(), (tensor("batch", 5), integers(3, low=-5, high=0))


@case(dims={"batch": (6, 9, 1, 0)}, topics=("indexing", "masks", "data-dependent shapes"))
def mask_and_number() -> Declaration:
    """`x[mask, 1]` mixes a boolean and an integer: are axis and length of the result right?"""

    class Mixed(nn.Module):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return x[mask, 1] * 2

    return Mixed(), (tensor("batch", 3), flags("batch"))


@case(dims={"batch": (3, 5, 1, 0)}, topics=("indexing", "masks", "data-dependent shapes"))
def mask_of_two_axes() -> Declaration:
    """A mask over two of three axes: do both become one axis?"""

    class Kept(nn.Module):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return x[mask] * 2

    return Kept(), (tensor("batch", 4, 2), flags("batch", 4))


@case(dims={"batch": (6, 9, 1, 0)}, topics=("indexing", "masks", "silence"))
def mask_of_bytes() -> Declaration:
    """A `uint8` tensor as an index is a mask: does the exported model treat it as row numbers?"""

    class ByteMask(nn.Module):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return x[mask] * 2

    return ByteMask(), (tensor("batch", 3), integers("batch", high=2, dtype=torch.uint8))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "masks"))
def set_where_from_values() -> Declaration:
    """`masked_scatter` uses as many values as the mask selects, in order: are they the right ones?"""

    class Scattered(nn.Module):
        def forward(self, x: Tensor, mask: Tensor, values: Tensor) -> Tensor:
            return x.masked_scatter(mask, values)

    return Scattered(), (tensor("batch", 3), flags("batch", 3), tensor("batch", 3))


@case(dims={"seq": (8, 11, 1, 0)}, topics=("indexing", "masks", "multimodal"))
def image_features_among_tokens() -> Declaration:
    """Image features replace placeholder tokens at any positions: are all of them in order?"""

    class Merged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(10, 4)

        def forward(self, tokens: Tensor, features: Tensor) -> Tensor:
            free = (tokens > 6)[..., None]
            return self.embedding(tokens).masked_scatter(free, features)

    return Merged(), (integers("seq"), tensor(11, 4))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "masks", "data-dependent shapes"))
def values_selected() -> Declaration:
    """`masked_select` with a mask for one row flattens the result: is the mask broadcast first?"""

    class Kept(nn.Module):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return x.masked_select(mask)

    return Kept(), (tensor("batch", 5), flags(5))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "broadcasting"))
def taken_along_an_axis() -> Declaration:
    """`take_along_dim` broadcasts and `gather` doesn't: is one row of indices enough for all?"""

    class Taken(nn.Module):
        def forward(self, x: Tensor, index: Tensor) -> Tensor:
            return torch.take_along_dim(x, index, dim=1)

    return Taken(), (tensor("batch", 5), integers(1, 3, high=5))


@case(dims={"picked": (4, 7, 1, 0)}, topics=("indexing",))
def taken_from_the_flat() -> Declaration:
    """`take` indexes the flattened tensor, negative from the end: is a matrix flattened?"""

    class Taken(nn.Module):
        def forward(self, x: Tensor, index: Tensor) -> Tensor:
            return x.t().take(index)

    return Taken(), (tensor(3, 5), integers("picked", low=-15, high=15))


@case(dims={"batch": (2, 3, 1, 0), "seq": (5, 8, 1, 0)}, topics=("indexing", "dtypes"))
def tokens_in_32_bits() -> Declaration:
    """Tokens and positions are `int32`: does every lookup accept them?"""

    class Lookups(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(10, 4)
            self.register_buffer("table", torch.randn(10, 4))

        def forward(self, tokens: Tensor) -> Tensor:
            return self.embedding(tokens) + self.table[tokens] + self.table.index_select(0, tokens.flatten()).sum(0)

    return Lookups(), (integers("batch", "seq", dtype=torch.int32),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "mutation", "silence"))
def embedding_with_a_largest_norm() -> Declaration:
    """`max_norm` rescales looked-up rows of the table in place: are they rescaled in the exported model?"""
    return nn.Embedding(10, 4, max_norm=0.5), (integers("batch"),)


@case(dims={"tokens": (7, 9, 1)}, topics=("indexing", "ragged"))
def bags_of_tokens() -> Declaration:
    """An `EmbeddingBag` sums tokens between offsets, and an empty bag is zero: also the last one?"""
    return nn.EmbeddingBag(10, 4, mode="mean"), (integers("tokens"), torch.tensor([0, 0, 1, 1]))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing",))
def largest_of_each_row() -> Declaration:
    """`x[arange(n), x.argmax(1)]` selects one value per row: does it select rows instead?"""

    class Largest(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return y[torch.arange(x.shape[0]), x.argmax(1)]

    return Largest(), (tensor("batch", 5), tensor("batch", 5, 2))


@case(dims={"batch": (4, 7, 1, 0), "seq": (6, 9, 1)}, topics=("indexing",))
def last_token_of_each() -> Declaration:
    """The last hidden state before the padding, as in sequence classifiers: is it right for length 0?"""

    class LastToken(nn.Module):
        def forward(self, hidden: Tensor, lengths: Tensor) -> Tensor:
            return hidden[torch.arange(hidden.shape[0]), lengths.clamp(max=hidden.shape[1]) - 1]

    return LastToken(), (tensor("batch", "seq", 3), integers("batch", high=6))


@case(dims={"seq": (4, 7, 1, 0)}, topics=("indexing", "dynamic shapes"))
def pairs_above_the_diagonal() -> Declaration:
    """`triu_indices` of a size, for the pairs of a factorization machine: are there more pairs for more rows?"""

    class Pairs(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            first, second = torch.triu_indices(x.shape[0], x.shape[0], offset=1)
            return (x[first] * x[second]).sum(1)

    return Pairs(), (tensor("seq", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing",))
def new_axes_and_steps() -> Declaration:
    """`None`, `...`, a number, a list and a step in one index: is each applied correctly?"""

    class Bracketed(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x[..., None, 1, ::2], x[:, [2, 0], None]

    return Bracketed(), (tensor("batch", 3, 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "masks", "data-dependent shapes"))
def all_or_nothing_by_a_flag() -> Declaration:
    """Indexing with a Python boolean adds an axis of length 1 or 0: is it treated as a number?"""

    class Flagged(nn.Module):
        def forward(self, x: Tensor, flag: Tensor) -> Tensor:
            return x[flag].sum(0)

    return Flagged(), (tensor("batch", 3), flags())


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "mutation"))
def written_by_two_indices() -> Declaration:
    """`x[rows, columns] = y` writes single elements, with negative columns: are only these written?"""

    class Written(nn.Module):
        def forward(self, x: Tensor, y: Tensor, columns: Tensor) -> Tensor:
            copied = x.clone()
            copied[torch.arange(x.shape[0]), columns] = y
            return copied

    return Written(), (tensor("batch", 5), tensor("batch"), integers("batch", low=-5, high=5))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "mutation"))
def columns_copied_and_filled() -> Declaration:
    """`index_copy` and `index_fill` along the last axis: do they use the first instead?"""

    class Copied(nn.Module):
        def forward(self, x: Tensor, y: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
            return x.index_copy(-1, index, y), x.index_fill(-1, index, 3)

    return Copied(), (tensor("batch", 5), tensor("batch", 1), integers(1, high=5))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing",))
def values_in_buckets() -> Declaration:
    """`bucketize` with values equal to boundaries, then a lookup: do they get the right bucket?"""

    class Bucketed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("borders", torch.tensor([-1.0, 0.0, 0.5, 1.0]))
            self.embedding = nn.Embedding(5, 3)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            rounded = (x * 2).round() / 2
            return self.embedding(torch.bucketize(rounded, self.borders)), torch.bucketize(rounded, self.borders, right=True)

    return Bucketed(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing", "masks", "data-dependent shapes"))
def positions_by_where() -> Declaration:
    """`torch.where` with one argument returns an index tensor per axis: do they select the same values?"""

    class Found(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            rows, columns = torch.where(x > 0)
            return x[rows, columns], rows * 10 + columns

    return Found(), (tensor("batch", 3),)


@case(dims={"width": (6, 9, 3)}, topics=("indexing", "sorting"))
def best_three_gathered() -> Declaration:
    """Rows are ordered by the scores of another tensor, as in detectors: is the order descending?"""

    class Best(nn.Module):
        def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
            best, index = scores.topk(3, dim=1)
            return boxes.gather(1, index[..., None].expand(-1, -1, 4)), best

    return Best(), (tensor(2, "width", 4), tensor(2, "width"))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("indexing",))
def one_hot_of_classes() -> Declaration:
    """`one_hot` with a number of classes returns integers: does the exported model too?"""

    class OneHot(nn.Module):
        def forward(self, labels: Tensor) -> Tensor:
            return F.one_hot(labels, 6)

    return OneHot(), (integers("batch", high=6),)
