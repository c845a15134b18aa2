/** Orders of blocks: what may run at once, and that nothing is left out. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Device } from '../../engine/executor.ts';
import { noEvents } from '../../engine/events.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import type { ExecutionContext } from '../../engine/operator.ts';
import { CounterRandom } from '../../engine/random.ts';
import type { Task, TaskResult } from '../../engine/task.ts';
import { blockWaves, randomOrder } from '../../engine/plan/grid-order.ts';
import { runBlocks } from '../../operators/run-blocks.ts';
import { testRandom } from '../support/ratings.ts';

const bands = fc.integer({ min: 1, max: 12 });

describe('the waves of a grid', () => {
  it('have every block once, and no two of a wave share a row band or a column band', () => {
    fc.assert(
      fc.property(bands, bands, fc.nat(), (rows, columns, seed) => {
        const waves = blockWaves(rows, columns, new CounterRandom(seed));
        expect(waves).toHaveLength(Math.max(rows, columns));
        expect(new Set(waves.flat().map(({ row, column }) => row * columns + column)).size).toBe(rows * columns);
        expect(waves.flat()).toHaveLength(rows * columns);
        for (const wave of waves) {
          expect(wave).toHaveLength(Math.min(rows, columns));
          expect(new Set(wave.map(({ row }) => row)).size).toBe(wave.length);
          expect(new Set(wave.map(({ column }) => column)).size).toBe(wave.length);
        }
      }),
    );
  });

  it('are the same for a seed, and others in each epoch', () => {
    const random = new CounterRandom(7);
    expect(blockWaves(5, 9, random.derive(1))).toEqual(blockWaves(5, 9, random.derive(1)));
    expect(blockWaves(5, 9, random.derive(1))).not.toEqual(blockWaves(5, 9, random.derive(2)));
  });

  it('are built of orders that have every number once', () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(), (count, seed) => {
        expect([...randomOrder(count, new CounterRandom(seed))].sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
      }),
    );
  });
});

/** A device whose tasks take random times on so many workers, and which looks at what runs at once. */
class RecordingDevice {
  readonly started: string[] = [];
  readonly running = new Map<string, Task>();
  mostAtOnce = 0;
  readonly #workers: number;
  readonly #random: () => number;
  readonly #waiting: (() => void)[] = [];

  constructor(workers: number, seed: number) {
    this.#workers = workers;
    this.#random = testRandom(seed + 1);
  }

  async run(task: Task, signal: AbortSignal): Promise<TaskResult> {
    while (this.running.size >= this.#workers) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await this.#step(task, signal);
    } finally {
      this.#waiting.shift()?.();
    }
  }

  async #step(task: Task, signal: AbortSignal): Promise<TaskResult> {
    signal.throwIfAborted();
    const { row, column } = task.params as { row: number; column: number };
    for (const other of this.running.values()) {
      const held = other.params as { row: number; column: number };
      if (held.row === row || held.column === column) throw new Error(`(${row}, ${column}) runs beside (${held.row}, ${held.column})`);
    }
    const name = `${row},${column}`;
    this.started.push(name);
    this.running.set(name, task);
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running.size);
    for (let turns = Math.floor(this.#random() * 6); turns >= 0; turns--) await Promise.resolve();
    this.running.delete(name);
    if (name === '1,1' && task.params.fails === true) throw new Error('this block fails');
    return { metrics: { rows: 1, bytesUp: 0, bytesDown: 0, milliseconds: 0 }, values: {} };
  }
}

const context = (): ExecutionContext => ({ signal: new AbortController().signal, executor: { devices: [], close: async () => {} }, events: noEvents, metrics: new RunMetrics() });
const tasksOf = (rows: number, columns: number, seed: number, fails = false) =>
  blockWaves(rows, columns, new CounterRandom(seed))
    .flat()
    .map(({ row, column }) => ({ row, column, task: { kernel: 'sgd-block', inputs: {}, outputs: {}, params: { row, column, fails } } }));

describe('running blocks', () => {
  it('never holds a row band or a column band twice, visits every block once, and keeps the order within each band', async () => {
    await fc.assert(
      fc.asyncProperty(bands, bands, fc.integer({ min: 1, max: 8 }), fc.nat(1e6), async (rows, columns, workers, seed) => {
        const device = new RecordingDevice(workers, seed);
        const tasks = tasksOf(rows, columns, seed);
        const finished: number[] = [];
        await runBlocks(context(), 'sgd-epoch', device as unknown as Device, tasks, (count) => finished.push(count));
        expect(finished).toEqual(Array.from(tasks, (_, i) => i + 1));
        expect([...device.started].sort()).toEqual(tasks.map(({ row, column }) => `${row},${column}`).sort());
        for (const side of ['row', 'column'] as const) {
          for (let band = 0; band < (side === 'row' ? rows : columns); band++) {
            const planned = tasks.filter((task) => task[side] === band).map(({ row, column }) => `${row},${column}`);
            expect(device.started.filter((name) => planned.includes(name))).toEqual(planned);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('uses all workers where the grid is large enough', async () => {
    const device = new RecordingDevice(4, 3);
    await runBlocks(context(), 'sgd-epoch', device as unknown as Device, tasksOf(8, 8, 3));
    expect(device.mostAtOnce).toBe(4);
  });

  it('throws the first failure, and starts no more than what was waiting then', async () => {
    const device = new RecordingDevice(1, 3);
    const tasks = tasksOf(4, 4, 5, true);
    await expect(runBlocks(context(), 'sgd-epoch', device as unknown as Device, tasks)).rejects.toThrow('this block fails');
    expect(device.started.indexOf('1,1')).toBeGreaterThanOrEqual(device.started.length - 2);
  });
});
