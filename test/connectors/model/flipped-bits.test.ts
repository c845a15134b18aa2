/** A flipped bit anywhere in a model's files is an error, or leaves the model as it was. */
import { Int32, Utf8, vectorFromArray } from 'apache-arrow';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { loadModel, saveModel, type StoredModel } from '../../../connectors/model/model-store.ts';
import { DataError } from '../../../engine/errors.ts';
import { isDeep } from '../../support/deep.ts';
import { outcome, random } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const model = join(temporaryFolder(), 'model');

beforeAll(() =>
  saveModel(model, {
    rank: 3,
    columns: { user: 'u', item: 'i', rating: 'r', prediction: 'p' },
    coldStartStrategy: 'nan',
    factorflow: { mean: 3.5, name: 'Zoë', params: { regParam: 0.1 } },
    userIds: vectorFromArray([1, 2, 3, 4], new Int32()),
    userFactors: Float32Array.from({ length: 12 }, (_, i) => i / 7),
    itemIds: vectorFromArray(['a', 'bb'], new Utf8()),
    itemFactors: Float32Array.from({ length: 6 }, (_, i) => i / 3),
    itemCounts: Uint32Array.of(4, 5),
    means: { users: Float32Array.of(1, 2, 3, 4), items: Float32Array.of(3, 2) },
  }),
);

function asText({ userIds, itemIds, ...rest }: StoredModel): string {
  return JSON.stringify([[...userIds], [...itemIds], rest]);
}

test.each([
  'metadata/part-00000',
  'userFactors/part-00000.parquet',
  'itemFactors/part-00000.parquet',
  'itemCounts/part-00000.parquet',
  'userMeans/part-00000.parquet',
])('%s', async (name) => {
  const whole = asText(await loadModel(model));
  const file = join(model, name);
  const bytes = readFileSync(file);
  const next = random(5);
  let refused = 0;
  for (let bit = next(8); bit < 8 * bytes.length; bit += 1 + next(isDeep ? 16 : 400)) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3] ^= 1 << (bit & 7);
    writeFileSync(file, changed);
    const found = await outcome(() => loadModel(model));
    if (found instanceof Error) {
      expect(found, `bit ${bit}`).toBeInstanceOf(DataError);
      refused++;
    } else expect(asText(found), `bit ${bit}`).toBe(whole);
  }
  writeFileSync(file, bytes);
  expect(refused).toBeGreaterThan(5);
});
