//! Reads recorded cases, and compares.

use pullback::prelude::*;
use pullback::{Complex, vjp};
use serde_json::Value;

/// One call of a function of a peer.
pub struct Case {
    pub name: String,
    /// The other arguments of the call.
    pub options: Value,
    inputs: Vec<Tensor>,
    output: Tensor,
    /// The gradient of `(output * seed).sum()` with respect to each input, where the peer has one.
    gradients: Vec<Option<Tensor>>,
    tolerance: f64,
}

impl Case {
    fn new(case: &Value) -> Case {
        Case {
            name: case["name"].as_str().expect("a case has a name").into(),
            options: case["options"].clone(),
            inputs: case["inputs"].as_array().expect("a case has inputs").iter().map(tensor).collect(),
            output: tensor(&case["output"]),
            gradients: case["gradients"]
                .as_array()
                .expect("a case has gradients")
                .iter()
                .map(|g| (!g.is_null()).then(|| tensor(g)))
                .collect(),
            tolerance: case["tolerance"].as_f64().expect("a case has a tolerance"),
        }
    }

    /// An argument that is an integer.
    pub fn int(&self, name: &str) -> i64 {
        self.options[name].as_i64().unwrap_or_else(|| panic!("{} has no integer {name}", self.name))
    }
}

/// Numbers, with `"nan"`, `"inf"` and `"-inf"` as words.
fn number(v: &Value) -> f64 {
    match v {
        Value::String(word) => word.parse().expect("a number"),
        v => v.as_f64().expect("a number"),
    }
}

fn tensor(v: &Value) -> Tensor {
    let shape: Vec<usize> = v["shape"]
        .as_array()
        .expect("a shape")
        .iter()
        .map(|n| n.as_u64().expect("a length") as usize)
        .collect();
    let data: Vec<f64> = v["data"].as_array().expect("elements").iter().map(number).collect();
    if v["dtype"] == "c128" {
        let pairs = data.chunks_exact(2).map(|z| Complex::new(z[0], z[1])).collect::<Vec<_>>();
        return Tensor::from(pairs).reshape(shape.as_slice());
    }
    let x = Tensor::from(data).reshape(shape.as_slice());
    match v["dtype"].as_str() {
        Some("f64") => x,
        Some("i64") => x.cast(DType::I64),
        Some("bool") => x.cast(DType::Bool),
        other => panic!("no such type: {other:?}"),
    }
}

/// The cotangent that gradients were recorded with: `cos(0), cos(1), ..` in row-major order, or `exp(ik)` of complex numbers.
fn seed(like: &Tensor) -> Tensor {
    let n = like.shape().iter().product::<usize>();
    if like.dtype().is_complex() {
        let all: Vec<Complex<f64>> = (0..n).map(|k| Complex::cis(k as f64)).collect();
        return Tensor::from(all).reshape(like.shape());
    }
    let all: Vec<f64> = (0..n).map(|k| (k as f64).cos()).collect();
    Tensor::from(all).reshape(like.shape())
}

/// The elements; those of a complex tensor as their parts, in turn.
fn numbers(t: &Tensor) -> Vec<f64> {
    match t.dtype().is_complex() {
        true => t.to_vec::<Complex<f64>>().into_iter().flat_map(|z| [z.re, z.im]).collect(),
        false => t.to_vec(),
    }
}

fn assert_close(case: &Case, what: &str, ours: &Tensor, theirs: &Tensor) {
    assert_eq!(
        ours.dtype().is_complex(),
        theirs.dtype().is_complex(),
        "{what} of {} {}",
        case.name,
        case.options
    );
    assert_eq!(ours.shape(), theirs.shape(), "{what} of {} {}", case.name, case.options);
    let (a, b) = (numbers(ours), numbers(theirs));
    let largest = b.iter().filter(|b| b.is_finite()).fold(1.0, |m: f64, b| m.max(b.abs()));
    let close =
        |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= case.tolerance * largest;
    let ok = a.iter().zip(&b).all(|(&a, &b)| close(a, b));
    assert!(ok, "{what} of {} {}:\n{ours}\nfor\n{theirs}", case.name, case.options);
}

/// Compares every case of a file: the value, and the gradients with respect to all inputs that have one.
pub fn check(file: &str, f: impl Fn(&Case, &[Tensor]) -> Tensor) {
    let all: Value = serde_json::from_str(file).expect("a file of cases");
    let cases = all["cases"].as_array().expect("cases");
    assert!(!cases.is_empty());
    for case in cases.iter().map(Case::new) {
        let run = |active: &Vec<Tensor>| {
            let mut active = active.iter();
            let pick = |(x, g): (&Tensor, &Option<Tensor>)| match g {
                Some(_) => active.next().expect("one for each gradient").clone(),
                None => x.clone(),
            };
            let x: Vec<Tensor> = case.inputs.iter().zip(&case.gradients).map(pick).collect();
            f(&case, &x)
        };
        let differentiated = case.inputs.iter().zip(&case.gradients).filter(|(_, g)| g.is_some());
        let active: Vec<Tensor> = differentiated.map(|(x, _)| x.clone()).collect();
        if active.is_empty() {
            assert_close(&case, "the value", &f(&case, &case.inputs), &case.output);
            continue;
        }
        let (y, pullback) = vjp(run, &active);
        assert_close(&case, "the value", &y, &case.output);
        let gradients = pullback(&seed(&y));
        for (k, (ours, theirs)) in gradients.iter().zip(case.gradients.iter().flatten()).enumerate() {
            assert_close(&case, &format!("gradient {k}"), ours, theirs);
        }
    }
}
