/**
 * Stages over the blocks of a grid: the blocks that run at once, copies at a device, and endings. No device
 * computes here.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CancelledError } from '../../../engine/errors.ts';
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
import { cpuInfo, h200Info } from '../../support/devices/device-info.ts';
import { testRandom } from '../../support/ratings.ts';

/** The tasks `step` and `look` at one block, its row and its column. */
const contracts: TaskContracts = {
  step: { block: 'read', rows: 'alone', columns: 'alone' },
  look: { block: 'read', rows: 'read', columns: 'read' },
};

const nameOf = ({ row, column }: GridBlock) => `${row},${column}`;

/** A record of what devices did, shared by all of them. */
class Record {
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

  /** Some turns of the queue of promises, so many at least. */
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
async function run(
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

const workers = (parallelism: number): DeviceInfo[] => [{ ...cpuInfo, parallelism }];
const gpus = (count: number, inOrder = true): DeviceInfo[] =>
  Array.from({ length: count }, (_, r) => ({ ...h200Info, inOrder, place: `gpu:${r}` }));

const size = fc.integer({ min: 1, max: 12 });

describe('blocks on one device', () => {
  it('never hold a row band or a column band twice, are visited once, and keep the order within each band', async () => {
    await fc.assert(
      fc.asyncProperty(
        size,
        size,
        fc.integer({ min: 1, max: 8 }),
        fc.nat(1e6),
        async (rows, columns, threads, seed) => {
          const record = new Record(seed);
          const { planned, finished } = await run({ rows, columns, seed }, workers(threads), record);
          expect(record.wrong).toEqual([]);
          expect(finished).toEqual(Array.from(planned, (_, i) => i + 1));
          expect(record.begun.map(nameOf).sort()).toEqual(planned.map(nameOf).sort());
          for (const side of ['row', 'column'] as const) {
            for (let band = 0; band < (side === 'row' ? rows : columns); band++) {
              const of = (blocks: readonly GridBlock[]) =>
                blocks.filter((block) => block[side] === band).map(nameOf);
              expect(of(record.begun)).toEqual(of(planned));
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('use all workers where the grid is large enough', async () => {
    const record = new Record(3);
    await run({ rows: 8, columns: 8 }, workers(4), record);
    expect(record.mostAtOnce).toBe(4);
  });

  it('end with the first failure, and begin no more', async () => {
    const record = new Record(3, { failAt: 5 });
    await expect(run({ rows: 4, columns: 4 }, workers(1), record)).rejects.toThrow('block 5 failed');
    // One was waiting for its worker.
    expect(record.begun.length).toBeLessThanOrEqual(7);
  });
});

describe('blocks on several devices', () => {
  it.each([
    [1, 4],
    [2, 4],
    [3, 6],
    [3, 2],
    [4, 9],
  ])(
    'run %i x %i once each, a column with one device at a time in the order drawn, two copies on a device',
    async (rows, columns) => {
      for (let seed = 1; seed <= 20; seed++) {
        const record = new Record(seed);
        const { devices, planned, ctx } = await run(
          { rows, columns, seed },
          gpus(rows, seed % 2 === 0),
          record,
        );
        expect(record.wrong).toEqual([]);
        expect(record.begun.map(nameOf).sort()).toEqual(planned.map(nameOf).sort());
        for (const { most, lying } of devices) {
          expect(Math.max(most.blocks, most.columns)).toBeLessThanOrEqual(2);
          expect([...lying.keys()].filter((key) => !key.startsWith('test/rows/'))).toEqual([]);
        }
        for (let column = 0; column < columns; column++) {
          const home = ctx.executor.memory.get({ name: 'test/columns', partition: column, version: 1 });
          expect([...(home.columns.values as Float32Array)]).toEqual(
            planned.filter((block) => block.column === column).map(({ row }) => row),
          );
        }
      }
    },
  );

  it.each([true, false])(
    'have the next one on its way before the one that is stepped has ended (in order: %s)',
    async (inOrder) => {
      const record = new Record(5, { longTasks: true });
      const { planned } = await run({ rows: 1, columns: 6 }, gpus(1, inOrder), record);
      const at = (event: string) => record.events.indexOf(event);
      planned
        .slice(1)
        .forEach(({ column }, k) =>
          expect(at(`put test/blocks/${column}@0`)).toBeLessThan(at(`end ${nameOf(planned[k])}`)),
        );
    },
  );

  it('read a column at once where none writes', async () => {
    const record = new Record(6, { together: 3 });
    await run({ rows: 3, columns: 1, kernel: 'look' }, gpus(3), record);
    expect(record.mostAtOnce).toBe(3);
  });

  it('end with the first failure once all have ended, and begin no more than was on its way', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const record = new Record(seed, { failAt: seed });
      await expect(run({ rows: 3, columns: 7, seed }, gpus(3, seed % 2 === 0), record)).rejects.toThrow(
        `block ${seed} failed`,
      );
      expect(record.running.size).toBe(0);
      expect(record.begun.length).toBeLessThanOrEqual(seed + 4);
    }
  });

  it('are cancelled', async () => {
    const controller = new AbortController();
    const record = new Record(8, { onBegin: (count) => void (count === 3 && controller.abort()) });
    await expect(run({ rows: 2, columns: 6 }, gpus(2), record, controller.signal)).rejects.toBeInstanceOf(
      CancelledError,
    );
    expect(record.running.size).toBe(0);
    expect(record.begun.length).toBeLessThanOrEqual(5);
  });
});
