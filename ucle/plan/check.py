"""The invariants of the structures that each stage hands to the next.

The structures reject ill-formed values when they are made. Invariants between several of them are
stated here. A violation is a defect of ucle, not of its input, and so an `AssertionError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ucle.ir.layouts import Layout, Level
from ucle.plan import relation_nodes as plans
from ucle.plan.decomposition import DecomposedProgram
from ucle.plan.relation_tree import nodes
from ucle.plan.steps import Plan, Role, Round, Step


def check_decomposed(decomposed: DecomposedProgram) -> None:
    """Check that every vertex has a decomposition over its own labels, and every input a place."""
    program = decomposed.program
    for vertex in program.vertices:
        labels = decomposed.decompositions[vertex.name].labels
        assert labels == vertex.label_names, f"{vertex.name} is decomposed by {', '.join(labels)}"
    assert decomposed.decompositions.keys() == {vertex.name for vertex in program.vertices}
    assert decomposed.stored.keys() == program.input_names
    assert decomposed.costs.keys() == decomposed.decompositions.keys()


def check_plan(plan: Plan) -> None:
    """Check that steps read only earlier steps with matching types and layouts, and unique names.

    Names must differ even when case is folded. The views of a step are read by it alone.
    """
    earlier: dict[str, Step] = {}
    for step in plan.steps:
        assert not step.views or step.role is Role.TABLE, step.name
        by_name = dict(earlier)
        for part in (*step.views, step):
            _check_step(part, by_name)
        for each in step.rounds:
            _check_round(step, each, dict(earlier))
        assert step.name not in earlier
        earlier[step.name] = step
    taken = {name.casefold() for name in earlier}
    assert len(taken) == len(earlier), "two names are one to a database"
    for name, read in plan.outputs.items():
        assert read.step in earlier, f"output {name} is not made"


def _check_round(step: Step, part: Round, by_name: dict[str, Step]) -> None:
    """Check that a round makes tuples of its step, from its own tables or earlier steps."""
    for table in part.tables:
        known = dict(by_name)
        for each in (*table.views, table):
            _check_step(each, known)
        by_name[table.name] = table
    whole = replace(step, relation=part.relation, views=(), rounds=())
    for each in (*part.views, whole):
        _check_step(each, by_name)
    made = part.relation.type, part.relation.layout
    assert made == (step.relation.type, step.relation.layout), f"{step.name} has another round"


def _check_step(step: Step, by_name: dict[str, Step]) -> None:
    """Check one step, and add it to the known steps."""
    assert step.name not in by_name, step.name
    for node in nodes(step.relation):
        if isinstance(node, plans.Read):
            assert node.step in by_name, f"{step.name} reads {node.step} before it is made"
            source = by_name[node.step].relation
            if isinstance(source, plans.Load):
                assert node.column is None or (source.listed and node.column == plans.LISTED)
            elif node.column is not None:
                assert isinstance(source, plans.FusedStep | plans.HeldRow | plans.PairedScan)
                source = source.members[node.column]
            assert (source.type, source.layout) == (node.type, node.layout), node.step
        _check_node(node)
    by_name[step.name] = step


def _check_node(node: plans.Relation) -> None:
    match node:
        case plans.Decompose(source, layout):
            assert source.layout.union(layout) == layout != source.layout, "decomposes nothing"
        case plans.Stack(source, layout):
            assert source.layout.union(layout) == source.layout != layout, "stacks nothing"
        case plans.Compress() | plans.Expand() | plans.Recode() | plans.Gather():
            _check_compression(node)
        case plans.BlockRepartition(source, layout, axis, block):
            assert axis in source.layout.promoted, "blocks of an axis that is not a key"
            assert axis in layout.dense, "blocks of an axis that stays a key"
            assert set(layout.promoted) - set(source.layout.promoted), "promotes nothing"
            assert block > 1, "blocks of single tuples"
        case plans.ByReference() | plans.PackedForest() | plans.MultiwayJoin():
            _check_whole(node)
        case plans.Slices() | plans.Portion():
            _check_parts(node)
        case plans.Nested(source):
            assert not source.layout.promoted, "an expression of more than one tuple"
            assert not isinstance(source, plans.Read), "an expression that is no more than a read"
        case plans.FusedStep(operands, lines, results):
            _check_tape(operands, lines, results)
        case plans.FusedMaps(operands, program, type_, layout):
            assert not any(x.layout.promoted for x in (node, *operands))
            letters = {word[0].lower() for word in program.split() if word[1:2] in ("", ":")}
            assert set("abcdefgh"[: len(operands)]) <= letters, f"{program} leaves operands out"
        case plans.LookupJoin():
            _check_lookups(node)
        case plans.ConstantRelation(data, type_, layout):
            assert not layout.promoted, "a constant of more than one tuple"
            assert len(data) == type_.tuple_bytes(layout)
        case plans.Reindex():
            _check_reindex(node)
        case plans.ColumnExpressions():
            _check_columns(node)
        case plans.PairedScan(first, second):
            scans = [x for x in nodes(node) if isinstance(x, plans.TableScan)]
            assert second.layout.scalar, "arrays beside other values"
            assert len({x.source.origin for x in scans}) == 1, "rows of several tables"
            assert len({x.source.keys for x in scans}) == 1, "rows with other keys"
            assert len(first.layout.promoted) == len(second.layout.promoted)
        case plans.PrefixScan():
            _check_running(node)
        case plans.TopKEntries():
            _check_first_entries(node)
        case plans.Aggregate(compute, _, labels, type_, layout):
            assert len(labels) == type_.rank == len(layout.levels)
            promoted, dense = _split(labels, layout)
            keys = _promoted_labels(compute)
            assert promoted <= keys, f"groups by {sorted(promoted - keys)}, which are not keys"
            assert not dense & keys, f"{sorted(dense & keys)} are keys and inside the arrays"


def _check_reindex(node: plans.Reindex) -> None:
    """Check that an index map fits the axes, and that its kernel or none makes the arrays."""
    source, index, axes, labels = node.input, node.index, node.axes, node.labels
    kernel, type_, layout = node.kernel, node.type, node.layout
    assert len(axes) == source.type.rank == len(index.indices)
    assert len(labels) == type_.rank == len(layout.levels)
    keys = {axes[n] for n in source.layout.promoted} | {labels[n] for n in layout.promoted}
    arrays = [axes[n] for n in source.layout.dense], [labels[n] for n in layout.dense]
    assert index.find_key_labels(keys, axes) == keys, "keys of the source that decide no keys"
    sizes = (
        {x: n * (k in source.layout.dense) for k, (x, n) in enumerate(_sizes(axes, source))},
        {x: n for k, (x, n) in enumerate(_sizes(labels, node)) if k in layout.dense},
    )
    passes = index.leaves(*arrays) or index.same_elements(*sizes)
    assert kernel.name is not None or passes, "arrays do not pass"


def _check_columns(node: plans.ColumnExpressions) -> None:
    """Check that entries of rows are made by a stage, from the table or earlier stages."""
    assert node.input.source.wide, "expressions over the columns of no wide table"
    assert sorted(node.axes) == list(node.layout.promoted), "keys that are not those of the table"
    assert len(node.cells) == node.type.dense_size(node.layout), "too few or too many entries"
    made = [len(node.input.source.wide), *(len(stage.entries) for stage in node.stages)]
    operands = {
        (x, place)
        for place, stage in enumerate(node.stages, 1)
        for entry in stage.entries
        for term in entry
        for x in term
        if isinstance(x, plans.Cell)
    }
    ends = {(cell, len(made)) for cell in node.cells}
    for cell, before in operands | ends:
        assert cell.stage < before, "an entry that is read before it is made"
        assert cell.number < made[cell.stage], "an entry of no stage"


def _check_lookups(node: plans.LookupJoin) -> None:
    """Check that the first operand has the keys of all, and that operations use earlier values."""
    assert len(node.operands) == len(node.labels), "operands without labels"
    base, *others = (
        _split(labels, operand.layout)[0]
        for labels, operand in zip(node.labels, node.operands, strict=True)
    )
    assert node.operands[0].layout.scalar, "the tuples of arrays"
    assert all(keys <= base for keys in others), "looks up by keys that are not there"
    assert len(node.layout.promoted) == len(base), "other tuples than those of the first operand"
    for number, operation in enumerate(node.operations, len(node.operands)):
        assert max(operation.inputs) < number, "an operation on a value that is not there yet"


def _check_tape(
    operands: Sequence[plans.Relation],
    lines: Sequence[plans.Relation],
    results: Mapping[str, plans.Slot],
) -> None:
    """Check that lines are whole tensors, made of operands and of earlier lines."""
    assert results, "a tape that makes nothing"
    known = list(operands)
    for line in lines:
        for node in nodes(line):
            assert not node.layout.promoted, "a line with keys"
            if isinstance(node, plans.Slot):
                assert node.layout == known[node.number].layout, "a tensor in another layout"
        known.append(line)
    for slot in results.values():
        assert slot.layout == known[slot.number].layout, "a result in another layout"


def _check_whole(node: plans.ByReference | plans.PackedForest | plans.MultiwayJoin) -> None:
    assert not node.layout.promoted, "more than one tuple, of which there has to be one"
    if isinstance(node, plans.MultiwayJoin):
        assert not any(x.layout.promoted for x in node.operands), "operands of several tuples"
        assert node.layout.compressed is not None or node.type.rank < 2, "a dense matrix"
    if isinstance(node, plans.PackedForest):
        assert node.type.rank == 2, "a forest of other axes than nodes and outputs"
        assert node.features > 0, "a forest that looks at nothing"


def _check_parts(node: plans.Slices | plans.Portion) -> None:
    assert node.axis in node.input.layout.promoted, "parts by an axis that is not a key"
    match node:
        case plans.Slices(starts=starts):
            assert starts, "slices of one part"
            assert list(starts) == sorted(set(starts)), "slices that overlap"
        case plans.Portion(start=start, end=end):
            assert start is None or end is None or start < end, "a portion of nothing"


def _sizes(labels: tuple[str, ...], relation: plans.Relation) -> zip[tuple[str, int]]:
    return zip(labels, relation.type.shape, strict=True)


def _check_running(node: plans.PrefixScan) -> None:
    source, along = node.input, node.layout.dense and {*node.axes}.issubset(node.layout.dense)
    assert len(node.labels) == node.type.rank == source.type.rank
    assert source.layout == node.layout, "runs in another layout"
    assert (node.kernel.name is not None) == bool(along), "a kernel of keys, or none of arrays"
    assert along or node.layout.scalar, f"windows over arrays along {node.along.labels}"


def _check_first_entries(node: plans.TopKEntries) -> None:
    source = node.input
    assert len(node.axes) == source.type.rank == node.type.rank - 1
    assert source.type.dtype == node.type.dtype, "positions of another type than values"
    kept = [level for n, level in enumerate(source.layout.levels) if n != node.axis]
    assert kept == list(node.layout.levels[:-2]), "first entries in another layout"
    assert node.layout.scalar or {node.type.rank - 1, node.type.rank - 2} <= {*node.layout.dense}
    assert node.layout.scalar == (node.kernel.name is None), "a kernel of keys, or none of arrays"
    assert not node.layout.scalar or source.layout.scalar, "ranks arrays"
    assert node.whole or node.axis in source.layout.promoted, "leaves gaps in arrays"


def _check_compression(node: plans.Relation) -> None:
    match node:
        case plans.Compress(source, layout):
            assert source.layout.scalar, "compresses what is no entry"
            assert layout.compressed is not None, "compresses nothing"
        case plans.Expand(source, layout):
            assert source.layout.compressed is not None, "expands nothing"
            assert layout.scalar, "expands to what is no entry"
        case plans.Recode(source, layout):
            axis = layout.compressed
            axis = source.layout.compressed if axis is None else axis
            assert axis is not None, "recodes nothing"
            levels = {x.levels[axis] for x in (source.layout, layout)}
            assert len(levels) == 2, "recodes nothing"
            assert Level.DENSE in levels, "recodes no dense array"
            assert levels.isdisjoint({Level.PROMOTED, Level.TILED}), "recodes keys"
            assert source.layout.promoted == layout.promoted, "recodes other tuples"
        case plans.Gather(source, layout):
            assert source.layout.compressed == layout.compressed is not None, "gathers dense tiles"
            assert len(source.layout.tiled) == 1, "gathers what is no tile"
            assert not layout.tiled, "gathers to tiles"


def _promoted_labels(compute: plans.Compute) -> set[str]:
    """Return the labels that are keys of a kernel's input.

    A shared label must have one level on both sides.
    """
    source = compute.input
    if isinstance(source, plans.MaskedJoin):
        return _split(source.labels, source.mask.layout)[0]
    if not isinstance(source, plans.Join):
        return _split(compute.labels, source.layout)[0]
    left, left_dense = _split(source.left_labels, source.left.layout)
    right, right_dense = _split(source.right_labels, source.right.layout)
    torn = (left & right_dense) | (right & left_dense)
    assert not torn, f"{sorted(torn)} are shared and have two levels"
    return left | right


def _split(labels: tuple[str, ...], layout: Layout) -> tuple[set[str], set[str]]:
    """Return the labels that are keys, and those that are inside the arrays alone."""
    keys = {labels[axis] for axis in layout.promoted}
    return keys, {labels[axis] for axis in layout.dense if axis not in layout.tiled}
