/**
 * The table of parameters in the plugin for Apache Spark, which checks values on the driver with FactorFlow's
 * messages. After a change of operators/als/params.ts: `npx vitest run test/project/spark-params.test.ts -u`.
 */
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { alsTable } from '../../operators/als/params.ts';
import { meaningOf, type Param } from '../../operators/params/table.ts';

const file = 'spark/src/main/resources/io/github/factorflow/spark/als-parameters.json';
/** Parameters of Spark's own ALS. Its regParam and alpha are numbers: there is only `auto` to add. */
const ofSpark = new Set(['rank', 'maxIter', 'regParam', 'implicitPrefs', 'alpha', 'nonnegative', 'seed']);
const heldOut = new Set(['earlyStop', 'earlyStopMetric', 'targetRmse']);

function entry([name, param]: [string, Param]) {
  const { kind, called = name } = param;
  if (heldOut.has(name)) return [name, { kind: 'held out' }];
  if (ofSpark.has(name) && kind !== 'number or auto') return [name, { kind: 'of Spark' }];
  if (ofSpark.has(name))
    return [name, { kind: 'choice', choices: ['auto'], called: name, must: 'auto here' }];
  const { least, most, above, choices } = { ...param } as Readonly<Record<string, unknown>>;
  return [name, { kind, called, must: meaningOf(param), least, most, above, choices }];
}

it('has every parameter of ALS, with the values that it may have', async () => {
  const table = Object.fromEntries(Object.entries(alsTable.params as Record<string, Param>).map(entry));
  const root = resolve(import.meta.dirname, '../..');
  await expect(`${JSON.stringify(table, null, 2)}\n`).toMatchFileSnapshot(join(root, file));
});
