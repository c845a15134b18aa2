import type { FixedFactors, RowSolver } from '../../operators/als/rows/row-solver.ts';
import { ArrivingRows, type FactorRows } from './arriving-rows.ts';
import { type BlockBytes, CHUNK_BYTES } from './block-facts.ts';
import type { RowBlock } from './row-block.ts';

/** The requests for which a block has rows of the fixed side. */
const solves = new Set(['take', 'fixed', 'add', 'solve', 'loss']);

/**
 * The blocks of rows in a worker, within a budget of memory. Spark has all of their data and sends again what is
 * missing, so a worker can hold more blocks than fit: to make room for a request it gives up rows of blocks that
 * the request does not use, and then those blocks. The last used ones are first: all blocks are used in the same
 * order in every half-iteration, so a block that was used before is needed sooner.
 */
export class HeldBlocks {
  readonly #budget: number;
  readonly #fixed: Pick<FixedRows, 'drop'>;
  /** In the order of use. */
  readonly #blocks = new Map<string, RowBlock>();
  /** The most bytes that a request has needed in addition: a CPU's kernels do not return memory. */
  #working = 0;
  #gaveUp = false;

  /** `budget`: bytes for all blocks, without the process itself. `fixed`: has rows for one of the blocks. */
  constructor(budget: number, fixed: Pick<FixedRows, 'drop'>) {
    [this.#budget, this.#fixed] = [budget, fixed];
  }

  get(name: string): RowBlock | undefined {
    return this.#blocks.get(name);
  }

  add(name: string, block: RowBlock): void {
    this.#blocks.set(name, block);
  }

  entries(): Iterable<readonly [string, RowBlock]> {
    return this.#blocks;
  }

  async remove(name: string): Promise<void> {
    const block = this.#blocks.get(name);
    this.#blocks.delete(name);
    await this.#fixed.drop(block);
    await block?.forget();
  }

  /** Makes room for a request about a block. `from`: the name of another block that the request reads. */
  async makeRoom(type: string, name: string, from?: string): Promise<void> {
    const [block, read] = [this.#touch(name), from === undefined ? undefined : this.#touch(from)];
    if (block === undefined) return;
    const needed = this.#neededBytes(type, block) + (read?.bytes?.kept ?? 0);
    const others = [...this.#blocks].filter(([, one]) => one !== block && one !== read).toReversed();
    let held = others.reduce((all, [, one]) => all + heldBytes(one), needed);
    for (const [, one] of others) {
      if (held <= this.#budget) return;
      if (one.version === undefined) continue;
      held -= one.bytes?.rows ?? 0;
      this.#gaveUp = true;
      await one.giveUpRows();
    }
    for (const [name, one] of others) {
      if (held <= this.#budget) return;
      held -= heldBytes(one);
      await this.remove(name);
    }
  }

  #neededBytes(type: string, block: RowBlock): number {
    const { bytes, ratings, hasShares } = block;
    if (bytes === undefined) return this.#working + 2 * CHUNK_BYTES * ratings;
    this.#working = Math.max(this.#working, workingBytes(bytes, block.summed !== undefined, type));
    const byColumn = hasShares || type === 'equations' ? (bytes.equations?.kept ?? 0) : 0;
    // Rows that were given up may not be collected yet.
    return this.#working + bytes.kept + byColumn + (this.#gaveUp ? bytes.rows : 0);
  }

  /** Marks a block as the last used one. */
  #touch(name: string): RowBlock | undefined {
    const block = this.#blocks.get(name);
    if (block === undefined) return undefined;
    this.#blocks.delete(name);
    this.#blocks.set(name, block);
    return block;
  }
}

/** Bytes of a block that no request uses. */
function heldBytes({ bytes, version, ratings, hasShares }: RowBlock): number {
  if (bytes === undefined) return CHUNK_BYTES * ratings;
  const rows = version === undefined ? bytes.rows : 0;
  return bytes.kept - rows + (hasShares ? (bytes.equations?.kept ?? 0) : 0);
}

/** Bytes that a request needs in addition to the block's `kept`. `summed`: some of its equations have arrived. */
function workingBytes({ equations, solving }: BlockBytes, summed: boolean, type: string): number {
  if (type === 'equations') return equations?.forming ?? 0;
  if (type === 'add' || summed) return equations?.summing ?? 0;
  return solves.has(type) ? solving : 0;
}

/**
 * The rows of the fixed side that one block needs. A worker solves one block at a time, so it has these rows
 * for the block alone that got some last.
 */
export class FixedRows {
  #block: RowBlock | undefined;
  #arrived: ArrivingRows | undefined;
  #factors: FixedFactors | undefined;

  /**
   * Adds rows of a version for a block, in the unit of training. Rows of another version or another block
   * are given up. Rows that the block does not need are skipped.
   */
  async add(
    block: RowBlock,
    solver: RowSolver,
    version: number,
    { ids, factors }: FactorRows<Float32Array | Uint16Array>,
  ): Promise<void> {
    if (this.#block !== block) await this.drop(this.#block);
    this.#block = block;
    if (this.#arrived?.version !== version) this.#arrived = new ArrivingRows(version, block.columns);
    this.#factors ??= await solver.fixedFactors();
    await this.#factors.place(this.#arrived.add(ids), factors);
  }

  /** The version of the rows of a block; undefined if the rows of another block are in memory. */
  versionOf(block: RowBlock): number | undefined {
    return this.#block === block ? this.#arrived?.version : undefined;
  }

  /** Gives the solver of a block its rows. Throws DataError if one has not arrived. */
  fix(block: RowBlock, solver: RowSolver): void {
    if (this.#block !== block || this.#arrived === undefined || this.#factors === undefined) return;
    block.requireFixed(this.#arrived.missing);
    solver.fix(this.#factors.rows);
  }

  /** Gives up the rows, of any block. */
  clear(): Promise<void> {
    return this.drop(this.#block);
  }

  /** Gives up the rows of a block. */
  async drop(block: RowBlock | undefined): Promise<void> {
    if (block === undefined || this.#block !== block) return;
    const factors = this.#factors;
    this.#block = this.#arrived = this.#factors = undefined;
    // On a GPU a solver refers to the rows in host memory.
    block.started?.fix(new Float32Array(0));
    await factors?.free();
  }
}
