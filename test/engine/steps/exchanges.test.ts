/**
 * Exchanges: their steps, their bytes and seconds over links as worked out by hand, and their sums, in part
 * order in every bit.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CpuDevice } from '../../../cpu/device.ts';
import type { Partition, PartitionRef } from '../../../engine/partition.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { BoundPlan } from '../../../engine/plan/bound-plan.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { DataSet, Stage } from '../../../engine/plan/stages.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { exchangeCost } from '../../../engine/run/exchanges/cost.ts';
import { bytesByLink, type Links, transfersOf } from '../../../engine/run/exchanges/traffic.ts';
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
      // The sum begins with P2 though P3 is there already.
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

/** Devices in groups: `near` inside a group, `far` across. */
function links(groups: number, each: number, [near, far]: readonly [number, number], duplex = true): Links {
  const places = gpus(groups * each);
  return {
    places,
    duplex,
    bytesPerSecond: places.map((_, from) =>
      places.map((__, to) => (Math.floor(from / each) === Math.floor(to / each) ? near : far)),
    ),
  };
}

describe('bytes and seconds of an exchange', () => {
  const flat = links(2, 2, [8, 8]);
  const near = links(2, 2, [8, 2]);
  const groupsOf = (places: readonly Place[], each: number) => [places.slice(0, each), places.slice(each)];
  const cost = (
    how: 'all-gather' | 'reduce-to-one' | 'reduce-scatter',
    over: Links,
    bytes: number,
    groups?: readonly (readonly Place[])[],
  ) => exchangeCost({ how, bytes, places: over.places, ...(groups ? { groups } : {}) }, over);

  it('are those of cuMF, Figure 5, on 2 x 2 devices', () => {
    // One device takes three times 64 bytes at 8 a second; with its share each of four takes three times 16.
    expect(cost('reduce-to-one', flat, 64).seconds).toBe(24);
    expect(cost('reduce-scatter', flat, 64).seconds).toBe(6);
    // Of its three 16 bytes, two cross at 2 a second.
    expect(cost('reduce-scatter', near, 64).seconds).toBe(2 + 16);
    // Two near ones, then one that crosses.
    const two = cost('reduce-scatter', near, 64, groupsOf(near.places, 2));
    expect(two.seconds).toBe(4 + 8);
    expect(two.transfers.filter(({ phase }) => phase === 0)).toHaveLength(8);
    expect(bytesByLink(two.transfers)).toEqual({
      'gpu:1 > gpu:0': 32,
      'gpu:3 > gpu:2': 32,
      'gpu:2 > gpu:0': 16,
      'gpu:0 > gpu:1': 32,
      'gpu:2 > gpu:3': 32,
      'gpu:3 > gpu:1': 16,
      'gpu:0 > gpu:2': 16,
      'gpu:1 > gpu:3': 16,
    });
  });

  it('grow with what crosses on 2 x 4 devices', () => {
    const eight = links(2, 4, [8, 2]);
    // Slices of 8 bytes: three near and four that cross; in two phases three near for each of two groups and
    // one that crosses.
    expect(cost('reduce-scatter', eight, 64).seconds).toBe(3 + 16);
    expect(cost('reduce-scatter', eight, 64, groupsOf(eight.places, 4)).seconds).toBe(6 + 4);
    expect(cost('reduce-to-one', eight, 64).seconds).toBe(3 * 8 + 4 * 32);
  });

  it('count both ways where one thread does both', () => {
    const [duplex, half] = [true, false].map((both) => links(1, 2, [8, 8], both));
    expect(cost('all-gather', duplex, 64).seconds).toBe(4);
    expect(cost('all-gather', half, 64).seconds).toBe(8);
    expect(bytesByLink(cost('all-gather', half, 64).transfers)).toEqual({
      'gpu:0 > gpu:1': 32,
      'gpu:1 > gpu:0': 32,
    });
  });

  it('names a link that is not known', () => {
    expect(() => exchangeCost({ how: 'all-gather', bytes: 8, places: gpus(3) }, flat)).not.toThrow();
    expect(() => exchangeCost({ how: 'all-gather', bytes: 8, places: ['gpu:0', 'gpu:9'] }, flat)).toThrow(
      'no link is known from gpu:0 to gpu:9',
    );
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
    // In the group of three the place that adds up begins with its own.
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
