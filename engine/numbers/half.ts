import { bytesOfBase64 } from '../base64.ts';
import { half, type HalfFunctions } from './generated/half-wasm.ts';

/** From this many numbers on the kernel is faster than a loop here. */
const MANY = 64;

let made: { readonly kernel: HalfKernel | undefined } | undefined;

/** The kernel, if there is one, and it pays for so many numbers. */
function kernelFor(count: number): HalfKernel | undefined {
  if (count < MANY) return undefined;
  made ??= { kernel: HalfKernel.make() };
  return made.kernel;
}

/**
 * The bits of float32 numbers rounded to float16, to nearest, ties to even. Numbers above 65,504 that do not
 * round to it become infinite. `halves`: memory for the result.
 */
export function toHalf(
  values: Float32Array,
  halves: Uint16Array = new Uint16Array(values.length),
): Uint16Array {
  const kernel = kernelFor(values.length);
  if (kernel) kernel.round(values, halves, false);
  else {
    const bits = new Int32Array(values.buffer, values.byteOffset, values.length);
    for (let i = 0; i < bits.length; i++) halves[i] = halfOf(bits[i]);
  }
  return halves;
}

/** Rounds numbers to float16 in place, and writes their bits to `halves`; the same numbers as by `toHalf`. */
export function roundToHalf(values: Float32Array, halves: Uint16Array): void {
  const kernel = kernelFor(values.length);
  if (kernel) return kernel.round(values, halves, true);
  toHalf(values, halves);
  for (let i = 0; i < halves.length; i++) values[i] = fromHalf(halves[i]);
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
  const kernel = kernelFor(halves.length);
  if (kernel) kernel.widen(halves, values);
  else {
    numbers ??= Float32Array.from({ length: 1 << 16 }, (_, bits) => fromHalf(bits));
    for (let i = 0; i < halves.length; i++) values[i] = numbers[halves[i]];
  }
  return values;
}

/** Copies numbers, or the numbers that float16 bits represent, into memory of the same length. */
export function copyNumbers(from: Float32Array | Uint16Array, to: Float32Array): void {
  if (from instanceof Uint16Array) fromHalves(from, to);
  else to.set(from);
}

/** The numbers themselves, or the numbers that float16 bits represent, in new memory. */
export function numbersOf(values: Float32Array | Uint16Array): Float32Array {
  return values instanceof Uint16Array ? fromHalves(values) : values;
}

/** Numbers that are converted at a time: both forms fit in the first-level cache. */
const BLOCK = 2048;
const HALVES = 4 * BLOCK;
const WASM_PAGE = 1 << 16;

/** The loops of assembly/half.ts and the memory that they use. */
class HalfKernel {
  readonly #functions: HalfFunctions;
  readonly #values: Float32Array;
  readonly #halves: Uint16Array;

  private constructor() {
    const memory = new WebAssembly.Memory({ initial: Math.ceil((HALVES + 2 * BLOCK) / WASM_PAGE) });
    const module = new WebAssembly.Module(bytesOfBase64(half));
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    this.#functions = exports as unknown as HalfFunctions;
    this.#values = new Float32Array(memory.buffer, 0, BLOCK);
    this.#halves = new Uint16Array(memory.buffer, HALVES, BLOCK);
  }

  /** Undefined where WebAssembly has no SIMD or a page's policy forbids it. */
  static make(): HalfKernel | undefined {
    try {
      return new HalfKernel();
    } catch {
      return undefined;
    }
  }

  /** Writes the bits of rounded values to `halves`; with `inPlace` the rounded values over the values too. */
  round(values: Float32Array, halves: Uint16Array, inPlace: boolean): void {
    for (let from = 0; from < values.length; from += BLOCK) {
      const to = Math.min(values.length, from + BLOCK);
      this.#values.set(values.subarray(from, to));
      this.#functions.roundToHalves(0, HALVES, (to - from + 7) & ~7);
      halves.set(this.#halves.subarray(0, to - from), from);
      if (inPlace) values.set(this.#values.subarray(0, to - from), from);
    }
  }

  widen(halves: Uint16Array, values: Float32Array): void {
    for (let from = 0; from < halves.length; from += BLOCK) {
      const to = Math.min(halves.length, from + BLOCK);
      this.#halves.set(halves.subarray(from, to));
      this.#functions.widenHalves(HALVES, 0, (to - from + 7) & ~7);
      values.set(this.#values.subarray(0, to - from), from);
    }
  }
}

/** Decimal digits that identify any float32. */
const MOST_DIGITS = 9;

/**
 * The number with the fewest decimal digits that rounds to the same float32; the value itself if it is not a
 * float32.
 */
export function shortestFloat32(value: number): number {
  if (Math.fround(value) !== value) return value;
  for (let digits = 1; digits < MOST_DIGITS; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
