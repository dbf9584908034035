//! The laws on a device whose elements the host cannot reach.

use super::*;
use crate::tensor::{Device, with_device};

/// The case with its inputs there.
fn moved(case: &Case, device: &Device) -> Case {
    Case { op: case.op.clone(), all: case.all.iter().map(|t| t.to(device)).collect() }
}

#[test]
fn values_and_derivatives_on_a_device_are_those_of_the_host_to_the_bit() {
    let device = Device::simulated();
    all_hold([DType::F32, DType::F64].into_iter().flat_map(cases), |case| {
        let there = moved(&case, &device);
        let y = bind(there.op.clone(), &there.all.iter().collect::<Vec<_>>()).unwrap();
        let x = bind(case.op.clone(), &case.all.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(y.bits(), x.bits(), "{:?}", case.op);
        if !case.differentiable() {
            return;
        }
        let derivatives = |case: &Case, device: &Device| {
            let f = |x: &Vec<Tensor>| case.apply(x);
            let seed = |t: &Tensor| uniform(Key::new(7), t.shape(), t.dtype()).to(device);
            let x = case.floats();
            let tangents: Vec<Tensor> = x.iter().map(seed).collect();
            let (y, dy) = crate::jvp(f, &x, &tangents);
            let pulled = crate::vjp(f, &x).1(&seed(&y));
            let again = crate::vjp(|x: &Vec<Tensor>| crate::vjp(f, x).1(&seed(&y)), &x).1(&tangents);
            let all = [dy].into_iter().chain(pulled).chain(again);
            all.map(|t| t.bits()).collect::<Vec<_>>()
        };
        assert_eq!(
            derivatives(&there, &device),
            derivatives(&case, &Device::cpu()),
            "{:?}: derivatives",
            case.op
        );
    });
}

#[test]
fn derivatives_of_first_and_second_order() {
    let device = Device::simulated();
    all_hold(cases(DType::F64).iter().filter(|c| c.differentiable()), |case| {
        with_device(&device, || moved(case, &device).check(DType::F64))
            .unwrap_or_else(|e| panic!("{:?}: {e}", case.op));
    });
}

#[test]
fn compiled_and_batched_values_are_those_of_the_host() {
    let device = Device::simulated();
    all_hold(cases(DType::F64), |case| {
        let there = moved(&case, &device);
        let f = |x: &Vec<Tensor>| bind(case.op.clone(), &x.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(
            crate::compile(f).call(&there.all).bits(),
            crate::compile(f).call(&case.all).bits(),
            "{:?}",
            case.op
        );
        let lanes =
            |all: &Vec<Tensor>| all.iter().map(|t| Tensor::stack(&[t, t], 0)).collect::<Vec<Tensor>>();
        let batched = |all: &Vec<Tensor>| crate::vmap(f)(&lanes(all)).bits();
        assert_eq!(batched(&there.all), batched(&case.all), "{:?} under vmap", case.op);
    });
}
