/** Planning takes a number of steps that grows as the plan does, with windows, pivots, joins and unions in it. */
import { Field, Int32, Schema } from 'apache-arrow';
import { afterEach, expect, it, vi } from 'vitest';
import { fromSource, schemaOf } from '../../../engine/stream/logical-plan.ts';
import type { Source } from '../../../engine/stream/operator.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { col, type Dataset, rowNumber, sum } from '../../../index.ts';
import { Filter } from '../../../operators/dataflow/filter.ts';
import { Joined } from '../../../operators/dataflow/join/joined.ts';
import { Project } from '../../../operators/dataflow/project.ts';
import { Union } from '../../../operators/dataflow/union.ts';
import { GroupRows, OrderRows, Wide, Windows } from '../../../operators/exchange/wide-operators.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession({ workers: 2 });
const few = session.fromRows([{ k: 1, other: 2 }]);

const steps: readonly ((rows: Dataset, i: number) => Dataset)[] = [
  (rows, i) => rows.withColumn(`w${i}`, rowNumber().over({ partitionBy: 'p', orderBy: 'k' })),
  (rows) => rows.filter(col('id').ge(0)),
  (rows) =>
    rows.groupBy('id', 'p', 'k').pivot('p', [1, 2]).agg(sum('v')).withColumnRenamed('1', 'v').drop('2'),
  (rows) => rows.orderBy('v'),
  (rows) => rows.join(few, 'k').drop('other'),
  (rows) => rows.union(session.fromRows([{ id: 1, p: 1, k: 1, v: 1 }]).cast({ v: 'int64' })).limit(1e9),
];

function deep(operators: number): Dataset {
  let rows: Dataset = session.fromRows([{ id: 1, p: 1, k: 1, v: 1 }]).cast({ v: 'int64' });
  for (let i = 0; i < operators; i++) {
    if (i % steps.length === steps.length - 1) rows = rows.select('id', 'p', 'k', 'v');
    rows = steps[i % steps.length](rows, i % 7);
  }
  return rows;
}

afterEach(() => vi.restoreAllMocks());

/** Times that schemas are asked for or computed while `work` runs. */
async function schemasOf(work: () => Promise<unknown>): Promise<number> {
  const sources = [Wide, Joined, Union].map((one) => vi.spyOn(one.prototype, 'schema'));
  const operators = [Windows, GroupRows, OrderRows, Project, Filter].map((one) =>
    vi.spyOn(one.prototype, 'outputSchema'),
  );
  await work();
  const calls = [...sources, ...operators].reduce((all, { mock }) => all + mock.calls.length, 0);
  vi.restoreAllMocks();
  return calls;
}

it.each([
  ['schema', (rows: Dataset) => rows.schema()],
  ['stream', (rows: Dataset) => rows.stream()],
  ['explain', (rows: Dataset) => rows.explain()],
])('of %s', async (_name, plan) => {
  const [some, many] = [await schemasOf(() => plan(deep(100))), await schemasOf(() => plan(deep(500)))];
  expect(some).toBeGreaterThan(100);
  expect(many).toBeLessThan(5.5 * some);
});

it('a run opens a source once, and again after a failure', async () => {
  const schema = new Schema([new Field('a', new Int32(), true)]);
  const open = vi.fn(async () => schema).mockRejectedValueOnce(new Error('not yet'));
  const source: Source = {
    name: 'counted',
    replayable: true,
    describe: () => ({}),
    schema: open,
    execute: async () => batchStream(schema, (async function* () {})()),
  };
  const { signal } = session.context();
  const asked = () => schemaOf(fromSource(source), undefined, signal);
  await expect(asked()).rejects.toThrow('not yet');
  expect(await Promise.all([asked(), asked()])).toEqual([schema, schema]);
  expect(open).toHaveBeenCalledTimes(2);
  await schemaOf(fromSource(source), undefined, session.context().signal);
  expect(open).toHaveBeenCalledTimes(3);
});
