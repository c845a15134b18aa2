/** Functions of the caller in the place of batches: by threads and in the calling thread. */
import { join } from 'node:path';
import {
  Field,
  Float32,
  Float64,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  TimestampMicrosecond,
  Utf8,
} from 'apache-arrow';
import { beforeAll, describe, expect, it } from 'vitest';
import { col, type Dataset } from '../../../index.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const file = join(temporaryFolder(), 'rows.parquet');
const ROWS = 20_000;
let rows: Dataset;

const session = await cpuSession({ splitBytes: 20_000 });
beforeAll(async () => {
  const made = session.fromRows(Array.from({ length: ROWS }, (_, i) => ({ i, x: (i % 7) / 2 })));
  await made.cast({ i: 'int64' }).write.parquet(file, { rowGroupSize: 2000 });
  rows = session.read.parquet(file);
});

const numbers = async (dataset: Dataset, name: string) =>
  (await dataset.toArray()).map((row) => Number(row[name]));

const vectorOf = (n: number) =>
  makeData({ type: new Float32(), length: 1, nullCount: 0, data: Float32Array.of(n) });

describe('functions of the caller', () => {
  const module = new URL('clean.ts', import.meta.url).href;

  it('run in the threads by the name of their module, and in the calling thread as closures', async () => {
    const expected = (await numbers(rows, 'x')).map((x) => 2 * x);
    const named = rows.mapBatches({ module, name: 'doubled' });
    expect(await numbers(named, 'x')).toEqual(expected);
    expect(await named.explain()).toMatch(/by 2 threads: parquet-source > map-batches/);
    const { doubled } = await import('./clean.ts');
    const closure = rows.mapBatches((batch) => doubled(batch));
    expect(await numbers(closure, 'x')).toEqual(expected);
    expect(await closure.explain()).toMatch(
      /calling thread: map-batches, since a closure cannot go to another/,
    );
  });

  it('may change the columns', async () => {
    const schema = new Schema([new Field('n', new Float32(), false)]);
    const counted = rows.mapBatches(({ numRows }) => new RecordBatch({ n: vectorOf(numRows) }), { schema });
    expect((await numbers(counted, 'n')).reduce((sum, n) => sum + n, 0)).toBe(ROWS);
    const wrong = rows.mapBatches((batch) => batch.select(['i']));
    await expect(wrong.count()).rejects.toThrow(/gave the columns i: Int.., not i: .*give the option schema/);
  });

  it('may give fewer rows or more, in threads and in the calling thread', async () => {
    const { resized } = await import('./clean.ts');
    const x = await numbers(rows, 'x');
    const fewer = rows.mapBatches({ module, name: 'resized', args: { twice: false } });
    expect(await fewer.count()).toBe(ROWS / 2);
    const schema = new Schema([new Field('x', new Float64(), true)]);
    const more = [
      rows.mapBatches({ module, name: 'resized', args: { twice: true } }, { schema }),
      rows.mapBatches((batch) => resized(batch, { twice: true }), { schema }),
    ];
    for (const dataset of more) {
      expect(await numbers(dataset, 'x')).toEqual(x.flatMap((value) => [value, value]));
      expect(await dataset.filter(col('x').lt(0)).count()).toBe(0);
    }
  });

  it('that give short columns or a table are named', async () => {
    const schema = new Schema([new Field('n', new Float32(), false)]);
    const type = new Struct<{ n: Float32 }>(schema.fields);
    const short = rows.mapBatches(
      function cut({ numRows }) {
        return new RecordBatch(schema, makeData({ type, length: numRows, children: [vectorOf(1)] }));
      },
      { schema },
    );
    await expect(short.count()).rejects.toThrow(
      /the function cut gave a batch of [\d,]+ rows whose column "n" has fewer values/,
    );
    const data = makeData({ type, length: 3, children: [vectorOf(1)] });
    await expect(session.from([new RecordBatch(schema, data)]).count()).rejects.toThrow(
      /batch 0 of the source is a batch of 3 rows whose column "n" has fewer values/,
    );
    const table = rows.mapBatches((batch) => new Table([batch]) as never);
    await expect(table.count()).rejects.toThrow(/gave a table: return a record batch/);
  });

  it('as closures that fail are named with the file and the row', async () => {
    const failing = rows.mapBatches(function strict(batch) {
      if (batch.getChild('i')?.get(0) >= 4000n) throw new Error('no more');
      return batch;
    });
    await expect(failing.count()).rejects.toThrow(
      /the function strict failed: no more .*rows\.parquet, (row group 2, )?row 4,?001/,
    );
  });

  it.each([
    ['fails', { module, name: 'doubled', args: { fails: true } }, /doubled of .*clean\.ts failed: no more/],
    ['is not exported', { module, name: 'tripled' }, /exports no function tripled.*doubled, notAFunction/s],
    ['lives in no module', { module: `${module}x`, name: 'doubled' }, /cannot load .*clean\.tsx/],
  ])('are named where one %s', async (_, given, message) => {
    await expect(rows.mapBatches(given).count()).rejects.toThrow(message);
  });

  it('get rows as objects by mapRows, whose errors name the module and the row', async () => {
    const schema = new Schema([
      new Field('text', new Utf8(), false),
      new Field('half', new Float32(), true),
      new Field('at', new TimestampMicrosecond(), true),
    ]);
    const mapped = (fails?: string) =>
      rows.mapRows<{ text: string }>(
        { module, name: 'rewritten', args: { ...(fails && { fails }) } },
        { schema },
      );
    const made = await mapped().toArray();
    expect(made.length).toBe(ROWS);
    expect([made[0], made[3]]).toEqual([
      { text: 'row 0', half: null, at: new Date(0) },
      { text: 'row 3', half: 0.75, at: new Date(3) },
    ]);
    expect(await mapped().explain()).toMatch(/by 2 threads: parquet-source > map-rows/);
    const few = mapped().limit(3);
    expect(await few.explain()).toMatch(/calling thread: map-rows, since it follows limit/);
    expect(await few.toArray()).toEqual(made.slice(0, 3));
    expect(await mapped().limit(5000).explain()).toMatch(/by 2 threads: parquet-source > map-rows/);
    const at = /rewritten of .*clean\.ts failed: .*rows\.parquet.*row (5,?002|1,?002)/;
    for (const [fails, message] of Object.entries({
      throws: /no more/,
      type: /5 is no value of "text", which is Utf8/,
      column: /it gave the column "txt", which the schema does not have/,
    })) {
      await expect(mapped(fails).count()).rejects.toThrow(at);
      await expect(mapped(fails).count()).rejects.toThrow(message);
    }
    expect(() => rows.mapRows((() => {}) as never)).toThrow('mapRows takes { module, name }, got');
  });

  it('must be in a module that is not the program', () => {
    const entry = new URL(`file://${process.argv[1]}`).href;
    expect(() => rows.mapBatches({ module: entry, name: 'main' })).toThrow(/is the program itself/);
    expect(() => rows.mapBatches({ module: './clean.ts', name: 'x' })).toThrow(/takes a module's URL/);
    // A bundle has the library's modules and the program's in one file.
    const library = new URL('../../../api/inspect/user-modules.ts', import.meta.url).href;
    expect(() => rows.mapBatches({ module: library, name: 'x' })).toThrow(/is the program itself/);
  });

  it('must be in a module that imports no program, which would start sessions in each thread', async () => {
    const index = new URL('../../../index.ts', import.meta.url).href;
    const program = `import { Session } from '${index}'; await Session.create(); export const f = (batch) => batch;`;
    const given = { module: `data:text/javascript,${encodeURIComponent(program)}`, name: 'f' };
    await expect(rows.mapBatches(given).count()).rejects.toThrow(
      /cannot load data:.*a thread of a session makes no session of its own/,
    );
  });
});
