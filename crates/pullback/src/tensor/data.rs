//! What a tensor's value is made of.

use super::Tensor;
use super::buffer::Buffer;
use super::device::Placed;
use crate::dtype::{DType, Element, Scalar, with_stored};
use crate::error::Result;
use crate::kernels::poison::poison;
use crate::kernels::view::View;
use crate::ops::{Aval, Op};
use crate::shape::{MAX_RANK, Shape, Strides};
use bytemuck::Pod;
use smallvec::SmallVec;
use std::any::Any;
use std::panic::Location;
use std::sync::Arc;

/// The value of a node.
pub(crate) enum Data {
    /// One number repeated over the whole shape: scalars, literals, zeros and ones need no buffer.
    Splat(Bits),
    /// Elements in a buffer, strided.
    Strided(Strided),
    /// Dropped, because only the record is still needed.
    Gone,
    /// Elements on a device, strided, where no kernel of the host can read them.
    Placed(Box<Placed>),
    /// A value with its tangent, in forward mode.
    Dual(Box<Dual>),
    /// One value for each lane, under `vmap`.
    Mapped(Box<Mapped>),
    /// Not known yet: a placeholder in a function that is being traced.
    Traced(Arc<dyn Tracer>),
}

/// Elements in a shared buffer.
#[derive(Clone)]
pub(crate) struct Strided {
    pub buffer: Buffer,
    pub offset: usize,
    pub strides: Strides,
}

/// Where the elements of an array lie in a buffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    pub offset: usize,
    pub strides: Strides,
}

/// A primal and its tangent for the forward-mode transform `level`.
#[derive(Clone)]
pub(crate) struct Dual {
    pub level: u64,
    pub primal: Tensor,
    pub tangent: Tensor,
}

/// The values of all lanes, along the first axis, for the transform `level`.
#[derive(Clone)]
pub(crate) struct Mapped {
    pub level: u64,
    pub value: Tensor,
}

/// A placeholder for a value, while a function is traced: whoever traces it notes down what is done with it.
pub(crate) trait Tracer: Send + Sync {
    /// The transform that traces.
    fn level(&self) -> u64;

    /// Notes an operation on values of which this is one; its outputs, which have these types.
    fn apply(
        &self,
        op: &Op,
        inputs: &[&Tensor],
        avals: SmallVec<[Aval; 1]>,
    ) -> Result<SmallVec<[Arc<dyn Tracer>; 1]>>;

    /// The line of code that made the value; an input has none.
    fn location(&self) -> Option<&'static Location<'static>>;

    /// Itself, for whoever made it.
    fn as_any(&self) -> &dyn Any;
}

impl Data {
    /// The transform whose values wrap those of others; 0 if the value is concrete.
    #[inline]
    pub fn frame(&self) -> u64 {
        match self {
            Data::Splat(_) | Data::Strided(_) | Data::Gone => 0,
            other => other.outer_frame(),
        }
    }

    /// Who says what an operation on the value means: its [frame](Data::frame), or else [the device](DEVICE) that holds it, or the kernels
    /// of the host, which are 0. The largest number among the inputs decides, and one comparison is all that the host pays for devices.
    #[inline]
    pub fn interpreter(&self) -> u64 {
        match self {
            Data::Splat(_) | Data::Strided(_) | Data::Gone => 0,
            Data::Placed(_) => DEVICE,
            other => other.outer_frame(),
        }
    }

    /// Apart, because most values are plain ones of the host: one comparison tells.
    #[inline(never)]
    fn outer_frame(&self) -> u64 {
        match self {
            Data::Dual(d) => d.level,
            Data::Mapped(m) => m.level,
            Data::Traced(t) => t.level(),
            _ => 0,
        }
    }
}

impl Clone for Data {
    fn clone(&self) -> Data {
        match self {
            Data::Splat(bits) => Data::Splat(*bits),
            Data::Strided(s) => Data::Strided(s.clone()),
            Data::Placed(p) => Data::Placed(p.clone()),
            Data::Dual(d) => Data::Dual(Box::new(Dual {
                level: d.level,
                primal: d.primal.clone(),
                tangent: d.tangent.clone(),
            })),
            Data::Mapped(m) => Data::Mapped(m.clone()),
            Data::Traced(t) => Data::Traced(t.clone()),
            Data::Gone => Data::Gone,
        }
    }
}

/// The [interpreter](Data::interpreter) of values on devices. Transforms have larger numbers.
pub(crate) const DEVICE: u64 = 1;

/// One element of any type, in the first bytes of two words.
#[derive(Clone, Copy, PartialEq)]
#[repr(transparent)]
pub(crate) struct Bits([u64; 2]);

impl Bits {
    pub fn of<T: Pod>(v: T) -> Bits {
        let mut words = [0u64; 2];
        bytemuck::bytes_of_mut(&mut words)[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&v));
        Bits(words)
    }

    /// A Rust number as an element of `dtype`.
    pub fn scalar(v: Scalar, dtype: DType) -> Bits {
        match dtype {
            DType::F64 => Bits::of(v.to_f64()),
            DType::F32 => Bits::of(v.to_f64() as f32),
            DType::Bool => Bits::of(bool::from_scalar(v).store()),
            _ => with_stored!(dtype, T => Bits::of(T::from_scalar(v))),
        }
    }

    pub fn get<T: Pod>(&self) -> &T {
        &self.slice()[0]
    }

    /// The two parts of a complex number.
    fn parts<T: Pod>(&self) -> &[T] {
        &bytemuck::cast_slice(&self.0)[..2]
    }

    pub fn slice<T: Pod>(&self) -> &[T] {
        &bytemuck::cast_slice(&self.0)[..1]
    }
}

/// An operand of a kernel: its type, shape and elements.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    pub dtype: DType,
    pub shape: &'a [usize],
    pub data: &'a Data,
    /// Where the elements lie in the buffer, if not where `data` says: another view of it.
    pub window: Option<(usize, &'a [isize])>,
}

/// Strides of a value that repeats one element.
static ZEROS: [isize; MAX_RANK] = [0; MAX_RANK];

impl<'a> Value<'a> {
    /// The elements, seen as `T`, which must be how the type is stored.
    #[inline]
    pub fn view<T: Pod>(&self) -> View<'a, T> {
        debug_assert_eq!(size_of::<T>(), self.dtype.size());
        match self.data {
            Data::Splat(bits) => View::new(bits.slice(), 0, self.shape, &ZEROS[..self.shape.len()]),
            Data::Strided(s) => {
                let (offset, strides) = self.window.unwrap_or((s.offset, &s.strides));
                View::new(s.buffer.slice(), offset, self.shape, strides)
            }
            _ => unreachable!("a kernel was given a value that is not in the memory of the host"),
        }
    }

    /// Lets `f` have the parts of complex elements, of type `T`: the real (0) or the imaginary ones (1).
    pub fn with_parts<T: Pod>(&self, part: usize, f: impl FnOnce(View<T>)) {
        self.with_pairs(|pairs| {
            let rank = self.shape.len();
            f(View::new(pairs.data, pairs.offset + part, self.shape, &pairs.strides[..rank]));
        });
    }

    /// Lets `f` have complex elements as real ones, of type `T`: the parts lie along another axis, behind the others.
    pub fn with_pairs<T: Pod>(&self, f: impl FnOnce(View<T>)) {
        debug_assert_eq!(2 * size_of::<T>(), self.dtype.size());
        let (data, offset, strides) = match self.data {
            Data::Splat(bits) => (bits.parts(), 0, &ZEROS[..self.shape.len()]),
            Data::Strided(s) => {
                let (offset, strides) = self.window.unwrap_or((s.offset, &s.strides));
                (s.buffer.slice(), offset, strides)
            }
            _ => unreachable!("a kernel was given a value that is not in the memory of the host"),
        };
        let shape: Shape = self.shape.iter().copied().chain([2]).collect();
        let strides: Strides = strides.iter().map(|s| 2 * s).chain([1]).collect();
        f(View::new(data, 2 * offset, &shape, &strides));
    }

    /// Where the elements lie, if there are more than one repeated.
    pub fn layout(&self) -> Option<(usize, &'a [isize])> {
        match self.data {
            Data::Strided(s) => Some(self.window.unwrap_or((s.offset, &s.strides))),
            Data::Placed(p) => Some(self.window.unwrap_or((p.offset, &p.strides))),
            _ => None,
        }
    }

    /// The same elements seen another way: by an operation's [`view`](crate::ops::Primitive::view).
    pub fn seen(&self, layout: Option<Layout>) -> Option<Data> {
        match self.data {
            Data::Strided(s) => layout.map(|Layout { offset, strides }| {
                Data::Strided(Strided { buffer: s.buffer.clone(), offset, strides })
            }),
            Data::Placed(p) => layout.map(|layout| p.seen(layout)),
            repeated => Some(repeated.clone()),
        }
    }

    /// The repeated element, if that is what it is.
    pub fn splat<T: Pod>(&self) -> Option<T> {
        match self.data {
            Data::Splat(bits) => Some(*bits.get::<T>()),
            _ => None,
        }
    }
}

/// Memory for a result: a buffer, and the element in it to begin at.
pub(crate) struct Memory {
    pub buffer: Buffer,
    pub offset: usize,
}

/// Where a kernel puts its result.
pub(crate) struct Output<'a> {
    shape: &'a Shape,
    data: &'a mut Data,
    memory: Option<Memory>,
    /// The memory holds the elements of this input, which is not given otherwise.
    over: Option<usize>,
}

impl<'a> Output<'a> {
    /// A place for elements of the given shape.
    pub fn new(shape: &'a Shape, data: &'a mut Data) -> Output<'a> {
        Output { shape, data, memory: None, over: None }
    }

    /// A place for elements of the given shape in memory that is there already, if nobody else holds it and they fit.
    pub fn within(shape: &'a Shape, memory: Option<Memory>, data: &'a mut Data) -> Output<'a> {
        Output { shape, data, memory, over: None }
    }

    /// A place in the memory of input `k`, which has the same type and shape and is row-major. Its elements are to be found there and
    /// nowhere else, and nobody else holds the memory.
    pub fn over(shape: &'a Shape, memory: Memory, k: usize, data: &'a mut Data) -> Output<'a> {
        debug_assert!(memory.buffer.is_unique());
        Output { shape, data, memory: Some(memory), over: Some(k) }
    }

    /// The input whose place the result takes.
    pub fn takes(&self) -> Option<usize> {
        self.over
    }

    /// If the result is to take the place of an input: which one, and its elements, to be overwritten.
    pub fn overwritten<T: Pod>(&mut self) -> Option<(usize, &mut [T])> {
        let k = self.over?;
        Some((k, self.fill()))
    }

    pub fn shape(&self) -> &'a Shape {
        self.shape
    }

    /// Memory for the elements, in row-major order, to be written whole.
    pub fn fill<T: Pod>(&mut self) -> &mut [T] {
        let len = self.shape.numel();
        let fits =
            |m: &Memory| m.buffer.is_unique() && m.buffer.slice::<T>().len().saturating_sub(m.offset) >= len;
        let Memory { buffer, offset } = match self.memory.take() {
            Some(memory) if fits(&memory) => memory,
            _ => Memory { buffer: Buffer::new(len * size_of::<T>()), offset: 0 },
        };
        *self.data = Data::Strided(Strided { buffer, offset, strides: self.shape.strides() });
        let Data::Strided(s) = &mut *self.data else { unreachable!() };
        let elements = &mut s.buffer.slice_mut().expect("it has one holder")[offset..offset + len];
        if self.over.is_none() {
            poison(elements);
        }
        elements
    }

    /// What has been put there.
    pub fn data(&self) -> &Data {
        self.data
    }

    /// The result is this: a view of an input, or one repeated element.
    pub fn set(&mut self, data: Data) {
        *self.data = data;
    }

    /// The result is one element, repeated.
    pub fn splat<T: Pod>(&mut self, v: T) {
        *self.data = Data::Splat(Bits::of(v));
    }

    /// The memory that it was offered, if the result did not use it.
    pub fn finish(self) -> Option<Memory> {
        debug_assert!(!matches!(self.data, Data::Gone), "a kernel wrote no result");
        self.memory
    }
}
