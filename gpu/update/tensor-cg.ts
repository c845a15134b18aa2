import { range } from '../webgpu/kernel.ts';
import { paddedRank, tilesOf } from '../device/slots.ts';
import type { TensorPlan } from '../equations/tensor-plan.ts';
import { RESIDUAL_TOLERANCE } from '../solve/solve-cg.ts';

/** 16-byte groups of a tile in float32, and in float16. */
const TILE_VECTORS = 80;
const HALF_VECTORS = 32;

/** A tile of A's lower triangle, or of the row of ratings below the triangle. */
interface Place {
  readonly row: number;
  readonly column: number;
  /** Its index among the tiles that pass together. */
  readonly place: number;
}

/**
 * Tiles that are in workgroup memory at the same time, when sums are moved from the accumulators to the
 * operands of the tensor cores. Subgroup w multiplies tile rows w, w + SUBGROUPS, ... The tiles of every
 * phase are in the order of the triangle. Phases that contain only ratings are not converted to float16.
 */
export interface HalfPhase {
  readonly count: number;
  readonly converted: boolean;
  readonly stores: readonly {
    readonly subgroup: number;
    readonly tiles: readonly { readonly place: number; readonly accumulator: number }[];
  }[];
  /**
   * Tiles that contain b, and with biases s. For a thread's number `element`, lanes in the lower half of a
   * subgroup read the tile at `place`, and lanes in the upper half the tile after it. With `side`, only one
   * half reads.
   */
  readonly rated: readonly {
    readonly element: number;
    readonly place: number;
    readonly both: boolean;
    readonly side: number;
  }[];
  /** `place` of the last tile with b, over all columns; -1 in phases without such tiles. */
  readonly last_rated: number;
  /**
   * The first tile of each tile row in the phase. Only in the phase's first row may its `column` be greater
   * than 0.
   */
  readonly lines: readonly Place[];
  readonly loads: readonly {
    readonly subgroup: number;
    readonly tiles: readonly {
      readonly name: string;
      readonly place: number;
      readonly transposed: boolean;
    }[];
  }[];
}

function halfPhases(
  { tiles, ratingRow, deals, subgroups }: TensorPlan,
  room: number,
  biases: boolean,
): HalfPhase[] {
  const ratedRow = ratingRow ? tiles : tiles - 1;
  const triangle = range(tiles).flatMap((row) => range(row + 1).map((column) => ({ row, column })));
  // With biases every tile changes by terms of s.
  const apart = ratingRow || biases;
  const rated = apart ? range(tiles).map((column) => ({ row: ratedRow, column })) : [];
  const phase = (
    chunk: readonly { readonly row: number; readonly column: number }[],
    converted: boolean,
  ): HalfPhase => {
    const places = chunk.map((tile, place): Place => ({ ...tile, place }));
    const operands = operandsOf(places, subgroups);
    const ownRated = converted === apart ? [] : places.filter(({ row }) => row === ratedRow);
    return {
      count: chunk.length,
      converted,
      stores: deals
        .map(({ subgroup, tiles: own }) => ({
          subgroup,
          tiles: own.flatMap(({ row, column, accumulator }) =>
            places
              .filter((one) => one.row === row && one.column === column)
              .map(({ place }) => ({ place, accumulator })),
          ),
        }))
        .filter(({ tiles: own }) => own.length > 0),
      rated: ratedParts(ownRated),
      last_rated: ownRated.find(({ column }) => column === tiles - 1)?.place ?? -1,
      lines: places.filter(({ row, place }) => place === 0 || places[place - 1].row < row),
      loads: converted
        ? range(subgroups)
            .map((subgroup) => ({ subgroup, tiles: operands.filter((one) => one.subgroup === subgroup) }))
            .filter(({ tiles: own }) => own.length > 0)
        : [],
    };
  };
  return [
    ...chunks(rated, room).map((chunk) => phase(chunk, false)),
    ...chunks(triangle, room).map((chunk) => phase(chunk, true)),
  ];
}

/**
 * The operands that subgroups load from tiles. A tile below the diagonal is used twice: as it is, and
 * transposed.
 */
function operandsOf(places: readonly Place[], subgroups: number) {
  const operand = (row: number, column: number, place: number, transposed: boolean) => ({
    subgroup: row % subgroups,
    name: `${Math.floor(row / subgroups)}_${column}`,
    place,
    transposed,
  });
  return places.flatMap(({ row, column, place }) => [
    operand(row, column, place, false),
    ...(column < row ? [operand(column, row, place, true)] : []),
  ]);
}

/** The tiles with b: at most two for each number of a thread. `places` have consecutive columns. */
function ratedParts(places: readonly Place[]): HalfPhase['rated'] {
  return range(Math.ceil(((places.at(-1)?.column ?? -1) + 1) / 2)).flatMap((element) => {
    const [first, ...others] = places.filter(({ column }) => Math.floor(column / 2) === element);
    return first === undefined
      ? []
      : [{ element, place: first.place, both: others.length > 0, side: first.column % 2 }];
  });
}

function chunks<T>(all: readonly T[], size: number): T[][] {
  return range(Math.ceil(all.length / size)).map((at) => all.slice(at * size, (at + 1) * size));
}

/**
 * Distance between columns of a vector in workgroup memory, in groups of 16 bytes: one more than a column
 * has, to avoid bank conflicts.
 */
function pitchOf(rank: number): number {
  return 2 * tilesOf(rank) + 1;
}

interface StagedPlan {
  /**
   * Memory in which the sums are staged, in groups of 16 bytes. It is larger than a vector and its product
   * need (56 a tile, and eight).
   */
  readonly staged: number;
  /** Tiles that pass together. */
  readonly room?: number;
  readonly plan: TensorPlan;
}

/**
 * Number of tiles in workgroup memory at the same time: `room` if requested, else the number that fits the
 * memory of the sums in float32 and in float16.
 */
function roomOf({ staged, room }: Pick<StagedPlan, 'staged' | 'room'>): number {
  return room ?? Math.max(1, Math.floor(staged / (TILE_VECTORS + HALF_VECTORS)));
}

function stagedOf(given: Pick<StagedPlan, 'staged' | 'room'>): number {
  return Math.max(given.staged, roomOf(given) * (TILE_VECTORS + HALF_VECTORS));
}

/**
 * Template values of the shader parts that solve with A / n in float16 as operands of tensor cores. A
 * subgroup has every SUBGROUPS-th tile row; every subgroup has all vectors.
 */
export function tensorCgValues(
  rank: number,
  biases: boolean,
  given: StagedPlan,
): Readonly<Record<string, unknown>> {
  const { plan } = given;
  return {
    tolerance: RESIDUAL_TOLERANCE,
    ROOM: roomOf(given),
    VECTOR_PITCH: pitchOf(rank),
    STAGED: stagedOf(given),
    elements: range(Math.ceil(paddedRank(rank) / 32)),
    own_rows: range(Math.ceil(plan.tiles / plan.subgroups)),
    half_phases: halfPhases(plan, roomOf(given), biases),
  };
}

/**
 * Bytes of workgroup memory for the sums and for these shader parts, without rings that are stored
 * separately.
 */
export function tensorCgBytes(rank: number, biases: boolean, given: StagedPlan): number {
  return 16 * stagedOf(given) + (biases ? 4 * paddedRank(rank) + 4 * given.plan.subgroups : 0);
}
