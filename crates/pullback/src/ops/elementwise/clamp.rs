//! Clamping to an interval.

use super::*;

/// `x` limited to `[low, high]`. The derivative is 1 inside and at both ends, 0 outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clamp {
    pub low: f64,
    pub high: f64,
}

impl Primitive for Clamp {
    const NAME: &'static str = "clamp";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if self.low.is_nan() || self.high.is_nan() || self.low > self.high {
            return Err(err!(Value, "the bounds {} and {} are not an interval", self.low, self.high));
        }
        if !x[0].dtype.is_float() {
            return Err(needs_float(x[0].dtype));
        }
        Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let (low, high) = (self.low, self.high);
        // NaN passes through: neither comparison holds for it.
        with_float!(x[0].dtype, T => {
            let (low, high) = (<T as Element>::from_scalar(low.into()), <T as Element>::from_scalar(high.into()));
            let f = move |v: T| if v < low { low } else if v > high { high } else { v };
            map::map_with(x[0].view::<T>(), out.fill::<T>(), f)
        });
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    /// `g` where `low <= x <= high`, 0 elsewhere.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let x = at.x(0);
        let inside = x.ge(self.low).and(x.le(self.high));
        smallvec![Some(Tensor::where_(&inside, g, 0.0))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0])
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        // The Jacobian is diagonal, so it is its own transpose.
        let t = t[0].as_ref().expect("a pushforward has at least one tangent");
        Ok(self.pullback(at, t).remove(0).expect("one input, one cotangent"))
    }

    fn samples() -> Vec<Sample> {
        // Bounds at a distance from every draw.
        let op = Clamp { low: -1.0, high: 1.0 };
        let of = |s: &[usize]| Sample::new(op, [Draw::new(Domain::fractional, s)]);
        vec![of(&[7]), of(&[2, 3])]
    }
}
