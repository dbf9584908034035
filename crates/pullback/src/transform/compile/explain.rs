//! What a compiled function has been made into, in words.

use super::run::CompiledGraph;
use crate::graph::Json;
use std::fmt::{self, Write};
use std::panic::Location;

/// What [`compile`](crate::compile) has made of a function: `Display` for people, [`to_json`](Explanation::to_json) for programs.
pub struct Explanation {
    text: String,
    json: String,
}

impl Explanation {
    pub(super) fn new<'a>(
        location: &'static Location<'static>,
        traces: usize,
        reasons: &[String],
        compiled: impl Iterator<Item = &'a CompiledGraph>,
    ) -> Explanation {
        let (mut text, mut graphs) = (String::new(), Vec::new());
        // Writing to a string does not fail.
        let _ = writeln!(text, "compiled at {location}, traced {traces} times");
        for reason in reasons {
            let _ = writeln!(text, "  again, because {reason}");
        }
        for c in compiled {
            let _ = text.write_str("\n").and_then(|()| write(&mut text, c));
            graphs.push(json(c));
        }
        let reasons: Vec<String> = reasons.iter().map(|r| Json(&**r).to_string()).collect();
        let json = format!(
            "{{\"location\":{},\"traces\":{traces},\"reasons\":[{}],\"signatures\":[{}]}}",
            Json(&*location.to_string()),
            reasons.join(","),
            graphs.join(",")
        );
        Explanation { text, json }
    }

    /// One object: `location`, `traces`, `reasons` and, for each signature, its `passes`, costs and the `graph` as it runs.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let f = compile(|x: &Tensor| x.exp());
    /// f.call(&Tensor::zeros([3]));
    /// assert!(f.explain().to_json().contains(r#""traces":1"#));
    /// ```
    pub fn to_json(&self) -> String {
        self.json.clone()
    }
}

/// The passes and the kernels of one graph.
pub(super) fn write(f: &mut impl Write, c: &CompiledGraph) -> fmt::Result {
    let s = c.statistics();
    writeln!(f, "{}", c.report())?;
    writeln!(
        f,
        "fused     {} kernels: {} flops, {} bytes read, {} written, {} at the peak",
        s.kernels, s.flops, s.bytes_read, s.bytes_written, s.peak_bytes
    )?;
    if c.epilogues() > 0 {
        let n = c.epilogues();
        writeln!(f, "joined    {n} matrix products with what is done to their elements")?;
    }
    writeln!(f, "{:#}", c.optimised())
}

fn json(c: &CompiledGraph) -> String {
    let (s, r) = (c.statistics(), c.report());
    let passes = r.passes.iter().map(|p| {
        let (name, removed, changes) = (Json(p.name), p.removed, p.changes);
        format!("{{\"name\":{name},\"removed\":{removed},\"changes\":{changes}}}")
    });
    format!(
        "{{\"passes\":[{}],\"kernels\":{},\"epilogues\":{},\"flops\":{},\"bytes_read\":{},\"bytes_written\":{},\"peak_bytes\":{},\"graph\":{}}}",
        passes.collect::<Vec<_>>().join(","),
        s.kernels,
        c.epilogues(),
        s.flops,
        s.bytes_read,
        s.bytes_written,
        s.peak_bytes,
        c.optimised().to_json()
    )
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
