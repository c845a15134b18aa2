import { Int32, vectorFromArray } from 'apache-arrow';
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  loadModel,
  type SavedModel,
  saveModel,
  type StoredModel,
} from '../../connectors/model/model-store.ts';
import { DataError } from '../../engine/errors.ts';
import type { MakeAttack } from './attack.ts';

const MIXES = 20;
const files = ['userFactors', 'itemFactors', 'itemCounts', 'userMeans', 'itemMeans'].map(
  (folder) => `${folder}/part-00000.parquet`,
);
const METADATA = 'metadata/part-00000';

/**
 * Mixes the files of two models of the same users, items and rank, as a copy does that is cut off half-way: the
 * mixture is refused, or it is one of the two models.
 */
export const swappedFiles: MakeAttack = ({ folder, random, count, find }) => ({
  name: 'swapped files',
  round: async () => {
    const [users, items, rank] = [1 + random(60), 1 + random(30), 1 + random(12)];
    const paths = ['first', 'second'].map((name) => join(folder, name));
    const texts: string[] = [];
    for (const path of paths) {
      const number = () => random(2 ** 20) / 1024;
      await saveModel(path, anyModel(users, items, rank, number), { overwrite: true });
      texts.push(textOf(await loadModel(path)));
    }
    const mixed = join(folder, 'mixed');
    for (let mix = 0; mix < MIXES; mix++) {
      rmSync(mixed, { recursive: true, force: true });
      cpSync(paths[0], mixed, { recursive: true });
      const taken = [...files, METADATA].filter(() => random(2) === 0);
      for (const file of taken) copyFileSync(join(paths[1], file), join(mixed, file));
      const last = taken.at(-1);
      if (last !== undefined && random(3) === 0) {
        const bytes = readFileSync(join(mixed, last));
        writeFileSync(join(mixed, last), bytes.subarray(0, random(bytes.length)));
      }
      const outcome = await loadModel(mixed).then(textOf, (error: unknown) => error);
      if (outcome instanceof DataError && outcome.message.includes(mixed)) count('refused');
      else if (outcome === texts[0] || outcome === texts[1]) count('one of the two');
      else find(`${taken.join(', ')} of the second model: ${String(outcome).slice(0, 500)}`);
    }
  },
});

function anyModel(users: number, items: number, rank: number, number: () => number): SavedModel {
  const numbers = (length: number) => Float32Array.from({ length }, number);
  const ids = (length: number) =>
    vectorFromArray(
      Array.from({ length }, (_, i) => i),
      new Int32(),
    );
  return {
    rank,
    columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
    coldStartStrategy: 'nan',
    factorflow: {},
    userIds: ids(users),
    userFactors: numbers(users * rank),
    itemIds: ids(items),
    itemFactors: numbers(items * rank),
    itemCounts: Uint32Array.from(numbers(items)),
    means: { users: numbers(users), items: numbers(items) },
  };
}

function textOf({ userIds, itemIds, ...rest }: StoredModel): string {
  return JSON.stringify([[...userIds], [...itemIds], rest]);
}
