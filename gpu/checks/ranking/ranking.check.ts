/**
 * Checks of the kernels that find the ranks of listed columns, against their float64 version on the CPU. The
 * task rank-listed runs all three. Factors are whole numbers, so that scores are exact and often equal.
 */
import { predictPair } from '../../../cpu/reference/errors.ts';
import { rankListed as twin } from '../../../cpu/reference/rank-listed.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { rankListed } from '../../ranking/rank-listed.task.ts';
import { CHECKED_RANKS, type KernelCheck } from '../support/check.ts';
import { type HostBlock, hostMatrix, type HostMatrix, runHandler } from '../support/task-scope.ts';

interface RankingCase {
  readonly variant: string;
  readonly rowFactors: HostMatrix;
  readonly columnFactors: HostMatrix;
  /**
   * The share of all columns that a row lists. A row excludes the same number of columns, each of them twice.
   * Every third row lists none.
   */
  readonly share: number;
  readonly excluding: boolean;
  readonly from?: number;
  /** See `rank-listed` of KernelTasks. */
  readonly depth?: number;
}

export function rankingCheck({
  variant,
  rowFactors,
  columnFactors,
  share,
  excluding,
  from = 0,
  depth = Infinity,
}: RankingCase): KernelCheck {
  return {
    name: 'count-before',
    variant,
    run: async (gpu) => {
      const [listed, exclude] = listedAndExcluded(rowFactors.rows, columnFactors.rows, share);
      const { partitions } = await runHandler(
        gpu,
        rankListed,
        { from, to: rowFactors.rows, rank: rowFactors.columns, ...(depth === Infinity ? {} : { depth }) },
        { matrices: { rowFactors, columnFactors }, blocks: excluding ? { listed, exclude } : { listed } },
      );
      const places = partitions!.places.columns.values as Uint32Array;
      const entries = listed.indices.length - listed.offsets[from];
      let wrong = places.length === 2 * entries ? 0 : Infinity;
      for (let row = from; row < rowFactors.rows; row++) {
        const scores = Float64Array.from({ length: columnFactors.rows }, (_, column) =>
          predictPair(rowFactors.values, row, columnFactors.values, column, rowFactors.stride),
        );
        const left = excluding
          ? exclude.indices.subarray(exclude.offsets[row], exclude.offsets[row + 1])
          : [];
        const expected = twin(
          scores,
          listed.indices.subarray(listed.offsets[row], listed.offsets[row + 1]),
          new Set(left),
        );
        // Two numbers for each listed column, rank and ties. Beyond the depth they may be any.
        const own = places.subarray(2 * (listed.offsets[row] - listed.offsets[from]));
        for (let k = 0; k < expected.length; k += 2) {
          const exact = expected[k] < depth;
          if (exact ? own[k] !== expected[k] || own[k + 1] !== expected[k + 1] : own[k] < depth) wrong++;
        }
      }
      return { error: wrong, limit: 0 };
    },
  };
}

function listedAndExcluded(rows: number, columns: number, share: number): [HostBlock, HostBlock] {
  const random = new CounterRandom(7);
  const block = (times: number, within: (draw: number) => boolean): HostBlock => {
    const lists = Array.from({ length: rows }, (_, row) =>
      row % 3 === 1
        ? []
        : Array.from({ length: columns }, (_, column) => column).filter((column) =>
            within(random.uniform(row * columns + column)),
          ),
    );
    const offsets = new Int32Array(rows + 1);
    lists.forEach((list, row) => (offsets[row + 1] = offsets[row] + times * list.length));
    const indices = Uint32Array.from(
      lists.flat().flatMap((column) => Array.from<number>({ length: times }).fill(column)),
    );
    return { offsets, indices, values: new Float32Array(0) };
  };
  return [block(1, (draw) => draw < share), block(2, (draw) => draw > 1 - share)];
}

/** Whole numbers from -2 to 2. */
function wholeMatrix(rows: number, columns: number, seed: number): HostMatrix {
  const random = new CounterRandom(seed);
  return hostMatrix(rows, columns, (row, k) => random.below(row * columns + k, 5) - 2);
}

const cases: readonly RankingCase[] = [
  ...CHECKED_RANKS.map((rank) => ({
    variant: `rank ${rank}`,
    rowFactors: wholeMatrix(20, rank, 1),
    columnFactors: wholeMatrix(150, rank, 2),
    share: 0.1,
    excluding: true,
  })),
  {
    variant: 'several groups of rows',
    rowFactors: wholeMatrix(400, 4, 3),
    columnFactors: wholeMatrix(200, 4, 4),
    share: 0.05,
    excluding: true,
  },
  {
    variant: 'more listed columns than a group counts itself',
    rowFactors: wholeMatrix(130, 4, 3),
    columnFactors: wholeMatrix(200, 4, 4),
    share: 0.4,
    excluding: true,
  },
  {
    variant: 'no more places than 5',
    rowFactors: wholeMatrix(300, 4, 3),
    columnFactors: wholeMatrix(700, 4, 4),
    share: 0.02,
    excluding: true,
    depth: 5,
  },
  {
    variant: 'no more places than 3 of more listed columns than a group counts itself',
    rowFactors: wholeMatrix(130, 4, 3),
    columnFactors: wholeMatrix(700, 4, 4),
    share: 0.1,
    excluding: true,
    depth: 3,
  },
  {
    variant: 'without exclusions, some rows',
    rowFactors: wholeMatrix(40, 4, 5),
    columnFactors: wholeMatrix(64, 4, 6),
    share: 0.3,
    excluding: false,
    from: 7,
  },
  {
    variant: 'one column',
    rowFactors: wholeMatrix(5, 4, 5),
    columnFactors: wholeMatrix(1, 4, 6),
    share: 1,
    excluding: false,
  },
  {
    variant: 'nothing listed',
    rowFactors: wholeMatrix(5, 4, 5),
    columnFactors: wholeMatrix(65, 4, 6),
    share: 0,
    excluding: true,
  },
  {
    variant: 'equal scores',
    rowFactors: hostMatrix(5, 4, () => 0),
    columnFactors: wholeMatrix(65, 4, 6),
    share: 0.5,
    excluding: true,
  },
  {
    variant: 'not finite columns',
    rowFactors: hostMatrix(6, 4, () => 1),
    columnFactors: hostMatrix(70, 4, (row, k) => (row % 5 === 3 && k === 1 ? NaN : (row % 7) - 3)),
    share: 0.5,
    excluding: true,
  },
];

export const rankingChecks: readonly KernelCheck[] = cases.map(rankingCheck);
