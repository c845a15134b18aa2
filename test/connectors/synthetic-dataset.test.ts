import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BatchChannel } from '../../connectors/synthetic/batch-channel.ts';
import { findPreset, scalePreset } from '../../connectors/synthetic/preset.ts';
import { RatingBatchBuilder, ratingSchema } from '../../connectors/synthetic/rating-batch.ts';
import { generateDataset } from '../../connectors/synthetic/write-dataset.ts';
import type { ProgressEvent } from '../../engine/events.ts';

const small = { preset: 'movielens20m', scale: 0.001 };
const shape = scalePreset(findPreset('movielens20m'), 0.001);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'factorflow-dataset-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function filesOf(output: string): Promise<Record<string, Buffer>> {
  const files = (await readdir(output, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const paths = files.map((file) => join(file.parentPath, file.name)).sort();
  return Object.fromEntries(await Promise.all(paths.map(async (path) => [path.slice(output.length + 1), await readFile(path)])));
}

describe('generateDataset', () => {
  it('writes the same bytes for the same seed', async () => {
    await generateDataset({ ...small, seed: 4, output: join(folder, 'one') });
    await generateDataset({ ...small, seed: 4, output: join(folder, 'two') });
    await generateDataset({ ...small, seed: 5, output: join(folder, 'other') });
    const one = await filesOf(join(folder, 'one'));
    expect(Object.keys(one)).toEqual(['dataset.json', 'test/part-00000.parquet', 'train/part-00000.parquet']);
    expect(await filesOf(join(folder, 'two'))).toEqual(one);
    expect((await filesOf(join(folder, 'other')))['train/part-00000.parquet']).not.toEqual(one['train/part-00000.parquet']);
  });

  it('writes what another reader reads and dataset.json says', async () => {
    const output = join(folder, 'data');
    const { description, files } = await generateDataset({ ...small, seed: 4, output });
    expect(JSON.parse(await readFile(join(output, 'dataset.json'), 'utf8'))).toEqual(description);
    expect(files.train.path).toBe(join(output, 'train'));
    const duckdb = await (await DuckDBInstance.create()).connect();
    const rowsOf = async (sql: string) => (await duckdb.runAndReadAll(sql)).getRowsJson();
    const all = `read_parquet(['${output}/train/*.parquet', '${output}/test/*.parquet'])`;
    expect(await rowsOf(`select count(*) from '${output}/train/*.parquet' union all select count(*) from '${output}/test/*.parquet'`)).toEqual([
      [String(shape.train)],
      [String(shape.test)],
    ]);
    const [[users, items, pairs, low, high]] = await rowsOf(
      `select count(distinct "user"), count(distinct item), count(distinct ("user", item)), min(rating), max(rating) from ${all}`,
    );
    expect([users, items, pairs]).toEqual([shape.users, description.degrees.items.rated, shape.train + shape.test].map(String));
    expect([low, high]).toEqual([0.5, 5]);
    const types = await rowsOf(`select column_name, column_type from (describe select * from ${all})`);
    expect(types).toEqual([['user', 'INTEGER'], ['item', 'INTEGER'], ['rating', 'FLOAT']]);
    const [[mean, most, median]] = await rowsOf(`select sum(n) / count(*), max(n), median(n) from (select count(*) n from ${all} group by item)`);
    expect({ mean, maximum: Number(most), median }).toEqual({
      mean: description.degrees.items.mean,
      maximum: description.degrees.items.maximum,
      median: description.degrees.items.median,
    });
  });

  it('replaces a data set only when told to, and never a folder with something else', async () => {
    const output = join(folder, 'data');
    await generateDataset({ ...small, output });
    await expect(generateDataset({ ...small, output })).rejects.toThrow(/exists already/);
    await generateDataset({ ...small, seed: 9, output, overwrite: true });
    expect(JSON.parse(await readFile(join(output, 'dataset.json'), 'utf8')).seed).toBe(9);
    await writeFile(join(output, 'thesis.txt'), 'mine');
    await expect(generateDataset({ ...small, output, overwrite: true })).rejects.toThrow(/thesis\.txt/);
    expect(await readdir(folder)).toEqual(['data']);
  });

  it('leaves nothing behind when cancelled', async () => {
    const controller = new AbortController();
    const events: ProgressEvent[] = [];
    const run = generateDataset({
      preset: 'movielens20m',
      scale: 0.05,
      output: join(folder, 'new', 'data'),
      signal: controller.signal,
      onEvent: (event) => {
        events.push(event);
        if (event.type === 'phase-progress') controller.abort();
      },
    });
    await expect(run).rejects.toThrow('cancelled');
    expect(events.map(({ type }) => type)).toEqual(['phase-start', 'phase-progress']);
    expect(await readdir(folder)).toEqual([]);
  });

  it('refuses bad options before it writes', async () => {
    const output = join(folder, 'data');
    await expect(generateDataset({ preset: 'nothing', output })).rejects.toThrow(/unknown preset "nothing"/);
    await expect(generateDataset({ ...small, seed: -1, output })).rejects.toThrow(/seed is -1/);
    await expect(generateDataset({ ...small, output, signal: AbortSignal.abort() })).rejects.toThrow('cancelled');
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('BatchChannel', () => {
  function batchOf(user: number) {
    const builder = new RatingBatchBuilder(1);
    builder.append(user, 0, 1);
    return builder.take();
  }

  it('hands batches over in order, with one waiting at most', async () => {
    const channel = new BatchChannel(ratingSchema);
    const log: string[] = [];
    const producer = (async () => {
      for (const user of [0, 1, 2]) {
        log.push(`offer ${user}`);
        expect(await channel.put(batchOf(user))).toBe(true);
      }
      channel.end();
    })();
    for await (const batch of channel) {
      log.push(`take ${batch.getChild('user')?.get(0)}`);
      await new Promise((resume) => setTimeout(resume, 1));
    }
    await producer;
    expect(log.filter((line) => line.startsWith('take'))).toEqual(['take 0', 'take 1', 'take 2']);
    expect(log.indexOf('offer 2')).toBeGreaterThan(log.indexOf('take 0'));
  });

  it('tells the producer when the consumer leaves', async () => {
    const channel = new BatchChannel(ratingSchema);
    const first = channel.put(batchOf(0));
    for await (const _ of channel) break;
    expect(await first).toBe(true);
    expect(await channel.put(batchOf(1))).toBe(false);
    const unread = new BatchChannel(ratingSchema);
    const pending = unread.put(batchOf(0));
    unread.leave();
    expect(await pending).toBe(false);
  });

  it('gives the consumer the error of a producer that failed', async () => {
    const channel = new BatchChannel(ratingSchema);
    const pulled = channel[Symbol.asyncIterator]().next();
    channel.fail(new Error('no more ratings'));
    await expect(pulled).rejects.toThrow('no more ratings');
  });
});
