/**
 * Devices receive exactly the calls of the plan's steps: at each place in the order of its edges, over all
 * places as a set.
 */
import { describe, expect, it } from 'vitest';
import { type BoundPlan, type KeptVersions, keptOf } from '../../../engine/plan/bound-plan.ts';
import { HOST } from '../../../engine/plan/place.ts';
import { expand, expandFree } from '../../../engine/run/expand.ts';
import type { Step } from '../../../engine/run/step.ts';
import { contracts } from '../../../operators/tasks/tasks.ts';
import type { SgdSchedule } from '../../../operators/sgd/schedules/schedule.ts';
import { type BoundProblem, boundAls, boundSgd } from '../../support/steps/bound-problems.ts';
import type { RunProblem } from '../../support/steps/recorded-runs.ts';
import { recordAls, recordSgd } from '../../support/steps/recorded-runs.ts';
import { shortName } from '../../support/steps/recording-device.ts';
import { cpuInfo, gpuInfo, mostly } from '../../support/steps/small-problems.ts';
import { RandomTurns } from '../../support/steps/turns.ts';

const rows = mostly(13, 9);
const devicesOf: Record<string, RunProblem['compute']> = {
  'the CPU': [cpuInfo],
  'one GPU': [gpuInfo(0)],
  'two GPUs': [gpuInfo(0), gpuInfo(1)],
  'four GPUs': [0, 1, 2, 3].map((n) => gpuInfo(n)),
  'two devices that keep no order': [0, 1].map((n) => gpuInfo(n, { inOrder: false, wholePasses: false })),
};

/** The verbs of a step, as devices note them. */
function verbsOf(
  { at, do: action }: Step,
  infos: Readonly<Record<string, { readonly ownMemory: boolean }>>,
): string[] {
  switch (action.kind) {
    case 'task':
      return action.slices.map((slice) => {
        const { from, to } = { ...action.task.params, ...slice } as { from?: unknown; to?: unknown };
        const names = (refs: typeof action.task.inputs) => Object.values(refs).map(shortName).join(' ');
        return `${at} run ${action.task.kernel}${typeof from === 'number' && typeof to === 'number' ? ` [${from}, ${to})` : ''} ${names(action.task.inputs)} > ${names(action.task.outputs)}`.trimEnd();
      });
    case 'allocate':
      return [`${at} ${at === HOST ? 'put' : 'allocate'} ${shortName(action.ref)}`];
    case 'move':
      return [
        ...(action.from === HOST ? [] : [`${action.from} fetch ${shortName(action.ref)}`]),
        `${action.to} put ${shortName(action.as)}`,
        ...(action.load && infos[action.to]?.ownMemory
          ? [`${action.to} run upload ${shortName(action.as)} >`]
          : []),
      ];
    case 'hand-out':
      return at === HOST ? [] : [`${at} fetch ${shortName(action.ref)}`];
    case 'spill':
      return [
        `${at} run spill ${action.refs.map(shortName).join(' ')} >`,
        ...['release', 'put'].flatMap((verb) => action.refs.map((ref) => `${at} ${verb} ${shortName(ref)}`)),
      ];
    case 'free':
      return action.refs.map((ref) => `${at} release ${shortName(ref)}`);
  }
}

/**
 * All step lists of a run with `rounds` rounds of equal errors: with early stopping the first is the best.
 */
function listsOf(bound: BoundPlan, keep: KeptVersions, rounds: number): (readonly Step[])[] {
  const start = expand(bound, contracts, 'start', {});
  const losable = bound.devices.some(({ ownMemory }) => ownMemory);
  const lists = [start.steps];
  let [good, best, bestRound] = [start.versions, start.versions, 0];
  for (let number = 1; number <= rounds; number++) {
    const kept = keptOf(keep, good, best);
    const round = expand(
      bound,
      contracts,
      'round',
      good,
      { number, params: { epoch: number, next: number + 1 } },
      kept,
    );
    lists.push(
      round.steps,
      expand(bound, contracts, 'measure', round.versions, { number, brief: number < rounds }).steps,
    );
    // The version that is kept has its errors by a pass over the ratings, where the copies made from it are
    // there.
    if (
      keep.best &&
      number === bestRound + 1 &&
      number > 1 &&
      bound.phases.measure.some(({ brief }) => brief !== undefined) &&
      bound.datasets.every(({ derived }) => !derived)
    )
      lists.push(expand(bound, contracts, 'measure', best, { number: bestRound }).steps);
    good = round.versions;
    if (number === 1 || !keep.best) [best, bestRound] = [good, number];
    for (const old of kept) lists.push(expandFree(bound, contracts, 'free', old, [good, best]));
    // The factors are copied to the host if a device may be lost; of the best there is a copy then.
    if (number < rounds && losable) lists.push(expand(bound, contracts, 'end', good, { number }).steps);
  }
  return keep.best && losable
    ? lists
    : [...lists, expand(bound, contracts, 'end', best, { number: bestRound }).steps];
}

async function compare(
  made: { readonly recording: Awaited<ReturnType<typeof recordAls>>['recording']; train(): Promise<unknown> },
  problem: BoundProblem,
  rounds: number,
) {
  const { recording } = made;
  await made.train();
  const { bound, keep } = problem;
  const infos = Object.fromEntries(bound.devices.map((info) => [info.place, info]));
  const expected = listsOf(bound, keep, rounds).flatMap((steps) =>
    steps.flatMap((step) => verbsOf(step, infos)),
  );
  const given = new Set(
    Object.values(bound.given)
      .flat()
      .map((ref) => `${HOST} put ${shortName(ref)}`),
  );
  const text = ({ at, verb, text: what }: (typeof recording.log)[number]) => `${at} ${verb} ${what}`;
  // The layout of ratings, and counts of implicit ratings, come before the steps; partitions that remain are
  // released after the last step.
  const lines = recording.log.map(text);
  const first = Math.max(
    0,
    lines.indexOf('host put row-keys.0@0'),
    lines.lastIndexOf('cpu release positive.0@0') + 1,
  );
  const log = lines
    .slice(first)
    .filter((line) => !given.has(line))
    .slice(0, expected.length);
  expect([...log].sort()).toEqual([...expected].sort());
  for (const { place, inOrder } of bound.devices) {
    if (!inOrder) continue;
    // Partitions and rows of other devices, at the start too, arrive when they do; a segment may be
    // shrunk before the one in front of it has been stepped, and measured as soon as it is there.
    const runs = (lines: readonly string[]) =>
      lines.filter(
        (line) =>
          line.startsWith(`${place} run`) &&
          !line.includes(' upload ') &&
          !/ (place|add)-rows | gram .*users\.\d+@0/.test(line) &&
          !/shrink-rows .* > columns|(squared-error|weighted-norm) .* columns/.test(line),
      );
    expect(runs(log)).toEqual(runs(expected));
  }
}

describe.each([1, 7])('by turns drawn from %i', (seed) => {
  describe.each(Object.keys(devicesOf))('on %s', (name) => {
    const compute = devicesOf[name];
    it.each([
      { biases: false, test: false },
      { biases: true, test: true, earlyStop: 9 },
      { implicitPrefs: true, test: false },
    ])('als does its steps: %o', async ({ test, ...params }) => {
      const turns = new RandomTurns(seed);
      const made = await recordAls(
        { rows, columns: 9, test, compute, options: () => ({ turns }) },
        { rank: 3, maxIter: 3, ...params },
      );
      await compare(
        made,
        boundAls({ rows, columns: 9, test, devices: compute }, { rank: 3, maxIter: 3, ...params }),
        3,
      );
    });

    it.each([
      { schedule: 'auto' as const },
      { schedule: 'hogwild' as const },
      { schedule: 'wavefront' as const, rate: 'adagrad' as const },
      { schedule: 'blocks' as const, staged: true },
      { schedule: 'blocks' as const, list: true, rate: 'adagrad' as const, biases: true },
      { schedule: 'auto' as const, regOffset: 2, biases: true },
      { schedule: 'wavefront' as const, regOffset: 2, rate: 'adagrad' as const },
    ])('sgd does its steps: %o', async ({ staged, list, ...given }) => {
      const several = compute.length > 1;
      const params = { rank: 3, maxIter: 3, ...given, ...(several ? { schedule: 'blocks' as const } : {}) };
      const schedule = (one: SgdSchedule) =>
        one.deviceBlocks
          ? {
              ...one,
              deviceBlocks: {
                ...one.deviceBlocks,
                ...(staged ? { resident: false } : {}),
                ...(list ? { steps: 'hogwild' as const } : {}),
              },
            }
          : one;
      const turns = new RandomTurns(seed);
      const made = await recordSgd({ rows, columns: 9, compute, options: () => ({ turns }) }, params, {
        schedule,
      });
      await compare(
        made,
        await boundSgd({ rows, columns: 9, test: false, devices: compute }, params, schedule),
        3,
      );
    });
  });
});
