/**
 * Training, inspecting and converting read one version of their files, from the moment at which columns are
 * first read.
 */
import { appendFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { inspectFiles, profileDataset } from '../../../api/inspect/inspect-files.ts';
import { ALS, type Dataset, type ProgressEvent, type Session } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const ROWS = 30_000;
const HEAD = 'user,item,rating\n';
const line = (row: number) => `${10_000 + (row % 500)},${20_000 + ((row * 7919) % 997)},${1 + (row % 5)}\n`;
let copies = 0;

function ratings(): string {
  const file = join(folder, `ratings-${copies++}.csv`);
  writeFileSync(file, HEAD + Array.from({ length: ROWS }, (_, row) => line(row)).join(''));
  return file;
}

/** Cuts the last third of the rows. */
const cut = (file: string) => truncateSync(file, HEAD.length + (line(0).length * ROWS * 2) / 3);
const grow = (file: string) => appendFileSync(file, line(1).repeat(100));
const error = /another process cut the file while it was read/;
const columns = { user: 'user', item: 'item', rating: 'rating' };

/** The rows that a command's work reads, by the library. */
type Work = (
  input: { readonly session: Session; readonly data: Dataset; readonly file: string },
  options: { onEvent: (event: ProgressEvent) => void },
) => Promise<number>;

const works: Readonly<Record<string, Work>> = {
  train: async ({ data }, options) => {
    const model = await new ALS({ rank: 2, maxIter: 1 }).fit(data, options);
    return model.training!.ratings;
  },
  inspect: async ({ data, file }, options) => {
    const { layout } = await inspectFiles([file], data, options);
    const { summary } = await profileDataset(data, columns, options);
    expect(summary.ratings).toBe(layout.rows);
    return layout.rows;
  },
  convert: async ({ session, data }, options) => {
    const output = join(folder, `output-${copies++}.parquet`);
    await data.write.parquet(output, options);
    return (await inspectFiles([output], session.read.parquet(output), options)).layout.rows;
  },
};

/** In one stream, and by the threads. */
const ways = [
  ['train', undefined],
  ['train', 1 << 17],
  ['inspect', 1 << 17],
  ['convert', undefined],
] as const;

describe.each(ways)('%s, in splits of %s bytes', (name, splitBytes) => {
  const work = works[name];
  const open = () => cpuSession({ splitBytes, oneVersion: true });

  test.each(['its columns were read', 'a first pass'])(
    'refuses a file that was cut after %s',
    async (moment) => {
      const session = await open();
      const file = ratings();
      const data = session.read.csv(file);
      const run = () => work({ session, data, file }, { onEvent: () => undefined });
      if (moment === 'a first pass') expect(await run()).toBe(ROWS);
      else await data.schema();
      cut(file);
      await expect(run()).rejects.toThrow(error);
    },
  );

  test('reads a file that grows as it was, with one warning', async () => {
    const session = await open();
    const file = ratings();
    const data = session.read.csv(file);
    await data.schema();
    grow(file);
    const codes: (string | undefined)[] = [];
    const onEvent = (event: ProgressEvent) => void (event.type === 'warning' && codes.push(event.code));
    expect(await work({ session, data, file }, { onEvent })).toBe(ROWS);
    expect(codes.filter((code) => code === 'input-grew')).toHaveLength(1);
  });
});
