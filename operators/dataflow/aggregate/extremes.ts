import type { Data, DataType } from 'apache-arrow';
import { numbersOf } from '../../../engine/expressions/values.ts';
import { writeData } from '../../../engine/expressions/write.ts';
import type { ValueType } from '../../../engine/expressions/types.ts';
import { type Accumulator, fixedData, grown } from './accumulator.ts';
import { type Argument, argumentOf } from './argument.ts';

/** Minimum or maximum of a group; null if it has no value. NaN is larger than all numbers. */
abstract class Extreme implements Accumulator {
  protected readonly takesLargest: boolean;
  /** 1 for a group that has a value. */
  protected seen = new Uint8Array(0);

  constructor(takesLargest: boolean) {
    this.takesLargest = takesLargest;
  }

  abstract add(argument: Argument | undefined, codes: Uint32Array, groups: number): void;
  abstract result(groups: number): Data;

  merge([state]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.add(argumentOf(state), codes, groups);
  }

  states(groups: number): Data[] {
    return [this.result(groups)];
  }
}

/** For numbers that are exact in float64: all but 64-bit integers. */
export class ExtremeNumber extends Extreme {
  readonly #type: DataType;
  readonly #valueType: ValueType;
  #best = new Float64Array(0);

  constructor(takesLargest: boolean, type: DataType, valueType: ValueType) {
    super(takesLargest);
    [this.#type, this.#valueType] = [type, valueType];
  }

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    if (argument === undefined) return;
    this.seen = grown(this.seen, groups);
    this.#best = grown(this.#best, groups);
    const values = numbersOf(argument.values);
    if (this.takesLargest) this.#addLargest(values, argument.values.valid, codes);
    else this.#addLeast(values, argument.values.valid, codes);
  }

  #addLeast(values: Float64Array, valid: Uint8Array | undefined, codes: Uint32Array): void {
    const [best, seen] = [this.#best, this.seen];
    for (let i = 0; i < codes.length; i++) {
      if (valid !== undefined && valid[i] === 0) continue;
      const group = codes[i];
      const value = values[i];
      if (seen[group] === 0) {
        seen[group] = 1;
        best[group] = value;
      } else if (value < best[group] || best[group] !== best[group]) best[group] = value;
    }
  }

  #addLargest(values: Float64Array, valid: Uint8Array | undefined, codes: Uint32Array): void {
    const [best, seen] = [this.#best, this.seen];
    for (let i = 0; i < codes.length; i++) {
      if (valid !== undefined && valid[i] === 0) continue;
      const group = codes[i];
      const value = values[i];
      if (seen[group] === 0) {
        seen[group] = 1;
        best[group] = value;
      } else if (value > best[group] || value !== value) best[group] = value;
    }
  }

  result(groups: number): Data {
    const values = grown(this.#best, groups).subarray(0, groups);
    const valid = grown(this.seen, groups).subarray(0, groups);
    const shape = { type: this.#valueType, length: groups, constant: false } as const;
    const written = writeData({ form: 'number', values, valid, ...shape }, groups);
    return written.clone(this.#type);
  }
}

/** For 64-bit types with the order of integers: integers, timestamps, durations. */
export class ExtremeInteger extends Extreme {
  readonly #type: DataType;
  /** Flips the sign bit of an unsigned integer's high half, so that a signed comparison orders it. */
  readonly #flip: number;
  /** (low, high) of group g at 2g, 2g + 1. */
  #best = new Int32Array(0);

  constructor(takesLargest: boolean, type: DataType, isUnsigned: boolean) {
    super(takesLargest);
    [this.#type, this.#flip] = [type, isUnsigned ? 1 << 31 : 0];
  }

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    if (argument === undefined) return;
    const { data } = argument;
    const best = (this.#best = grown(this.#best, 2 * groups));
    const seen = (this.seen = grown(this.seen, groups));
    const { buffer, byteOffset } = data.values as BigInt64Array;
    const halves = new Int32Array(buffer, byteOffset, 2 * codes.length);
    const [hasNulls, flip, largest] = [data.nullCount > 0, this.#flip, this.takesLargest];
    for (let i = 0; i < codes.length; i++) {
      if (hasNulls && !data.getValid(i)) continue;
      const group = codes[i];
      const low = halves[2 * i];
      const high = halves[2 * i + 1];
      const own = high ^ flip;
      const other = best[2 * group + 1] ^ flip;
      const isLess = own < other || (own === other && low >>> 0 < best[2 * group] >>> 0);
      const isSame = own === other && low === best[2 * group];
      if (seen[group] === 1 && (isSame || isLess === largest)) continue;
      seen[group] = 1;
      best[2 * group] = low;
      best[2 * group + 1] = high;
    }
  }

  result(groups: number): Data {
    const { buffer } = grown(this.#best, 2 * groups).slice(0, 2 * groups);
    const values = new (this.#type.ArrayType as unknown as new (memory: ArrayBuffer) => ArrayBufferView)(
      buffer,
    );
    return fixedData(this.#type, values, groups, grown(this.seen, groups).subarray(0, groups));
  }
}
