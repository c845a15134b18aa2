import { bytesOfBase64 } from '../base64.ts';
import { compare, type CompareFunctions } from './generated/compare-wasm.ts';

/** Numbers as a column stores them, in a form that the loops of assembly/compare.ts take. */
export type PlainNumbers = Float64Array | Float32Array | Int32Array;

/**
 * A comparison of values with a constant, such as `value < constant`. `inverted`: 1 to select the values for
 * which it is false. NaN is above all numbers.
 */
export interface Test {
  readonly test: 'less' | 'atMost' | 'equal';
  readonly inverted: 0 | 1;
}

const tests = { less: 0, atMost: 1, equal: 2 } as const;

/** Rows that are compared at a time: values, positions and results fit in the first-level cache. */
const BLOCK = 2048;
const AMONG = BLOCK * 8;
const OUT = AMONG + BLOCK * 4;
const WASM_PAGE = 1 << 16;

/** The loops and the memory that they use. */
class CompareKernel {
  readonly #functions: CompareFunctions;
  readonly #f64: Float64Array;
  readonly #f32: Float32Array;
  readonly #i32: Int32Array;
  readonly #among: Uint32Array;
  readonly #out: Uint32Array;

  constructor() {
    const memory = new WebAssembly.Memory({ initial: Math.ceil((OUT + BLOCK * 4) / WASM_PAGE) });
    const module = new WebAssembly.Module(bytesOfBase64(compare));
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    this.#functions = exports as unknown as CompareFunctions;
    const { buffer } = memory;
    this.#f64 = new Float64Array(buffer, 0, BLOCK);
    this.#f32 = new Float32Array(buffer, 0, BLOCK);
    this.#i32 = new Int32Array(buffer, 0, BLOCK);
    this.#among = new Uint32Array(buffer, AMONG, BLOCK);
    this.#out = new Uint32Array(buffer, OUT, BLOCK);
  }

  select(
    values: PlainNumbers,
    constant: number,
    { test, inverted }: Test,
    out: Uint32Array,
    among?: Uint32Array,
  ): number {
    const { block, select } = this.#formOf(values);
    const size = among?.length ?? values.length;
    let count = 0;
    for (let from = 0; from < size; from += BLOCK) {
      const n = Math.min(BLOCK, size - from);
      if (among === undefined) block.set(values.subarray(from, from + n));
      else {
        const rows = among.subarray(from, from + n);
        this.#among.set(rows);
        for (let i = 0; i < n; i++) block[i] = values[rows[i]];
      }
      const some = select(0, among ? AMONG : 0, n, from, constant, tests[test], inverted, OUT);
      out.set(some === BLOCK ? this.#out : this.#out.subarray(0, some), count);
      count += some;
    }
    return count;
  }

  #formOf(values: PlainNumbers): {
    readonly block: PlainNumbers;
    readonly select: CompareFunctions['selectF64'];
  } {
    const { selectF64, selectF32, selectI32 } = this.#functions;
    if (values instanceof Float32Array) return { block: this.#f32, select: selectF32 };
    if (values instanceof Int32Array) return { block: this.#i32, select: selectI32 };
    return { block: this.#f64, select: selectF64 };
  }
}

let kernel: CompareKernel | undefined;

/**
 * Writes the positions of the values for which the test is true, ascending, and returns their number.
 * `among`: the positions to test; default: all. The constant must be a value of the column's type.
 */
export function selectNumbers(...given: Parameters<CompareKernel['select']>): number {
  kernel ??= new CompareKernel();
  return kernel.select(...given);
}
