import type { FixedFactors } from '../../operators/als/rows/fixed-factors.ts';
import type { RowSolver } from '../../operators/als/rows/row-solver.ts';
import { ArrivingRows, type FactorRows } from './arriving-rows.ts';
import type { RowBlock } from './row-block.ts';

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
