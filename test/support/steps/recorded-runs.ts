import { vi } from 'vitest';
import type { ProgressEvent } from '../../../engine/events.ts';
import type { JsonObject } from '../../../engine/json.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Executor } from '../../../engine/run/device.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { HostMemory } from '../../../engine/run/host-memory.ts';
import type { Task } from '../../../engine/task.ts';
import { sizedParams, type AlsParams } from '../../../operators/als/als-params.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import { trainAls } from '../../../operators/als/train.ts';
import { hostForm, oneBlock } from '../../../operators/ratings/ratings.ts';
import { checkSgdParams, type SgdParams } from '../../../operators/sgd/params.ts';
import { planSgd } from '../../../operators/sgd/plan.ts';
import type { SgdSchedule } from '../../../operators/sgd/schedules/schedule.ts';
import { trainSgd } from '../../../operators/sgd/train.ts';
import {
  type Recorded,
  RecordingDevice,
  recordHostMemory,
  type RecordingOptions,
} from './recording-device.ts';
import { alsProblem, blockOfRows, contextOf, cpuInfo, sgdProblem } from './small-problems.ts';

export interface RunProblem {
  readonly rows: readonly (readonly number[])[];
  readonly columns: number;
  readonly test?: boolean;
  /** The devices that hold factors; a CPU that loads is added. */
  readonly compute: readonly DeviceInfo[];
  readonly options?: (place: string) => RecordingOptions;
  readonly signal?: AbortSignal;
}

/** An executor of recording devices, with one log for all of them. */
export class Recording {
  readonly log: Recorded[] = [];
  readonly events: ProgressEvent[] = [];
  readonly devices: readonly RecordingDevice[];
  readonly executor: Executor;
  readonly ctx: ExecutionContext;
  readonly host: DeviceInfo;

  constructor({ rows, compute, options = () => ({}), signal }: RunProblem) {
    // Features that are 1 count once for each rating: the sums of squares are no less.
    const sum = rows.reduce((all, row) => all + row.length, 0);
    const values = ({ kernel }: Task): JsonObject => (kernel === 'weighted-norm' ? { sum } : {});
    this.host = compute.find(({ place }) => place === 'cpu') ?? cpuInfo;
    const infos = compute.includes(this.host) ? compute : [...compute, this.host];
    this.devices = infos.map(
      (info) => new RecordingDevice(info, this.log, { values, ...options(info.place) }),
    );
    this.executor = { devices: this.devices, memory: new HostMemory(), close: async () => {} };
    this.ctx = contextOf(this.executor, {
      events: (event) => void this.events.push(event),
      ...(signal ? { signal } : {}),
    });
  }

  get running(): number {
    return this.devices.reduce((sum, { running }) => sum + running, 0);
  }

  /** The partitions that are alive on the devices. */
  get held(): string[] {
    return this.devices.flatMap(({ held, info }) => held.map((key) => `${info.place} ${key}`));
  }
}

/**
 * Training by ALS on recording devices; `held`: within holdings, as the api does; `copySeconds`: with 0 the
 * factors are copied to the host after each round, which then ends before the next is sent.
 */
export async function recordAls(
  problem: RunProblem,
  given: Partial<AlsParams>,
  { held = false, copySeconds = 0 } = {},
) {
  const recording = new Recording(problem);
  const data = alsProblem(problem.rows, problem.columns, problem.test ? problem.rows : undefined);
  const params = sizedParams(checkAlsParams({ biases: false, ...given }), {
    users: problem.rows.length,
    items: problem.columns,
    ratings: data.byUser.ratings,
  });
  const profile = {
    users: problem.rows.length,
    items: problem.columns,
    ratings: data.byUser.ratings,
    ...(data.test ? { testRatings: data.test.ratings } : {}),
  };
  const plan = (compute: readonly DeviceInfo[]) =>
    planAls(profile, params, { compute, host: recording.host });
  const train = (ctx: ExecutionContext) =>
    trainAls(
      data,
      params,
      {
        devices: problem.compute,
        plan,
        copySeconds,
        level: { mean: 3, deviation: 1, columns: new Float32Array(problem.columns) },
      },
      ctx,
    );
  return {
    recording,
    plan: plan(problem.compute),
    train: () =>
      atOneMoment(recording, () => (held ? Holdings.within(recording.ctx, train) : train(recording.ctx))),
  };
}

/** The same by SGD. */
export async function recordSgd(
  problem: RunProblem,
  given: Partial<SgdParams>,
  { held = false, copySeconds = 0, schedule = (one: SgdSchedule) => one } = {},
) {
  const recording = new Recording(problem);
  const params = checkSgdParams({ biases: false, ...given });
  const data = sgdProblem(problem.rows, problem.columns);
  const test = problem.test ? blockOfRows(problem.rows, 'tests') : undefined;
  const profile = {
    users: problem.rows.length,
    items: problem.columns,
    ratings: data.ratings.ratings,
    ...(test ? { testRatings: test.ratings } : {}),
  };
  const plan = (compute: readonly DeviceInfo[]) => {
    const first = planSgd(profile, params, { compute, host: recording.host });
    return planSgd(
      profile,
      params,
      { compute, host: recording.host },
      { schedule: schedule(first.choices.schedule as unknown as SgdSchedule) },
    );
  };
  const train = (ctx: ExecutionContext) => {
    // As loading leaves them: at the CPU.
    const cpu = ctx.executor.devices.find(({ info }) => info.place === recording.host.place);
    for (const block of [oneBlock(data.ratings), ...(test ? [test] : [])])
      cpu?.put(block.ref, hostForm(block));
    return trainSgd({ data, test }, params, { devices: problem.compute, plan, copySeconds }, ctx);
  };
  return {
    recording,
    data,
    plan: plan(problem.compute),
    train: () =>
      atOneMoment(recording, () => (held ? Holdings.within(recording.ctx, train) : train(recording.ctx))),
  };
}

/** Stops the clock, so that no decision depends on time. */
async function atOneMoment<Result>({ log }: Recording, work: () => Promise<Result>): Promise<Result> {
  const now = vi.spyOn(performance, 'now').mockReturnValue(1);
  const end = recordHostMemory(log);
  try {
    return await work();
  } finally {
    end();
    now.mockRestore();
  }
}
