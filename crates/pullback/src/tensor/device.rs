//! Where elements are: in the memory of the host, or on a device that computes with them itself.
//!
//! Elements on a device are [`Data::Placed`]. No kernel of the host can read them: `bind` hands the operation to their device, views
//! share them, and whoever reads elements on the host asks for [`Tensor::host`], which fetches them.

use super::data::{Data, Layout, Value};
use super::{Block, BlockAt, Dual, Fresh, Link, Mapped, Tensor, bind_block};
use crate::DType;
use crate::error::{Result, err, or_panic};
use crate::location::Restore;
use crate::ops::{Aval, Op};
use crate::shape::{Shape, Strides};
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A place for the elements of tensors, and what computes with them there.
///
/// ```
/// use pullback::{Device, prelude::*};
/// let x = Tensor::from([1.0, 2.0]);
/// assert_eq!(x.device(), Device::cpu());
/// assert_eq!(Device::cpu().to_string(), "cpu");
/// ```
#[derive(Clone)]
pub struct Device(Option<Arc<dyn Accelerator>>);

/// A device other than the host.
pub(crate) trait Accelerator: Send + Sync {
    /// Such as `cuda:0`.
    fn name(&self) -> String;

    /// Row-major elements from the host.
    fn upload(&self, dtype: DType, elements: &[u8]) -> Result<Elements>;

    /// All elements of a value here, in row-major order, to the host.
    fn download(&self, x: &Value, to: &mut [u8]) -> Result<()>;

    /// Computes an operation of which the result has this type. The inputs are values here, or one number repeated. Nobody else holds the
    /// elements of input `over`, which have the type and shape of the result, so that it may take their place.
    fn run(&self, op: &Op, x: &[Value], result: &Aval, over: Option<usize>) -> Result<Data>;

    /// What compiles graphs for it, as the crate's `Arc<dyn Backend>`: graphs are made of tensors, which do not know of graphs.
    fn compiler(&self) -> &dyn Any;
}

/// Memory of a device; what it is, the device knows.
pub(crate) type Elements = Arc<dyn Any + Send + Sync>;

/// Elements on a device, strided.
#[derive(Clone)]
pub(crate) struct Placed {
    pub device: Device,
    pub elements: Elements,
    pub offset: usize,
    pub strides: Strides,
}

impl Device {
    /// The host.
    pub fn cpu() -> Device {
        Device(None)
    }

    /// Another device.
    pub(crate) fn new(accelerator: impl Accelerator + 'static) -> Device {
        Device(Some(Arc::new(accelerator)))
    }

    /// What computes there, unless it is the host.
    pub(crate) fn accelerator(&self) -> Option<&dyn Accelerator> {
        self.0.as_deref()
    }

    /// Row-major elements here.
    pub(crate) fn place(&self, elements: Elements, shape: &Shape) -> Data {
        Data::Placed(Box::new(Placed { device: self.clone(), elements, offset: 0, strides: shape.strides() }))
    }

    /// A value of the host, or of this device, on this device.
    fn holding(&self, t: &Tensor) -> Result<Tensor> {
        if t.device() == *self {
            return Ok(t.clone());
        }
        let t = t.host()?;
        let Some(accelerator) = self.accelerator() else { return Ok(t) };
        let (dtype, shape) = (t.dtype(), t.node().shape.clone());
        let elements = accelerator.upload(dtype, &t.row_major_bytes()?)?;
        let data = self.place(elements, &shape);
        Ok(Tensor::new(dtype, shape, data))
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for Device {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.accelerator() {
            None => f.write_str("cpu"),
            Some(a) => f.write_str(&a.name()),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}

/// Whether some thread has asked for a device other than the host: one load is what others pay for that.
static CHOSEN: AtomicBool = AtomicBool::new(false);

#[inline]
pub(super) fn is_chosen() -> bool {
    CHOSEN.load(Ordering::Relaxed)
}

thread_local! {
    static CURRENT: RefCell<Device> = const { RefCell::new(Device(None)) };
}

/// Runs `f`, in which new tensors are made on a device.
///
/// ```
/// use pullback::{Device, prelude::*, with_device};
/// let x = with_device(&Device::cpu(), || Tensor::from([1.0, 2.0]));
/// assert_eq!(x.device(), Device::cpu());
/// ```
pub fn with_device<T>(device: &Device, f: impl FnOnce() -> T) -> T {
    CHOSEN.fetch_or(device.0.is_some(), Ordering::Relaxed);
    let before = CURRENT.replace(device.clone());
    let _restore = Restore(|| CURRENT.set(before.clone()));
    f()
}

/// New elements, which are row-major on the host, on the device that is asked for.
pub(super) fn on_current(t: Tensor) -> Result<Tensor> {
    if !is_chosen() {
        return Ok(t);
    }
    let device = CURRENT.with_borrow(Device::clone);
    device.holding(&t)
}

/// Elements that were computed of repeated numbers alone, which are on no device, are new: they go to the device that is asked for.
#[cold]
pub(super) fn settle(node: &mut Fresh, inputs: &[&Tensor]) -> Result<()> {
    let device = CURRENT.with_borrow(Device::clone);
    if device.0.is_some()
        && matches!(node.output().data(), Data::Strided(_))
        && inputs.iter().all(|t| matches!(t.data(), Data::Splat(_)))
    {
        let made = Tensor::new(node.dtype, node.shape.clone(), node.output().data().clone());
        node.output().set(device.holding(&made)?.data().clone());
    }
    Ok(())
}

/// The one device that these values are on; an error if there are several.
#[cold]
pub(crate) fn common_device<'a>(x: impl Iterator<Item = &'a Data>) -> Result<Device> {
    let place = |data: &Data| match data {
        Data::Placed(p) => Some(p.device.clone()),
        // A number that is repeated is everywhere.
        Data::Splat(_) => None,
        _ => Some(Device::cpu()),
    };
    let mut places = x.filter_map(place);
    let first = places.next().unwrap_or(Device::cpu());
    match places.find(|other| *other != first) {
        None => Ok(first),
        Some(other) => {
            Err(err!(Value, "the inputs are on {first} and on {other}; bring them together with to(&device)"))
        }
    }
}

/// An operation on values of which one is on a device.
#[cold]
pub(super) fn run(op: &Op, x: &[Value], result: &Aval, over: Option<usize>) -> Result<Data> {
    let device = common_device(x.iter().map(|v| v.data))?;
    if let ([one], Some((offset, strides))) = (x, x[0].layout())
        && let Some(seen) = op.view(one.shape, offset, strides)
    {
        return Ok(one.seen(Some(seen)).expect("it has a layout"));
    }
    device.accelerator().expect("the host places no elements").run(op, x, result, over)
}

impl Placed {
    /// The same elements seen another way.
    pub fn seen(&self, Layout { offset, strides }: Layout) -> Data {
        Data::Placed(Box::new(Placed { offset, strides, ..self.clone() }))
    }
}

impl Tensor {
    /// Where the elements are. A number that is repeated, such as in [`zeros`](Tensor::zeros), is at home on the host and takes part in
    /// operations everywhere; a placeholder in a function that is being traced does not know its device, and says the host too.
    pub fn device(&self) -> Device {
        match self.data() {
            Data::Placed(p) => p.device.clone(),
            Data::Dual(d) => d.primal.device(),
            Data::Mapped(m) => m.value.device(),
            _ => Device::cpu(),
        }
    }

    /// The same values on a device. It is an operation like others: cotangents come back to where the value was.
    ///
    /// ```
    /// use pullback::{Device, prelude::*};
    /// let x = Tensor::from([1.0, 2.0]);
    /// assert_eq!(x.to(&Device::cpu()).to_vec::<f64>(), [1.0, 2.0]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to(&self, device: &Device) -> Tensor {
        or_panic(self.try_to(device))
    }

    #[track_caller]
    pub(crate) fn try_to(&self, device: &Device) -> Result<Tensor> {
        let from = self.device();
        if from == *device && !matches!(self.data(), Data::Traced(_)) {
            return Ok(self.clone());
        }
        let transfer = Transfer { from, to: device.clone() };
        Ok(bind_block(Arc::new(transfer), &[self])?.remove(0))
    }

    /// The tensor with its elements in the memory of the host, below any tangents: the one way for whoever reads them. An error where they are not
    /// one value, or not known.
    #[track_caller]
    pub(crate) fn host(&self) -> Result<Tensor> {
        match self.data() {
            Data::Dual(d) => d.primal.host(),
            Data::Mapped(_) => Err(err!(
                Value,
                "a value under vmap is many values at once, so that it cannot be read, printed or branched on; \
                 use Tensor::where_, or cond, to choose lane by lane"
            )
            .at(crate::location::caller())),
            Data::Traced(_) => Err(err!(
                Value,
                "a value is not known while a function is traced, so that it cannot be read, printed or branched on; \
                 use cond or Tensor::where_, or return it"
            )
            .at(crate::location::caller())),
            Data::Placed(p) => {
                let accelerator = p.device.accelerator().expect("the host places no elements");
                let shape = self.node().shape.clone();
                Tensor::from_bytes(self.dtype(), shape, |to| accelerator.download(&self.value(), to))
            }
            _ => Ok(self.clone()),
        }
    }

    /// Numbers that an operation needs beside a value: on its device, unless it is everywhere, or nobody knows yet where it will be.
    pub(crate) fn beside(&self, x: &Tensor) -> Result<Tensor> {
        match x.data() {
            Data::Dual(d) => self.beside(&d.primal),
            Data::Mapped(m) => self.beside(&m.value),
            Data::Traced(_) | Data::Splat(_) => Ok(self.clone()),
            _ => self.try_to(&x.device()),
        }
    }

    /// Whether the elements are one value that can be read, perhaps after it is fetched.
    pub(crate) fn is_known(&self) -> bool {
        match self.data() {
            Data::Dual(d) => d.primal.is_known(),
            Data::Mapped(_) | Data::Traced(_) => false,
            _ => true,
        }
    }
}

/// The way from one device to another.
struct Transfer {
    from: Device,
    to: Device,
}

impl Block for Transfer {
    fn name(&self) -> &'static str {
        "to"
    }

    /// Every part of a value is moved by itself. A graph runs on the device of its inputs as a whole: there is nothing to move inside.
    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        let (dtype, shape) = (x[0].dtype(), &x[0].node().shape);
        let moved = match x[0].data() {
            Data::Dual(d) => {
                let (primal, tangent) = (d.primal.try_to(&self.to)?, d.tangent.try_to(&self.to)?);
                Tensor::new(
                    dtype,
                    shape.clone(),
                    Data::Dual(Box::new(Dual { level: d.level, primal, tangent })),
                )
            }
            Data::Mapped(m) => {
                let value = m.value.try_to(&self.to)?;
                Tensor::new(dtype, shape.clone(), Data::Mapped(Box::new(Mapped { level: m.level, value })))
            }
            Data::Traced(_) => x[0].clone(),
            _ => self.to.holding(&x[0].bare())?,
        };
        Ok(vec![moved])
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        let back = |g: &Tensor| Ok((at.inputs[0].link(), g.try_to(&self.from)?));
        gs.iter().flatten().map(back).collect()
    }
}

#[cfg(test)]
mod tests;
