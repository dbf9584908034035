//! Functions found again by their formulas: one that was written out so that its derivative shares its parts, and that derivative, become
//! an instruction each, or [one for both](Function::pair), which keeps the parts in registers of the processor.
//!
//! A formula is evaluated on [`Symbol`]s, which note down what is computed. It is in the group if that adds no value to it.

use super::Real;
use super::function::Function;
use super::lower::{Id, Node, Values};
use super::space::Extent;
use pullback_table::{Number, elementwise_table};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A formula of one argument.
pub(super) type Formula<F> = for<'a> fn(Symbol<'a, F>) -> Symbol<'a, F>;

/// The work of a function for whose sake formulas are looked for: they all have such a one. Most groups do not.
const COSTLY: usize = 15;

impl<F: Real> Values<F> {
    /// The values with formulas as functions, where nothing else uses their parts.
    pub fn named(mut self) -> Values<F> {
        let is_costly = |(node, _): &(Node, Extent)| matches!(node, Node::Map(f, _) if f.work() >= COSTLY);
        if !self.nodes.iter().any(is_costly) {
            return self;
        }
        // Every formula has its argument twice.
        let uses = self.uses();
        let is_argument = |&x: &Id| uses[x] > 1 && self.extent(x) == Extent::Full;
        let arguments: Vec<Id> = (0..uses.len()).filter(is_argument).collect();
        for x in arguments {
            let record = RefCell::new(Record { values: self, parts: Vec::new() });
            let found = Function::written_out()
                .into_iter()
                .filter_map(|(f, formula)| Some((f, Record::find(&record, x, formula)?)));
            let found: Vec<(Function, Id)> = found.collect();
            let Record { values, mut parts } = record.into_inner();
            self = values;
            if !found.is_empty() {
                parts.retain(|part| found.iter().all(|(_, at)| at != part));
                self.name(x, &found, &parts);
            }
        }
        self
    }

    /// Makes values functions of `x`, unless one of the parts would be left: the functions compute these themselves.
    fn name(&mut self, x: Id, found: &[(Function, Id)], parts: &[Id]) {
        let replace = |values: &mut Self, (f, at): (Function, Id)| {
            let call = Node::Map(f, [x, Id::MAX, Id::MAX]);
            std::mem::replace(&mut values.nodes[at].0, call)
        };
        let old: Vec<Node> = found.iter().map(|&call| replace(self, call)).collect();
        let live = self.live();
        if parts.iter().any(|&part| live[part]) {
            found.iter().zip(old).for_each(|(&(_, at), node)| self.nodes[at].0 = node);
        }
    }
}

/// The values of a group while a formula is evaluated.
struct Record<F> {
    values: Values<F>,
    /// The values on the way to those that were found.
    parts: Vec<Id>,
}

impl<F: Real> Record<F> {
    /// The value that a formula gives for `x`, if it is there.
    fn find(record: &RefCell<Record<F>>, x: Id, formula: Formula<F>) -> Option<Id> {
        let (known, parts) = (record.borrow().values.nodes.len(), record.borrow().parts.len());
        let result = formula(Symbol { id: x, record }).id;
        let mut record = record.borrow_mut();
        let is_new = record.values.nodes.len() > known;
        if is_new {
            record.values.nodes.truncate(known);
            record.parts.truncate(parts);
        }
        (!is_new).then_some(result)
    }
}

/// A value of the group that is noted down.
pub(super) struct Symbol<'a, F> {
    id: Id,
    record: &'a RefCell<Record<F>>,
}

impl<F> Clone for Symbol<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F> Copy for Symbol<'_, F> {}

impl<'a, F: Real> Symbol<'a, F> {
    fn map(self, f: Function, others: &[Id]) -> Self {
        let mut record = self.record.borrow_mut();
        let mut x: SmallVec<[Id; 2]> = [self.id].iter().chain(others).copied().collect();
        let known = record.values.nodes.len();
        let mut id = record.values.map(f, &x);
        // The group may have the operands in the other order.
        if record.values.nodes.len() > known && f.commutes() {
            record.values.nodes.truncate(known);
            x.reverse();
            id = record.values.map(f, &x);
        }
        record.parts.push(id);
        Symbol { id, ..self }
    }
}

impl<F: Real> Neg for Symbol<'_, F> {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(Function::Neg, &[])
    }
}

macro_rules! operators {
    ($($Op:ident $op:ident)*) => {$(
        impl<F: Real> $Op for Symbol<'_, F> {
            type Output = Self;
            fn $op(self, other: Self) -> Self {
                self.map(Function::$Op, &[other.id])
            }
        }
        impl<F: Real> $Op<f64> for Symbol<'_, F> {
            type Output = Self;
            fn $op(self, number: f64) -> Self {
                let number = self.record.borrow_mut().values.number_of(F::from_f64(number).into());
                self.map(Function::$Op, &[number])
            }
        }
    )*};
}
operators! { Add add Sub sub Mul mul Div div }

/// A row that is neither an operator nor a formula.
macro_rules! method {
    ($m:ident $P:ident ($x:ident) base) => {
        fn $m(self) -> Self {
            self.map(Function::$P, &[])
        }
    };
    ($m:ident $P:ident ($a:ident, $b:ident) base) => {
        fn $m(self, other: Self) -> Self {
            self.map(Function::$P, &[other.id])
        }
    };
    ($m:ident $P:ident $x:tt special) => {
        method! { $m $P $x base }
    };
    ($m:ident $P:ident $x:tt $other:tt) => {};
}

macro_rules! number {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        impl<F: Real> Number for Symbol<'_, F> {
            $(method! { $m $P $x $value })*
        }
    };
}
elementwise_table!(number);

#[cfg(test)]
mod tests {
    use super::super::Group;
    use super::super::tests::{actions, bits, draw, run_group, traced};
    use crate::{DType, Tensor};
    use std::f64::consts::FRAC_1_SQRT_2;

    /// How many functions, and how many pairs of them, the group that `f` is takes; it gives the bits of its operations.
    fn exact(f: impl Fn(&[Tensor]) -> Vec<Tensor>, dtype: DType) -> (usize, usize) {
        let x = [draw(1, &[3000], dtype) * 3.0];
        let group = Group::new(traced(&f, &x).into()).expect("a group");
        for (e, y) in f(&x).iter().zip(run_group(&group, &x)) {
            assert!(bits(&e.cast(DType::F64)) == bits(&y.cast(DType::F64)), "{dtype}");
        }
        let [_, maps, pairs] = actions(&group);
        (maps, pairs)
    }

    fn gelu(x: &Tensor) -> (Tensor, Tensor) {
        let share = (x * -FRAC_1_SQRT_2).erfc() * 0.5;
        (&share * x, share)
    }

    fn slope(x: &Tensor, share: &Tensor) -> Tensor {
        let density =
            (x.square() * -0.5).exp() * x * (0.5 * std::f64::consts::FRAC_2_SQRT_PI * FRAC_1_SQRT_2);
        share + density
    }

    #[test]
    fn a_function_and_its_derivative_are_one_instruction() {
        for dtype in [DType::F32, DType::F64] {
            let both = |x: &[Tensor]| {
                let (y, share) = gelu(&x[0]);
                vec![y, slope(&x[0], &share)]
            };
            assert_eq!(exact(both, dtype), (0, 1));
            assert_eq!(exact(|x| vec![slope(&x[0], &gelu(&x[0]).1)], dtype), (1, 0));
            let silu = |x: &[Tensor]| {
                let s = x[0].sigmoid();
                vec![&x[0] * &s, s * (&x[0] * (-&x[0]).sigmoid() + 1.0)]
            };
            assert_eq!(exact(silu, dtype), (0, 1));
        }
    }

    #[test]
    fn a_formula_stays_where_its_parts_are_used() {
        let kept = |x: &[Tensor]| {
            let (y, share) = gelu(&x[0]);
            vec![y, slope(&x[0], &share), share]
        };
        let group = Group::new(traced(kept, &[draw(1, &[3000], DType::F64)]).into()).expect("a group");
        assert_eq!(actions(&group), [1, 8, 0]);
        // Another number is another formula.
        assert_eq!(exact(|x| vec![(&x[0] * -0.7).erfc() * 0.5 * &x[0]], DType::F64), (3, 0));
    }
}
