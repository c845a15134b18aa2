import type { PlanDevices } from '../../engine/run/devices.ts';
import { formatBytes } from '../../engine/format.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { Stage } from '../../engine/plan/stages.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { factorBytes } from '../planner/sizes.ts';
import { layoutOf } from './bytes.ts';
import { deviceOfBand, rowPartsOf, type SgdDataSet, steppedMatrices } from './data-sets.ts';
import { measuring } from './measures.ts';
import { type SgdParams, sgdFeatures } from './params.ts';
import { batchOrder, roundStages } from './round.ts';
import type { SgdSchedule } from './schedules/schedule.ts';

export type SgdStages = Pick<PhysicalPlan, 'start' | 'round' | 'measure' | 'end'>;

/** The stages of a run of SGD. Parameters that depend on the data are bound later. */
export function sgdStages(
  profile: RatingsProfile,
  params: SgdParams,
  schedule: SgdSchedule,
  { compute, host }: PlanDevices,
  datasets: readonly SgdDataSet[],
  reasons: { readonly epoch: readonly string[]; readonly start: string },
): SgdStages {
  const { ratings: nz } = profile;
  const [device] = compute;
  const { deviceBlocks, rowBands, columnBands, kind } = schedule;
  const places = compute.map(({ place }) => place);
  const adaptive = params.rate === 'adagrad';
  const features = sgdFeatures(params);
  const rows = Math.max(profile.users, profile.items);
  const segments = deviceBlocks ? columnBands : 1;
  const rowPlaces = placesOfRows(schedule, places);
  const layout = layoutOf(schedule, nz, rows);
  const versionBytes =
    factorBytes(profile.users, features, device.strideStep) +
    factorBytes(profile.items, features, device.strideStep);
  const initialize = (side: 'row' | 'column', parts: number, why: readonly string[]): Stage => ({
    name: `initialize-${side}s`,
    at: Array.from({ length: parts }, () => host.place),
    work: {
      kind: 'tasks',
      tasks: [{ kernel: 'initialize', uses: { keys: `${side}-keys`, factors: `${side}s` } }],
    },
    kernel: 'initialize',
    reasons: why,
  });
  const parted = deviceBlocks !== undefined;
  const resident = deviceBlocks === undefined || deviceBlocks.resident;
  // What comes from host memory to devices, and stays there.
  const placed = datasets.filter(({ given, parts }) => given && parts[0].at.length > 1);
  const start: Stage[] = [
    ...(resident
      ? [
          {
            name: 'place-ratings',
            at: places,
            work: {
              kind: 'exchange',
              how: 'move',
              data: placed.map(({ name }) => name),
              to: 'places',
            },
          } satisfies Stage,
        ]
      : []),
    initialize('row', rowPlaces.length, [reasons.start]),
    initialize('column', segments, []),
    ...(adaptive
      ? [
          {
            name: 'allocate',
            at: rowPlaces,
            work: { kind: 'allocate', data: ['row-sums', 'column-sums'] },
          } satisfies Stage,
        ]
      : []),
    ...(!parted && kind === 'hogwild' ? [batchOrder(params, nz, host.place, true)] : []),
  ];
  const epoch: Pick<
    Stage,
    'name' | 'at' | 'kernel' | 'partitions' | 'bytesRead' | 'bytesWritten' | 'flops' | 'exchange' | 'reasons'
  > = {
    name: 'sgd-epoch',
    at: parted ? rowPlaces : places,
    kernel: [layout.step, schedule.precision].filter((part) => part !== undefined).join(' '),
    partitions: { p: columnBands, q: rowBands },
    bytesRead: layout.bytes + versionBytes,
    bytesWritten: versionBytes,
    flops: 10 * nz * features,
    ...(deviceBlocks
      ? {
          exchange:
            deviceBlocks.movedBytes === 0
              ? 'none'
              : `${formatBytes(deviceBlocks.movedBytes)} of ${deviceBlocks.rowsStaged ? 'factors' : 'segments'} ${deviceBlocks.resident ? 'passed on' : 'up, and down'}`,
        }
      : device.ownMemory
        ? {}
        : { exchange: 'shared memory' }),
    reasons: reasons.epoch,
  };
  const round = roundStages({ params, schedule, device, host, ratings: nz, rowPlaces, epoch });
  const { wholePasses: whole } = device;
  const measure = measuring({ profile, params, schedule, rank: features, at: rowPlaces, whole });
  const end: Stage[] = [
    {
      name: 'fetch-factors',
      at: rowPlaces,
      work: {
        kind: 'exchange',
        how: 'move',
        data: steppedMatrices(adaptive).map(({ name }) => name),
        to: 'host',
      },
    },
  ];
  return { start, round, measure, end };
}

/** The place of each part of the rows' factors, at which its tasks run. */
function placesOfRows(schedule: SgdSchedule, places: readonly string[]): string[] {
  return Array.from({ length: rowPartsOf(schedule) }, (_, band) => places[deviceOfBand(schedule, band)]);
}
