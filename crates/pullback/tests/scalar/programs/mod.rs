//! One function at every number type: the same random programs as plain numbers, dual numbers, tapes, their nestings, compiled functions
//! and lanes. Values, gradients, Jacobians and Hessians are the same everywhere, at ordinary points and at the ends of domains.
//!
//! The programs of the test run are fixed. `PULLBACK_PROGRAMS=20000 cargo test --release -p pullback --test scalar programs::random` draws so
//! many new ones; `PULLBACK_SEED` repeats them from the seed that was printed. A program that fails is shrunk and printed.

mod corners;
mod foreign_variables;
mod program;

use program::{OPERATIONS, Program, Reference, Step, agree, is_ordinary};
use pullback::scalar::{self, Dual, Function, HyperDual, Lanes, Real, Symbol, Tape, Taped, Var, WideDual};
use pullback_testing::Dice;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SPECIAL: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -2.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e300,
    -1e200,
    1e-200,
    f64::MIN_POSITIVE,
];

/// A program and a point: a long one of ordinary numbers, or a short one with special numbers.
fn draw(seed: u64) -> (Program, Vec<f64>) {
    let mut dice = Dice(seed);
    let special = dice.roll(2) == 0;
    let inputs = 1 + dice.roll(3);
    let mut number = |special: bool| if special { dice.pick(SPECIAL) } else { dice.between(-2.0, 2.0) };
    let x: Vec<f64> = (0..inputs).map(|_| number(special)).collect();
    let constants: Vec<f64> =
        (0..40).map(|k| if special { number(true) } else { [2.0, -1.0, 3.0, 0.5][k % 4] }).collect();
    let length = if special { 1 + dice.roll(4) } else { 3 + dice.roll(12) };
    let (mut steps, mut v) = (Vec::new(), x.clone());
    for _ in 0..20 * length {
        if steps.len() == length {
            break;
        }
        // Rather the latest numbers: long chains, and little that is not used.
        let any = v.len();
        let mut arg = || if dice.roll(2) == 0 { any - 1 } else { dice.roll(any) };
        let step = Step {
            args: [arg(), arg(), arg()],
            operation: dice.roll(OPERATIONS.len()),
            k: dice.pick(&constants),
        };
        if !special && !is_ordinary(&step, step.args.map(|a| v[a])) {
            continue;
        }
        let one = Program { inputs: v.len(), steps: vec![step.clone()], outputs: 1 };
        v.push(one.run(&v)[0]);
        steps.push(step);
    }
    let outputs = 1 + dice.roll(v.len().min(5));
    (Program { inputs, steps, outputs }, x)
}

/// One way to compute what another gives: its name, the place of the entry, and how exact it is.
struct Checked<'a> {
    program: &'a Program,
    x: &'a [f64],
    reference: Reference,
}

type Outcome = Result<(), String>;

impl Checked<'_> {
    fn values(&self, what: &str, found: &[f64], tolerance: f64) -> Outcome {
        for (k, (&y, &expected)) in found.iter().zip(&self.reference.values).enumerate() {
            if !agree(y, expected, 0.0, tolerance) {
                return Err(format!("{what}: value {k} is {y:?}, not {expected:?}"));
            }
        }
        Ok(())
    }

    /// A Jacobian, row by row.
    fn jacobian(&self, what: &str, found: &[Vec<f64>], tolerance: f64) -> Outcome {
        for (i, row) in found.iter().enumerate() {
            for (j, &d) in row.iter().enumerate() {
                let Some(expected) = self.reference.jacobian[i][j] else { continue };
                if !agree(d, expected, self.reference.mass[i][j], tolerance) {
                    return Err(format!("{what}: derivative {j} of value {i} is {d:?}, not {expected:?}"));
                }
            }
        }
        Ok(())
    }
}

fn units(n: usize) -> Vec<Vec<f64>> {
    (0..n).map(|k| (0..n).map(|j| f64::from(u8::from(j == k))).collect()).collect()
}

/// The Hessian of the last output by reverse over reverse mode.
fn reverse_twice(program: &Program, x: &[f64]) -> Vec<Vec<f64>> {
    let row = |k: usize| {
        let entry = |x: &[Var]| {
            Tape::<Var>::new().record(|t| {
                let x = t.inputs(x);
                t.derivative(program.run(&x)[program.outputs - 1], x[k])
            })
        };
        scalar::gradient(entry, x)
    };
    (0..x.len()).map(row).collect()
}

/// The Hessian of the last output by reverse over forward mode.
fn reverse_over_forward(program: &Program, x: &[f64]) -> Vec<Vec<f64>> {
    let row = |v: &Vec<f64>| {
        let slope = |x: &[Var]| {
            let x: Vec<Dual<Var>> =
                x.iter().zip(v).map(|(&x, &v)| Dual::new(x, [Var::constant(v)])).collect();
            program.run(&x)[program.outputs - 1].tangents()[0]
        };
        scalar::gradient(slope, x)
    };
    units(x.len()).iter().map(row).collect()
}

/// A Jacobian by a tape over `T`, whose parts are told by `number`.
fn by_tape<T: Taped>(program: &Program, x: &[T], number: impl Fn(T) -> f64) -> (Vec<f64>, Vec<Vec<f64>>) {
    Tape::new().record(|t| {
        let x = t.inputs(x);
        let y = program.run(&x);
        let mut flat = vec![T::constant(0.0); x.len() * y.len()];
        t.jacobian(&y, &x, &mut flat);
        (
            y.iter().map(|y| number(y.inner())).collect(),
            flat.chunks(x.len()).map(|row| row.iter().map(|&d| number(d)).collect()).collect(),
        )
    })
}

/// All first derivatives of numbers that are not compiled.
fn first_order(c: &Checked) -> Outcome {
    let (program, x) = (c.program, c.x);
    let (n, m) = (x.len(), program.outputs);
    c.values("plain", &program.run(x), 1e-15)?;
    let (values, jacobian) = by_tape(program, x, |d: f64| d);
    c.values("tape", &values, 1e-15)?;
    c.jacobian("Jacobian of the tape", &jacobian, 1e-10)?;
    for k in 0..m {
        let mut rows = jacobian.clone();
        rows[k] = scalar::gradient(|x: &[Var]| program.run(x)[k], x);
        c.jacobian("gradient", &rows, 1e-10)?;
    }
    // More outputs than inputs: columns, forward.
    let (_, columns) = Tape::new().record(|t| {
        let x = t.inputs(x);
        let y = program.run(&x);
        let many: Vec<Var> = (0..=n).flat_map(|_| y.clone()).collect();
        let mut flat = vec![0.0; many.len() * n];
        t.jacobian(&many, &x, &mut flat);
        ((), flat.chunks(n).take(m).map(<[f64]>::to_vec).collect::<Vec<_>>())
    });
    c.jacobian("Jacobian by columns", &columns, 1e-10)?;
    let one_by_one: Vec<Vec<f64>> = units(n)
        .iter()
        .map(|v| {
            let x: Vec<Dual> = x.iter().zip(v).map(|(&x, &v)| Dual::new(x, [v])).collect();
            program.run(&x).iter().map(|y| y.tangents()[0]).collect()
        })
        .collect();
    let transposed: Vec<Vec<f64>> = (0..m).map(|i| (0..n).map(|j| one_by_one[j][i]).collect()).collect();
    c.jacobian("dual numbers", &transposed, 1e-10)?;
    let at_once: Vec<Dual<f64, 4>> = x.iter().enumerate().map(|(k, &x)| Dual::variable(x, k)).collect();
    let y = program.run(&at_once);
    c.values("dual numbers", &y.iter().map(|y| y.real()).collect::<Vec<_>>(), 1e-15)?;
    let rows: Vec<Vec<f64>> = y.iter().map(|y| y.tangents()[..n].to_vec()).collect();
    c.jacobian("dual numbers of several tangents", &rows, 1e-10)?;
    let all = units(n);
    let directions: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
    let (values, wide) = scalar::directions(|x: &[WideDual]| program.run(x), x, &directions);
    c.values("wide dual numbers", &values, 1e-15)?;
    c.jacobian("wide dual numbers", &wide, 1e-10)
}

/// Lanes, alone and inside of tapes and dual numbers: each has what a single number has.
fn lanes(c: &Checked) -> Outcome {
    let (program, n) = (c.program, c.x.len());
    let mut points = [c.x.to_vec(), c.x.to_vec(), c.x.to_vec()];
    if !program.branches() {
        points[1].iter_mut().for_each(|x| *x = -*x);
        points[2].rotate_left(1);
        points[2].iter_mut().for_each(|x| *x = *x * 0.5 + 0.25);
    }
    let x: Vec<Lanes<3>> = (0..n).map(|k| Lanes([points[0][k], points[1][k], points[2][k]])).collect();
    let duals: Vec<Dual<Lanes<3>, 3>> = x.iter().enumerate().map(|(k, &x)| Dual::variable(x, k)).collect();
    for (lane, point) in points.iter().enumerate() {
        let own = Checked { program, x: point, reference: Reference::new(program, point) };
        if own.reference.fragile {
            continue;
        }
        let (values, jacobian) = by_tape(program, &x, |d: Lanes<3>| d.0[lane]);
        let name = |what: &str| format!("{what} lane {lane} at {point:?}");
        own.values(&name("plain"), &program.run(&x).iter().map(|y| y.0[lane]).collect::<Vec<_>>(), 1e-9)?;
        own.values(&name("tape"), &values, 1e-9)?;
        own.jacobian(&name("tape"), &jacobian, 1e-8)?;
        let rows: Vec<Vec<f64>> = program
            .run(&duals)
            .iter()
            .map(|y| y.tangents()[..n].iter().map(|t| t.0[lane]).collect())
            .collect();
        own.jacobian(&name("dual"), &rows, 1e-8)?;
    }
    Ok(())
}

/// The compiled function and its derivatives, at one point, at many and summed.
fn compiled(c: &Checked) -> Outcome {
    if c.reference.fragile {
        return Ok(());
    }
    let (program, x, n, m) = (c.program, c.x, c.x.len(), c.program.outputs);
    let f = Function::record_at(|x: &[Symbol]| program.run(x), x);
    let mut out = vec![0.0; m];
    if f.try_evaluate_into(x, &mut out).is_err() {
        // A comparison that hangs on the last digit.
        return Ok(());
    }
    let rows = |flat: &[f64]| flat.chunks(n).map(<[f64]>::to_vec).collect::<Vec<_>>();
    c.values("compiled", &out, 1e-9)?;
    c.jacobian("compiled Jacobian", &f.jacobian(x), 1e-8)?;
    let many = f.jacobian_function().evaluate_many(&x.repeat(19));
    c.jacobian("compiled Jacobian of many", &rows(&many[18 * m * n..]), 1e-8)?;
    c.jacobian("sparse Jacobian", &f.sparse_jacobian(x).to_dense(), 1e-8)?;
    let by_rows: Vec<Vec<f64>> =
        units(m).iter().map(|g| f.pullback_function().evaluate(&[x, g].concat())).collect();
    c.jacobian("compiled pullback", &by_rows, 1e-8)?;
    let columns: Vec<Vec<f64>> =
        units(n).iter().map(|v| f.pushforward_function().evaluate(&[x, v].concat())).collect();
    let transposed: Vec<Vec<f64>> = (0..m).map(|i| (0..n).map(|j| columns[j][i]).collect()).collect();
    c.jacobian("compiled pushforward", &transposed, 1e-8)?;
    let summed = f.jacobian_function().total(0).evaluate(&[], &x.repeat(2));
    c.jacobian("half of a total", &rows(&summed.iter().map(|d| d / 2.0).collect::<Vec<_>>()), 1e-8)
}

/// Hessians of the last output in every way, all of which agree.
fn second_order(c: &Checked) -> Outcome {
    if !c.reference.tame {
        return Ok(());
    }
    let (program, x, n, last) = (c.program, c.x, c.x.len(), c.program.outputs - 1);
    let hessian = scalar::hessian(|x: &[Var<Dual<f64, 4>>]| program.run(x)[last], x);
    let most = |all: &mut dyn Iterator<Item = f64>| {
        all.filter(|h| h.is_finite()).fold(1.0f64, |m, h| m.max(h.abs()))
    };
    let mass = most(&mut c.reference.mass.iter().flatten().copied());
    let scale = mass * mass * most(&mut hessian.iter().flatten().copied());
    let same = |what: &str, found: Vec<Vec<f64>>, tolerance: f64| {
        for i in 0..n {
            for j in 0..n {
                let (a, b) = (found[i][j], hessian[i][j]);
                if !agree(a, b, scale, tolerance) {
                    return Err(format!("{what}: second derivative by {i} and {j} is {a:?}, not {b:?}"));
                }
            }
        }
        Ok(())
    };
    let products =
        units(n).iter().map(|v| scalar::hvp(|x: &[Var<Dual>]| program.run(x)[last], x, v)).collect();
    same("hvp", products, 1e-8)?;
    let second = |i: usize, j: usize| scalar::second_partial(|x: &[HyperDual]| program.run(x)[last], x, i, j);
    same("nested dual numbers", (0..n).map(|i| (0..n).map(|j| second(i, j)).collect()).collect(), 1e-8)?;
    same("reverse over reverse", reverse_twice(program, x), 1e-8)?;
    same("reverse over forward", reverse_over_forward(program, x), 1e-8)?;
    let f = Function::record_at(|x: &[Symbol]| program.run(x)[last], x);
    if c.reference.fragile || f.try_evaluate_into(x, &mut [0.0]).is_err() {
        return Ok(());
    }
    same("compiled Hessian", f.hessian(x), 1e-6)?;
    same("compiled hvp", units(n).iter().map(|v| f.hvp(x, v)).collect(), 1e-6)?;
    same("sparse Hessian", f.sparse_hessian(x).to_dense(), 1e-6)
}

fn check(program: &Program, x: &[f64]) -> Outcome {
    let c = Checked { program, x, reference: Reference::new(program, x) };
    let all = || {
        first_order(&c).and_then(|()| lanes(&c)).and_then(|()| compiled(&c)).and_then(|()| second_order(&c))
    };
    catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| Some((*panic.downcast_ref::<&str>()?).into())).unwrap_or_default())
    })
}

/// The program without a step, whose first argument stands for it.
fn without(program: &Program, at: usize) -> Program {
    let (gone, stand_in) = (program.inputs + at, program.steps[at].args[0]);
    let mut steps = program.steps.clone();
    steps.remove(at);
    for a in steps.iter_mut().flat_map(|s| &mut s.args) {
        *a = if *a == gone { stand_in } else { *a - usize::from(*a > gone) };
    }
    Program { steps, outputs: program.outputs.min(program.inputs + program.steps.len() - 1), ..*program }
}

/// The shortest program that still fails.
fn shrunk(mut program: Program, x: &mut [f64]) -> Program {
    let mut again = true;
    while again {
        let shorter = (0..program.steps.len()).map(|k| without(&program, k));
        let fewer =
            (program.outputs > 1).then(|| Program { outputs: program.outputs - 1, ..program.clone() });
        let found = shorter.chain(fewer).find(|p| check(p, x).is_err());
        again = found.is_some();
        program = found.unwrap_or(program);
    }
    for k in 0..x.len() {
        for simple in [0.0, 1.0, 0.5, -1.0, 2.0] {
            let before = std::mem::replace(&mut x[k], simple);
            if check(&program, x).is_ok() {
                x[k] = before;
            }
        }
    }
    program
}

#[test]
fn random_programs_are_the_same_at_every_type() {
    let number = |name: &str| std::env::var(name).ok().map(|v| v.parse::<u64>().expect("a number"));
    let programs = number("PULLBACK_PROGRAMS");
    let fresh = || std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_nanos() as u64);
    let seed = number("PULLBACK_SEED").unwrap_or_else(|| if programs.is_some() { fresh() } else { 0 });
    println!("PULLBACK_SEED={seed}");
    let failing = (0..programs.unwrap_or(400)).find_map(|k| {
        let (program, mut x) = draw(seed.wrapping_add(k));
        check(&program, &x).err()?;
        let program = shrunk(program, &mut x);
        let told = check(&program, &x).expect_err("it failed before");
        Some(format!("program {k} of seed {seed}, shrunk, at {x:?}: {told}\n{program}"))
    });
    assert!(failing.is_none(), "{}", failing.unwrap_or_default());
}

/// The generator knows every method of `Real`, and its programs use all of them and every row of the table.
#[test]
fn no_method_is_missing() {
    let known = |name: &str| OPERATIONS.iter().any(|(n, _)| *n == name);
    let source = include_str!("../../../src/scalar/real.rs");
    let (_, body) = source.split_once("pub trait Real").expect("the trait");
    let methods: Vec<&str> = body
        .split("\n\n")
        .filter(|item| !item.contains("#[doc(hidden)]"))
        .filter_map(|item| item.split("\n    fn ").nth(1)?.split(['(', '<']).next())
        .collect();
    assert!(methods.len() >= 17, "only {methods:?} were found");
    let missing: Vec<&&str> = methods.iter().filter(|m| !known(m)).collect();
    assert!(missing.is_empty(), "no programs have {missing:?}");
    // And the fixed ones use all of them.
    let used: Vec<usize> = (0..400).flat_map(|k| draw(k).0.steps).map(|s| s.operation).collect();
    let unused: Vec<&str> =
        (0..OPERATIONS.len()).filter(|k| !used.contains(k)).map(|k| OPERATIONS[k].0).collect();
    assert!(unused.is_empty(), "the programs of the test have no {unused:?}");
}
