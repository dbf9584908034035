pub fn rotation_jacobian(x: &[f64; 3], y: &mut [f64; 6]) -> bool {
    let v0 = x[0];
    let v1 = x[1];
    let v2 = x[2];
    let v3 = v0.sin();
    let v4 = v0.cos();
    let v5 = -v3;
    let v6 = v1 * v3;
    let v7 = v2 * v4;
    let v8 = v6 + v7;
    let v9 = -v8;
    let v10 = v2 * v3;
    let v11 = v1 * v4;
    let v12 = v11 - v10;
    let v13 = 0.0_f64;
    if !(v13 < v1) {
        return false;
    }
    y[0] = v9;
    y[1] = v4;
    y[2] = v5;
    y[3] = v12;
    y[4] = v3;
    y[5] = v4;
    true
}
