import type { KeptPartition, RowPart } from '../pipeline/row-unit.ts';
import type { DividedRows } from '../pipeline/row-tasks.ts';

/** The rows that one task has divided among the parts. It stores consecutive parts in one partition. */
interface DividedTask {
  readonly partitions: readonly KeptPartition[];
  /** First part of each partition. */
  readonly firsts: readonly number[];
  /** Bytes of each part. */
  readonly bytes: Float64Array;
  /** Partition number of each part. */
  readonly places: Uint8Array;
}

/**
 * Finds the rows of each part of an exchange in the partitions that the tasks made. Its memory is a few bytes
 * for each part of each task.
 */
export class DividedParts {
  /** Bytes of each part. */
  readonly bytes: Float64Array;
  readonly #tasks: DividedTask[] = [];

  constructor(parts: number) {
    this.bytes = new Float64Array(parts);
  }

  get parts(): number {
    return this.bytes.length;
  }

  get total(): number {
    return this.bytes.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Adds the rows of the next task. */
  add(partitions: readonly KeptPartition[], { bytes, firsts }: DividedRows['divided']): void {
    const places = new Uint8Array(this.parts);
    for (const [number, first] of firsts.entries()) places.fill(number, first);
    this.#tasks.push({ partitions, firsts, bytes: Float64Array.from(bytes), places });
    for (const [part, own] of bytes.entries()) this.bytes[part] += own;
  }

  /** The rows of the parts [first, end): part by part, and within a part in the order of tasks. */
  ofParts(first: number, end: number): RowPart[] {
    return Array.from({ length: end - first }, (_, i) => this.#ofPart(first + i)).flat();
  }

  #ofPart(part: number): RowPart[] {
    return this.#tasks.flatMap(({ partitions, firsts, bytes, places }) => {
      const place = places[part];
      return bytes[part] === 0
        ? []
        : [{ of: partitions[place], piece: part - firsts[place], bytes: bytes[part] }];
    });
  }
}
