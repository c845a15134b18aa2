import { describe, expect, it } from 'vitest';
import { CancelledError } from '../../engine/errors.ts';
import { RunMetrics } from '../../engine/metrics.ts';
import type { ExecutionContext } from '../../engine/operator.ts';
import { CounterRandom } from '../../engine/random.ts';
import { blockWaves, type GridBlock } from '../../engine/plan/grid-order.ts';
import { type BlockWork, runBlockPipeline } from '../../operators/block-pipeline.ts';
import { testRandom } from '../support/ratings.ts';

const contextOf = (signal = new AbortController().signal): ExecutionContext => ({ signal, executor: { devices: [], close: async () => undefined }, events: () => undefined, metrics: new RunMetrics() });

/** Devices that take a random number of turns of the event loop for whatever they do, and say when two are in each other's way. */
class Devices implements BlockWork {
  readonly events: string[] = [];
  readonly held = new Map<number, GridBlock>();
  readonly here = new Map<number, Set<GridBlock>>();
  readonly wrong: string[] = [];
  running = 0;
  readonly inOrder: boolean;
  readonly exclusive: boolean;
  readonly #random: () => number;
  readonly #failAt: number;
  readonly #last = new Map<number, Promise<void>>();
  begun = 0;

  constructor(seed: number, { inOrder = true, exclusive = true, failAt = Number.POSITIVE_INFINITY }: { inOrder?: boolean; exclusive?: boolean; failAt?: number } = {}) {
    this.inOrder = inOrder;
    this.exclusive = exclusive;
    this.#random = testRandom(seed);
    this.#failAt = failAt;
  }

  async stage(block: GridBlock): Promise<void> {
    const here = this.here.get(block.row) ?? new Set();
    this.here.set(block.row, here);
    here.add(block);
    if (here.size > 2) this.wrong.push(`${here.size} blocks on device ${block.row}`);
    this.events.push(`stage ${block.row},${block.column}`);
    await this.#while();
  }

  begin(block: GridBlock) {
    if (!this.here.get(block.row)?.has(block)) this.wrong.push('a block that was not staged');
    const holder = this.held.get(block.column);
    if (this.exclusive && holder) this.wrong.push(`column ${block.column} is with ${holder.row} and ${block.row}`);
    this.held.set(block.column, block);
    this.events.push(`begin ${block.row},${block.column}`);
    const number = this.begun++;
    if (number === this.#failAt) throw new Error(`block ${number} failed`);
    const before = this.#last.get(block.row);
    const work = async () => {
      await before;
      this.running++;
      await this.#while();
      this.running--;
      this.events.push(`end ${block.row},${block.column}`);
    };
    const ended = work();
    this.#last.set(block.row, ended);
    const freed = ended.then(() => this.#while()).then(() => {
      if (this.held.get(block.column) === block) this.held.delete(block.column);
    });
    return { ended, freed };
  }

  leave(block: GridBlock): void {
    this.here.get(block.row)?.delete(block);
  }

  async #while(): Promise<void> {
    for (let turns = Math.floor(5 * this.#random()); turns >= 0; turns--) await new Promise(setImmediate);
  }
}

describe('the block pipeline', () => {
  it.each([[1, 4], [2, 4], [3, 6], [3, 2], [4, 9]])('runs %i x %i blocks once each, a column with one device at a time, two blocks on a device', async (rows, columns) => {
    for (let seed = 1; seed <= 20; seed++) {
      const devices = new Devices(seed, { inOrder: seed % 2 === 0 });
      const order = blockWaves(rows, columns, new CounterRandom(seed, 1)).flat();
      const done: GridBlock[] = [];
      await runBlockPipeline(contextOf(), 'test', order, devices, (block) => done.push(block));
      expect(devices.wrong).toEqual([]);
      expect(done.map(({ row, column }) => row * columns + column).sort((a, b) => a - b)).toEqual(Array.from({ length: rows * columns }, (_, i) => i));
      expect([...devices.here.values()].every((blocks) => blocks.size === 0)).toBe(true);
      expect(devices.held.size).toBe(0);
    }
  });

  it('has the next block on its way before the one that is computed has ended', async () => {
    const devices = new Devices(5);
    await runBlockPipeline(contextOf(), 'test', [0, 1, 2, 3].map((column) => ({ row: 0, column })), devices);
    for (let at = 1; at < 4; at++) expect(devices.events.indexOf(`stage 0,${at}`)).toBeLessThan(devices.events.indexOf(`end 0,${at - 1}`));
  });

  it('lets all read a column at once where nobody writes', async () => {
    const devices = new Devices(6, { exclusive: false });
    const order = [0, 1, 2].map((row) => ({ row, column: 0 }));
    await runBlockPipeline(contextOf(), 'test', order, devices);
    expect(devices.events.findLastIndex((event) => event.startsWith('begin'))).toBeLessThan(devices.events.findIndex((event) => event.startsWith('end')));
  });

  it('throws the first failure once all have ended, and begins no more', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const devices = new Devices(seed, { failAt: seed });
      const order = blockWaves(3, 7, new CounterRandom(seed, 1)).flat();
      await expect(runBlockPipeline(contextOf(), 'test', order, devices)).rejects.toThrow(`block ${seed} failed`);
      expect(devices.running).toBe(0);
      expect(devices.begun).toBeLessThanOrEqual(seed + 3);
    }
  });

  it('is cancelled', async () => {
    const controller = new AbortController();
    const devices = new Devices(8);
    const order = blockWaves(2, 6, new CounterRandom(8, 1)).flat();
    await expect(runBlockPipeline(contextOf(controller.signal), 'test', order, devices, () => controller.abort())).rejects.toBeInstanceOf(CancelledError);
    expect(devices.running).toBe(0);
    expect(devices.begun).toBeLessThan(12);
  });
});
