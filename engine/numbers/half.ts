const bits = new Uint32Array(1);
const number = new Float32Array(bits.buffer);

/**
 * The bits of float32 numbers rounded to float16, to nearest, ties to even. Numbers above 65,504 that do not
 * round to it become infinite.
 */
export function toHalf(values: Float32Array): Uint16Array {
  const halves = new Uint16Array(values.length);
  for (let i = 0; i < values.length; i++) {
    number[0] = values[i];
    halves[i] = halfOf(bits[0]);
  }
  return halves;
}

function halfOf(single: number): number {
  const sign = (single >>> 16) & 0x8000;
  const magnitude = single & 0x7fff_ffff;
  if (magnitude > 0x7f80_0000) return sign | 0x7e00;
  // From 65,520 on numbers round to infinity.
  if (magnitude >= 0x477f_f000) return sign | 0x7c00;
  if (magnitude >= 0x3880_0000) return sign | rounded(magnitude - 0x3800_0000, 13);
  // Below 2^-14 the exponent is constant, and the implicit bit moves into the fraction.
  const shift = 126 - (magnitude >>> 23);
  return shift > 24 ? sign : sign | rounded((magnitude & 0x7f_ffff) | 0x80_0000, shift);
}

/** value / 2^shift, to nearest, ties to even. */
function rounded(value: number, shift: number): number {
  const whole = value >>> shift;
  const rest = value & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  return whole + (rest > half || (rest === half && (whole & 1) === 1) ? 1 : 0);
}

/** The number that a float16's bits represent. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

let numbers: Float32Array | undefined;

/** The numbers that float16 bits represent, in `values`. */
export function fromHalves(
  halves: Uint16Array,
  values: Float32Array = new Float32Array(halves.length),
): Float32Array {
  numbers ??= Float32Array.from({ length: 1 << 16 }, (_, bits) => fromHalf(bits));
  for (let i = 0; i < halves.length; i++) values[i] = numbers[halves[i]];
  return values;
}
