use super::*;
use crate::prelude::*;
use crate::{Policy, checkpoint_with};

fn on(x: &Tensor) -> Tensor {
    x.to(&Device::simulated())
}

#[test]
fn devices_do_not_mix_in_silence() {
    let (a, b) = (on(&Tensor::from([1.0, 2.0])), Tensor::from([3.0, 4.0]));
    let e = a.try_add(&b).unwrap_err().to_string();
    assert!(e.contains("simulated") && e.contains("cpu") && e.contains("to(&device)"), "{e}");
    let e = Tensor::try_concat(&[&b, &a], 0).unwrap_err().to_string();
    assert!(e.contains("simulated") && e.contains("cpu"), "{e}");
    let both = compile(|(a, b): &(Tensor, Tensor)| a * b);
    let e = both.try_call(&(a.clone(), b)).unwrap_err().to_string();
    assert!(e.contains("simulated") && e.contains("cpu"), "{e}");
    // Numbers are everywhere.
    assert_eq!((&a * 2.0 + Tensor::ones([2])).to_vec::<f64>(), [3.0, 5.0]);
}

#[test]
fn cotangents_come_back_to_where_the_leaf_is() {
    let x = Tensor::from([0.5, -1.0]);
    let f = |x: &Tensor| (on(x).tanh() * 2.0).sum();
    let g = grad(f)(&x);
    assert_eq!(g.device(), Device::cpu());
    assert!(g.is_close(&grad(|x: &Tensor| (x.tanh() * 2.0).sum())(&x), 0.0, 0.0));
    let (_, dy) = jvp(f, &x, &Tensor::ones([2]));
    assert!((dy.item() - g.sum().item()).abs() < 1e-12);
    let w = x.requires_grad();
    f(&w).backward();
    assert_eq!(w.grad().unwrap().device(), Device::cpu());
    let each = vmap(grad(|x: &Tensor| (on(x) * 3.0).sum()))(&Tensor::ones([2, 2]));
    assert_eq!(each.to_vec::<f64>(), [3.0; 4]);
}

#[test]
fn updates_in_place_stay_on_the_device_and_are_seen_by_nobody_else() {
    let mut x = on(&Tensor::from([1.0, 2.0, 3.0]));
    let (held, view) = (x.clone(), x.slice(0..1));
    x += 1.0;
    x *= &on(&Tensor::from([1.0, 2.0, 3.0]));
    x.slice_assign(1..2, on(&Tensor::from([9.0])));
    assert_eq!((x.device(), x.to_vec::<f64>()), (Device::simulated(), vec![2.0, 9.0, 12.0]));
    assert_eq!((held.to_vec::<f64>(), view.to_vec::<f64>()), (vec![1.0, 2.0, 3.0], vec![1.0]));

    // Alone, it keeps its elements' place.
    let elements = |t: &Tensor| match t.data() {
        Data::Placed(p) => Arc::as_ptr(&p.elements).cast::<()>(),
        _ => unreachable!("it is on a device"),
    };
    let mut y = &x + 1.0;
    let at = elements(&y);
    y += 1.0;
    assert_eq!((elements(&y), y.to_vec::<f64>()), (at, vec![4.0, 11.0, 14.0]));
}

#[test]
fn whoever_reads_elements_fetches_them() {
    let x = on(&Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
    assert_eq!((x.item_at([1, 0]), x.sum().item()), (3.0, 10.0));
    assert_eq!(x.t().to_vec::<f64>(), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(format!("{x}"), format!("{}", x.to(&Device::cpu())));
    assert!(matches!(x.data(), Data::Placed(_)), "reading moves nothing");
    let one = cond(&x.sum().gt(0.0), |x: &Tensor| x * 2.0, |x: &Tensor| x.clone(), &x);
    assert_eq!((one.device(), one.item_at([0, 0])), (Device::simulated(), 2.0));
    let file = std::env::temp_dir().join(format!("pullback-device-{}.safetensors", std::process::id()));
    crate::save(&x, &file).unwrap();
    let back: Tensor = crate::load(&Tensor::zeros([2, 2]), &file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(back.to_vec::<f64>(), x.to_vec::<f64>());
}

#[test]
fn new_tensors_are_made_where_they_are_asked_for() {
    let x = with_device(&Device::simulated(), || {
        let x = Tensor::from([1.0, 2.0]);
        assert_eq!(with_device(&Device::cpu(), || Tensor::from([1.0, 2.0])).device(), Device::cpu());
        let mut zeros = Tensor::zeros([2]);
        zeros.slice_assign(0..1, 1.0);
        assert_eq!(zeros.device(), Device::simulated());
        x * Tensor::arange(0.0, 2.0, 1.0)
    });
    assert_eq!((x.device(), x.to_vec::<f64>()), (Device::simulated(), vec![0.0, 2.0]));
    assert_eq!(Tensor::from([1.0, 2.0]).device(), Device::cpu());
}

#[test]
fn checkpoints_spill_and_come_back_to_their_device() {
    let x = on(&Tensor::from([0.5, -1.0]));
    let f = |x: &Tensor| x.sin().exp();
    let spilled = checkpoint_with(Policy::Nothing.offload(std::env::temp_dir()), f);
    let g = grad(|x: &Tensor| spilled(x).sum())(&x);
    assert_eq!(g.device(), Device::simulated());
    assert_eq!(g.bits(), grad(|x: &Tensor| f(x).sum())(&x).bits());
}
