/**
 * Exchanges: their steps, their bytes and seconds over links as worked out by hand, and their sums, in part
 * order in every bit.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CpuDevice } from '../../../cpu/device.ts';
import { type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { BoundPlan } from '../../../engine/plan/bound-plan.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { DataSet, Stage } from '../../../engine/plan/stages.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { transfersOf } from '../../../engine/run/exchanges/cost.ts';
import { expand } from '../../../engine/run/expand.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import type { Step } from '../../../engine/run/step.ts';
import { contracts } from '../../../operators/tasks/tasks.ts';
import { checkEdges, LiveSet } from '../../support/steps/check-steps.ts';
import { contextOf, gpuInfo } from '../../support/steps/small-problems.ts';

const ROWS = 3;
const COLUMNS = 5;
const gpus = (count: number): Place[] => Array.from({ length: count }, (_, n) => `gpu:${n}`);

/** A slice of the sums at each of `owners`, and of each slice a partial sum at each place. */
function reduction(
  places: readonly Place[],
  owners: readonly Place[],
  work: Pick<Extract<Stage['work'], { readonly how: 'reduce-scatter' | 'reduce-to-one' }>, 'how' | 'groups'>,
  devices: BoundPlan['devices'],
): BoundPlan {
  const matrix = (name: string, at: readonly Place[]): DataSet => ({
    name,
    layout: 'factors',
    columns: COLUMNS,
    derived: true,
    parts: at.map((place) => ({ rows: ROWS, at: [place] })),
  });
  const reduce: Stage = {
    name: 'reduce',
    at: owners,
    work: { kind: 'exchange', data: ['partials'], to: ['sums'], ...work },
  };
  return {
    name: 'test',
    devices,
    datasets: [
      matrix(
        'partials',
        owners.flatMap(() => places),
      ),
      matrix('sums', owners),
    ],
    phases: { start: [], round: [reduce], measure: [], end: [] },
    given: {},
    slices: {},
  };
}

/** `P2` is partial sum 2, the second slice's first with two places; `S1` the sum of slice 1. */
function lineOf({ at, do: action }: Step): string {
  const name = ({ name: set, partition }: PartitionRef) => `${set === 'test/sums' ? 'S' : 'P'}${partition}`;
  switch (action.kind) {
    case 'task':
      return `${at} ${action.task.kernel} ${Object.values(action.task.inputs).map(name).join(' ')} > ${Object.values(action.task.outputs).map(name).join(' ')}`;
    case 'move':
      return `${name(action.ref)} ${action.from} > ${action.to}`;
    case 'free':
      return `${at} free ${action.refs.map(name).join(' ')}`;
    default:
      return `${at} ${action.kind} ${'ref' in action ? name(action.ref) : ''}`;
  }
}

const partialsOf = (bound: BoundPlan): PartitionRef[] =>
  bound.datasets[0].parts.map((_, partition) => ({ name: 'test/partials', partition, version: 0 }));

function stepsOf(bound: BoundPlan): readonly Step[] {
  return expand(bound, contracts, 'round', { partials: 0 }).steps;
}

describe('the steps of a reduction', () => {
  it('are those worked out by hand for two devices that share the sums', () => {
    const places = gpus(2);
    const steps = stepsOf(
      reduction(
        places,
        places,
        { how: 'reduce-scatter' },
        places.map((_, n) => gpuInfo(n)),
      ),
    );
    expect(steps.map(lineOf)).toEqual([
      'gpu:0 allocate S0',
      'gpu:0 place-rows P0 > S0',
      'gpu:0 free P0',
      'P1 gpu:1 > host',
      'P1 host > gpu:0',
      'gpu:0 add-rows P1 > S0',
      'gpu:0 free P1',
      'host free P1',
      'gpu:1 free P1',
      'gpu:1 allocate S1',
      // The sum starts with P2, although P3 is already there.
      'P2 gpu:0 > host',
      'P2 host > gpu:1',
      'gpu:1 place-rows P2 > S1',
      'gpu:1 free P2',
      'host free P2',
      'gpu:0 free P2',
      'gpu:1 add-rows P3 > S1',
      'gpu:1 free P3',
    ]);
  });

  it('go inside groups first, where there are groups', () => {
    const places = gpus(4);
    const groups = [places.slice(0, 2), places.slice(2)];
    const steps = stepsOf(
      reduction(
        places,
        [places[3]],
        { how: 'reduce-scatter', groups },
        places.map((_, n) => gpuInfo(n)),
      ),
    );
    expect(steps.flatMap((step) => (step.do.kind === 'free' ? [] : [lineOf(step)]))).toEqual([
      // The owner is the second of its group, so the second of the other group adds up there: P1 + P0, which
      // is P0 + P1.
      'P0 gpu:0 > host',
      'P0 host > gpu:1',
      'gpu:1 add-rows P0 > P1',
      'P2 gpu:2 > host',
      'P2 host > gpu:3',
      'gpu:3 add-rows P2 > P3',
      'gpu:3 allocate S0',
      'P1 gpu:1 > host',
      'P1 host > gpu:3',
      'gpu:3 place-rows P1 > S0',
      'gpu:3 add-rows P3 > S0',
    ]);
  });

  it.each([
    { devices: 3, owners: 3, how: 'reduce-scatter' as const },
    {
      devices: 4,
      owners: 4,
      how: 'reduce-scatter' as const,
      groups: [
        [0, 1],
        [2, 3],
      ],
    },
    { devices: 4, owners: 4, how: 'reduce-scatter' as const, groups: [[0, 3, 1], [2]] },
    { devices: 3, owners: 1, how: 'reduce-to-one' as const },
  ])(
    'have edges behind which nothing can go wrong, and use the partial sums up: %o',
    ({ devices, owners, how, groups }) => {
      const places = gpus(devices);
      for (const inOrder of [true, false]) {
        const bound = reduction(
          places,
          places.slice(0, owners),
          { how, ...(groups ? { groups: groups.map((group) => group.map((n) => places[n])) } : {}) },
          places.map((_, n) => gpuInfo(n, { inOrder })),
        );
        const steps = stepsOf(bound);
        const live = new LiveSet(bound, []);
        bound.datasets[0].parts.forEach(({ at: [place] }, partition) =>
          live.alive.add(`${place} test/partials/${partition}@0`),
        );
        live.add(steps);
        expect([...checkEdges(steps, bound), ...live.problems]).toEqual([]);
        expect([...live.alive].sort()).toEqual(
          bound.datasets[1].parts.map(({ at: [place] }, slice) => `${place} test/sums/${slice}@0`).sort(),
        );
      }
    },
  );

  it('refuses several places for one, and a place without a group', () => {
    const places = gpus(2);
    const infos = places.map((_, n) => gpuInfo(n));
    expect(() => stepsOf(reduction(places, places, { how: 'reduce-to-one' }, infos))).toThrow(
      'reduce: reduce-to-one has one place for sums, not gpu:0 and gpu:1',
    );
    expect(() =>
      stepsOf(reduction(places, places, { how: 'reduce-scatter', groups: [[places[0]]] }, infos)),
    ).toThrow('reduce: no group has the place gpu:1');
  });
});

describe('the sums on devices', () => {
  let devices: CpuDevice[];
  beforeAll(() => void (devices = [0, 1, 2, 3].map((n) => new CpuDevice({ threads: 1, place: `cpu:${n}` }))));
  afterAll(async () => void (await Promise.all(devices.map((device) => device.close()))));

  const random = new CounterRandom(3);
  const values = (partition: number): Float32Array =>
    Float32Array.from(
      { length: ROWS * COLUMNS },
      (_, i) => 1000 ** random.uniform(1000 * partition + i) - 500,
    );
  const partial = (partition: number): Partition => ({
    layout: 'factors',
    rows: ROWS,
    columns: { values: shared(values(partition)) },
  });
  const shared = (numbers: Float32Array) => {
    const copy = sharedArray(Float32Array, numbers.length);
    copy.set(numbers);
    return copy;
  };
  const add = (left: Float32Array, right: Float32Array) => left.map((value, i) => value + right[i]);

  it.each([
    { name: 'one phase', sum: ([a, b, c, d]: Float32Array[]) => add(add(add(a, b), c), d) },
    {
      name: 'two phases',
      groups: [
        [0, 1],
        [2, 3],
      ],
      sum: ([a, b, c, d]: Float32Array[]) => add(add(a, b), add(c, d)),
    },
    // In the group of three, the place that adds starts with its own partial sum.
    {
      name: 'groups of three and one',
      groups: [[0, 1, 2], [3]],
      sum: ([a, b, c, d]: Float32Array[], slice: number) =>
        add([add(add(a, b), c), add(add(b, a), c), add(add(c, a), b), add(add(a, b), c)][slice], d),
    },
  ])('are added in a fixed order, in every bit: $name', async ({ groups, sum }) => {
    const infos = devices.map(({ info }) => info);
    const places = infos.map(({ place }) => place);
    const bound = reduction(
      places,
      places,
      {
        how: 'reduce-scatter',
        ...(groups ? { groups: groups.map((group) => group.map((n) => places[n])) } : {}),
      },
      infos,
    );
    const ctx = contextOf(new LocalExecutor(devices));
    const steps = stepsOf(bound);
    const sums: PartitionRef[] = places.map((_, partition) => ({ name: 'test/sums', partition, version: 0 }));
    await runSteps(steps, ctx, {
      given: partialsOf(bound).map((ref) => [ref, partial(ref.partition), places[ref.partition % 4]]),
    });
    for (const [slice, ref] of sums.entries()) {
      const got = (await devices[slice].fetch(ref)).columns.values as Float32Array;
      expect(Array.from(got)).toEqual(
        Array.from(
          sum(
            [0, 1, 2, 3].map((k) => values(4 * slice + k)),
            slice,
          ),
        ),
      );
      devices[slice].release(ref);
    }
    expect(transfersOf(steps, () => 1).length).toBe(12);
  });
});
