//! A device for tests: its elements are where no kernel of the host can reach them, and it computes by the host's kernels after
//! it has fetched them.

use super::{Backend, Executor, Profile, cpu::Cpu, host};
use crate::DType;
use crate::error::Result;
use crate::graph::operands::Operands;
use crate::graph::{Graph, Statistics};
use crate::ops::{Aval, Op};
use crate::opt::Fusion;
use crate::shape::Shape;
use crate::tensor::{Accelerator, Data, Device, Elements, Fresh, Tensor, Value};
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

impl Device {
    /// A device whose elements the host cannot reach, as those of a GPU, but that computes with the host's processor. It is for tests, on
    /// any machine, of programs that will run on a device: whatever reads elements without asking for them fails here too.
    ///
    /// ```
    /// use pullback::{Device, prelude::*};
    /// let device = Device::simulated();
    /// let x = Tensor::from([1.0, 2.0]).to(&device);
    /// let g = grad(|x: &Tensor| x.square().sum())(&x);
    /// assert_eq!(g.device(), device);
    /// assert_eq!(g.to_vec::<f64>(), [2.0, 4.0]); // fetched
    /// ```
    pub fn simulated() -> Device {
        static DEVICE: OnceLock<Device> = OnceLock::new();
        DEVICE.get_or_init(|| Device::new(Simulated { backend: Arc::new(Compiler) })).clone()
    }
}

struct Simulated {
    backend: Arc<dyn Backend>,
}

/// The memory of the device: the bytes of each id.
static MEMORY: LazyLock<Mutex<HashMap<u64, Vec<u8>>>> = LazyLock::new(Mutex::default);

fn memory() -> MutexGuard<'static, HashMap<u64, Vec<u8>>> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the host holds of elements: their id.
struct Id(u64);

impl Id {
    fn of(bytes: Vec<u8>) -> Elements {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        memory().insert(id, bytes);
        Arc::new(Id(id))
    }

    fn in_elements(elements: &Elements) -> u64 {
        elements.downcast_ref::<Id>().expect("the elements of this device are ids").0
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        memory().remove(&self.0);
    }
}

/// A copy of a value on the host, laid out as it is here, so that kernels add in the same order.
fn fetched(x: &Value) -> Result<Tensor> {
    let (dtype, shape) = (x.dtype, Shape::from(x.shape));
    let (Data::Placed(p), Some((offset, strides))) = (x.data, x.layout()) else {
        return Ok(Tensor::new(dtype, shape, x.data.clone()));
    };
    let id = Id::in_elements(&p.elements);
    let memory = memory();
    let bytes = memory.get(&id).expect("elements live as long as their id");
    let all = Tensor::from_bytes(dtype, (bytes.len() / dtype.size()).into(), |to| {
        to.copy_from_slice(bytes);
        Ok(())
    })?;
    let Data::Strided(mut s) = all.data().clone() else { unreachable!("it was made of bytes") };
    (s.offset, s.strides) = (offset, strides.iter().copied().collect());
    Ok(Tensor::new(dtype, shape, Data::Strided(s)))
}

impl Accelerator for Simulated {
    fn name(&self) -> String {
        "simulated".into()
    }

    fn upload(&self, _: DType, elements: &[u8]) -> Result<Elements> {
        Ok(Id::of(elements.to_vec()))
    }

    fn download(&self, x: &Value, to: &mut [u8]) -> Result<()> {
        to.copy_from_slice(&fetched(x)?.row_major_bytes()?);
        Ok(())
    }

    fn run(&self, op: &Op, x: &[Value], result: &Aval, over: Option<usize>) -> Result<Data> {
        let inputs = x.iter().map(fetched).collect::<Result<Vec<Tensor>>>()?;
        let values: Vec<Value> = inputs.iter().map(Tensor::value).collect();
        let mut made = Fresh::new(result.dtype, result.shape.clone());
        op.eval(&values, &mut made.output())?;
        let made = made.into_tensor();
        if let Data::Splat(bits) = made.data() {
            return Ok(Data::Splat(*bits));
        }
        let bytes = made.row_major_bytes()?;
        let elements = match over.map(|k| x[k].data) {
            Some(Data::Placed(p)) => {
                memory().insert(Id::in_elements(&p.elements), bytes);
                p.elements.clone()
            }
            _ => Id::of(bytes),
        };
        Ok(Device::simulated().place(elements, &result.shape))
    }

    fn compiler(&self) -> &dyn Any {
        &self.backend
    }
}

/// Graphs run by plans of the host.
struct Compiler;

impl Fusion for Compiler {
    fn can_join(&self, graph: &Graph, step: usize) -> bool {
        Cpu.can_join(graph, step)
    }

    fn is_group(&self, graph: &Graph, operands: &Operands, members: &[usize]) -> bool {
        Cpu.is_group(graph, operands, members)
    }
}

impl Backend for Compiler {
    fn compile(&self, graph: &Graph, donated: &[usize]) -> Result<Box<dyn Executor>> {
        Ok(Box::new(Remote(host().compile(graph, donated)?)))
    }
}

struct Remote(Box<dyn Executor>);

impl Executor for Remote {
    fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let here = inputs.iter().map(|t| t.host()).collect::<Result<Vec<Tensor>>>()?;
        let outputs = self.0.run(&here.iter().collect::<Vec<_>>())?;
        outputs.iter().map(|t| t.try_to(&Device::simulated())).collect()
    }

    fn run_owned(&self, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        self.run(&inputs.iter().collect::<Vec<_>>())
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    fn epilogues(&self) -> usize {
        self.0.epilogues()
    }

    fn profile(&self, inputs: &[Tensor]) -> Result<Profile> {
        let here = inputs.iter().map(Tensor::host).collect::<Result<Vec<Tensor>>>()?;
        self.0.profile(&here)
    }
}
