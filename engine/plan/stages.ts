import type { JsonObject } from '../json.ts';
import type { Place } from './place.ts';

/** Half-open range of rows. */
export interface RowRange {
  readonly from: number;
  readonly to: number;
}

/** Rows of a part that one task takes, and parameters of that task alone. */
export interface Slice extends RowRange {
  readonly params?: JsonObject;
}

/** The parameters of the order `turns`: see turnsOf. */
export interface Turns {
  readonly seed: number;
  /**
   * True where a row begins a round with the group of columns with which it ended the one before; else that
   * is drawn.
   */
  readonly stays?: boolean;
}

/** A part of a data set: rows that lie together, at one or several places. */
export interface DataPart {
  readonly rows: number;
  /** Bytes of a partition that is not a matrix; those of a matrix follow from its shape and the place. */
  readonly bytes?: number;
  /** The same on a device with memory of its own, where kernels keep lists beside it. */
  readonly deviceBytes?: number;
  /**
   * Its home first, then the other places where it stays for the whole run. A task elsewhere gets a copy for
   * as long as it runs.
   */
  readonly at: readonly Place[];
}

/**
 * The partitions of one kind that a plan works on. `by` tells which part, or which band of a single part,
 * belongs to a block of the grid: that of the block's row, of its column, or the block's own (row-major).
 */
export interface DataSet {
  readonly name: string;
  /** Its meaning to the algorithm, and the side that it is of. */
  readonly role?: string;
  readonly side?: string;
  readonly layout: string;
  readonly parts: readonly DataPart[];
  /** Of matrices, which the plan allocates. */
  readonly columns?: number;
  readonly contents?: 'any';
  /** Of matrices: rows without padding, where the device allows that. */
  readonly packed?: boolean;
  /**
   * Kept with a copy of half the width beside it on GPUs; 'only': the copy alone, since no task reads more.
   */
  readonly half?: boolean | 'only';
  readonly by?: 'row' | 'column' | 'block';
  /** With `by: 'block'`: the part that belongs to each block, row-major; default: each block has its own. */
  readonly ofBlocks?: readonly number[];
  /** True for a data set that exists before the steps begin and stays: it has no versions. */
  readonly given?: boolean;
  /**
   * Of parts with several places in the order of a grid's rows: stages of the order `turns` and this seed
   * step a part at one place after the other, and only the place that stepped it last, and the one that it
   * was passed on to since, have it as it is. Work that reads it elsewhere comes behind the exchange `share`.
   */
  readonly turns?: Turns;
  /** True for a copy made from other data sets in each round: only its newest version is needed. */
  readonly derived?: boolean;
}

/** A use of a data set that is not the usual one. */
export interface DataUse {
  readonly set: string;
  /**
   * `old`: the version from before this round. `last`: the newest, for the last time: the part is freed after
   * the task, in a grid after the tasks of a row.
   */
  readonly version?: 'old' | 'last';
  /** Stepped in place, by this task alone or by all slices at once. */
  readonly step?: 'alone' | 'shared';
  /** In a grid: the part of the block's column. */
  readonly part?: 'column';
}

/**
 * The inputs and outputs of a task, by the task's names for them. A name of a data set alone is the usual
 * use: the newest version, or a new one where the kernel's contract says write.
 */
export type DataUses = Readonly<Record<string, string | DataUse>>;

/** One kernel of a stage. */
export interface TaskPlan {
  readonly kernel: string;
  /** Default: the stage's places. */
  readonly at?: Place;
  readonly uses: DataUses;
  readonly params?: JsonObject;
  /** Parameters that differ from part to part, by part; those of a grid by row. */
  readonly perPart?: readonly JsonObject[];
  /**
   * Parameters that come from the round or the block that is visited, by their names there: { rowStart:
   * 'rowFrom' }.
   */
  readonly takes?: Readonly<Record<string, string>>;
  /** The name under which its values and measures are kept; default: the stage's. */
  readonly stage?: string;
  /** In a stage over blocks: run at the first visit of each row, or column, alone. */
  readonly once?: 'row' | 'column';
}

/**
 * The work of a stage.
 *
 *     tasks      one task for each part, at the stage's places; its slices run at once
 *     blocks     the blocks of a grid in an order: `latin` is one of a random Latin square, drawn anew for each round from the seed
 *                (cuMF_SGD, Figure 8), `rotated` begins each row at another column, `rows` goes through row after row, `turns` is that of
 *                turnsOf: behind a visit the column's parts of `passes` go on to the place of the next row. A block is visited where its row is, or at a place of its own.
 *     exchange   `move`: the parts of data sets come from their home to their other places, to the results of the run (`host`), or
 *                from host memory to their home; `share`: parts that go from place to place by turns come to all their places; `all-gather`: every place gets all parts as one matrix, under the name `to`;
 *                `reduce-to-one`, `reduce-scatter`: the parts of `to` are sums of as many parts of the data, each sum of parts in a row, which are used
 *                up; `groups`: places that are near each other, inside which parts add up before they cross to other groups;
 *                `spread`: each part of the data becomes as many parts of `to` in a row, each at a place of its own
 *     allocate   zeros
 *     grown      steps that are appended once sizes are known, by the stage `by` of the run's graph (engine/run/scope.ts)
 */
export type Work =
  | { readonly kind: 'tasks'; readonly tasks: readonly TaskPlan[] }
  | ({
      readonly kind: 'blocks';
      readonly tasks: readonly TaskPlan[];
      readonly order: 'latin' | 'rotated' | 'rows' | 'turns';
      readonly grid: BlockGrid;
      readonly passes?: readonly string[];
    } & Turns)
  | {
      readonly kind: 'exchange';
      readonly how: 'move';
      readonly data: readonly string[];
      readonly to: 'places' | 'host' | 'from-host';
    }
  | { readonly kind: 'exchange'; readonly how: 'share'; readonly data: readonly string[] }
  | {
      readonly kind: 'exchange';
      readonly how: 'all-gather';
      readonly data: readonly string[];
      readonly to: readonly string[];
    }
  | {
      readonly kind: 'exchange';
      readonly how: 'spread';
      readonly data: readonly string[];
      readonly to: readonly string[];
    }
  | {
      readonly kind: 'exchange';
      readonly how: 'reduce-to-one' | 'reduce-scatter';
      readonly data: readonly string[];
      readonly to: readonly string[];
      readonly groups?: readonly (readonly Place[])[];
    }
  | { readonly kind: 'allocate'; readonly data: readonly string[] }
  | { readonly kind: 'grown'; readonly by: string };

/** A grid of blocks; those of the data set `of` that are empty are not visited. */
export interface BlockGrid {
  readonly rows: number;
  readonly columns: number;
  readonly of: string;
}

/** A stage of a plan: its work, its places and its cost. */
export interface Stage {
  /** Also the name under which its measures are kept. */
  readonly name: string;
  /** The place of each part, or of each row of a grid, or of each of its blocks, row-major. */
  readonly at: readonly Place[];
  readonly work: Work;
  /**
   * Of the phase `measure`: left out of a measure that is brief, whose figures the tasks of the round have
   * given.
   */
  readonly brief?: 'left out';
  /**
   * Stages in a row that name the same pipeline go through it part by part, not one stage behind the other,
   * so that an exchange of one part goes on beside the computation of the next.
   */
  readonly pipeline?: string;
  /**
   * Stages in a row of a pipeline that repeat go through a part together so many times, or as often as the
   * round's parameter `takes` says.
   */
  readonly repeats?: { readonly times: number; readonly takes?: string };
  /** A description for printing: "update tensor-f16 cg(6)". */
  readonly kernel?: string;
  /** Tasks at each place in a round: slices of parts, or blocks. */
  readonly tasks?: number;
  /**
   * The grid of R: p vertical parts of the fixed side, q horizontal parts of the solved side (cuMF, section
   * 4).
   */
  readonly partitions?: { readonly p: number; readonly q: number };
  readonly bytesRead?: number;
  readonly bytesWritten?: number;
  readonly flops?: number;
  readonly exchange?: string;
  /** Bytes at each place that the kernel keeps from its first run on: work lists. */
  readonly heldBytes?: number;
  /** Buffers at each place by name, which the stages that name them share. */
  readonly scratchBytes?: Readonly<Record<string, number>>;
  readonly reasons?: readonly string[];
}

/** The parts of a run, each a list of stages in order. */
export const phases = ['start', 'round', 'measure', 'end'] as const;
export type PhaseName = (typeof phases)[number];
