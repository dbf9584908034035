pub fn rotation_jacobian(x: &[f64; 3], y: &mut [f64; 6]) -> bool {
    let v0 = x[0];
    let v1 = x[1];
    let v2 = x[2];
    let v3 = v0.sin();
    let v4 = v0.cos();
    let v5 = v1 * v4;
    let v6 = v2 * v3;
    let v7 = v5 - v6;
    let v8 = v1 * v3;
    let v9 = v2 * v4;
    let v10 = v8 + v9;
    let v11 = 0.0_f64;
    if !(v11 < v1) {
        return false;
    }
    let v12 = -v3;
    let v13 = -v10;
    y[0] = v13;
    y[1] = v4;
    y[2] = v12;
    y[3] = v7;
    y[4] = v3;
    y[5] = v4;
    true
}
