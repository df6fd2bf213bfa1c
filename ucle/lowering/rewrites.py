"""Rewrites of sums of products: opening brackets, multiplying out, and factoring out.

A `Rewritten` program has polynomials in place of some uses. Each `Rewrite` derives one from another
by a law of arithmetic:

- *open*: a use becomes its polynomial, with nested products as one product, whose factors may
  be joined in any order, and sums over labels within its terms; no entry is joined with itself
  (`ucle.lowering.joined_once`);
- *multiply out*: one sum among the factors is distributed over the others;
- *take out*: a common factor of several terms is multiplied by the sum of their cofactors.

Rewrites are identified by names and not by sizes (`Rewrite.key`), so that they can be applied again
when the sizes of the data have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import replace
from fractions import Fraction

from ucle.foundation.dataclasses import dataclass
from ucle.foundation.dtypes import DType
from ucle.ir.layouts import Label
from ucle.lowering.joined_once import join_once
from ucle.lowering.logical import Labels, LogicalProgram, LogicalStatement, Use
from ucle.lowering.polynomials import Monomial, Polynomial, fresh
from ucle.lowering.read_polynomials import SIGNS, Polynomials
from ucle.lowering.rounding import may_multiply_out, may_sum_terms

OPEN, MULTIPLY_OUT, TAKE_OUT = "opened", "multiplied out", "taken out"
"""The laws, by their names in explanations."""


@dataclass(frozen=True)
class Root:
    """The use that a polynomial defines: one in a statement, or a name for a cofactor."""

    statement: str
    use: Use


@dataclass(frozen=True)
class Rewrite:
    """One law, applied to the polynomial of a root; `factor` is multiplied out or taken out."""

    law: str
    root: Root
    factor: Use | None = None

    @property
    def key(self) -> object:
        """A key that is equal in programs that differ only in the sizes of labels."""
        uses = [self.root.use, *([] if self.factor is None else [self.factor])]
        return self.law, self.root.statement, [(x.tensor, x.operand.names, x.maps) for x in uses]

    def text(self, written: LogicalStatement) -> str:
        """Return a text about the rewrite, with the steps of the written statement written out."""
        text = f"{self.law} in {self.root.statement}"
        return text if self.factor is None else f"{text}: {written.expression(self.factor)}"


@dataclass(frozen=True)
class Rewritten:
    """A program with polynomials in place of uses; `sums` are those with names of their own.

    `unsafe` are the statements with a rewrite that may lose digits (`ucle.lowering.rounding`).
    """

    roots: Mapping[Root, Polynomial]
    sums: Mapping[Root, Polynomial]
    rewrites: tuple[Rewrite, ...] = ()
    unsafe: frozenset[str] = frozenset()

    @property
    def key(self) -> object:
        """A key that is equal for equal programs, whatever rewrites made them."""
        return frozenset([*self.roots.items(), *self.sums.items()])

    def of(self, root: Root) -> Polynomial:
        """Return the polynomial of a root."""
        return self.sums[root] if root in self.sums else self.roots[root]

    def roots_of(self, statement: str) -> dict[Use, Polynomial]:
        """Return the polynomials of the uses in a statement."""
        return {root.use: x for root, x in self.roots.items() if root.statement == statement}

    def mark_unsafe(self, root: Root) -> Rewritten:
        """Return this program with a root in which digits may be lost."""
        return replace(self, unsafe=self.unsafe | {root.statement})


class Rewriter:
    """The rewrites of one program.

    Args:
        logical: the program.
        fixed: tensors whose statements stay as they are.
        algebraic: True if brackets may be opened even if that loses digits.
        measured: True if the condition numbers of all that may lose digits are computed with it
            (`ucle.lowering.condition_numbers`). Sums that have none stay as they are.
    """

    def __init__(
        self,
        logical: LogicalProgram,
        fixed: Collection[str] = (),
        *,
        algebraic: bool = False,
        measured: bool = False,
    ) -> None:
        self.logical = logical
        self.polynomials = Polynomials(logical, fixed)
        self.measured = measured
        self._algebraic = algebraic
        self._worth: dict[Root, bool] = {}
        self._flattened: dict[Polynomial, Polynomial | None] = {}
        self._products: dict[Use, bool] = {}
        reads = Counter(x for statement in logical.statements for x in statement.reads)
        self._shared = {x for x, n in reads.items() if n > 1}.intersection(logical.by_name)
        self._roots = [
            Root(statement.target, use)
            for statement in logical.statements
            if statement.target not in self.polynomials.fixed and statement.path is None
            for use in self._uses(statement)
        ]

    @property
    def has_sums(self) -> bool:
        """True if there are sums of products, which rewrites may change."""
        return bool(self._roots)

    def within(self, statements: Collection[str]) -> Rewriter:
        """Return a rewriter of some statements alone."""
        other = copy(self)
        other._roots = [root for root in self._roots if root.statement in statements]
        return other

    def find_openable(self, statement: str) -> list[str]:
        """Return the statements that one reads and may open brackets of, once for each read."""
        reads = self.logical.by_name[statement].reads
        return [name for name in reads if self._is_sum_of_products(name)]

    def _is_sum_of_products(self, name: str) -> bool:
        written = self.logical.by_name.get(name)
        if written is None:
            return False
        return self.polynomials.of(Use(name, written.labels, written.result.dtype)) is not None

    @property
    def written(self) -> Rewritten:
        """The program as it is written."""
        return Rewritten({}, {})

    def normal_form(self) -> Rewritten:
        """Return the program with all brackets multiplied out, as far as allowed."""
        now = self.written
        for root in self._roots:
            if self._is_worth_opening(root):
                now = self._open_brackets(now, root) or now
        tried: set[Rewrite] = set()
        while True:
            steps = (x for x in self._rewrites(now) if x.law == MULTIPLY_OUT and x not in tried)
            rewrite = next(steps, None)
            if rewrite is None:
                return now
            tried.add(rewrite)
            now = self.apply(now, rewrite) or now

    def neighbours(self, now: Rewritten) -> Iterator[Rewritten]:
        """Yield the programs that one more rewrite makes."""
        for rewrite in self._rewrites(now):
            rewritten = self.apply(now, rewrite)
            if rewritten is not None:
                yield rewritten

    def again(self, rewrites: Collection[Rewrite]) -> Rewritten | None:
        """Apply the rewrites of a program with other sizes to this one; None if they do not fit."""
        now = self.written
        for rewrite in rewrites:
            same = (x for x in self._rewrites(now) if x.key == rewrite.key)
            rewritten = next((self.apply(now, x) for x in same), None)
            if rewritten is None:
                return None
            now = rewritten
        return now

    def apply(self, now: Rewritten, rewrite: Rewrite) -> Rewritten | None:
        """Apply a rewrite; None if it does not change anything."""
        if rewrite.factor is None:
            return self._open_brackets(now, rewrite.root)
        rule = self._multiply_out if rewrite.law == MULTIPLY_OUT else self._take_out_factor
        return rule(now, rewrite.root, rewrite.factor)

    def build_polynomials(self, now: Rewritten) -> Polynomials:
        """Return the polynomials of the program, including the sums with names of their own."""
        return self.polynomials.with_sums({x.use.tensor: p for x, p in now.sums.items()})

    # ---- Places ----

    def _uses(self, statement: LogicalStatement) -> Iterator[Use]:
        """Yield the uses that are sums of products inside steps or functions that are none."""
        outer = [statement.result]
        for step in statement.steps:
            polynomial = self.polynomials.of(Use(step.name, step.labels, step.dtype))
            if polynomial is None:
                outer += [factor.cast(step.dtype) for factor in step.factors]
            else:  # in it, a divisor is a function, too
                outer += [use for use in polynomial.uses if self.polynomials.of(use) is None]
        yield from dict.fromkeys(core for use in outer if (core := self._core(use)) is not None)

    def _core(self, use: Use) -> Use | None:
        """Return a use without the functions that are applied to a sum of products."""
        for count in range(len(use.maps), -1, -1):
            core = use.with_maps(count)
            if self.polynomials.is_local(core) and self.polynomials.of(core) is not None:
                return core
        return None

    def _rewrites(self, now: Rewritten) -> Iterator[Rewrite]:
        known = self.build_polynomials(now)
        for root in self._roots:
            if root not in now.roots and self._is_worth_opening(root):
                yield Rewrite(OPEN, root)
        for root, polynomial in [*now.roots.items(), *now.sums.items()]:
            yield from self._on(known, root, polynomial)

    def _on(self, known: Polynomials, root: Root, polynomial: Polynomial) -> Iterator[Rewrite]:
        """Yield the rewrites of one polynomial."""
        for use in polynomial.uses:
            if self._may_multiply_out(known, polynomial, use):
                yield Rewrite(MULTIPLY_OUT, root, use)
            terms = (_with_factor(x, use, polynomial.labels) for x in polynomial.monomials)
            if sum(term is not None for term in terms) > 1:
                yield Rewrite(TAKE_OUT, root, use)

    def _is_worth_opening(self, root: Root) -> bool:
        """Return whether a use's polynomial differs from the text, or can by more rewrites."""
        if root not in self._worth:
            self._worth[root] = self._gains(root)
        return self._worth[root]

    def _gains(self, root: Root) -> bool:
        opened = self._open_brackets(self.written, root)
        if opened is None:
            return False
        if self.polynomials.terms_summed(root.use) is not None:
            return True
        polynomial = opened.roots[root]
        products = any(len(term.factors) > 1 for term in polynomial.monomials)
        if products and self._has_sum(root.use):
            return True  # a sum of a product, which is one chain with it
        if any(self._on(self.polynomials, root, polynomial)):
            return True
        gone = self._shared.difference(use.tensor for use in polynomial.uses)
        if not gone.isdisjoint(self.logical.by_name[root.statement].reads):
            return True
        return self._flat(self.polynomials, self.polynomials.of(root.use)) != polynomial

    def _has_sum(self, use: Use) -> bool:
        """Return whether a use, or a term of it, is a sum of another tensor over labels."""
        step = self.polynomials.step(use.tensor)
        if step is None or step.combine is None:
            return step is not None
        return step.combine in SIGNS and any(map(self._has_sum, step.factors))

    def _may_lose_digits(self, dtype: DType) -> bool:
        return self._algebraic and (dtype.kind == "f" or not self.measured)

    def _may_multiply_out(self, known: Polynomials, polynomial: Polynomial, use: Use) -> bool:
        inner = known.of(use)
        if inner is None or len(inner.monomials) == 1 or not known.is_finite_inside(use):
            return False
        return self._may_lose_digits(polynomial.dtype) or _keeps_digits(known, polynomial, use)

    # ---- Laws ----

    def _open_brackets(self, now: Rewritten, root: Root) -> Rewritten | None:
        polynomial = self.polynomials.of(root.use)
        if polynomial is None:
            return None
        safe = may_sum_terms(self.polynomials, root.use)
        if not safe and not self._may_lose_digits(polynomial.dtype):
            return None
        flat = self._joined_once(self.build_polynomials(now), polynomial.simplify_terms())
        if flat is None:
            return None
        done = Rewrite(OPEN, root)
        opened = replace(now, roots={**now.roots, root: flat}, rewrites=(*now.rewrites, done))
        return opened if safe else opened.mark_unsafe(root)

    def _multiply_out(self, now: Rewritten, root: Root, factor: Use) -> Rewritten | None:
        polynomial = now.of(root)
        known = self.build_polynomials(now)
        expanded = polynomial.expand_factors(lambda use: _same(use, factor), known.get_polynomial)
        flat = self._joined_once(known, expanded)
        if flat is None:
            return None
        safe = not self._algebraic or _keeps_digits(known, polynomial, factor)
        done = Rewrite(MULTIPLY_OUT, root, factor)
        rewritten = self._replace_root(now, root, flat, done)
        return rewritten if safe else rewritten.mark_unsafe(root)

    def _take_out_factor(self, now: Rewritten, root: Root, factor: Use) -> Rewritten | None:
        """Factor out: a factor times the sum of its cofactors, under labels of its first term."""
        polynomial = now.of(root)
        over: Labels = ()
        rest, others = list[Monomial](), list[Monomial]()
        for term in polynomial.monomials:
            aligned = _with_factor(term, factor, polynomial.labels)
            if aligned is None:
                others.append(term)
                continue
            over, inner = aligned
            rest.append(inner)
        labels = tuple(dict.fromkeys(label for term in rest for label in _order_labels(term)))
        remainder = Polynomial(labels, polynomial.dtype, tuple(rest)).simplify_terms()
        if remainder is None or len(remainder.monomials) == 1:
            return None
        use = Use(f"{root.statement}.p{len(now.rewrites) + 1}", labels, polynomial.dtype)
        sums = {**now.sums, Root(root.statement, use): remainder}
        changed = replace(
            polynomial, monomials=(Monomial(Fraction(1), (factor, use), over), *others)
        )
        now = replace(now, sums=sums)
        if not all(map(self.build_polynomials(now).fits, (remainder, changed))):
            return None
        done = Rewrite(TAKE_OUT, root, factor)
        return self._replace_root(now, root, changed, done)

    def _joined_once(self, known: Polynomials, polynomial: Polynomial | None) -> Polynomial | None:
        """Return a polynomial in flat products in which no entry is joined with itself."""
        flat = self._flat(known, polynomial)
        return None if flat is None else join_once(known, flat)

    def _flat(self, known: Polynomials, polynomial: Polynomial | None) -> Polynomial | None:
        """Return a polynomial with factors that are products flattened, if all are finite."""
        if polynomial is None:
            return None
        if known.sums:
            return _flatten(known, polynomial, {})
        if polynomial not in self._flattened:
            self._flattened[polynomial] = _flatten(known, polynomial, self._products)
        return self._flattened[polynomial]

    def _replace_root(
        self, now: Rewritten, root: Root, polynomial: Polynomial, done: Rewrite
    ) -> Rewritten:
        roots, sums = dict(now.roots), dict(now.sums)
        (sums if root in sums else roots)[root] = polynomial
        needed = _find_needed_sums(roots, sums)
        return replace(now, roots=roots, sums=needed, rewrites=(*now.rewrites, done))


def _flatten(
    known: Polynomials, polynomial: Polynomial, products: dict[Use, bool]
) -> Polynomial | None:
    """Flatten factors that are products; `products` remembers which uses are, in these sums."""

    def is_product(use: Use) -> bool:
        if use not in products:
            inner = known.of(use)
            single = inner is not None and len(inner.monomials) <= 1
            products[use] = single and not known.is_named_sum(use) and known.is_finite_inside(use)
        return products[use]

    flat: Polynomial | None = polynomial
    while flat is not None and any(map(is_product, flat.uses)):
        flat = flat.expand_factors(is_product, known.get_polynomial)
    return None if flat is None or not known.fits(flat) else flat


def _keeps_digits(known: Polynomials, polynomial: Polynomial, use: Use) -> bool:
    """Return whether a factor may be multiplied out of all terms without losing digits."""
    return all(
        may_multiply_out(known, term, place)
        for term in polynomial.monomials
        for place, factor in enumerate(term.factors)
        if _same(factor, use)
    )


def _same(one: Use, other: Use) -> bool:
    """Return whether two uses read the same tensor with the same maps, under any labels."""
    return (one.tensor, one.maps) == (other.tensor, other.maps)


def _with_factor(term: Monomial, factor: Use, free: Labels) -> tuple[Labels, Monomial] | None:
    """Return the rest of a term beside a factor, and the factor's labels that are summed.

    Summed labels of the term get the names that they have in the factor; `free` are the labels that
    are not summed. None if there is no such factor.
    """
    for place, own in enumerate(term.factors):
        if not _same(own, factor) or own.dtype is not factor.dtype:
            continue
        names = dict(zip(own.labels, factor.labels, strict=True))
        if len(set(names.values())) < len(names):
            continue
        if tuple(names[label] for label in own.labels) != factor.labels:  # one is a diagonal
            continue
        if any(
            label not in term.over if name not in free else label != name
            for label, name in names.items()
        ):
            continue
        summed = tuple(names[label] for label in term.over if label in names)
        rest = tuple(label for label in term.over if label not in names)
        others = fresh(rest, {label.name: label for label in (*free, *factor.labels)})
        inner = Monomial(term.coefficient, term.without({place}), rest)
        return summed, inner.rename_labels({**names, **others})
    return None


def _order_labels(monomial: Monomial) -> Iterator[Label]:
    """Yield the labels that are left, in the order of their first use."""
    for factor in monomial.factors:
        yield from (label for label in factor.labels if label in monomial.labels)


def _find_needed_sums(
    roots: Mapping[Root, Polynomial], sums: Mapping[Root, Polynomial]
) -> dict[Root, Polynomial]:
    """Return the named sums that the polynomials need."""
    by_name = {root.use.tensor: (root, polynomial) for root, polynomial in sums.items()}
    needed: dict[Root, Polynomial] = {}
    waiting = list(roots.values())
    while waiting:
        for use in waiting.pop().uses:
            if use.tensor in by_name:
                root, polynomial = by_name[use.tensor]
                if root not in needed:
                    needed[root] = polynomial
                    waiting.append(polynomial)
    return {root: sums[root] for root in sums if root in needed}
