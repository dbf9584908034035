//! Writes docs/operations.md from the list of operations, the table and the comments beside the rules, and fails where the page says
//! something else. `PULLBACK_DRAW=1 cargo test -p pullback --lib operations_page` writes it anew.

mod peers;

use super::*;
use crate::tensor::Key;
use peers::PEERS;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Value and partial derivatives of a row, as the table writes them.
struct Formula {
    name: &'static str,
    about: &'static str,
    value: &'static str,
    partials: &'static [&'static str],
}

macro_rules! formulas {
    ($($(#[doc = $doc:literal])* $P:ident $m:ident $try:ident $x:tt = $value:tt; d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
        const FORMULAS: &[Formula] = &[$(Formula {
            name: stringify!($m),
            about: concat!($($doc),*),
            value: stringify!($value),
            partials: &[$(stringify!($d)),+],
        }),*];
    };
}
elementwise_table!(formulas);

/// A comment of the sources, without its markers.
fn comment_before(lines: &[&str], line: usize) -> String {
    let skipped = |l: &str| l.starts_with("#[") || l.ends_with(")]");
    let above = lines[..line].iter().rev().map(|l| l.trim());
    let mut said: Vec<&str> = above.skip_while(|l| skipped(l)).map_while(|l| l.strip_prefix("///")).collect();
    said.reverse();
    let first: Vec<&str> = said.iter().map(|l| l.trim()).take_while(|l| !l.is_empty()).collect();
    // Links lead nowhere from the page.
    first.join(" ").replace("[`", "`").replace("`]", "`")
}

/// The files of a folder and of those below it.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder of sources").map(|e| e.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

/// Of each operation that is a struct, what the comments say: its value, and its pullback.
fn comments() -> BTreeMap<String, (String, String)> {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops"), &mut files);
    let mut all = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        let lines: Vec<&str> = text.lines().collect();
        let line_of =
            |from: usize, what: &str| (from..lines.len()).find(|&k| lines[k].trim().starts_with(what));
        for (k, line) in lines.iter().enumerate() {
            let Some(rest) = line.trim().strip_prefix("pub(crate) struct ") else { continue };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            // Rules that several operations share stand in a macro or a generic impl of the same file.
            let own = line_of(0, &format!("impl Primitive for {name} {{"));
            let end = own.and_then(|own| (own..lines.len()).find(|&k| lines[k] == "}"));
            let rule = line_of(own.unwrap_or(0), "fn pullback(").filter(|&k| end.is_none_or(|end| k < end));
            let rule = match rule {
                Some(k) if lines[k + 1].contains("![None") => "none".into(),
                Some(k) => comment_before(&lines, k),
                None => "none".into(),
            };
            all.insert(name, (comment_before(&lines, k), rule));
        }
    }
    all
}

/// The types that an operation takes for its numbers.
fn types(samples: &[Sample]) -> String {
    let takes = |dtype: DType| {
        samples.iter().any(|s| {
            let arg = |d: &Draw| match d {
                Draw::Index(_, shape) => (DType::I64, shape.clone()),
                Draw::Mask(shape) => (DType::Bool, shape.clone()),
                d => (dtype, d.tensor(Key::new(0), DType::F64).shape().into()),
            };
            let args: Vec<(DType, Shape)> = s.inputs.iter().map(arg).collect();
            let args: Vec<Arg> = args.iter().map(|(dtype, shape)| Arg { dtype: *dtype, shape }).collect();
            s.op.infer(&args).is_ok()
        })
    };
    let kinds =
        [("bool", DType::Bool), ("integers", DType::I64), ("floats", DType::F64), ("complex", DType::C128)];
    let taken: Vec<&str> = kinds.into_iter().filter(|(_, d)| takes(*d)).map(|(name, _)| name).collect();
    if taken.len() == kinds.len() { "all".into() } else { taken.join(", ") }
}

/// What a record of the operation keeps for its pullback.
fn saved(op: &Op, arity: usize) -> String {
    let uses = op.uses(&vec![true; arity]);
    let inputs = (0..arity).filter(|&k| uses.input(k)).map(|k| match arity {
        1 => "x".to_string(),
        _ => format!("x{k}"),
    });
    let all: Vec<String> = inputs.chain(uses.output().then(|| "y".into())).collect();
    if all.is_empty() { "nothing".into() } else { all.join(", ") }
}

/// In a cell of a table, as code if it is.
fn cell(text: &str, code: bool) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    if code && !text.is_empty() { format!("`{text}`") } else { text }
}

/// The names in PyTorch, JAX and NumPy, in the cells of a row.
fn names(name: &str) -> String {
    let found = PEERS.iter().find(|(ours, _)| *ours == name);
    let [torch, jax, numpy] = found.map_or([""; 3], |(_, theirs)| *theirs);
    format!("{} | {} | {}", cell(torch, true), cell(jax, true), cell(numpy, true))
}

fn page() -> String {
    let samples = Op::samples();
    let of = |name: &str| samples.iter().filter(|s| s.op.name() == name).cloned().collect::<Vec<_>>();
    let mut out = String::from(include_str!("page/head.md"));
    out += "\n## Elementwise functions\n\nThe value and the partial derivatives, as the table has them: `y` is the value. `base` is a function that each number type brings itself.\n\n";
    out += "| operation | | value | partial derivatives | saves | types | PyTorch | JAX | NumPy |\n|---|---|---|---|---|---|---|---|---|\n";
    for row in FORMULAS {
        let samples = of(row.name);
        let arity = samples[0].inputs.len();
        let value = row.value.trim_start_matches(['{', '(']).trim_end_matches(['}', ')']);
        writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} |",
            row.name,
            cell(row.about, false),
            cell(value, true),
            cell(&row.partials.join(", "), true),
            saved(&samples[0].op, arity),
            types(&samples),
            names(row.name)
        )
        .expect("strings grow");
    }
    out += "\n## Other primitives\n\n`g` is the cotangent of the result. An operation ending in `_pullback` is the derivative of another, with a kernel of its own.\n\n";
    out += "| operation | value | pullback | saves | types | PyTorch | JAX | NumPy |\n|---|---|---|---|---|---|---|---|\n";
    let comments = comments();
    let mut seen: Vec<&str> = Vec::new();
    for sample in &samples {
        let name = sample.op.name();
        if seen.contains(&name) || FORMULAS.iter().any(|f| f.name == name) {
            continue;
        }
        seen.push(name);
        let all = of(name);
        let debug = format!("{:?}", sample.op);
        let inner = debug.split_once('(').map_or(&debug[..], |(_, inner)| inner);
        let kind: String = inner.chars().take_while(|c| c.is_alphanumeric()).collect();
        let (value, pullback) =
            comments.get(&kind).unwrap_or_else(|| panic!("no comment for {name} ({kind})"));
        assert!(!value.is_empty(), "the struct of {name} has no comment, which is its formula");
        assert!(!pullback.is_empty(), "`fn pullback` of {name} has no comment, which is its formula");
        writeln!(
            out,
            "| `{name}` | {} | {} | {} | {} | {} |",
            cell(value, false),
            cell(pullback, false),
            saved(&sample.op, sample.inputs.len()),
            types(&all),
            names(name)
        )
        .expect("strings grow");
    }
    out += "\n## Made of them\n\nMethods and functions that are compositions, with the derivatives of their parts.\n\n";
    out += "| name | PyTorch | JAX | NumPy |\n|---|---|---|---|\n";
    let primitive = |name: &str| seen.contains(&name) || FORMULAS.iter().any(|f| f.name == name);
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let texts: Vec<String> = files.iter().filter_map(|f| fs::read_to_string(f).ok()).collect();
    let defined = |name: &str| {
        let own = name.rsplit("::").next().expect("a name has a last part");
        let forms = [format!("pub fn {own}("), format!("pub fn {own}<"), format!("    {own} try_{own}")];
        texts.iter().any(|t| forms.iter().any(|form| t.contains(form)))
    };
    for (name, _) in PEERS.iter().filter(|(name, _)| !primitive(name)) {
        assert!(defined(name), "there is no {name}");
        writeln!(out, "| `{name}` | {} |", names(name)).expect("strings grow");
    }
    out
}

#[test]
fn operations_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = page();
    if std::env::var_os("PULLBACK_DRAW").is_some() {
        fs::write(&path, &page).expect("docs can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/operations.md is stale; PULLBACK_DRAW=1 cargo test -p pullback --all-features --lib operations_page"
    );
}
