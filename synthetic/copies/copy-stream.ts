import type { Schema } from 'apache-arrow';
import type { CopyGroup, CopyLayout } from './copies.ts';
import { copyBatch } from './copy-batch.ts';
import type { FolderBatch } from '../parts/part-files.ts';

/** Ratings that can be had again and again, the same ones in the same order. */
export type ReplayableBatches = () => AsyncIterable<FolderBatch>;

/** One copy after the other, each in the order of the source. */
export async function* copyStream(source: ReplayableBatches, schema: Schema, layout: CopyLayout, { first, end }: CopyGroup): AsyncGenerator<FolderBatch> {
  for (let copy = first; copy < end; copy++) {
    for await (const { part, batch } of source()) yield { part, batch: copyBatch(batch, schema, layout, copy) };
  }
}
