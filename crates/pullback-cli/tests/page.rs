//! The page of `pullback view` in a real browser: a headless Chromium, driven over its debugging pipe.
//!
//! Without a browser the test says so and passes, unless `PULLBACK_BROWSER=required` is set. Screenshots go to `target/page/`.

#[path = "page/browser.rs"]
mod browser;

use browser::Browser;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where pictures and pages go.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("page");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Writes a page, and gives its address.
fn page(name: &str, args: &[&str]) -> String {
    let file = folder().join(format!("{name}.html"));
    let status = Command::new(env!("CARGO_BIN_EXE_pullback"))
        .arg("view")
        .args(args)
        .arg("--out")
        .arg(&file)
        .status()
        .unwrap();
    assert!(status.success());
    format!("file://{}", file.display())
}

const ADJOINTS: &str = "[...document.querySelectorAll('.node')].map(n => n.dataset.name + ':' + n.querySelector('.a').textContent).join(' ')";
const GRADIENT: &str =
    "[...document.querySelectorAll('#gradient td.adjoint')].map(t => t.textContent).join(' ')";

#[test]
fn the_page_steps_edits_and_stays_quiet() {
    let Some(mut b) = Browser::start(&folder()) else { return };
    b.size(1280, 800);
    b.open(&page("small", &["x1*x2 + sin(x1)", "--at", "x1=2,x2=3"]));

    // Everything is there to begin with.
    assert_eq!(b.text(GRADIENT), "2.58385 2");
    assert_eq!(b.text(ADJOINTS), "x1:adj 2.58385 x2:adj 2 v1:adj 1 v2:adj 1 v3:adj 1");
    b.screenshot("done");

    // From the beginning: three values, the seed, five contributions.
    b.key("Home");
    assert_eq!(b.text("document.getElementById('count').textContent"), "forward 0 / 3");
    assert_eq!(b.text(ADJOINTS), "x1: x2: v1: v2: v3:");
    assert_eq!(b.text("document.querySelectorAll('.node.later').length"), "3");
    b.key("ArrowRight");
    assert_eq!(b.text("document.querySelectorAll('.node.later').length"), "2");
    assert!(b.text("document.getElementById('now').textContent").contains("v1 = x1*x2 = 6"));
    b.screenshot("forward");
    for _ in 0..5 {
        b.key("ArrowRight");
    }
    // The seed and the two contributions of the sum have arrived.
    assert_eq!(b.text(ADJOINTS), "x1: x2: v1:adj 1 v2:adj 1 v3:adj 1");
    b.key("ArrowRight");
    assert_eq!(b.text(ADJOINTS), "x1:adj -0.416147 x2: v1:adj 1 v2:adj 1 v3:adj 1");
    assert!(
        b.text("document.getElementById('now').textContent")
            .contains("adj(x1) += adj(v2) · (cos(x1)) = 1 · -0.416147")
    );
    b.screenshot("reverse");
    b.key("ArrowRight");
    assert_eq!(b.text(ADJOINTS), "x1:adj 2.58385 x2: v1:adj 1 v2:adj 1 v3:adj 1");
    // One back, and what had arrived last is gone.
    b.key("ArrowLeft");
    assert_eq!(b.text(ADJOINTS), "x1:adj -0.416147 x2: v1:adj 1 v2:adj 1 v3:adj 1");
    b.key("End");

    // Another formula, computed by the engine in the page.
    b.write("expression", "ln(x1) + x1*x2 - sin(x2)");
    b.until(&format!("{GRADIENT} !== '2.58385 2'"));
    b.write("nu0", "2");
    b.write("nu1", "5");
    b.until(&format!("{GRADIENT} === '5.5 1.71634'"));
    // A slider moves a number.
    b.text("(() => { const s = document.getElementById('in1'); s.value = 0; s.dispatchEvent(new Event('input')); })()");
    b.until(&format!("{GRADIENT} === '0.5 1'"));
    assert_eq!(b.text("document.getElementById('nu1').value"), "0");

    // A mistake is pointed at, and the last good picture stays.
    b.write("expression", "ln(x1) + sun(x1)");
    b.until("!document.getElementById('error').hidden");
    let error = b.text("document.getElementById('error').textContent");
    assert!(
        error.contains("no function `sun`") && error.contains("         ^^^") && error.contains("`sin`"),
        "{error}"
    );
    b.screenshot("mistake");
    b.write("expression", "(x + y)^2");
    b.until("document.getElementById('error').hidden");

    // The other theme, and a phone.
    let theme = "document.documentElement.dataset.theme";
    let before = b.text(theme);
    b.key("t");
    assert_ne!(b.text(theme), before);
    b.write("expression", "let h = tanh(w*x + b)\nu*h + (h - 1)^2");
    b.until("document.querySelectorAll('.node').length > 7");
    b.screenshot("dark");
    b.size(390, 844);
    b.until("document.querySelector('.node') !== null");
    assert_eq!(
        b.text("document.documentElement.scrollWidth <= window.innerWidth"),
        "true",
        "the page is wider than a phone"
    );
    b.screenshot("phone");
    b.finish();
}

#[test]
fn a_network_of_vectors_is_drawn_element_by_element() {
    let Some(mut b) = Browser::start(&folder()) else { return };
    b.size(1400, 900);
    let point = "w=[1,2;3,4],x=[0.5,-1],b=[0,1]";
    b.open(&page("network", &["let h = tanh(w@x + b); sum(h^2)", "--at", point]));
    assert_eq!(b.text("document.querySelectorAll('#inputs input[type=text]').length"), "3");
    // As pullback grad has it.
    assert_eq!(
        b.text(GRADIENT),
        "-0.163566 0.327133 -0.163566 0.327133 -1.30853 -1.9628 -0.327133 -0.327133"
    );
    b.screenshot("network");
    b.finish();
}

/// Two neurons and what is made of them: forty nodes, more than fit at a size that can be read.
const FORTY: [&str; 3] = [
    "let a = tanh(w1*x + w2*y + b1)\nlet b = tanh(w3*x + w4*y + b2)\nlet c = exp(-a^2) * sin(b)\n\
     let d = ln(1 + c^2) / (1 + a*b)\nloss = (u1*a + u2*b + c - t)^2 + 0.1*d",
    "--at",
    "w1=0.5,x=1,w2=-0.3,y=2,b1=0.1,w3=0.7,w4=0.2,b2=-0.4,u1=1.5,u2=-0.8,t=0.25",
];

#[test]
fn a_graph_opens_readable_and_from_its_beginning() {
    let Some(mut b) = Browser::start(&folder()) else { return };
    b.size(1280, 800);
    b.open(&page("forty", &FORTY));
    assert_eq!(b.text("document.querySelectorAll('.node').length"), "40");
    // The picture is as high as what can be seen of it.
    assert_eq!(
        b.text("Math.round(document.getElementById('picture').getBoundingClientRect().bottom - window.innerHeight)"),
        "0"
    );
    let letters = "document.getElementById('graph').getScreenCTM().a * 12.2";
    let size: f64 = b.text(letters).parse().unwrap();
    assert!(size >= 10.0, "letters of {size} pixels");
    // How far nodes are cut off at each side: top, left, bottom, right.
    let cut = "(() => { const p = document.getElementById('picture').getBoundingClientRect(); \
               const all = [...document.querySelectorAll('.node rect')].map(r => r.getBoundingClientRect()); \
               const most = (f) => Math.max(0, Math.ceil(Math.max(...all.map(f)))); \
               return [most(r => p.top - r.top), most(r => p.left - r.left), most(r => r.bottom - p.bottom), most(r => r.right - p.right)].join(' '); })()";
    let opened = b.text(cut);
    assert!(opened.starts_with("0 0 "), "cut off at the top or the left: {opened}");
    b.screenshot("forty");
    // All of it.
    b.key("0");
    assert_eq!(b.text(cut), "0 0 0 0");
    b.screenshot("forty-fit");
    // No number goes on in a second line.
    let broken = "[...document.querySelectorAll('td.value, td.adjoint, .number')].filter(c => { const r = document.createRange(); \
                  r.selectNodeContents(c); return new Set([...r.getClientRects()].map(b => Math.round(b.top))).size > 1; }).map(c => c.textContent).join(' ')";
    assert_eq!(b.text(broken), "", "numbers in two lines");
    assert_eq!(b.text("document.querySelectorAll('td.adjoint').length > 80"), "true");
    b.finish();
}

/// As `pullback grad` has it: no derivative where there is no value.
#[test]
fn outside_of_the_domain_the_page_complains() {
    let Some(mut b) = Browser::start(&folder()) else { return };
    b.size(1280, 800);
    b.open(&page("domain", &["ln(x)", "--at", "x=2"]));
    assert_eq!(b.text(GRADIENT), "0.5");
    b.write("nu0", "-1");
    b.until("!document.getElementById('error').hidden");
    let error = b.text("document.getElementById('error').textContent");
    assert!(error.contains("ln takes positive numbers, not -1") && error.contains("^^^^^"), "{error}");
    assert_eq!(b.text(GRADIENT), "0.5", "the last good picture stays");
    b.write("nu0", "4");
    b.until("document.getElementById('error').hidden");
    assert_eq!(b.text(GRADIENT), "0.25");
    b.finish();
}

#[test]
fn a_graph_file_is_shown_as_it_is() {
    let Some(mut b) = Browser::start(&folder()) else { return };
    b.size(1280, 800);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/square.ir");
    b.open(&page("graph", &["--file", file, "--at", "x0=[1,2,3]"]));
    assert_eq!(b.text(GRADIENT), "[2, 4, 6]");
    assert_eq!(b.text("document.getElementById('expression').readOnly"), "true");
    b.key("Home");
    b.key("ArrowRight");
    assert!(b.text("document.getElementById('now').textContent").contains("v1 = x0^2 = [1, 4, 9]"));
    b.screenshot("graph");
    b.finish();
}

#[test]
fn five_thousand_nodes_stay_usable() {
    let Some(mut b) = Browser::start(&folder()) else { return };
    b.size(1280, 800);
    b.open(&page("large", &["sum(i, 1, 1700, sin(x*i))", "--at", "x=0.001"]));
    let stages: usize = b.text("document.getElementById('stage').max").parse().unwrap();
    assert!(stages > 10_000, "{stages}");
    b.screenshot("large");
    b.key("Home");
    for _ in 0..20 {
        b.key("ArrowRight");
    }
    assert_eq!(b.text("document.getElementById('count').textContent"), "forward 20 / 5099");
    b.screenshot("large-forward");
    // Not a test, but good to know.
    let steps = "(() => { const t = performance.now(); for (let k = 0; k < 50; k++) go(stage + 1); return (performance.now() - t) / 50; })()";
    println!("milliseconds a step: {}", b.text(steps));
    b.finish();
}
