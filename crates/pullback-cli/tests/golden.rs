//! What every command prints, compared with files in `tests/golden`. `PULLBACK_BLESS=1` writes them anew.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Two layers, as textbooks have them: tanh, then linear, and the squared error.
const NETWORK: &str = "let h = tanh(W @ x + b)\nlet out = dot(v, h) + c\nloss = (out - t)^2";
const WEIGHTS: &str = "W=[0.5,-0.2;0.1,0.4],x=[1,2],b=[0,0.1],v=[0.7,-0.3],c=0.2,t=1";

/// The name of the file, what is typed, what comes through the pipe.
const CASES: &[(&str, &[&str], &str)] = &[
    ("explain", &["explain", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3"], ""),
    ("explain-square-of-sum", &["explain", "(x+y)^2", "--at", "x=2,y=3"], ""),
    ("explain-polynomial", &["explain", "x^2+x", "--at", "x=3"], ""),
    ("explain-product-and-sum", &["explain", "x*y+(x+y)", "--at", "x=2,y=3"], ""),
    ("explain-logarithm", &["explain", "ln(x1)+x1*x2-sin(x2)", "--at", "x1=2,x2=5", "--digits", "11"], ""),
    ("explain-network", &["explain", NETWORK, "--at", WEIGHTS], ""),
    ("explain-plain", &["explain", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3", "--plain"], ""),
    ("explain-markdown", &["explain", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3", "--markdown"], ""),
    ("explain-latex", &["explain", "ln(x1)+x1*x2-sin(x2)", "--at", "x1=2,x2=5", "--latex"], ""),
    ("explain-csv", &["explain", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3", "--csv"], ""),
    ("explain-json", &["explain", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3", "--json"], ""),
    ("explain-forward", &["explain", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3", "--forward"], ""),
    ("explain-along", &["explain", "x1*x2", "--at", "x1=2,x2=3", "--forward", "--along", "x1=1,x2=-1"], ""),
    ("explain-symbolic", &["explain", "exp(x)/(1 + x^2)"], ""),
    ("explain-symbolic-forward", &["explain", "x1*x2 + sin(x1)", "--forward"], ""),
    ("explain-choice", &["explain", "if x > 0 then sqrt(x) else 0", "--at", "x=0"], ""),
    ("explain-output", &["explain", "a = x*y, b = x - y", "--at", "x=2,y=3", "--output", "b"], ""),
    ("explain-pipe", &["explain", "-", "--at", "x=3"], "x^2 + x\n"),
    ("explain-long", &["explain", "sum(i, 1, 3000, sin(x*i))", "--at", "x=0.001"], ""),
    ("grad", &["grad", "ln(x1)+x1*x2-sin(x2)", "--at", "x1=2,x2=5"], ""),
    ("grad-json", &["grad", "dot(w, x)^2", "--at", "w=[1,2],x=[3,4]", "--json"], ""),
    ("grad-points", &["grad", "x^2*y", "--points", "-", "--csv"], "x,y\n1,2\n3,4\n-1,0.5\n"),
    ("grad-points-json", &["grad", "x^2*y", "--points", "-", "--at", "y=2", "--json"], "x\n1\n3\n"),
    ("jacobian", &["jacobian", "r*cos(t), r*sin(t)", "--at", "r=2,t=pi/6"], ""),
    ("jacobian-csv", &["jacobian", "w @ x", "--at", "w=[1,2;3,4],x=[5,6]", "--csv"], ""),
    ("hessian", &["hessian", "(1-x)^2 + 100*(y-x^2)^2", "--at", "x=-1.2,y=1"], ""),
    ("hessian-json", &["hessian", "x^2*y", "--at", "x=3,y=2", "--json"], ""),
    ("hvp", &["hvp", "x^2*y", "--at", "x=3,y=2", "--along", "x=1,y=0"], ""),
    ("taylor", &["taylor", "exp(x)", "--at", "x=0", "--order", "6"], ""),
    ("taylor-along", &["taylor", "x*y, sin(x)", "--at", "x=0,y=1", "--along", "x=1,y=2", "--order", "3"], ""),
    ("check", &["check", "sin(x)*exp(y)", "--at", "x=1,y=0.5", "--digits", "8", "--json"], ""),
    ("graph", &["graph", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3"], ""),
    ("graph-plain", &["graph", "(x+y)^2*(x+y)", "--at", "x=2,y=3", "--plain"], ""),
    ("graph-dot", &["graph", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3", "--dot"], ""),
    ("graph-svg", &["graph", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3", "--svg"], ""),
    ("graph-long", &["graph", "sum(i, 1, 5000, x^i)", "--at", "x=0.5"], ""),
    ("graph-symbolic", &["graph", "x1*x2 + sin(x1)"], ""),
    ("plot", &["plot", "x^2", "--range", "-2..2", "--width", "40"], ""),
    ("plot-svg", &["plot", "x^3/3", "--range", "-2..2", "--derivatives", "0", "--svg"], ""),
    ("plot-field", &["plot", "x^2 + y^2", "--range", "-1..1", "--width", "40"], ""),
    (
        "minimize",
        &[
            "minimize",
            "(1-x)^2 + 100*(y-x^2)^2",
            "--from",
            "x=-1.2,y=1",
            "--method",
            "newton",
            "--digits",
            "6",
        ],
        "",
    ),
    ("minimize-lbfgs", &["minimize", "(x-1)^2 + (y+2)^2", "--from", "x=0,y=0"], ""),
    ("minimize-gd", &["minimize", "(x-1)^2", "--from", "x=0", "--method", "gd", "--step", "0.25"], ""),
    ("minimize-adam", &["minimize", "(x-1)^2", "--from", "x=0", "--method", "adam", "--digits", "3"], ""),
    ("run", &["run", "tests/files/net.ir", "--input", "tests/files/net.npz", "--grad"], ""),
    (
        "run-json",
        &["run", "tests/files/net.ir", "-i", "tests/files/net.json", "-i", "x1=tests/files/x1.npy", "--json"],
        "",
    ),
    (
        "run-compile",
        &["run", "tests/files/net.ir", "-i", "tests/files/net.safetensors", "--grad", "--compile"],
        "",
    ),
    ("run-explain", &["run", "tests/files/square.ir", "--at", "x0=[1,2,3]", "--explain"], ""),
    ("opt", &["opt", "tests/files/wasteful.ir"], ""),
    ("fmt", &["fmt", "-"], "graph(x0:f64[3]){c0=constant 2.0:f64[3] %0=mul(x0,c0):f64[3] return %0}"),
    ("verify", &["verify", "tests/files/net.ir"], ""),
    ("graph-ir", &["graph", "x1*x2 + sin(x1)", "--ir"], ""),
    ("grad-ir", &["grad", "--file", "tests/files/square.ir", "--at", "x0=[1,2,3]"], ""),
    ("run-file", &["run", "--file", "tests/files/square.ir", "--at", "x0=[1,2,3]"], ""),
    ("verify-file", &["verify", "--file", "tests/files/net.ir"], ""),
    ("bad-ir", &["verify", "-"], "graph(x0: f64[3]) {\n  %0 = sum(x9) {axes: [0]} : f64[]\n  return %0\n}\n"),
    ("bad-ir-type", &["fmt", "-"], "graph(x0: f64[3]) {\n  %0 = exp(x0) : f64[4]\n  return %0\n}\n"),
    ("bad-ir-input", &["run", "tests/files/square.ir"], ""),
    ("bad-ir-shape", &["run", "tests/files/square.ir", "--at", "x0=[1,2]"], ""),
    ("help", &["--help"], ""),
    ("help-explain", &["explain", "--help"], ""),
    ("man", &["man"], ""),
    ("explain-constant", &["explain", "2*pi"], ""),
    ("explain-vector", &["explain", "[x, x^2]", "--at", "x=3"], ""),
    ("explain-names", &["explain", "v1*v2 + 1", "--at", "v1=2,v2=3"], ""),
    ("bad-bracket", &["explain", "x + (y"], ""),
    ("bad-name", &["explain", "x + z", "--at", "x=1"], ""),
    ("bad-extra-name", &["grad", "x^2", "--at", "x=1,z=2"], ""),
    ("bad-function", &["explain", "sun(x)", "--at", "x=1"], ""),
    ("bad-function-doubled", &["explain", "sinn(x)", "--at", "x=1"], ""),
    ("bad-division", &["explain", "1/(x - 2)", "--at", "x=2"], ""),
    ("bad-domain", &["grad", "ln(x - 3)", "--at", "x=1"], ""),
    ("bad-power", &["grad", "(0 - x)^0.5", "--at", "x=1"], ""),
    ("bad-exponent", &["grad", "10^10^10*x", "--at", "x=1"], ""),
    ("bad-overflow", &["grad", "exp(x)", "--at", "x=1000"], ""),
    ("bad-shapes", &["grad", "sum(a + b)", "--at", "a=[1,2],b=[1,2,3]"], ""),
    ("bad-position", &["grad", "x[3]", "--at", "x=[1,2]"], ""),
    ("bad-point", &["grad", "x", "--at", "x=1,x=2"], ""),
    ("bad-vector", &["grad", "[x, x^2]", "--at", "x=1"], ""),
    ("bad-csv", &["grad", "x", "--points", "-"], "x\n1\ntwo\n"),
    ("bad-file", &["grad", "--file", "no/such/file"], ""),
    ("bad-truth", &["explain", "x > 1", "--at", "x=2"], ""),
    ("bad-count", &["grad", "sum(i, 1, n, x)", "--at", "n=2.5,x=1"], ""),
];

struct Ran {
    code: i32,
    out: Vec<u8>,
    err: String,
}

fn run(args: &[&str], input: &[u8]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pullback"))
        .args(args)
        .env("COLUMNS", "100")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    let done = child.wait_with_output().unwrap();
    Ran {
        code: done.status.code().unwrap_or(-1),
        out: done.stdout,
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"))
}

/// Numbers and the rest, in turn.
fn parts(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let of = |at: usize, kinds: &str| bytes.get(at).is_some_and(|b| kinds.as_bytes().contains(b));
    let (mut out, mut start, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        if !of(at, "0123456789") {
            at += 1;
            continue;
        }
        out.push(&text[start..at]);
        start = at;
        while of(at, "0123456789.") {
            at += 1;
        }
        if of(at, "e") && (of(at + 1, "0123456789") || of(at + 1, "-") && of(at + 2, "0123456789")) {
            at += 2;
            while of(at, "0123456789") {
                at += 1;
            }
        }
        out.push(&text[start..at]);
        start = at;
    }
    out.push(&text[start..]);
    out
}

/// Equal but for the last digits of numbers, which other processors compute otherwise.
fn same(a: &str, b: &str) -> bool {
    let (a, b) = (parts(a), parts(b));
    let near = |(a, b): (&&str, &&str)| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => (x - y).abs() <= 1e-8 * (1.0 + x.abs()),
        _ => a == b,
    };
    a.len() == b.len() && a.iter().zip(&b).all(near)
}

#[test]
fn only_the_last_digits_may_differ() {
    assert!(same("x 1.00000000001, y 2e-14", "x 1.00000000002, y 7e-15"));
    assert!(!same("x 1.001", "x 1.002"));
    assert!(!same("x 1", "y 1"));
    assert!(!same("x 1", "x 1 "));
}

#[test]
fn every_command_prints_what_it_printed() {
    let bless = std::env::var_os("PULLBACK_BLESS").is_some();
    let mut wrong = Vec::new();
    for (name, args, input) in CASES {
        let ran = run(args, input.as_bytes());
        assert_eq!(ran.code, if name.starts_with("bad-") { 2 } else { 0 }, "{name}: {}", ran.err);
        let typed: Vec<String> =
            args.iter().map(|a| if a.contains(' ') { format!("'{a}'") } else { a.to_string() }).collect();
        let text = format!(
            "$ pullback {}\nexit code {}\n--- out\n{}--- err\n{}",
            typed.join(" "),
            ran.code,
            String::from_utf8_lossy(&ran.out),
            ran.err
        );
        if bless {
            std::fs::write(file(name), &text).unwrap();
        } else if !same(&std::fs::read_to_string(file(name)).unwrap_or_default(), &text) {
            wrong.push(format!("{name} is now:\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n(PULLBACK_BLESS=1 accepts this)", wrong.join("\n\n"));
}

#[test]
fn pictures_are_pictures() {
    for args in [
        vec!["graph", "x1*x2 + sin(x1)", "--at", "x1=2,x2=3", "--png"],
        vec!["plot", "sin(x)", "--png"],
        vec!["plot", "x*y", "--png"],
    ] {
        let ran = run(&args, b"");
        assert!(ran.out.starts_with(b"\x89PNG\r\n\x1a\n") && ran.out.len() > 5000, "{args:?}");
    }
}

#[test]
fn arrays_have_their_header_and_their_numbers() {
    let ran = run(&["hessian", "x^2*y", "--at", "x=3,y=2", "--npy"], b"");
    assert!(ran.out.starts_with(b"\x93NUMPY\x01\x00"));
    assert_eq!(ran.out.len() % 64, 4 * 8);
    assert!(String::from_utf8_lossy(&ran.out).contains("'shape': (2, 2,)"));
    let numbers: Vec<f64> =
        ran.out[ran.out.len() - 32..].chunks(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect();
    assert_eq!(numbers, [4.0, 6.0, 6.0, 0.0]);
}

#[test]
fn the_page_is_one_file_that_asks_for_nothing() {
    let file = std::env::temp_dir().join(format!("pullback-page-{}.html", std::process::id()));
    let args = ["view", "x^2*y", "--at", "x=3,y=2", "--out", file.to_str().unwrap()];
    assert_eq!(run(&args, b"").code, 0);
    let page = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(page.contains("\"expression\":\"x^2*y\"") && page.contains("{\"name\":\"y\",\"value\":\"2\"}"));
    // The engine as text; it begins as every module does.
    assert!(page.contains("AGFzbQEAAAA"));
    assert!(
        !page.contains("/*{")
            && !page.contains("src=")
            && !page.contains("http://")
            && !page.contains("https://")
    );
}

#[test]
fn the_page_is_served_on_the_loopback_address() {
    use std::io::{BufRead, BufReader, Read};
    let mut server = Command::new(env!("CARGO_BIN_EXE_pullback"))
        .args(["view", "x^2", "--no-open"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim_start_matches("serving http://").split('/').next().unwrap().to_string();
    // Errors come after the server has ended.
    let get = |what: &str| -> std::io::Result<String> {
        let mut stream = std::net::TcpStream::connect(&address)?;
        write!(stream, "GET {what} HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let (page, other) = (get("/"), get("/other"));
    server.kill().unwrap();
    server.wait().unwrap();
    let (page, other) = (page.unwrap(), other.unwrap());
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("<title>Pullback"));
    assert!(other.starts_with("HTTP/1.1 404"));
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let out = String::from_utf8(run(&["completions", shell], b"").out).unwrap();
        assert!(out.contains("explain") && out.contains("minimize"), "{shell}");
    }
}

#[test]
fn hostile_input_is_one_message_and_exit_code_two() {
    let deep = "(".repeat(100_000);
    for (args, input) in [
        (vec!["grad", "-", "--at", "x=1"], deep.as_bytes()),
        (vec!["explain", "-"], b"\xff\xfe\x00".as_slice()),
        (vec!["explain", "-"], b"".as_slice()),
        (vec!["grad", "x", "--at", "x=1e999"], b"".as_slice()),
        (vec!["grad", "x", "--points", "-"], b"\x80".as_slice()),
        (vec!["grad", "x", "--points", "-"], b"x,x[1]\n1,2\n".as_slice()),
        (vec!["plot", "x", "--range", "5..1"], b"".as_slice()),
        (vec!["plot", "x*y*z"], b"".as_slice()),
        (vec!["minimize", "[x, y]", "--from", "x=1,y=2"], b"".as_slice()),
        (vec!["taylor", "x*y", "--at", "x=1,y=2"], b"".as_slice()),
        (vec!["hvp", "x", "--at", "x=1", "--along", "z=1"], b"".as_slice()),
    ] {
        let ran = run(&args, input);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.out.is_empty(), "{args:?}");
        assert!(
            ran.err.starts_with("error: ") && ran.err.matches("error:").count() == 1,
            "{args:?}: {}",
            ran.err
        );
        assert!(!ran.err.contains("panicked"), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_check_that_fails_is_exit_code_one() {
    // The derivative at the kink is by convention 0; the difference of the two sides says 1.
    let ran = run(&["check", "if x > 0 then 3*x else x", "--at", "x=0"], b"");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("differs"), "{}", ran.err);
}

#[test]
fn a_million_nodes_are_summed_up() {
    // Without optimisation a tenth of them takes long enough.
    let terms = if cfg!(debug_assertions) { 50_000 } else { 500_000 };
    let ran = run(&["explain", &format!("sum(i, 1, {terms}, x*i^0.5)"), "--at", "x=2", "--json"], b"");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let out = String::from_utf8(ran.out).unwrap();
    assert!(out.len() < 2000 && out.contains(&format!("\"steps\":{}", 2 * terms - 1)), "{out}");
}

#[test]
fn the_engine_of_the_page_is_built_from_these_sources() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let now = Command::new(page.join("sources")).output().unwrap();
    let then = std::fs::read(page.join("engine.sources")).unwrap();
    let message = "engine.wasm is older than its sources: run crates/pullback-cli/page/build (see there for what it needs)";
    assert_eq!(String::from_utf8_lossy(&now.stdout), String::from_utf8_lossy(&then), "{message}");
}

/// What was found is still printed, but a script can tell that it is no minimum.
#[test]
fn a_search_that_does_not_converge_says_so() {
    let banana = "(1-x)^2 + 100*(y-x^2)^2";
    let search =
        |more: &[&str]| run(&[&["minimize", banana, "--from", "x=-1.2,y=1", "--json"], more].concat(), b"");
    for args in [
        &["--method", "gd", "--iterations", "5"][..],
        &["--method", "adam", "--iterations", "3"],
        &["--method", "lbfgs", "--iterations", "2"],
    ] {
        let ran = search(args);
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.err);
        assert!(ran.err.contains("not converged: ") && ran.err.contains("tolerance"), "{}", ran.err);
        assert!(String::from_utf8_lossy(&ran.out).contains("\"converged\":false"), "{args:?}");
    }
    let ran = search(&[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(String::from_utf8_lossy(&ran.out).contains("\"converged\":true"));
}

#[test]
fn a_profile_names_the_lines_of_the_graph_file() {
    let base = ["run", "tests/files/net.ir", "-i", "tests/files/net.npz", "--profile"];
    let ran = run(&base, b"");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/net.ir")).unwrap();
    let mut named = 0;
    for (k, line) in text.lines().enumerate() {
        if let Some((step, rest)) = line.trim().split_once(" = ").filter(|s| s.0.starts_with('%')) {
            let operation = rest.split('(').next().unwrap();
            let row = format!("tests/files/net.ir:{}  {step} = {operation}\n", k + 1);
            assert!(ran.err.contains(&row), "no `{row}` in\n{}", ran.err);
            named += 1;
        }
    }
    assert!(named > 3);
    assert!(!ran.err.contains(".rs"), "a line of the program's own code:\n{}", ran.err);
    let ran = run(&[&base[..], &["--compile"]].concat(), b"");
    assert!(ran.code == 0 && ran.err.contains("kernel") && !ran.err.contains(".rs"), "{}", ran.err);
}

/// Where a function has no value it has no derivative: every command says so in the same words, or draws nothing.
#[test]
fn outside_of_its_domain_a_function_has_no_derivative() {
    let words = "ln takes positive numbers, not ";
    let out = std::env::temp_dir().join(format!("pullback-domain-{}.html", std::process::id()));
    for args in [
        vec!["grad", "ln(x)", "--at", "x=-1"],
        vec!["explain", "ln(x)", "--at", "x=-1"],
        vec!["view", "ln(x)", "--at", "x=-1", "--out", out.to_str().unwrap()],
        vec!["plot", "ln(x)", "--range", "-3..-1"],
        vec!["plot", "ln(x) + y", "--range", "x=-3..-1,y=0..1"],
    ] {
        let ran = run(&args, b"");
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
    }
    // The derivative of ln would be 1/x on the left as well.
    let svg = String::from_utf8(
        run(&["plot", "ln(x)", "--range", "-2..2", "--derivatives", "2", "--svg"], b"").out,
    )
    .unwrap();
    let (left, middle) = (74.0, 74.0 + 640.0 / 2.0);
    let curves: Vec<Vec<(f64, f64)>> = lines(&svg).into_iter().filter(|l| l.0 == 2.0).map(|l| l.1).collect();
    assert!(curves.len() >= 3, "three curves and their legend");
    for x in curves.iter().flatten().map(|p| p.0) {
        assert!(x >= middle && x > left, "something is drawn at {x}, left of zero");
    }
}

/// The width and the points of each open path of a drawing.
fn lines(svg: &str) -> Vec<(f64, Vec<(f64, f64)>)> {
    let field = |line: &str, name: &str| -> Option<String> {
        Some(line.split_once(&format!(" {name}=\""))?.1.split('"').next()?.to_string())
    };
    let points = |d: &str| {
        d.split(['M', 'L'])
            .filter(|p| !p.is_empty())
            .map(|p| {
                let (x, y) = p.split_once(',').unwrap();
                (x.parse().unwrap(), y.parse().unwrap())
            })
            .collect()
    };
    let path = |line: &str| {
        let width = field(line, "stroke-width")?.parse().ok()?;
        Some((width, points(&field(line, "d")?)))
    };
    svg.lines().filter(|l| l.starts_with("<path")).filter_map(path).collect()
}

#[test]
fn level_lines_are_whole_and_labelled() {
    let svg = String::from_utf8(run(&["plot", "x^2 + y^2", "--range", "-1..1", "--svg"], b"").out).unwrap();
    let levels: Vec<_> = lines(&svg).into_iter().filter(|l| l.0 == 1.4).collect();
    // A circle is one closed line; one that leaves the square is four arcs.
    let value = |(x, y): (f64, f64)| {
        (2.0 * (x - 74.0) / 640.0 - 1.0).powi(2) + (1.0 - 2.0 * (y - 34.0) / 420.0).powi(2)
    };
    let (mut circles, mut arcs) = (0, 0);
    for (_, points) in &levels {
        let level = value(points[0]);
        assert!(points.iter().all(|p| (value(*p) - level).abs() < 5e-3), "a line leaves its level");
        match points.first() == points.last() {
            true => circles += 1,
            false => arcs += 1,
        }
        assert_eq!(points.first() == points.last(), level < 1.0, "at {level}");
    }
    assert!(circles >= 8 && arcs % 4 == 0 && circles + arcs / 4 == 14, "{circles} circles, {arcs} arcs");
    // Each level has its number, on the line.
    let mut labels = 0;
    for line in svg.lines().filter(|l| l.contains("font-size=\"10\"")) {
        let part = |name: &str| -> f64 {
            line.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap().parse().unwrap()
        };
        let says: f64 = line.split_once('>').unwrap().1.split('<').next().unwrap().parse().unwrap();
        let at = value((part("x"), part("y") - 3.6));
        assert!((at - says).abs() < 1e-2, "{says} stands at {at}");
        labels += 1;
    }
    assert_eq!(labels, 14);
}
