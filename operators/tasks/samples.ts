/**
 * Sample inputs of tasks that CPUs and GPUs have, and how much the results of two devices may differ. Every
 * device must agree with the CPU on them (gpu/checks/checks.ts).
 */
import type { JsonObject } from '../../engine/json.ts';
import type { Partition } from '../../engine/partition.ts';
import { CounterRandom } from '../../engine/random.ts';
import { equationColumns, equationLayout } from './equation-tasks.ts';
import {
  blockOf,
  columnsOf,
  factorsOf,
  randomBlock,
  randomFactors,
  roundedToHalf,
  uniforms,
  vectorOf,
  wholeFactors,
} from './sample-inputs.ts';
import type { KernelName, ParamsOf, UpdateProblem } from './tasks.ts';
import { gradientColumns, gradientLayout } from './vector-tasks.ts';

type Partitions = Readonly<Record<string, Partition>>;

/** What a task computed: the values that it returned, and its outputs by name. */
export interface TaskResult {
  readonly values: Readonly<Record<string, number>>;
  readonly outputs: Partitions;
}

/** A sample of a task. Its inputs, which may be large, are made by `make`. */
export interface TaskCase {
  readonly kernel: KernelName;
  /** Distinguishes the sample from others of the task: "rank 100, biases". */
  readonly variant: string;
  make(): TaskSample;
}

export interface TaskSample<Params extends JsonObject = JsonObject> {
  readonly kernel: KernelName;
  readonly inputs: Partitions;
  /** Outputs that exist before the task runs, with their contents. */
  readonly outputs?: Partitions;
  /** For a task that solves or sums rows: the solver by which a device chooses its kernels. */
  readonly solver?: UpdateProblem['solver'];
  /** Matrices of float16 numbers, which a GPU reads as float16. */
  readonly halves?: readonly string[];
  /** The task runs once with each of these. */
  readonly params: readonly Params[];
  /** The difference of two results. It must be at most `limit`; NaN is worse than any number. */
  difference(found: TaskResult, expected: TaskResult, params: Params, inputs: Partitions): number;
  readonly limit: number;
}

/**
 * Limit of the relative error of sums of products in float32. Each product has a rounding error of about
 * 1e-7 of its value, of either sign.
 */
const PRODUCT_LIMIT = 2e-6;

/** Ranks around the sizes of tiles, vectors and subgroups. */
const RANKS = [1, 7, 10, 32, 63, 64, 100, 128, 200];

/**
 * Row lengths that cover: rows without ratings at both ends and in between, rows with fewer ratings than the
 * four that a team of threads takes at once, and one row that many workgroups share.
 */
const LENGTHS = [
  0, 1, 2, 0, 0, 3, 4, 5, 1, 1, 1, 1, 1, 1, 63, 64, 65, 2, 1000, 1023, 1024, 1025, 0, 10_000, 7, 0,
];
const ROWS = 300;
const manyLengths = Array.from({ length: ROWS }, (_, row) => LENGTHS[row % LENGTHS.length]);

/** Ranges of ROWS rows. */
const ranges = rangesOf([0, ROWS], [0, 1], [5, 5], [63, 129], [299, 300]);

const sampleOf = <K extends KernelName>(
  kernel: K,
  variant: string,
  make: () => Omit<TaskSample<ParamsOf<K>>, 'kernel'>,
): TaskCase => ({ kernel, variant, make: () => ({ kernel, ...make() }) as unknown as TaskSample });

/** Samples of all tasks. */
export function* taskSamples(): Generator<TaskCase> {
  for (const rank of RANKS) {
    yield* [false, true].flatMap((biased) => [false, true].map((half) => squaredErrors(rank, biased, half)));
    yield weightedNorms(rank);
    yield implicitErrors(rank);
    yield* [false, true].map((drawn) => shiftedNorms(rank, drawn));
    yield* predictions(rank);
  }
  yield* [false, true].map((drawn) => biasSums(drawn));
  yield* [true, false].flatMap((biases) => [false, true].map((adaptive) => shrunkRows(biases, adaptive)));
  yield* topNSamples();
  yield* rankingSamples();
  for (const columns of [1, 5, 64, 100]) yield* movedRows(columns);
  for (const rank of [10, 64, 100, 200, 520]) yield gramOf(rank);
  yield* solvingSamples();
}

/** Tasks that ALS solves rows with where θ is on several devices: by equations, and by products with vectors. */
function* solvingSamples(): Generator<TaskCase> {
  const shapes = [10, 64, 100, 200].flatMap((rank) =>
    (['explicit', 'biases', 'implicit'] as const).map((kind) => ({ rank, kind })),
  );
  for (const shape of shapes) {
    yield* [false, true].map((half) => equationSums(shape, half));
    yield solvedEquations(shape, shape.rank % 20 === 0 ? 'cg' : 'cholesky');
    yield solvedEquations(shape, shape.rank % 20 === 0 ? 'cholesky' : 'cg', true);
    yield* [true, false].flatMap((first) => vectorSums(shape, first));
    yield* vectorSteps(shape);
  }
  yield solvedEquations({ rank: 33, kind: 'biases' }, 'cg');
  yield solvedEquations({ rank: 64, kind: 'explicit' }, 'nonnegative');
  for (const kind of ['biases', 'implicit'] as const) yield* vectorSteps({ rank: 520, kind });
  for (const rank of [513, 600, 1024, 2048, 4096])
    yield* (['explicit', 'biases'] as const).map((kind, at) =>
      wideRows({ rank, kind }, (rank % 512 === 0) === (at === 0)),
    );
  for (const rank of [600, 1030, 2048]) yield wideRows({ rank, kind: 'implicit' }, rank > 600);
  yield wideRows({ rank: 528, kind: 'biases' }, false, 3);
  yield wideRows({ rank: 528, kind: 'implicit' }, false, 3);
  for (const [at, rank] of [10, 64, 140, 200, 520].entries())
    yield* (['explicit', 'biases', 'implicit'] as const).flatMap((kind, k) =>
      rank === 520
        ? [drawnRows({ rank, kind }, 'cg', k === 1)]
        : (['cg', 'cholesky'] as const).map((solver, s) =>
            drawnRows({ rank, kind }, solver, (at + k + s) % 2 === 0),
          ),
    );
  yield drawnRows({ rank: 20, kind: 'explicit' }, 'nonnegative', false);
}

type Kind = 'explicit' | 'biases' | 'implicit';

interface RowsCase {
  readonly rank: number;
  readonly kind: Kind;
}

/** Limit of the error of a row's vector, whose terms may cancel, relative to its largest number. */
const VECTOR_LIMIT = 5e-5;

/** Rows of ratings of all lengths that kernels treat apart: the longest is cut into parts. */
const RATED: readonly number[] = [1, 0, 64, 65, 9000, 33, 32, 2, 700, 16, 7, 0, 130, 1];
const RATED_ROWS = RATED.length;

/** All rows, and some that are stored from row 2 on. */
const rowStarts = [
  { from: 0, to: RATED_ROWS - 2, rowStart: 0 },
  { from: 3, to: RATED_ROWS, rowStart: 2 },
];

const weights = { alpha: 3, base: 1 } as const;

/** `cgBelow` above the ratings of any row. */
const ALL_ROWS = 2 ** 31 - 1;
const MEAN = 3.125;

/**
 * Ratings of all kinds of rows, θ and its biases. Ratings and biases are multiples of 1/64, so that float16
 * holds them and their differences.
 */
function ratedRows({ rank, kind }: RowsCase, lengths = RATED, half = false) {
  const inSteps = (values: Float32Array) => values.map((value) => Math.round(64 * value) / 64);
  const { columns, ...block } = randomBlock(lengths, ROWS, rank);
  const theta = randomFactors(ROWS, rank, rank + 1);
  const biases = inSteps(uniforms(ROWS, 3, -0.5));
  // No rating is its mean and its column's bias: the solution of a row of only that rating would be 0.
  const values = inSteps(columns.values as Float32Array).map((value, k) =>
    value === MEAN + biases[Number(columns.indices[k])] ? value + 1 / 64 : value,
  );
  return {
    block: { ...block, columns: { ...columns, values } } as Partition,
    fixed: half ? roundedToHalf(theta) : theta,
    ...(kind === 'biases' && { fixedBias: vectorOf('bias', biases) }),
  };
}

/** What depends on the kind in the parameters of tasks that read ratings. */
function ratingParams(kind: Kind) {
  return { ...(kind === 'biases' && { mean: MEAN }), ...(kind === 'implicit' && { implicit: weights }) };
}

/** A Gram matrix, with rows of zeros up to the stride, and the rows' shifts. */
function gramAndShifts(rank: number, rows: number) {
  const along = randomFactors(1, rank, 8).columns.values;
  return {
    gram: factorsOf(Math.ceil(rank / 16) * 16, rank, (i, k) =>
      i < rank ? 9 * Number(along[i]) * Number(along[k]) + (i === k ? 0.7 : 0) : 0,
    ),
    shifts: vectorOf(
      'row-shifts',
      Float32Array.from({ length: rows }, (_, row) => 0.5 + row),
    ),
  };
}

/** The regularization of rows: shifts and a Gram matrix, or parameters that all have an effect. */
function regularization(kind: Kind) {
  if (kind === 'implicit') return { lambda: 0 };
  return kind === 'biases' ? { lambda: 0.05, exponent: 0.5, offset: 2, damping: 3 } : { lambda: 0.05 };
}

function equationSums(shape: RowsCase, half: boolean): TaskCase {
  const { rank, kind } = shape;
  return sampleOf('normal-equations', `rank ${rank}, ${kind}${half ? ', columns in float16' : ''}`, () => ({
    inputs: ratedRows(shape, RATED, half),
    outputs: { equations: factorsOf(RATED_ROWS - 2, equationColumns(rank, kind === 'biases'), () => 1) },
    halves: half ? ['fixed'] : [],
    solver: 'cg',
    params: rowStarts.map((rows) => ({ ...rows, rank, ...ratingParams(kind) })),
    difference: rowsDifference,
    limit: 1e-5,
  }));
}

/** The equations of rows over their ratings (equation-tasks.ts). */
function equationsOf(shape: RowsCase, lengths: readonly number[]): Partition {
  const { rank, kind } = shape;
  const { block, fixed, fixedBias } = ratedRows(shape, lengths);
  const theta = fixed.columns.values;
  const { b, n, s, t } = equationLayout(rank);
  const columns = equationColumns(rank, kind === 'biases');
  const rows = lengths.map((_, row) => {
    const own = new Float64Array(columns);
    const first = Number(block.columns.offsets[row]);
    columnsOf(block, row).forEach((column, at) => {
      const rating = Number(block.columns.values[first + at]);
      const centred = fixedBias ? rating - MEAN - Number(fixedBias.columns.values[column]) : rating;
      const implicit = kind === 'implicit';
      const weight = implicit ? weights.alpha * rating : 1;
      const target = implicit ? weights.base + weight : centred;
      for (let i = 0; i < rank; i++) {
        const left = Number(theta[column * rank + i]);
        own[b + i] += target * left;
        if (fixedBias) own[s + i] += left;
        for (let k = 0; k <= i; k++)
          own[(i * (i + 1)) / 2 + k] += weight * left * Number(theta[column * rank + k]);
      }
      own[n]++;
      if (fixedBias) own[t] += centred;
    });
    return own;
  });
  return factorsOf(lengths.length, columns, (row, k) => rows[row][k]);
}

const SHORT_ROWS = [1, 0, 64, 65, 300, 33, 32, 2, 16, 7, 0, 130];

function solvedEquations(
  shape: RowsCase,
  solver: NonNullable<TaskSample['solver']>,
  drawn = false,
): TaskCase {
  const { rank, kind } = shape;
  const rows = SHORT_ROWS.length + 2;
  const limits = { cg: kind === 'biases' ? 2e-3 : 1e-4, cholesky: 1e-4, nonnegative: 2e-3 };
  const choice = solver === 'cg' ? { cgBelow: ALL_ROWS } : { cgBelow: 0, exact: solver };
  return sampleOf('solve-equations', `rank ${rank}, ${solver}, ${kind}${drawn ? ', priors' : ''}`, () => ({
    inputs: {
      equations: equationsOf(shape, SHORT_ROWS),
      previous: randomFactors(rows, rank, 7),
      ...(kind === 'implicit' && gramAndShifts(rank, rows)),
      ...(drawn && { prior: randomFactors(rows, rank, 11) }),
      ...(drawn && kind === 'biases' && { priorBias: vectorOf('bias', uniforms(rows, 12, -0.5)) }),
    },
    outputs: {
      factors: factorsOf(rows, rank, () => 9),
      ...(kind === 'biases' && { bias: vectorOf('bias', new Float32Array(rows).fill(9)) }),
    },
    solver,
    params: [0, 2].map((rowStart) => ({
      from: rowStart + 1,
      to: rowStart + SHORT_ROWS.length,
      rowStart,
      rank,
      cgSteps: 6,
      ...(drawn && { measured: true }),
      ...choice,
      ...regularization(kind),
    })),
    difference: rowsDifference,
    limit: limits[solver],
  }));
}

/** Row lengths at large ranks: the longest rows are cut into parts. */
const WIDE_ROWS = [1, 0, 9, 64, 2500, 33, 2, 700, 8, 0, 1];

/** Rows solved by CG without A, at ranks at which A is never formed. `bad`: the last rating of this row is NaN. */
function wideRows(shape: RowsCase, half: boolean, bad?: number): TaskCase {
  const { rank, kind } = shape;
  const rows = WIDE_ROWS.length;
  const implicit = kind === 'implicit';
  const what = `rank ${rank}, ${kind}${half ? ', columns in float16' : ''}${bad === undefined ? '' : ', a bad row'}`;
  const params = { from: 0, to: rows, rank, cgBelow: ALL_ROWS, cgSteps: implicit ? 3 : 5, measured: true };
  return sampleOf<'update' | 'update-implicit'>(implicit ? 'update-implicit' : 'update', what, () => {
    const rated = ratedRows(shape, WIDE_ROWS, half);
    const { offsets, values } = rated.block.columns;
    if (bad !== undefined) values[Number(offsets[bad + 1]) - 1] = NaN;
    const previous = randomFactors(rows, rank, 7);
    return {
      inputs: { ...rated, previous, ...(implicit && gramAndShifts(rank, rows)) },
      outputs: {
        factors: factorsOf(rows, rank, () => 9),
        ...(kind === 'biases' && { bias: vectorOf('bias', new Float32Array(rows).fill(9)) }),
      },
      halves: half ? ['fixed'] : [],
      solver: 'cg',
      params: [{ ...params, ...(implicit ? weights : { ...ratingParams(kind), ...regularization(kind) }) }],
      difference: rowsDifference,
      limit: { explicit: 1e-4, biases: 2e-3, implicit: 1e-3 }[kind],
    };
  });
}

/** Rows that are drawn to priors, some of them without ratings, by all variants of a solver. */
function drawnRows(shape: RowsCase, solver: NonNullable<TaskSample['solver']>, half: boolean): TaskCase {
  const rows = WIDE_ROWS.length;
  const { make, kernel, variant } = wideRows(shape, half);
  const choice = {
    ...(solver === 'cg' ? {} : { cgBelow: 0, exact: solver }),
    measured: solver !== 'nonnegative',
  };
  // A / n of implicit data in float16 loses digits of the Gram matrix.
  const limits = { cg: half && shape.kind === 'implicit' ? 2 : 1, cholesky: half ? 5 : 1, nonnegative: 20 };
  return sampleOf<'update'>(kernel as 'update', `${variant}, ${solver}, priors`, () => {
    const { inputs, params, limit, ...sample } = make() as TaskSample<ParamsOf<'update'>>;
    return {
      ...sample,
      inputs: {
        ...inputs,
        prior: randomFactors(rows, shape.rank, 11),
        ...(shape.kind === 'biases' && { priorBias: vectorOf('bias', uniforms(rows, 12, -0.5)) }),
      },
      solver,
      params: params.map((own) => ({ ...own, ...choice })),
      limit: limits[solver] * limit,
    };
  });
}

/** A sum of products of the rows' ratings, or of their equations, with vectors. */
function vectorSums(shape: RowsCase, first: boolean): TaskCase[] {
  const { rank, kind } = shape;
  const biases = kind === 'biases';
  const rowsOf = (rows: number) => ({
    inputs: { [first ? 'previous' : 'direction']: randomFactors(rows, rank, 5) },
    outputs: {
      [first ? 'gradients' : 'products']: factorsOf(
        rows,
        first ? gradientColumns(rank, biases) : rank,
        () => 0,
      ),
    },
  });
  const [rated, formed] = [rowsOf(RATED_ROWS), rowsOf(SHORT_ROWS.length)];
  const variant = `rank ${rank}, ${kind}`;
  const common = { difference: vectorsDifference(shape), limit: VECTOR_LIMIT };
  const { mean, implicit } = ratingParams(kind) as { mean?: number; implicit?: typeof weights };
  return [
    sampleOf(first ? 'add-residuals' : 'add-products', variant, () => {
      const { fixedBias, ...block } = ratedRows(shape);
      return {
        ...common,
        inputs: { ...block, ...(first && fixedBias && { fixedBias }), ...rated.inputs },
        outputs: rated.outputs,
        params: [
          { from: 1, to: RATED_ROWS, rank, ...(first && mean && { mean }), ...(implicit && { implicit }) },
        ],
      };
    }),
    sampleOf(first ? 'equation-residuals' : 'equation-products', variant, () => ({
      ...common,
      inputs: { equations: equationsOf(shape, SHORT_ROWS), ...formed.inputs },
      outputs: formed.outputs,
      params: [{ from: 1, to: SHORT_ROWS.length, rank }],
    })),
  ];
}

/** Begin, step and end of conjugate gradients, on random gradients; some rows have no ratings or have ended. */
function vectorSteps({ rank, kind }: RowsCase): TaskCase[] {
  const rows = 70;
  const { n, rho, enough, s } = gradientLayout(rank);
  const residuals = randomFactors(rows, rank, 2).columns.values;
  const scalars = uniforms(rows * (s + rank), 3, -0.5);
  const counts = Array.from({ length: rows }, (_, row) => (row % 9 === 4 ? 0 : (7 * row) % 50));
  const gradients = (begun: boolean) =>
    factorsOf(rows, gradientColumns(rank, kind === 'biases'), (row, k) => {
      if (counts[row] === 0) return 0;
      const own = residuals.subarray(row * rank, (row + 1) * rank) as Float32Array;
      if (k < rank) return own[k];
      if (k === n) return counts[row];
      if (k === rho) return begun && !ended(row) ? own.reduce((sum, value) => sum + value * value, 0) : 0;
      if (k === enough) return begun ? 1e-9 : 0;
      const used = k < s ? k > n && k < rho : k < s + rank;
      return used ? 0.2 * scalars[row * (s + rank) + k - n] : 0;
    });
  // Rows whose steps have ended have the direction 0.
  const ended = (row: number) => counts[row] === 0 || row % 5 === 3;
  const direction = factorsOf(rows, rank, (row, k) => (ended(row) ? 0 : Number(residuals[row * rank + k])));
  // A positive diagonal matrix times the direction.
  const scaled = factorsOf(
    rows,
    rank,
    (row, k) => (2 + (k % 3)) * Number(direction.columns.values[row * rank + k]),
  );
  const given = () => (kind === 'implicit' ? gramAndShifts(rank, rows) : {});
  const moved = { factors: randomFactors(rows, rank, 4), direction };
  const variant = `rank ${rank}, ${kind}`;
  const common = {
    params: [{ from: 2, to: rows, rank, ...regularization(kind) }],
    difference: vectorsDifference({ rank, kind }),
    limit: VECTOR_LIMIT,
  };
  return [
    sampleOf('begin-gradients', variant, () => ({
      ...common,
      inputs: { previous: randomFactors(rows, rank, 6), ...given() },
      outputs: { ...moved, gradients: gradients(false) },
    })),
    sampleOf('step-gradients', variant, () => ({
      ...common,
      inputs: { products: scaled, ...given() },
      outputs: { ...moved, gradients: gradients(true) },
    })),
    sampleOf('end-gradients', variant, () => ({
      ...common,
      inputs: { gradients: gradients(true), direction },
      outputs: {
        factors: moved.factors,
        ...(kind === 'biases' && { bias: vectorOf('bias', new Float32Array(rows)) }),
      },
    })),
  ];
}

/** Like rowsDifference; of gradients r, the numbers that are used, and s are compared apart. */
function vectorsDifference({ rank, kind }: RowsCase): TaskSample['difference'] {
  const { n, t, enough, s } = gradientLayout(rank);
  const parts: readonly ((column: number) => boolean)[] = [
    (k) => k < n,
    (k) => k >= n && k <= enough && (k !== t || kind === 'biases'),
    (k) => k >= s,
  ];
  const split = ({ values, outputs: { gradients, ...outputs } }: TaskResult): TaskResult => {
    const numbers = Float32Array.from(gradients?.columns.values ?? [], Number);
    const width = numbers.length / (gradients?.rows ?? 1);
    const cut = parts.map((has, at) => [
      `gradients ${at}`,
      { ...gradients, columns: { values: numbers.filter((_, k) => has(k % width)) } },
    ]);
    return { values, outputs: { ...outputs, ...(gradients && Object.fromEntries(cut)) } };
  };
  return (found, expected) => rowsDifference(split(found), split(expected));
}

/** Rows that are added, copied, and placed among others. */
function movedRows(columns: number): TaskCase[] {
  const [few, many] = [randomFactors(33, columns, 1), randomFactors(700, columns, 2)];
  const variant = `${columns} columns`;
  const common = { difference: rowsDifference, limit: 0 };
  return [
    sampleOf('add-rows', variant, () => ({
      ...common,
      inputs: { addend: randomFactors(700, columns, 3) },
      outputs: { sum: many },
      params: rangesOf([0, 700], [13, 14], [5, 699]),
    })),
    sampleOf('copy-rows', variant, () => ({
      ...common,
      inputs: { source: many },
      outputs: { target: randomFactors(700, columns, 3) },
      params: rangesOf([0, 700], [13, 14], [5, 699]),
    })),
    sampleOf('place-rows', variant, () => ({
      ...common,
      inputs: { rows: few },
      outputs: { whole: many },
      params: [0, 5, 667].map((rowFrom) => ({ rowFrom })),
    })),
  ];
}

/** G of factors with more and fewer rows than are summed in one part. */
function gramOf(rank: number): TaskCase {
  const rows = 700;
  return sampleOf('gram', `rank ${rank}`, () => ({
    inputs: { factors: randomFactors(rows, rank, 3) },
    outputs: { gram: factorsOf(Math.ceil(rank / 16) * 16, rank, () => 0) },
    params: [{ from: 0, to: rank, rank, weight: 0.7 }],
    difference: rowsDifference,
    limit: 10 * PRODUCT_LIMIT,
  }));
}

function squaredErrors(rank: number, biased: boolean, half: boolean): TaskCase {
  const theta = randomFactors(ROWS, rank, 2);
  return sampleOf(
    'squared-error',
    `rank ${rank}${biased ? ', biases' : ''}${half ? ', columns in float16' : ''}`,
    () => ({
      inputs: {
        block: randomBlock(LENGTHS, ROWS, rank),
        rowFactors: randomFactors(LENGTHS.length, rank, 1),
        columnFactors: half ? roundedToHalf(theta) : theta,
        ...(biased && {
          rowBias: vectorOf('bias', uniforms(LENGTHS.length, 3, -0.5)),
          columnBias: vectorOf('bias', uniforms(ROWS, 4, -0.5)),
        }),
      },
      halves: half ? ['columnFactors'] : [],
      // Ranges that start and end at every offset within a group of four ratings, and one without ratings.
      params: rangesOf([0, 26], [0, 1], [3, 5], [1, 2], [2, 9], [8, 18], [22, 24], [23, 24], [24, 26]).map(
        (rows) => ({ ...rows, rank, ...(biased && { mean: 2.75 }) }),
      ),
      difference: relativeDifference,
      limit: PRODUCT_LIMIT,
    }),
  );
}

function weightedNorms(rank: number): TaskCase {
  return sampleOf('weighted-norm', `rank ${rank}`, () => ({
    inputs: { block: randomBlock(manyLengths, ROWS, rank), factors: randomFactors(ROWS, rank, 4) },
    params: ranges.flatMap((rows) => [
      ...[1, 0.5].map((exponent) => ({ ...rows, rank, exponent })),
      { ...rows, rank, plainWeights: [0.5, 3, 2] as const },
    ]),
    difference: relativeDifference,
    limit: PRODUCT_LIMIT,
  }));
}

function shiftedNorms(rank: number, drawn: boolean): TaskCase {
  const shifts = vectorOf(
    'row-shifts',
    Float32Array.from({ length: ROWS }, (_, row) => 0.1 * (row % 17)),
  );
  return sampleOf('weighted-norm', `rank ${rank}, shifts${drawn ? ', priors' : ''}`, () => ({
    inputs: {
      factors: randomFactors(ROWS, rank, 4),
      shifts,
      ...(drawn && { prior: randomFactors(ROWS, rank, 5) }),
    },
    params: ranges.map((rows) => ({ ...rows, rank })),
    difference: relativeDifference,
    limit: PRODUCT_LIMIT,
  }));
}

/** Norms and sums of biases. A GPU's workgroup adds up to 1,024 biases; the last one here has a single row. */
function biasSums(drawn: boolean): TaskCase {
  const rows = 2 * 1024 + 1;
  const lengths = Array.from({ length: rows }, (_, row) => row % 5);
  return sampleOf('weighted-norm', `biases${drawn ? ', priors' : ''}`, () => ({
    // All terms of a total have the same sign: a sum in which terms cancel has no meaningful relative error.
    inputs: {
      block: randomBlock(lengths, ROWS, 1),
      factors: randomFactors(rows, 2, 4),
      bias: vectorOf('bias', uniforms(rows, 5)),
      totals: vectorOf('row-totals', uniforms(rows, 6)),
      ...(drawn && { prior: randomFactors(rows, 2, 7), priorBias: vectorOf('bias', uniforms(rows, 8)) }),
    },
    params: rangesOf([0, rows], [0, 1024], [1, 1025], [rows - 1, rows], [7, 7]).map((range) => ({
      ...range,
      rank: 2,
    })),
    difference: relativeDifference,
    limit: PRODUCT_LIMIT,
  }));
}

function implicitErrors(rank: number): TaskCase {
  const block = randomBlock(manyLengths, 200, rank);
  const { values } = block.columns;
  for (let k = 0; k < values.length; k += 4) values[k] = -values[k];
  return sampleOf('implicit-error', `rank ${rank}`, () => ({
    inputs: {
      block,
      rowFactors: randomFactors(ROWS, rank, 1),
      columnFactors: randomFactors(200, rank, 2),
    },
    params: ranges.map((rows) => ({ ...rows, rank, alpha: 2.5, base: 1 })),
    difference: relativeDifference,
    limit: 2 * PRODUCT_LIMIT,
  }));
}

function predictions(rank: number): TaskCase[] {
  return [0, 1, 3, 64, 257].map((count) => {
    const random = new CounterRandom(count);
    const draws = (side: number, below: number) =>
      Uint32Array.from({ length: count }, (_, k) => random.below(2 * k + side, below));
    return sampleOf('predict', `rank ${rank}, ${count} pairs`, () => ({
      inputs: {
        pairs: { layout: 'pairs', rows: count, columns: { rows: draws(0, 50), columns: draws(1, ROWS) } },
        rowFactors: randomFactors(50, rank, 5),
        columnFactors: randomFactors(ROWS, rank, 6),
      },
      params: [{ rank }],
      difference: (found, expected) => largestDifference(...pairOf('predictions', found, expected)),
      limit: PRODUCT_LIMIT,
    }));
  });
}

/** Factors of SGD after an epoch's regularization. */
function shrunkRows(biases: boolean, adaptive: boolean): TaskCase {
  const rows = 301;
  const sums = factorsOf(rows, 1, (row) => (7 * row) % 5);
  const { values } = randomFactors(rows, 13, 5).columns;
  return sampleOf('shrink-rows', `${biases ? 'biases' : 'no biases'}${adaptive ? ', AdaGrad' : ''}`, () => ({
    inputs: { sums: { ...sums, packed: true } },
    // With biases the first column is the constant 1.
    outputs: {
      factors: factorsOf(rows, 13, (row, k) => (biases && k === 0 ? 1 : Number(values[row * 13 + k]))),
    },
    params: [
      {
        from: 0,
        to: rows,
        rate: 0.08,
        offset: 10,
        damping: 3,
        adaptive,
        ...(biases && { own: 1, one: 0 }),
      },
    ],
    difference: (found, expected) => {
      const [own, other] = pairOf('factors', found, expected);
      return largestDifference(own, other) / Math.max(...other.map(Math.abs));
    },
    limit: 1e-6,
  }));
}

interface TopNCase {
  readonly variant: string;
  readonly inputs: { readonly rowFactors: Partition; readonly columnFactors: Partition } & Partitions;
  readonly n: number;
  readonly from?: number;
  readonly to?: number;
  /** See `top-n` of KernelTasks. */
  readonly rowStart?: number;
  /** True: scores are exact, so lists must be equal, ties included. */
  readonly exact?: boolean;
}

export function topNSample({ variant, inputs, n, exact = false, ...rows }: TopNCase): TaskCase {
  const { rowFactors } = inputs;
  const { from = 0, to = rowFactors.rows, rowStart = 0 } = rows;
  const rank = rowFactors.columns.values.length / rowFactors.rows;
  return sampleOf('top-n', variant, () => ({
    inputs,
    params: [{ from, to, rank, n, rowStart }],
    difference: topNDifference,
    limit: exact ? 0 : PRODUCT_LIMIT,
  }));
}

/**
 * The largest difference of two scores at the same place of a list, or of the same item. Infinity for a fault
 * that rounding cannot explain: a wrong length or order, or an item that is excluded, repeated or unknown.
 */
function topNDifference(
  found: TaskResult,
  expected: TaskResult,
  { from, to, n, rowStart = 0 }: ParamsOf<'top-n'>,
  { columnFactors, exclude }: Partitions,
): number {
  const own = found.outputs.top.columns;
  const other = expected.outputs.top.columns;
  if (own.items.length !== (to - from) * n) return Infinity;
  let difference = 0;
  for (let row = 0; row < to - from; row++) {
    const excluded = exclude ? columnsOf(exclude, rowStart + from + row) : [];
    const scores = new Map<number, number>();
    const end = (row + 1) * n;
    for (let at = row * n; at < end; at++) scores.set(Number(other.items[at]), Number(other.scores[at]));
    const seen = new Set<number>(excluded);
    for (let at = row * n; at < end; at++) {
      const [item, score] = [Number(own.items[at]), Number(own.scores[at])];
      const expectedScore = Number(other.scores[at]);
      if (Number.isNaN(expectedScore)) {
        if (item !== other.items[at] || !Number.isNaN(score)) return Infinity;
        continue;
      }
      const before = Number(own.scores[at - 1]);
      const inOrder =
        at === row * n || score < before || (score === before && item > Number(own.items[at - 1]));
      if (!inOrder || seen.has(item) || item >= columnFactors.rows) return Infinity;
      seen.add(item);
      const last = Number(other.scores[end - 1]);
      difference = worse(difference, Math.abs(score - expectedScore));
      difference = worse(difference, Math.abs(score - (scores.get(item) ?? last)));
    }
  }
  return difference;
}

/**
 * The columns sorted by descending norm, with their original numbers, and the bounds that top-n needs: the
 * largest norm of each eight columns, with a margin for rounding, as in operators/serving/items-by-norm.ts.
 */
export function byNorm(matrix: Partition): Record<'columnFactors' | 'bounds' | 'order', Partition> {
  const values = matrix.columns.values as Float32Array;
  const rank = values.length / matrix.rows;
  const sorted = Array.from({ length: matrix.rows }, (_, column) => {
    const row = values.subarray(column * rank, (column + 1) * rank);
    return { row, column, norm: Math.hypot(...row) };
  }).sort((left, right) => right.norm - left.norm);
  const bounds = Float32Array.from(
    { length: Math.ceil(matrix.rows / 8) },
    (_, eight) => sorted[8 * eight].norm * (1 + 1e-4),
  );
  return {
    columnFactors: factorsOf(matrix.rows, rank, (row, k) => sorted[row].row[k]),
    bounds: vectorOf('column-bounds', bounds),
    order: vectorOf(
      'column-order',
      Uint32Array.from(sorted, ({ column }) => column),
    ),
  };
}

/** Rows that exclude no, one, a few, most and all columns. */
function exclusionOf(rows: number, columns: number): Partition {
  const lengths = [0, 1, 2, 40, columns - 1, columns];
  return randomBlock(
    Array.from({ length: rows }, (_, row) => lengths[row % 6]),
    columns,
    9,
  );
}

function topNSamples(): TaskCase[] {
  const rank = 10;
  const rowFactors = randomFactors(140, rank, 3);
  const columnFactors = randomFactors(300, rank, 4);
  const exclude = exclusionOf(140, 300);
  const elements = columnFactors.columns.values;
  const { order: _, ...falling } = byNorm(
    factorsOf(300, rank, (row, k) => Number(elements[row * rank + k]) / (1 + row / 20)),
  );
  const both = { rowFactors, columnFactors };
  const bounded = { rowFactors, ...falling };
  const whole = { rowFactors: wholeFactors(130, 4, 5, 1), columnFactors: wholeFactors(200, 4, 6, 1) };
  const sorted = byNorm(whole.columnFactors);
  const { order: _order, ...sortedOnly } = sorted;
  const wholeExclude = exclusionOf(130, 200);
  const odd = {
    rowFactors: factorsOf(6, 4, (row, k) => [0, NaN, Infinity, k + 1, -1, k === 2 ? NaN : 1][row]),
    columnFactors: factorsOf(70, 4, (row, k) => (row % 5 === 3 && k === 1 ? NaN : (row % 7) - 3)),
  };
  const cases: TopNCase[] = [
    ...RANKS.map((own) => ({
      variant: `rank ${own}, n 10`,
      inputs: { rowFactors: randomFactors(70, own, 1), columnFactors: randomFactors(150, own, 2) },
      n: 10,
    })),
    ...[1, 10, 100, 1000].flatMap((n): TopNCase[] => [
      { variant: `n ${n}`, inputs: both, n },
      { variant: `n ${n}, exclusions`, inputs: { ...both, exclude }, n },
      { variant: `n ${n}, bounds`, inputs: bounded, n },
      { variant: `n ${n}, exclusions, bounds`, inputs: { ...bounded, exclude }, n },
    ]),
    ...[
      { variant: 'ties', inputs: whole, n: 20 },
      { variant: 'ties, n 1', inputs: whole, n: 1 },
      { variant: 'ties, exclusions', inputs: { ...whole, exclude: wholeExclude }, n: 7 },
      { variant: 'ties, bounds', inputs: { ...whole, ...sortedOnly }, n: 20 },
      { variant: 'ties, bounds, order', inputs: { ...whole, ...sorted, exclude: wholeExclude }, n: 20 },
      {
        variant: 'equal scores, order',
        inputs: { ...sorted, rowFactors: factorsOf(130, 4, () => 0) },
        n: 20,
      },
      // A zero row, and rows and columns with values that are not finite.
      { variant: 'not finite', inputs: odd, n: 10, from: 0, to: 2 },
      { variant: 'not finite columns', inputs: odd, n: 100, from: 3, to: 6 },
    ].map((one) => ({ ...one, exact: true })),
    { variant: 'some rows', inputs: { ...both, exclude }, n: 10, from: 5, to: 137 },
    {
      variant: 'the last rows of the exclusions',
      inputs: { rowFactors: randomFactors(40, rank, 7), columnFactors, exclude },
      n: 10,
      rowStart: 100,
    },
    { variant: 'no rows', inputs: both, n: 10, from: 5, to: 5 },
    ...[
      { count: 1, n: 2 },
      { count: 64, n: 3 },
      { count: 65, n: 3 },
    ].map(({ count, n }) => ({
      variant: `${count} columns, n ${n}`,
      inputs: { rowFactors, columnFactors: randomFactors(count, rank, 8) },
      n,
    })),
  ];
  return cases.map(topNSample);
}

/**
 * Samples of the ranks of listed columns. Scores are exact and often equal. Every third row lists no column,
 * the others about `share` of all columns; a row excludes the same number of columns, each of them twice.
 */
function rankingSamples(): TaskCase[] {
  const whole = (rows: number, columns: number, rank = 4, seed = 3): RankedFactors => ({
    rowFactors: wholeFactors(rows, rank, seed, 2),
    columnFactors: wholeFactors(columns, rank, seed + 1, 2),
  });
  const few = whole(5, 65, 4, 5);
  return [
    ...RANKS.map((rank) => rankingSample(`rank ${rank}`, whole(20, 150, rank, 1), 0.1)),
    rankingSample('several groups of rows', whole(400, 200), 0.05),
    rankingSample('more listed columns than a group counts itself', whole(130, 200), 0.4),
    rankingSample('no more places than 5', whole(300, 700), 0.02, { depth: 5 }),
    rankingSample(
      'no more places than 3 of more listed columns than a group counts itself',
      whole(130, 700),
      0.1,
      { depth: 3 },
    ),
    rankingSample('without exclusions, some rows', whole(40, 64, 4, 5), 0.3, { from: 7, excluding: false }),
    rankingSample('one column', whole(5, 1, 4, 5), 1, { excluding: false }),
    rankingSample('nothing listed', few, 0),
    rankingSample('equal scores', { ...few, rowFactors: factorsOf(5, 4, () => 0) }, 0.5),
    rankingSample(
      'not finite columns',
      {
        rowFactors: factorsOf(6, 4, () => 1),
        columnFactors: factorsOf(70, 4, (row, k) => (row % 5 === 3 && k === 1 ? NaN : (row % 7) - 3)),
      },
      0.5,
    ),
  ];
}

interface RankedFactors {
  readonly rowFactors: Partition;
  readonly columnFactors: Partition;
}

function rankingSample(
  variant: string,
  { rowFactors, columnFactors }: RankedFactors,
  share: number,
  {
    from = 0,
    excluding = true,
    depth,
  }: { readonly from?: number; readonly excluding?: boolean; readonly depth?: number } = {},
): TaskCase {
  const [rows, columns] = [rowFactors.rows, columnFactors.rows];
  const random = new CounterRandom(7);
  const drawn = (times: number, within: (draw: number) => boolean) =>
    blockOf(
      Array.from({ length: rows }, (_row, row) =>
        Array.from({ length: row % 3 === 1 ? 0 : columns }, (_column, column) => column)
          .filter((column) => within(random.uniform(row * columns + column)))
          .flatMap((column) => Array.from<number>({ length: times }).fill(column)),
      ),
    );
  const listed = drawn(1, (draw) => draw < share);
  const exclude = drawn(2, (draw) => draw > 1 - share);
  const rank = rowFactors.columns.values.length / rows;
  return sampleOf('rank-listed', variant, () => ({
    inputs: { rowFactors, columnFactors, listed, ...(excluding && { exclude }) },
    params: [{ from, to: rows, rank, ...(depth !== undefined && { depth }) }],
    difference: placesDifference,
    limit: 0,
  }));
}

/** The number of wrong places. A rank from `depth` on may be any number from there on, with any ties. */
function placesDifference(
  found: TaskResult,
  expected: TaskResult,
  { depth = Infinity }: ParamsOf<'rank-listed'>,
): number {
  const [own, other] = pairOf('places', found, expected);
  if (own.length !== other.length) return Infinity;
  let wrong = 0;
  for (let k = 0; k < other.length; k += 2) {
    const exact = other[k] < depth;
    if (exact ? own[k] !== other[k] || own[k + 1] !== other[k + 1] : own[k] < depth) wrong++;
  }
  return wrong;
}

/** The larger difference; NaN counts as the largest. */
export function worse(left: number, right: number): number {
  return left >= right || Number.isNaN(left) ? left : right;
}

/** The largest difference of two values, relative to the expected one. */
function relativeDifference(found: TaskResult, expected: TaskResult): number {
  return Object.entries(expected.values)
    .map(([name, value]) => Math.abs(found.values[name] - value) / (Math.abs(value) || 1))
    .reduce(worse, 0);
}

/**
 * The largest difference of two numbers of a row of any output, relative to the row's largest number; a vector is
 * one row. Also that of the rows' objectives, if both devices return it. Infinity if another row is reported as bad.
 */
function rowsDifference(found: TaskResult, expected: TaskResult): number {
  const { badRow, objective } = expected.values;
  if (found.values.badRow !== badRow) return Infinity;
  if (badRow >= 0) return 0;
  let difference = 0;
  if (found.values.objective !== undefined)
    difference = Math.abs(found.values.objective - objective) / Math.abs(objective);
  for (const [name, { layout, rows, columns }] of Object.entries(expected.outputs)) {
    const [own, other] = [found.outputs[name].columns.values, columns.values];
    if (own.length !== other.length) return Infinity;
    const width = layout === 'factors' ? other.length / rows : other.length;
    for (let start = 0; start < other.length; start += width) {
      let [apart, largest] = [0, 0];
      for (let at = start; at < start + width; at++) {
        apart = worse(Math.abs(Number(own[at]) - Number(other[at])), apart);
        largest = Math.max(largest, Math.abs(Number(other[at])));
      }
      difference = worse(apart / (largest || 1), difference);
    }
  }
  return difference;
}

function pairOf(output: string, found: TaskResult, expected: TaskResult): [number[], number[]] {
  const [own, other] = [found, expected].map(({ outputs }) => outputs[output].columns.values);
  return [Array.from(own, Number), Array.from(other, Number)];
}

function largestDifference(found: readonly number[], expected: readonly number[]): number {
  if (found.length !== expected.length) return Infinity;
  return expected.map((value, k) => Math.abs(found[k] - value)).reduce(worse, 0);
}

function rangesOf(...ranges: readonly (readonly [from: number, to: number])[]) {
  return ranges.map(([from, to]) => ({ from, to }));
}
