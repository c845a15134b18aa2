import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { Int32, Table, Utf8, vectorFromArray } from 'apache-arrow';
import { expect, test } from 'vitest';
import { openSink } from '../../connectors/open-sink.ts';
import { openSource } from '../../connectors/open-source.ts';
import { readSplit } from '../../connectors/read-split.ts';
import { context, streamOf } from './parquet/parquet-testing.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { readTable } from './text/text-testing.ts';

const folder = temporaryFolder();

/** A file of users, 1,000 by default, as numbers or text. */
async function write(name: string, type: 'int32' | 'utf8', first: number, rows = 1000): Promise<string> {
  const users = Array.from({ length: rows }, (_, i) => first + i);
  const table = new Table({
    user:
      type === 'int32'
        ? vectorFromArray(users, new Int32())
        : vectorFromArray(
            users.map((user) => `u${user}`),
            new Utf8(),
          ),
    item: vectorFromArray(users, new Int32()),
  });
  const file = join(folder, name);
  await (
    await openSink(file, { overwrite: true })
  ).consume(streamOf(table.schema, table.batches), context() as never);
  return file;
}

test.each(['parquet', 'csv', 'ndjson', 'arrow'])(
  'a file that takes the place of another is read as it is, or refused while the first is read: %s',
  async (ending) => {
    const file = await write(`data.${ending}`, 'int32', 0);
    const source = await openSource(file);
    expect((await source.schema()).fields.map(({ type }) => String(type))).toContain('Int32');
    // Between two runs: the next one reads the new file by its own columns.
    renameSync(await write(`other.${ending}`, 'utf8', 5000, 7), file);
    if (source.statistics) expect((await source.statistics(context() as never)).rows).toBe(7);
    expect((await readTable(source)).rows[0][0]).toBe('u5000');
    // In the middle of a run: never the new rows by the old columns.
    const stream = await source.execute(context() as never);
    renameSync(await write(`other.${ending}`, 'int32', 9000), file);
    const reading = async () => {
      for await (const batch of stream) expect(batch.numRows).toBeGreaterThan(0);
    };
    await expect(reading()).rejects.toThrow(
      `another process replaced the file while it was read (${file}). Read it again`,
    );
    // In the threads likewise.
    const found = await source.splits?.(context() as never, undefined, undefined, 1 << 20);
    renameSync(await write(`other.${ending}`, 'utf8', 1), file);
    const [split] = found?.splits ?? [];
    await expect(
      readSplit(split, found!.schema, { signal: context().signal, takesFaults: false }).next(),
    ).rejects.toThrow('another process replaced the file while it was read');
  },
);
