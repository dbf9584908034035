//! Checkpoints with their values in files: the same gradients bit by bit, files that go, errors that say what to do.

use pullback::{ErrorKind, Policy, checkpoint_with, name, prelude::*};
use pullback_testing::message;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of its own for each test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("pullback-offload-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Pair = (Tensor, Tensor);

fn layer((w, x): &Pair) -> Pair {
    let hidden = name(&w.matmul(x).tanh(), "hidden");
    (w.clone(), w.t().matmul(&hidden.exp()).sin())
}

/// Three layers, so that two have an input that is an intermediate value.
fn deep(layer: impl Fn(&Pair) -> Pair) -> impl Fn(&Pair) -> Tensor {
    move |p| layer(&layer(&layer(p))).1.square().sum()
}

fn start() -> Pair {
    (Tensor::from([[0.3, -0.2], [0.5, 0.7]]), Tensor::from([0.4, -0.3]))
}

#[track_caller]
fn same(a: &Pair, b: &Pair) {
    for (a, b) in [(&a.0, &b.0), (&a.1, &b.1)] {
        let bits = |t: &Tensor| t.to_vec::<f64>().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!((a.shape(), bits(a)), (b.shape(), bits(b)));
    }
}

/// Compares all that a gradient can be part of.
fn compare(on_disk: &dyn Fn(&Pair) -> Tensor, in_memory: &dyn Fn(&Pair) -> Tensor) {
    let p = start();
    same(&grad(on_disk)(&p), &grad(in_memory)(&p));
    let second = |f: &dyn Fn(&Pair) -> Tensor| {
        grad(|p: &Pair| {
            let (w, x) = grad(f)(p);
            w.square().sum() + x.exp().sum()
        })(&p)
    };
    same(&second(on_disk), &second(in_memory));
    let many = (Tensor::stack(&[p.0.clone(), p.0.sin()], 0), Tensor::from([[0.4, -0.3], [0.1, 0.2]]));
    same(&vmap(grad(on_disk))(&many), &vmap(grad(in_memory))(&many));
    let t = (Tensor::ones([2, 2]), Tensor::ones([2]));
    same(&jvp(grad(on_disk), &p, &t).1, &jvp(grad(in_memory), &p, &t).1);
    same(&grad(|p: &Pair| vmap(on_disk)(p).sum())(&many), &grad(|p: &Pair| vmap(in_memory)(p).sum())(&many));
}

#[test]
fn every_policy_gives_the_same_bits_from_a_file() {
    let dir = Dir::new("policies");
    let named = Policy::Named(&["hidden"]);
    for policy in [Policy::Everything, Policy::Nothing, Policy::Products, named] {
        let on_disk = deep(checkpoint_with(policy.offload(&dir.0), layer));
        // Without any checkpoint the sums over uses of the parameters are taken in another order.
        let in_memory =
            deep(checkpoint_with(if policy == Policy::Everything { Policy::Nothing } else { policy }, layer));
        compare(&on_disk, &in_memory);
        let p = start();
        same(&grad(checkpoint(&on_disk))(&p), &grad(checkpoint(&in_memory))(&p));
    }
    compare(
        &deep(checkpoint_with(Policy::rerun().offload(&dir.0), layer)),
        &deep(checkpoint_with(Policy::rerun(), layer)),
    );
    assert_eq!(dir.files(), Vec::<PathBuf>::new(), "no file is left");
}

#[test]
fn every_type_and_layout_comes_back() {
    let dir = Dir::new("types");
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let x = Tensor::linspace(-1.0, 1.0, 12).reshape([3, 4]).cast(dtype).requires_grad();
        let f = |(x, mask): &Pair| (Tensor::where_(mask, x.sin(), x.exp()) * x).sum();
        let total = |f: &dyn Fn(&Pair) -> Tensor, x: &Tensor| {
            // A transposed view, a mask, a broadcast number.
            let y = x.square().t();
            f(&(y.clone(), y.gt(0.25))) + f(&(y.sum().broadcast_to([4, 3]), y.lt(0.5)))
        };
        let on_disk = checkpoint_with(Policy::Everything.offload(&dir.0), f);
        let bits = |f: &dyn Fn(&Pair) -> Tensor| grad(|x: &Tensor| total(f, x))(&x.detach()).to_vec::<f64>();
        assert_eq!(bits(&on_disk), bits(&checkpoint(f)), "{dtype}");
        assert_eq!(
            bits(&checkpoint_with(Policy::rerun().offload(&dir.0), f)),
            bits(&checkpoint(f)),
            "{dtype}"
        );
    }
}

#[test]
fn a_file_lives_as_long_as_its_record() {
    let dir = Dir::new("lifetime");
    let f = checkpoint_with(Policy::Everything.offload(&dir.0), |x: &Tensor| x.sin().exp());
    let x = Tensor::linspace(0.0, 1.0, 10);
    f(&x);
    assert!(dir.files().is_empty(), "nobody asks for a gradient");
    let (_, pull) = vjp(|x: &Tensor| f(&f(x)), &x);
    assert_eq!(dir.files().len(), 2);
    let g = Tensor::ones([10]);
    assert_eq!(pull(&g).to_vec::<f64>(), pull(&g).to_vec::<f64>(), "a pullback runs more than once");
    drop(pull);
    assert!(dir.files().is_empty());
    let files = AssertUnwindSafe(&dir);
    let panics = || {
        let y = f(&x.clone().requires_grad());
        assert_eq!(files.files().len(), 1);
        panic!("{}", y.shape().len());
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert!(dir.files().is_empty(), "a panic removes it too");
}

#[test]
fn a_run_of_which_nothing_is_kept_writes_no_file() {
    let dir = Arc::new(Dir::new("forgotten"));
    let w = Tensor::scalar(2.0).requires_grad();
    let inside = w.clone();
    let inner = checkpoint_with(Policy::rerun().offload(&dir.0), move |x: &Tensor| (x * &inside).sin());
    let seen = dir.clone();
    let outer = checkpoint_with(Policy::rerun(), move |x: &Tensor| {
        let y = inner(&inner(&inner(x)));
        (y, Tensor::scalar(seen.files().len() as i32))
    });
    let (y, files) = outer(&Tensor::linspace(0.0, 1.0, 10));
    assert_eq!(files.item(), 0.0, "the outer checkpoint keeps nothing of its first run");
    y.sum().backward();
    assert!(w.grad().is_some());
    drop(y);
    assert!(dir.files().is_empty());
}

#[test]
fn files_that_cannot_be_written_or_read_are_errors() {
    let x = Tensor::linspace(0.0, 1.0, 10).requires_grad();
    let nowhere = Path::new("/there/is/no/such/directory");
    let f = checkpoint_with(Policy::Everything.offload(nowhere), |x: &Tensor| x.sin().exp());
    let e = message(|| f(&x));
    assert!(e.starts_with(file!()) && e.contains(": checkpoint: /there/is/no"), "{e}");
    assert!(e.contains("bytes that are kept"), "{e}");
    assert!(e.contains("choose another directory") && e.contains("offload.rs"), "{e}");

    let dir = Dir::new("errors");
    let f = checkpoint_with(Policy::rerun().offload(&dir.0), |x: &Tensor| x.sin().exp());
    let spoilt: [fn(&Path); 2] =
        [|file| fs::remove_file(file).unwrap(), |file| fs::write(file, [0; 10]).unwrap()];
    for spoil in spoilt {
        let y = f(&x.square()).sum();
        spoil(&dir.files()[0]);
        let e = y.try_backward().unwrap_err();
        assert_eq!((e.kind(), e.op()), (ErrorKind::Io, Some("checkpoint")));
        assert!(e.to_string().contains("cannot be read back"), "{e}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_offloaded_is_nobody_elses_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new("private");
    let layer = checkpoint_with(Policy::rerun().offload(&dir.0), |x: &Tensor| x.sin());
    let y = layer(&Tensor::linspace(0.0, 1.0, 10).requires_grad().exp());
    let files = dir.files();
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    drop(y);
}

/// In a container every process has the same number, so that files of that number may be there from the last one.
#[test]
fn files_of_an_earlier_process_of_the_same_number_are_not_in_the_way() {
    let dir = Dir::new("again");
    for k in 0..1000 {
        fs::write(dir.0.join(format!("pullback-{}-{k}.residuals", std::process::id())), "").unwrap();
    }
    let f = checkpoint_with(Policy::rerun().offload(&dir.0), |x: &Tensor| x.sin().exp());
    let x = Tensor::linspace(0.0, 1.0, 10).requires_grad();
    f(&x.square()).sum().backward();
    assert!(x.grad().is_some());
}

/// What a killed process has left is removed by the next one, but not while another one is alive.
#[cfg(unix)]
#[test]
fn files_of_a_killed_process_go_at_the_next_start() {
    use std::io::{BufRead, BufReader, Lines};
    use std::process::{Child, ChildStdout, Command, Stdio};
    const PLACE: &str = "PULLBACK_TEST_DIRECTORY";
    let name = "offload::files_of_a_killed_process_go_at_the_next_start";
    if let Some(dir) = std::env::var_os(PLACE) {
        let f = checkpoint_with(Policy::rerun().offload(Path::new(&dir)), |x: &Tensor| x.sin().exp());
        let y = f(&Tensor::linspace(0.0, 1.0, 10).requires_grad().square());
        println!("written");
        // Until it is killed, or the other end is closed.
        let _ = std::io::stdin().lines().next();
        drop(y);
        return;
    }
    let dir = Dir::new("killed");
    let start = || {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(PLACE, &dir.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("written")));
        (child, said)
    };
    // It goes on to say that the test has passed.
    let end = |(mut child, said): (Child, Lines<BufReader<ChildStdout>>)| {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        drop(said);
    };
    let (mut killed, _said) = start();
    let left = dir.files();
    assert_eq!(left.len(), 1);
    let other = start();
    assert!(left[0].exists() && dir.files().len() == 2, "the first one is alive");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(left[0].exists());
    end(other);
    assert_eq!(dir.files(), left, "it began while the first one was alive");
    let next = start();
    assert!(!left[0].exists() && dir.files().len() == 1);
    end(next);
    assert!(dir.files().is_empty());
}
