/**
 * Draws rows of normally distributed random numbers, each row scaled to a given length; the plain version is
 * cpu/reference/draw.ts. Before the scaling, a number depends only on the seed, its row's 64-bit key and its
 * index in the row. The arithmetic is float64 and gives the same
 * bits with and without relaxed SIMD. The last bits of a float64 differ from the reference's, because ln, sin
 * and cos are computed here, with the polynomials of fdlibm (Sun's C library of mathematics).
 */
import { VECTOR, WORD } from './simd';

const GOLDEN: i32 = 0x9e3779b9;

/** MurmurHash3's fmix32 of four numbers. */
@inline
function finalize(h: v128): v128 {
  h = i32x4.mul(v128.xor(h, i32x4.shr_u(h, 16)), i32x4.splat(0x85ebca6b));
  h = i32x4.mul(v128.xor(h, i32x4.shr_u(h, 13)), i32x4.splat(0xc2b2ae35));
  return v128.xor(h, i32x4.shr_u(h, 16));
}

/** Converts the first two of four u32 to numbers in (0, 1). */
@inline
function uniform(numbers: v128): v128 {
  return f64x2.mul(
    f64x2.add(f64x2.convert_low_i32x4_u(numbers), f64x2.splat(0.5)),
    f64x2.splat(2.3283064365386963e-10),
  );
}

/** c + a x */
@inline
function step(a: v128, x: v128, c: f64): v128 {
  return f64x2.add(f64x2.splat(c), f64x2.mul(a, x));
}

/**
 * ln x for x > 0 that is not subnormal. With x = 2^k (1 + f) and 1 + f in [√½, √2), the result is k ln 2 + ln
 * (1 + f), and ln (1 + f) is a polynomial in s = f / (2 + f).
 */
@inline
function logarithm(x: v128): v128 {
  const power = v128.and(i64x2.add(x, i64x2.splat(0x00095f6400000000)), i64x2.splat(0x7ff0000000000000));
  const f = f64x2.sub(i64x2.sub(x, i64x2.sub(power, i64x2.splat(0x3ff0000000000000))), f64x2.splat(1));
  const exponents = i64x2.shr_u(power, 52);
  const k = f64x2.sub(
    f64x2.convert_low_i32x4_s(v128.shuffle<i32>(exponents, exponents, 0, 2, 0, 2)),
    f64x2.splat(1023),
  );
  const half = f64x2.mul(f64x2.splat(0.5), f64x2.mul(f, f));
  const s = f64x2.div(f, f64x2.add(f64x2.splat(2), f));
  const z = f64x2.mul(s, s);
  const w = f64x2.mul(z, z);
  const even = f64x2.mul(
    w,
    step(step(f64x2.splat(1.531383769920937332e-1), w, 2.222219843214978396e-1), w, 3.999999999940941908e-1),
  );
  const odd = f64x2.mul(
    z,
    step(
      step(
        step(f64x2.splat(1.479819860511658591e-1), w, 1.818357216161805012e-1),
        w,
        2.857142874366239149e-1,
      ),
      w,
      6.66666666666673513e-1,
    ),
  );
  const small = f64x2.add(
    f64x2.mul(s, f64x2.add(half, f64x2.add(odd, even))),
    f64x2.mul(k, f64x2.splat(1.90821492927058770002e-10)),
  );
  return f64x2.sub(f64x2.mul(k, f64x2.splat(6.9314718036912381649e-1)), f64x2.sub(f64x2.sub(half, small), f));
}

/** sin y, |y| <= π / 4, z = y² */
@inline
function sine(y: v128, z: v128): v128 {
  const high = step(
    step(
      step(
        step(f64x2.splat(1.58969099521155010221e-10), z, -2.50507602534068634195e-8),
        z,
        2.75573137070700676789e-6,
      ),
      z,
      -1.98412698298579493134e-4,
    ),
    z,
    8.33333333332248946124e-3,
  );
  return f64x2.add(y, f64x2.mul(f64x2.mul(z, y), step(high, z, -1.66666666666666324348e-1)));
}

/** cos y, |y| <= π / 4, z = y² */
@inline
function cosine(z: v128): v128 {
  const high = step(
    step(
      step(
        step(
          step(f64x2.splat(-1.13596475577881948265e-11), z, 2.0875723212981748279e-9),
          z,
          -2.75573143513906633035e-7,
        ),
        z,
        2.48015872894767294178e-5,
      ),
      z,
      -1.38888888888741095749e-3,
    ),
    z,
    4.16666666666666019037e-2,
  );
  const half = f64x2.mul(f64x2.splat(0.5), z);
  const w = f64x2.sub(f64x2.splat(1), half);
  return f64x2.add(
    w,
    f64x2.add(f64x2.sub(f64x2.sub(f64x2.splat(1), w), half), f64x2.mul(f64x2.mul(z, z), high)),
  );
}

/**
 * The sign bits for two float64: set where bit 1 of the whole number n is set. Each 64-bit lane contains its
 * n twice, as int32.
 */
@inline
function signOfQuadrant(n: v128): v128 {
  return i64x2.shl(i64x2.shr_u(n, 1), 63);
}

/**
 * Makes four normal numbers from four u32 by the Box-Muller transform and writes them to `out` as float64.
 * The u32 are two pairs (u, v), and each pair gives √(-2 ln u) cos 2πv and √(-2 ln u) sin 2πv.
 */
@inline
function storePairs(numbers: v128, out: usize): void {
  const radius = f64x2.sqrt(
    f64x2.mul(f64x2.splat(-2), logarithm(uniform(v128.shuffle<i32>(numbers, numbers, 0, 2, 0, 2)))),
  );
  // 2πv = (n + r) π/2 with a whole n and |r| <= ½, both exact.
  const quarters = f64x2.mul(f64x2.splat(4), uniform(v128.shuffle<i32>(numbers, numbers, 1, 3, 1, 3)));
  const whole = f64x2.nearest(quarters);
  const y = f64x2.mul(f64x2.sub(quarters, whole), f64x2.splat(1.5707963267948966));
  const z = f64x2.mul(y, y);
  const sin = sine(y, z);
  const cos = cosine(z);
  const quadrant = i32x4.trunc_sat_f64x2_s_zero(whole);
  // Copies n, the quadrant of each angle, into both halves of its 64-bit lane.
  const n = v128.shuffle<i32>(quadrant, quadrant, 0, 0, 1, 1);
  const odd = i32x4.eq(v128.and(n, i32x4.splat(1)), i32x4.splat(1));
  const first = v128.xor(v128.bitselect(sin, cos, odd), signOfQuadrant(i32x4.add(n, i32x4.splat(1))));
  const second = v128.xor(v128.bitselect(cos, sin, odd), signOfQuadrant(n));
  const x0 = f64x2.mul(radius, first);
  const x1 = f64x2.mul(radius, second);
  v128.store(out, v128.shuffle<f64>(x0, x1, 0, 2));
  v128.store(out, v128.shuffle<f64>(x0, x1, 1, 3), VECTOR);
}

/**
 * Draws rows of `rank` normal numbers each. A row is scaled to the length `norm`, and then `shift` is added
 * to each of its numbers.
 *
 *     low, high          Uint32[rows], the keys
 *     seedLow, seedHigh  mixed into the keys
 *     absolute           1 for factors that are not negative
 *     output             rows of `stride` numbers: the factors start at `first`, the others become 0
 *     oneAt              index in each row of a number that becomes 1; negative: none
 *     work               12 bytes per factor, with `rank` rounded up to a multiple of 4
 */
export function drawRows(
  low: usize,
  high: usize,
  rows: i32,
  seedLow: u32,
  seedHigh: u32,
  rank: i32,
  absolute: i32,
  norm: f64,
  shift: f64,
  output: usize,
  stride: i32,
  first: i32,
  oneAt: i32,
  work: usize,
): void {
  const counters = work + 8 * ((<usize>rank + 3) & ~3);
  for (let k = 0; k < rank; k += 4) {
    const four = i32x4.add(i32x4.splat(k), i32x4(0, 1, 2, 3));
    v128.store(counters + ((<usize>k) << 2), finalize(i32x4.add(four, i32x4.splat(GOLDEN))));
  }
  for (let row = 0; row < rows; row++, output += <usize>stride * WORD) {
    const keyLow = i32x4.splat(load<u32>(low + ((<usize>row) << 2)) ^ seedLow);
    const keyHigh = i32x4.splat(load<u32>(high + ((<usize>row) << 2)) ^ seedHigh);
    let squares: f64 = 0;
    for (let k = 0; k < rank; k += 4) {
      const mixed = finalize(v128.xor(v128.load(counters + ((<usize>k) << 2)), keyLow));
      const pairs = work + ((<usize>k) << 3);
      storePairs(finalize(i32x4.add(mixed, keyHigh)), pairs);
      for (let pair = k; pair < min(k + 4, rank); pair += 2) {
        const x = load<f64>(work + ((<usize>pair) << 3));
        const y = pair + 1 < rank ? load<f64>(work + ((<usize>pair) << 3), 8) : 0;
        squares += x * x + y * y;
      }
    }
    const scale = norm / Math.sqrt(squares);
    memory.fill(output, 0, <usize>stride * WORD);
    const factors = output + <usize>first * WORD;
    for (let k = 0; k < rank; k++) {
      const x = load<f64>(work + ((<usize>k) << 3));
      store<f32>(factors + ((<usize>k) << 2), <f32>((absolute ? Math.abs(x) : x) * scale + shift));
    }
    if (oneAt >= 0) store<f32>(output + ((<usize>oneAt) << 2), 1);
  }
}
