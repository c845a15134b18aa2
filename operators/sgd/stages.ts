import { formatBytes } from '../../engine/format.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { Stage } from '../../engine/plan/stages.ts';
import { factorBytes } from '../planner/sizes.ts';
import { type SgdDataSet, steppedMatrices } from './data-sets.ts';
import { epochReasons, startReason } from './description.ts';
import { measuring } from './measures.ts';
import type { SgdProblem } from './problem.ts';
import { batchOrder, roundStages } from './round.ts';

/**
 * All stages of a run of SGD. Parameters that depend on the ratings are added when the plan is bound to them.
 */
export function sgdStages(
  problem: SgdProblem,
  datasets: readonly SgdDataSet[],
): Pick<PhysicalPlan, 'start' | 'round' | 'measure' | 'end'> {
  const data = steppedMatrices(problem.params.rate === 'adagrad').map(({ name }) => name);
  return {
    start: startStages(problem, datasets),
    round: roundStages({ ...problem, epoch: epochStage(problem) }),
    measure: measuring(problem),
    end: [
      {
        name: 'fetch-factors',
        at: problem.rowPlaces,
        work: { kind: 'exchange', how: 'move', data, to: 'host' },
      },
    ],
  };
}

/** Stages before the first epoch: send the ratings that stay on devices, and draw the factors. */
function startStages(problem: SgdProblem, datasets: readonly SgdDataSet[]): Stage[] {
  const { profile, params, schedule, compute, host, rowPlaces } = problem;
  const { deviceBlocks, columnBands, kind } = schedule;
  const stages: Stage[] = [];
  if (deviceBlocks === undefined || deviceBlocks.resident) {
    const placed = datasets.filter(({ given, parts }) => given && parts[0].at.length > 1);
    const data = placed.map(({ name }) => name);
    stages.push({
      name: 'place-ratings',
      at: compute.map(({ place }) => place),
      work: { kind: 'exchange', how: 'move', data, to: 'places' },
    });
  }
  stages.push(
    initialize('row', rowPlaces.length, host.place, [startReason(problem)]),
    initialize('column', deviceBlocks ? columnBands : 1, host.place, []),
  );
  if (params.rate === 'adagrad')
    stages.push({
      name: 'allocate',
      at: rowPlaces,
      work: { kind: 'allocate', data: ['row-sums', 'column-sums'] },
    });
  if (deviceBlocks === undefined && kind === 'hogwild')
    stages.push(batchOrder(params, profile.ratings, host.place, true));
  return stages;
}

function initialize(side: 'row' | 'column', parts: number, at: Place, reasons: readonly string[]): Stage {
  const uses = { keys: `${side}-keys`, factors: `${side}s` };
  return {
    name: `initialize-${side}s`,
    at: Array.from({ length: parts }, () => at),
    work: { kind: 'tasks', tasks: [{ kernel: 'initialize', uses }] },
    kernel: 'initialize',
    reasons,
  };
}

/** The stage `sgd-epoch` without its work. */
function epochStage(problem: SgdProblem): Omit<Stage, 'work'> {
  const { profile, schedule, compute, device, features, layout, rowPlaces } = problem;
  const { users, items, ratings } = profile;
  const [bytesOfUsers, bytesOfItems] = [users, items].map((rows) =>
    factorBytes(rows, features, device.strideStep),
  );
  const exchange = exchangeText(problem);
  return {
    name: 'sgd-epoch',
    at: schedule.deviceBlocks ? rowPlaces : compute.map(({ place }) => place),
    kernel: [layout.step, schedule.precision].filter((part) => part !== undefined).join(' '),
    partitions: { p: schedule.columnBands, q: schedule.rowBands },
    bytesRead: layout.bytes + bytesOfUsers + bytesOfItems,
    bytesWritten: bytesOfUsers + bytesOfItems,
    flops: 10 * ratings * features,
    ...(exchange === undefined ? {} : { exchange }),
    reasons: epochReasons(problem),
  };
}

function exchangeText({ schedule: { deviceBlocks }, device }: SgdProblem): string | undefined {
  if (deviceBlocks === undefined) return device.ownMemory ? undefined : 'shared memory';
  const { movedBytes, rowsStaged, resident } = deviceBlocks;
  if (movedBytes === 0) return 'none';
  return `${formatBytes(movedBytes)} of ${rowsStaged ? 'factors' : 'segments'} ${resident ? 'passed on' : 'up, and down'}`;
}
