//! Updates in place: an operation whose result takes the memory of its first input, which nobody else can see.

use super::data::{Data, Memory, Output, Value};
use super::{Tensor, device};
use crate::ops::{Aval, Primitive};
use std::sync::Arc;

impl Tensor {
    /// Gives this handle the value of `op(self, b)`, which has its type and shape, in the memory that it has. False, and nothing done, if
    /// that is impossible, or if a transform, a pullback or another handle would see it.
    pub(super) fn update<P: Primitive>(&mut self, op: &P, b: &Tensor) -> bool {
        let dtype = self.dtype();
        let recorded = !self.node().deps.is_empty() || !b.node().deps.is_empty();
        if recorded || b.data().frame() != 0 || !op.overwrites(0, dtype) {
            return false;
        }
        let b = b.value();
        let Some((shape, data)) = self.value_mut() else { return false };
        let row_major = |offset: usize, strides: &[isize]| offset == 0 && *strides == shape.strides()[..];
        let x = |own| [Value { dtype, shape, data: own, window: None }, b];
        // Of repeated numbers an elementwise operation makes one again. Others would need new memory, which is for `bind` to ask for.
        if let (Data::Splat(bits), Data::Splat(_)) = (&*data, b.data)
            && op.elementwise()
        {
            let own = Data::Splat(*bits);
            op.eval(&x(&own), &mut Output::new(shape, data))
                .expect("what overwrites its input does not fail");
            return true;
        }
        match std::mem::replace(data, Data::Gone) {
            Data::Strided(s)
                if row_major(s.offset, &s.strides)
                    && s.buffer.is_unique()
                    && !matches!(b.data, Data::Placed(_)) =>
            {
                let memory = Memory { buffer: s.buffer, offset: 0 };
                let mut out = Output::over(shape, memory, 0, data);
                op.eval(&x(&Data::Gone), &mut out).expect("what overwrites its input does not fail");
                true
            }
            Data::Placed(p) if row_major(p.offset, &p.strides) && Arc::strong_count(&p.elements) == 1 => {
                let own = Data::Placed(p);
                let result = Aval { dtype, shape: shape.clone() };
                let made = device::run(&op.clone().into(), &x(&own), &result, Some(0));
                let done = made.is_ok();
                *data = made.unwrap_or(own);
                done
            }
            own => {
                *data = own;
                false
            }
        }
    }
}
