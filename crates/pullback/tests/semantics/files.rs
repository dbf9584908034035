//! `.npy`, `.npz` and CSV files: what NumPy wrote is read, and what is written is read by it.

use pullback::csv::Csv;
use pullback::prelude::*;
use pullback::save::{Archive, Loading};
use pullback::{Complex, ErrorKind, Result, npy, save};
use std::collections::BTreeMap;
use std::path::PathBuf;

fn recorded(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/semantics/files").join(name)
}

fn says<T>(r: Result<T>, kind: ErrorKind, what: &str) {
    let e = r.err().expect("an error");
    assert!(e.kind() == kind && e.to_string().contains(what), "{e}");
}

/// A file of its own for each test.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("pullback-{}-{name}", std::process::id()))
}

#[test]
fn arrays_by_numpy() {
    let codes = [
        ("b1", DType::Bool),
        ("u1", DType::U8),
        ("i4", DType::I32),
        ("i8", DType::I64),
        ("f2", DType::F16),
        ("f4", DType::F32),
        ("f8", DType::F64),
    ];
    for (code, dtype) in codes {
        for order in ["row_major", "big_endian"] {
            let path = recorded(&format!("{order}_{code}.npy"));
            if order == "big_endian" && dtype.size() == 1 {
                continue;
            }
            let x = npy::load(&path).unwrap();
            assert_eq!((x.dtype(), x.shape()), (dtype, &[2, 3][..]), "{code}");
            let expected: Vec<f64> =
                (0..6).map(|k| if dtype == DType::Bool { (k > 0) as u8 } else { k } as f64).collect();
            assert_eq!(x.to_vec::<f64>(), expected, "{code}");
            if order == "row_major" {
                // To the byte what NumPy writes.
                assert_eq!(npy::to_bytes(&x).unwrap(), std::fs::read(&path).unwrap(), "{code}");
            }
        }
    }
    let all: Vec<f64> = (0..6).map(f64::from).collect();
    for name in ["fortran_order", "version_2", "version_3"] {
        let x = npy::load(recorded(&format!("{name}.npy"))).unwrap();
        assert_eq!((x.shape(), x.to_vec::<f64>()), (&[2, 3][..], all.clone()), "{name}");
    }
    let x = npy::load(recorded("fortran_order_3d.npy")).unwrap();
    assert_eq!((x.shape(), x.to_vec::<f64>()), (&[2, 3, 4][..], (0..24).map(f64::from).collect()));
    for (name, shape) in [("scalar", &[][..]), ("vector", &[2]), ("empty", &[0, 3])] {
        let path = recorded(&format!("{name}.npy"));
        let x = npy::load(&path).unwrap();
        assert_eq!(x.shape(), shape);
        assert_eq!(npy::to_bytes(&x).unwrap(), std::fs::read(&path).unwrap(), "{name}");
    }
    says(npy::load(recorded("complex_of_32.npy")), ErrorKind::DType, "its elements are of type `<c32`");
    says(npy::load(recorded("unsigned_of_4.npy")), ErrorKind::DType, "its elements are of type `<u4`");
    says(npy::load(recorded("records.npy")), ErrorKind::DType, "records of several fields");
    says(npy::load(recorded("none.npy")), ErrorKind::Io, "npy::load: ");
}

/// The elements of `z` in `record.py`, as a matrix of two rows.
fn complex_numbers() -> Vec<Complex<f64>> {
    (0..6).map(f64::from).map(|k| Complex::new(k, -(k + 0.5))).collect()
}

#[test]
fn complex_arrays_by_numpy() {
    for (code, dtype) in [("c8", DType::C64), ("c16", DType::C128)] {
        for order in ["row_major", "big_endian", "fortran_order"] {
            let path = recorded(&format!("{order}_{code}.npy"));
            let x = npy::load(&path).unwrap();
            assert_eq!((x.dtype(), x.shape()), (dtype, &[2, 3][..]), "{order} {code}");
            assert_eq!(x.to_vec::<Complex<f64>>(), complex_numbers(), "{order} {code}");
            let row_major = recorded(&format!("row_major_{code}.npy"));
            assert_eq!(npy::to_bytes(&x).unwrap(), std::fs::read(row_major).unwrap(), "{order} {code}");
        }
    }
}

#[test]
fn arrays_there_and_back() {
    let path = temporary("back.npy");
    for x in [
        Tensor::from([[1.5, f64::NAN], [f64::NEG_INFINITY, -0.0]]),
        Tensor::linspace(0.0, 1.0, 12).reshape([3, 4]).t(),
        Tensor::full([2, 2], true),
        Tensor::from([i64::MIN, i64::MAX]),
        Tensor::zeros([3, 0, 2]),
        Tensor::ones([1, 2, 1, 3, 1]).cast(DType::F16),
    ] {
        npy::save(&x, &path).unwrap();
        let y = npy::load(&path).unwrap();
        assert_eq!((x.dtype(), x.shape()), (y.dtype(), y.shape()));
        let bits = |t: &Tensor| t.to_vec::<f64>().into_iter().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(&x), bits(&y));
    }
    let z = Tensor::from_slice(&complex_numbers(), [2, 3]).t();
    npy::save(&z, &path).unwrap();
    assert_eq!(npy::load(&path).unwrap().to_vec::<Complex<f64>>(), z.to_vec::<Complex<f64>>());
    std::fs::remove_file(path).unwrap();
    says(npy::to_bytes(&Tensor::ones([2]).cast(DType::BF16)), ErrorKind::DType, "NumPy has no type for bf16");
}

/// A file with this header.
fn with_header(text: &str, data: &[u8]) -> Vec<u8> {
    [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes(), data].concat()
}

#[test]
fn headers_that_lie_are_refused() {
    let read = |text: &str, data: &[u8]| npy::from_bytes(&with_header(text, data));
    assert_eq!(
        read("{\"shape\":(2,),'fortran_order':True,'descr':'|u1'}", &[1, 2]).unwrap().to_vec::<f64>(),
        [1.0, 2.0]
    );
    assert_eq!(
        read("{'descr': '|u1', 'fortran_order': False, 'shape': (2L,), }  \n", &[1, 2]).unwrap().shape(),
        [2]
    );
    let of = |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    says(read(&of("(3,)"), &[0; 16]), ErrorKind::Format, "an array of f64 [3] has 24 bytes, but 16 follow");
    says(read(&of("(1,)"), &[0; 16]), ErrorKind::Format, "has 8 bytes, but 16 follow");
    says(
        read(&of("(4611686018427387904, 8)"), &[0; 16]),
        ErrorKind::Shape,
        "more elements than memory can address",
    );
    says(
        read(&of("(1099511627776,)"), &[0; 16]),
        ErrorKind::Format,
        "has 8796093022208 bytes, but 16 follow",
    );
    says(read(&of("(0, 18446744073709551615)"), &[]), ErrorKind::Shape, "more elements");
    says(read(&of("(99999999999999999999,)"), &[]), ErrorKind::Format, "expected a length");
    says(read(&of("(-1,)"), &[]), ErrorKind::Format, "expected a length");
    says(read(&of("3"), &[]), ErrorKind::Format, "expected `(`");
    says(read(&format!("{}x", of("()")), &[0; 8]), ErrorKind::Format, "something follows");
    says(
        read("{'descr': '<f8', 'shape': ()}", &[0; 8]),
        ErrorKind::Format,
        "it needs `descr`, `fortran_order` and `shape`",
    );
    says(read("{'descr': '<f8', 'descr': '<f8'}", &[0; 8]), ErrorKind::Format, "a second `descr`");
    says(read("{'other': 1}", &[]), ErrorKind::Format, "an unknown key `other`");
    says(
        read("{'descr': 'é8', 'fortran_order': False, 'shape': ()}", &[]),
        ErrorKind::DType,
        "which tensors here do not have",
    );
    says(read("{'descr': ''}", &[]), ErrorKind::DType, "of type ``");
    says(read(&"(".repeat(60_000), &[]), ErrorKind::Format, "expected `{`");
    says(npy::from_bytes(b"\x93NUMPY\x09\x00\x00\x00"), ErrorKind::Format, "of version 9.0");
    says(
        npy::from_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}"),
        ErrorKind::Format,
        "given as 4294967295 bytes, in a file of 14",
    );
    says(npy::from_bytes(b"\x93NUM"), ErrorKind::Format, "4 bytes are too few");
    says(npy::from_bytes(b"PK\x03\x04abcdefgh"), ErrorKind::Format, "does not begin as a .npy file does");
}

#[cfg(feature = "npz")]
mod zipped {
    use super::*;
    use pullback::npz;

    #[test]
    fn archives_by_numpy() {
        let all = npz::load(recorded("stored.npz")).unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["n", "x", "z"]);
        assert_eq!((all["n"].dtype(), all["n"].item()), (DType::I64, 7.0));
        assert_eq!(all["x"].to_vec::<f64>(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(all["z"].to_vec::<Complex<f64>>(), complex_numbers());
        let all = npz::load(recorded("compressed.npz")).unwrap();
        assert_eq!((all["x"].dtype(), all["x"].shape()), (DType::F32, &[10, 10][..]));
        assert_eq!(all["y"].to_vec::<bool>(), [true, false]);
    }

    #[test]
    fn archives_there_and_back() {
        let named =
            [("a/b", Tensor::from([1.0, 2.0])), ("", Tensor::scalar(3i64)), ("ü", Tensor::zeros([0]))];
        let path = temporary("back.npz");
        npz::save(&named, &path).unwrap();
        let compressed = npz::to_compressed_bytes(&named).unwrap();
        for all in [npz::load(&path).unwrap(), npz::from_bytes(&compressed).unwrap()] {
            assert_eq!(all.len(), 3);
            for (name, x) in &named {
                assert_eq!((all[*name].shape(), all[*name].to_vec::<f64>()), (x.shape(), x.to_vec()));
            }
        }
        std::fs::remove_file(path).unwrap();
        assert_eq!(npz::to_bytes(&named).unwrap(), npz::to_bytes(&named).unwrap());
        says(
            npz::to_bytes(&[("x", Tensor::scalar(1.0)), ("x", Tensor::scalar(1.0))]),
            ErrorKind::Structure,
            "two arrays",
        );
        says(npz::from_bytes(b"not a zip"), ErrorKind::Format, "npz::from_bytes: it is not a zip archive");
    }

    /// The size of an entry, rewritten in both of its headers, is not believed.
    #[test]
    fn an_entry_that_claims_to_be_huge_is_refused() {
        let bytes = npz::to_compressed_bytes(&[("x", Tensor::zeros([100]))]).unwrap();
        let size = (128 + 800u32).to_le_bytes();
        let mut lying = bytes.clone();
        let at: Vec<usize> = (0..bytes.len() - 4).filter(|&k| bytes[k..k + 4] == size).collect();
        assert!(!at.is_empty());
        at.iter().for_each(|&k| lying[k..k + 4].copy_from_slice(&0x7fff_ffffu32.to_le_bytes()));
        says(npz::from_bytes(&lying), ErrorKind::Format, "cannot have 2147483647 bytes");
    }

    /// A directory whose entries all lead to the same bytes would make a small file as many arrays as it has entries.
    #[test]
    fn entries_that_overlap_are_refused() {
        let bytes = npz::to_bytes(&[("x", Tensor::zeros([100])), ("y", Tensor::scalar(1.0))]).unwrap();
        let entries: Vec<usize> =
            (0..bytes.len() - 4).filter(|&k| bytes[k..].starts_with(b"PK\x01\x02")).collect();
        let mut overlapping = bytes.clone();
        // The checksum and the sizes of an entry, and where it is.
        for part in [16..28, 42..46] {
            let first = bytes[entries[0] + part.start..entries[0] + part.end].to_vec();
            overlapping[entries[1] + part.start..entries[1] + part.end].copy_from_slice(&first);
        }
        says(npz::from_bytes(&overlapping), ErrorKind::Format, "its entries overlap");
    }
}

#[test]
fn tables() {
    let table = Csv::new()
        .header()
        .separator(';')
        .parse("\u{feff}a; \"b;\"\"c\" ;d\r\n1;2.5e3;-inf\r\n\r\n;NA;nan\r\n")
        .unwrap();
    assert_eq!(table.names, ["a", "b;\"c", "d"]);
    assert_eq!(table.values.shape(), [2, 3]);
    let v = table.values.to_vec::<f64>();
    assert_eq!(v[..3], [1.0, 2500.0, f64::NEG_INFINITY]);
    assert!(v[3..].iter().all(|v| v.is_nan()));
    assert_eq!(table.column("a").unwrap().item_at([0]), 1.0);
    says(table.column("e"), ErrorKind::Value, "no column `e`");
    assert_eq!(
        Csv::new().separator(' ').parse("  1   2 \n3 4").unwrap().values.to_vec::<f64>(),
        [1.0, 2.0, 3.0, 4.0]
    );
    assert_eq!(Csv::new().separator('\t').parse("1\t\n").unwrap().values.shape(), [1, 2]);
    assert_eq!(Csv::new().parse("").unwrap().values.shape(), [0, 0]);
    assert_eq!(Csv::new().header().parse("a,b\n").unwrap().values.shape(), [0, 2]);
    says(
        Csv::new().parse("1,2\n3\n"),
        ErrorKind::Format,
        "csv: line 2 has 1 fields, but those before it have 2",
    );
    says(Csv::new().parse("1,x"), ErrorKind::Format, "line 1, column 2: `x` is not a number");
    says(Csv::new().parse("\"1"), ErrorKind::Format, "line 1, column 1: a quote that is not closed");
    says(Csv::new().parse("\"1\"2"), ErrorKind::Format, "something follows the closing quote");
    let path = temporary("table.csv");
    std::fs::write(&path, b"1,\xff").unwrap();
    says(Csv::new().load(&path), ErrorKind::Format, "byte 2 is not UTF-8");
    // There and back, with what is missing.
    let x = Tensor::from([[0.1, f64::NAN, 1e300], [f64::INFINITY, -0.0, 5e-324]]);
    Csv::new().header().save(&x, &["one", "t,wo", "three"], &path).unwrap();
    let back = Csv::new().header().load(&path).unwrap();
    assert_eq!(back.names, ["one", "t,wo", "three"]);
    let text = |t: &Tensor| format!("{:?}", t.to_vec::<f64>());
    assert_eq!(text(&back.values), text(&x));
    let column = Csv::new().print(&Tensor::from([1.0, f64::NAN]), &[]).unwrap();
    assert_eq!(text(&Csv::new().parse(&column).unwrap().values), "[1.0, NaN]");
    let missing = Tensor::full([2, 3], f64::NAN);
    for separator in [',', '\t', ' ', ';'] {
        let csv = Csv::new().separator(separator);
        assert_eq!(
            csv.parse(&csv.print(&missing, &[]).unwrap()).unwrap().values.shape(),
            [2, 3],
            "{separator:?}"
        );
    }
    says(Csv::new().print(&Tensor::zeros([1, 1, 1]), &[]), ErrorKind::Shape, "a table has two axes");
    std::fs::remove_file(path).unwrap();
}

/// Names that hold separators, quotes, ends of lines and space, or nothing, are read as they were written.
#[test]
fn names_of_columns_are_quoted_where_they_have_to_be() {
    let names = ["", " a", "b\r\nc", "\u{feff}", "d;\t,e", "\"", "f g"];
    let x = Tensor::from([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, f64::NAN]]);
    for separator in [',', ';', '\t', ' '] {
        let csv = Csv::new().header().separator(separator);
        let table = csv.parse(&csv.print(&x, &names).unwrap()).unwrap();
        assert_eq!((&table.names[..], table.values.shape()), (&names.map(String::from)[..], &[1, 7][..]));
        assert_eq!(csv.parse(&csv.print(&Tensor::from([1.0]), &[""]).unwrap()).unwrap().names, [""]);
    }
    assert_eq!(Csv::new().header().print(&Tensor::from([1.0]), &["plain"]).unwrap(), "plain\n1\n");
}

#[test]
fn fields_as_spreadsheets_write_them() {
    let csv = Csv::new().header();
    let table = csv.parse("\"height\n(cm)\",\"a \"\"b\"\"\"\n\" 180 \",\"\"\nNULL,#N/A\n").unwrap();
    assert_eq!(table.names, ["height\n(cm)", "a \"b\""]);
    assert_eq!(format!("{:?}", table.values.to_vec::<f64>()), "[180.0, NaN, NaN, NaN]");
    // Lines are counted as an editor does, also where one is inside of quotes.
    says(csv.parse("\"a\nb\"\n\n1\nx\n"), ErrorKind::Format, "line 5, column 1: `x` is not a number");
    says(csv.parse("a,b\n1,\"2\n3,4\n"), ErrorKind::Format, "line 2, column 2: a quote that is not closed");
    let spaced = Csv::new().separator(' ');
    assert_eq!(spaced.parse("\"1\" 2\t3\r\n").unwrap().values.to_vec::<f64>(), [1.0, 2.0, 3.0]);
    says(spaced.parse("\"1\"2"), ErrorKind::Format, "something follows the closing quote");
}

#[derive(Tree, Clone)]
struct Model {
    weight: Tensor,
    bias: Tensor,
    steps: Tensor,
}

fn model() -> Model {
    Model { weight: Tensor::ones([2, 3]), bias: Tensor::ones([3]), steps: Tensor::scalar(0i64) }
}

#[test]
fn all_that_does_not_fit_is_named_at_once() {
    let path = temporary("differs.safetensors");
    let file: BTreeMap<&str, Tensor> = [
        ("weight", Tensor::full([3, 2], 1f32)),
        ("steps", Tensor::scalar(1i32)),
        ("head.a", Tensor::scalar(1.0)),
        ("head.b", Tensor::scalar(2.0)),
    ]
    .into();
    save(&file, &path).unwrap();
    let text = pullback::load(&model(), &path).err().unwrap().to_string();
    for part in [
        "the file lacks `bias`, and has `head.a`, `head.b`, which the tree does not",
        "leaf `weight` is F64 [2, 3] in the tree and F32 [3, 2] in the file",
        "leaf `steps` is I64 [] in the tree and I32 [] in the file",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let found = Archive::open(&path).unwrap().differences(&model()).unwrap();
    assert_eq!(
        (found.missing, found.extra),
        (vec!["bias".to_string()], vec!["head.a".to_string(), "head.b".to_string()])
    );
    assert_eq!(found.different.len(), 2);
    // Leeway does not reach shapes, nor integers.
    let loose = || Loading::new().keep_missing().ignore_extra().convert_floats();
    says(loose().load(&model(), &path), ErrorKind::Shape, "leaf `weight`");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn parts_of_a_file_by_other_names_and_in_other_types() {
    let path = temporary("parts.safetensors");
    let file: BTreeMap<&str, Tensor> = [
        ("net.weight", Tensor::full([2, 3], 0.1f32)),
        ("net.steps", Tensor::scalar(5i64)),
        ("optimizer", Tensor::zeros([1000])),
    ]
    .into();
    save(&file, &path).unwrap();
    let named = || Loading::new().rename(|name| format!("net.{name}"));
    says(
        named().load(&model(), &path),
        ErrorKind::Structure,
        "the file lacks `net.bias`, and has `optimizer`",
    );
    let e = named().keep_missing().ignore_extra().load(&model(), &path).err().unwrap();
    assert!(e.kind() == ErrorKind::DType && e.to_string().contains("load with floats converted"), "{e}");
    let x = named().keep_missing().ignore_extra().convert_floats().load(&model(), &path).unwrap();
    assert_eq!((x.weight.dtype(), x.weight.item_at([1, 2])), (DType::F64, 0.1f32 as f64));
    assert_eq!((x.bias.to_vec::<f64>(), x.steps.item()), (vec![1.0; 3], 5.0));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_file_as_a_map() {
    let path = temporary("map.safetensors");
    let file: BTreeMap<String, Tensor> =
        [("b".to_string(), Tensor::from([1.0, 2.0])), ("a".to_string(), Tensor::from([[true]]))].into();
    save(&file, &path).unwrap();
    let archive = Archive::open(&path).unwrap();
    assert_eq!(archive.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((archive.shape("a"), archive.dtype("b")), (Some(&[1, 1][..]), Some(DType::F64)));
    assert_eq!((archive.shape("c"), archive.dtype("c")), (None, None));
    // In any order, and again.
    for _ in 0..2 {
        assert_eq!(archive.read("a").unwrap().to_vec::<bool>(), [true]);
        assert_eq!(archive.read("b").unwrap().to_vec::<f64>(), [1.0, 2.0]);
    }
    says(archive.read("c"), ErrorKind::Structure, "no tensor of the name `c`");
    let all = archive.read_all().unwrap();
    let again = temporary("again.safetensors");
    save(&all, &again).unwrap();
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&path).unwrap());
    [path, again].into_iter().for_each(|p| std::fs::remove_file(p).unwrap());
    says(Archive::open(temporary("absent")), ErrorKind::Io, "open: ");
}

#[test]
fn a_file_that_is_in_memory() {
    let path = temporary("memory.safetensors");
    save(&model(), &path).unwrap();
    // SAFETY: the name is this test's own, and the map is dropped before the file is removed.
    let map = unsafe { memmap2::Mmap::map(&std::fs::File::open(&path).unwrap()) }.unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let archives = [
        Archive::open(&path).unwrap(),
        Archive::from_bytes(map).unwrap(),
        Archive::from_bytes(bytes.clone()).unwrap(),
    ];
    for archive in &archives {
        assert_eq!(archive.names().collect::<Vec<_>>(), ["bias", "steps", "weight"]);
        assert_eq!(save::to_bytes(&archive.read_all().unwrap()).unwrap(), bytes);
        let fresh = Model { weight: Tensor::zeros([2, 3]), ..model() };
        assert_eq!(Loading::new().load_from(&fresh, archive).unwrap().weight.to_vec::<f64>(), [1.0; 6]);
        let e = Loading::new().load_from(&(fresh.weight, fresh.bias), archive).err().unwrap();
        assert!(e.to_string().contains("load_from: "), "{e}");
    }
    drop(archives);
    std::fs::remove_file(path).unwrap();
    says(Archive::from_bytes(&bytes.leak()[..20]), ErrorKind::Format, "from_bytes: the length of its header");
}

/// Each thread reads where it wants to: none moves the place of another.
#[test]
fn threads_read_one_file_at_once() {
    let path = temporary("threads.safetensors");
    let file: Vec<Tensor> = (0..16).map(|k| Tensor::full([1000], k as f64)).collect();
    save(&file, &path).unwrap();
    let archive = Archive::open(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let archive = &archive;
            scope.spawn(move || {
                for k in (0..160).map(|k| (k * 7 + thread * 5) % 16) {
                    let x = archive.read(&k.to_string()).unwrap();
                    assert_eq!(x.to_vec::<f64>(), [k as f64; 1000]);
                }
            });
        }
    });
    std::fs::remove_file(path).unwrap();
}

/// What is cut off after the header was read is an error when it is asked for.
#[test]
fn a_file_that_shrinks_while_it_is_open() {
    let path = temporary("shrinks.safetensors");
    save(&(Tensor::from([1.0, 2.0]), Tensor::scalar(5i64)), &path).unwrap();
    let archive = Archive::open(&path).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() - 8).unwrap();
    assert_eq!(archive.read("1").unwrap().item(), 5.0);
    says(archive.read("0"), ErrorKind::Io, "read: ");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn elements_where_they_are() {
    let x = Tensor::from([[1i32, 2, 3], [4, 5, 6]]);
    assert_eq!(x.as_slice::<i32>(), Some(&[1, 2, 3, 4, 5, 6][..]));
    assert_eq!(x.as_slice::<i64>(), None);
    assert_eq!(x.get(-1).as_slice::<i32>(), Some(&[4, 5, 6][..]));
    assert_eq!(x.narrow(1, 0, 2).as_slice::<i32>(), None);
    assert_eq!(Tensor::scalar(2.5f32).as_slice::<f32>(), Some(&[2.5][..]));
    assert_eq!(Tensor::ones([2]).as_slice::<f64>(), None);
    assert_eq!(Tensor::zeros([0, 2]).as_slice::<f64>(), Some(&[][..]));
    let seen = compile(|x: &Tensor| {
        assert!(x.as_slice::<f64>().is_none());
        x * 2.0
    });
    assert_eq!(seen.call(&Tensor::from([1.0, 2.0])).as_slice::<f64>(), Some(&[2.0, 4.0][..]));
}
