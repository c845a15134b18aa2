/** Items of 8 and 16 bits a feature: the files are smaller, and lists stay nearly the same. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Binary, Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';
import { Table as ParquetTable, writeParquet } from 'parquet-wasm/node';
import { beforeAll, describe, expect, it } from 'vitest';
import { openModel } from '../../browser/index.ts';
import { ALS, type Model } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { served } from './page-server.ts';

const root = resolve(import.meta.dirname, '../..');
const site = served();
const { folder } = site;
const triples = randomRatings(51, 300, 400, 12_000).map((row) => ({ ...row, item: `film ${row.item}` }));
const ratings = triples.slice(0, 6).map(({ item, rating }) => ({ item, rating }));
const file = (model: string) => join(folder, model, 'itemFactors/part-00000.parquet');

describe('a copy of a model for pages', () => {
  let model: Model;
  beforeAll(async () => {
    model = await new ALS({ rank: 30, maxIter: 3, seed: 5 }).fit(site.session.fromRows(triples));
    await model.save(join(folder, 'model'));
  });
  it.each([
    { form: [], share: 0.45, digits: 1, same: 8 },
    { form: ['--float16'], share: 0.7, digits: 2, same: 9 },
  ])('with features in $form', async ({ form, share, digits, same }) => {
    const program = join(root, 'examples/browser/small-items.ts');
    const copy = `small${digits}`;
    execFileSync(process.execPath, [program, join(folder, 'model'), join(folder, copy), ...form], {
      cwd: root,
    });
    expect(statSync(file(copy)).size).toBeLessThan(share * statSync(file('model')).size);
    const page = await openModel(`${site.server.url}/${copy}`);
    const { items } = await page.recommend({ ratings }, 10);
    const own = await model.recommend({ ratings }, 400);
    const scores = new Map(own.items.map(({ item, score }) => [item, score]));
    const best = new Set(own.items.slice(0, 10).map(({ item }) => item));
    expect(items.filter(({ item }) => best.has(item)).length).toBeGreaterThanOrEqual(same);
    for (const { item, score } of items) expect(score).toBeCloseTo(scores.get(item)!, digits);
    await page.close();
  });

  it('with all bits in an Arrow file gives the results of Node', async () => {
    const program = join(root, 'examples/browser/small-items.ts');
    execFileSync(process.execPath, [program, join(folder, 'model'), join(folder, 'arrow'), '--arrow'], {
      cwd: root,
    });
    const page = await openModel(`${site.server.url}/arrow`);
    expect(await page.recommend({ ratings }, 10)).toEqual(await model.recommend({ ratings }, 10));
    await page.close();
  });

  it.each(['model', 'model/copy', '.'])('is not written to %s, where files are', (target) => {
    const program = join(root, 'examples/browser/small-items.ts');
    const run = () =>
      execFileSync(process.execPath, [program, join(folder, 'model'), join(folder, target)], {
        cwd: root,
        stdio: 'pipe',
      });
    expect(run).toThrow(/exists already|is in the folder of the model/);
    expect(statSync(file('model')).size).toBeGreaterThan(0);
    expect(existsSync(join(folder, 'model/copy'))).toBe(false);
  });

  it('is refused if its rows of bytes have no scale', async () => {
    cpSync(join(folder, 'model'), join(folder, 'bare'), { recursive: true });
    const page = await openModel(`${site.server.url}/model`);
    const ids = page.itemIds() as string[];
    await page.close();
    const table = new Table({
      id: vectorFromArray(ids, new Utf8()),
      features: vectorFromArray(
        ids.map(() => new Uint8Array(32).fill(7)),
        new Binary(),
      ),
    });
    writeFileSync(file('bare'), writeParquet(ParquetTable.fromIPCStream(tableToIPC(table, 'stream'))));
    await expect(openModel(`${site.server.url}/bare`)).rejects.toThrow('no number in a column scale');
  });
});
