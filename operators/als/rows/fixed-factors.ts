import { copyNumbers } from '../../../engine/numbers/half.ts';
import { UNKNOWN_KEY } from '../../../engine/keys/tables/key-table.ts';
import { dataSetName, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Device } from '../../../engine/run/device.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { factorStride } from '../../planner/sizes.ts';
import { contracts } from '../../tasks/tasks.ts';
import { factorsOf, type PlacedFactors } from './solve-rows.ts';

const STAGE = 'fixed-rows';

/**
 * Factors of a fixed side that arrive in pieces, in any order. A CPU has them in its own memory alone, into
 * which each piece is copied; for other devices they are collected in host memory.
 */
export class FixedFactors {
  readonly #rows: number;
  readonly #rank: number;
  readonly #device: Device;
  readonly #ctx: ExecutionContext;
  /** On a CPU undefined. */
  readonly #collected: Float32Array | undefined;
  readonly #name = dataSetName(STAGE);

  private constructor(rows: number, rank: number, device: Device, ctx: ExecutionContext) {
    [this.#rows, this.#rank, this.#device, this.#ctx] = [rows, rank, device, ctx];
    if (device.info.kind !== 'cpu') this.#collected = sharedArray(Float32Array, rows * rank);
  }

  /** Allocates a matrix. Throws CapacityError if the device has no room for it. */
  static async of(
    { rows, rank }: { readonly rows: number; readonly rank: number },
    device: Device,
    ctx: ExecutionContext,
  ): Promise<FixedFactors> {
    const made = new FixedFactors(rows, rank, device, ctx);
    if (made.#collected === undefined) await made.#allocate();
    return made;
  }

  /** The rows, for a solver. */
  get rows(): Float32Array | PlacedFactors {
    return this.#collected ?? { ref: this.#ref('all'), rows: this.#rows };
  }

  /**
   * Copies row i of `factors`, numbers or bits of float16, to the row positions[i], unless that is UNKNOWN_KEY.
   */
  async place(positions: Uint32Array, factors: Float32Array | Uint16Array): Promise<void> {
    if (this.#collected === undefined) return this.#copy(positions, factors);
    const rank = this.#rank;
    for (let row = 0; row < positions.length; row++)
      if (positions[row] !== UNKNOWN_KEY)
        copyNumbers(
          factors.subarray(row * rank, (row + 1) * rank),
          this.#collected.subarray(positions[row] * rank, (positions[row] + 1) * rank),
        );
  }

  /** Frees the device's memory. */
  async free(): Promise<void> {
    if (this.#collected !== undefined) return;
    const steps = new StepList(contracts);
    steps.free(STAGE, this.#device.info.place, [this.#ref('all')]);
    await runSteps(steps.steps, this.#ctx);
  }

  async #allocate(): Promise<void> {
    const { place, strideStep } = this.#device.info;
    const steps = new StepList(contracts);
    const shape = { rows: this.#rows, columns: this.#rank, stride: factorStride(this.#rank, strideStep) };
    steps.allocate(STAGE, place, this.#ref('all'), { ...shape, contents: 'any' });
    await runSteps(steps.steps, this.#ctx);
  }

  async #copy(positions: Uint32Array, factors: Float32Array | Uint16Array): Promise<void> {
    if (positions.length === 0) return;
    const { place } = this.#device.info;
    const [rows, at] = ['rows', 'at'].map((part) => this.#ref(part));
    const shared = sharedArray(Uint32Array, positions.length);
    shared.set(positions);
    const steps = new StepList(contracts);
    steps.task(STAGE, place, {
      kernel: 'scatter-rows',
      inputs: { rows, positions: at },
      outputs: { whole: this.#ref('all') },
      params: {},
    });
    steps.free(STAGE, place, [rows, at]);
    const given = { layout: 'row-positions', rows: positions.length, columns: { positions: shared } };
    await runSteps(steps.steps, this.#ctx, {
      given: [
        [rows, factorsOf(factors, this.#rank), place],
        [at, given, place],
      ],
    });
  }

  #ref(part: string): PartitionRef {
    return { name: `${this.#name}/${part}`, partition: 0, version: 0 };
  }
}
