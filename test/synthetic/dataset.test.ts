import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { scalePreset } from '../../synthetic/preset.ts';
import { findPreset } from '../../synthetic/presets.ts';
import { generateDataset } from '../../synthetic/dataset/generate-dataset.ts';
import type { ProgressEvent } from '../../engine/events.ts';

const small = { preset: 'movielens20m', scale: 0.001 };
const shape = scalePreset(findPreset('movielens20m'), 0.001);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'factorflow-dataset-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function filesOf(output: string): Promise<Record<string, Buffer>> {
  const files = (await readdir(output, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  );
  const paths = files.map((file) => join(file.parentPath, file.name)).sort();
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path.slice(output.length + 1), await readFile(path)])),
  );
}

async function query(sql: string) {
  const duckdb = await (await DuckDBInstance.create()).connect();
  return (await duckdb.runAndReadAll(sql)).getRowsJson();
}

describe('generateDataset', () => {
  it('writes the same bytes for the same seed and any number of threads', async () => {
    const options = { preset: 'netflix', scale: 0.0002, ratingsPerPart: 4000 };
    const written = async (name: string, seed: number, workers: number) => {
      await generateDataset({ ...options, seed, workers, output: join(folder, name) });
      return filesOf(join(folder, name));
    };
    const one = await written('one', 3, 1);
    expect(Object.keys(one)).toHaveLength(1 + 2 * 8);
    expect(await written('threads', 3, 3)).toEqual(one);
    const part = 'train/part-00000.parquet';
    expect((await written('other', 4, 1))[part]).not.toEqual(one[part]);
  });

  it('cuts part files at users and never changes their order', async () => {
    const [whole, cut] = [join(folder, 'whole'), join(folder, 'cut')];
    const { description } = await generateDataset({ ...small, seed: 4, output: whole });
    const { description: same, files } = await generateDataset({
      ...small,
      seed: 4,
      output: cut,
      ratingsPerPart: 4000,
    });
    expect(same).toEqual(description);
    expect([files.train.files, files.test.files, files.train.rows]).toEqual([8, 8, shape.train]);
    for (const part of ['train', 'test'])
      expect(await query(`select * from '${cut}/${part}/*.parquet'`)).toEqual(
        await query(`select * from '${whole}/${part}/*.parquet'`),
      );
    const [[sharing]] = await query(
      `select count(*) from (select "user" from read_parquet('${cut}/train/*.parquet', filename = true) group by all having count(distinct filename) > 1)`,
    );
    expect(sharing).toBe('0');
  });

  it('writes data that another reader reads, with the counts of dataset.json', async () => {
    const output = join(folder, 'data');
    const { description, files } = await generateDataset({ ...small, seed: 4, output });
    expect(JSON.parse(await readFile(join(output, 'dataset.json'), 'utf8'))).toEqual(description);
    expect(files.train.path).toBe(join(output, 'train'));
    const all = `read_parquet(['${output}/train/*.parquet', '${output}/test/*.parquet'])`;
    expect(
      await query(
        `select count(*) from '${output}/train/*.parquet' union all select count(*) from '${output}/test/*.parquet'`,
      ),
    ).toEqual([[String(shape.train)], [String(shape.test)]]);
    const [[users, items, pairs, low, high]] = await query(
      `select count(distinct "user"), count(distinct item), count(distinct ("user", item)), min(rating), max(rating) from ${all}`,
    );
    expect([users, items, pairs]).toEqual(
      [shape.users, description.degrees.items.rated, shape.train + shape.test].map(String),
    );
    expect([low, high]).toEqual([0.5, 5]);
    const types = await query(`select column_name, column_type from (describe select * from ${all})`);
    expect(types).toEqual([
      ['user', 'INTEGER'],
      ['item', 'INTEGER'],
      ['rating', 'FLOAT'],
    ]);
    const [[mean, most, median]] = await query(
      `select sum(n) / count(*), max(n), median(n) from (select count(*) n from ${all} group by item)`,
    );
    expect({ mean, maximum: Number(most), median }).toEqual({
      mean: description.degrees.items.mean,
      maximum: description.degrees.items.maximum,
      median: description.degrees.items.median,
    });
    const [[perUser, mostOfUser]] = await query(
      `select sum(n) / count(*), max(n) from (select count(*) n from ${all} group by "user")`,
    );
    expect({ mean: perUser, maximum: Number(mostOfUser) }).toMatchObject({
      mean: description.degrees.users.mean,
      maximum: description.degrees.users.maximum,
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
    expect(events[1]).toMatchObject({ phase: 'generate', total: 1_000_051, unit: 'ratings' });
    expect(await readdir(folder)).toEqual([]);
  });

  it('refuses bad options before it writes', async () => {
    const output = join(folder, 'data');
    await expect(generateDataset({ preset: 'nothing', output })).rejects.toThrow(/unknown preset "nothing"/);
    await expect(generateDataset({ ...small, seed: -1, output })).rejects.toThrow(/seed is -1/);
    await expect(generateDataset({ ...small, workers: 0, output })).rejects.toThrow(
      /workers must be .* got 0/,
    );
    await expect(generateDataset({ ...small, copies: { users: 0, items: 1 }, output })).rejects.toThrow(
      /0 x 1 copies cannot be made/,
    );
    await expect(generateDataset({ ...small, output, signal: AbortSignal.abort() })).rejects.toThrow(
      'cancelled',
    );
    expect(await readdir(folder)).toEqual([]);
  });
});
