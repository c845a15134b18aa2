/**
 * The graph of a whole small fit, including loading, compared with graphs that were written by hand
 * (test/golden/fits): the stages in the order of the list, the stages that each of them needs, and the
 * kernels of its tasks.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stagesOf } from '../../../engine/plan/physical-plan.ts';
import { ALS, Profile, Session, SGD, Trace } from '../../../index.ts';
import { checkTrace, type SeenSpan } from '../../support/traces.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();

/** Three users rate two items; two of these pairs are also in the validation set. */
const rows = [0, 1, 2].flatMap((user) => [0, 1].map((item) => ({ user, item, rating: user + item + 1 })));

async function runOf(estimator: ALS | SGD, validates: boolean) {
  const file = join(folder, 'trace.json');
  const trace = await Trace.open(file);
  const profile = new Profile({ trace });
  const session = await Session.create({ device: 'cpu', workers: 2, profile });
  const validation = validates ? session.fromRows(rows.slice(0, 2)) : undefined;
  const model = await estimator.fit(session.fromRows(rows), { validation });
  await session.close();
  await trace.close();
  return { spans: checkTrace(readFileSync(file, 'utf8')).spans, plan: model.training?.plan };
}

/**
 * The stages in the order of the list: "sort ratings < read ratings, plan sizes: count-rows 2, sort-bands 2".
 */
function graphOf(spans: readonly SeenSpan[]): string[] {
  const stages = spans.filter(({ args }) => args?.number !== undefined);
  return stages
    .toSorted((one, other) => Number(one.args?.number) - Number(other.args?.number))
    .map(({ name, args }) => {
      const kernels = new Map<string, number>();
      for (const { args: one } of spans)
        if (one?.within === name && typeof one.kernel === 'string')
          kernels.set(one.kernel, (kernels.get(one.kernel) ?? 0) + 1);
      const tasks = [...kernels].toSorted().map(([kernel, count]) => `${kernel} ${count}`);
      const needs = args?.needs === '' ? '' : ` < ${args?.needs as string}`;
      return `${args?.speculative ? '? ' : ''}${name}${needs}${tasks.length > 0 ? `: ${tasks.join(', ')}` : ''}`;
    });
}

const golden = (name: string) =>
  readFileSync(resolve(`test/golden/fits/${name}.txt`), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));

describe('the graph of a whole fit', () => {
  it.each([
    ['als', () => new ALS({ rank: 2, maxIter: 2, seed: 1 }), false],
    ['als-validation', () => new ALS({ rank: 2, maxIter: 2, seed: 1 }), true],
    ['als-implicit', () => new ALS({ rank: 2, maxIter: 2, seed: 1, implicitPrefs: true }), true],
    ['sgd-validation', () => new SGD({ rank: 2, maxIter: 2, seed: 1 }), true],
  ] as const)('%s', async (name, estimator, validates) => {
    const { spans, plan } = await runOf(estimator(), validates);
    expect(graphOf(spans)).toEqual(golden(name));
    // The plan's stages of kind `grown` are stages of this graph.
    const graph = new Set(spans.filter(({ args }) => args?.number !== undefined).map((one) => one.name));
    for (const { stage } of plan ? stagesOf(plan) : [])
      if (stage.work.kind === 'grown') expect(graph).toContain(stage.work.by);
    expect(plan?.load.map(({ work }) => work.kind)).toEqual(plan?.load.map(() => 'grown'));
  });
});
