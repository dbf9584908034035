//! The straight line of a recorded function: operations in the order they ran, each result computed once.

use pullback_table::{elementwise_table, row};
use std::fmt;
use std::panic::Location;

macro_rules! operations {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// An operation of a recorded function: a row of the elementwise table, or one of a few more.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub(crate) enum Op {
            /// An input; the first argument says which.
            Input,
            /// A constant; the first argument says which.
            Constant,
            /// The argument, held fixed: no derivative passes.
            Fixed,
            /// 1 if the first argument is less than the second, else 0.
            Less,
            /// 1 if the first argument is at most the second, else 0.
            LessEqual,
            /// The second argument if the first is not 0, else the third.
            Select,
            /// The product of the chain rule, in which a zero on either side wins over infinity and NaN.
            Chain,
            /// `a * b + c`, rounded once where the processor can.
            MulAdd,
            /// `a * b - c`.
            MulSub,
            /// `c - a * b`.
            NegMulAdd,
            $($P,)*
        }

        impl Op {
            /// The name, as printed.
            pub fn name(self) -> &'static str {
                match self {
                    Op::Input => "input",
                    Op::Constant => "constant",
                    Op::Fixed => "fixed",
                    Op::Less => "less",
                    Op::LessEqual => "less_equal",
                    Op::Select => "select",
                    Op::Chain => "chain",
                    Op::MulAdd => "mul_add",
                    Op::MulSub => "mul_sub",
                    Op::NegMulAdd => "neg_mul_add",
                    $(Op::$P => stringify!($m),)*
                }
            }

            /// The number of arguments that are nodes.
            pub fn arity(self) -> usize {
                match self {
                    Op::Input | Op::Constant => 0,
                    Op::Fixed => 1,
                    Op::Less | Op::LessEqual | Op::Chain => 2,
                    Op::Select | Op::MulAdd | Op::MulSub | Op::NegMulAdd => 3,
                    $(Op::$P => [$(stringify!($x)),+].len(),)*
                }
            }

            /// Whether the order of the two arguments does not matter, to the last bit.
            pub fn commutes(self) -> bool {
                match self {
                    Op::Chain => true,
                    $(Op::$P => row::$P.commutes,)*
                    _ => false,
                }
            }
        }
    };
}
elementwise_table!(operations);

/// One operation and the nodes it reads. Unused arguments are 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Node {
    pub op: Op,
    pub args: [u32; 3],
}

impl Node {
    /// The nodes it reads.
    pub fn reads(&self) -> &[u32] {
        &self.args[..self.op.arity()]
    }
}

/// How two numbers were compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Comparison {
    /// `a < b`
    Less,
    /// `a <= b`
    LessEqual,
    /// `a == b`
    Equal,
    /// The value of `a` was asked for, by [`Real::value`](crate::scalar::Real::value), and was `b`.
    Value,
}

impl Comparison {
    /// Compares two numbers.
    #[inline(always)]
    pub fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Comparison::Less => a < b,
            Comparison::LessEqual => a <= b,
            Comparison::Equal => a == b,
            Comparison::Value => a == b || (a.is_nan() && b.is_nan()),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Equal => "==",
            Comparison::Value => "has the value",
        })
    }
}

/// A comparison that was decided when the function was recorded. The recorded operations are those of the branch that
/// was taken, so every evaluation checks that the comparison still has the same outcome.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    pub(crate) a: u32,
    pub(crate) b: u32,
    /// What was compared.
    pub comparison: Comparison,
    /// How it came out.
    pub outcome: bool,
    /// Where in the source the function was compared.
    pub location: &'static Location<'static>,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{} {} %{} was {} ({})", self.a, self.comparison, self.b, self.outcome, self.location)
    }
}

/// A recorded function: every node reads only earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// The number of inputs.
    pub inputs: usize,
    pub nodes: Vec<Node>,
    pub constants: Vec<f64>,
    /// The value of each node at the point of recording.
    pub values: Vec<f64>,
    pub outputs: Vec<u32>,
    pub guards: Vec<Guard>,
}

impl Graph {
    /// Without the nodes that neither an output nor a guard depends on.
    pub fn pruned(&self) -> Graph {
        let mut live = vec![false; self.nodes.len()];
        for &k in self.outputs.iter().chain(self.guards.iter().flat_map(|g| [&g.a, &g.b])) {
            live[k as usize] = true;
        }
        for (k, node) in self.nodes.iter().enumerate().rev() {
            if live[k] {
                node.reads().iter().for_each(|&a| live[a as usize] = true);
            }
        }
        let mut new = Graph { inputs: self.inputs, ..Graph::default() };
        let mut renamed = vec![u32::MAX; self.nodes.len()];
        for (k, node) in self.nodes.iter().enumerate().filter(|&(k, _)| live[k]) {
            let mut node = *node;
            for a in &mut node.args[..node.op.arity()] {
                *a = renamed[*a as usize];
            }
            if node.op == Op::Constant {
                new.constants.push(self.constants[node.args[0] as usize]);
                node.args[0] = new.constants.len() as u32 - 1;
            }
            renamed[k] = new.nodes.len() as u32;
            new.nodes.push(node);
            new.values.push(self.values[k]);
        }
        let rename = |k: u32| renamed[k as usize];
        new.outputs = self.outputs.iter().map(|&k| rename(k)).collect();
        new.guards = self.guards.iter().map(|g| Guard { a: rename(g.a), b: rename(g.b), ..*g }).collect();
        new
    }

    /// Whether some product is one of the chain rule.
    pub fn chains(&self) -> bool {
        self.nodes.iter().any(|n| n.op == Op::Chain)
    }

    /// Whether there is a choice between pieces that depend on the inputs, of which one may be outside of its domain.
    pub fn chooses(&self) -> bool {
        let mut depends = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let carrying = match node.op {
                Op::Fixed | Op::Less | Op::LessEqual => &[],
                Op::Select => &node.args[1..],
                _ => node.reads(),
            };
            let moves = node.op == Op::Input || carrying.iter().any(|&a| depends[a as usize]);
            if moves && node.op == Op::Select {
                return true;
            }
            depends.push(moves);
        }
        false
    }

    /// The number of operations, inputs and constants not counted.
    pub fn operations(&self) -> usize {
        self.nodes.iter().filter(|n| n.op.arity() > 0).count()
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, node) in self.nodes.iter().enumerate() {
            match node.op {
                Op::Input => writeln!(f, "%{k} = input {}", node.args[0])?,
                Op::Constant => writeln!(f, "%{k} = {:?}", self.constants[node.args[0] as usize])?,
                op => {
                    write!(f, "%{k} = {}", op.name())?;
                    for a in node.reads() {
                        write!(f, " %{a}")?;
                    }
                    writeln!(f)?;
                }
            }
        }
        for guard in &self.guards {
            writeln!(f, "guard {guard}")?;
        }
        write!(f, "return")?;
        for k in &self.outputs {
            write!(f, " %{k}")?;
        }
        writeln!(f)
    }
}
