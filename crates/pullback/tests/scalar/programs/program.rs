//! Random programs over all of `Real`, and what their derivatives have to be.

use pullback::scalar::{Dual, Real};
use pullback_table::{function, row};
use std::fmt;

/// The rows of the table, and the listed operations of up to three numbers and a constant.
macro_rules! operations {
    ({ |$a:ident, $b:ident, $c:ident, $k:ident| $($name:ident $arity:literal = $value:expr;)* }
        $($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $row:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// Every operation, with the number of its arguments.
        pub const OPERATIONS: &[(&str, usize)] =
            &[$((stringify!($m), row::$P.arguments.len()),)* $((stringify!($name), $arity)),*];

        #[allow(unused_variables, reason = "few take all of them")]
        fn apply<T: Real>(name: &str, [$a, $b, $c]: [T; 3], $k: f64) -> T {
            match name {
                $(stringify!($m) => operations!(@ $m $x $a $b),)*
                $(stringify!($name) => $value,)*
                other => unreachable!("{other} is not an operation"),
            }
        }
    };
    (@ $m:ident ($x:ident) $a:ident $b:ident) => { function::$m($a) };
    (@ $m:ident ($x:ident, $y:ident) $a:ident $b:ident) => { function::$m($a, $b) };
}
pullback_table::elementwise_table! { operations { |a, b, c, k|
    constant 1 = a * T::constant(k);
    from 1 = a + T::from(k);
    default 1 = a - T::default();
    value 1 = { let v = a.floor().value(); if v.is_finite() { a * v } else { a } };
    powi 1 = a.powi(k as i32);
    powf 1 = a.powf(k);
    power 1 = a.pow(T::constant(k));
    select_lt 3 = a.select_lt(b, c, a * b);
    select_le 3 = a.select_le(T::constant(k), b, c.sin());
    mul_add 3 = a.mul_add(b, c);
    max 2 = a.max(b);
    min 2 = a.min(b);
    clamp 1 = a.clamp(-1.5, k.abs());
    exp_m1 1 = a.exp_m1();
    ln_1p 1 = a.ln_1p();
    sin_cos 1 = a.sin_cos().0;
    sin_cos_second 1 = a.sin_cos().1;
    dot 3 = T::dot(&[a, b, c], &[b, a, T::constant(k)]);
    log_sum_exp 3 = T::log_sum_exp(&[a, b, c]);
    preaccumulate 2 = { let [y, z] = T::preaccumulate(|| [a.mul_add(b, a), (a * b).sin() + b]); y + z * z };
    checkpointed 2 = T::checkpointed(3, 2, &[a], &[b], |j, s, p| vec![s[0] * 0.5 + p[0] * j as f64])[0];
    branch 2 = if a < b { a * k } else if a == b { b } else { b - a };
    branch_plain 1 = if a > k || a <= 0.5 { a * a } else { a };
    moved 1 = a + k;
    moved_back 1 = a - k;
    scaled 1 = a * k;
    divided 1 = a / k;
    remainder 2 = a % b;
    remainder_plain 1 = a % k;
    add_assign 2 = { let mut y = a; y += b; y };
    sub_assign 2 = { let mut y = a; y -= b; y };
    mul_assign 2 = { let mut y = a; y *= b; y };
    div_assign 2 = { let mut y = a; y /= b; y };
    rem_assign 2 = { let mut y = a; y %= b; y };
    add_assign_plain 1 = { let mut y = a; y += k; y };
    sub_assign_plain 1 = { let mut y = a; y -= k; y };
    mul_assign_plain 1 = { let mut y = a; y *= k; y };
    div_assign_plain 1 = { let mut y = a; y /= k; y };
    rem_assign_plain 1 = { let mut y = a; y %= k; y };
    sum 3 = [a, b, c].into_iter().sum();
    sum_of_references 3 = [a, b, c].iter().sum();
    product 3 = [a, b, c].into_iter().product();
    product_of_references 3 = [a, b, c].iter().product();
} }

/// Those that come to their result by several operations, as all do that have the same argument twice: where numbers are infinite, the
/// order of these shows.
const COMPOSITE: &[&str] = &[
    "clamp",
    "select_lt",
    "select_le",
    "dot",
    "log_sum_exp",
    "preaccumulate",
    "checkpointed",
    "branch",
    "branch_plain",
    "value",
    "product",
    "product_of_references",
    "mul_add",
];

#[derive(Clone, Debug)]
pub struct Step {
    pub operation: usize,
    /// Inputs, then the results of the steps before.
    pub args: [usize; 3],
    pub k: f64,
}

/// Steps on a growing list of numbers. The last ones are the outputs.
#[derive(Clone, Debug)]
pub struct Program {
    pub inputs: usize,
    pub steps: Vec<Step>,
    pub outputs: usize,
}

impl Program {
    pub fn run<T: Real>(&self, x: &[T]) -> Vec<T> {
        let mut v = x.to_vec();
        for step in &self.steps {
            v.push(apply(OPERATIONS[step.operation].0, step.args.map(|a| v[a]), step.k));
        }
        v.split_off(v.len() - self.outputs)
    }

    /// Whether all lanes have to go the same way.
    pub fn branches(&self) -> bool {
        let is = |s: &Step| ["branch", "branch_plain", "value"].contains(&OPERATIONS[s.operation].0);
        self.steps.iter().any(is)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            let (name, arity) = OPERATIONS[step.operation];
            let args: Vec<String> = step.args[..arity].iter().map(|a| format!("v{a}")).collect();
            writeln!(f, "  v{} = {name}({}) k = {:?}", self.inputs + i, args.join(", "), step.k)?;
        }
        write!(f, "  of {} inputs, the last {} are returned", self.inputs, self.outputs)
    }
}

fn is_composite(step: &Step) -> bool {
    let (name, arity) = OPERATIONS[step.operation];
    let [a, b, c] = step.args;
    COMPOSITE.contains(&name) || (arity > 1 && a == b) || (arity > 2 && (a == c || b == c))
}

/// The value and the partial derivatives of one step.
fn partials(step: &Step, args: [f64; 3]) -> (f64, [f64; 3]) {
    let arity = OPERATIONS[step.operation].1;
    let x: [Dual<f64, 3>; 3] =
        std::array::from_fn(|k| if k < arity { Dual::variable(args[k], k) } else { Dual::constant(args[k]) });
    let y = apply(OPERATIONS[step.operation].0, x, step.k);
    (y.real(), y.tangents())
}

/// Whether the second derivatives of one step are of a moderate size.
fn is_tame(step: &Step, args: [f64; 3]) -> bool {
    let arity = OPERATIONS[step.operation].1;
    let x: [Dual<Dual<f64, 3>, 3>; 3] = std::array::from_fn(|k| match args[k] {
        x if k < arity => Dual::variable(Dual::variable(x, k), k),
        x => Dual::constant(x),
    });
    let y = apply(OPERATIONS[step.operation].0, x, step.k);
    y.tangents().iter().flat_map(|t| t.tangents()).all(|d| d.abs() < 1e60)
}

/// The law of the chain rule: a zero wins.
fn chain(p: f64, t: f64) -> f64 {
    if p == 0.0 || t == 0.0 { 0.0 } else { p * t }
}

/// Whether a step is well away from jumps and kinks, and of a moderate size.
pub fn is_ordinary(step: &Step, args: [f64; 3]) -> bool {
    let (y, p) = partials(step, args);
    let moderate = |x: f64| x.abs() < 1e4;
    moderate(y)
        && p.iter().all(|&p| moderate(p))
        && (0..OPERATIONS[step.operation].1).all(|k| {
            [-1e-6, 1e-6].iter().all(|h| {
                let mut near = args;
                // The same number moves everywhere.
                (0..3).filter(|&j| step.args[j] == step.args[k]).for_each(|j| near[j] += h);
                let (z, q) = partials(step, near);
                (z - y).abs() < 0.02 && p.iter().zip(q).all(|(p, q)| (p - q).abs() < 0.1)
            })
        })
}

/// What the derivatives of a program are at a point, by the chain rule over its steps.
pub struct Reference {
    pub values: Vec<f64>,
    /// By output and input; `None` where the rule itself is ambiguous, because sums of infinities or roundings depend on their order.
    pub jacobian: Vec<Vec<Option<f64>>>,
    /// The sum of the magnitudes that a derivative is summed up from.
    pub mass: Vec<Vec<f64>>,
    /// Whether all that is passed on is far from overflow, so that second derivatives are told as well.
    pub tame: bool,
    /// Whether an error in the last digit changes the result altogether.
    pub fragile: bool,
}

/// Whether two numbers are the same but for rounding.
pub fn agree(a: f64, b: f64, scale: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * (scale + a.abs().max(b.abs()))
}

impl Reference {
    pub fn new(program: &Program, x: &[f64]) -> Reference {
        let n = program.inputs;
        let (mut v, mut p, mut errors) = (x.to_vec(), Vec::new(), vec![0.0; n]);
        let (mut fragile, mut tame) = (false, true);
        for step in &program.steps {
            let args = step.args.map(|a| v[a]);
            let (y, d) = partials(step, args);
            // Other implementations differ in the last digits, and in what overflows on the way.
            let mut error = 4e-15 * y.abs();
            for sign in [-1.0, 1.0] {
                let off = |k: usize| {
                    if args[k].is_finite() { args[k] + sign * errors[step.args[k]] } else { args[k] }
                };
                let (z, e) = partials(step, [off(0), off(1), off(2)]);
                error = error.max((z - y).abs());
                fragile |=
                    !agree(y, z, 0.0, 1e-10) || !d.iter().zip(e).all(|(&a, b)| agree(a, b, 1e-3, 1e-6));
            }
            errors.push(if y.is_finite() { error } else { 0.0 });
            let huge = |x: &f64| !x.is_finite() || x.abs() > 1e100;
            let overflows = y.is_infinite() && args.iter().all(|x| x.is_finite());
            fragile |=
                (y != 0.0 && y.abs() < 1e-290) || overflows || (is_composite(step) && args.iter().any(huge));
            tame &= is_tame(step, args);
            v.push(y);
            p.push(d);
        }
        let edges = |i: usize| {
            let step: &Step = &program.steps[i];
            let arity = OPERATIONS[step.operation].1;
            let d: [f64; 3] = p[i];
            (0..arity).map(move |k| (step.args[k], d[k])).collect::<Vec<_>>()
        };
        let total = v.len();
        let composite = program.steps.iter().any(is_composite);
        let forward: Vec<Vec<f64>> = (0..n)
            .map(|k| {
                let mut t: Vec<f64> = (0..n).map(|j| f64::from(u8::from(j == k))).collect();
                for i in 0..program.steps.len() {
                    t.push(edges(i).iter().map(|&(a, p)| chain(p, t[a])).sum());
                }
                tame &= t.iter().all(|t| t.abs() < 1e60);
                t
            })
            .collect();
        let outputs = total - program.outputs..total;
        let (mut jacobian, mut mass) = (Vec::new(), Vec::new());
        for y in outputs.clone() {
            let (mut g, mut m) = (vec![0.0; total], vec![0.0; total]);
            (g[y], m[y]) = (1.0, 1.0);
            for i in (0..program.steps.len()).rev() {
                for (a, p) in edges(i) {
                    g[a] += chain(p, g[n + i]);
                    m[a] += chain(p, m[n + i]).abs();
                }
            }
            tame &= m.iter().all(|m| *m < 1e60);
            // Where numbers vanish or grow beyond all bounds, the order of products shows.
            let simple = tame || !composite;
            let told = |k: usize| {
                simple && agree(forward[k][y], g[k], m[k], 1e-9) && !(m[k] > 1e290 && m[k].is_finite())
            };
            jacobian.push((0..n).map(|k| told(k).then_some(g[k])).collect());
            mass.push(m[..n].to_vec());
        }
        Reference { values: v[outputs].to_vec(), jacobian, mass, tame, fragile }
    }
}
