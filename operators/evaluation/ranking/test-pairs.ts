import type { RecordBatch } from 'apache-arrow';
import { keysFromData, keyTypeOf } from '../../../engine/keys/arrow-keys.ts';
import { keyCount, takeKeys } from '../../../engine/keys/key-column.ts';
import { type KeyTable, UNKNOWN_KEY } from '../../../engine/keys/tables/key-table.ts';
import { makeKeyTable } from '../../../engine/keys/tables/make-key-table.ts';
import { batchStream, type BatchStream } from '../../../engine/stream/stream.ts';
import { takeRows } from '../../dataflow/take-rows.ts';
import type { FactorModel } from '../../serving/factor-model.ts';

/** Counts test pairs with a user or item that the model does not know. */
export class ColdPairs {
  #users: KeyTable | undefined;
  /** Number of pairs with unknown items, by user. */
  readonly ofUsers: Int32Array;

  constructor({ users }: FactorModel) {
    this.ofUsers = new Int32Array(keyCount(users));
  }

  /** Number of distinct unknown users. */
  get userCount(): number {
    return this.#users?.size ?? 0;
  }

  readonly see = (batch: RecordBatch, userCodes: Uint32Array, itemCodes: Uint32Array): void => {
    const unknown: number[] = [];
    for (let i = 0; i < userCodes.length; i++) {
      if (userCodes[i] === UNKNOWN_KEY) unknown.push(i);
      else if (itemCodes[i] === UNKNOWN_KEY) this.ofUsers[userCodes[i]]++;
    }
    if (unknown.length === 0) return;
    const [data] = batch.data.children;
    const type = keyTypeOf(data.type, 'user');
    this.#users ??= makeKeyTable(type);
    this.#users.add(takeKeys(keysFromData(data, type), unknown), new Uint32Array(unknown.length));
  };
}

/**
 * Counts test pairs while they are read, and removes those rated below the minimum: they do not count as
 * relevant.
 */
export class TestPairs {
  readonly #minRating: number | undefined;
  pairs = 0;
  irrelevant = 0;

  constructor(minRating: number | undefined) {
    this.#minRating = minRating;
  }

  relevant(input: BatchStream): BatchStream {
    return batchStream(input.schema, this.#select(input));
  }

  async *#select(input: BatchStream) {
    for await (const batch of input) {
      this.pairs += batch.numRows;
      const ratings = batch.getChild('rating')?.data[0].values as Float32Array | undefined;
      if (this.#minRating === undefined || ratings === undefined) {
        yield batch;
        continue;
      }
      const least = this.#minRating;
      const positions = Uint32Array.from({ length: batch.numRows }, (_, i) => i).filter(
        (i) => ratings[i] >= least,
      );
      this.irrelevant += batch.numRows - positions.length;
      if (positions.length > 0) yield positions.length === batch.numRows ? batch : takeRows(batch, positions);
    }
  }
}
