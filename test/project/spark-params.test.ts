/**
 * The table of parameters in the plugin for Apache Spark, which checks values on the driver with FactorFlow's
 * messages. After a change of operators/als/params.ts: `npx vitest run test/project/spark-params.test.ts -u`.
 */
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { alsTable } from '../../operators/als/params.ts';
import { sgdTable } from '../../operators/sgd/params.ts';
import { meaningOf, type Param } from '../../operators/params/param.ts';

const file = 'spark/src/main/resources/io/github/factorflow/spark/als-parameters.json';
/** Parameters of Spark's own ALS. Its regParam and alpha are numbers: there is only `auto` to add. */
const ofSpark = new Set(['rank', 'maxIter', 'regParam', 'implicitPrefs', 'alpha', 'nonnegative', 'seed']);
const heldOut = new Set(['earlyStop', 'earlyStopMetric', 'targetRmse']);

const tables = { als: alsTable.params, sgd: sgdTable.params } as const;

/** The algorithm that has the parameter, if only one has it. */
function only(name: string): 'als' | 'sgd' | undefined {
  if (name in tables.als && name in tables.sgd) return undefined;
  return name in tables.als ? 'als' : 'sgd';
}

function entry([name, param]: [string, Param]) {
  const or = param.kind === 'number' || param.kind === 'whole number' ? param.or : undefined;
  const kind = or === undefined ? param.kind : `${param.kind} or ${or}`;
  const { called = name } = param;
  if (heldOut.has(name)) return [name, { kind: 'held out' }];
  if (ofSpark.has(name) && or === undefined) return [name, { kind: 'of Spark' }];
  if (ofSpark.has(name))
    return [name, { kind: 'choice', choices: ['auto'], called: name, must: 'auto here', of: only(name) }];
  const { least, most, above, choices } = { ...param } as Readonly<Record<string, unknown>>;
  return [name, { kind, called, must: meaningOf(param), least, most, above, choices, of: only(name) }];
}

it('has every parameter of ALS and SGD, with the values that it may have', async () => {
  const params: Record<string, Param> = { ...tables.sgd, ...tables.als };
  const algorithm = { kind: 'choice', called: 'algorithm', must: 'als or sgd', choices: ['als', 'sgd'] };
  const table = Object.fromEntries([['algorithm', algorithm], ...Object.entries(params).map(entry)]);
  const root = resolve(import.meta.dirname, '../..');
  await expect(`${JSON.stringify(table, null, 2)}\n`).toMatchFileSnapshot(join(root, file));
});
