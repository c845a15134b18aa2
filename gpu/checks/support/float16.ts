/** Float16 as kernels store it: rounding to nearest, ties to even, and bits. */

/** The nearest float16, as a number. */
export function roundToHalf(value: number): number {
  const magnitude = Math.abs(value);
  if (!(magnitude > 0) || magnitude === Infinity) return value;
  const exponent = Math.max(-14, Math.floor(Math.log2(magnitude)));
  const step = 2 ** (exponent - 10);
  const scaled = magnitude / step;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const rounded = (rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor) * step;
  return Math.sign(value) * (rounded > 65504 ? Infinity : rounded);
}

export function halfBits(value: number): number {
  const rounded = roundToHalf(value);
  const sign = rounded < 0 || Object.is(rounded, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(rounded);
  if (magnitude === 0) return sign;
  if (magnitude === Infinity) return sign | 0x7c00;
  const exponent = Math.floor(Math.log2(magnitude));
  if (exponent < -14) return sign | Math.round(magnitude * 2 ** 24);
  return sign | ((exponent + 15) << 10) | Math.round((magnitude / 2 ** exponent - 1) * 1024);
}

export function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

/**
 * The half mirror of a matrix (its float16 copy, DeviceMatrix.half): two numbers in each u32, the first in
 * the lower bits, and an additional last row of zeros.
 */
export function halfMirror(values: Float32Array, stride: number): Uint32Array {
  const words = new Uint32Array((values.length + stride) / 2);
  for (let i = 0; i < values.length; i += 2)
    words[i / 2] = halfBits(values[i]) | (halfBits(values[i + 1]) << 16);
  return words;
}
