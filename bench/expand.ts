/**
 * Host time for the steps of a round: to create them, and to execute them on devices that do nothing. Usage:
 * node bench/expand.ts [runs]
 */
import { noEvents } from '../engine/events.ts';
import type { Device } from '../engine/run/device.ts';
import type { DeviceInfo } from '../engine/plan/device-info.ts';
import { RunMetrics } from '../engine/metrics.ts';
import { type Partition, sharedArray } from '../engine/partition.ts';
import type { BoundPlan } from '../engine/plan/bound-plan.ts';
import { LocalExecutor } from '../engine/run/local-executor.ts';
import { expand } from '../engine/run/expand.ts';
import { runSteps } from '../engine/run/run-steps.ts';
import { bindAls } from '../operators/als/bind/bind-als.ts';
import { checkAlsParams } from '../operators/als/params.ts';
import { planAls } from '../operators/als/plan/plan-als.ts';
import { ratingsOf } from '../operators/ratings/ratings.ts';
import { evenRanges } from '../operators/ratings/row-ranges.ts';
import { bindSgd } from '../operators/sgd/bind.ts';
import { checkSgdParams } from '../operators/sgd/params.ts';
import { planSgd } from '../operators/sgd/plan.ts';
import { contracts } from '../operators/tasks/tasks.ts';
import { describeMachine } from './machine.ts';

const runs = Number(process.argv[2] ?? 300);
const info: DeviceInfo = {
  place: 'cpu',
  kind: 'cpu',
  parallelism: 8,
  inOrder: false,
  wholePasses: false,
  ownMemory: false,
  capacityBytes: null,
  strideStep: 8,
  description: 'nothing',
};
const result = { metrics: { rows: 0, bytesUp: 0, bytesDown: 0, milliseconds: 0 }, values: {} };
const nothing: Partition = { layout: 'factors', rows: 0, columns: { values: sharedArray(Float32Array, 0) } };
const device: Device = {
  info,
  put: () => {},
  allocate: () => {},
  release: () => {},
  run: async () => result,
  fetch: async () => nothing,
  trim: async () => {},
  close: async () => {},
};

const rows = 4096;
const ratings = 128 * rows;
const keys = { type: 'int32', values: Int32Array.from({ length: rows }, (_, i) => i) } as const;
const block = (name: string) => ({
  ref: { name, partition: 0, version: 0 },
  rows,
  ratings,
  offsets: Int32Array.from({ length: rows + 1 }, (_, row) => 128 * row),
  indices: new Uint32Array(ratings),
  values: new Float32Array(ratings),
});

function alsPlan(): BoundPlan {
  const params = checkAlsParams({ rank: 32 });
  const plan = planAls({ users: rows, items: rows, ratings }, params, { compute: [info], host: info });
  return bindAls(
    plan,
    { byUser: ratingsOf(block('by-user')), byItem: ratingsOf(block('by-item')), users: keys, items: keys },
    { biases: false, mean: 0, offset: 0, unit: 1 },
  ).bound;
}

function sgdPlan(): BoundPlan {
  const params = checkSgdParams({ rank: 32 });
  const plan = planSgd({ users: rows, items: rows, ratings }, params, { compute: [info], host: info });
  const whole = block('ratings');
  const bands = evenRanges(rows, 16);
  const part = (r: number, c: number) => ({
    ref: { name: `grid/${r}`, partition: c, version: 0 },
    partition: {
      layout: 'rating-block',
      rows: rows / 16,
      columns: { indices: new Uint32Array(ratings / 256) },
    },
    ratings: ratings / 256,
  });
  const side = (name: 'users' | 'items') => ({
    name,
    ids: keys,
    labels: { label: new Uint32Array(rows), order: new Uint32Array(rows) },
  });
  const data = {
    rows: side('users'),
    columns: side('items'),
    ratings: ratingsOf(whole),
    columnOffsets: Float64Array.from(whole.offsets),
    scale: { mean: 3, center: 0, deviation: 1 },
    squares: 1,
    duplicates: 0,
  };
  const laid = {
    bands: { rows: bands, columns: bands },
    ratings: [
      {
        ref: whole.ref,
        partition: {
          layout: 'rating-block',
          rows,
          columns: { offsets: whole.offsets, indices: whole.indices, values: whole.values },
        },
        ratings,
      },
    ],
    blocks: bands.map((_, r) => bands.map((__, c) => part(r, c))),
  };
  return bindSgd(plan, params, data, laid).bound;
}

function median(times: number[]): string {
  return `${(1000 * times.sort((left, right) => left - right)[Math.floor(times.length / 2)]).toFixed(0).padStart(6)} µs`;
}

console.log(describeMachine());
for (const [name, bound] of [
  ['one iteration of als', alsPlan()],
  ['one epoch of sgd', sgdPlan()],
] as const) {
  const { versions } = expand(bound, contracts, 'start', {});
  const round = () =>
    expand(bound, contracts, 'round', versions, { number: 1, params: { rate: 0.1, epoch: 1, next: 2 } }, [
      versions,
    ]);
  const ctx = {
    signal: new AbortController().signal,
    executor: new LocalExecutor([device]),
    events: noEvents,
    metrics: new RunMetrics(),
  };
  const [made, carried]: [number[], number[]] = [[], []];
  for (let run = 0; run < runs; run++) {
    const start = performance.now();
    const { steps } = round();
    const middle = performance.now();
    await runSteps(steps, ctx);
    made.push(middle - start);
    carried.push(performance.now() - middle);
  }
  const { steps } = round();
  const tasks = steps.reduce(
    (sum, { do: action }) => sum + (action.kind === 'task' ? action.slices.length : 0),
    0,
  );
  const edges = steps.reduce((sum, { after, ended }) => sum + after.length + ended.length, 0);
  console.log(
    `${name}: ${steps.length} steps, ${tasks} tasks, ${edges} edges: expand ${median(made)}, runSteps ${median(carried)}`,
  );
}
