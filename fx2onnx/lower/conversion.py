"""Converts a captured program to an ONNX model: inputs, weights, nodes, outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from torch.export.graph_signature import InputKind, OutputKind

from ..errors import MutationError, NameCollision, UnsupportedArgument, build_unsupported_error
from ..ir.complex_pairs import ComplexPair
from ..ir.context import ModelContext
from ..ir.dtypes import BOOL, FLOAT, INT64, NoKernel, onnx_dtype
from ..ir.expressions import expression, sizes_of
from ..ir.graph import Graph
from ..ir.quantized import Quantized
from ..ir.tensor import Tensor
from ..ir.translation import TranslationOf
from ..saving import PRODUCER
from ..state import describe_state
from .aliasing import writes
from .dtype_check import check_types
from .interpreter import FunctionCalls, Interpreter
from .subgraphs import subgraph_translator

WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
IR_VERSION = 10
_INSTEAD = "pass torch.view_as_real of a complex tensor, or int_repr() of a quantised one"


@dataclass(frozen=True)
class ConversionOptions:
    """The options of a conversion."""

    opset: int
    input_names: Sequence[str] = ()
    output_names: Sequence[str] = ()
    mutations: str = "error"


class Conversion:
    """The conversion of one program."""

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        asked: ConversionOptions,
        dim_names: dict[Any, str],
        dispatch: TranslationOf,
        functions: FunctionCalls | None = None,
    ) -> None:
        self.program = program
        self.asked = asked
        self.shared = ModelContext(asked.opset, dim_names)
        self.g = Graph(self.shared)
        self.tracks = writes(program.graph_module) or _declares_writes(program)
        self.g.subgraph = subgraph_translator(dispatch, self.tracks, functions)
        self.interpreter = Interpreter(self.g, program.graph_module, dispatch, self.tracks, functions)
        self.inputs: list[Tensor] = []
        self.weights: dict[str, Tensor] = {}
        self.mutated: tuple[str, ...] = ()
        self.unchanged: tuple[str, ...] = ()  # inputs that the model writes into, but the exported model does not
        self.state: dict[str, torch.Tensor] = {}
        self.kinds = {spec.arg.name: spec for spec in program.graph_signature.input_specs}

    def model(self) -> ir.Model:
        """Return the ONNX model.

        Raises:
            CaptureError, UnsupportedOps, MutationError, NameCollision: see these classes.
        """
        check_types(self.program.graph_module)
        placeholders = self.program.graph.find_nodes(op="placeholder")
        self._check_names(placeholders)
        for node in placeholders:
            self._place(node)
        self._weights(placeholders)
        self._check_state()
        self.interpreter.run_graph(self.program.graph)
        if self.interpreter.failures:
            raise build_unsupported_error(self.interpreter.failures)
        outputs = self._outputs(placeholders)
        return self._assemble_model(outputs)

    def _user_inputs(self, placeholders: Sequence[torch.fx.Node]) -> list[torch.fx.Node]:
        taken = [n for n in placeholders if self.kinds[n.name].kind == InputKind.USER_INPUT]
        return [n for n in taken if isinstance(n.meta.get("val"), (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool))]

    def _check_names(self, placeholders: Sequence[torch.fx.Node]) -> None:
        inputs = [n.name for n in self._user_inputs(placeholders)]
        asked = list(self.asked.input_names)
        if len(asked) > len(inputs):
            raise NameCollision(f"input_names has {len(asked)} names, but the model has {len(inputs)} inputs: {', '.join(inputs)}")
        names = asked + inputs[len(asked) :] + list(self.asked.output_names)
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise NameCollision(f"{', '.join(twice)}: used more than once in input_names, output_names and the remaining inputs")
        for name in names:
            self.shared.names.unique(name)

    def _place(self, node: torch.fx.Node) -> None:
        value = node.meta.get("val")
        spec = self.kinds[node.name]
        if spec.kind in WEIGHTS:
            return
        if spec.kind != InputKind.USER_INPUT:
            raise MutationError(f"input {node.name} is a {spec.kind.name.lower()}: only tensors and numbers can be inputs of an ONNX model")
        if isinstance(value, torch.Tensor):
            self._tensor_input(node, value)
        elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            self._number_input(node, value)
        else:
            self.interpreter.memory.bind(node, getattr(spec.arg, "value", value))

    def _input(self, node: torch.fx.Node, dtype: ir.DataType, sizes: tuple[Any, ...]) -> Tensor:
        position = len(self.inputs)
        name = self.asked.input_names[position] if position < len(self.asked.input_names) else node.name
        made = Tensor(name=name, sizes=sizes, type=ir.TensorType(dtype), shape=self.shared.onnx_shape(sizes))
        self.inputs.append(made)
        return made

    def _tensor_input(self, node: torch.fx.Node, value: torch.Tensor) -> None:
        try:
            dtype = onnx_dtype(value.dtype)
        except NoKernel as error:
            raise UnsupportedArgument(f"{node.name}: {error}; {_INSTEAD}") from error
        made = self._input(node, dtype, sizes_of(value))
        self.g.symbols.learn_sizes(made)
        self.interpreter.memory.bind(node, made)

    def _number_input(self, node: torch.fx.Node, value: Any) -> None:
        dtype = {torch.SymInt: INT64, torch.SymFloat: FLOAT, torch.SymBool: BOOL}[type(value)]
        made = self._input(node, dtype, ())
        self.g.symbols.learn_number(expression(value), made)
        self.interpreter.memory.bind(node, expression(value))

    def _weights(self, placeholders: Sequence[torch.fx.Node]) -> None:
        for node in placeholders:
            spec = self.kinds[node.name]
            if spec.kind in WEIGHTS and (node.users or self.tracks):
                made = self.g.initializer_for(self.shared.names.unique(spec.target), _weight(self.program, spec.target))
                self.interpreter.memory.bind(node, made)
                if not isinstance(made, Tensor):
                    continue
                self.weights[spec.target] = made
                if self.tracks and spec.kind != InputKind.PARAMETER:
                    self.shared.may_change.add(made)

    def _check_state(self) -> None:
        """Refuse a buffer whose size changes: torch.export captures a copy into it, but eager has no such copy."""
        for node in self.program.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
            held, new = node.args[:2]
            if held.op == "placeholder" and isinstance(new, torch.fx.Node):
                before, after = sizes_of(held.meta["val"]), sizes_of(new.meta["val"])
                if len(after) > len(before) or any(b not in (1, a) for a, b in zip(before[::-1], after[::-1], strict=False)):
                    raise MutationError(_growing_text(self.kinds[held.name].target or held.name, before, after))

    def _outputs(self, placeholders: Sequence[torch.fx.Node]) -> list[Tensor]:
        results: list[tuple[str, Tensor]] = []
        further: list[tuple[str, Tensor]] = []
        for spec, node in zip(self.program.graph_signature.output_specs, self.program.graph.output_node().args[0], strict=True):
            if spec.kind == OutputKind.USER_OUTPUT:
                results += self._result(node)
            elif spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
                further.append((spec.target, self.interpreter.memory.read(node)))
        further += self._collect_mutations(placeholders)
        if complex_ones := [name for name, value in further if isinstance(value, ComplexPair)]:
            raise MutationError(f"the model changes {', '.join(complex_ones)}, which is complex: store torch.view_as_real of it instead")
        further = sorted(further, key=lambda changed: changed[0] not in self.weights)
        if self.asked.mutations == "error":
            further = self._drop_unchanged_inputs(further)
        if further and self.asked.mutations == "error":
            raise MutationError(_mutation_text([name for name, _ in further]))
        if len(self.asked.output_names) > len(results) + len(further):
            raise NameCollision(
                f"output_names has {len(self.asked.output_names)} names, but the model has {len(results) + len(further)} outputs"
            )
        self._becomes_state([name for name, _ in further])
        return self._name_outputs(results, [(f"{name}_new", value) for name, (_, value) in zip(self.mutated, further, strict=True)])

    def _drop_unchanged_inputs(self, further: list[tuple[str, Tensor]]) -> list[tuple[str, Tensor]]:
        stay = getattr(self.program, "changed_inputs", ())  # torch.export's programs list them in another way
        self.unchanged = tuple(name for name, _ in further if name in stay)
        return [(name, value) for name, value in further if name not in stay]

    def _becomes_state(self, changed: Sequence[str]) -> None:
        """Make each changed buffer an input without a default: ONNX Runtime hides inputs with a default, and warns of them."""
        names = [self.weights[name].name if name in self.weights else name for name in changed]
        self.mutated = tuple(str(name) for name in names)
        for target, name in zip(changed, self.mutated, strict=True):
            if target in self.weights:
                self.inputs.append(self.shared.initializers.pop(name))
                self.state[name] = _weight(self.program, target).detach().clone()
                self.weights[target].const_value = None

    def _result(self, node: Any) -> list[tuple[str, Tensor]]:
        if not isinstance(node, torch.fx.Node):
            return []
        value = self.interpreter.memory.read(node)
        if value is None:
            return []
        fake = node.meta["val"]
        if isinstance(value, ComplexPair):
            said = f"the output {node.name} is {fake.dtype}, and ONNX Runtime does not support complex numbers"
            raise UnsupportedArgument(f"{said}: return torch.view_as_real of it")
        if isinstance(value, Quantized):
            raise UnsupportedArgument(f"the output {node.name} is a quantised tensor: return dequantize() or int_repr() of it")
        if not isinstance(value, ir.Value):
            kind = torch.bool if isinstance(fake, (bool, torch.SymBool)) else torch.int64
            value = self.g.scalar(value, torch.float32 if isinstance(fake, (float, torch.SymFloat)) else kind)
        return [(node.name, value)]

    def _collect_mutations(self, placeholders: Sequence[torch.fx.Node]) -> list[tuple[str, Tensor]]:
        if not self.tracks:
            return []
        found = []
        for node in placeholders:
            if node in self.interpreter.memory and self.interpreter.memory.is_written(node):
                found.append((self.kinds[node.name].target or node.name, self.interpreter.memory.read(node)))
        return found

    def _name_outputs(self, results: list[tuple[str, Tensor]], state: list[tuple[str, Tensor]]) -> list[Tensor]:
        taken: set[int] = set()
        outputs = []
        for position, (name, value) in enumerate(results + state):
            if value.producer() is None or id(value) in taken or position >= len(results):  # a written value keeps the name of its node
                value = self.g.append_identity(value)
                value.name = self.shared.names.unique(name)
            taken.add(id(value))
            if position < len(self.asked.output_names):
                value.name = self.asked.output_names[position]
            outputs.append(value)
        return outputs

    def _assemble_model(self, outputs: list[Tensor]) -> ir.Model:
        used = [v for v in self.shared.initializers.values() if v.uses()]
        graph = ir.Graph(
            self.inputs, outputs, nodes=self.g.nodes, initializers=used, opset_imports=dict(self.shared.domains), name="main_graph"
        )
        model = ir.Model(graph, ir_version=IR_VERSION, producer_name=PRODUCER, functions=list(self.shared.functions.values()))
        if self.mutated:
            describe_state(model, self.mutated, [str(value.name) for value in outputs[-len(self.mutated) :]], self.state)
        return model


def _weight(program: torch.export.ExportedProgram, target: str) -> torch.Tensor:
    return program.state_dict[target] if target in program.state_dict else program.constants[target]


def _declares_writes(program: torch.export.ExportedProgram) -> bool:
    kinds = {spec.kind for spec in program.graph_signature.output_specs}
    return bool(kinds & {OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION})


def _growing_text(name: str, before: Sequence[Any], after: Sequence[Any]) -> str:
    told = " before a call and ".join(f"({', '.join(map(str, sizes))})" for sizes in (before, after))
    return (
        f"the model changes {name}, whose shape is {told} after it, but state of an exported model has a fixed shape. "
        "Make it an argument with a dynamic dimension, and return its new value."
    )


def _mutation_text(names: list[str]) -> str:
    listed = ", ".join(names)
    return (
        f"the model changes {listed}, and an ONNX model keeps no state between calls. "
        'Pass mutations="outputs" to return the new value as an additional output, or write the model without this change.'
    )
