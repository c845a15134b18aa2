import type { JsonObject } from '../json.ts';
import type { How } from '../run/step.ts';
import type { Place } from './place.ts';

/** Half-open range of rows. */
export interface RowRange {
  readonly from: number;
  readonly to: number;
}

/** The rows of a part that one task takes, and parameters for that task only. */
export interface Slice extends RowRange {
  readonly params?: JsonObject;
}

/** The parameters of the order `turns`: see turnsOf. */
export interface Turns {
  readonly seed: number;
  /**
   * True if each row starts a round with the group of columns with which it ended the previous round. False:
   * the first group is drawn.
   */
  readonly stays?: boolean;
}

/** A part of a data set: adjacent rows that are stored at one or several places. */
export interface DataPart {
  readonly rows: number;
  /** Bytes of a partition that is not a matrix; the bytes of a matrix follow from its shape and the place. */
  readonly bytes?: number;
  /** Bytes of such a partition on a device with its own memory, where kernels also store work lists. */
  readonly deviceBytes?: number;
  /**
   * The places that hold the part for the whole run; the first is its home. A task at another place gets a
   * copy while it runs.
   */
  readonly at: readonly Place[];
}

/**
 * A data set of a plan, divided into parts. In a stage that visits the blocks of a grid, `by` selects the
 * part that a block uses: the part of the block's row, of its column, or the block's own (in row-major
 * order). If there is only a single part, `by` selects a band of its rows.
 */
export interface DataSet {
  readonly name: string;
  /** Its meaning to the algorithm, and the side that it belongs to. */
  readonly role?: string;
  readonly side?: string;
  readonly layout: string;
  readonly parts: readonly DataPart[];
  /** For matrices, which the plan allocates. */
  readonly columns?: number;
  readonly contents?: 'any';
  /** For matrices: stored without padding, if the device allows that. */
  readonly packed?: boolean;
  /**
   * True: GPUs also store a float16 copy. 'only': they store only that copy, since no task reads the
   * original.
   */
  readonly half?: boolean | 'only';
  /**
   * With `half: 'only'`: devices send each other the rows in 8 bits, with a scale for each column of a part.
   * All devices then have the rounded rows.
   */
  readonly sentAs?: 'i8';
  readonly by?: 'row' | 'column' | 'block';
  /**
   * With `by: 'block'`: the part that each block uses, in row-major order. Default: each block has its own
   * part.
   */
  readonly ofBlocks?: readonly number[];
  /** True for a data set that exists before the first step and never changes: it has no versions. */
  readonly given?: boolean;
  /**
   * For parts that several places update by turns. A part's places are listed in the order of the grid's
   * rows. In stages with the order `turns` and this seed, one place after the other updates the part and
   * sends it to the next. So only two places have its current contents: the last one that updated it, and
   * the one that it was sent to. A stage that reads the part elsewhere must come after the exchange `share`.
   */
  readonly turns?: Turns;
  /** True for a copy computed from other data sets in each round: only its newest version is kept. */
  readonly derived?: boolean;
}

/** A use of a data set that differs from the default. */
export interface DataUse {
  readonly set: string;
  /**
   * The version that the task uses. `old`: the version from before this round. `last`: the newest version,
   * for the last time: the part is freed after the task (in a grid, after the tasks of a row).
   */
  readonly version?: 'old' | 'last';
  /**
   * Set if the task changes the data set in place: `alone`, or by all slices of the task at the same time
   * (`shared`).
   */
  readonly step?: 'alone' | 'shared';
  /** In a grid: use the part of the block's column. */
  readonly part?: 'column';
}

/**
 * The data sets of a task, by the task's names for its inputs and outputs. A string is the name of a data
 * set with the default use: the newest version, or a new version if the kernel's contract has `write`.
 */
export type DataUses = Readonly<Record<string, string | DataUse>>;

export interface TaskPlan {
  readonly kernel: string;
  /** Default: the places of the stage. */
  readonly at?: Place;
  readonly uses: DataUses;
  readonly params?: JsonObject;
  /** Parameters that differ between parts, by part; in a grid by row. */
  readonly perPart?: readonly JsonObject[];
  /**
   * Parameters whose values come from the round or the visited block. The parameter is the key and the
   * value's name the entry: { rowStart: 'rowFrom' }.
   */
  readonly takes?: Readonly<Record<string, string>>;
  /** The name under which its values and measures are recorded; default: the stage's name. */
  readonly stage?: string;
  /** In a stage over blocks: the task runs only at the first visit of each row, or of each column. */
  readonly once?: 'row' | 'column';
}

/**
 * The work of a stage.
 *
 *     tasks      one task for each part, at the stage's places; its slices run at once
 *     blocks     visits the blocks of a grid in an order:
 *                  latin    a random Latin square, drawn for each round from the seed (cuMF_SGD, Figure 8)
 *                  rotated  each row starts at another column
 *                  rows     row by row
 *                  turns    see turnsOf: after a visit the column's parts of `passes` are sent to the place of
 *                           the next row
 *                A block is visited at the place of its row, or at its own place.
 *     exchange   move            parts are copied from their home to their other places, to the results of the
 *                                run (`host`), or from host memory to their home
 *                share           parts that places update by turns are copied to all their places
 *                all-gather      every place gets all parts as one matrix, named `to`
 *                reduce-to-one, reduce-scatter
 *                                each part of `to` is the sum of the same number of consecutive parts, which are freed.
 *                                `groups`: places near each other, whose parts are added before sums are sent to
 *                                other groups
 *                spread          each part becomes the same number of consecutive parts of `to`, each at its own
 *                                place; a part in a file is written there
 *     allocate   zeros
 *     free       parts of derived data sets that no later stage reads
 *     grown      steps that the stage `by` of the run's graph (engine/run/scope.ts) adds once sizes are known
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
  | { readonly kind: 'free'; readonly data: readonly string[] }
  | { readonly kind: 'grown'; readonly by: string };

/** A grid of blocks. Blocks that are empty in the data set `of` are not visited. */
export interface BlockGrid {
  readonly rows: number;
  readonly columns: number;
  readonly of: string;
}

/** A stage of a plan: its work, its places and its cost. */
export interface Stage {
  /** Also the name of its measures. */
  readonly name: string;
  /** The place of each part, or of each grid row, or of each block (row-major). */
  readonly at: readonly Place[];
  readonly work: Work;
  /**
   * In the phase `measure`: the stage is skipped in a brief measure, because the tasks of the round have
   * already computed its values.
   */
  readonly brief?: 'left out';
  /**
   * The name of a pipeline. Consecutive stages with the same name process one part after the other together,
   * not one stage after the other: one part is exchanged while the next is computed.
   */
  readonly pipeline?: string;
  /**
   * For consecutive stages of a pipeline, which repeat together: they process each part this number of times
   * before the next part. `takes`: the name of the round's parameter that has the number. `together`: one
   * part of each place is processed at the same time.
   */
  readonly repeats?: { readonly times: number; readonly takes?: string; readonly together?: boolean };
  /** A description for printing: "update tensor-f16 cg(6)". */
  readonly kernel?: string;
  /** Number of tasks at each place in a round: one for each slice of a part, or one for each block. */
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
  /** Bytes at each place that the kernel keeps allocated after its first run, for its work lists. */
  readonly heldBytes?: number;
  /** Scratch buffers at each place, by name. Stages that use the same name share the buffer. */
  readonly scratchBytes?: Readonly<Record<string, number>>;
  readonly reasons?: readonly string[];
}

/** The phases of a run, each an ordered list of stages. */
export const phases = ['start', 'round', 'measure', 'end'] as const;
export type PhaseName = (typeof phases)[number];

/**
 * One visit of a stage: to one block of the grid, or to one part if the stage has no grid. `fields`: values
 * that its tasks may take as parameters.
 */
export interface Visit {
  readonly row: number;
  readonly column?: number;
  /** Columns of the grid. */
  readonly columns?: number;
  readonly fields: JsonObject;
}

/**
 * Finds the part of a data set that a visit uses. If the data set has only one part, also returns the band of
 * its rows that belongs to the visited row or column of the grid.
 */
export function partOf(
  { name, by, parts, ofBlocks }: DataSet,
  { row, column, columns = 0 }: Visit,
): { readonly partition: number; readonly band?: number } {
  if (column !== undefined && by === 'block')
    return { partition: ofBlocks?.[row * columns + column] ?? row * columns + column };
  const wanted = column !== undefined && by === 'column' ? column : row;
  if (parts.length > 1) {
    if (wanted >= parts.length) throw new Error(`${name} has no part ${wanted}`);
    return { partition: wanted };
  }
  return column === undefined || by === undefined ? { partition: 0 } : { partition: 0, band: wanted };
}

export function columnPart({ parts }: DataSet, { column = 0 }: Visit): number {
  return parts.length > 1 ? column : 0;
}

/** The way a task uses a data set; default: as in its kernel's contract. */
export function howOf({ version, step, part }: DataUse, contract: How): How {
  return step ?? (version === undefined && part === undefined ? contract : 'read');
}

export function useOf(use: string | DataUse): DataUse {
  return typeof use === 'string' ? { set: use } : use;
}

/** True if a stage reads a data set's version from before the round. */
export function usesOld({ work }: Stage, data: string): boolean {
  return (
    (work.kind === 'tasks' || work.kind === 'blocks') &&
    work.tasks.some(({ uses }) =>
      Object.values(uses)
        .map(useOf)
        .some(({ set, version }) => set === data && version === 'old'),
    )
  );
}
