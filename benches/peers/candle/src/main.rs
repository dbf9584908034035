//! Tasks of `benches/src/eager` with candle, on the processor.

#[path = "../../protocol.rs"]
mod protocol;

use candle_core::{D, DType, Device, Result, Tensor, Var};
use protocol::{SetUp, Task, serve};
use std::hint::black_box;

const CPU: &Device = &Device::Cpu;
const LARGE: (usize, usize) = (10_000, 1000);
const ROWS: (usize, usize) = (4096, 1000);

fn repeated<F: FnMut() -> Result<()> + 'static>(make: impl Fn() -> Result<F> + 'static) -> SetUp {
    Box::new(move || {
        let mut run = make().expect("the data can be made");
        Box::new(move || run().expect("the task runs"))
    })
}

fn chain(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let mut y = a.clone();
    for _ in 0..500 {
        y = ((y * a)? + b)?;
    }
    Ok(y)
}

fn of_large(f: fn(&Tensor, &Tensor) -> Result<Tensor>) -> SetUp {
    repeated(move || {
        let a = Tensor::rand(-0.5f32, 0.5, LARGE, CPU)?;
        let b = Tensor::rand(-0.5f32, 0.5, LARGE, CPU)?;
        Ok(move || {
            black_box(f(&a, &b)?);
            Ok(())
        })
    })
}

fn matmul(n: usize) -> SetUp {
    repeated(move || {
        let a = Tensor::randn(0f32, 1.0, (n, n), CPU)?;
        let b = Tensor::randn(0f32, 1.0, (n, n), CPU)?;
        Ok(move || {
            black_box(a.matmul(&b)?);
            Ok(())
        })
    })
}

fn log_softmax(x: &Tensor) -> Result<Tensor> {
    let shifted = x.broadcast_sub(&x.max_keepdim(D::Minus1)?)?;
    shifted.broadcast_sub(&shifted.exp()?.sum_keepdim(D::Minus1)?.log()?)
}

fn gelu(x: &Tensor) -> Result<Tensor> {
    let cube = (x.sqr()? * x)?;
    let inner = ((x + (cube * 0.044715)?)? * 0.797884)?.tanh()?;
    (x * 0.5)? * (inner + 1.0)?
}

fn cross_entropy(x: &Tensor, labels: &Tensor) -> Result<Tensor> {
    log_softmax(x)?.gather(&labels.unsqueeze(1)?, 1)?.mean_all()?.neg()
}

fn training() -> SetUp {
    repeated(|| {
        let widths = [784usize, 512, 512, 10];
        let mut layers = Vec::new();
        for w in widths.windows(2) {
            let deviation = (2.0 / w[0] as f32).sqrt();
            let weights = Var::from_tensor(&Tensor::randn(0f32, deviation, (w[0], w[1]), CPU)?)?;
            layers.push((weights, Var::zeros(w[1], DType::F32, CPU)?));
        }
        let x = Tensor::randn(0f32, 1.0, (128, 784), CPU)?;
        let labels = Tensor::from_vec((0..128).map(|k| k % 10).collect::<Vec<u32>>(), 128, CPU)?;
        Ok(move || {
            let mut y = x.clone();
            for (k, (w, b)) in layers.iter().enumerate() {
                y = y.matmul(w)?.broadcast_add(b)?;
                if k < 2 {
                    y = y.relu()?;
                }
            }
            let gradients = cross_entropy(&y, &labels)?.backward()?;
            for parameter in layers.iter().flat_map(|(w, b)| [w, b]) {
                let g = gradients.get(parameter).expect("every parameter is used");
                parameter.set(&(parameter.as_tensor() - (g * 0.01)?)?)?;
            }
            Ok(())
        })
    })
}

fn main() {
    let tasks = [
        Task("chain/n=1,forward+backward", 1000, repeated(|| {
            let (a, b) = (Var::new(0.999f64, CPU)?, Var::new(0.001f64, CPU)?);
            Ok(move || {
                black_box(chain(&a, &b)?.backward()?);
                Ok(())
            })
        })),
        Task("matmul/64,f32", 1, matmul(64)),
        Task("matmul/256,f32", 1, matmul(256)),
        Task("matmul/1024,f32", 1, matmul(1024)),
        Task("elementwise/add,f32", 1, of_large(|a, b| a + b)),
        Task("elementwise/exp,f32", 1, of_large(|a, _| a.exp())),
        Task("elementwise/tanh,f32", 1, of_large(|a, _| a.tanh())),
        Task("elementwise/relu,f32", 1, of_large(|a, _| a.relu())),
        Task("elementwise/gelu_by_hand,f32", 1, of_large(|a, _| gelu(a))),
        Task("reduction/sum,f32", 1, of_large(|a, _| a.sum_all())),
        Task("reduction/sum_axis_1,f32", 1, of_large(|a, _| a.sum(1))),
        Task("rows/log_softmax", 1, repeated(|| {
            let x = Var::randn(0f32, 1.0, ROWS, CPU)?;
            let g = Tensor::randn(0f32, 1.0, ROWS, CPU)?;
            Ok(move || {
                black_box((log_softmax(&x)? * &g)?.sum_all()?.backward()?);
                Ok(())
            })
        })),
        Task("rows/cross_entropy", 1, repeated(|| {
            let x = Var::randn(0f32, 1.0, ROWS, CPU)?;
            let labels: Vec<u32> = (0..ROWS.0 as u32).map(|k| k * 7 % ROWS.1 as u32).collect();
            let labels = Tensor::from_vec(labels, ROWS.0, CPU)?;
            Ok(move || {
                black_box(cross_entropy(&x, &labels)?.backward()?);
                Ok(())
            })
        })),
        Task("training/mlp_784_512_512_10,batch_128", 1, training()),
    ];
    serve("candle 0.11", &tasks);
}
