import {
  Dictionary,
  Field,
  Int32,
  makeData,
  RecordBatch,
  RecordBatchReader,
  Schema,
  Struct,
  Table,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { expect, it } from 'vitest';
import { RowStream } from '../../../engine/stream/ipc-bytes.ts';
import { col } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const words = Array.from({ length: 400 }, (_, i) => (i % 9 === 0 ? null : `w${i % 13}`));
const type = new Dictionary(new Utf8(), new Int32(), 1);

it('copies of a column with a dictionary come through a stream with dictionaries of their own', () => {
  const children = [words, words.toReversed()].map((texts) => vectorFromArray(texts, type).data[0]);
  const schema = new Schema(['a', 'b'].map((name, i) => new Field(name, children[i].type, true)));
  const struct = makeData({ type: new Struct(schema.fields), length: words.length, children });
  const batch = new RecordBatch(schema, struct);
  const rows = new RowStream(schema, false);
  rows.add(batch);
  rows.add(batch);
  const read = new Table([...RecordBatchReader.from(rows.takeShared())]);
  expect([...(read.getChild('a') ?? [])]).toEqual([...words, ...words]);
  expect([...(read.getChild('b') ?? [])]).toEqual([...words.toReversed(), ...words.toReversed()]);
});

it('and through a union before an exchange', async () => {
  const session = await cpuSession({ splitBytes: 3000 });
  const table = new Table({
    s: vectorFromArray(words, type),
    row: vectorFromArray([...words.keys()], new Int32()),
  });
  const rows = session.from(table.batches).withColumn('copy', col('s')).dropNulls();
  const all = rows.limit(40).union(rows.filter(col('row').gt(-1)));
  const found = await all.select('copy', 's', 'row').dropDuplicates('copy', 's').orderBy('row').toArray();
  expect(found.map(({ copy }) => copy)).toEqual([...new Set(words.filter((word) => word !== null))]);
  expect(found.every(({ copy, s }) => copy === s)).toBe(true);
});
