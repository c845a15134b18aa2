/** The command `worker` with checkpoints: docs/reference/worker-protocol.md, training on one host. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { JsonObject } from '../../engine/json.ts';
import { isDeep } from '../support/deep.ts';
import { rowsOf, WorkerParent } from '../support/worker-parent.ts';
import { errorOf, folder, rows, stream } from './fed-workers.ts';

const params = { rank: 4, maxIter: 400, seed: 7, regParam: 0.05 };

function worker(opening: JsonObject): WorkerParent {
  const parent = new WorkerParent();
  parent.feed({ params, ...opening }, stream, rows);
  return parent;
}

it.each([
  ...(isDeep ? [['from its own start', null] as const] : []),
  ["from Spark's start", { seed: '-1', userBlocks: 4 }] as const,
])(
  'a worker that was killed is continued by another one, with the same factors, %s',
  async (name, sparkStart) => {
    const undisturbed = await worker({ sparkStart }).ended;
    const checkpoints = { dir: join(folder, `checkpoints ${name}`), interval: 5 };
    const killed = worker({ checkpoints, sparkStart });
    while (killed.frames.filter(({ header }) => header.type === 'iteration').length < 12)
      await killed.frame('iteration', killed.frames.length);
    killed.child.kill('SIGKILL');
    await killed.ended;
    expect(readdirSync(checkpoints.dir).some((name) => name.startsWith('checkpoint-'))).toBe(true);
    const { code, frames } = await worker({ checkpoints, sparkStart }).ended;
    expect(code).toBe(0);
    const factors = (of: typeof frames) => rowsOf(of.filter(({ header }) => header.type === 'factors'));
    expect(factors(frames)).toEqual(factors(undisturbed.frames));
    const { resumedFrom = {} } = frames.find(({ header }) => header.type === 'report')?.header ?? {};
    expect((resumedFrom as JsonObject).iteration).toBeGreaterThanOrEqual(5);
  },
);

it.each([
  ['a folder', { interval: 1 }, 'checkpoints need a folder dir, got undefined'],
  ['an interval', { dir: folder, interval: 0 }, 'checkpoints need a whole number interval from 1, got 0'],
])('refuses checkpoints without %s', async (_, checkpoints, message) => {
  const ended = await worker({ checkpoints }).ended;
  expect(errorOf(ended)).toMatchObject({ code: 'USAGE', message });
});
