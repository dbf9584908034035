//! The kinds of steps that programs are made of, besides the samples of operations.

use super::{Maker, NUMBERS, Size};
use crate::graph::Ref;
use crate::kernels::movement::put::PutRule;
use crate::ops::*;

impl Maker {
    /// One more value, if what the dice choose can be.
    pub(super) fn step(&mut self, samples: &[Sample]) {
        let x = self.pick();
        let y = match self.roll(24) {
            0..=9 => self.sampled(samples, x),
            10 | 11 => self.rowwise(x),
            12 | 13 => self.reduced(x),
            14 => self.normalised(x),
            15 if self.chance(2) => self.transposed(x),
            15 => self.permuted(x),
            16 => self.reshaped(x),
            17 => self.sliced(x),
            18 => self.placed(x),
            19 => self.joined(x),
            20 => self.parted(x),
            21 => self.product(x),
            22 => self.indexed(x),
            _ => self.repeated(x),
        };
        self.keep(y);
    }

    /// Some axes of a shape, in order, at least one of them.
    fn axes(&mut self, rank: usize) -> Option<Vec<usize>> {
        if rank == 0 {
            return None;
        }
        let one = self.roll(rank);
        let all = self.chance(4);
        Some((0..rank).filter(|&k| all || k == one || self.dice.roll(4) == 0).collect())
    }

    /// With an axis moved to the end, what that makes of an operation on rows, and back.
    fn rowwise(&mut self, x: Ref) -> Option<Ref> {
        let rank = self.shape(x).len();
        if rank == 0 {
            return None;
        }
        let axis = if self.chance(2) { rank - 1 } else { self.roll(rank) };
        let mut perm: Vec<usize> = (0..rank).filter(|&k| k != axis).collect();
        perm.push(axis);
        let mut back = vec![0; rank];
        perm.iter().enumerate().for_each(|(k, &p)| back[p] = k);
        let moved = |maker: &mut Maker, x: Ref, perm: &[usize]| match axis == rank - 1 {
            true => Some(x),
            false => maker.push(Permute { perm: perm.into() }, &[x]),
        };
        let x = moved(self, x, &perm)?;
        let shape = self.shape(x);
        let (&n, rows) = shape.split_last()?;
        let other = self.pick();
        let y = match self.roll(9) {
            0..=2 => self.push(Softmax, &[x])?,
            3..=5 => self.push(LogSoftmax, &[x])?,
            6 => {
                let (y, g) = (self.push(Softmax, &[x])?, self.fitted(other, &shape)?);
                self.push(SoftmaxPullback, &[y, g])?
            }
            7 => {
                let (y, g) = (self.push(LogSoftmax, &[x])?, self.fitted(other, &shape)?);
                self.push(LogSoftmaxPullback, &[y, g])?
            }
            _ => {
                let labels = self.index(n, rows);
                let smoothing = if self.chance(2) { 0.0 } else { 0.2 };
                if self.chance(2) {
                    return self.push(CrossEntropy { smoothing }, &[x, labels]);
                }
                let g = self.fitted(other, rows)?;
                self.push(CrossEntropyPullback { smoothing }, &[x, labels, g])?
            }
        };
        moved(self, y, &back)
    }

    /// A reduction; its result may be used with what was reduced.
    fn reduced(&mut self, x: Ref) -> Option<Ref> {
        let shape = self.shape(x);
        let axes = self.axes(shape.len())?;
        let of: smallvec::SmallVec<[usize; 4]> = axes.as_slice().into();
        let y = match self.roll(9) {
            0..=2 => self.push(Sum { axes: of }, &[x])?,
            3 => self.push(Max { axes: of }, &[x])?,
            4 => self.push(Min { axes: of }, &[x])?,
            5 | 6 => self.push(LogSumExp { axes: of }, &[x])?,
            7 => {
                let largest = self.chance(2);
                let y = self.push(ArgExtreme { axes: of, largest }, &[x])?;
                self.as_float(y)?
            }
            _ => {
                let mask = self.mask(&shape)?;
                let every = self.chance(2);
                let y = self.push(Truth { axes: of, every }, &[mask])?;
                self.as_float(y)?
            }
        };
        if self.chance(2) {
            return Some(y);
        }
        self.keep(Some(y));
        let ones: Vec<usize> =
            shape.iter().enumerate().map(|(k, &n)| if axes.contains(&k) { 1 } else { n }).collect();
        let y = self.push(Reshape { to: ones.into() }, &[y])?;
        let wide = self.fitted(y, &shape)?;
        match self.roll(3) {
            0 => self.push(Sub, &[x, wide]),
            1 => self.push(Mul, &[wide, x]),
            _ => self.push(Maximum, &[x, wide]),
        }
    }

    /// `x / sqrt(Σ x² + 0.1)`.
    fn normalised(&mut self, x: Ref) -> Option<Ref> {
        let shape = self.shape(x);
        let axes = self.axes(shape.len())?;
        let square = self.push(Square, &[x])?;
        let total = self.push(Sum { axes: axes.as_slice().into() }, &[square])?;
        let small = self.shape(total);
        let little = self.number(0.1, &small);
        let total = self.push(Add, &[total, little])?;
        let norm = self.push(Sqrt, &[total])?;
        let ones: Vec<usize> =
            shape.iter().enumerate().map(|(k, &n)| if axes.contains(&k) { 1 } else { n }).collect();
        let norm = self.push(Reshape { to: ones.into() }, &[norm])?;
        let wide = self.fitted(norm, &shape)?;
        self.push(Div, &[x, wide])
    }

    /// Slices in another order, read backward: what a group must not write over while it reads.
    fn transposed(&mut self, x: Ref) -> Option<Ref> {
        let shape = self.shape(x);
        let n = *shape.first().filter(|n| **n > 0)?;
        let order = self.index(n, &[n]);
        let moved = self.push(IndexSelect { axis: 0 }, &[x, order])?;
        let last = shape.len() - 1;
        let back = |(k, &n): (usize, &usize)| if k == last && n > 0 { (n - 1, -1, n) } else { (0, 1, n) };
        let region = SliceSpec { axes: shape.iter().enumerate().map(back).collect() };
        let transposed = self.push(Slice { region }, &[moved])?;
        let wave = self.push(Sin, &[transposed])?;
        self.push(Mul, &[wave, transposed])
    }

    fn permuted(&mut self, x: Ref) -> Option<Ref> {
        let mut perm: Vec<usize> = (0..self.shape(x).len()).collect();
        (1..perm.len()).for_each(|k| perm.swap(k, self.dice.roll(k + 1)));
        self.push(Permute { perm: perm.as_slice().into() }, &[x])
    }

    fn reshaped(&mut self, x: Ref) -> Option<Ref> {
        let mut shape = self.shape(x);
        let k = if shape.is_empty() { 0 } else { self.roll(shape.len()) };
        match self.roll(4) {
            0 => shape = vec![shape.iter().product()],
            1 => shape.insert(k, 1),
            2 if k + 1 < shape.len() => {
                let n = shape.remove(k);
                shape[k] *= n;
            }
            _ => match shape.get(k).and_then(|&n| (2..n).find(|d| n.is_multiple_of(*d))) {
                Some(d) => {
                    shape[k] /= d;
                    shape.insert(k, d);
                }
                None => shape.retain(|&n| n != 1),
            },
        }
        self.push(Reshape { to: shape.into() }, &[x])
    }

    /// A part of each axis, with a step: forward or backward.
    fn region(&mut self, shape: &[usize], steps: &[isize]) -> SliceSpec {
        let mut part = |n: usize| {
            if n == 0 || self.chance(3) {
                return (0, 1, n);
            }
            let step = steps[self.roll(steps.len())];
            let most = n.div_ceil(step.unsigned_abs());
            let len = if self.chance(40) { 0 } else { 1 + self.roll(most) };
            let span = len.saturating_sub(1) * step.unsigned_abs();
            let low = self.roll(n - span);
            (if step < 0 { low + span } else { low }, step, len)
        };
        SliceSpec { axes: shape.iter().map(|&n| part(n)).collect() }
    }

    fn sliced(&mut self, x: Ref) -> Option<Ref> {
        let shape = self.shape(x);
        let region = self.region(&shape, &[1, 1, 1, 2, 3, -1, -1, -2]);
        self.push(Slice { region }, &[x])
    }

    /// A value within another one, or within an array of one number.
    fn placed(&mut self, x: Ref) -> Option<Ref> {
        let shape: Vec<usize> = match self.chance(2) {
            true => self.shape(x),
            false => self.shape(x).iter().map(|n| n + self.dice.roll(3)).collect(),
        };
        let region = self.region(&shape, &[1, 1, 1, 2, -1]);
        let part = {
            let to: Vec<usize> = region.axes.iter().map(|part| part.2).collect();
            self.fitted(x, &to)?
        };
        let base = match self.roll(3) {
            0 => {
                let other = self.pick();
                self.fitted(other, &shape)?
            }
            _ => self.any_number(&shape),
        };
        self.push(SliceAssign { region }, &[base, part])
    }

    /// Values after each other along an axis; numbers before or behind are a pad.
    fn joined(&mut self, x: Ref) -> Option<Ref> {
        let shape = self.shape(x);
        let axis = self.axes(shape.len())?[0];
        let pad = self.chance(2);
        let number = NUMBERS[self.roll(NUMBERS.len())];
        let beside = |maker: &mut Maker| {
            let mut s = shape.clone();
            s[axis] = 1 + maker.roll(3);
            if pad {
                return Some(maker.number(number, &s));
            }
            let other = maker.pick();
            maker.fitted(other, &s)
        };
        let all = match self.roll(3) {
            0 => vec![x, beside(self)?],
            1 => vec![beside(self)?, x],
            _ => vec![beside(self)?, x, beside(self)?],
        };
        self.push(Concat { axis }, &all)
    }

    /// Two parts of an axis, something done with the first, and both put together the other way round.
    fn parted(&mut self, x: Ref) -> Option<Ref> {
        let shape = self.shape(x);
        let axis = self.axes(shape.len())?[0];
        if shape[axis] < 2 {
            return None;
        }
        let cut = 1 + self.roll(shape[axis] - 1);
        let part = |maker: &mut Maker, start: usize, len: usize| {
            let all = shape.iter().enumerate();
            let axes = all.map(|(k, &n)| if k == axis { (start, 1, len) } else { (0, 1, n) }).collect();
            maker.push(Slice { region: SliceSpec { axes } }, &[x])
        };
        let (a, b) = (part(self, 0, cut)?, part(self, cut, shape[axis] - cut)?);
        let done = self.rowwise(a).filter(|&y| self.shape(y) == self.shape(a)).unwrap_or(a);
        self.keep(Some(done));
        self.keep(Some(b));
        if self.chance(2) { Some(b) } else { self.push(Concat { axis }, &[b, done]) }
    }

    fn product(&mut self, x: Ref) -> Option<Ref> {
        let mut shape = self.shape(x);
        let mut a = x;
        if shape.len() < 2 {
            shape = vec![1, shape.iter().product()];
            a = self.fitted(x, &shape)?;
        }
        if self.size != Size::Small && shape.iter().product::<usize>() > 3000 {
            return None;
        }
        let (r, p) = (shape.len(), 1 + self.roll(4));
        let k = shape[r - 1];
        let (other, transposed) = (self.pick(), self.chance(2));
        let mut to = shape[..r - 2].to_vec();
        to.extend(if transposed { [p, k] } else { [k, p] });
        let mut b = self.fitted(other, &to)?;
        if transposed {
            let mut perm: Vec<usize> = (0..r).collect();
            perm.swap(r - 1, r - 2);
            b = self.push(Permute { perm: perm.as_slice().into() }, &[b])?;
        }
        self.push(Dot, &[a, b])
    }

    /// Elements or slices by their numbers.
    fn indexed(&mut self, x: Ref) -> Option<Ref> {
        let shape = self.shape(x);
        let axis = self.axes(shape.len())?[0];
        let n = shape[axis];
        if n == 0 {
            return None;
        }
        let mut part = shape.clone();
        part[axis] = 1 + self.roll(4);
        let count = part[axis];
        let other = self.pick();
        match self.roll(5) {
            0 => {
                let i = self.index(n, &part);
                self.push(Gather { axis }, &[x, i])
            }
            1 => {
                let (i, source) = (self.index(n, &part), self.fitted(other, &part)?);
                self.push(ScatterAdd { axis }, &[x, i, source])
            }
            2 => {
                let i = self.index(n, &[count]);
                self.push(IndexSelect { axis }, &[x, i])
            }
            3 => {
                let rule = [PutRule::Set, PutRule::Mul, PutRule::Max, PutRule::Min][self.roll(4)];
                let (i, source) = (self.index(n, &[count]), self.fitted(other, &part)?);
                self.push(IndexPut { axis, rule }, &[x, i, source])
            }
            _ => {
                let (i, source) = (self.index(n, &[count]), self.fitted(other, &part)?);
                self.push(IndexAdd { axis }, &[x, i, source])
            }
        }
    }

    /// With another axis in front, or an axis of one element made longer.
    fn repeated(&mut self, x: Ref) -> Option<Ref> {
        let mut shape = self.shape(x);
        match shape.iter().position(|&n| n == 1) {
            Some(k) if self.chance(2) => shape[k] = 2 + self.roll(3),
            _ => shape.insert(0, 1 + self.roll(3)),
        }
        self.push(Broadcast { to: shape.into() }, &[x])
    }
}
