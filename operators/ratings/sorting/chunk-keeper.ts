import { hostDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { PartitionRef } from '../../../engine/partition.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';

interface Kept {
  readonly rows: number;
  readonly codes: PartitionRef;
  readonly values: PartitionRef;
}

/**
 * Keeps chunks of numbered ratings in memory up to a number of rows. With more rows, it moves all chunks to
 * files, and later ones as they arrive.
 */
export class ChunkKeeper {
  readonly #most: number;
  readonly #ctx: ExecutionContext;
  readonly #inMemory: Kept[] = [];
  #rows = 0;

  constructor(
    { rowsInMemory = Number.POSITIVE_INFINITY }: { readonly rowsInMemory?: number },
    ctx: ExecutionContext,
  ) {
    this.#most = rowsInMemory;
    this.#ctx = ctx;
  }

  /** True once chunks are written to files. */
  get spilled(): boolean {
    return this.#rows > this.#most;
  }

  /** Accepts a chunk whose partitions are not in use. Resolves when it is stored. */
  async keep(chunk: Kept): Promise<void> {
    const before = this.spilled;
    this.#rows += chunk.rows;
    this.#inMemory.push(chunk);
    if (!this.spilled) return;
    if (!before)
      this.#ctx.events({
        type: 'note',
        text: 'the ratings do not fit into the memory budget while they are loaded: they go by way of files',
      });
    const { place } = hostDevice(this.#ctx.executor).info;
    const steps = new StepList({});
    for (const { codes, values } of this.#inMemory.splice(0)) steps.spill('spill', place, [codes, values]);
    await runSteps(steps.steps, this.#ctx);
  }
}
