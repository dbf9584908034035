//! Which operations keep how much for the pullback, and where they stand.

use crate::ops::Op;
use crate::tape::Input;
use crate::tensor::{Data, Link, Tensor};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The bytes that the history of a tensor keeps for its pullback; see [`report`].
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One for each operation and line, the largest first.
    pub rows: Vec<Row>,
    /// Bytes of the inputs of the computation that it reads again, such as parameters: they are there in any case.
    pub inputs: usize,
}

/// What one operation on one line keeps.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the operation.
    pub op: &'static str,
    /// Where it was called.
    pub location: &'static Location<'static>,
    /// How many times it ran.
    pub records: usize,
    /// The values that it keeps. One that several operations keep is counted with the last of them to run.
    pub bytes: usize,
}

impl Report {
    /// All bytes, without those of the inputs.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|r| r.bytes).sum()
    }
}

/// The values that are kept to compute gradients of `output`: bytes by operation and source line, each buffer counted once, with what it
/// has been rounded up by.
///
/// ```
/// use pullback::{memory, prelude::*};
/// let x = Tensor::linspace(0.0, 1.0, 1000).requires_grad();
/// let loss = x.sin().exp().sum(); // sin keeps x, an input; exp keeps its result
/// let report = memory::report(&loss);
/// assert_eq!((report.bytes(), report.inputs), (8000, 8000));
/// assert_eq!(report.rows[0].op, "exp");
/// println!("{report}");
/// ```
pub fn report(output: &Tensor) -> Report {
    let mut walk = Walk::default();
    walk.value(output);
    while let Some(link) = walk.open.pop() {
        walk.node(&link);
    }
    let row = |((op, _, _, _), (location, records, bytes))| Row { op, location, records, bytes };
    let mut rows: Vec<Row> = walk.rows.into_iter().map(row).collect();
    rows.sort_by_key(|r| std::cmp::Reverse(r.bytes));
    Report { rows, inputs: walk.inputs }
}

/// An operation and its line.
type Key = (&'static str, &'static str, u32, u32);

#[derive(Default)]
struct Walk {
    open: Vec<Link>,
    seen: HashSet<u64>,
    buffers: HashSet<usize>,
    rows: BTreeMap<Key, (&'static Location<'static>, usize, usize)>,
    inputs: usize,
}

impl Walk {
    /// Goes on to the history of a value, and of those that it wraps.
    fn value(&mut self, t: &Tensor) {
        if t.node().record.is_some() && self.seen.insert(t.node().id) {
            self.open.push(t.link());
        }
        match t.data() {
            Data::Dual(d) => [&d.primal, &d.tangent].into_iter().for_each(|t| self.value(t)),
            Data::Mapped(m) => self.value(&m.value),
            _ => {}
        }
    }

    fn node(&mut self, link: &Link) {
        let Some(record) = &link.node().record else { return };
        let mut bytes = link.kept().map_or(0, |t| self.bytes(&t));
        for input in &record.inputs {
            match input {
                Input::Saved(t) => {
                    let new = self.bytes(t);
                    let is_input = t.node().record.is_none() || t.node().leaf_of != 0;
                    *(if is_input { &mut self.inputs } else { &mut bytes }) += new;
                    self.value(t);
                }
                Input::Linked(l) => {
                    if l.node().record.is_some() && self.seen.insert(l.node().id) {
                        self.open.push(l.clone());
                    }
                }
            }
        }
        if let Op::Block(block) = &record.op {
            bytes += block.residuals().iter().map(|t| self.bytes(t)).sum::<usize>();
        }
        if matches!(record.op, Op::Slot(_)) {
            return; // It stands for the block, which is counted.
        }
        let at = record.location;
        let key = (record.op.name(), at.file(), at.line(), at.column());
        let row = self.rows.entry(key).or_insert((at, 0, 0));
        row.1 += 1;
        row.2 += bytes;
    }

    /// The bytes of the buffers behind a value that were not seen before.
    fn bytes(&mut self, t: &Tensor) -> usize {
        match t.data() {
            Data::Strided(s) => {
                let bytes = s.buffer.slice::<u8>();
                if self.buffers.insert(bytes.as_ptr() as usize) { bytes.len() } else { 0 }
            }
            Data::Placed(p) => {
                let at = Arc::as_ptr(&p.elements).cast::<()>() as usize;
                if self.buffers.insert(at) { t.numel() * t.dtype().size() } else { 0 }
            }
            Data::Dual(d) => self.bytes(&d.primal) + self.bytes(&d.tangent),
            Data::Mapped(m) => self.bytes(&m.value),
            _ => 0,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |r: &Row| format!("{}:{}", r.location.file(), r.location.line());
        let width = self.rows.iter().map(|r| r.op.len()).max().unwrap_or(0).max("operation".len());
        writeln!(f, "{:>12}  {:>8}  {:width$}  line", "bytes", "records", "operation")?;
        for r in &self.rows {
            writeln!(f, "{:>12}  {:>8}  {:width$}  {}", r.bytes, r.records, r.op, line(r))?;
        }
        writeln!(f, "{:>12}  {:>8}  in all, and {} of inputs", self.bytes(), "", self.inputs)
    }
}
