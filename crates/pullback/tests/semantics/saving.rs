//! Saving and loading: round trips, agreement with the reference implementation, and files that are wrong or hostile.

use proptest::prelude::*;
use proptest::sample::Index;
use pullback::save::{from_bytes, to_bytes};
use pullback::{DType, ErrorKind, Tensor, Tree, load, save};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Tree, Clone)]
struct Model {
    layers: Vec<Layer>,
    steps: Tensor,
    mask: Tensor,
    #[tree(skip)]
    title: &'static str,
}

#[derive(Tree, Clone)]
enum Layer {
    Dense { weight: Tensor, bias: Option<Tensor> },
    Tanh,
}

fn model() -> Model {
    Model {
        layers: vec![
            Layer::Dense {
                weight: Tensor::from([[1.5f32, -0.0], [f32::INFINITY, 1e-40]]).t(),
                bias: Some(Tensor::from([0.1, 0.2])),
            },
            Layer::Tanh,
            Layer::Dense { weight: Tensor::zeros([0, 3]).cast(DType::F16), bias: None },
        ],
        steps: Tensor::scalar(i64::MIN),
        mask: Tensor::from([[true], [false], [true]]),
        title: "saved",
    }
}

fn blank(tree: &Model) -> Model {
    Model { title: "fresh", ..tree.map(&mut |t| t.zeros_like()) }
}

/// Equal to the last bit, which `==` on floats is not.
fn assert_same(a: &impl Tree, b: &impl Tree) {
    a.same_structure(b).unwrap();
    for ((name, a), b) in a.named().into_iter().zip(b.leaves()) {
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{name}");
        assert_eq!(element_bytes(a), element_bytes(b), "{name}");
    }
}

fn element_bytes(t: &Tensor) -> Vec<u8> {
    fn each<T: pullback::Element, const N: usize>(t: &Tensor, f: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        t.to_vec::<T>().into_iter().flat_map(f).collect()
    }
    match t.dtype() {
        DType::Bool => each(t, |v: bool| [v as u8]),
        DType::U8 => each(t, |v: u8| [v]),
        DType::I32 => each(t, i32::to_le_bytes),
        DType::I64 => each(t, i64::to_le_bytes),
        DType::F16 => each(t, half::f16::to_le_bytes),
        DType::BF16 => each(t, half::bf16::to_le_bytes),
        DType::F32 => each(t, f32::to_le_bytes),
        _ => each(t, f64::to_le_bytes),
    }
}

/// A place for a file that is gone when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let dir = std::env::temp_dir().join(format!("pullback-save-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Temporary(dir)
    }

    fn file(&self) -> PathBuf {
        self.0.join("model.safetensors")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn a_saved_model_comes_back() {
    let dir = Temporary::new("back");
    let x = model();
    save(&x, dir.file()).unwrap();
    let y = load(&blank(&x), dir.file()).unwrap();
    assert_same(&x, &y);
    assert_eq!(y.title, "fresh", "static parts are those of the tree that is loaded into");
    assert!(matches!(y.layers[1], Layer::Tanh));
    assert_same(&x, &from_bytes(&blank(&x), &std::fs::read(dir.file()).unwrap()).unwrap());
}

#[test]
fn saving_replaces_the_file_and_leaves_nothing_else() {
    let dir = Temporary::new("replace");
    save(&Tensor::zeros([100]), dir.file()).unwrap();
    save(&Tensor::ones([2]), dir.file()).unwrap();
    assert_eq!(load(&Tensor::zeros([2]), dir.file()).unwrap().to_vec::<f64>(), [1.0, 1.0]);
    assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Temporary::new("mode");
    let mode = || std::fs::metadata(dir.file()).unwrap().permissions().mode() & 0o777;
    for wanted in [0o600, 0o640, 0o444] {
        save(&Tensor::zeros([3]), dir.file()).unwrap();
        std::fs::set_permissions(dir.file(), PermissionsExt::from_mode(wanted)).unwrap();
        save(&Tensor::ones([2]), dir.file()).unwrap();
        assert_eq!(mode(), wanted);
        pullback::trace(|x: &Tensor| x.sin(), &Tensor::zeros([2])).save(dir.file()).unwrap();
        assert_eq!(mode(), wanted, "graphs too");
    }
    assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn saving_follows_a_symbolic_link() {
    let dir = Temporary::new("link");
    let place = dir.0.join("place");
    std::fs::create_dir(&place).unwrap();
    // Relative to where it lies, by way of another one, and to a file that is not there yet.
    std::os::unix::fs::symlink("place/file", dir.0.join("second")).unwrap();
    std::os::unix::fs::symlink("second", dir.file()).unwrap();
    for value in [1.0, 2.0] {
        save(&Tensor::scalar(value), dir.file()).unwrap();
        assert!(std::fs::symlink_metadata(dir.file()).unwrap().is_symlink());
        assert!(std::fs::symlink_metadata(place.join("file")).unwrap().is_file());
        assert_eq!(load(&Tensor::scalar(0.0), place.join("file")).unwrap().item(), value);
    }
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 1);
    let round = dir.0.join("round");
    std::os::unix::fs::symlink("round", &round).unwrap();
    assert_eq!(save(&Tensor::scalar(1.0), &round).unwrap_err().kind(), ErrorKind::Io);
}

/// What is no file, a pipe or a device, is written to and not replaced.
#[cfg(target_os = "linux")]
#[test]
fn saving_to_a_pipe_writes_to_it() {
    use std::process::{Command, Stdio};
    let dir = Temporary::new("pipe");
    assert!(Command::new("mkfifo").arg(dir.file()).status().unwrap().success());
    let reader =
        Command::new("timeout").args(["20", "cat"]).arg(dir.file()).stdout(Stdio::piped()).spawn().unwrap();
    save(&model(), dir.file()).unwrap();
    assert!(!std::fs::metadata(dir.file()).unwrap().is_file(), "it is still a pipe");
    assert_eq!(reader.wait_with_output().unwrap().stdout, to_bytes(&model()).unwrap());
}

/// What a save that was killed has left is gone after the next one.
#[cfg(unix)]
#[test]
fn the_partial_file_of_a_killed_save_goes_with_the_next() {
    const PLACE: &str = "PULLBACK_TEST_DIRECTORY";
    let name = "saving::the_partial_file_of_a_killed_save_goes_with_the_next";
    if let Some(dir) = std::env::var_os(PLACE) {
        let x = Tensor::linspace(0.0, 1.0, 1 << 20);
        loop {
            save(&x, PathBuf::from(&dir).join("model.safetensors")).unwrap();
        }
    }
    let dir = Temporary::new("killed");
    let partial = || {
        let names = std::fs::read_dir(&dir.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|n| n.ends_with(".partial")).count()
    };
    for _ in 0..100 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(PLACE, &dir.0)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while partial() == 0 {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // It may have been done just before.
        if partial() > 0 {
            break;
        }
    }
    assert!(partial() > 0, "no save was killed half way");
    save(&Tensor::ones([2]), dir.file()).unwrap();
    assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 1);
    assert_eq!(load(&Tensor::zeros([2]), dir.file()).unwrap().to_vec::<f64>(), [1.0, 1.0]);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let dir = Temporary::new("unusable");
    let e = load(&Tensor::zeros([2]), dir.file()).err().unwrap();
    assert_eq!((e.kind(), e.op()), (ErrorKind::Io, Some("load")));
    assert!(e.to_string().contains("model.safetensors: "), "{e}");
    assert!(e.location().unwrap().file().ends_with("saving.rs"));
    let e = save(&Tensor::zeros([2]), dir.0.join("absent").join("x")).unwrap_err();
    assert_eq!((e.kind(), e.op()), (ErrorKind::Io, Some("save")));
    // A directory is in the way, and the partial file is cleaned up.
    std::fs::create_dir(dir.file()).unwrap();
    std::fs::write(dir.file().join("inside"), "").unwrap();
    assert_eq!(save(&Tensor::zeros([2]), dir.file()).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 1);
}

#[test]
fn gradients_do_not_follow_into_a_file() {
    let x = Tensor::from([1.0, 2.0]).requires_grad();
    let y = from_bytes(&x, &to_bytes(&(&x * 3.0)).unwrap()).unwrap();
    assert_eq!(y.to_vec::<f64>(), [3.0, 6.0]);
    (y.square().sum() + x.sum()).backward();
    assert_eq!(x.grad().unwrap().to_vec::<f64>(), [1.0, 1.0]);
}

#[test]
fn what_does_not_fit_is_named_with_both_sides() {
    let bytes = to_bytes(&model()).unwrap();
    let refused = |like: &Model| {
        let e = from_bytes(like, &bytes).err().unwrap();
        (e.kind(), e.to_string())
    };
    let mut like = blank(&model());
    like.mask = Tensor::full([3], false);
    let (kind, message) = refused(&like);
    assert_eq!(kind, ErrorKind::Shape);
    assert!(message.contains("leaf `mask` is BOOL [3] in the tree and BOOL [3, 1] in the file"), "{message}");

    let mut like = blank(&model());
    like.steps = Tensor::scalar(0i32);
    let (kind, message) = refused(&like);
    assert_eq!(kind, ErrorKind::DType);
    assert!(message.contains("leaf `steps` is I32 [] in the tree and I64 [] in the file"), "{message}");

    let mut like = blank(&model());
    like.layers.push(Layer::Dense { weight: Tensor::zeros([1]), bias: None });
    let (kind, message) = refused(&like);
    assert_eq!(kind, ErrorKind::Structure);
    assert!(message.contains("the file lacks `layers.3.weight` ["), "{message}");

    let mut like = blank(&model());
    like.layers.truncate(1);
    assert!(refused(&like).1.contains("the file also has `layers.2.weight`; the tree does not"));
    like.layers.push(Layer::Dense { weight: Tensor::zeros([1]), bias: None });
    let message = refused(&like).1;
    assert!(
        message.contains("lacks `layers.1.weight`, and has `layers.2.weight`, which the tree does not"),
        "{message}"
    );

    let many = vec![Tensor::scalar(0.0); 10];
    let message = from_bytes(&many, &to_bytes(&()).unwrap()).err().unwrap().to_string();
    assert!(message.contains("the file lacks `0`, `1`, `2`, `3`, `4`, `5` and 4 more"), "{message}");
}

#[test]
fn names_must_be_usable() {
    let t = || Tensor::scalar(1.0);
    // Keys with dots in them can give two leaves one path.
    let clash =
        BTreeMap::from([("a", BTreeMap::from([("b.c", t())])), ("a.b", BTreeMap::from([("c", t())]))]);
    let e = to_bytes(&clash).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Structure);
    assert!(e.to_string().contains("two leaves have the name `a.b.c`"), "{e}");
    let one = to_bytes(&BTreeMap::from([("a.b.c", t())])).unwrap();
    let e = from_bytes(&clash, &one).err().unwrap();
    assert!(e.to_string().contains("two leaves have the name `a.b.c`"), "{e}");

    let e = to_bytes(&BTreeMap::from([("__metadata__", t())])).unwrap_err();
    assert!(e.to_string().contains("reserves the name `__metadata__`"));
}

/// A file from its parts.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

type Tensors = BTreeMap<String, Tensor>;

fn single(name: &str, shape: &[usize]) -> Tensors {
    BTreeMap::from([(name.to_string(), Tensor::zeros(shape).cast(DType::F32))])
}

#[test]
fn headers_by_others_are_read() {
    let data = [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat();
    for header in [
        r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#,
        r#"{"__metadata__":{"format":"pt","a":""},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   "#,
        "{ \"x\" :\t{\"data_offsets\": [ 0 , 8 ], \"shape\": [2],\r\n \"dtype\": \"F32\" } , \"__metadata__\":{}}\n",
    ] {
        let x = from_bytes(&single("x", &[2]), &file(header, &data)).unwrap();
        assert_eq!(x["x"].to_vec::<f32>(), [1.0, 2.0], "{header}");
    }
    let escaped =
        r#"{"\"\\\/\b\f\n\r\t\u00e9\ud83e\udd80é":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    from_bytes(&single("\"\\/\u{8}\u{c}\n\r\té🦀é", &[2]), &file(escaped, &data)).unwrap();
    // Two tensors without bytes may stand at one place.
    let empty = r#"{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]}}"#;
    let like = single("a", &[0]).into_iter().chain(single("b", &[2, 0])).collect::<Tensors>();
    from_bytes(&like, &file(empty, &[])).unwrap();
}

#[test]
fn hostile_files_are_refused() {
    let entry = |shape: &str, offsets: &str| {
        format!(r#"{{"x":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    let two = |a: &str, b: &str| {
        format!(
            r#"{{"x":{{"dtype":"F32","shape":[1],"data_offsets":{a}}},"y":{{"dtype":"F32","shape":[1],"data_offsets":{b}}}}}"#
        )
    };
    let cases: &[(&str, String)] = &[
        ("does not fit its bytes", entry("[3]", "[0,8]")),
        ("does not fit its bytes", entry("[4611686018427387905]", "[0,4]")),
        ("does not fit its bytes", entry("[4294967296,4294967296,0]", "[0,0]")),
        ("ends at 0", entry("[2]", "[8,0]")),
        ("ends at 0", entry("[1]", "[4,8]")),
        ("its tensors have 4 bytes, but 8 follow", entry("[1]", "[0,4]")),
        ("its tensors have 16 bytes, but 8 follow", entry("[4]", "[0,16]")),
        ("expected a number below 2^64", entry("[18446744073709551616]", "[0,8]")),
        ("expected a number", entry("[-1]", "[0,8]")),
        ("expected `]`", entry("[2.0]", "[0,8]")),
        ("expected `]`", entry("[2e0]", "[0,8]")),
        ("leading zero", entry("[02]", "[0,8]")),
        ("expected a number", entry("[2,]", "[0,8]")),
        ("expected `[`", entry("{}", "[0,8]")),
        ("not two numbers", entry("[2]", "[0,4,8]")),
        ("ends at 4", two("[0,4]", "[0,4]")),
        ("ends at 4", two("[0,4]", "[5,9]")),
        ("two tensors of the name", two("[0,4]", "[4,8]").replace("\"y\"", "\"x\"")),
        ("unknown field", entry("[2],\"extra\":1", "[0,8]")),
        ("second `shape`", entry("[2],\"shape\":[2]", "[0,8]")),
        ("needs `dtype`", r#"{"x":{"dtype":"F32"}}"#.into()),
        ("expected `{`", r#"{"x":[]}"#.into()),
        ("does not begin", " {}".into()),
        ("does not begin", "".into()),
        ("does not begin", "[]".into()),
        ("something follows", "{}{}".into()),
        ("expected `\"`", "{".into()),
        ("without an end", "{\"x".into()),
        ("unknown escape", r#"{"\x":{}}"#.into()),
        ("hexadecimal", r#"{"\u12":{}}"#.into()),
        ("hexadecimal", r#"{"\u+123":{}}"#.into()),
        ("surrogate", r#"{"\ud800":{}}"#.into()),
        ("surrogate", r#"{"\ud800\u0041":{}}"#.into()),
        ("surrogate", r#"{"\udc00":{}}"#.into()),
        ("control character", "{\"\n\":{}}".into()),
        ("second `__metadata__`", r#"{"__metadata__":{},"__metadata__":{}}"#.into()),
        ("expected `\"`", r#"{"__metadata__":{"a":1}}"#.into()),
        ("expected", format!("{{\"x\":{}", "[".repeat(100_000))),
    ];
    for (expected, header) in cases {
        let e = from_bytes(&single("x", &[2]), &file(header, &[0; 8])).expect_err(header);
        assert_eq!(e.kind(), ErrorKind::Format, "{header}: {e}");
        assert!(e.to_string().contains(expected), "{header}: {e}");
    }
    let refused = |bytes: &[u8], expected: &str| {
        let e = from_bytes(&single("x", &[2]), bytes).err().unwrap();
        assert!(e.kind() == ErrorKind::Format && e.to_string().contains(expected), "{e}");
    };
    refused(&[], "no room for the length");
    refused(&[0; 7], "no room for the length");
    refused(&u64::MAX.to_le_bytes(), "header is given as 18446744073709551615 bytes");
    refused(&[9, 0, 0, 0, 0, 0, 0, 0, b'{', b'}'], "header is given as 9 bytes, in a file of 10");
    refused(&file("{}", &[0]), "its tensors have 0 bytes, but 1 follow");
    let mut bytes = file("{}", &[]);
    bytes[8] = 0xff;
    refused(&bytes, "not UTF-8");
}

#[test]
fn types_that_tensors_do_not_have_are_errors() {
    let header = r#"{"x":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}"#;
    let e = from_bytes(&single("x", &[1]), &file(header, &[0; 8])).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::DType);
    assert!(e.to_string().contains("is F32 [1] in the tree and C64 [1] in the file"), "{e}");
    let header = r#"{"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}"#;
    let like = BTreeMap::from([("x", Tensor::full([2], false))]);
    let e = from_bytes(&like, &file(header, &[1, 2])).err().unwrap();
    assert!(e.kind() == ErrorKind::Format && e.to_string().contains("neither true"), "{e}");
}

/// The names of the reference, in the order of `DType`.
const REFERENCE: [(DType, Dtype); 8] = [
    (DType::Bool, Dtype::BOOL),
    (DType::U8, Dtype::U8),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
];

fn tensor() -> impl Strategy<Value = Tensor> {
    (prop::collection::vec(0usize..4, 0..4), 0..REFERENCE.len(), any::<u64>()).prop_map(
        |(shape, dtype, seed)| {
            Tensor::randint(pullback::Key::new(seed), shape, 0, 100).cast(REFERENCE[dtype].0)
        },
    )
}

fn tensors() -> impl Strategy<Value = Tensors> {
    // Any characters at all, quotes and control characters among them.
    let name = "(?s).{0,6}|[\"\\\\\\x00-\\x1f]{1,3}|[a-z]{1,3}\\.[0-9]";
    prop::collection::btree_map(name, tensor(), 0..6)
}

fn by_the_reference(x: &Tensors) -> Vec<u8> {
    let data: Vec<(&String, &Tensor, Vec<u8>)> = x.iter().map(|(n, t)| (n, t, element_bytes(t))).collect();
    let views = data.iter().map(|(name, t, bytes)| {
        let dtype = REFERENCE.iter().find(|(d, _)| *d == t.dtype()).unwrap().1;
        (name, TensorView::new(dtype, t.shape().to_vec(), bytes).unwrap())
    });
    serialize(views, None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_bytes_are_those_of_the_reference(x in tensors()) {
        let bytes = to_bytes(&x).unwrap();
        prop_assert_eq!(&bytes, &by_the_reference(&x));
        let blank = x.map(&mut |t| t.zeros_like());
        assert_same(&x, &from_bytes(&blank, &bytes).unwrap());
    }

    /// No panic, whatever the bytes; and nothing is taken that the reference refuses.
    #[test]
    fn damaged_files_do_not_panic(
        x in tensors(),
        damage in prop::collection::vec((any::<Index>(), prop_oneof![
            prop::sample::select(&b"{}[]\",:\\u0123456789 \n-e."[..]),
            any::<u8>(),
        ], 0..4), 1..4),
    ) {
        let mut bytes = to_bytes(&x).unwrap();
        for (at, byte, how) in damage {
            let at = at.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match how {
                0 if !bytes.is_empty() => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 if !bytes.is_empty() => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        let blank = x.map(&mut |t| t.zeros_like());
        if from_bytes(&blank, &bytes).is_ok() {
            prop_assert!(SafeTensors::deserialize(&bytes).is_ok());
        }
    }

    /// Damage to the header alone, with its length kept right, so that the parser sees all of it.
    #[test]
    fn damaged_headers_do_not_panic(
        x in tensors(),
        damage in prop::collection::vec((any::<Index>(), prop::sample::select(&b"{}[]\",:\\u0123456789 x"[..])), 1..5),
    ) {
        let mut bytes = to_bytes(&x).unwrap();
        let n = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        damage.iter().for_each(|(at, byte)| bytes[8 + at.index(n)] = *byte);
        let blank = x.map(&mut |t| t.zeros_like());
        if from_bytes(&blank, &bytes).is_ok() {
            prop_assert!(SafeTensors::deserialize(&bytes).is_ok());
        }
    }

    #[test]
    fn noise_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), header in "[{}\\[\\]\",:\\\\u0-9a-f ]{0,40}") {
        let like = single("", &[1]);
        prop_assert!(from_bytes(&like, &bytes).is_err());
        prop_assert!(from_bytes(&like, &file(&header, &bytes)).is_err());
    }
}
