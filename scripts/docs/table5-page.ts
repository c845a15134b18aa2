/** The problems of cuMF's Table 5, planned without data. */
import { CapacityError } from '../../engine/errors.ts';
import { formatBytes, formatMilliseconds } from '../../engine/format.ts';
import { HOST, SPILL } from '../../engine/plan/place.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import { gridOf, type Side, verticalParts } from '../../operators/als/plan/problem.ts';
import { assumedDevices, ratesOf, SPILL_BYTES_A_SECOND } from '../../operators/planner/device-rates.ts';

export interface Table5Set {
  readonly name: string;
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
  readonly rank: number;
  /** Seconds per iteration on four GK210, if the paper gives them. */
  readonly paper?: string;
}

export const table5Sets: readonly Table5Set[] = [
  { name: 'Netflix', users: 480_189, items: 17_770, ratings: 99_072_112, rank: 100 },
  { name: 'YahooMusic', users: 1_000_990, items: 624_961, ratings: 252_800_275, rank: 100 },
  { name: 'Hugewiki', users: 50_082_603, items: 39_780, ratings: 3_101_144_313, rank: 100 },
  { name: 'SparkALS', users: 660e6, items: 2.4e6, ratings: 3.5e9, rank: 10, paper: '24 s' },
  { name: 'Factorbird', users: 229e6, items: 195e6, ratings: 38.5e9, rank: 5, paper: '92 s' },
  { name: 'Facebook', users: 1e9, items: 48e6, ratings: 112e9, rank: 16, paper: '746 s' },
  { name: 'Facebook, f = 100', users: 1e9, items: 48e6, ratings: 112e9, rank: 100, paper: '3.8 h' },
];

export const table5Machines = [1, 4, 8].flatMap((count) =>
  [12, 80, 141].map((gigabytes) => ({ count, gigabytes })),
);

/** Marks of sides by the home of their factors. */
const homes = { device: '', host: ' (host)', spill: ' (files)' } as const;

/** Memory of the host. */
const HOST_BYTES = 512e9;

/** One line of the table. */
export function table5Line(
  { name, paper, rank, ...profile }: Table5Set,
  { count, gigabytes }: (typeof table5Machines)[number],
): string {
  const devices = assumedDevices(Array.from({ length: count }, () => gigabytes * 1e9));
  const cells = (list: readonly string[]) =>
    `| ${[name, `${count} x ${gigabytes} GB`, ...list, count === 4 && gigabytes === 12 ? (paper ?? '') : ''].join(' | ')} |`;
  try {
    const plan = planAls(
      profile,
      checkAlsParams({ rank, biases: false, regParam: 0.05 }),
      devices,
      undefined,
      { compares: true, ratings: ['device', 'host', 'spill'], hostBytes: HOST_BYTES },
    );
    const grid = gridOf(plan);
    const side = (one: Side) => `${verticalParts(grid, one)}, ${grid[one].q}${homes[grid[one].factors]}`;
    const waves = Math.max(...(['users', 'items'] as const).map((one) => Math.ceil(grid[one].q / count)));
    const largest = Math.max(...devices.compute.map(({ place }) => plan.memory[place] ?? 0));
    return cells([
      side('users'),
      side('items'),
      grid.users.ratings,
      String(waves),
      formatBytes(largest),
      formatBytes(plan.memory[HOST] ?? 0),
      formatBytes(plan.memory[SPILL] ?? 0),
      formatMilliseconds(1000 * (plan.estimate?.seconds ?? NaN)),
    ]);
  } catch (error) {
    if (!(error instanceof CapacityError)) throw error;
    return cells([
      '-',
      '-',
      '-',
      '-',
      /the least that a device needs is ((?:about )?[^,;(]*[^,;( ])/.exec(error.message)?.[1] ?? '-',
      '-',
      '-',
      'no grid fits',
    ]);
  }
}

export function table5Page(lines: readonly string[]): string {
  const rates = [12, 80, 141].map((gigabytes) => {
    const { name, source, link, perRating, perSquare, perRow, perRowSquare } = ratesOf(
      assumedDevices([gigabytes * 1e9]).compute[0],
      6,
    );
    return `- **${gigabytes} GB: ${name}.** ${source}. A rating of a half-iteration takes ${perRating.toExponential(2)} + ${perSquare.toExponential(2)} f² seconds, a row ${perRow.toExponential(2)} + ${perRowSquare.toExponential(2)} f²; ${(link / 1e9).toFixed(1)} GB/s to and from the host for each device, by the one thread that copies both ways.`;
  });
  return `<!-- Written by \`node scripts/write-table5.ts\`; changes made here by hand are lost. -->

# Table 5, planned without data

The problems of cuMF's Table 5 (Tan, Cao, Fong, HPDC 2016), planned for devices that are not there, with ${HOST_BYTES / 1e9} GB of host memory: \`factorflow plan --users 660000000
--items 2400000 --ratings 3500000000 --rank 10 --no-biases --devices 4x12GB --memory-budget 512GB\`. X and Θ stand for the half-iterations that solve them, each with p and q: p vertical parts of the fixed side, q
horizontal parts of the solved one; "(host)" and "(files)" mark factors whose home is host memory, or files. Ratings are at the devices, at the host, or in files (spill). Waves are the parts of a device that come one behind the other. Seconds
are estimates for an iteration of both halves, by these rates:

${rates.join('\n')}
- **Files.** ${SPILL_BYTES_A_SECOND / 1e9} GB/s for all devices together: where ratings or factors are in files, reading them is what takes the time.

The paper's machine has four GK210 in two K80 boards. A WebGPU buffer is bound up to 2 GiB. The equations of a part of rows are in one buffer, f (f + 1) / 2 + f + 1 numbers a row, so that at f = 100 a part has 104,000 rows at most: Facebook's 10⁹ users would take 10⁴ parts. By matrix-free CG no A is formed.
At f = 100, X has 400 GB in one version and 512 GB of host memory do not hold it twice, so its parts are in files, which a grid of up to 32,768 blocks reads and writes. Each step of CG reads the fixed side from them, which is why the estimate is above the paper's 3.8 h.
Where ratings and both sides are in parts, the spill column has the ratings twice: as sorted, and cut into blocks.

| problem | devices | X: p, q | Θ: p, q | ratings | waves | a device | host | spill | an iteration | the paper |
|---|---|---|---|---|---|---|---|---|---|---|
${lines.join('\n')}

## Measured

On one H200 at f = 100, by the commands of results als-gpu-iteration, hugewiki-quarter and hugewiki-als
(bench/results); each is the median of the iterations after the first.

| problem | planned | measured |
|---|---|---|
| Netflix | 31.1 ms | 27 ms |
| Hugewiki, a quarter of its users and ratings | 0.26 s | 0.28 s |
| Hugewiki's users, items and ratings | 1.26 s | 1.11 s |
`;
}
