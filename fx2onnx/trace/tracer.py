"""Pre-dispatch tracer: records each ATen call of one run, with the origin of its tensor arguments and its constants."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import nn

from ..compat import dispatch
from ..compat import trees as pytree
from ..compat.fake_tensors import FakeTensor, UnsupportedFakeTensorException, unset_fake_temporarily
from ..compat.operators import OpOverload
from ..errors import first_sentence
from ..internal_errors import is_internal
from ..ir.expressions import expression, storage
from . import effects
from .canonical_indexing import RECORD_CONTIGUOUS_AS_COPY
from .compute_budget import BUDGET, MAX_FLOPS, ComputeBudget, flops_of
from .constness import ConstantAnalysis
from .events import OpEvent, Ref, TensorMeta, flatten_arguments, layout_of, plain, unflatten_arguments
from .generators import refuse_generator
from .listener import TraceListener, check_follows_values, check_size_decided, number_in
from .path_decisions import BRANCH, READS_ONE, PathDecisions, is_branch
from .refusal import AliasDiverged, ConstantDependsOnSize, NeedsRealValues, NoFallback, TraceUnsupported, restart_keeping_scalars
from .scopes import Scopes
from .source_location import frame_text, line_of

aten = torch.ops.aten
PLAIN = (torch.Tensor, nn.Parameter, nn.Buffer)
MADE = (*PLAIN, FakeTensor)  # a FakeTensor has no values
COPY, STALE = "a contiguous copy", "a tensor is read after a write into its contiguous copy, or the copy after a write into the tensor,"
VALUES_LEFT_OUT = "a tensor whose values are left out"
SEED = 5_738_291_046  # of runs; a model that draws from another seed has set it
CONTIGUOUS = pytree.tree_structure(((0,), {"memory_format": 0}))


class Tracer(dispatch.ProxyTorchDispatchMode):
    """Records pre-dispatch operator calls before decompositions, in place of torch.export's tracer.

    Tensors are identified by id and by memory, because an operator may return another object. All are kept alive until the run ends.
    """

    def __init__(
        self, state: Mapping[str, torch.Tensor], script: PathDecisions, follower: TraceListener | None = None, scopes: Scopes | None = None
    ) -> None:
        dispatch.TorchDispatchMode.__init__(self, dispatch.DispatchKey.PreDispatch)
        self._mode_key = None  # type: ignore[assignment]  # another mode does not replace this one
        self.pre_dispatch = True
        self.rows: list[OpEvent] = []
        self.constants: list[torch.Tensor] = []
        self.refused: Exception | None = None
        self.work = BUDGET.get()
        self.follows_values = True  # whether data-dependent sizes and numbers have symbols
        self.has_failed = False  # whether an operator raised
        self.failed = ""  # the last error of torch that the model could catch, with its line
        self.loops: Any = None  # distinguishes iterations, if there are rolled loops
        self._script, self.follower, self.scopes = script, follower, scopes
        self.constness = ConstantAnalysis()
        self.reads = script.plan.scalar_modules is not None  # whether numbers that are read record their comparisons
        self._kept: list[torch.Tensor] = []
        self.unseen_memory = partial(next, count(-1, -1))  # ids of memory that no tensor uses any more; those of tensors are positive
        self._refs: dict[int, Ref] = {}
        self._by_layout: dict[Any, Ref] = {}
        self.twins: dict[int, list[int]] = {}  # memory of a tensor and of its contiguous copy
        self._stale: set[int] = set()  # memory whose twin was written
        self.made_of: Any = None  # the expressions of a constant that is being created from sizes
        self.formulas: dict[int, Any] = {}  # of such constants
        self.inputs: dict[int, torch.Tensor] = {}
        self.changed: set[int] = set()  # the inputs that the model has written into
        self._given: dict[int, str] = {}  # memory that existed before the run, and its name
        for name, tensor in state.items():
            self.place(tensor, Ref("state", name), name)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: the check for torch.compile in each call costs as much as recording it, and nothing here is compiled."""
        return False

    def __enter__(self) -> Tracer:
        return dispatch.TorchDispatchMode.__enter__(self)

    def __exit__(self, *raised: Any) -> None:
        dispatch.TorchDispatchMode.__exit__(self, *raised)

    def place(self, tensor: torch.Tensor, ref: Ref, given_as: str = "") -> None:
        """Record where a tensor comes from, and its memory if that existed before the run."""
        self._refs.setdefault(id(tensor), ref)
        self._kept.append(tensor)
        if tensor.layout == torch.strided and type(tensor) in MADE:
            self._by_layout.setdefault(layout_of(tensor), ref)
        if given_as and tensor.layout == torch.strided:
            self._given.setdefault(storage(tensor), given_as)

    def ref(self, tensor: torch.Tensor) -> Ref:
        """Return where a tensor comes from. A tensor that no call created is a constant."""
        if self._stale and storage(tensor) in self._stale:
            raise self.refusal(STALE, AliasDiverged)
        return self._refs.get(id(tensor)) or self._by_layout.get(layout_of(tensor)) or self._constant(tensor)

    def known_ref(self, tensor: torch.Tensor) -> Ref | None:
        """Return where a tensor comes from; None if no call created it."""
        return self._refs.get(id(tensor)) or (self._by_layout.get(layout_of(tensor)) if tensor.layout == torch.strided else None)

    def knows(self, tensor: torch.Tensor) -> bool:
        """Return whether a recorded call created this tensor or it existed before."""
        return id(tensor) in self._refs or layout_of(tensor) in self._by_layout

    def _constant(self, tensor: torch.Tensor) -> Ref:
        if type(tensor) not in PLAIN:
            raise self.refusal(f"a {type(tensor).__name__} is created outside the traced operators,")
        if self.made_of is not None:
            self.formulas[len(self.constants)] = self.made_of
        number = len(self.constants) if self.loops is None else self._number_of_equal(tensor)
        if number == len(self.constants):
            self.constants.append(tensor)
        self.place(tensor, Ref("constant", number), "a constant")
        return Ref("constant", number)

    def _number_of_equal(self, tensor: torch.Tensor) -> int:
        """The number of an equal constant, because each iteration of a loop creates one."""
        if self.made_of is not None:
            raise self.refusal("a tensor is created from sizes in a model with loops over a dynamic dimension,")
        with dispatch.disable_current_modes():
            same = (number for number, other in enumerate(self.constants) if other.dtype == tensor.dtype and torch.equal(other, tensor))
            return next(same, len(self.constants))

    def resolve_ref(self, tensor: torch.Tensor) -> Ref:
        """Return where a tensor comes from, as seen after all loops."""
        ref = self.ref(tensor)
        return self.loops.resolve_ref(ref) if self.loops is not None else ref

    @property
    def place_now(self) -> tuple[int, int]:
        """The number of calls and of constants recorded so far."""
        return len(self.rows), len(self.constants)

    def again(self, rows: Sequence[OpEvent], begin: int) -> None:
        """Add calls that were not made: those from `begin` on, repeated with other tensors."""
        self.rows += rows
        if self.follower is not None:
            with self._end_run_on_error():
                self.follower.again(rows, begin)

    def gave(self, tensor: torch.Tensor, ref: Ref) -> None:
        """Record that a tensor is the result of a call that was not made."""
        self._kept.append(tensor)
        self._refs[id(tensor)] = self._by_layout[layout_of(tensor)] = ref

    def refusal(self, why: str, kind: type[TraceUnsupported] = TraceUnsupported, instead: str = "") -> Exception:
        """Return the error for something that traced runs do not support, with the line and advice; it ends the run even if caught."""
        return self.refuse(kind(f"{why} at {line_of(sys._getframe(1))}{f': {instead}.' if instead else ''}"))

    def refuse(self, error: Exception) -> Exception:
        """Keep the first error that ends the run, and return it."""
        self.refused = self.refused or error
        return self.refused

    def __sym_dispatch__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Compute with sizes, which is not recorded because their expressions are sufficient."""
        return func(*args, **(kwargs or {}))

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Record the call, and make it."""
        with dispatch.DisableTorchFunction():  # calls on tensors in here are not those of the model
            return self._record(effects.replace_lift_fresh(func), args, kwargs or {})

    def _record(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        if func is aten.contiguous.default:
            return self._contiguous(args[0])
        if (func is BRANCH or func in READS_ONE) and self.is_constant(args[0]):
            return self.constness.answer(len(self.rows), func(*args))
        if is_branch(func, args):
            if isinstance(args[0], FakeTensor):
                raise self.too_much("a condition on a value cannot be evaluated")
            return self._answer_branch(args[0], bool(func(*args)))
        self._check(func, args, kwargs)
        leaves, spec = flatten_arguments(args, kwargs)
        came_of = self.constness.came_of(func, leaves, self)
        if self.loops is not None:
            refs, refs_spec = self.loops.arg_refs(args, kwargs)
        else:
            refs, refs_spec = [self.ref(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec
        if self.follower is not None:
            refs = [expression(leaf) for leaf in refs]
            args, kwargs = unflatten_arguments(list(map(plain, leaves)), spec)
        sizes = effects.sizes_written(func, args, kwargs)
        out = self._call(func, args, kwargs)
        if effects.sizes_written(func, args, kwargs) != sizes:
            raise self.refusal(f"{func} resizes its `out` tensor", NoFallback)
        if (view := effects.view_instead_of(func)) is not None:
            del self._refs[id(args[0])]  # from here on it is the view
        row = OpEvent(view or func, refs, refs_spec, [], isinstance(out, (tuple, list)))
        row.by_values = not effects.is_harmless(func) and effects.has_dynamic_output_shape(func, args, kwargs)
        if row.by_values and self._script.pretended is not None:
            out = self._script.pretended(self.rows, func, out)
        number, turns = (self.loops.position, self.loops.stamp()) if self.loops is not None else (len(self.rows), ())
        for part, result in enumerate(out if row.many else (out,)):
            writes = self.loops is not None and func._schema.is_mutable and isinstance(result, torch.Tensor) and self.knows(result)
            row.made.append(self._output_meta(result, self.ref(result) if writes else Ref("row", number, part, turns)))
            self.constness.made(Ref("row", number, part, turns), result, came_of)
        self._add(row)
        return out

    def _call(self, func: OpOverload, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Make the call. Its error is inconclusive if the actual values would not have led to this branch."""
        try:
            with dispatch.DisablePythonDispatcher():  # as in eager, and faster
                if effects.is_identity(func, args):
                    return args[0]
                return func(*args, **kwargs) if self.work is None else self._call_within_budget(self.work, func, args, kwargs)
        except Exception as error:
            self.has_failed = True
            if not self._script.is_off_trace or is_internal(error):
                raise
            where = f"in a branch that these values do not take, after the condition at {self._script.lines[-1]},"
            raise self.refusal(f"{func} fails ({type(error).__name__}: {first_sentence(error)}) {where}") from error

    def _call_within_budget(self, work: ComputeBudget, func: OpOverload, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Make the call if the budget allows; otherwise make it without values or end the run."""
        if work.has_values:
            if products := flops_of(func, args):
                with self._end_run_on_error():
                    work.done(products)
            if not work.is_large(func, result := func(*args, **kwargs)):
                return result
            with self._end_run_on_error():
                work.refuse_large()
        leaves, spec = flatten_arguments(args, kwargs)
        if not work.leaves_out(func, leaves):
            result = func(*args, **kwargs)
            return pytree.tree_map(work.like, result) if work.is_large(func, result) else result
        try:
            valueless = [self._drop_values(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            return work.record_call(func, leaves, spec, work.call_fake(func, valueless, spec))
        except (NotImplementedError, UnsupportedFakeTensorException) as error:
            raise self.too_much(f"{func} cannot be called") from error

    def _drop_values(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor without values, and refuse later writes into either tensor, which the other would not show."""
        if isinstance(tensor, FakeTensor) or self.work is None:
            return tensor
        copy = self.work.copy_of(tensor)
        for one in (tensor, copy):
            self.is_not_to_be_written(one, VALUES_LEFT_OUT)
        return copy

    def too_much(self, why: str) -> Exception:
        """Return the error for what only a run with all values can show."""
        return self.refusal(f"tracing takes more than {MAX_FLOPS:,} multiplications, and without tensor values {why}", NeedsRealValues)

    def _answer_branch(self, tensor: torch.Tensor, actual: bool) -> bool:
        """Return the outcome of a value test, and record it."""
        ref = self.ref(tensor)
        answer, is_new = self._script.answer(self, tensor, ref, actual)
        if not is_new:
            return answer
        row = OpEvent(BRANCH, [self.resolve_ref(tensor)], 1, [answer], False)
        self._add(row)
        return answer

    def _add(self, row: OpEvent) -> None:
        """Record a call that was already made."""
        if self.loops is None:
            self.rows.append(row)
        elif not self.loops.take(row):
            return  # an earlier iteration made the same call
        if self.follower is not None:
            self._notify(self.follower, row)

    def number(self, tensor: torch.Tensor) -> Any:
        """Record that Python reads an integer from a tensor, and return its symbol in a symbolic run, otherwise the number."""
        check_follows_values(self, "a number is read from a tensor in a loop, or in a function of a higher-order operator,")
        value = number_in(tensor, self.rows, self._script.pretended)
        self.rows.append(OpEvent(aten.item.default, [self.ref(tensor)], 1, [value], False, by_values=True))
        if self.follower is None:
            return value
        self._notify(self.follower, self.rows[-1])
        return self.follower.number(len(self.rows) - 1, value)

    def is_constant(self, tensor: torch.Tensor) -> bool:
        """Return whether a value is the same in every call as far as this run shows, so that it can be a constant."""
        ref, constant_policy = self.ref(tensor), self._script.constant_policy
        if self.loops is not None or ref.kind == "constant":  # no call shows that all runs have the same constant
            return False
        if (depends_on_sizes := self.constness.depends_on_sizes(tensor, ref)) and constant_policy.has_one_answer:
            raise self.refusal("a value that depends on sizes is read", ConstantDependsOnSize)
        return depends_on_sizes is False and constant_policy.asked(line_of(sys._getframe(1)))

    def note(self, op: Any, args: tuple[Any, ...], results: Sequence[torch.Tensor], sizes: list[Any]) -> None:
        """Record a call, already made, of an operator with subgraphs."""
        if self.loops is not None and self.loops.stamp():
            raise self.refusal(f"{op} is called in a loop over a dynamic dimension, or until a value,")
        leaves, spec = pytree.tree_flatten((args, {}))
        row = OpEvent(
            op, [self.resolve_ref(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec, [], True, sizes=sizes
        )
        row.made += [self._output_meta(result, Ref("row", len(self.rows), part)) for part, result in enumerate(results)]
        self._add(row)

    def sizes(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        """Return the sizes of a tensor, as expressions if the follower knows them."""
        known = self.follower.known.get(self.ref(tensor)._replace(turns=())) if self.follower is not None else None
        return tuple(tensor.shape) if known is None else known

    def is_not_to_be_written(self, tensor: torch.Tensor, since: str) -> None:
        """Refuse later writes into the memory of this tensor."""
        self._given.setdefault(storage(tensor), since)

    def _notify(self, follower: TraceListener, row: OpEvent) -> None:
        assert self.scopes is not None
        row.line, row.scope = frame_text(sys._getframe(3)), self.scopes.now()
        with self._end_run_on_error():
            follower.row(row)

    @contextmanager
    def _end_run_on_error(self) -> Iterator[None]:
        """End the run on an error of the follower, even if the model catches it. The follower creates no fake tensors."""
        try:
            with unset_fake_temporarily() if self.work is not None else nullcontext():
                yield
        except Exception as error:  # noqa: BLE001 - it is raised
            raise self.refuse(error) from None

    def _contiguous(self, tensor: torch.Tensor) -> torch.Tensor:
        """Record nothing for the call, or a copy. torch skips the call for contiguous tensors, such as those with one row."""
        ref, copy = self.ref(tensor), tensor.clone(memory_format=torch.contiguous_format)
        if self.work is not None and isinstance(copy, FakeTensor):
            self.work.record_call(aten.contiguous.default, [tensor], 1, copy)
        if RECORD_CONTIGUOUS_AS_COPY.get() and self.loops is None:
            return self._record_copy(tensor, ref, copy)
        if not tensor.is_contiguous():  # the copy does not change with the tensor
            self.twins.setdefault(storage(tensor), []).append(storage(copy))
        self.place(copy, ref, COPY)
        self._by_layout[layout_of(copy)] = ref
        return copy

    def _record_copy(self, tensor: torch.Tensor, ref: Ref, copy: torch.Tensor) -> torch.Tensor:
        """Record the call as a copy, which it usually is. After a write into one of both tensors, the other must not be read."""
        row = OpEvent(aten.clone.default, [ref, torch.contiguous_format], CONTIGUOUS, [], False)
        row.made.append(self._output_meta(copy, Ref("row", len(self.rows))))
        self.rows.append(row)
        if tensor.is_contiguous() and (name := self._given.get(storage(tensor))) is not None:
            self.is_not_to_be_written(copy, name)
        for one, other in ((tensor, copy), (copy, tensor)):
            self.twins.setdefault(storage(one), []).append(storage(other))
        if self.follower is not None:
            self._notify(self.follower, row)
        return copy

    def _output_meta(self, result: Any, ref: Ref) -> Any:
        if not isinstance(result, torch.Tensor):
            return result
        if result.layout != torch.strided or type(result) not in MADE:
            raise self.refusal(f"a {type(result).__name__} of layout {result.layout} is created")
        layout = layout_of(result)
        if id(result) not in self._refs:
            self._refs[id(result)] = ref
            self._kept.append(result)
        self._by_layout[layout] = self._refs[id(result)]
        memory, _, shape, stride, dtype = layout
        return TensorMeta(shape, dtype, memory, stride)

    def _check_surroundings(self, func: OpOverload, args: tuple[Any, ...], kwargs: Any) -> None:
        if torch.is_autocast_enabled("cpu"):
            raise self.refusal("the model runs under autocast, which capture by running does not support,")
        if effects.is_random(func) and (reason := refuse_generator(args, kwargs, SEED)) is not None:
            raise self.refusal(reason[0], NoFallback, reason[1])

    def _check(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        """Refuse, before it is made, a call that reads values or writes into what existed before the run."""
        if not isinstance(func, OpOverload):
            raise self.refusal(f"the higher-order operator {func} is called, which capture by running does not support,")
        self._check_surroundings(func, args, kwargs)
        if effects.is_harmless(func):
            return
        if effects.is_inplace_view(func) and (not effects.view_instead_of(func) or self.loops or self.ref(args[0]).kind != "row"):
            raise self.refusal(f"{func} changes the shape or the memory of a tensor in place")
        if func in effects.UNCHECKED:
            raise self.refusal(f"{func} may crash the process at other sizes, because its kernel does not check shapes,")
        if func in effects.VALUES_READ or torch.Tag.data_dependent_output in func.tags:
            without = any(isinstance(leaf, FakeTensor) for leaf in args)
            raise self.too_much("no value can be read") if without else restart_keeping_scalars(self, "a tensor value is read")
        if effects.has_dynamic_output_shape(func, args, kwargs):
            check_size_decided(self, func, pytree.tree_leaves((args, kwargs)))
        for tensor in effects.written(func, args, kwargs):
            if (name := self._given.get(storage(tensor))) is not None:
                if name == VALUES_LEFT_OUT:
                    raise self.too_much("a write into a copied tensor cannot be traced")
                raise self.refusal(f"the model writes into {name}", AliasDiverged if name == COPY else TraceUnsupported)
            if not isinstance(tensor, FakeTensor) and any(isinstance(leaf, FakeTensor) for leaf in pytree.tree_leaves((args, kwargs))):
                raise self.too_much("a write into a tensor with values cannot be traced")
            self.constness.written(tensor, self.constness.came_of(func, pytree.tree_leaves((args, kwargs)), self))
            self.changed.update(number for number, given in self.inputs.items() if storage(given) == storage(tensor))
            self._stale.update(self.twins.get(storage(tensor), ()))
