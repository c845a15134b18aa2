/**
 * Conversions between float32 and float16, eight numbers at a time: to nearest, ties to even.
 *
 *     values       Float32[n], n a multiple of 8
 *     halves       Uint16[n], the bits of float16
 */

/** The bits of |x| from which on a float16 has its full precision, 2^-14, and from which on it is infinite, 65,520. */
const SMALLEST = 0x3880_0000;
const INFINITE = 0x477f_f000;
/** The difference of the exponents' biases, in the bits of a float32. */
const BIAS = 0x3800_0000;

/** Rounds values to float16 in place, and writes their bits to halves. */
export function roundToHalves(values: usize, halves: usize, n: u32): void {
  for (const end = values + 4 * n; values < end; values += 32, halves += 16) {
    const low = roundFour(values);
    v128.store(halves, v128.narrow<u32>(low, roundFour(values + 16)));
  }
}

@inline
function roundFour(values: usize): v128 {
  const bits = v128.load(values);
  const sign = v128.and(bits, i32x4.splat(0x8000_0000));
  const magnitude = v128.xor(bits, sign);
  // 13 bits are dropped. To the others 1 is added if these bits are above their half, or the half of an odd number.
  const odd = v128.and(i32x4.shr_u(magnitude, 13), i32x4.splat(1));
  const rounded = v128.and(
    i32x4.add(i32x4.add(magnitude, i32x4.splat(0xfff)), odd),
    i32x4.splat(0xffff_e000),
  );
  // Multiples of 2^-24 below 2^-14: the unit of 0.5's last bit.
  const shifted = f32x4.add(magnitude, f32x4.splat(0.5));
  const small = i32x4.lt_u(magnitude, i32x4.splat(SMALLEST));
  const nan = i32x4.gt_u(magnitude, i32x4.splat(0x7f80_0000));
  const large = i32x4.ge_u(magnitude, i32x4.splat(INFINITE));
  const special = v128.bitselect(i32x4.splat(0x7fc0_0000), i32x4.splat(0x7f80_0000), nan);
  const value = v128.bitselect(
    f32x4.sub(shifted, f32x4.splat(0.5)),
    v128.bitselect(special, rounded, large),
    small,
  );
  v128.store(values, v128.or(value, sign));
  const half = v128.bitselect(
    i32x4.sub(shifted, i32x4.splat(0x3f00_0000)),
    v128.bitselect(
      i32x4.shr_u(v128.and(special, i32x4.splat(0x0fff_ffff)), 13),
      i32x4.shr_u(i32x4.sub(rounded, i32x4.splat(BIAS)), 13),
      large,
    ),
    small,
  );
  return v128.or(half, i32x4.shr_u(sign, 16));
}

export function widenHalves(halves: usize, values: usize, n: u32): void {
  for (const end = halves + 2 * n; halves < end; halves += 16, values += 32) {
    const bits = v128.load(halves);
    v128.store(values, widenFour(i32x4.extend_low_i16x8_u(bits)));
    v128.store(values + 16, widenFour(i32x4.extend_high_i16x8_u(bits)));
  }
}

@inline
function widenFour(bits: v128): v128 {
  const magnitude = v128.and(bits, i32x4.splat(0x7fff));
  const sign = i32x4.shl(v128.xor(bits, magnitude), 16);
  const normal = i32x4.add(i32x4.shl(magnitude, 13), i32x4.splat(BIAS));
  const small = f32x4.mul(f32x4.convert_i32x4_s(magnitude), f32x4.splat(5.9604644775390625e-8));
  const value = v128.bitselect(
    small,
    v128.bitselect(
      i32x4.add(normal, i32x4.splat(BIAS)),
      normal,
      i32x4.ge_u(magnitude, i32x4.splat(0x7c00)),
    ),
    i32x4.lt_u(magnitude, i32x4.splat(0x0400)),
  );
  return v128.or(value, sign);
}
