/**
 * Runs that fail because of a task that throws, a cancel or a lost device. No work continues after them, and
 * no partition remains.
 */
import { describe, expect, it } from 'vitest';
import { CancelledError, DeviceLostError } from '../../engine/errors.ts';
import { mix32 } from '../../engine/random.ts';
import { stageNamed } from '../../engine/plan/physical-plan.ts';
import { everyNth, isDeep } from '../support/deep.ts';
import { recordAls, recordSgd, type RunProblem } from '../support/steps/recorded-runs.ts';
import type { RecordingOptions } from '../support/steps/recording-device.ts';
import { cpuInfo, gpuInfo, mostly } from '../support/steps/small-problems.ts';
import { RandomTurns } from '../support/steps/turns.ts';

const problem: RunProblem = { rows: mostly(8, 6), columns: 6, test: true, compute: [] };
/** `every`: the deep run ends a run with many steps at each `every`-th; its three tests take different ones. */
const cases: Record<
  string,
  {
    readonly compute: RunProblem['compute'];
    readonly every?: number;
    readonly make: (problem: RunProblem) => ReturnType<typeof recordAls> | ReturnType<typeof recordSgd>;
  }
> = {
  'als on the CPU': {
    compute: [cpuInfo],
    make: (one) => recordAls(one, { rank: 2, maxIter: 2, biases: true }, { held: true }),
  },
  'als on a GPU': {
    compute: [gpuInfo(0)],
    make: (one) => recordAls(one, { rank: 2, maxIter: 2 }, { held: true }),
  },
  'als on a GPU with speculation': {
    compute: [gpuInfo(0)],
    make: (one) => recordAls(one, { rank: 2, maxIter: 4 }, { held: true, copySeconds: 1000 }),
  },
  'als on two GPUs': {
    compute: [gpuInfo(0), gpuInfo(1)],
    every: 7,
    make: (one) => recordAls(one, { rank: 2, maxIter: 3 }, { held: true }),
  },
  'als that exchanges vectors on two GPUs': {
    compute: [gpuInfo(0), gpuInfo(1)],
    every: 37,
    make: (one) =>
      recordAls(
        one,
        {
          rank: 2,
          maxIter: 2,
          solver: 'cg',
          cgSteps: 2,
          partitionUsers: '2,2',
          partitionItems: '2,2',
          partitionSums: 'vectors',
        },
        { held: true },
      ),
  },
  'als on partial equations on two GPUs': {
    compute: [gpuInfo(0), gpuInfo(1)],
    every: 37,
    make: (one) =>
      recordAls(
        one,
        {
          rank: 2,
          maxIter: 2,
          solver: 'cg',
          cgSteps: 2,
          partitionUsers: '2,2',
          partitionItems: '2,2',
          partitionSums: 'partial-equations',
        },
        { held: true },
      ),
  },
  'sgd on the CPU': {
    compute: [cpuInfo],
    every: 13,
    make: (one) => recordSgd(one, { rank: 2, maxIter: 2 }, { held: true }),
  },
  'sgd on a GPU': {
    compute: [gpuInfo(0)],
    make: (one) => recordSgd(one, { rank: 2, maxIter: 2 }, { held: true }),
  },
  'sgd on a GPU with speculation': {
    compute: [gpuInfo(0)],
    make: (one) =>
      recordSgd(one, { rank: 2, maxIter: 4, schedule: 'tile' }, { held: true, copySeconds: 1000 }),
  },
  'sgd on two GPUs': {
    compute: [gpuInfo(0), gpuInfo(1)],
    every: 19,
    make: (one) => recordSgd(one, { rank: 2, maxIter: 2 }, { held: true }),
  },
  'sgd by turns on three GPUs': {
    compute: [gpuInfo(0), gpuInfo(1), gpuInfo(2)],
    every: 31,
    make: (one) => recordSgd(one, { rank: 2, maxIter: 2, schedule: 'blocks' }, { held: true }),
  },
};

type Outcome =
  | { readonly result: { readonly iterations: readonly unknown[]; readonly lost?: DeviceLostError } }
  | { readonly error: unknown };

/** The outcome of a run with these device options; checks that no work continues and no partition remains. */
async function endOf(name: string, options: (place: string) => RecordingOptions, signal?: AbortSignal) {
  const { compute, make } = cases[name];
  const made = await make({ ...problem, compute, options, signal });
  const { recording } = made;
  let outcome: Outcome;
  try {
    outcome = { result: await made.train() };
  } catch (error) {
    outcome = { error };
  }
  expect(recording.running).toBe(0);
  expect(recording.held).toEqual([]);
  return { outcome, recording, plan: made.plan };
}

/** A verb of a run: its place, its number there, and the number of verbs that the whole run has there. */
interface End {
  readonly place: string;
  readonly n: number;
  readonly verbs: number;
}

/**
 * Where runs are ended: in `npm test` at one verb of every second kind (a kernel, a fetch, ...), which `seed` draws among
 * all places; in the deep run at each `every`-th verb of each place, from number `from`.
 */
async function endsOf(name: string, from: number, seed: number): Promise<readonly End[]> {
  const kinds = new Map<string, Omit<End, 'verbs'>[]>();
  const { recording, outcome } = await endOf(name, (place) => ({
    turns: new RandomTurns(1),
    before: (n, verb, task) => {
      const kind = `${verb} ${task?.kernel ?? ''}`;
      if (!kinds.has(kind)) kinds.set(kind, []);
      kinds.get(kind)!.push({ place, n });
    },
  }));
  expect('result' in outcome).toBe(true);
  const { every = 1 } = cases[name];
  const counts = new Map(recording.devices.map(({ info, verbs }) => [info.place, verbs]));
  const all = [...counts].flatMap(([place, verbs]) =>
    Array.from({ length: verbs }, (_, n) => ({ place, n })).filter(({ n }) => n % every === from % every),
  );
  // Each test of a run takes another half of the kinds.
  const drawn = everyNth([...kinds.values()], 2, seed).map(
    (same) => same[mix32(seed, same.length) % same.length],
  );
  return (isDeep ? all : drawn).map((end) => ({ ...end, verbs: counts.get(end.place)! }));
}

describe.each(everyNth(Object.keys(cases), 2))('%s', (name) => {
  const { compute, every = 1 } = cases[name];

  it('ends with the error of any verb that fails, and leaves nothing', async () => {
    for (const { place, n } of await endsOf(name, 0, 1)) {
      const failures: Error[] = [];
      const turns = new RandomTurns(n);
      const before: RecordingOptions['before'] = (at, verb, task) => {
        if (at < n || failures.length > 0 || verb === 'put') return;
        const failure = new Error(`${task?.kernel ?? verb} fails at verb ${at} of ${place}`);
        failures.push(failure);
        throw failure;
      };
      const { outcome } = await endOf(name, (at) => ({ turns, ...(at === place ? { before } : {}) }));
      if (failures.length > 0) expect(outcome).toEqual({ error: failures[0] });
    }
  });

  it('ends with CancelledError when cancelled at any step, and leaves nothing', async () => {
    for (const { place, n, verbs } of await endsOf(name, every >> 1, 2)) {
      const turns = new RandomTurns(n);
      const cancel = new AbortController();
      let cancelled = false;
      const before: RecordingOptions['before'] = (at) => {
        if (at !== n) return;
        cancelled = true;
        cancel.abort();
      };
      const { outcome } = await endOf(
        name,
        (at) => ({ turns, ...(at === place ? { before } : {}) }),
        cancel.signal,
      );
      // A run that is cancelled with its last step may have ended.
      if (cancelled && 'error' in outcome) expect(outcome.error).toBeInstanceOf(CancelledError);
      if (cancelled && 'result' in outcome) expect(n).toBeGreaterThanOrEqual(verbs - 4);
    }
  });

  it.skipIf(compute[0].kind === 'cpu')(
    'goes on without a lost device, or ends with what had reached the host',
    async () => {
      const lost = (await endsOf(name, every >> 2, 3)).filter(({ place }) =>
        compute.some((device) => device.place === place),
      );
      for (const { place, n, verbs } of lost) {
        const turns = new RandomTurns(n);
        const { outcome, recording, plan } = await endOf(name, (at) => ({
          turns,
          ...(at === place ? { lostAt: n } : {}),
        }));
        const reached = recording.devices.find(({ info }) => info.place === place)?.verbs ?? 0;
        if (compute.length === 1) {
          if ('error' in outcome) expect(outcome.error).toBeInstanceOf(DeviceLostError);
          else if (outcome.result.lost) expect(outcome.result.iterations.length).toBeLessThan(plan.rounds);
          else expect(reached).toBeLessThanOrEqual(verbs);
          continue;
        }
        if ('error' in outcome) throw outcome.error;
        expect(outcome.result.lost).toBeUndefined();
        expect(outcome.result.iterations).toHaveLength(plan.rounds);
        expect(
          recording.log.slice(recording.log.findLastIndex(({ text }) => text.startsWith('initialize')))
            .length,
        ).toBeGreaterThan(0);
      }
    },
  );
});

it.each(['sgd on two GPUs', 'sgd by turns on three GPUs'])(
  'columns pass from GPU to GPU in the runs of %s',
  async (name) => {
    const { compute, make } = cases[name];
    const { plan } = await make({ ...problem, compute });
    expect(stageNamed(plan, 'sgd-epoch').work).toMatchObject({
      order: 'turns',
      passes: expect.arrayContaining(['columns']),
    });
  },
);

it('one slice that fails ends the others, and its error is thrown', async () => {
  const made = await recordAls(
    {
      ...problem,
      rows: mostly(200, 100),
      columns: 100,
      compute: [cpuInfo],
      options: () => ({
        turns: new RandomTurns(3),
        before: (_, __, task) => {
          if (task?.kernel === 'update' && task.params.from !== 0) throw new Error('this slice fails');
        },
      }),
    },
    { rank: 2, maxIter: 2 },
    { held: true },
  );
  await expect(made.train()).rejects.toThrow('this slice fails');
  expect([made.recording.running, made.recording.held]).toEqual([0, []]);
  expect(made.recording.log.filter(({ text }) => text.startsWith('update')).length).toBeGreaterThan(1);
});
