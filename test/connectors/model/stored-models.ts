/** Small models to store, and the files of a folder. */
import { makeVector } from 'apache-arrow';
import type { Vector } from 'apache-arrow';
import { join } from 'node:path';
import type { StoredModel } from '../../../connectors/model/model-store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

export const root = temporaryFolder();
export const path = (name: string) => join(root, name);
export const rank = 4;

export function factors(rows: number, width = rank): Float32Array {
  return Float32Array.from({ length: rows * width }, (_, i) => Math.fround(Math.sin(i + rows)));
}

export function model(userIds: Vector, itemIds: Vector, more: Partial<StoredModel> = {}): StoredModel {
  return {
    rank,
    userIds,
    userFactors: factors(userIds.length),
    itemIds,
    itemFactors: factors(itemIds.length),
    columns: { user: 'userId', item: 'movieId', rating: 'stars', prediction: 'guess' },
    coldStartStrategy: 'drop',
    factorflow: { algorithm: 'als', training: { regParam: 0.05, maxIter: 3 }, metrics: [1, 2.5] },
    ...more,
  };
}

export const users = makeVector(Int32Array.of(-5, 1, 2, 3, 900));
export const items = makeVector(Int32Array.of(10, 20, 30));
