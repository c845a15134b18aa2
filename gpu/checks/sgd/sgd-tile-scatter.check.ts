/** Checks of the kernel that sorts ratings into tiles (groups of columns). */
import { sgdTileScatterKernel, tileLists, type TileLists } from '../../sgd/sgd-tiles.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelCheck } from '../support/check.ts';
import { halfValue } from '../support/float16.ts';
import type { Rating } from '../support/sgd-steps.ts';
import type { Partition } from '../../../engine/partition.ts';
import { columnsOf, randomBlock } from '../../../operators/tasks/sample-inputs.ts';
import { openTask } from '../support/run-kernel.ts';

const NO_COLUMN = 0xffff_ffff;
export const LEVEL = 1.5;
/** Limit of the rounding to float16, which may be towards zero. */
const ROUNDING = 2 ** -10;

interface Problem {
  readonly block: Partition;
  readonly columns: number;
  readonly tiles: number;
}

/** The ratings of each tile, in the order in which the tile has them. */
export async function dealtRatings(gpu: Gpu, lists: TileLists, count: number): Promise<Rating[][]> {
  const { tiles, places } = lists;
  const [starts, columns, words] = [
    new Uint32Array(tiles + 1),
    new Uint32Array(tiles * places),
    new Uint32Array(2 * count),
  ];
  await gpu.download(lists.starts, starts);
  await gpu.download(lists.columns, columns);
  await gpu.download(lists.ratings, words);
  return Array.from({ length: tiles }, (_, tile) =>
    Array.from({ length: starts[tile + 1] - starts[tile] }, (_unused, k): Rating => {
      const [row, packed] = words.subarray(2 * (starts[tile] + k));
      return {
        row,
        column: columns[tile * places + (packed & 0xffff)],
        value: LEVEL + halfValue(packed >>> 16),
      };
    }),
  );
}

/**
 * Checks that every rating is exactly once in the tile of its column, and that each tile's ratings are sorted
 * by row.
 */
async function checkDealing(
  gpu: Gpu,
  { block, columns, tiles }: Problem,
): Promise<{ error: number; limit: number }> {
  const opened = await openTask(gpu, {}, { block });
  try {
    const lists = await tileLists(gpu, opened.scope.block('block'), columns, tiles, LEVEL);
    const dealt = await dealtRatings(gpu, lists, block.columns.indices.length);
    const tileOf = new Map<number, number>();
    dealt.forEach((ratings, tile) =>
      ratings.forEach(({ column }) => tileOf.set(column, tileOf.get(column) ?? tile)),
    );
    const wrong = dealt.some((ratings, tile) =>
      ratings.some(
        ({ row, column }, k) =>
          column === NO_COLUMN || tileOf.get(column) !== tile || (k > 0 && row < ratings[k - 1].row),
      ),
    );
    const key = ({ row, column }: Rating) => row * columns + column;
    const { values } = block.columns;
    const given = Array.from({ length: block.rows }, (_, row) =>
      Array.from(columnsOf(block, row), (column) => ({ row, column })),
    )
      .flat()
      .map((one, k): Rating => ({ ...one, value: Number(values[k]) }));
    const sorted = (ratings: readonly Rating[]) =>
      ratings.toSorted((left, right) => key(left) - key(right) || left.value - right.value);
    const [found, expected] = [sorted(dealt.flat()), sorted(given)];
    if (
      wrong ||
      found.length !== expected.length ||
      found.some((rating, k) => key(rating) !== key(expected[k]))
    )
      return { error: Infinity, limit: ROUNDING };
    return {
      error: Math.max(
        ...found.map(
          ({ value }, k) =>
            Math.abs(value - expected[k].value) / Math.max(Math.abs(expected[k].value - LEVEL), 2 ** -14),
        ),
      ),
      limit: ROUNDING,
    };
  } finally {
    opened.close();
  }
}

export const sgdTileScatterChecks: readonly KernelCheck[] = [
  {
    what: 'rows of all lengths',
    problem: {
      block: randomBlock(
        [0, 1, 300, 0, 2, 90, ...Array.from({ length: 150 }, (_, row) => row % 11), 0],
        80,
        5,
      ),
      columns: 80,
      tiles: 7,
    },
  },
  { what: 'a tile a column', problem: { block: randomBlock([4, 9, 0, 3], 40, 6), columns: 40, tiles: 40 } },
  { what: 'one tile', problem: { block: randomBlock([4, 9, 0, 3], 40, 6), columns: 40, tiles: 1 } },
].map(({ what, problem }): KernelCheck => ({
  name: sgdTileScatterKernel.name,
  variant: what,
  run: (gpu) => checkDealing(gpu, problem),
}));
