// Tests the bits of a number, since compilers may assume that NaN and infinities do not occur.
fn is_finite(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

fn is_positive(x: f32) -> bool {
  return bitcast<u32>(x) - 1u < 0x7f7fffffu;
}

// False if a step of conjugate gradients along p is the end: p.A p is 0 or negative, so that float32 cannot
// tell A from a singular matrix. NaN and infinity go on into x, so that the row is reported.
fn goes_on(curvature: f32) -> bool {
  return curvature > 0.0 || !is_finite(curvature);
}
