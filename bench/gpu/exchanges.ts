/**
 * Reductions of normal equations over several GPUs: to one GPU, and scattered over all.
 *
 *     node bench/gpu/exchanges.ts gpu:0,1 [rows] [columns] [slices of each GPU]
 *
 * Default: cuMF's Hugewiki, 39,780 items of rank 100, whose equations have 5,151 numbers each. Prints bytes
 * and seconds.
 */
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../engine/partition.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { DataSet, Stage } from '../../engine/plan/stages.ts';
import { computeDevices } from '../../engine/run/devices.ts';
import { bytesByLink, transfersOf } from '../../engine/run/exchanges/traffic.ts';
import { expand } from '../../engine/run/expand.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { Session } from '../../index.ts';
import type { DeviceRequest } from '../../api/devices/device-request.ts';
import { contracts } from '../../operators/tasks/tasks.ts';
import { evenRanges } from '../../operators/ratings/row-ranges.ts';

const [device = 'gpu:0,1', rows = '39780', columns = '5151', each = '4'] = process.argv.slice(2);
const ROUNDS = 5;
type How = 'reduce-to-one' | 'reduce-scatter';

function planOf(
  how: How,
  places: readonly Place[],
  devices: BoundPlan['devices'],
  size: readonly [number, number],
  slices: number,
): BoundPlan {
  const ranges = evenRanges(size[0], places.length * slices);
  const owners = ranges.map((_, slice) =>
    how === 'reduce-to-one' ? places[0] : places[Math.floor(slice / slices)],
  );
  const set = (name: string, at: readonly (readonly [number, Place])[]): DataSet => ({
    name,
    layout: 'factors',
    columns: size[1],
    derived: true,
    parts: at.map(([slice, place]) => ({ rows: ranges[slice].to - ranges[slice].from, at: [place] })),
  });
  const reduce: Stage = {
    name: 'reduce',
    at: owners,
    work: { kind: 'exchange', how, data: ['partials'], to: ['sums'] },
  };
  const allocate: Stage = { name: 'allocate', at: places, work: { kind: 'allocate', data: ['partials'] } };
  const datasets = [
    set(
      'partials',
      owners.flatMap((_, slice) => places.map((place) => [slice, place] as const)),
    ),
    set(
      'sums',
      owners.map((place, slice) => [slice, place] as const),
    ),
  ];
  return {
    name: dataSetName('bench'),
    devices,
    datasets,
    phases: { start: [allocate], round: [reduce], measure: [], end: [] },
    given: {},
    slices: {},
  };
}

await using session = await Session.create({ device: device as DeviceRequest });
const ctx = session.context();
const infos = computeDevices(ctx.executor).map(({ info }) => info);
const places = infos.map(({ place }) => place);

/** Partial sums of ones, twos, threes ..., so that each sum is known. */
async function check(how: How): Promise<void> {
  const size = [64, 30] as const;
  const bound = planOf(how, places, infos, size, 2);
  await Holdings.within(ctx, async (held) => {
    const given = bound.datasets[0].parts.map(
      ({ rows: count, at: [place] }, partition): [PartitionRef, Partition, Place] => {
        const values = sharedArray(Float32Array, count * size[1]).fill(1 + (partition % places.length));
        return [
          { name: `${bound.name}/partials`, partition, version: 0 },
          { layout: 'factors', rows: count, columns: { values } },
          place,
        ];
      },
    );
    await runSteps(expand(bound, contracts, 'round', { partials: 0 }).steps, held, { given });
    const sum = (places.length * (places.length + 1)) / 2;
    for (const [
      slice,
      {
        at: [place],
      },
    ] of bound.datasets[1].parts.entries()) {
      const {
        columns: { values },
      } = await (
        held.executor.devices.find(
          ({ info }) => info.place === place,
        ) as (typeof held.executor.devices)[number]
      ).fetch({ name: `${bound.name}/sums`, partition: slice, version: 0 });
      if (!(values as Float32Array).every((value) => value === sum))
        throw new Error(`${how}: slice ${slice} is not ${sum} everywhere`);
    }
  });
}

for (const how of ['reduce-to-one', 'reduce-scatter'] as const) {
  await check(how);
  const bound = planOf(how, places, infos, [Number(rows), Number(columns)], Number(each));
  await Holdings.within(ctx, async (held) => {
    const times: number[] = [];
    let bytes = {};
    let versions = {};
    for (let round = 0; round < ROUNDS; round++) {
      const start = expand(bound, contracts, 'start', versions);
      await runSteps(start.steps, held);
      // Reductions free their partial sums, so zeros are allocated for each round, before the clock starts.
      const { steps, versions: after } = expand(bound, contracts, 'round', start.versions, {
        number: round + 1,
      });
      const began = performance.now();
      await runSteps(steps, held);
      times.push(performance.now() - began);
      versions = after;
      bytes = bytesByLink(
        transfersOf(
          steps,
          ({ partition }) =>
            4 * Math.ceil(Number(columns) / 16) * 16 * bound.datasets[0].parts[partition].rows,
        ),
      );
    }
    const own = times.slice(1).sort((left, right) => left - right);
    console.log(
      `${how}: ${own[own.length >> 1].toFixed(1)} ms, the first ${times[0].toFixed(1)} ms, bytes ${JSON.stringify(bytes)}`,
    );
  });
}
