import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { GpuScopeOf, GpuTaskHandler } from '../handler.ts';
import { kernelOf } from '../webgpu/kernel.ts';

/**
 * Threads of a workgroup. The kernel needs one thread for each of its rows. All threads together compute the
 * scores of a tile of these rows and COLUMNS columns, each thread 8 x 8 of them.
 */
const THREADS = 128;
const COLUMNS = 64;
/** Most scores that wait to be inserted in a row's list; a tile with more of them takes several rounds. */
const QUEUE = 4;

export const TOP_N_ROWS = THREADS;

type TopNParams = {
  /**
   * True: columns that the row excludes (exclude_offsets and exclude_indices, as CSR) are left out. False:
   * these buffers are not read.
   */
  readonly excluding: boolean;
  /**
   * True: columns are sorted by descending norm, and `bounds` has the largest norm of each eight columns.
   * Since x.theta <= |x| |theta|, a workgroup stops when no later column can enter any of its lists. False:
   * `bounds` is not read.
   */
  readonly bounded: boolean;
  /**
   * True: column j of the sorted columns is item order[j]; lists contain items, and equal scores are ordered
   * by item. False: lists contain columns, and `order` is not read.
   */
  readonly ordered: boolean;
};

/**
 * The n columns with the highest scores x.theta for each of `rows` rows, from row from_row on; of equal
 * scores, the lower item is first. See the kernel's text for the layout of `lists`. The result depends
 * neither on the order of threads nor on how rows are cut into dispatches.
 */
export const topNKernel = kernelOf<TopNParams>()({
  name: 'top-n',
  reads: {
    row_factors: 'array<vec4f>',
    column_factors: 'array<vec4f>',
    exclude_offsets: 'array<i32>',
    exclude_indices: 'array<u32>',
    bounds: 'array<f32>',
    order: 'array<u32>',
  },
  writes: { lists: 'array<u32>' },
  uniforms: {
    from_row: 'u32',
    rows: 'u32',
    columns: 'u32',

    /**
     * `quads`: groups of four elements in a row of factors. `slabs`: groups of eight features that contain at
     * least one feature.
     */
    quads: 'u32',
    slabs: 'u32',
    n: 'u32',

    /** The index of row from_row in `lists`. */
    list_row: 'u32',
    scores_at: 'u32',

    /** The row of the exclusions that belongs to row 0 of the factors. */
    exclude_row: 'u32',
  },
  values: ({ excluding, bounded, ordered }) => ({
    THREADS,
    ROWS: THREADS,
    COLUMNS,
    QUEUE,
    EXCLUDING: excluding,
    BOUNDED: bounded,
    ORDERED: ordered,
  }),
  bytes: 32 * (THREADS + COLUMNS) + 8 * QUEUE * THREADS + 12 * THREADS + 8,
  samples: [
    { excluding: true, bounded: true, ordered: true },
    { excluding: false, bounded: false, ordered: false },
  ],
});

/** Most bytes of lists on the device at a time; fewer if the device's limits are lower. */
const LIST_BYTES = 1 << 30;
/** Lists up to this size stay allocated for the next task. */
const KEPT_BYTES = 64 << 20;
/**
 * Multiplications and additions of one submission: few enough that a slow GPU does not appear to hang, and
 * that a run can be cancelled between two submissions.
 */
const SUBMISSION_WORK = 5e11;

/** Rows of one submission, a multiple of `group`, if a row is searched among `columns` columns. */
export function rowsToSubmit(group: number, rank: number, columns: number): number {
  return group * Math.max(1, Math.floor(SUBMISSION_WORK / (group * 2 * Math.max(1, rank * columns))));
}

/**
 * See `top-n` of KernelTasks. Rows are divided into ranges whose lists fit in memory, and each range into
 * submissions of limited work.
 */
export const topN: GpuTaskHandler<'top-n'> = async (scope) => {
  const { from, to, n } = scope.params;
  const { gpu } = scope;
  const count = to - from;
  const { bufferBytes, bindingBytes } = gpu.info.limits;
  const partRows = Math.min(count, Math.floor(Math.min(LIST_BYTES, bufferBytes, bindingBytes) / (8 * n)));
  if (partRows === 0 && count > 0)
    throw new CapacityError(
      `a list of ${n} columns does not fit ${formatBytes(Math.min(LIST_BYTES, bufferBytes, bindingBytes))}`,
      { phase: 'top-n' },
    );
  const both = sharedArray(Uint8Array, 8 * count * n).buffer;
  const items = new Uint32Array(both, 0, count * n);
  const scores = new Float32Array(both, 4 * count * n, count * n);
  const bytes = 8 * partRows * n;
  const kept = bytes <= KEPT_BYTES;
  const lists = kept ? await gpu.scratch('top-n lists', bytes) : await gpu.buffer(bytes, 'top-n lists');
  try {
    for (let part = 0; part < count && !scope.cancelled(); part += partRows) {
      const rows = Math.min(partRows, count - part);
      const { done } = await fillLists(scope, lists, from + part, rows);
      // The lists are copied before their next use overwrites them.
      if (rows === count)
        await Promise.all([done, gpu.download(lists, new Uint8Array(both), 0, scope.submitted)]);
      else {
        await done;
        await gpu.download(lists, items.subarray(part * n, (part + rows) * n));
        await gpu.download(lists, scores.subarray(part * n, (part + rows) * n), 4 * rows * n);
      }
    }
  } finally {
    if (!kept) lists.destroy();
  }
  return {
    rows: count,
    bytesDown: 8 * count * n,
    partitions: { top: { layout: 'top-n', rows: count, columns: { items, scores } } },
  };
};

/**
 * Computes the lists of `rows` rows from row `from` on: the items of all rows, then the scores of all rows.
 * Returns when the last kernel is submitted; the lists are complete when `done` resolves.
 */
async function fillLists(
  scope: GpuScopeOf<'top-n'>,
  lists: GPUBuffer,
  from: number,
  rows: number,
): Promise<{ readonly done: Promise<unknown> }> {
  const { rank, n, rowStart = 0 } = scope.params;
  const { gpu } = scope;
  const [rowFactors, columnFactors] = [scope.matrix('rowFactors'), scope.matrix('columnFactors')];
  const exclude = scope.has('exclude') ? scope.block('exclude') : undefined;
  const bounds = scope.has('bounds') ? scope.vector('bounds') : undefined;
  const order = scope.has('order') ? scope.vector('order') : undefined;
  const kernel = await gpu.compile(topNKernel, {
    excluding: exclude !== undefined,
    bounded: bounds !== undefined,
    ordered: order !== undefined,
  });
  const bindings = {
    row_factors: rowFactors.values,
    column_factors: columnFactors.values,
    exclude_offsets: exclude?.rowPointers ?? rowFactors.values,
    exclude_indices: exclude?.indices ?? rowFactors.values,
    bounds: bounds ?? rowFactors.values,
    order: order ?? rowFactors.values,
    lists,
  };
  const uniforms = {
    columns: columnFactors.rows,
    quads: rowFactors.stride / 4,
    slabs: Math.ceil(rank / 8),
    n,
    scores_at: rows * n,
    exclude_row: rowStart,
  };
  const most = rowsToSubmit(TOP_N_ROWS, rank, columnFactors.rows);
  let done: Promise<unknown> = Promise.resolve();
  for (let first = 0; first < rows && !scope.cancelled(); first += most) {
    await done;
    const some = Math.min(most, rows - first);
    done = gpu
      .pass('top-n')
      .dispatch(
        kernel,
        bindings,
        { ...uniforms, from_row: from + first, rows: some, list_row: first },
        Math.ceil(some / TOP_N_ROWS),
      )
      .submit();
  }
  return { done };
}
