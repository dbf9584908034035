//! Print and parse are inverse, the verifier finds what is wrong, and no text makes the parser panic.

use super::*;
use crate::ops::{Op, Sample};
use crate::prelude::*;

fn graphs() -> Vec<Graph> {
    let one = |s: &Sample| {
        let inputs: Vec<Tensor> =
            s.inputs.iter().enumerate().map(|(k, d)| d.tensor(Key::new(k as u64), DType::F32)).collect();
        let run = |x: &[Tensor]| bind(s.op.clone(), &x.iter().collect::<Vec<_>>()).map(|y| vec![y]);
        let types = inputs.iter().map(|t| Aval { dtype: t.dtype(), shape: t.node().shape.clone() }).collect();
        trace_leaves(run, types).unwrap()
    };
    let mut all: Vec<Graph> = Op::samples().iter().map(one).collect();
    let x = Tensor::from([0.5, 1.5, 2.5]);
    all.push(trace(|x: &Tensor| scan(|s: &Tensor, x: &Tensor| (s * x, s + x), &Tensor::scalar(1.0), x), &x));
    all.push(trace(|x: &Tensor| cond(&x.sum().gt(0.0), |x: &Tensor| x.sin(), |x: &Tensor| x * 3.0, x), &x));
    all.push(trace(|x: &Tensor| checkpoint(|x: &Tensor| crate::name(&x.sin(), "s").exp())(x), &x));
    all.push(trace(|x: &Tensor| x + Tensor::from([1.0, f64::INFINITY, -0.0]), &x));
    all.push(trace(|x: &Tensor| (x.clone(), Tensor::from([true, false]), Tensor::from([7, 8])), &x));
    all.push(trace(|x: &Tensor| crate::name(&(x * f64::NAN), "bad").sum(), &x));
    all
}

#[test]
fn the_text_of_every_graph_is_read_back() {
    for g in graphs() {
        let text = g.to_string();
        let back: Graph = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(back.to_string(), text);
        back.verify().unwrap();
        assert_eq!(format!("{g:#}").parse::<Graph>().unwrap().to_string(), text, "locations are comments");
    }
}

#[test]
fn a_graph_read_back_computes_the_same() {
    let f = |x: &Tensor| {
        let y = scan(|s: &Tensor, x: &Tensor| (s * x + 0.5, s.sin()), &x.sum(), x);
        cond(&y.0.gt(1.0), |y: &(Tensor, Tensor)| &y.0 * &y.1, |y: &(Tensor, Tensor)| &y.0 - &y.1, &y)
    };
    let x = Tensor::from([0.5, 1.5, 2.5]);
    let g: Graph = trace(f, &x).to_string().parse().unwrap();
    assert_eq!(g.run(std::slice::from_ref(&x)).unwrap()[0].to_vec::<f64>(), f(&x).to_vec::<f64>());
    let gradient = grad(|x: &Tensor| g.run(std::slice::from_ref(x)).unwrap()[0].sum())(&x);
    assert_eq!(gradient.to_vec::<f64>(), grad(|x: &Tensor| f(x).sum())(&x).to_vec::<f64>());
}

#[test]
fn errors_say_where_and_what() {
    let e = |text: &str| text.parse::<Graph>().unwrap_err().to_string();
    assert!(
        e("graph nonsense").contains("line 1, column 7: expected `(`, found `nonsense`"),
        "{}",
        e("graph nonsense")
    );
    assert!(e("graph(x0: f64[]) {\n return %0\n}").contains("there is no value %0 yet"));
    assert!(
        e("graph(x0: f64[]) {\n %0 = wobble(x0) : f64[]\n return %0\n}")
            .contains("line 2, column 7: there is no operation `wobble`")
    );
    assert!(e("graph(x0: f64[]) {\n %0 = add(x0) : f64[]\n return %0\n}").contains("does not take 1 inputs"));
    assert!(e("graph(x0: f64[2]) {\n %0 = exp(x0) : f64[3]\n return %0\n}").contains("not [f64[3]]"));
    assert!(e("graph(x0: f64[2]) {\n %0 = sum(x0) : f64[]\n return %0\n}").contains("`axes` is missing"));
    assert!(
        e("graph(x0: f64[99999999999, 99999999999]) {\n return\n}").contains("more elements than memory")
    );
    let deep = "graph() {\n %0 = call() : () ".repeat(1000);
    assert!(e(&deep).contains("levels inside each other"));
}

#[test]
fn broken_text_never_panics() {
    let mut dice = pullback_testing::Dice(1);
    let mut random = move |n: usize| dice.roll(n.max(1));
    let texts: Vec<String> = graphs().iter().map(Graph::to_string).collect();
    for round in 0..20_000 {
        let mut bytes = texts[round % texts.len()].clone().into_bytes();
        for _ in 0..1 + random(3) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] = b" []{}()%:,.xc0123456789-ef\"\n"[random(28)],
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"0123456789[](){}%,"[random(18)]),
                _ => {
                    let end = (at + random(20)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    let to = random(bytes.len());
                    bytes.splice(to..to, part);
                }
            }
        }
        if let Ok(g) = String::from_utf8_lossy(&bytes).parse::<Graph>() {
            g.verify().expect("what was parsed is well formed");
            assert_eq!(g.to_string().parse::<Graph>().unwrap().to_string(), g.to_string());
        }
    }
}

#[test]
fn the_verifier_finds_a_wrong_type_and_a_wrong_order() {
    let good = trace(|x: &Tensor| x.exp().sum(), &Tensor::zeros([3]));
    let mut wrong = good.clone();
    wrong.steps[0].avals[0].dtype = DType::F32;
    assert!(wrong.verify().unwrap_err().to_string().contains("%0 = exp"));
    let mut wrong = good.clone();
    wrong.steps.swap(0, 1);
    assert!(wrong.verify().is_err());
    let mut wrong = good;
    wrong.outputs[0] = Ref::Step(7, 0);
    assert!(wrong.verify().is_err());
}

#[test]
fn a_file_holds_the_graph_and_its_constants() {
    let w = Tensor::randn(Key::new(1), [40], DType::F32);
    let g = trace(|x: &Tensor| (x * &w).sum() + 0.5, &Tensor::zeros([40]).cast(DType::F32));
    let bytes = g.to_bytes().unwrap();
    let back = Graph::from_bytes(&bytes).unwrap();
    assert_eq!(back.to_string(), g.to_string());
    for g in graphs() {
        assert_eq!(Graph::from_bytes(&g.to_bytes().unwrap()).unwrap().to_string(), g.to_string());
    }
    let said = |bytes: &[u8]| Graph::from_bytes(bytes).unwrap_err().to_string();
    assert!(said(b"").contains("not the file of a graph"));
    assert!(said(&bytes[..bytes.len() - 1]).contains("checksum"));
    let mut other = bytes.clone();
    other[15] = b'2';
    assert!(said(&other).contains("another version"));
}

#[test]
fn no_change_to_a_file_is_taken_or_panics() {
    let w = Tensor::randn(Key::new(1), [40], DType::F32);
    let g = trace(|x: &Tensor| (x * &w).sum(), &Tensor::zeros([40]).cast(DType::F32));
    let bytes = g.to_bytes().unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(Graph::from_bytes(&changed).is_err(), "byte {at}");
        assert!(Graph::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
    }
    // With the right checksum it is the checks behind it that matter.
    for at in 24..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] = changed[at].wrapping_add(1 + (at % 250) as u8);
        let sum = super::file::checksum(&changed[25..]).to_le_bytes();
        changed[17..25].copy_from_slice(&sum);
        if let Ok(g) = Graph::from_bytes(&changed) {
            g.verify().unwrap();
        }
    }
}
