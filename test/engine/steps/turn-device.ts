/** Devices that record which blocks they process, and grids of blocks for them. */
import { noEvents } from '../../../engine/events.ts';
import type { Device } from '../../../engine/run/device.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { RunMetrics } from '../../../engine/metrics.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { type Partition, partitionKey, type PartitionRef } from '../../../engine/partition.ts';
import type { BoundPlan } from '../../../engine/plan/bound-plan.ts';
import { blockWaves, type GridBlock } from '../../../engine/plan/grid-order.ts';
import type { DataPart, Stage } from '../../../engine/plan/stages.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { expand } from '../../../engine/run/expand.ts';
import { HOST } from '../../../engine/plan/place.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import type { TaskContracts } from '../../../engine/run/step.ts';
import type { Task, TaskResult } from '../../../engine/task.ts';
import { testRandom } from '../../support/ratings.ts';

/** The tasks `step` and `look` at one block, its row and its column. */
const contracts: TaskContracts = {
  step: { block: 'read', rows: 'alone', columns: 'alone' },
  look: { block: 'read', rows: 'read', columns: 'read' },
};

export const nameOf = ({ row, column }: GridBlock) => `${row},${column}`;

/** A record of what devices did, shared by all of them. */
export class Record {
  readonly begun: GridBlock[] = [];
  readonly events: string[] = [];
  readonly running = new Set<GridBlock>();
  readonly wrong: string[] = [];
  mostAtOnce = 0;
  readonly random: () => number;
  readonly options: {
    readonly failAt?: number;
    readonly together?: number;
    readonly longTasks?: boolean;
    readonly onBegin?: (count: number) => void;
  };

  constructor(seed: number, options: Record['options'] = {}) {
    this.random = testRandom(seed + 1);
    this.options = options;
  }

  async block(kernel: string, block: GridBlock): Promise<void> {
    for (const other of this.running)
      if (kernel === 'step' && (other.row === block.row || other.column === block.column))
        this.wrong.push(`(${nameOf(block)}) runs beside (${nameOf(other)})`);
    const number = this.begun.push(block) - 1;
    this.running.add(block);
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running.size);
    this.events.push(`begin ${nameOf(block)}`);
    this.options.onBegin?.(this.begun.length);
    await this.turns(this.options.longTasks ? 100 : 0);
    for (let turn = 0; turn < 1000 && this.mostAtOnce < (this.options.together ?? 0); turn++)
      await Promise.resolve();
    this.running.delete(block);
    this.events.push(`end ${nameOf(block)}`);
    if (number === this.options.failAt) throw new Error(`block ${number} failed`);
  }

  /** Waits for at least `least` turns of the promise queue, and a random number more. */
  async turns(least = 0): Promise<void> {
    for (let turns = least + Math.floor(8 * this.random()); turns >= 0; turns--) await Promise.resolve();
  }
}

/** A device whose tasks take random turns, and append the block's row to the column that they step. */
class TurnDevice implements Device {
  readonly info: DeviceInfo;
  readonly lying = new Map<string, number[]>();
  /** Partitions that were put and not released, in the order of calls. */
  readonly #claimed = new Set<string>();
  readonly most = { blocks: 0, columns: 0 };
  readonly #record: Record;
  #last: Promise<unknown> = Promise.resolve();
  #working = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(info: DeviceInfo, record: Record) {
    this.info = info;
    this.#record = record;
  }

  put(ref: PartitionRef, { columns }: Partition): void {
    this.#record.events.push(`put ${partitionKey(ref)}`);
    this.lying.set(partitionKey(ref), Array.from(columns.values as Float32Array));
    this.#claimed.add(partitionKey(ref));
    for (const name of ['blocks', 'columns'] as const)
      this.most[name] = Math.max(
        this.most[name],
        [...this.#claimed].filter((key) => key.startsWith(`test/${name}/`)).length,
      );
  }

  allocate(): void {
    throw new Error('the stages of this test write in place');
  }

  run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    return this.info.inOrder
      ? this.#queued(() => this.#run(task, signal))
      : this.#oneOfMany(() => this.#run(task, signal));
  }

  fetch(ref: PartitionRef): Promise<Partition> {
    const fetched = async () => {
      await this.#record.turns();
      return { layout: 'factors', rows: 1, columns: { values: Float32Array.from(this.#at(ref)) } };
    };
    return this.info.inOrder ? this.#queued(fetched) : fetched();
  }

  release(ref: PartitionRef): void {
    this.#claimed.delete(partitionKey(ref));
    if (this.info.inOrder)
      void this.#queued(async () => this.lying.delete(partitionKey(ref))).catch(() => undefined);
    else this.lying.delete(partitionKey(ref));
  }

  async trim(): Promise<void> {}

  async close(): Promise<void> {}

  get ended(): Promise<unknown> {
    return this.#last;
  }

  #at(ref: PartitionRef): number[] {
    const found = this.lying.get(partitionKey(ref));
    if (found === undefined) throw new Error(`${partitionKey(ref)} is not on ${this.info.place}`);
    return found;
  }

  #queued<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #oneOfMany(work: () => Promise<TaskResult>): Promise<TaskResult> {
    while (this.#working >= this.info.parallelism)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#working++;
    try {
      return await work();
    } finally {
      this.#working--;
      this.#waiting.shift()?.();
    }
  }

  async #run({ kernel, inputs, outputs, params }: Task, signal?: AbortSignal): Promise<TaskResult> {
    signal?.throwIfAborted();
    for (const ref of [...Object.values(inputs), ...Object.values(outputs)]) this.#at(ref);
    const block = params as unknown as GridBlock;
    if (kernel !== 'upload') await this.#record.block(kernel, block);
    if (kernel === 'step') this.#at(outputs.columns).push(block.row);
    return { metrics: { rows: 1, bytesUp: 0, bytesDown: 0, milliseconds: 0 }, values: {} };
  }
}

interface Grid {
  readonly rows: number;
  readonly columns: number;
  readonly kernel?: 'step' | 'look';
  readonly seed?: number;
}

/**
 * One device holds all, in bands; or each of several a band of rows, and columns and blocks come from host
 * memory.
 */
function boundGrid(
  { rows, columns, kernel = 'step', seed = 1 }: Grid,
  devices: readonly DeviceInfo[],
): BoundPlan {
  const parted = devices[0].ownMemory;
  const at = (place: string) => (parted ? [HOST] : [place]);
  const parts = (count: number, places: (part: number) => readonly string[]): DataPart[] =>
    Array.from({ length: parted ? count : 1 }, (_, part) => ({ rows: 1, at: places(part) }));
  const blocks = Array.from({ length: rows * columns }, () => ({
    rows: 1,
    bytes: 8,
    at: at(devices[0].place),
  }));
  const use = (set: string) => (kernel === 'step' ? ({ set, step: 'alone' } as const) : set);
  const stage: Stage = {
    name: 'epoch',
    at: Array.from({ length: rows }, (_, row) => devices[row % devices.length].place),
    work: {
      kind: 'blocks',
      order: kernel === 'step' ? 'latin' : 'rotated',
      seed,
      grid: { rows, columns, of: 'blocks' },
      tasks: [
        {
          kernel,
          uses: { block: 'blocks', rows: use('rows'), columns: use('columns') },
          takes: { row: 'row', column: 'column' },
        },
      ],
    },
  };
  return {
    name: 'test',
    devices,
    datasets: [
      {
        name: 'rows',
        layout: 'factors',
        columns: 1,
        by: 'row',
        parts: parts(rows, (row) => [devices[row % devices.length].place]),
      },
      {
        name: 'columns',
        layout: 'factors',
        columns: 1,
        by: 'column',
        parts: parts(columns, () => at(devices[0].place)),
      },
      { name: 'blocks', layout: 'rating-block', given: true, by: 'block', parts: blocks },
    ],
    phases: { start: [], round: [stage], measure: [], end: [] },
    given: { blocks: blocks.map((_, partition) => ({ name: 'test/blocks', partition, version: 0 })) },
    slices: {},
  };
}

interface Ran {
  readonly devices: readonly TurnDevice[];
  readonly planned: readonly GridBlock[];
  readonly finished: readonly number[];
  readonly ctx: ExecutionContext;
}

/** Runs one round on such devices; `signal` cancels it. */
export async function run(
  grid: Grid,
  infos: readonly DeviceInfo[],
  record: Record,
  signal = new AbortController().signal,
): Promise<Ran> {
  const devices = infos.map((info) => new TurnDevice(info, record));
  const bound = boundGrid(grid, infos);
  const ctx: ExecutionContext = {
    signal,
    executor: new LocalExecutor(devices),
    events: noEvents,
    metrics: new RunMetrics(),
  };
  const empty: Partition = { layout: 'factors', rows: 1, columns: { values: new Float32Array() } };
  const given = bound.datasets.flatMap(({ name, parts }) =>
    parts.map(
      ({ at: [home] }, partition) => [{ name: `test/${name}`, partition, version: 0 }, empty, home] as const,
    ),
  );
  const finished: number[] = [];
  const { steps } = expand(bound, contracts, 'round', { rows: 0, columns: 0 }, { number: 3 });
  const planned = blockWaves(
    grid.rows,
    grid.columns,
    new CounterRandom(grid.seed ?? 1, 0xb10c).derive(3),
  ).flat();
  await runSteps(steps, ctx, { given, onProgress: (count) => finished.push(count) });
  await Promise.all(devices.map(({ ended }) => ended));
  return { devices, planned, finished, ctx };
}
