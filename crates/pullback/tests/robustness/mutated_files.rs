//! Files that somebody has spoiled: thousands of valid ones with bytes changed, cut out, put in and exchanged. What is read or refused does not matter
//! here; that nothing panics, and that no more memory is taken than a file of its length can stand for, does.

use pullback::csv::Csv;
use pullback::prelude::*;
use pullback::save::{Archive, Loading};
use pullback::{Complex, npy, save};
use pullback_testing::Dice;
use std::collections::BTreeMap;

/// One way of spoiling bytes.
fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let interesting =
        [0u8, 1, 0x7f, 0x80, 0xff, b'0', b'9', b',', b'(', b')', b'{', b'}', b'"', b'\'', b'\n', b'-'];
    let at = |dice: &mut Dice, bytes: &[u8]| dice.roll(bytes.len().max(1));
    match dice.roll(8) {
        _ if bytes.is_empty() => bytes.push(dice.bits() as u8),
        0 => {
            let k = at(dice, bytes);
            bytes[k] = dice.bits() as u8;
        }
        1 => {
            let k = at(dice, bytes);
            bytes[k] = dice.pick(&interesting);
        }
        2 => {
            let k = at(dice, bytes);
            bytes[k] ^= 1 << dice.roll(8);
        }
        3 => bytes.truncate(dice.roll(bytes.len() + 1)),
        4 => {
            let (k, n) = (at(dice, bytes), 1 + dice.roll(16));
            bytes.drain(k..(k + n).min(bytes.len()));
        }
        5 => {
            let k = at(dice, bytes);
            let new: Vec<u8> = (0..1 + dice.roll(8)).map(|_| dice.pick(&interesting)).collect();
            bytes.splice(k..k, new);
        }
        6 => {
            // A count that is too large.
            let k = at(dice, bytes);
            let large = dice.pick(&[u64::MAX, 1 << 63, 1 << 40, u32::MAX as u64]).to_le_bytes();
            let n = (bytes.len() - k).min(dice.pick(&[2, 4, 8]));
            bytes[k..k + n].copy_from_slice(&large[..n]);
        }
        _ => {
            let (a, b) = (at(dice, bytes), at(dice, bytes));
            let n = (1 + dice.roll(12)).min(bytes.len() - a.max(b));
            let part = bytes[a..a + n].to_vec();
            bytes[b..b + n].copy_from_slice(&part);
        }
    }
}

/// Reads a number of spoiled files; how many of them were still valid.
fn spoiled(name: &str, valid: &[Vec<u8>], files: usize, read: impl Fn(&[u8]) -> pullback::Result<usize>) {
    let mut dice = Dice(7);
    let (mut fine, mut refused) = (0, 0);
    for file in valid {
        assert!(read(file).is_ok(), "{name}: a file is not valid to begin with");
    }
    for k in 0..files {
        let mut bytes = valid[k % valid.len()].clone();
        (0..1 + dice.roll(4)).for_each(|_| mutate(&mut dice, &mut bytes));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(&bytes)));
        match result.unwrap_or_else(|_| panic!("{name}: file {k} made it panic: {bytes:?}")) {
            Ok(elements) => {
                assert!(
                    elements <= 2000 * bytes.len() + 100,
                    "{name}: {elements} elements from {} bytes",
                    bytes.len()
                );
                fine += 1;
            }
            Err(e) => {
                assert!(!e.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(fine > 0 && refused > files / 4, "{name}: {fine} were read and {refused} refused");
}

fn arrays() -> Vec<Tensor> {
    vec![
        Tensor::linspace(0.0, 1.0, 6).reshape([2, 3]),
        Tensor::from([1i32, -2, 3]),
        Tensor::from([[true], [false]]),
        Tensor::scalar(1.5f32),
        Tensor::zeros([0, 4]),
        Tensor::from([Complex::new(1f32, -2.0), Complex::new(0.5, 0.0)]),
    ]
}

fn elements<'a>(all: impl IntoIterator<Item = &'a Tensor>) -> usize {
    all.into_iter().map(Tensor::numel).sum()
}

#[test]
fn npy_files() {
    let valid: Vec<Vec<u8>> = arrays().iter().map(|x| npy::to_bytes(x).unwrap()).collect();
    spoiled("npy", &valid, 6000, |bytes| npy::from_bytes(bytes).map(|x| x.numel()));
}

#[test]
#[cfg(feature = "npz")]
fn npz_files() {
    use pullback::npz;
    let named: Vec<(String, Tensor)> =
        arrays().into_iter().enumerate().map(|(k, x)| (k.to_string(), x)).collect();
    let zeros = [("zeros", Tensor::zeros([5000]))];
    let valid = [
        npz::to_bytes(&named[..2]).unwrap(),
        npz::to_compressed_bytes(&named).unwrap(),
        npz::to_compressed_bytes(&zeros).unwrap(),
    ];
    spoiled("npz", &valid, 4000, |bytes| npz::from_bytes(bytes).map(|all| elements(all.values())));
}

#[test]
fn safetensors_files() {
    let tree: BTreeMap<String, Tensor> =
        arrays().into_iter().enumerate().map(|(k, x)| (format!("layers.{k}"), x)).collect();
    let valid = [save::to_bytes(&tree).unwrap(), save::to_bytes(&Tensor::from([1.0, 2.0])).unwrap()];
    spoiled("safetensors", &valid[..1], 4000, |bytes| {
        save::from_bytes(&tree, bytes).map(|t| elements(t.values()))
    });

    // From a file, with every leeway, and as a map.
    let path = std::env::temp_dir().join(format!("pullback-mutated-{}.safetensors", std::process::id()));
    spoiled("safetensors with leeway", &valid, 1500, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        Loading::new().keep_missing().ignore_extra().convert_floats().load(&tree, &path)?;
        let (file, memory) = (Archive::open(&path)?, Archive::from_bytes(bytes.to_vec())?);
        let all = file.read_all();
        assert_eq!(all.is_ok(), memory.read_all().is_ok());
        all.map(|t| elements(t.values()))
    });
    std::fs::remove_file(path).unwrap();
}

#[test]
fn csv_files() {
    let text = "a,\"b, c\",d\n1,2.5,\n-3e4,NaN,inf\n\"7\",8,9\n".as_bytes().to_vec();
    let path = std::env::temp_dir().join(format!("pullback-mutated-{}.csv", std::process::id()));
    spoiled("csv", &[text], 1500, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        Csv::new().header().load(&path).map(|t| t.values.numel())
    });
    std::fs::remove_file(path).unwrap();
}
