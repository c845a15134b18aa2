import { sharedArray } from '../../engine/partition.ts';
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import { rowsToSubmit, topNKernel } from '../serving/top-n.task.ts';
import { type BuffersOf, type CompiledKernel, kernelOf } from '../webgpu/kernel.ts';

/** Threads of a workgroup; each scores one listed column. */
const LISTED_THREADS = 64;

/**
 * Computes the score x.theta of each listed column of the rows [from_row, to_row), as its threshold for
 * count-before, and sets its count and its ties to 0.
 */
export const listedScoresKernel = kernelOf()({
  name: 'listed-scores',
  reads: {
    row_factors: 'array<vec4f>',
    column_factors: 'array<vec4f>',
    offsets: 'array<i32>',
    listed: 'array<u32>',
  },
  writes: {
    thresholds: 'array<f32>',
    /** The number of higher scores, and of ties. */
    counts: 'array<vec2u>',
  },
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',

    /** The range of entries of `listed` that belong to these rows. */
    first: 'u32',
    last: 'u32',

    /** Groups of four elements in a row of factors. */
    quads: 'u32',
  },
  values: () => ({ THREADS: LISTED_THREADS }),
});

/**
 * Corrects the counts and ties of count-before for columns that a row excludes, such as a user's known items:
 * subtracts the excluded columns with a higher or the same score. For the rows [from_row, to_row), one
 * row per workgroup.
 */
export const discountExcludedKernel = kernelOf()({
  name: 'discount-excluded',
  reads: {
    row_factors: 'array<vec4f>',
    column_factors: 'array<vec4f>',
    offsets: 'array<i32>',
    exclude_offsets: 'array<i32>',
    excluded: 'array<u32>',
    thresholds: 'array<f32>',
  },
  writes: { counts: 'array<atomic<u32>>' },
  uniforms: {
    from_row: 'u32',
    to_row: 'u32',
    quads: 'u32',

    /** The first listed entry, which has its threshold at index 0, its count and ties at 0 and 1. */
    first: 'u32',
  },
  values: () => ({ THREADS: LISTED_THREADS }),
});

/**
 * Threads of a workgroup. The kernel needs one thread for each of its rows. All threads together compute the
 * scores of a tile of these rows and COLUMNS columns, each thread 8 x 8 of them.
 */
const THREADS = 128;
const COLUMNS = 64;
/**
 * Number of counters in workgroup memory. If a workgroup's rows list more columns, the others are counted in
 * the buffer `counts`.
 */
const COUNTS = 1792;

/** After this number of tiles the kernel checks which counts can still change. */
const REFRESH = 4;

const COUNT_BEFORE_ROWS = THREADS;

/**
 * Finds the ranks of items in users' orders of all items. Each row (user) lists some columns (items), in CSR
 * form: `offsets`. The kernel counts, for each listed column, the columns with a higher score and its ties,
 * for the `rows` rows with numbers rows[from_row] and following. The result does not depend on the order of
 * threads.
 */
export const countBeforeKernel = kernelOf()({
  name: 'count-before',
  reads: {
    row_factors: 'array<vec4f>',
    column_factors: 'array<vec4f>',
    rows: 'array<u32>',
    offsets: 'array<i32>',
    thresholds: 'array<f32>',
  },
  writes: { counts: 'array<atomic<u32>>' },
  uniforms: {
    /** `from_row`: index in the buffer `rows` of the first row. `rows`: the number of rows from there. */
    from_row: 'u32',
    rows: 'u32',
    columns: 'u32',

    /**
     * `quads`: groups of four elements in a row of factors. `slabs`: groups of eight features that contain
     * at least one feature.
     */
    quads: 'u32',
    slabs: 'u32',

    /** The first listed entry, which has its threshold at index 0, its count and ties at 0 and 1. */
    first: 'u32',
    depth: 'i32',
  },
  values: () => ({ THREADS, ROWS: THREADS, COLUMNS, COUNTS, REFRESH }),
  bytes: 32 * (THREADS + COLUMNS) + 12 * THREADS + 4 * COUNTS + 4,
});

/**
 * See `rank-listed` of KernelTasks: finds the ranks and ties of listed columns. Computes their scores,
 * subtracts the excluded columns with a higher or the same score (counts become negative), then adds all
 * columns.
 */
export const rankListed: GpuTaskHandler<'rank-listed'> = async (scope) => {
  const { gpu } = scope;
  const { from, to } = scope.params;
  const listed = scope.block('listed');
  const count = listed.offsets[to] - listed.offsets[from];
  const places = sharedArray(Uint32Array, 2 * count);
  const rows = rowsThatList(listed.offsets, from, to);
  if (rows.length > 0 && !scope.cancelled()) {
    const bindings = {
      row_factors: scope.matrix('rowFactors').values,
      column_factors: scope.matrix('columnFactors').values,
      offsets: listed.rowPointers,
      listed: listed.indices,
      rows: await gpu.scratch('rows that list', rows.byteLength),
      thresholds: await gpu.scratch('listed scores', 4 * count),
      counts: await gpu.scratch('listed counts', places.byteLength),
    };
    await gpu.upload(bindings.rows, rows);
    const counting = await gpu.compile(countBeforeKernel, {});
    const scored = await submitScores(scope, bindings);
    const { done } = await submitCounts(scope, counting, bindings, rows.length, scored.done);
    // The counts are copied before their next use overwrites them.
    await Promise.all([done, gpu.download(bindings.counts, places, 0, scope.submitted)]);
  }
  return {
    rows: to - from,
    bytesUp: rows.byteLength,
    bytesDown: places.byteLength,
    partitions: { places: { layout: 'places', rows: count, columns: { values: places } } },
  };
};

type Scope = GpuScopeOf<'rank-listed'>;

type Buffers = Readonly<Record<BuffersOf<typeof listedScoresKernel | typeof countBeforeKernel>, GPUBuffer>>;

/** Submitted work; `done` resolves at its end. */
interface Submitted {
  readonly done: Promise<unknown>;
}

async function submitScores(scope: Scope, bindings: Buffers): Promise<Submitted> {
  const { gpu } = scope;
  const { from, to } = scope.params;
  const { offsets } = scope.block('listed');
  const [first, last] = [offsets[from], offsets[to]];
  const quads = scope.matrix('rowFactors').stride / 4;
  const exclude = scope.has('exclude') ? scope.block('exclude') : undefined;
  const [scoring, discounting] = await Promise.all([
    gpu.compile(listedScoresKernel, {}),
    exclude && gpu.compile(discountExcludedKernel, {}),
  ]);
  const pass = gpu
    .pass('listed-scores')
    .dispatch(
      scoring,
      bindings,
      { from_row: from, to_row: to, first, last, quads },
      { threads: last - first },
    );
  // Excluded columns are subtracted first. After that, counts can only increase, so the next kernel may stop
  // counting for a column whose count has reached `depth`.
  if (exclude && discounting)
    pass.dispatch(
      discounting,
      { ...bindings, exclude_offsets: exclude.rowPointers, excluded: exclude.indices },
      { from_row: from, to_row: to, quads, first },
      to - from,
    );
  return { done: pass.submit() };
}

/**
 * Adds all columns with a higher or the same score as each listed column. A submission of rowsToSubmit rows
 * is sent when the previous one has ended.
 */
async function submitCounts(
  scope: Scope,
  counting: CompiledKernel<BuffersOf<typeof countBeforeKernel>>,
  bindings: Buffers,
  rows: number,
  scored: Promise<unknown>,
): Promise<Submitted> {
  const { from, rank, depth = 2 ** 31 - 1 } = scope.params;
  const { rows: columns } = scope.matrix('columnFactors');
  const uniforms = {
    columns,
    quads: scope.matrix('rowFactors').stride / 4,
    slabs: Math.ceil(rank / 8),
    first: scope.block('listed').offsets[from],
    depth,
  };
  const most = rowsToSubmit(COUNT_BEFORE_ROWS, rank, columns);
  let done = scored;
  for (let row = 0; row < rows && !scope.cancelled(); row += most) {
    if (row > 0) await done;
    const some = Math.min(most, rows - row);
    const counted = scope.gpu
      .pass('count-before')
      .dispatch(
        counting,
        bindings,
        { ...uniforms, from_row: row, rows: some },
        Math.ceil(some / COUNT_BEFORE_ROWS),
      )
      .submit();
    done = Promise.all([done, counted]);
  }
  return { done };
}

function rowsThatList(offsets: Int32Array, from: number, to: number): Uint32Array {
  const rows = sharedArray(Uint32Array, to - from);
  let count = 0;
  for (let row = from; row < to; row++) if (offsets[row + 1] > offsets[row]) rows[count++] = row;
  return rows.subarray(0, count);
}

/**
 * See `compile-search` of KernelTasks. Does not wait until the kernels are compiled, so that the next inputs
 * can be uploaded meanwhile.
 */
export const compileSearch: GpuTaskHandler<'compile-search'> = async ({
  gpu,
  params: { search, excluding },
}) => {
  const compiling =
    search === 'top-n'
      ? [gpu.compile(topNKernel, { excluding, bounded: true, ordered: true })]
      : [
          gpu.compile(listedScoresKernel, {}),
          gpu.compile(countBeforeKernel, {}),
          ...(excluding ? [gpu.compile(discountExcludedKernel, {})] : []),
        ];
  // The task that needs a kernel reports its errors.
  for (const kernel of compiling) kernel.catch(() => undefined);
  return { rows: 0 };
};
