/** Batches of a caller's function that another copy of apache-arrow made, as a module's own import may be. */
import { createRequire } from 'node:module';
import * as arrow from 'apache-arrow';
import { expect, it } from 'vitest';
import { cpuSession } from '../../support/cpu-session.ts';

const other = createRequire(import.meta.url)('apache-arrow') as typeof arrow;

/** The same table by each copy. */
function tableOf({ Dictionary, Field, Float64, Int32, List, Table, Utf8, vectorFromArray }: typeof arrow) {
  return new Table({
    x: vectorFromArray([0.5, null, 2], new Float64()),
    t: vectorFromArray(['a', 'ä', null], new Utf8()),
    d: vectorFromArray(['u', 'v', 'u'], new Dictionary(new Utf8(), new Int32())),
    l: vectorFromArray([[1, 2], [], [3]], new List(new Field('item', new Int32(), true))),
  });
}

it('are taken with their values, nulls, dictionaries and lists', async () => {
  const { batches } = tableOf(other);
  expect(batches[0].data.type).not.toBeInstanceOf(arrow.DataType);
  const expected = tableOf(arrow);
  const session = await cpuSession({ workers: 1 });
  const mapped = session.from(expected.batches).mapBatches(() => batches[0], { schema: expected.schema });
  const table = await mapped.collect();
  expect(JSON.stringify(table.toArray())).toBe(JSON.stringify(expected.toArray()));
  expect(arrow.tableFromIPC(arrow.tableToIPC(table)).toArray().join()).toBe(expected.toArray().join());
});
