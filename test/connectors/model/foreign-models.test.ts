import { Int32, vectorFromArray } from 'apache-arrow';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { loadModel, saveModel } from '../../../connectors/model/model-store.ts';
import { FactorFlowError } from '../../../engine/errors.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { editMetadata } from '../../support/edit-metadata.ts';

const root = temporaryFolder();
const path = (name: string) => join(root, name);
const side = (rows: number) => ({
  ids: vectorFromArray(
    Array.from({ length: rows }, (_, i) => i * 3),
    new Int32(),
  ),
  factors: Float32Array.from({ length: rows * 4 }, (_, i) => i / 7),
});
const [users, items] = [side(5), side(3)];
const columns = { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' };
const stored = {
  rank: 4,
  columns,
  coldStartStrategy: 'nan' as const,
  factorflow: {},
  userIds: users.ids,
  userFactors: users.factors,
  itemIds: items.ids,
  itemFactors: items.factors,
};

beforeAll(() => saveModel(path('whole'), stored));

/** A copy of the model with other metadata. */
function withMetadata(name: string, change: (metadata: Record<string, unknown>) => void): string {
  cpSync(path('whole'), path(name), { recursive: true });
  editMetadata(path(name), (line) => {
    const metadata = JSON.parse(line) as Record<string, unknown>;
    change(metadata);
    return `${JSON.stringify(metadata)}\n`;
  });
  return path(name);
}

/** Sets a number at every place that has one. */
function numbersIn(value: unknown, change: (holder: Record<string, unknown>, key: string) => void): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (typeof inner === 'number') change(value as Record<string, unknown>, key);
    else numbersIn(inner, change);
  }
}

describe('metadata of others', () => {
  test('with numbers that no model has are refused with the file, or change nothing', async () => {
    let places = 0;
    numbersIn(
      JSON.parse(readFileSync(join(path('whole'), 'metadata', 'part-00000'), 'utf8')),
      () => places++,
    );
    expect(places).toBeGreaterThan(3);
    for (let place = 0; place < places; place++) {
      for (const number of [2 ** 31, 2 ** 40, -1, 0, 1.5, '4', null]) {
        let at = 0;
        const name = withMetadata(`number-${place}-${String(number)}`, (metadata) =>
          numbersIn(metadata, (holder, key) => void (at++ === place && (holder[key] = number))),
        );
        const outcome = await loadModel(name).catch((error: unknown) => error);
        if (outcome instanceof FactorFlowError) expect(outcome.message).toContain(name);
        else expect(outcome).toMatchObject({ userFactors: users.factors, itemFactors: items.factors });
      }
    }
  });

  test('that name other folders are read as the names that they are, and nothing outside the model is touched', async () => {
    mkdirSync(path('outside'));
    writeFileSync(path('outside/secret'), 'mine');
    const name = withMetadata('naming', (metadata) => {
      for (const key of ['path', 'userFactors', 'itemFactors', 'metadata', 'folder', 'checkpoint'])
        metadata[key] = path('outside');
      Object.assign((metadata.factorflow ??= {}) as object, {
        path: '../outside',
        userFactors: '../outside',
        storage: path('outside'),
      });
      (metadata.paramMap as Record<string, unknown>).userCol = '../../outside';
    });
    const model = await loadModel(name).catch((error: unknown) => error);
    if (!(model instanceof FactorFlowError)) {
      expect(model).toMatchObject({ userFactors: users.factors });
      await saveModel(name, stored, { overwrite: true });
    }
    expect(readdirSync(path('outside'))).toEqual(['secret']);
  });
});

describe('links', () => {
  test('in a model are followed by readers, and no target of one is removed when the model is replaced', async () => {
    cpSync(path('whole'), path('linked'), { recursive: true });
    renameSync(path('linked/userFactors'), path('elsewhere'));
    symlinkSync(path('elsewhere'), path('linked/userFactors'));
    expect(await loadModel(path('linked'))).toMatchObject({ userFactors: users.factors });
    await saveModel(path('linked'), stored, { overwrite: true }).catch((error: unknown) =>
      expect(error).toBeInstanceOf(FactorFlowError),
    );
    expect(readdirSync(path('elsewhere')).length).toBeGreaterThan(0);
    expect(await loadModel(path('linked'))).toMatchObject({ userFactors: users.factors });
  });

  test('to a model lead to it when it is saved again', async () => {
    cpSync(path('whole'), path('target'), { recursive: true });
    symlinkSync(path('target'), path('link'));
    await saveModel(
      path('link'),
      { ...stored, userFactors: users.factors.map((value) => value + 1) },
      { overwrite: true },
    );
    expect((await loadModel(path('target'))).userFactors).toEqual(users.factors.map((value) => value + 1));
    expect(existsSync(path('link/metadata'))).toBe(true);
  });
});
