import { bytesOfBase64 } from '../base64.ts';
import { half, type HalfFunctions } from './generated/half-wasm.ts';

/** Numbers that are converted at a time: both forms fit in the first-level cache. */
const BLOCK = 2048;
const HALVES = 4 * BLOCK;
const WASM_PAGE = 1 << 16;

/** The loops of assembly/half.ts and the memory that they use. */
export class HalfKernel {
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
