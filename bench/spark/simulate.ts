/**
 * Bytes, memory and seconds of an iteration of a set on clusters of several sizes, by the planner's costs and the
 * measured rates of Spark: nothing is run.
 *
 *     node bench/spark/simulate.ts [--users 1e9] [--items 5e7] [--ratings 1e11] [--rank 64] [--cores 16]
 */
import { parseArgs } from 'node:util';
import { ALS } from '../../api/training/als.ts';
import { bytesOfBlock, bytesOfEquations } from '../../api/worker/block-facts.ts';
import { sizedParams } from '../../operators/als/als-params.ts';
import { costOf } from '../../operators/als/plan/cost.ts';
import { usualGrid, alsProblem } from '../../operators/als/plan/problem.ts';
import { assumedDevices } from '../../operators/planner/device-rates.ts';
import { baseBytes } from '../../operators/planner/memory-budget.ts';
import { blockLimit, factorBytes } from '../../operators/planner/sizes.ts';
import { equationColumns } from '../../operators/tasks/equation-tasks.ts';

/**
 * Measured on one machine with two executors (bench/results, `spark-exchange`): seconds of a stage, and a
 * host's CPU seconds for each byte that it receives.
 */
const STAGE = 0.1;
const SHUFFLED = 13e-9;

interface Shape {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
}

/** Seconds of an iteration on one host, without the exchange. */
function computing(shape: Shape, rank: number, cores: number): number {
  const { host } = assumedDevices([141e9]);
  const device = { ...host, parallelism: cores };
  const params = sizedParams(ALS.spark({ rank }).params, shape);
  return costOf(
    alsProblem(shape, params, { compute: [device], host: device }, undefined, { grid: usualGrid([device]) }),
  ).seconds;
}

/**
 * The share of a side's rows that each host needs: rows with at least one of their `ratings / rows` ratings
 * in the host's block of the other side, to which a rating belongs with a probability of 1 / hosts.
 */
function neededShare(rows: number, { ratings }: Pick<Shape, 'ratings'>, hosts: number): number {
  return 1 - (1 - 1 / hosts) ** (ratings / rows);
}

/** Bytes of a row in an Arrow stream: factors in float16, and an id. */
export function sentBytes(rank: number): number {
  return 2 * rank + 4;
}

/** Bytes that each host receives from others in an iteration, by side. */
function receivedBytes(shape: Shape, rank: number, hosts: number): { users: number; items: number } {
  const others = (hosts - 1) / hosts;
  const of = (rows: number) => others * rows * neededShare(rows, shape, hosts) * sentBytes(rank);
  return { users: of(shape.users), items: of(shape.items) };
}

/**
 * Bytes that each host receives while items are solved from sums of equations: each of the hosts has a share
 * for the items that its users have rated. As vectors of `steps` CG steps: the items' directions to each host,
 * and the products back, once for the residuals and once for each step. Both are in float32.
 */
function summedBytes(shape: Shape, rank: number, hosts: number) {
  const shares = shape.items * neededShare(shape.items, shape, hosts);
  return {
    equations: shares * (4 * equationColumns(rank, false) + 8),
    vectors: (steps: number) => 2 * (steps + 1) * shares * (4 * rank + 8),
  };
}

/**
 * Bytes of a host's worker with a CPU: for its blocks, the rows that it needs, and the process. `summed`: items
 * are solved from sums of equations.
 */
function hostBytes(shape: Shape, rank: number, hosts: number, cores: number, summed: boolean) {
  const blockOf = (rows: number, columns: number) => {
    const sent = (rows / hosts) * neededShare(rows, shape, hosts) * hosts;
    const needed = columns * neededShare(columns, shape, hosts);
    const received = needed * (1 - 1 / hosts);
    const sizes = { rows: rows / hosts, columns: needed, ratings: shape.ratings / hosts, sent, received };
    return {
      ...bytesOfBlock(sizes, { rank, implicitPrefs: false, isHalf: true }),
      equations: bytesOfEquations(sizes, { rank }),
    };
  };
  const [users, items] = [blockOf(shape.users, shape.items), blockOf(shape.items, shape.users)];
  const kept = users.kept + items.kept + (summed ? users.equations.kept : 0);
  const solvingItems = summed ? Math.max(users.equations.forming, items.equations.summing) : items.solving;
  const working = Math.max(users.solving, solvingItems, items.loading, users.loading - items.kept);
  return { kept, working, all: kept + working + baseBytes(cores) };
}

function simulate(): void {
  const { values } = parseArgs({
    options: {
      users: { type: 'string', default: '1e9' },
      items: { type: 'string', default: '5e7' },
      ratings: { type: 'string', default: '1e11' },
      rank: { type: 'string', default: '64' },
      cores: { type: 'string', default: '16' },
      gbit: { type: 'string', default: '10' },
      hosts: { type: 'string', default: '16,64,256' },
    },
  });
  const shape = {
    users: Number(values.users),
    items: Number(values.items),
    ratings: Number(values.ratings),
  };
  const [rank, cores, bytesPerSecond] = [
    Number(values.rank),
    Number(values.cores),
    (Number(values.gbit) * 1e9) / 8,
  ];
  /** Bytes of the WebAssembly memory in which a CPU has the rows that it needs. */
  const CPU_MEMORY = 2 ** 32;

  const one = computing(shape, rank, cores);
  console.log(
    "| hosts | users needed | users' rows, GB | items' equations, GB | CG vectors of 6 steps, GB | items' rows, GB | items are solved from | memory of a worker, GB | computing, s | exchange, s | what ends first |",
  );
  console.log(`|${'---|'.repeat(11)}`);
  for (const hosts of values.hosts.split(',').map(Number)) {
    const received = receivedBytes(shape, rank, hosts);
    const { equations, vectors } = summedBytes(shape, rank, hosts);
    const summed = equations < received.users;
    const bytes = (summed ? equations : received.users) + received.items;
    const [users, items] = [shape.users, shape.items].map((rows) => neededShare(rows, shape, hosts));
    const memory = hostBytes(shape, rank, hosts, cores, summed);
    // Equations are formed from a host's own users.
    const usersThere = summed ? shape.users / hosts : users * shape.users;
    const fixed = factorBytes(Math.max(usersThere, items * shape.items), rank);
    const limits = [
      ...(shape.ratings / hosts > blockLimit.ratings ? ['ratings of a block'] : []),
      ...(fixed > CPU_MEMORY ? [`rows needed, ${gb(fixed)} GB, in the 4 GiB of a CPU's kernels`] : []),
    ];
    const cells = [
      hosts,
      `${(100 * users).toFixed(0)} %`,
      gb(received.users),
      gb(equations),
      gb(vectors(6)),
      gb(received.items),
      summed ? 'equations' : 'rows',
      gb(memory.all),
      (one / hosts).toFixed(0),
      (4 * STAGE + bytes * (SHUFFLED + 1 / bytesPerSecond)).toFixed(0),
      limits.join('; ') || '-',
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}

function gb(bytes: number): string {
  return (bytes / 1e9).toFixed(bytes < 1e10 ? 1 : 0);
}

if (import.meta.main) simulate();
