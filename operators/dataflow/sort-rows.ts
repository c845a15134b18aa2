import type { RecordBatch, Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { printKeys, type SortKey, SortKeys } from '../../engine/sorting/sort-keys.ts';
import { sortedBatches } from '../../engine/sorting/sorted-batches.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { RowOperator } from './row-operator.ts';

/** Sorts all rows by some keys. The sort is stable. */
export class SortRows extends RowOperator {
  readonly name = 'sort-rows';
  readonly takesAllRows = true;
  readonly keepsBatches = true;
  readonly keys: readonly SortKey[];

  constructor(keys: readonly SortKey[]) {
    super([keys]);
    requireKeys(keys);
    this.keys = keys;
  }

  describe(): JsonObject {
    return { by: printKeys(this.keys) };
  }

  override outputSchema(input: Schema): Schema {
    requireOrder(input, this.keys);
    return input;
  }

  protected override readColumns(): readonly string[] {
    return this.keys.map(({ column }) => column);
  }

  protected async *batches(input: BatchStream) {
    const batches: RecordBatch[] = [];
    for await (const batch of input) if (batch.numRows > 0) batches.push(batch);
    yield* sortedBatches(input.schema, batches, this.keys);
  }
}

/** Throws UsageError without keys. */
export function requireKeys(keys: readonly SortKey[]): void {
  if (keys.length === 0)
    throw new UsageError('sorting takes one key or more', { advice: "Name a column: orderBy('user')" });
}

/** Throws UsageError for a key that does not exist or has no order. */
export function requireOrder(schema: Schema, keys: readonly SortKey[]): void {
  void new SortKeys(schema, keys);
}
