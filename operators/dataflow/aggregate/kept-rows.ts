import type { Data, DataType } from 'apache-arrow';
import { joinData, nullData } from '../../../engine/stream/join-data.ts';
import { takeData } from '../../../engine/stream/take-data.ts';
import { grown } from './accumulator.ts';

/**
 * The stored columns are compacted when they have more than one unused row for each group, plus this number.
 */
const SPARE_ROWS = 1 << 17;

/** One value for each group, of any type, kept in the columns it was read from. */
export class KeptRows {
  readonly #type: DataType;
  #chunks: Data[] = [];
  /** Index of each chunk's first value among all values. */
  #starts: number[] = [];
  #rows = 0;
  /** Row + 1 of each group's value; 0 if it has none. */
  #at = new Uint32Array(0);
  #groups = 0;

  constructor(type: DataType) {
    this.#type = type;
  }

  get chunks(): readonly Data[] {
    return this.#chunks;
  }

  /** Chunk and row of a group's value; undefined if it has none. */
  find(group: number): readonly [chunk: number, row: number] | undefined {
    if (group >= this.#groups || this.#at[group] === 0) return undefined;
    const row = this.#at[group] - 1;
    let [low, high] = [0, this.#starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle] <= row) low = middle;
      else high = middle;
    }
    return [low, row - this.#starts[low]];
  }

  /** Replaces groups' values by values of a batch at some positions. True if the chunks were rebuilt. */
  replace(data: Data, positions: Uint32Array, codes: Uint32Array, groups: number): boolean {
    this.#at = grown(this.#at, groups);
    this.#groups = groups;
    if (positions.length === 0) return false;
    this.#chunks.push(takeData(data, positions));
    this.#starts.push(this.#rows);
    for (let i = 0; i < positions.length; i++) this.#at[codes[positions[i]]] = this.#rows + i + 1;
    this.#rows += positions.length;
    if (this.#rows < 2 * groups + SPARE_ROWS) return false;
    const found = new Uint32Array(groups);
    let kept = 0;
    for (let group = 0; group < groups; group++) if (this.#at[group] > 0) found[kept++] = this.#at[group] - 1;
    this.#chunks = [takeData(joinData(this.#type, this.#chunks), found.subarray(0, kept))];
    [this.#starts, this.#rows] = [[0], kept];
    for (let group = 0, row = 0; group < groups; group++) if (this.#at[group] > 0) this.#at[group] = ++row;
    return true;
  }

  /** Values by group; null if a group has none. */
  values(groups: number): Data {
    this.#at = grown(this.#at, groups);
    if (this.#rows === 0) return nullData(this.#type, groups);
    const positions = new Uint32Array(groups);
    for (let group = 0; group < groups; group++) positions[group] = Math.max(this.#at[group], 1) - 1;
    const values = takeData(joinData(this.#type, this.#chunks), positions);
    for (let group = 0; group < groups; group++) if (this.#at[group] === 0) values.setValid(group, false);
    return values;
  }
}
