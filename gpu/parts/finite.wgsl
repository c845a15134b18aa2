// Tests the bits of a number, since compilers may assume that NaN and infinities do not occur.
fn is_finite(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

fn is_positive(x: f32) -> bool {
  return bitcast<u32>(x) - 1u < 0x7f7fffffu;
}
