/**
 * Comparisons of numbers with a constant. V8 compiles `count += Number(a < b)` to a jump, and random values
 * mispredict half of the jumps; here the comparison is computed as a number, without a jump.
 *
 *     values       n numbers
 *     among        Uint32[n], the positions to test; 0 for the rows base, base + 1, ...
 *     test         0: value < constant, 1: value <= constant, 2: value = constant
 *     inverted     1 to select the rows for which the test is false
 *     out          Uint32, receives the selected positions; the function returns their number
 */

export function selectF64(
  values: usize,
  among: usize,
  n: u32,
  base: u32,
  constant: f64,
  test: u32,
  inverted: u32,
  out: usize,
): u32 {
  return select<f64>(values, among, n, base, constant, test, inverted, out);
}

export function selectF32(
  values: usize,
  among: usize,
  n: u32,
  base: u32,
  constant: f32,
  test: u32,
  inverted: u32,
  out: usize,
): u32 {
  return select<f32>(values, among, n, base, constant, test, inverted, out);
}

export function selectI32(
  values: usize,
  among: usize,
  n: u32,
  base: u32,
  constant: i32,
  test: u32,
  inverted: u32,
  out: usize,
): u32 {
  return select<i32>(values, among, n, base, constant, test, inverted, out);
}

/** Each test has its own loop, one for all rows and one for some. */
@inline
function select<T>(
  values: usize,
  among: usize,
  n: u32,
  base: u32,
  constant: T,
  test: u32,
  inverted: u32,
  out: usize,
): u32 {
  if (among == 0) {
    if (test == 0) return loop<T>(values, 0, n, base, constant, 0, inverted, out);
    if (test == 1) return loop<T>(values, 0, n, base, constant, 1, inverted, out);
    return loop<T>(values, 0, n, base, constant, 2, inverted, out);
  }
  if (test == 0) return loop<T>(values, among, n, 0, constant, 0, inverted, out);
  if (test == 1) return loop<T>(values, among, n, 0, constant, 1, inverted, out);
  return loop<T>(values, among, n, 0, constant, 2, inverted, out);
}

@inline
function loop<T>(
  values: usize,
  among: usize,
  n: u32,
  base: u32,
  constant: T,
  test: u32,
  inverted: u32,
  out: usize,
): u32 {
  let at = out;
  for (let i: u32 = 0; i < n; i++) {
    const value = load<T>(values + <usize>i * sizeof<T>());
    const row = among != 0 ? load<u32>(among + (<usize>i << 2)) : base + i;
    const isTrue = <u32>(test == 0 ? value < constant : test == 1 ? value <= constant : value == constant);
    store<u32>(at, row);
    at += <usize>((isTrue ^ inverted) << 2);
  }
  return <u32>((at - out) >> 2);
}
