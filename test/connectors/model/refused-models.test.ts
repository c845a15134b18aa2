import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadModel, saveModel } from '../../../connectors/model/model-store.ts';
import { DataError } from '../../../engine/errors.ts';
import { duckdb } from '../parquet/parquet-testing.ts';
import { items, model, path, rank, users } from './stored-models.ts';
import { editMetadata } from '../../support/edit-metadata.ts';

describe('loading refuses', () => {
  const damaged = async (name: string, damage: (directory: string) => void | Promise<unknown>) => {
    if (!existsSync(path('whole'))) await saveModel(path('whole'), model(users, items));
    cpSync(path('whole'), path(name), { recursive: true });
    await damage(path(name));
    const error: unknown = await loadModel(path(name)).catch((problem: unknown) => problem);
    expect(error).toBeInstanceOf(DataError);
    return String(error);
  };
  const rewrite = (directory: string, change: (metadata: Record<string, unknown>) => unknown) => {
    editMetadata(directory, (line) => JSON.stringify(change(JSON.parse(line) as Record<string, unknown>)));
  };
  const factorsFrom = async (directory: string, query: string) => {
    await (
      await duckdb()
    ).run(`COPY (${query}) TO '${join(directory, 'userFactors/part-00000.parquet')}' (FORMAT parquet)`);
  };

  test('features whose products exceed float32, and only those', async () => {
    const saved = async (name: string, user: number, item: number, feature: number) => {
      const own = model(users, items);
      const [userFactors, itemFactors] = [own.userFactors.slice(), own.itemFactors.slice()];
      userFactors[rank + 2] = user;
      itemFactors[2 * rank + feature] = item;
      await saveModel(path(name), { ...own, userFactors, itemFactors });
      return loadModel(path(name));
    };
    await expect(saved('too large', -3e38, 3e38, 2)).rejects.toThrow(
      /feature 2 is up to 3\..*e\+38 for users and 3\..*e\+38 for items, whose product exceeds float32/,
    );
    // Biases are as large as ratings, and meet a 1.
    expect((await saved('large', 1e37, 1e19, 1)).userFactors[rank + 2]).toBe(Math.fround(1e37));
  });

  test('a missing or foreign piece', async () => {
    expect(await damaged('no-users', (at) => rmSync(join(at, 'userFactors'), { recursive: true }))).toMatch(
      /the folder is missing .*userFactors/,
    );
    expect(await damaged('no-parts', (at) => rmSync(join(at, 'itemFactors/part-00000.parquet')))).toMatch(
      /no part files here .*itemFactors/,
    );
    expect(await damaged('notes', (at) => writeFileSync(join(at, 'itemFactors/notes.txt'), ''))).toMatch(
      /"notes.txt" does not belong to a model/,
    );
    expect(
      await damaged('extra', (at) =>
        cpSync(join(at, 'itemFactors/part-00000.parquet'), join(at, 'itemFactors/part-00001.parquet')),
      ),
    ).toMatch(/missing or foreign: 6 rows, and the metadata say 3/);
    expect(
      await damaged('fewer', (at) =>
        factorsFrom(at, 'SELECT 1::INTEGER AS id, [1, 2, 3, 4]::FLOAT[] AS features'),
      ),
    ).toMatch(/missing or foreign: 1 row, and the metadata say 5/);
    await expect(loadModel(path('nowhere'))).rejects.toThrow(/no such file or folder/);
    await expect(loadModel(path('whole/metadata/part-00000'))).rejects.toThrow(/a file, not a model/);
  });

  test('numbers of items that the folders do not have', async () => {
    for (const count of [-3, 0, 2, 2 ** 31, 2 ** 53, 1e300])
      expect(
        await damaged(`items-${count}`, (at) =>
          editMetadata(at, (line) => line.replace('"items":3', `"items":${count}`)),
        ),
      ).toMatch(`missing or foreign: 3 rows, and the metadata say ${count}`);
  });

  test('numbers of ratings that no item has', async () => {
    for (const count of [-1, 1.5, 2 ** 32, 2 ** 40]) {
      const itemCounts = Float32Array.of(4, count, 5);
      await saveModel(path(`counts-${count}`), {
        ...model(users, items),
        itemCounts: itemCounts as unknown as Uint32Array,
      });
      const error: unknown = await loadModel(path(`counts-${count}`)).catch((problem: unknown) => problem);
      expect(error).toBeInstanceOf(DataError);
      expect(String(error)).toMatch(
        new RegExp(`a number of ratings is ${count}, need a whole number from 0 .*itemCounts`),
      );
    }
  });

  test('a file that was saved with another model of the same shape', async () => {
    const shifted = (values: Float32Array) => values.map((value) => value + 1);
    const own = model(users, items, {
      itemCounts: Uint32Array.of(1, 2, 3),
      means: { users: Float32Array.of(1, 2, 3, 4, 5), items: Float32Array.of(3, 2, 1) },
    });
    await saveModel(path('own'), own);
    await saveModel(path('other'), {
      ...own,
      userFactors: shifted(own.userFactors),
      itemFactors: shifted(own.itemFactors),
      itemCounts: Uint32Array.of(3, 2, 1),
      means: { users: Float32Array.of(5, 4, 3, 2, 1), items: Float32Array.of(1, 2, 3) },
    });
    for (const folder of ['userFactors', 'itemFactors', 'itemCounts', 'userMeans', 'itemMeans']) {
      const mixed = path(`mixed-${folder}`);
      cpSync(path('own'), mixed, { recursive: true });
      cpSync(path(`other/${folder}`), join(mixed, folder), { recursive: true });
      await expect(loadModel(mixed), folder).rejects.toThrow(
        new RegExp(`damaged or belongs to another model.*${folder}/part-00000.parquet`),
      );
    }
    expect((await loadModel(path('own'))).hasDigests).toBe(true);
  });

  test('a format of a newer version, before its checksum', async () => {
    const newer = (line: string) => line.replace('"factorflow":{', '"factorflow":{"format":999,');
    expect(await damaged('newer', (at) => editMetadata(at, newer))).toMatch(
      /written by a newer version of FactorFlow: its format is 999, this version reads 1/,
    );
    const file = (at: string) => join(at, 'metadata/part-00000');
    expect(
      await damaged('newer-sum', (at) => writeFileSync(file(at), newer(readFileSync(file(at), 'utf8')))),
    ).toMatch(/written by a newer version/);
  });

  test('metadata that say something else', async () => {
    expect(await damaged('class', (at) => rewrite(at, (all) => ({ ...all, class: 'KMeansModel' })))).toMatch(
      /the class is "KMeansModel".*metadata\/part-00000/,
    );
    expect(await damaged('rank', (at) => rewrite(at, (all) => ({ ...all, rank: 5 })))).toMatch(
      /has 4 values, and the model's rank is 5 .*part-00000.parquet, row group 0, row 1/,
    );
    expect(await damaged('rank-text', (at) => rewrite(at, (all) => ({ ...all, rank: 'ten' })))).toMatch(
      /the rank is "ten"/,
    );
    expect(await damaged('rank-huge', (at) => rewrite(at, (all) => ({ ...all, rank: 1e15 })))).toMatch(
      /the rank is/,
    );
    expect(
      await damaged('json', (at) => writeFileSync(join(at, 'metadata/part-00000'), '{"class":')),
    ).toMatch(/not JSON/);
    expect(await damaged('blank', (at) => writeFileSync(join(at, 'metadata/part-00000'), '\n'))).toMatch(
      /no metadata/,
    );
    expect(
      await damaged('cold', (at) =>
        rewrite(at, (all) => ({ ...all, paramMap: { coldStartStrategy: 'warm' } })),
      ),
    ).toMatch(/coldStartStrategy is "warm"/);
  });

  test('factors that are none', async () => {
    const features = (values: string) => `SELECT i::INTEGER AS id, ${values} AS features FROM range(5) t(i)`;
    expect(
      await damaged('ragged', (at) =>
        factorsFrom(at, features('CASE WHEN i = 3 THEN [1, 2]::FLOAT[] ELSE [1, 2, 3, 4]::FLOAT[] END')),
      ),
    ).toMatch(/has 2 values.*row 4/);
    expect(
      await damaged('nan', (at) => factorsFrom(at, features("['NaN'::FLOAT, 1, 2, 3]::FLOAT[]"))),
    ).toMatch(/5 of 20 features are NaN/);
    expect(
      await damaged('null-value', (at) => factorsFrom(at, features('[1, NULL, 2, 3]::FLOAT[]'))),
    ).toMatch(/a feature is null/);
    expect(
      await damaged('null-vector', (at) =>
        factorsFrom(at, features('CASE WHEN i = 1 THEN NULL ELSE [1, 2, 3, 4]::FLOAT[] END')),
      ),
    ).toMatch(/vector is null/);
    expect(await damaged('doubles', (at) => factorsFrom(at, features('[1, 2, 3, 4]::DOUBLE[]')))).toMatch(
      /need a list of float/,
    );
    expect(await damaged('columns', (at) => factorsFrom(at, 'SELECT 1 AS a'))).toMatch(
      /these are not columns of factors.*a: Int32/,
    );
    expect(
      await damaged('cut', (at) =>
        writeFileSync(join(at, 'userFactors/part-00000.parquet'), 'PAR1 and no more'),
      ),
    ).toMatch(/cut off.*userFactors/);
  });
});
