//! Sums of pads with zeros: what does not overlap is read into one register, each element from where it is.
//!
//! The pullback of several slices of one value is such a sum. Each of its elements is added to zeros alone, so that one addition of
//! zero to all of them does what the others do: it leaves no negative zeros.

use super::Real;
use super::function::Function;
use super::lower::{Id, Load, Node, Values};
use crate::graph::operands::Exact;

impl Load {
    /// Whether it reads a value within zeros.
    fn is_among_zeros(&self) -> bool {
        self.view.is_padded() && self.view.fill == Exact::new(0.0)
    }
}

impl<F: Real> Values<F> {
    /// Each sum of pads as one load and the addition of zero, if nothing else uses what is added.
    pub fn joined(mut self) -> Values<F> {
        let uses = self.uses();
        let nodes = std::mem::take(&mut self.nodes);
        let mut moved = Vec::with_capacity(nodes.len());
        // The load that a value is, but for the sign of its zeros.
        let mut pads: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
        for (node, extent) in nodes {
            let only = |x: Id| pads[x].filter(|_| uses[x] == 1);
            let both = match node {
                Node::Map(Function::Add, [a, b, _]) => only(a).zip(only(b)),
                _ => None,
            };
            if let Some((to, from)) = both.filter(|&(to, from)| self.are_apart(to, from)) {
                self.join(to, from);
                let (load, zero) = (self.push(Node::Load(to), extent), self.number_of(0.0));
                moved.push(self.map(Function::Add, &[load, zero]));
                pads.push(Some(to));
                continue;
            }
            moved.push(self.push(node.with_operands(|x| moved.get(x).copied().unwrap_or(x)), extent));
            pads.push(match node {
                Node::Load(l) if self.loads[l].is_among_zeros() => Some(l),
                _ => None,
            });
        }
        self.sinks.iter_mut().for_each(|s| s.value = moved[s.value]);
        self
    }

    /// A load and those that were joined to it.
    fn parts(&self, l: usize) -> impl Iterator<Item = usize> {
        [l].into_iter().chain(self.loads[l].others.iter().copied())
    }

    /// Whether two loads are of the same places, none of which has elements of both.
    fn are_apart(&self, a: usize, b: usize) -> bool {
        let apart = |a: &Load, b: &Load| a.reach == b.reach && a.view.is_apart(&b.view);
        self.parts(a).all(|a| self.parts(b).all(|b| apart(&self.loads[a], &self.loads[b])))
    }

    fn join(&mut self, to: usize, from: usize) {
        let more: Vec<usize> = self.parts(from).collect();
        self.loads[from].fills = false;
        self.loads[to].others.extend(more);
        let elements: usize = self.parts(to).map(|l| self.loads[l].view.elements()).sum();
        self.loads[to].fills = elements < self.loads[to].view.len();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Group;
    use super::super::shifts::padded;
    use super::super::tests::{actions, bits, draw, run_group, traced};
    use crate::{DType, Tensor};
    use pullback_testing::Dice;

    /// How many loads and functions a tile takes.
    fn instructions(group: &Group) -> (usize, usize) {
        let [loads, maps, _] = actions(group);
        (loads, maps)
    }

    /// The group that a function is, which gives the same bits as its operations.
    fn exact(name: &str, f: impl Fn(&[Tensor]) -> Vec<Tensor>, x: &[Tensor]) -> Group {
        let graph = traced(&f, x);
        let group = Group::new(graph.clone().into()).unwrap_or_else(|e| panic!("{name}: {e} {graph}"));
        for (e, y) in f(x).iter().zip(run_group(&group, x)) {
            assert_eq!(e.shape(), y.shape(), "{name}");
            assert!(bits(&e.cast(DType::F64)) == bits(&y.cast(DType::F64)), "{name}");
        }
        group
    }

    #[test]
    fn pads_that_lie_apart_are_one_read() {
        for dtype in [DType::F32, DType::F64] {
            let x: Vec<Tensor> = (0..3).map(|k| draw(k, &[4, 6, 32], dtype)).collect();
            let part = |x: &[Tensor], k: usize, n: usize| {
                padded(&x[k].unsqueeze(0), 0, k, n - 1 - k, 0.0).permute(&[2, 0, 1, 3])
            };
            let covered = move |x: &[Tensor]| vec![part(x, 2, 3) + part(x, 1, 3) + part(x, 0, 3)];
            assert_eq!(instructions(&exact("covered", covered, &x)), (1, 1));
            let gaps = move |x: &[Tensor]| vec![part(x, 0, 5) + part(x, 2, 5)];
            assert_eq!(instructions(&exact("gaps", gaps, &x)), (1, 1));
            let pairs = move |x: &[Tensor]| {
                let again = padded(&x[0].unsqueeze(0), 0, 3, 0, 0.0).permute(&[2, 0, 1, 3]);
                vec![(part(x, 0, 4) + part(x, 1, 4)) + (part(x, 2, 4) + again)]
            };
            assert_eq!(instructions(&exact("pairs", pairs, &x)), (1, 1));
        }
    }

    #[test]
    fn other_sums_of_pads_are_read_one_by_one() {
        let x: Vec<Tensor> = (0..2).map(|k| draw(k, &[40, 7], DType::F64)).collect();
        let two = |before: usize, number: f64| {
            move |x: &[Tensor]| {
                let (a, b) = (padded(&x[0], 0, 0, 40, number), padded(&x[1], 0, before, 40 - before, number));
                vec![&a + &b, a, b]
            }
        };
        let sum = |before, number| move |x: &[Tensor]| two(before, number)(x)[..1].to_vec();
        assert_eq!(instructions(&exact("apart", sum(40, 0.0), &x)), (1, 1));
        assert_eq!(instructions(&exact("overlap", sum(39, 0.0), &x)), (2, 1));
        assert_eq!(instructions(&exact("not zero", sum(40, 1.0), &x)), (2, 1));
        assert_eq!(instructions(&exact("negative zero", sum(40, -0.0), &x)), (2, 1));
        let used = |x: &[Tensor]| {
            let all = two(40, 0.0)(x);
            vec![&all[0] * 2.0, &all[1] - &all[2]]
        };
        assert_eq!(instructions(&exact("used", used, &x)), (2, 3));
    }

    /// One of the parts of a random sum: where it lies in the whole, and how its input does.
    struct Part {
        starts: Vec<usize>,
        lens: Vec<usize>,
        /// An axis that the input has only one element of.
        repeated: Option<usize>,
        transposed: bool,
        mask: bool,
    }

    impl Part {
        fn input(&self, seed: u64, dtype: DType) -> Tensor {
            let mut shape = self.lens.clone();
            self.repeated.into_iter().for_each(|axis| shape[axis] = 1);
            if self.transposed {
                shape.reverse();
            }
            let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
            let drawn = draw(seed, &shape, DType::F64).to_vec::<f64>();
            let mix = |(k, v): (usize, f64)| special.get((k * 7 + seed as usize) % 11).copied().unwrap_or(v);
            let values: Vec<f64> = drawn.into_iter().enumerate().map(mix).collect();
            let values = Tensor::from_slice(&values, shape);
            if self.mask { values.gt(0.0) } else { values.cast(dtype) }
        }

        fn within(&self, x: &Tensor, whole: &[usize], perm: &[isize], dtype: DType) -> Tensor {
            let back: Vec<isize> = (0..whole.len() as isize).rev().collect();
            let x = if self.transposed { x.permute(&back) } else { x.clone() };
            let mut y = x.broadcast_to(self.lens.as_slice());
            for (axis, &n) in whole.iter().enumerate().filter(|(axis, n)| self.lens[*axis] < **n) {
                y = padded(&y, axis, self.starts[axis], n - self.starts[axis] - self.lens[axis], 0.0);
            }
            let y = y.permute(perm);
            if self.mask { y.cast(dtype) } else { y }
        }
    }

    #[test]
    fn random_sums_of_pads_have_the_same_bits() {
        let mut dice = Dice(1);
        let mut pick = move |n: usize| dice.roll(n);
        let (mut joined, mut apart) = (0, 0);
        for seed in 0..400 {
            let dtype = [DType::F32, DType::F64][pick(2)];
            let (rank, count) = (1 + pick(4), 2 + pick(3));
            let mut whole: Vec<usize> =
                (0..rank).map(|_| [1, 2, 3, 5, 33, 70][pick(if rank > 2 { 5 } else { 6 })]).collect();
            let axis = pick(rank);
            whole[axis] += count;
            let mut perm: Vec<isize> = (0..rank as isize).collect();
            perm.rotate_left(pick(rank));
            // All places covered, regions with gaps between them, or regions anywhere.
            let kind = pick(3);
            let each = whole[axis] / count;
            let mut part = |k: usize| {
                let any = |pick: &mut dyn FnMut(usize) -> usize, n: usize| {
                    let start = pick(n);
                    (start, 1 + pick(n - start))
                };
                let region = whole.iter().enumerate().map(|(a, &n)| match kind {
                    0 if a == axis && k + 1 == count => (k * each, n - k * each),
                    0 if a == axis => (k * each, each),
                    1 if a == axis => {
                        let (start, len) = any(&mut pick, each);
                        (k * each + start, len)
                    }
                    2 if pick(2) == 0 => any(&mut pick, n),
                    1 if pick(4) == 0 => any(&mut pick, n),
                    _ => (0, n),
                });
                let (starts, lens) = region.unzip();
                let repeated = Some(pick(rank)).filter(|_| pick(4) == 0);
                Part { starts, lens, repeated, transposed: pick(2) == 0, mask: pick(8) == 0 }
            };
            let parts: Vec<Part> = (0..count).map(&mut part).collect();
            let x: Vec<Tensor> = parts.iter().zip(seed * 10..).map(|(p, s)| p.input(s, dtype)).collect();
            let pairwise = pick(2) == 0;
            let f = |x: &[Tensor]| {
                let all = parts.iter().zip(x).map(|(p, x)| p.within(x, &whole, &perm, dtype));
                let mut all: Vec<Tensor> = all.collect();
                if pairwise && all.len() == 4 {
                    all = vec![&all[2] + &all[0], &all[3] + &all[1]];
                }
                vec![all.into_iter().reduce(|a, b| b + a).expect("there are parts")]
            };
            let group = exact(&format!("sum {seed}"), f, &x);
            match instructions(&group).0 {
                1 => joined += 1,
                _ => apart += 1,
            }
        }
        assert!(joined > 100 && apart > 40, "{joined} sums of one read, {apart} of several");
    }
}
