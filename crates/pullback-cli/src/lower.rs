//! Programs over tensors: every construct of the language as operations of the library.

use crate::failure::plain;
use pullback::{AxisRange, Fallible, Tensor};
use pullback_expr::function::Function;
use pullback_expr::{Builtin, Connective, Domain, Program, Reduction, Relation, Span};

/// The rows of the table as methods of tensors.
macro_rules! dispatch {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
        fn apply(f: Function, x: &[Tensor]) -> pullback::Result<Tensor> {
            match f { $(Function::$P => method!(x, $try($($x),+)),)* }
        }
    };
}
macro_rules! method {
    ($v:ident, $try:ident($x:ident)) => {
        $v[0].$try()
    };
    ($v:ident, $try:ident($x:ident, $y:ident)) => {
        $v[0].$try(&$v[1])
    };
}
pullback_table::elementwise_table!(dispatch);

/// Where a value first was not a finite number, and why.
pub struct Trouble {
    pub span: Span,
    pub why: String,
}

/// Tensors as the values of a program. They may be numbers, or placeholders of a trace.
#[derive(Default)]
pub struct Tensors {
    /// Whether to look for values that are not finite.
    watch: bool,
    pub trouble: Option<Trouble>,
    span: Span,
}

type Made = Result<Tensor, String>;

fn made(result: pullback::Result<Tensor>) -> Made {
    result.map_err(|e| plain(&e))
}

fn finite(t: &Tensor) -> bool {
    !t.dtype().is_float() || t.to_vec::<f64>().iter().all(|v| v.is_finite())
}

impl Tensors {
    /// Numbers, of which those that are not finite are noticed.
    pub fn watching() -> Tensors {
        Tensors { watch: true, ..Tensors::default() }
    }

    fn watch(&mut self, f: Function, x: &[Tensor], y: Tensor) -> Tensor {
        if self.watch && self.trouble.is_none() && !finite(&y) && x.iter().all(finite) {
            let scalars: Option<Vec<f64>> = x.iter().map(|t| t.try_item().ok()).collect();
            let why = scalars.and_then(|x| f.trouble(&x));
            let why = why.unwrap_or_else(|| format!("{} gives elements that are not finite", f.name()));
            self.trouble = Some(Trouble { span: self.span, why });
        }
        y
    }
}

impl Domain for Tensors {
    type Value = Tensor;

    fn number(&mut self, v: f64) -> Tensor {
        Tensor::scalar(v)
    }

    fn apply(&mut self, f: Function, x: &[Tensor]) -> Made {
        let y = made(apply(f, x))?;
        Ok(self.watch(f, x, y))
    }

    fn compare(&mut self, r: Relation, a: &Tensor, b: &Tensor) -> Made {
        made(match r {
            Relation::Lt => a.try_lt(b),
            Relation::Le => a.try_le(b),
            Relation::Gt => a.try_gt(b),
            Relation::Ge => a.try_ge(b),
            Relation::Eq => a.try_eq(b),
            Relation::Ne => a.try_ne(b),
        })
    }

    fn logic(&mut self, c: Connective, a: &Tensor, b: &Tensor) -> Made {
        made(match c {
            Connective::And => a.try_and(b),
            Connective::Or => a.try_or(b),
        })
    }

    fn not(&mut self, a: &Tensor) -> Made {
        made(a.try_logical_not())
    }

    fn choose(&mut self, c: &Tensor, a: &Tensor, b: &Tensor) -> Made {
        if c.dtype().is_float() {
            return Err("the condition of a choice must be a comparison".into());
        }
        made(Tensor::try_where(c, a, b))
    }

    fn call(&mut self, f: Builtin, x: &[Tensor]) -> Made {
        made(match f {
            Builtin::Reduce(Reduction::Sum) => x[0].try_sum(),
            Builtin::Reduce(Reduction::Mean) => x[0].try_mean(),
            Builtin::Reduce(Reduction::Prod) => x[0].try_prod(),
            Builtin::Reduce(Reduction::Max) => x[0].try_max(),
            Builtin::Reduce(Reduction::Min) => x[0].try_min(),
            Builtin::Reduce(Reduction::Norm) => x[0].try_norm(),
            Builtin::Dot => x[0].try_dot(&x[1]),
            Builtin::Product => x[0].try_matmul(&x[1]),
            Builtin::Transpose if x[0].rank() == 2 => x[0].try_t(),
            Builtin::Transpose => return Err("only a matrix can be transposed".into()),
        })
    }

    fn matrix(&mut self, rows: usize, x: Vec<Tensor>) -> Made {
        let columns = x.len() / rows.max(1);
        let vector = made(Tensor::try_stack(&x, 0))?;
        if rows == 0 { Ok(vector) } else { made(vector.try_reshape([rows, columns])) }
    }

    fn index(&mut self, x: &Tensor, at: &[Option<usize>]) -> Made {
        let place = |i: &Option<usize>| match i {
            Some(i) => AxisRange::Index(*i as isize),
            None => (..).into(),
        };
        made(x.try_slice(&at.iter().map(place).collect::<Vec<AxisRange>>()[..]))
    }

    fn shape(&self, x: &Tensor) -> Vec<usize> {
        x.shape().to_vec()
    }

    fn named(&mut self, name: &str, x: Tensor) -> Tensor {
        // Names of graphs live as long as the program, which is soon over.
        pullback::name(&x, Box::leak(name.to_string().into_boxed_str()))
    }

    fn visit(&mut self, program: &Program, node: usize) {
        self.span = program.span(node);
    }
}
