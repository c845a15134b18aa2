import type { Data } from 'apache-arrow';
import { type Accumulator, grown, numberData, numbersIn } from './accumulator.ts';
import type { Argument } from './argument.ts';

/** Counts rows by group. */
export class Counts {
  #counts = new Float64Array(0);

  /** `valid`: a byte a row, 0 for a row that does not count. */
  add(valid: Uint8Array | undefined, codes: Uint32Array, groups: number): void {
    const counts = (this.#counts = grown(this.#counts, groups));
    if (valid === undefined) for (let i = 0; i < codes.length; i++) counts[codes[i]]++;
    else for (let i = 0; i < codes.length; i++) counts[codes[i]] += valid[i];
  }

  merge(state: Data, codes: Uint32Array, groups: number): void {
    const [counts, added] = [(this.#counts = grown(this.#counts, groups)), numbersIn(state)];
    for (let i = 0; i < codes.length; i++) counts[codes[i]] += added[i];
  }

  of(groups: number): Float64Array {
    return (this.#counts = grown(this.#counts, groups));
  }

  data(groups: number): Data {
    return numberData('int64', this.of(groups), groups);
  }
}

/** Rows of a group, or its values that are not null. */
export class Count implements Accumulator {
  readonly #counts = new Counts();

  add(argument: Argument | undefined, codes: Uint32Array, groups: number): void {
    this.#counts.add(argument?.values.valid, codes, groups);
  }

  merge([state]: readonly Data[], codes: Uint32Array, groups: number): void {
    this.#counts.merge(state, codes, groups);
  }

  states(groups: number): Data[] {
    return [this.result(groups)];
  }

  result(groups: number): Data {
    return this.#counts.data(groups);
  }
}
