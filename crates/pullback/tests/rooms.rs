//! The rooms of the library know each other in one direction: every `crate::..` path leads to the same room or to one below it, and
//! the drawing in ARCHITECTURE.md is what the paths say. `PULLBACK_DRAW=1 cargo test --test rooms` draws it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the bottom to the top, each with its modules. Tensors, operations and the tape know each other by nature: rules are
/// written in tensors, tensors bind operations, and the tape records both.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "ground",
        &[
            "algebra",
            "allocation",
            "dtype",
            "error",
            "location",
            "replace",
            "schedule",
            "shape",
            "small",
            "temporary",
        ],
    ),
    ("kernels", &["kernels"]),
    ("core", &["memory", "ops", "tape", "tensor"]),
    ("graph", &["graph"]),
    ("opt", &["opt"]),
    ("backend", &["backend"]),
    ("transform", &["transform"]),
    ("check", &["check"]),
    ("ode", &["ode"]),
    ("save", &["save"]),
    ("scalar", &["scalar"]),
];

const BEGIN: &str = "<!-- Drawn by crates/pullback/tests/rooms.rs. -->\n";
const END: &str = "<!-- The end of the drawing. -->\n";

/// The place of the room of a module.
fn room(module: &str) -> Option<usize> {
    ROOMS.iter().position(|(_, modules)| modules.contains(&module))
}

/// Code without comments, strings and characters, in which a path cannot be mistaken.
fn bare(text: &str) -> String {
    let c: Vec<char> = text.chars().collect();
    let (mut out, mut k) = (String::new(), 0);
    while k < c.len() {
        match (c[k], c.get(k + 1)) {
            ('/', Some('/')) => k += c[k..].iter().position(|&x| x == '\n').unwrap_or(c.len() - k),
            ('"', _) => {
                let hashes = c[..k].iter().rev().take_while(|&&x| x == '#').count();
                let raw = k > hashes && c[k - hashes - 1] == 'r';
                k += 1;
                while k < c.len() {
                    let closed = (0..hashes).all(|h| c.get(k + 1 + h) == Some(&'#'));
                    match c[k] {
                        '\\' if !raw => k += 1,
                        '"' if !raw || closed => break,
                        _ => {}
                    }
                    k += 1;
                }
                k += 1;
            }
            ('\'', Some('\\')) => k += 2 + c[k + 2..].iter().position(|&x| x == '\'').unwrap_or(0) + 1,
            ('\'', _) if c.get(k + 2) == Some(&'\'') => k += 3,
            (other, _) => {
                out.push(other);
                k += 1;
            }
        }
    }
    out
}

/// Where an item that begins at `from` ends: behind its semicolon, or its closing brace.
fn end_of_item(code: &str, from: usize) -> usize {
    let mut depth = 0;
    for (k, c) in code[from..].char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            return from + k + 1;
        }
    }
    code.len()
}

/// Code without what only tests compile, and the modules that only tests have.
fn without_tests(code: &str) -> (String, BTreeSet<String>) {
    let (mut out, mut rest, mut modules) = (String::new(), code, BTreeSet::new());
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        let end = end_of_item(rest, at + "#[cfg(test)]".len());
        if let Some((_, name)) = rest[at..end].trim_end_matches(';').rsplit_once("mod ") {
            modules.insert(name.trim().to_string());
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    (out, modules)
}

/// What follows each `crate::`, one entry for each path of a group.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.push(rest.into()),
            Some(group) => {
                let mut depth = 0;
                let mut start = 0;
                for (k, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => {
                            found.push(group[start..k].trim().into());
                            break;
                        }
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            found.push(group[start..k].trim().into());
                            start = k + 1;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    let path = |text: String| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(text.len());
        text[..end].to_string()
    };
    found.into_iter().map(path).filter(|p| !p.is_empty()).collect()
}

/// The names that `lib.rs` takes out of its modules, each with its module.
fn exports(lib: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for statement in bare(lib).split(';') {
        let Some((_, path)) = statement.rsplit_once("pub use ") else { continue };
        let Some((module, list)) = path.split_once("::") else { continue };
        for name in list.trim_matches(|c| c == '{' || c == '}').split(',') {
            names.insert(name.trim().to_string(), module.trim().to_string());
        }
    }
    names
}

/// The module that a path leads to; `None` for what the crate itself has, such as its prelude.
fn module_of(path: &str, exports: &BTreeMap<String, String>) -> Option<String> {
    match path.split("::").next()? {
        name if room(name).is_some() => Some(name.into()),
        name => exports.get(name).cloned(),
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// All files of Rust below a folder.
fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => walk(&path, out),
            false if path.extension().is_some_and(|e| e == "rs") => out.push(path),
            false => {}
        }
    }
}

/// The files that are compiled without tests, but for `lib.rs`: the path from the sources, and the code.
fn files() -> Vec<(String, String)> {
    let (mut all, mut code, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    walk(&sources(), &mut all);
    for path in all {
        let (text, hidden) = without_tests(&bare(&fs::read_to_string(&path).unwrap()));
        // A module lies beside `mod.rs` and `lib.rs`, or in the folder of its parent's name.
        let beside = ["mod.rs", "lib.rs"].iter().any(|name| path.ends_with(name));
        let inside = if beside { path.parent().unwrap().into() } else { path.with_extension("") };
        tests.extend(hidden.into_iter().map(|name| inside.join(name)));
        code.push((path, text));
    }
    code.retain(|(path, _)| !tests.iter().any(|t| path.starts_with(t) || *path == t.with_extension("rs")));
    let name = |path: PathBuf| path.strip_prefix(sources()).unwrap().to_str().unwrap().replace('\\', "/");
    // The root exports from every room, and guides are text.
    let in_a_room = |(name, _): &(String, String)| !["lib.rs", "guide.rs"].contains(&name.as_str());
    code.into_iter().map(|(path, text)| (name(path), text)).filter(in_a_room).collect()
}

/// Who knows whom: the rooms that each room leads to, with a path that does.
fn arrows(
    files: &[(String, String)],
    exports: &BTreeMap<String, String>,
) -> BTreeMap<(usize, usize), String> {
    let mut arrows = BTreeMap::new();
    for (name, code) in files {
        let own = name.split('/').next().unwrap().trim_end_matches(".rs");
        let from = room(own).unwrap_or_else(|| panic!("{name} is in no room; give it one in {}", file!()));
        for path in paths(code) {
            let Some(to) = module_of(&path, exports).and_then(|module| room(&module)) else { continue };
            if to != from {
                arrows.entry((from, to)).or_insert_with(|| format!("{name}: crate::{path}"));
            }
        }
    }
    arrows
}

/// The rooms from the top to the bottom, and what each knows.
fn drawing(arrows: &BTreeMap<(usize, usize), String>) -> String {
    let mut out = String::from(BEGIN);
    out.push_str("\n```text\n");
    for (k, (name, modules)) in ROOMS.iter().enumerate().rev() {
        let known: Vec<&str> = (0..ROOMS.len())
            .rev()
            .filter(|&to| arrows.contains_key(&(k, to)))
            .map(|to| ROOMS[to].0)
            .collect();
        let inside = if *modules == [*name] { String::new() } else { format!("({})", modules.join(" ")) };
        let line = match known.is_empty() {
            true => format!("{name:<10} {inside}"),
            false if inside.is_empty() => format!("{name:<10} -> {}", known.join(" ")),
            false => format!("{name:<10} -> {}   {inside}", known.join(" ")),
        };
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push_str("```\n\n");
    out.push_str(END);
    out
}

fn read() -> BTreeMap<(usize, usize), String> {
    let exports = exports(&fs::read_to_string(sources().join("lib.rs")).unwrap());
    for module in ROOMS.iter().flat_map(|(_, modules)| *modules) {
        let there = sources().join(module).is_dir() || sources().join(module).with_extension("rs").is_file();
        assert!(there, "there is no module {module}; take it from the list");
    }
    let all = files();
    assert!(all.len() > 150, "there are {} files", all.len());
    arrows(&all, &exports)
}

#[test]
fn no_room_knows_one_above_it() {
    let backward: Vec<String> = read()
        .into_iter()
        .filter(|((from, to), _)| from < to)
        .map(|((from, to), path)| format!("{} -> {} by {path}", ROOMS[from].0, ROOMS[to].0))
        .collect();
    assert!(backward.is_empty(), "arrows backward:\n{}", backward.join("\n"));
}

#[test]
fn the_drawing_is_what_the_paths_say() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = fs::read_to_string(&page).unwrap();
    let (begin, end) = (text.find(BEGIN), text.find(END).map(|k| k + END.len()));
    let (begin, end) = begin.zip(end).expect("ARCHITECTURE.md has a place for the drawing");
    let now = drawing(&read());
    if std::env::var_os("PULLBACK_DRAW").is_some() {
        fs::write(&page, format!("{}{now}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    assert_eq!(text[begin..end], now, "draw it anew: PULLBACK_DRAW=1 cargo test -p pullback --test rooms");
}

#[test]
fn an_arrow_backward_is_seen_wherever_it_is_written() {
    let exports = exports("pub use shape::Shape;\npub use transform::{\n    Tree, grad,\n};");
    let found = |code: &str| {
        let (code, _) = without_tests(&bare(code));
        arrows(&[("graph/mod.rs".into(), code)], &exports).into_keys().any(|(from, to)| from < to)
    };
    assert!(found("use crate::transform::grad;"));
    assert!(found("fn f() { crate::grad(|x| x) }"));
    assert!(found("use crate::{shape::{Shape, Axes}, opt::Options};"));
    assert!(found("macro_rules! m { () => { $crate::backend::host() } }"));
    assert!(found("const S: &str = \"a // b\"; use crate::opt::fuse;"));
    assert!(!found("use crate::tensor::Tensor;\nuse crate::{Shape, ops::Op};"));
    assert!(!found("/// [`grad`](crate::grad)\nfn f() {} // crate::opt"));
    assert!(!found("const S: &str = \"crate::opt \\\" crate::opt\"; const C: char = '\"';"));
    assert!(!found("#[cfg(test)]\nmod tests {\n    use crate::opt::fuse;\n}\nfn f() {}"));
}
