import { paddedRank, tilesOf } from '../device/slots.ts';
import {
  accumulateBytes,
  accumulatePlan,
  accumulateValues,
  gatheredVectors,
  ringBytes,
  tensorNeeds,
  type TensorParams,
} from '../equations/normal-equations-tensor.ts';
import { subgroupsFor, type TensorPlan } from '../equations/tensor-plan.ts';
import { BINS_AHEAD, int8Needs, int8Plan, int8Values, int8Workgroup } from '../int8/int8-plan.ts';
import { shiftValues } from '../solve/row-shifts.ts';
import { registerSolverBytes, registerSolverValues, RESIDUAL_TOLERANCE } from '../solve/solve-cg.ts';
import { kernelOf, range } from '../webgpu/kernel.ts';

/** How a fused kernel keeps A while it solves. */
type SolvingParams = {
  /**
   * True: CG runs on tensor cores with A / n in float16 (cuMF_ALS, section 4.2). False: A is in float32 in
   * registers.
   */
  readonly halfA: boolean;
  /**
   * Only with `halfA`: A is moved from the accumulators of the tensor cores to their operands through
   * workgroup memory. This is the number of 16 x 16 tiles that are in that memory at the same time. Default:
   * the number that fits the memory for staged rows of θ.
   */
  readonly room?: number;
};

export type UpdateTensorParams = TensorParams & SolvingParams;

export type UpdateInt8Params = { readonly rank: number; readonly biases: boolean } & SolvingParams;

/** `bin`: see TensorParams. */
export type UpdateImplicitTensorParams = Pick<TensorParams, 'rank' | 'bin'>;

const rated = {
  work: 'array<vec4<u32>>',
  indices: 'array<u32>',
  values: 'array<f32>',
  fixed: 'array<vec4<u32>>',
} as const;

const solved = { factors: 'array<f32>', half: 'array<f16>', status: 'array<atomic<u32>>' } as const;

const counts = { count: 'u32', zero_row: 'u32', scale: 'f32', unscale: 'f32', steps: 'u32' } as const;

/**
 * The fused kernel of a half-iteration: a workgroup computes A of a row and solves the row, without writing A
 * to device memory. It serves ranks up to 256 with `halfA`, and up to 144 without, since then A must fit the
 * registers. Workgroups take rows from the list one after the other, so any number of workgroups may be
 * dispatched. `fixed_bias`: see normal-equations-tensor.
 */
export const updateTensorKernel = kernelOf<UpdateTensorParams>()({
  name: 'update-tensor',
  reads: { ...rated, fixed_bias: 'array<f32>', previous: 'array<f32>', shifts: 'array<f32>' },
  writes: { ...solved, bias: 'array<f32>' },
  uniforms: { ...counts, mean: 'f32' },
  needs: () => tensorNeeds,
  values: (params) => ({
    ...accumulateValues(params),
    ...shiftValues(params.biases),
    ...registerSolverValues(params),
    ...(params.halfA ? tensorCgValues(params.rank, params.biases, cgPlan(params)) : {}),
  }),
  workgroup: (params) => {
    const { rank, biases, halfA } = params;
    return {
      threads: subgroupsFor(rank) * 32,
      bytes:
        ringBytes(params) +
        (halfA
          ? tensorCgBytes(rank, biases, cgPlan(params))
          : 16 * accumulatePlan(params).staged + registerSolverBytes(rank)),
    };
  },
  samples: [
    { rank: 100, bin: 32, biases: true, halfA: true },
    { rank: 64, bin: 32, biases: false, halfA: false },
    { rank: 136, bin: 32, biases: false, halfA: true, room: 13 },
  ],
});

/**
 * The memory of CG with `halfA`: A is moved through the workgroup memory that held the staged rows of θ, in
 * several phases if the tiles do not all fit.
 */
function cgPlan(params: UpdateTensorParams) {
  return { ...accumulatePlan(params), staged: gatheredVectors(params), room: params.room };
}

/** The same with θ in 8 bits. `fixed` and `scales`: see normalEquationsInt8Kernel. */
export const updateInt8Kernel = kernelOf<UpdateInt8Params>()({
  name: 'update-int8',
  reads: {
    ...rated,
    scales: 'array<f32>',
    fixed_bias: 'array<f32>',
    previous: 'array<f32>',
    shifts: 'array<f32>',
  },
  writes: { ...solved, bias: 'array<f32>' },
  uniforms: { ...counts, mean: 'f32' },
  needs: () => int8Needs,
  values: (params) => ({
    ...int8Values(params),
    sets: range(BINS_AHEAD.ofRows(params)),
    ...shiftValues(params.biases),
    ...registerSolverValues(params),
    ...(params.halfA
      ? tensorCgValues(params.rank, params.biases, { ...int8Plan(params), room: params.room })
      : {}),
  }),
  workgroup: (params) => {
    const { threads, bytes } = int8Workgroup(params);
    return {
      threads,
      bytes: params.halfA
        ? tensorCgBytes(params.rank, params.biases, { ...int8Plan(params), room: params.room })
        : bytes,
    };
  },
  samples: [
    { rank: 100, biases: true, halfA: false },
    { rank: 64, biases: true, halfA: false },
    { rank: 200, biases: false, halfA: true },
    { rank: 100, biases: false, halfA: true, room: 6 },
  ],
});

/**
 * The same for implicit data, at ranks up to 128, at which A in float32 fits the registers. `gram`: the Gram
 * matrix G (F x F, F: rank padded to whole tiles), which is added to every A. `shifts`: for each row the
 * number that is added to the diagonal of its A.
 */
export const updateImplicitTensorKernel = kernelOf<UpdateImplicitTensorParams>()({
  name: 'update-implicit-tensor',
  reads: { ...rated, gram: 'array<vec4f>', shifts: 'array<f32>', previous: 'array<f32>' },
  writes: solved,
  uniforms: { ...counts, alpha: 'f32', base: 'f32' },
  needs: () => tensorNeeds,
  values: (params) => ({
    ...accumulateValues(weighted(params)),
    ...registerSolverValues({ halfA: false }),
    GRAM: true,
    AHEAD: true,
  }),
  workgroup: (params) => ({
    threads: subgroupsFor(params.rank) * 32,
    bytes: accumulateBytes(weighted(params)) + registerSolverBytes(params.rank),
  }),
  samples: [
    { rank: 64, bin: 32 },
    { rank: 100, bin: 32 },
  ],
});

function weighted({ rank, bin }: UpdateImplicitTensorParams): TensorParams {
  return { rank, bin, biases: false, implicit: true };
}

/**
 * Size of a 16 x 16 tile in workgroup memory, in groups of 16 bytes: in float32 (16 rows of five groups, one
 * of them padding against bank conflicts), and in float16 (16 rows of two groups).
 */
const TILE_VECTORS = 80;
const HALF_VECTORS = 32;

/**
 * A 16 x 16 tile of A's lower triangle, or of the extra tile row below it, which holds products with the
 * ratings. `row` and `column` count tiles.
 */
interface Place {
  readonly row: number;
  readonly column: number;
  /** Index of the tile in workgroup memory during its phase. */
  readonly place: number;
}

/**
 * Plan of one phase of moving A from accumulators of the tensor cores, in float32, to operands of the tensor
 * cores, in float16. Workgroup memory is too small for all tiles, so they are moved in phases, in the order
 * of the triangle. Subgroup w multiplies tile rows w, w + SUBGROUPS, ... of A, so it loads the operands of
 * these rows. Phases that contain only products with ratings are not converted to float16.
 */
interface HalfPhase {
  readonly count: number;
  readonly converted: boolean;
  readonly stores: readonly {
    readonly subgroup: number;
    readonly tiles: readonly { readonly place: number; readonly accumulator: number }[];
  }[];
  /**
   * The reads by which threads get their elements of b (and with biases of s = Σ θ_v) from the tiles of this
   * phase. Lane l of a subgroup has the elements 32 e + l of b for all e; `element` is e. Elements 32 e to 32
   * e + 15 are in the tile at `place`, the next 16 in the tile after it. If only one of these tiles is in the
   * phase, `both` is false, and only one half of the subgroup reads: `side` 0 is lanes 0 to 15, 1 is lanes 16
   * to 31.
   */
  readonly rated: readonly {
    readonly element: number;
    readonly place: number;
    readonly both: boolean;
    readonly side: number;
  }[];
  /** `place` of the tile with the last elements of b, if it is in this phase; else -1. */
  readonly last_rated: number;
  /**
   * The first tile of each tile row of the phase. A phase may start in the middle of a tile row: then the
   * `column` of its first tile is greater than 0.
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
  // s, the sum of the rated rows of θ, is stored with b. With biases, terms of s are subtracted from every
  // tile of A, so the tiles with b and s have phases of their own, before the others.
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
 * The operands that the subgroups load from the tiles of a phase. Since A is symmetric, a tile below the
 * diagonal is loaded twice: as it is, and transposed for its mirror image above the diagonal.
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

/**
 * Makes the reads of `rated` for the tiles with b in a phase, which have consecutive columns. Columns 2 e and
 * 2 e + 1 belong to `element` e.
 */
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
 * During CG, a vector is stored in workgroup memory as two columns, the numbers rounded to float16 and their
 * rounding errors. This is the distance between the columns in groups of 16 bytes: one more than a column
 * has, to avoid bank conflicts.
 */
function pitchOf(rank: number): number {
  return 2 * tilesOf(rank) + 1;
}

interface StagedPlan {
  /**
   * Size of the workgroup memory through which tiles are moved, in groups of 16 bytes. CG needs less of it
   * afterwards, for a vector and its product with A.
   */
  readonly staged: number;
  /** Number of tiles that are moved in one phase. Default: the number that fits `staged`. */
  readonly room?: number;
  readonly plan: TensorPlan;
}

/**
 * Number of tiles that are in workgroup memory at the same time: `room` if given, else the number that fits
 * the memory. A tile needs memory in float32 and in float16.
 */
function roomOf({ staged, room }: Pick<StagedPlan, 'staged' | 'room'>): number {
  return room ?? Math.max(1, Math.floor(staged / (TILE_VECTORS + HALF_VECTORS)));
}

function stagedOf(given: Pick<StagedPlan, 'staged' | 'room'>): number {
  return Math.max(given.staged, roomOf(given) * (TILE_VECTORS + HALF_VECTORS));
}

/**
 * Template values of the shader parts that run CG on tensor cores, with A / n in float16. The tile rows of A
 * are divided among the subgroups: subgroup w has tile rows w, w + SUBGROUPS, ... Every subgroup has all
 * elements of the vectors.
 */
function tensorCgValues(rank: number, biases: boolean, given: StagedPlan): Readonly<Record<string, unknown>> {
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
 * Bytes of workgroup memory for the tiles of A and for CG on tensor cores. The ring buffer of ratings is not
 * included.
 */
function tensorCgBytes(rank: number, biases: boolean, given: StagedPlan): number {
  return 16 * stagedOf(given) + (biases ? 4 * paddedRank(rank) + 4 * given.plan.subgroups : 0);
}
