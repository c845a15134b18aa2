/**
 * The model of training on many hosts of a cluster, by the planner's costs and the measured rates of Spark.
 */
import { ALS } from '../../api/training/als.ts';
import { sizedParams } from '../../operators/als/implicit/sized-params.ts';
import { costOf } from '../../operators/als/plan/cost/cost.ts';
import { usualGrid } from '../../operators/als/plan/grid.ts';
import { alsProblem } from '../../operators/als/plan/problem.ts';
import { equationColumns } from '../../operators/tasks/equation-tasks.ts';
import { assumedDevices } from '../../operators/planner/assumed-devices.ts';
import { bytesOfBlock, bytesOfEquations } from '../../api/worker/block-bytes.ts';
import { baseBytes } from '../../api/training/plans/memory-budget.ts';

/**
 * Measured on one machine with two executors (bench/results, `spark-exchange`): seconds of a stage, and a
 * host's CPU seconds for each byte that it receives.
 */
export const STAGE = 0.1;
export const SHUFFLED = 13e-9;
export const BROADCAST = 35e-9;

export interface Shape {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
}

/** Seconds of an iteration on one host, beside the exchange; `device`: GPUs, or a number of cores. */
export function computing(shape: Shape, rank: number, cores: number | 'gpu'): number {
  const { compute, host } = assumedDevices([141e9]);
  const device = cores === 'gpu' ? compute[0] : { ...host, parallelism: cores };
  const params = sizedParams(ALS.spark({ rank }).params, shape);
  return costOf(
    alsProblem(shape, params, { compute: [device], host: device }, undefined, { grid: usualGrid([device]) }),
  ).seconds;
}

/**
 * The share of a side's rows that each host needs: rows with at least one of their `ratings / rows` ratings
 * in the host's block of the other side, to which a rating belongs with a probability of 1 / hosts.
 */
export function neededShare(rows: number, { ratings }: Pick<Shape, 'ratings'>, hosts: number): number {
  return 1 - (1 - 1 / hosts) ** (ratings / rows);
}

/** Bytes of a row in an Arrow stream: factors in float16, and an id. */
export function sentBytes(rank: number): number {
  return 2 * rank + 4;
}

/** Bytes that each host receives from others in an iteration, by side. */
export function receivedBytes(shape: Shape, rank: number, hosts: number): { users: number; items: number } {
  const others = (hosts - 1) / hosts;
  const of = (rows: number) => others * rows * neededShare(rows, shape, hosts) * sentBytes(rank);
  return { users: of(shape.users), items: of(shape.items) };
}

/**
 * Bytes that each host receives while items are solved from sums of equations: each of the hosts has a share
 * for the items that its users have rated. As vectors of `steps` CG steps: the items' directions to each host,
 * and the products back, once for the residuals and once for each step. Both are in float32.
 */
export function summedBytes(shape: Shape, rank: number, hosts: number) {
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
export function hostBytes(shape: Shape, rank: number, hosts: number, cores: number, summed: boolean) {
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
