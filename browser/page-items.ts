import type { RemoteItems } from '../api/serving/served-model.ts';
import { sharedArray } from '../engine/partition.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { takeRows } from '../operators/serving/factor-model.ts';
import { gramOfItems, type GramWeights } from '../operators/serving/solve-users.ts';
import { BlockCache, type CachedFile } from './cached-file.ts';
import type { PartFile } from './feature-rows.ts';
import type { PageLists } from './page-lists.ts';
import { damageAt, readAllRows, type RemoteSide } from './read-side.ts';
import { SharedValue } from './shared-request.ts';

/** Bytes of a block of factors: some rows, since the rows of a request are seldom near each other. */
const BLOCK_BYTES = 1 << 12;

interface OpenedPart {
  readonly part: PartFile;
  readonly cached: CachedFile;
  readonly first: number;
}

/**
 * The item factors of a model on a web server: all in memory after `load`, and until then read row by row, in
 * blocks of which a part stays in memory.
 */
export class PageItems implements RemoteItems {
  readonly rank: number;
  readonly items: number;
  readonly #parts: readonly OpenedPart[];
  readonly #all: SharedValue<Float32Array>;
  #loaded: Float32Array | undefined;
  /** Opens the index for recommendations. */
  openLists: (signal: AbortSignal) => Promise<PageLists | undefined> = async () => undefined;

  constructor(side: RemoteSide) {
    this.#all = new SharedValue((signal) => readAllRows(side, signal));
    [this.rank, this.items] = [side.shape.width, side.shape.rows];
    const cache = new BlockCache(BLOCK_BYTES);
    let first = 0;
    this.#parts = side.parts.map((part) => {
      first += part.rows;
      return { part, cached: cache.open(part.file), first: first - part.rows };
    });
  }

  /** All factors, if they were loaded. */
  get loaded(): Float32Array | undefined {
    return this.#loaded;
  }

  /** Reads the factors of all items, once. */
  async load(signal?: AbortSignal): Promise<Float32Array> {
    this.#loaded = await this.#all.get(signal);
    return this.#loaded;
  }

  async read(
    positions: Uint32Array,
    columns: { readonly first: number; readonly count: number },
    signal: AbortSignal,
  ): Promise<Float32Array> {
    if (this.#loaded) return takeRows(this.#loaded, this.rank, positions, columns);
    const rows = await this.#rows(positions, signal);
    if (columns.count === this.rank) return rows;
    const all = Uint32Array.from(positions, (_, row) => row);
    return takeRows(rows, this.rank, all, columns);
  }

  /** Reads rows from the server, one after the other. */
  async #rows(positions: Uint32Array, signal: AbortSignal): Promise<Float32Array> {
    const rows = sharedArray(Float32Array, positions.length * this.rank);
    const ascending = [...new Set(positions)].sort((one, other) => one - other);
    const read = new Map<number, Float32Array>();
    await Promise.all(
      this.#parts.map(async ({ part, cached, first }) => {
        const own = ascending.filter((at) => at >= first && at < first + part.rows);
        if (own.length === 0) return;
        const numbers = own.map((at) => at - first);
        const values = await damageAt(part.file.url, () => part.readRows(numbers, cached, signal));
        own.forEach((at, row) => read.set(at, values.subarray(row * this.rank, (row + 1) * this.rank)));
      }),
    );
    positions.forEach((at, row) => rows.set(read.get(at) as Float32Array, row * this.rank));
    return rows;
  }

  /** From the index, if it has the matrix; else from all factors. */
  async gram(weights: GramWeights, ctx: ExecutionContext): Promise<Float32Array> {
    const lists = this.#loaded ? undefined : await this.openLists(ctx.signal);
    const stored = await lists?.gram(weights.unobserved, ctx.signal);
    if (stored) return stored;
    const itemFactors = await this.load(ctx.signal);
    return gramOfItems({ itemFactors, rank: this.rank }, weights, ctx);
  }
}
