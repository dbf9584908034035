//! Spreads of nodes: vectors and matrices as lists of operations on their elements.

use super::{Array, Operand, Operation, Output, Step, Trace};
use crate::function::Function;
use crate::interpret::Domain;
use crate::problem::Span;
use crate::program::{Builtin, Connective, Program, Reduction, Relation};

/// A value: operands in a shape.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    shape: Vec<usize>,
    elements: Vec<Operand>,
}

impl Spread {
    fn number(x: Operand) -> Spread {
        Spread { shape: Vec::new(), elements: vec![x] }
    }
}

/// A trace that is being built.
#[derive(Default)]
pub(super) struct Builder {
    steps: Vec<Step>,
    values: Vec<f64>,
    inputs: Vec<(String, Vec<usize>, usize)>,
    count: usize,
    span: Span,
    /// What steps are called, before their number.
    stem: &'static str,
}

type Made = Result<Spread, String>;

impl Builder {
    /// A trace of a program with these inputs.
    pub fn new(inputs: &[String]) -> Builder {
        Builder { stem: crate::symbolic::stem(inputs), ..Builder::default() }
    }

    pub fn input(&mut self, name: &str, array: &Array) -> Spread {
        self.inputs.push((name.to_string(), array.shape.clone(), self.steps.len()));
        let columns = array.shape.get(1).copied();
        let element = |k: usize| match (array.shape.len(), columns) {
            (0, _) => name.to_string(),
            (_, Some(n)) if n > 0 => format!("{name}[{},{}]", k / n + 1, k % n + 1),
            _ => format!("{name}[{}]", k + 1),
        };
        let mut elements = Vec::new();
        for (k, v) in array.elements.iter().enumerate() {
            elements.push(Operand::Node(self.steps.len()));
            let step = Step {
                operation: Operation::Input,
                operands: Vec::new(),
                name: element(k),
                given: None,
                span: self.span,
            };
            self.steps.push(step);
            self.values.push(*v);
        }
        Spread { shape: array.shape.clone(), elements }
    }

    pub fn finish(self, names: Vec<String>, values: Vec<Spread>) -> Trace {
        let output = |(name, s): (String, Spread)| Output { name, shape: s.shape, elements: s.elements };
        let outputs = names.into_iter().zip(values).map(output).collect();
        Trace { steps: self.steps, values: self.values, inputs: self.inputs, outputs }
    }

    fn of(&self, x: Operand) -> f64 {
        match x {
            Operand::Number(v) => v,
            Operand::Node(k) => self.values[k],
        }
    }

    /// One operation on numbers. What depends on no input is a number and no step.
    fn push(&mut self, operation: Operation, operands: Vec<Operand>) -> Operand {
        let x: Vec<f64> = operands.iter().map(|o| self.of(*o)).collect();
        let truth = |t: bool| f64::from(u8::from(t));
        let value = match operation {
            Operation::Input => unreachable!("inputs have their own way"),
            Operation::Apply(f) => f.value(&x),
            Operation::Compare(r) => truth(r.holds(x[0], x[1])),
            Operation::And => truth(x[0] != 0.0 && x[1] != 0.0),
            Operation::Or => truth(x[0] != 0.0 || x[1] != 0.0),
            Operation::Not => truth(x[0] == 0.0),
            Operation::Choose => x[if x[0] != 0.0 { 1 } else { 2 }],
        };
        if operands.iter().all(|o| matches!(o, Operand::Number(_))) {
            return Operand::Number(value);
        }
        self.count += 1;
        let name = format!("{}{}", self.stem, self.count);
        self.steps.push(Step { operation, operands, name, given: None, span: self.span });
        self.values.push(value);
        Operand::Node(self.steps.len() - 1)
    }

    fn apply1(&mut self, f: Function, x: &[Operand]) -> Operand {
        self.push(Operation::Apply(f), x.to_vec())
    }

    fn broadcast(&mut self, operation: Operation, x: &[&Spread]) -> Made {
        let rank = x.iter().map(|s| s.shape.len()).max().unwrap_or(0);
        let mut shape = vec![1; rank];
        for s in x {
            for (k, n) in s.shape.iter().enumerate() {
                let at = &mut shape[rank - s.shape.len() + k];
                if *at != *n && *at != 1 && *n != 1 {
                    let shapes: Vec<String> = x.iter().map(|s| format!("{:?}", s.shape)).collect();
                    return Err(format!("the shapes {} do not fit together", shapes.join(" and ")));
                }
                *at = if *at == 1 { *n } else { *at };
            }
        }
        let total: usize = shape.iter().product();
        let mut elements = Vec::with_capacity(total);
        for k in 0..total {
            let operands = x.iter().map(|s| s.elements[position(k, &shape, &s.shape)]).collect();
            elements.push(self.push(operation, operands));
        }
        Ok(Spread { shape, elements })
    }

    fn fold(&mut self, f: Function, x: &[Operand], empty: f64) -> Operand {
        match x.split_first() {
            None => Operand::Number(empty),
            Some((first, rest)) => rest.iter().fold(*first, |a, b| self.apply1(f, &[a, *b])),
        }
    }

    /// The sum of products.
    fn inner(&mut self, a: &[Operand], b: &[Operand]) -> Operand {
        let terms: Vec<Operand> =
            a.iter().zip(b).map(|(a, b)| self.apply1(Function::Mul, &[*a, *b])).collect();
        self.fold(Function::Add, &terms, 0.0)
    }

    fn reduce(&mut self, r: Reduction, x: &Spread) -> Made {
        let v = &x.elements;
        if v.is_empty() && matches!(r, Reduction::Max | Reduction::Min | Reduction::Mean) {
            return Err("there are no elements".to_string());
        }
        let sum = |b: &mut Builder, v: &[Operand]| b.fold(Function::Add, v, 0.0);
        Ok(Spread::number(match r {
            Reduction::Sum => sum(self, v),
            Reduction::Mean => {
                let total = sum(self, v);
                self.apply1(Function::Div, &[total, Operand::Number(v.len() as f64)])
            }
            Reduction::Prod => self.fold(Function::Mul, v, 1.0),
            Reduction::Max => self.fold(Function::Maximum, v, 0.0),
            Reduction::Min => self.fold(Function::Minimum, v, 0.0),
            Reduction::Norm => {
                let squares: Vec<Operand> = v.iter().map(|x| self.apply1(Function::Square, &[*x])).collect();
                let total = sum(self, &squares);
                self.apply1(Function::Sqrt, &[total])
            }
        }))
    }

    /// The product of matrices; a vector is a row on the left and a column on the right.
    fn product(&mut self, a: &Spread, b: &Spread) -> Made {
        let (m, inner) = match a.shape[..] {
            [n] => (1, n),
            [m, n] => (m, n),
            _ => return Err("`@` takes vectors and matrices, not a number; use `*`".to_string()),
        };
        let (k, n) = match b.shape[..] {
            [k] => (k, 1),
            [k, n] => (k, n),
            _ => return Err("`@` takes vectors and matrices, not a number; use `*`".to_string()),
        };
        if inner != k {
            return Err(format!("`@` needs equal inner lengths, got shapes {:?} and {:?}", a.shape, b.shape));
        }
        let mut elements = Vec::with_capacity(m * n);
        for i in 0..m {
            for j in 0..n {
                let row = &a.elements[i * k..(i + 1) * k];
                let column: Vec<Operand> = (0..k).map(|l| b.elements[l * n + j]).collect();
                elements.push(self.inner(row, &column));
            }
        }
        let mut shape = a.shape[..a.shape.len() - 1].to_vec();
        shape.extend(&b.shape[1..]);
        Ok(Spread { shape, elements })
    }
}

/// Where element `k` of `shape` is in an operand of shape `of`.
fn position(mut k: usize, shape: &[usize], of: &[usize]) -> usize {
    let (mut at, mut stride) = (0, 1);
    for axis in (0..shape.len()).rev() {
        let i = k % shape[axis];
        k /= shape[axis];
        if axis + of.len() >= shape.len() {
            let n = of[axis + of.len() - shape.len()];
            at += if n == 1 { 0 } else { i * stride };
            stride *= n;
        }
    }
    at
}

impl Domain for Builder {
    type Value = Spread;

    fn number(&mut self, v: f64) -> Spread {
        Spread::number(Operand::Number(v))
    }

    fn apply(&mut self, f: Function, x: &[Spread]) -> Made {
        self.broadcast(Operation::Apply(f), &x.iter().collect::<Vec<_>>())
    }

    fn compare(&mut self, r: Relation, a: &Spread, b: &Spread) -> Made {
        self.broadcast(Operation::Compare(r), &[a, b])
    }

    fn logic(&mut self, c: Connective, a: &Spread, b: &Spread) -> Made {
        self.broadcast(if c == Connective::And { Operation::And } else { Operation::Or }, &[a, b])
    }

    fn not(&mut self, a: &Spread) -> Made {
        self.broadcast(Operation::Not, &[a])
    }

    fn choose(&mut self, c: &Spread, a: &Spread, b: &Spread) -> Made {
        self.broadcast(Operation::Choose, &[c, a, b])
    }

    fn call(&mut self, f: Builtin, x: &[Spread]) -> Made {
        match f {
            Builtin::Reduce(r) => self.reduce(r, &x[0]),
            Builtin::Dot => {
                if x[0].shape.len() != 1 || x[0].shape != x[1].shape {
                    let (a, b) = (&x[0].shape, &x[1].shape);
                    return Err(format!("`dot` takes two vectors of one length, got shapes {a:?} and {b:?}"));
                }
                Ok(Spread::number(self.inner(&x[0].elements, &x[1].elements)))
            }
            Builtin::Transpose => match x[0].shape[..] {
                [m, n] => {
                    let elements = (0..m * n).map(|k| x[0].elements[k % m * n + k / m]).collect();
                    Ok(Spread { shape: vec![n, m], elements })
                }
                _ => Err("only a matrix can be transposed".to_string()),
            },
            Builtin::Product => self.product(&x[0], &x[1]),
        }
    }

    fn matrix(&mut self, rows: usize, x: Vec<Spread>) -> Made {
        let elements: Vec<Operand> = x.iter().map(|s| s.elements[0]).collect();
        let shape = if rows == 0 { vec![elements.len()] } else { vec![rows, elements.len() / rows] };
        Ok(Spread { shape, elements })
    }

    fn index(&mut self, x: &Spread, at: &[Option<usize>]) -> Made {
        let full = |axis: usize| at.get(axis).copied().flatten();
        let shape: Vec<usize> =
            (0..x.shape.len()).filter(|a| full(*a).is_none()).map(|a| x.shape[a]).collect();
        let wanted = |k: usize| {
            let mut rest = k;
            let mut place = vec![0; x.shape.len()];
            for axis in (0..x.shape.len()).rev() {
                place[axis] = rest % x.shape[axis];
                rest /= x.shape[axis];
            }
            place.iter().enumerate().all(|(axis, p)| full(axis).is_none_or(|i| i == *p))
        };
        let elements = (0..x.elements.len()).filter(|k| wanted(*k)).map(|k| x.elements[k]).collect();
        Ok(Spread { shape, elements })
    }

    fn shape(&self, x: &Spread) -> Vec<usize> {
        x.shape.clone()
    }

    fn named(&mut self, name: &str, x: Spread) -> Spread {
        if let (Some(Operand::Node(k)), true) = (x.elements.first(), x.shape.is_empty()) {
            self.steps[*k].given = Some(name.to_string());
        }
        x
    }

    fn visit(&mut self, program: &Program, node: usize) {
        self.span = program.span(node);
    }
}
